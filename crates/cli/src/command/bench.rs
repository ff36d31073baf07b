//! `volery bench`: what things cost on this machine and where the time goes, with what the machine can do measured in the
//! same run.

use std::io::Write as _;
use std::path::PathBuf;

use volery_field::{Fp61, Gf128, Z64};
use volery_pcg::Security;
use volery_pcg::vole::VoleRing;

use super::options::{Common, Parameters, parse_count, plan_for, pool};
use super::parts::{self, Parts};
use super::table::table;
use super::verify::Findings;
use crate::calibration::Machine;
use crate::exit::{Failure, Status};
use crate::link::{self, Link};
use crate::output::SingleFile;
use crate::party::{self, Buffer, Job, Outcome};
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
}

#[derive(Clone, Debug, clap::Args)]
struct RunArguments {
    /// What to measure; see 'volery bench list'
    #[arg(required = true, value_name = "NAME", value_parser = named)]
    names: Vec<&'static Bench>,

    /// How many correlations
    #[arg(long, default_value = "1_048_576", value_parser = parse_count, allow_negative_numbers = true)]
    n: u64,

    /// What lies between the parties: loopback, or RATE,RTT such as 100Mbit,20ms
    #[arg(long, default_value = "loopback")]
    link: Link,

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
    threads: usize,
    common: Common,
    machine: Machine,
}

static BENCHES: [Bench; 3] = [
    Bench {
        name: "vole-fp61",
        about: "vector OLE over the integers modulo 2^61 - 1, from nothing",
        measure: vole::<Fp61>,
    },
    Bench {
        name: "vole-z64",
        about: "vector OLE over the integers modulo 2^64, from nothing",
        measure: vole::<Z64>,
    },
    Bench {
        name: "vole-gf128",
        about: "vector OLE over GF(2^128), from nothing",
        measure: vole::<Gf128>,
    },
];

/// What was measured.
#[derive(Clone, Debug, serde::Serialize)]
struct Row {
    name: &'static str,
    n: u64,
    link: String,
    threads: usize,
    security: String,
    security_bits: u32,
    noise: String,
    parameters: String,
    sender: Party,
    receiver: Party,
    /// Of the slower party, setup included.
    nanoseconds_each: f64,
    /// Of the slower party, without the setup.
    nanoseconds_each_extend: f64,
    /// Both ways.
    bits_each: f64,
    /// The time of one correlation, setup included, in units of what the machine did in the same run.
    ratios: Ratios,
    /// Where the time of the extension goes; none where the plan uses no LPN.
    parts: Option<Parts>,
}

/// One party's part.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Party {
    seconds_setup: f64,
    seconds_extend: f64,
    seconds_total: f64,
    bytes_sent: u64,
    setup_bytes_sent: u64,
    messages_sent: u64,
}

/// The time of one correlation over the time of one machine operation.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Ratios {
    aes_blocks: f64,
    random_reads: f64,
    copied_bytes: f64,
}

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
    for bench in &arguments.names {
        voice.explain(format_args!("measuring {}", bench.name));
        rows.push((bench.measure)(&Setting {
            name: bench.name,
            n: arguments.n,
            link: arguments.link.clone(),
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
    print(&machine, &rows).map_err(standard_output)
}

fn to_value(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).expect("strings and numbers")
}

/// A VOLE stream from nothing, then its parts alone. The correlations are thrown away as they come, but the last step's
/// are checked.
fn vole<R: VoleRing>(setting: &Setting) -> Result<Row, Failure> {
    let security = Security::SemiHonest;
    let plan = plan_for::<R>(setting.n, None, security, Parameters::Default)?;
    let job = Job {
        n: setting.n,
        plan: &plan,
        security,
    };
    let pools = [pool(setting.threads)?, pool(setting.threads)?];
    let progress = setting.common.voice().progress(setting.n);
    let mut last = Last::<R>::default();
    let (sender, receiver) = link::run_both(
        &setting.link,
        setting.common.timeout(),
        |channel| {
            pools[0].install(|| {
                let mut left = setting.n;
                let outcome = party::send::<R>(job, channel, &mut progress.clone(), |step| {
                    left -= step[0].len() as u64;
                    if left == 0 {
                        last.u_v = step.clone();
                    }
                    Ok(step)
                })?;
                party::conclude(channel)?;
                Ok(outcome)
            })
        },
        |channel| {
            pools[1].install(|| {
                let mut left = setting.n;
                let outcome = party::receive::<R>(job, channel, &mut (), |x, step| {
                    left -= step[0].len() as u64;
                    if left == 0 {
                        last.x = x;
                        last.w = step.clone();
                    }
                    Ok(step)
                })?;
                party::conclude(channel)?;
                Ok(outcome)
            })
        },
    )?;
    progress.finish_and_clear();
    let mut findings = Findings::default();
    let [u, v] = &mut last.u_v;
    findings.check(last.x, u, v, &last.w[0]);
    findings.verdict()?;
    let outcomes = [sender, receiver];
    setting.common.voice().explain("measuring the parts");
    let parts = parts::measure::<R>(&parts::Run {
        plan: &plan,
        n: setting.n,
        link: &setting.link,
        timeout: setting.common.timeout(),
        machine: &setting.machine,
        outcomes,
    })?;
    Ok(row(setting, job, outcomes, parts))
}

/// The last step of both parties.
struct Last<R: volery_field::Ring> {
    u_v: [Buffer<R>; 2],
    x: R,
    w: [Buffer<R>; 1],
}

impl<R: volery_field::Ring> Default for Last<R> {
    fn default() -> Self {
        Self {
            u_v: [(); 2].map(|()| party::buffer(0)),
            x: R::ZERO,
            w: [party::buffer(0)],
        }
    }
}

fn row(setting: &Setting, job: Job<'_>, parties: [Outcome; 2], parts: Option<Parts>) -> Row {
    let each = |value: f64| {
        if job.n == 0 {
            0.0
        } else {
            value / job.n as f64
        }
    };
    let [sender, receiver] = parties.map(|outcome| Party {
        seconds_setup: outcome.setup.as_secs_f64(),
        seconds_extend: outcome.extend.as_secs_f64(),
        seconds_total: outcome.total().as_secs_f64(),
        bytes_sent: outcome.traffic.bytes_sent,
        setup_bytes_sent: outcome.setup_traffic.bytes_sent,
        messages_sent: outcome.traffic.messages_sent,
    });
    let nanoseconds_each = each(sender.seconds_total.max(receiver.seconds_total) * 1e9);
    Row {
        name: setting.name,
        n: setting.n,
        link: setting.link.to_string(),
        threads: setting.threads,
        security: job.security.to_string(),
        security_bits: job.plan.claimed_bits(),
        noise: job.plan.noise().to_string(),
        parameters: job.plan.describe(),
        sender,
        receiver,
        nanoseconds_each,
        nanoseconds_each_extend: each(sender.seconds_extend.max(receiver.seconds_extend) * 1e9),
        bits_each: each(8.0 * (sender.bytes_sent + receiver.bytes_sent) as f64),
        ratios: Ratios {
            aes_blocks: nanoseconds_each / setting.machine.nanoseconds_aes_block,
            random_reads: nanoseconds_each / setting.machine.nanoseconds_random_read,
            copied_bytes: nanoseconds_each / setting.machine.nanoseconds_copied_byte,
        },
        parts,
    }
}

fn print(machine: &Machine, rows: &[Row]) -> std::io::Result<()> {
    let headings = [
        "name",
        ">n",
        "link",
        ">setup s",
        ">extend s",
        ">total s",
        ">ns each",
        ">bytes ->",
        ">bytes <-",
        ">bits each",
        ">AES blocks",
        ">random reads",
    ];
    let cells = rows.iter().map(|row| {
        let slower = |of: fn(&Party) -> f64| of(&row.sender).max(of(&row.receiver));
        [
            row.name.to_owned(),
            row.n.to_string(),
            row.link.clone(),
            format!("{:.3}", slower(|party| party.seconds_setup)),
            format!("{:.3}", slower(|party| party.seconds_extend)),
            format!("{:.3}", slower(|party| party.seconds_total)),
            format!("{:.1}", row.nanoseconds_each),
            row.sender.bytes_sent.to_string(),
            row.receiver.bytes_sent.to_string(),
            format!("{:.2}", row.bits_each),
            format!("{:.1}", row.ratios.aes_blocks),
            format!("{:.1}", row.ratios.random_reads),
        ]
    });
    let text = table(headings, cells);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    if let Some(row) = rows.first() {
        writeln!(
            out,
            "{}, {} bits; {} thread(s) a party; times are the slower party's, the last two columns are ns each in those units",
            row.security, row.security_bits, row.threads
        )?;
    }
    writeln!(
        out,
        "this machine in the same run, one thread, {}: {:.2} ns an AES block, {:.2} ns a random 16-byte read from 2 MiB, \
         {:.1} GB/s copied",
        machine.cpu,
        machine.nanoseconds_aes_block,
        machine.nanoseconds_random_read,
        1.0 / machine.nanoseconds_copied_byte,
    )?;
    rows.iter()
        .filter_map(|row| Some((row.name, row.parts.as_ref()?)))
        .try_for_each(|(name, parts)| parts::print(&mut out, name, parts))
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
            link: Link::Loopback,
            json: Some(json.clone()),
            common: Common {
                report: None,
                threads: Some(1),
                timeout: 60,
                quiet: true,
                verbose: false,
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
