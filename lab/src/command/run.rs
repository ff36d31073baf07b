//! `volery-bench run`: the cost of correlations on this machine and its breakdown, with the
//! machine's speed measured in the same run.

use std::path::{Path, PathBuf};

use crate::Link;
use crate::measurement::Sample;
use crate::results::{BenchmarkSession, Results};
use crate::runner::{self, Cell, Observer, Settings};
use volery_field::{Fp61, Gf128, Z64};
use volery_pcg::{Noise, Protocol, Security};

use super::measure::{Measured, stream};
use super::row::{self, Row};
use super::setting::Setting;
use super::{standard_output, tell_remarks};
use crate::command::exit::Failure;
use crate::command::options::{Common, Reporter, parse_count};
use crate::command::output::SingleFile;
use crate::command::report::Report;
use volery_cli::choices::{Choices, Parameters};
use volery_cli::party::{Cot, Vole};

/// Measure correlations: both parties in this process, TCP between them
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Arguments {
    /// Benchmarks to run; see 'volery-bench list'
    #[arg(required = true, value_name = "NAME", value_parser = named)]
    names: Vec<&'static Bench>,

    /// Number of correlations
    #[arg(
        long,
        default_value = "1_048_576",
        value_parser = parse_count,
        allow_negative_numbers = true,
    )]
    n: u64,

    /// Link between the parties, for which the parameters are chosen: loopback, tls (loopback,
    /// authenticated and encrypted), or RATE,RTT such as 100Mbit,20ms; several may be given, and
    /// each is measured
    #[arg(long, default_value = "loopback")]
    link: Vec<Link>,

    /// Adversary, as in 'volery cot'; several may be given, and each is measured
    #[arg(long, value_name = "SECURITY,..", value_delimiter = ',')]
    security: Vec<Security>,

    /// LPN noise distribution; several may be given, and each is measured
    #[arg(long, value_name = "NOISE,..", value_delimiter = ',')]
    noise: Vec<Noise>,

    /// LPN set of the rounds, as in 'volery cot'; several may be given, and each is measured
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    set: Vec<String>,

    /// Source of the parameters
    #[arg(long, default_value = "default")]
    parameters: Parameters,

    /// Protocol, as in 'volery cot'; several may be given, and each is measured
    #[arg(
        long,
        value_name = "NAME,..",
        value_delimiter = ',',
        default_value = "auto"
    )]
    protocol: Vec<Protocol>,

    /// Runs of each measurement, all once before any twice: the median by time counts;
    /// 'volery-bench compare' needs at least 3
    #[arg(
        long,
        value_name = "R",
        default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..),
    )]
    runs: u16,

    /// Write the measurements to this file, which 'volery-bench compare' reads
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// A benchmark.
#[derive(Debug)]
pub(super) struct Bench {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// A few words.
    pub(super) about: &'static str,
    measure: fn(&Setting) -> Result<Measured, Failure>,
}

/// All benchmarks.
pub(super) static BENCHES: [Bench; 4] = [
    Bench {
        name: "cot",
        about: "correlated OT, including setup",
        measure: stream::<Cot>,
    },
    Bench {
        name: "vole-fp61",
        about: "vector OLE over the integers modulo 2^61 - 1, including setup",
        measure: stream::<Vole<Fp61>>,
    },
    Bench {
        name: "vole-z64",
        about: "vector OLE over the integers modulo 2^64, including setup",
        measure: stream::<Vole<Z64>>,
    },
    Bench {
        name: "vole-gf128",
        about: "vector OLE over GF(2^128), including setup",
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
            format!("choose one of: {}", names.join(", "))
        })
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let place = common.prepare_report()?;
    let file = |option, path: &Option<PathBuf>| {
        let path: Option<&Path> = path.as_deref();
        path.map(|path| SingleFile::prepare(option, path))
            .transpose()
    };
    let json = file("--json", &arguments.json)?;
    let (rows, results) = measure(arguments)?;

    let rows_json = serde_json::to_value(&rows).expect("strings and numbers");
    if let Some(json) = json {
        let mut results = results.clone();
        results.more.insert("rows".to_owned(), rows_json.clone());
        json.commit(&results.to_bytes())?;
    }
    let machine = &results.sittings[0].machine;
    let samples = results.measurements.iter().flat_map(|one| &one.samples);
    let mut report = Report::new("bench");
    report.n = Some(arguments.n);
    report.peak_rss_bytes = samples.filter_map(|sample| sample.peak_bytes).max();
    let machine_json = serde_json::to_value(machine).expect("strings and numbers");
    report.result.insert("machine".to_owned(), machine_json);
    report.result.insert("rows".to_owned(), rows_json);
    place.write(&report)?;
    if common.quiet {
        return Ok(());
    }
    row::print(machine, &rows).map_err(standard_output)
}

/// Runs every requested measurement as often as requested; then measures the parts of each.
fn measure(arguments: &Arguments) -> Result<(Vec<Row>, Results), Failure> {
    let common = &arguments.common;
    let reporter = common.reporter();
    let mut cells: Vec<Cell> = Vec::new();
    let mut afterwards = Vec::new();
    for setting in arguments.settings() {
        let (bench, setting) = setting;
        let Measured { cell, after } = (bench.measure)(&setting)?;
        if !cells.iter().any(|have| have.key == cell.key) {
            cells.push(cell);
            afterwards.push(after);
        }
    }
    reporter.explain("measuring the machine");
    let session = BenchmarkSession::begin(env!("CARGO_PKG_VERSION"), arguments.threads());
    tell_remarks(reporter, &session.remarks);
    let machine = session.machine.clone();
    let mut results = Results::new("bench run");
    results.sittings.push(session);
    let settings = Settings {
        runs: arguments.runs.into(),
        limit: f64::INFINITY,
    };
    let measured = runner::run(&cells, &mut results, settings, &mut Spoken(reporter));
    let mut rows = Vec::new();
    for (after, cell) in afterwards.into_iter().zip(&cells) {
        if measured.is_err() {
            // The error of the failed run itself has more detail.
            after.failure()?;
        } else {
            reporter.explain("measuring the parts");
            let measured = results.find(&cell.key).expect("every cell was run");
            rows.push(after.row(&machine, &measured.samples)?);
        }
    }
    measured?;
    Ok((rows, results))
}

/// Reports the current measurement.
pub(super) struct Spoken(pub(super) Reporter);

impl Observer for Spoken {
    fn begin(&mut self, cell: &Cell, [run, runs]: [usize; 2]) {
        let key = &cell.key;
        self.0
            .explain(format_args!("measuring {key}: run {run} of {runs}"));
    }

    fn done(&mut self, _cell: &Cell, _sample: &Sample) {}

    fn skipped(&mut self, _cell: &Cell, _seconds: f64) {}

    fn keep(&mut self, _results: &Results) -> crate::Result<()> {
        Ok(())
    }
}

impl Arguments {
    fn threads(&self) -> usize {
        self.common.threads.map_or(1, usize::from)
    }

    /// Every combination of the requested settings.
    fn settings(&self) -> Vec<(&'static Bench, Setting)> {
        let mut all = Vec::new();
        for bench in &self.names {
            for choices in self.choices() {
                for link in &self.link {
                    let setting = Setting {
                        name: bench.name,
                        n: self.n,
                        link: link.clone(),
                        choices: choices.clone(),
                        threads: self.threads(),
                        common: self.common.clone(),
                    };
                    all.push((*bench, setting));
                }
            }
        }
        all
    }

    /// Every combination of the choices.
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
                    all.extend(self.protocol.iter().map(|protocol| Choices {
                        security,
                        noise,
                        set: set.clone(),
                        parameters: self.parameters,
                        protocol: *protocol,
                    }));
                }
            }
        }
        all
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_runs_and_its_numbers_add_up() {
        let place = tempfile::tempdir().unwrap();
        let json = place.path().join("bench.json");
        run(&Arguments {
            names: BENCHES.iter().collect(),
            n: 1009,
            link: vec![Link::Loopback],
            security: Vec::new(),
            noise: Vec::new(),
            set: Vec::new(),
            parameters: Parameters::Default,
            protocol: vec![Protocol::Auto],
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
        let results = Results::load(&json).unwrap();
        let rows = results.more["rows"].as_array().unwrap();
        assert_eq!(rows.len(), BENCHES.len());
        assert_eq!(results.measurements.len(), BENCHES.len());
        for (row, measurement) in rows.iter().zip(&results.measurements) {
            let number = |pointer: &str| row.pointer(pointer).unwrap().as_f64().unwrap();
            let bytes = number("/sender/bytes_sent") + number("/receiver/bytes_sent");
            assert!((number("/bits_each") - 8.0 * bytes / 1009.0).abs() < 1e-6);
            let seconds = number("/sender/seconds_total").max(number("/receiver/seconds_total"));
            assert!((number("/nanoseconds_each") - seconds * 1e9 / 1009.0).abs() < 1.0);
            assert!(number("/ratios/aes_blocks") > 0.0);
            // The row is that of the median of the runs in the file.
            assert_eq!(measurement.samples.len(), 3);
            let median = measurement.seconds().unwrap().median;
            assert!((median - seconds).abs() < 1e-9);
            assert!(
                measurement
                    .samples
                    .iter()
                    .any(|sample| sample.bytes() as f64 == bytes)
            );
        }
    }

    #[test]
    fn names_are_known_or_listed() {
        assert_eq!(named("vole-z64").unwrap().name, "vole-z64");
        assert!(named("vole").unwrap_err().contains("vole-gf128"));
    }
}
