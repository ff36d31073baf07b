//! `volery bench`: what things cost on this machine and where the time goes, with what the machine can do measured in the
//! same run.

mod row;

use std::io::Write as _;
use std::path::PathBuf;

use volery_field::{Fp61, Gf128, Z64};
use volery_pcg::{Noise, Security};

use self::row::Row;
use super::choices::{Choices, Parameters};
use super::options::{Common, parse_count, pool};
use super::parts;
use super::verify::Findings;
use crate::calibration::Machine;
use crate::ends::{Correlation, Cot, End, Vole};
use crate::exit::{Failure, Status};
use crate::link::Link;
use crate::output::SingleFile;
use crate::party::{self, Job, Step};
use crate::report::{Report, peak_memory};

/// Measure protocols on this machine
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// List what can be measured
    List,
    /// Measure: two threads in this process, TCP between them
    Run(RunArguments),
    Ferret(super::ferret::Arguments),
    Kkrt(super::kkrt::Arguments),
    Dvole(super::dvole::Arguments),
}

#[derive(Clone, Debug, clap::Args)]
struct RunArguments {
    /// What to measure; see 'volery bench list'
    #[arg(required = true, value_name = "NAME", value_parser = named)]
    names: Vec<&'static Bench>,

    /// How many correlations
    #[arg(long, default_value = "1_048_576", value_parser = parse_count, allow_negative_numbers = true)]
    n: u64,

    /// What lies between the parties, for which the parameters are chosen: loopback, tls (the same, authenticated and encrypted),
    /// or RATE,RTT such as 100Mbit,20ms; given several times, several are measured one after the other
    #[arg(long, default_value = "loopback")]
    link: Vec<Link>,

    /// Against whom, as in 'volery cot'; several are measured one after the other
    #[arg(long, value_name = "SECURITY,..", value_delimiter = ',')]
    security: Vec<Security>,

    /// Where the LPN noise sits; several are measured one after the other
    #[arg(long, value_name = "NOISE,..", value_delimiter = ',')]
    noise: Vec<Noise>,

    /// The LPN set of the rounds, as in 'volery cot'; several are measured one after the other
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    set: Vec<String>,

    /// Where the parameters come from
    #[arg(long, default_value = "default")]
    parameters: Parameters,

    /// Runs of each measurement: the median by time counts
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// Write the measurements to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// Something that can be measured.
#[derive(Debug)]
struct Bench {
    name: &'static str,
    about: &'static str,
    measure: fn(&Setting) -> Result<Row, Failure>,
}

/// How to measure it.
#[derive(Clone, Debug)]
struct Setting {
    name: &'static str,
    n: u64,
    link: Link,
    choices: Choices,
    runs: u16,
    threads: usize,
    common: Common,
    machine: Machine,
}

static BENCHES: [Bench; 4] = [
    Bench {
        name: "cot",
        about: "correlated OT, from nothing",
        measure: stream::<Cot>,
    },
    Bench {
        name: "vole-fp61",
        about: "vector OLE over the integers modulo 2^61 - 1, from nothing",
        measure: stream::<Vole<Fp61>>,
    },
    Bench {
        name: "vole-z64",
        about: "vector OLE over the integers modulo 2^64, from nothing",
        measure: stream::<Vole<Z64>>,
    },
    Bench {
        name: "vole-gf128",
        about: "vector OLE over GF(2^128), from nothing",
        measure: stream::<Vole<Gf128>>,
    },
];

/// Finds a benchmark by its name.
fn named(name: &str) -> Result<&'static Bench, String> {
    BENCHES
        .iter()
        .find(|bench| bench.name == name)
        .ok_or_else(|| {
            let names: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
            format!("there is {}", names.join(", "))
        })
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::List => print_list(),
        Action::Run(arguments) => measure_all(arguments),
        Action::Ferret(arguments) => super::ferret::run(arguments),
        Action::Kkrt(arguments) => super::kkrt::run(arguments),
        Action::Dvole(arguments) => super::dvole::run(arguments),
    }
}

fn print_list() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    BENCHES
        .iter()
        .try_for_each(|bench| writeln!(out, "{:12} {}", bench.name, bench.about))
        .map_err(standard_output)
}

fn standard_output(error: std::io::Error) -> Failure {
    Failure::new(Status::Other, format_args!("standard output: {error}"))
}

fn measure_all(arguments: &RunArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let voice = common.voice();
    let place = common.prepare_report()?;
    let json = arguments
        .json
        .as_deref()
        .map(|path| SingleFile::prepare("--json", path))
        .transpose()?;
    voice.explain("measuring the machine");
    let machine = Machine::measure();
    let mut rows = Vec::new();
    let choices = arguments.choices();
    let rounds = arguments.names.iter().flat_map(|bench| {
        let links = move |choices| {
            arguments
                .link
                .iter()
                .map(move |link| (bench, choices, link))
        };
        choices.iter().flat_map(links)
    });
    for (bench, choices, link) in rounds {
        voice.explain(format_args!("measuring {}", bench.name));
        rows.push((bench.measure)(&Setting {
            name: bench.name,
            n: arguments.n,
            link: link.clone(),
            choices: choices.clone(),
            runs: arguments.runs,
            threads: common.threads.map_or(1, usize::from),
            common: common.clone(),
            machine: machine.clone(),
        })?);
    }
    let mut report = Report::new("bench");
    report.n = Some(arguments.n);
    report.peak_rss_bytes = peak_memory();
    report.result = serde_json::Map::from_iter([
        ("machine".to_owned(), to_value(&machine)),
        ("rows".to_owned(), to_value(&rows)),
    ]);
    if let Some(json) = json {
        json.commit(&report.to_json())?;
    }
    place.write(&report)?;
    if common.quiet {
        return Ok(());
    }
    row::print(&machine, &rows).map_err(standard_output)
}

fn to_value(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).expect("strings and numbers")
}

impl RunArguments {
    /// Every combination of what is asked for.
    fn choices(&self) -> Vec<Choices> {
        fn or_default<T: Clone>(given: &[T]) -> Vec<Option<T>> {
            match given {
                [] => vec![None],
                given => given.iter().cloned().map(Some).collect(),
            }
        }
        let mut all = Vec::new();
        for set in or_default(&self.set) {
            for noise in or_default(&self.noise) {
                for security in or_default(&self.security) {
                    all.push(Choices {
                        security,
                        noise,
                        set: set.clone(),
                        parameters: self.parameters,
                    });
                }
            }
        }
        all
    }
}

/// A stream from nothing, then its parts alone. The correlations are thrown away as they come, but the last step's are
/// checked.
fn stream<K: Correlation>(setting: &Setting) -> Result<Row, Failure> {
    let (n, link) = (setting.n, &setting.link);
    let plan = setting.choices.plan(K::KIND, n, link.for_plan())?;
    let job = Job { n, plan: &plan };
    let pools = [pool(setting.threads)?, pool(setting.threads)?];
    let progress = setting.common.voice().progress(n * u64::from(setting.runs));
    let mut runs = Vec::new();
    for _ in 0..setting.runs {
        let (mut sent, mut received) = (Last::<K::Sender>::new(n), Last::<K::Receiver>::new(n));
        let outcomes = party::run_both::<K>(
            job,
            link,
            setting.common.timeout(),
            &pools,
            &progress,
            |key, step| sent.look(key, step),
            |key, step| received.look(key, step),
        )?;
        check_last::<K>(sent, received)?;
        runs.push(outcomes);
    }
    progress.finish_and_clear();
    runs.sort_by_key(|outcomes| outcomes[0].total().max(outcomes[1].total()));
    let outcomes = runs[(runs.len() - 1) / 2];
    setting.common.voice().explain("measuring the parts");
    let parts = parts::measure::<K>(&parts::Run {
        plan: &plan,
        n,
        link,
        timeout: setting.common.timeout(),
        machine: &setting.machine,
        outcomes,
    })?;
    Ok(Row::new(setting, job, outcomes, parts))
}

/// The last step of a party.
struct Last<E: End> {
    left: u64,
    key: Option<E::Ring>,
    step: Option<Step<E>>,
}

impl<E: End> Last<E> {
    fn new(n: u64) -> Self {
        Self {
            left: n,
            key: None,
            step: None,
        }
    }

    fn look(&mut self, key: Option<E::Ring>, step: &Step<E>) {
        self.left -= step.count as u64;
        if self.left == 0 {
            self.key = key;
            self.step = Some(step.clone());
        }
    }
}

/// Checks that the last steps of both parties are correlated.
fn check_last<K: Correlation>(
    sent: Last<K::Sender>,
    received: Last<K::Receiver>,
) -> Result<(), Failure> {
    let (Some(mut s), Some(mut r)) = (sent.step, received.step) else {
        return Err(Failure::new(Status::Other, "a party ended too early"));
    };
    let mut findings = Findings::default();
    match (sent.key, received.key) {
        (Some(key), _) => K::Receiver::open(&r.u, r.count, |u| {
            findings.check(key, u, &mut r.column, &s.column);
        }),
        (None, key) => K::Sender::open(&s.u, s.count, |u| {
            findings.check(key.unwrap_or_default(), u, &mut s.column, &r.column);
        }),
    }
    findings.verdict(K::RELATION)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_runs_and_its_numbers_add_up() {
        let place = tempfile::tempdir().unwrap();
        let json = place.path().join("bench.json");
        measure_all(&RunArguments {
            names: BENCHES.iter().collect(),
            n: 1009,
            link: vec![Link::Loopback],
            security: Vec::new(),
            noise: Vec::new(),
            set: Vec::new(),
            parameters: Parameters::Default,
            runs: 3,
            json: Some(json.clone()),
            common: Common {
                report: None,
                threads: Some(1),
                timeout: 60,
                quiet: true,
                verbose: 0,
            },
        })
        .unwrap();
        let report: Report = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        let rows = report.result["rows"].as_array().unwrap();
        assert_eq!(rows.len(), BENCHES.len());
        for row in rows {
            let number = |pointer: &str| row.pointer(pointer).unwrap().as_f64().unwrap();
            let bytes = number("/sender/bytes_sent") + number("/receiver/bytes_sent");
            assert!((number("/bits_each") - 8.0 * bytes / 1009.0).abs() < 1e-6);
            let seconds = number("/sender/seconds_total").max(number("/receiver/seconds_total"));
            assert!((number("/nanoseconds_each") - seconds * 1e9 / 1009.0).abs() < 1.0);
            assert!(number("/ratios/aes_blocks") > 0.0);
        }
    }

    #[test]
    fn names_are_known_or_listed() {
        assert_eq!(named("vole-z64").unwrap().name, "vole-z64");
        assert!(named("vole").unwrap_err().contains("vole-gf128"));
    }
}
