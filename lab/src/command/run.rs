//! `volery-bench run`: the cost of correlations on this machine, with the machine's speed measured
//! in the same run.

use std::io::Write as _;
use std::path::PathBuf;

use volery_field::{Fp61, Gf128, Z64};
use volery_pcg::{Noise, Protocol, Security};

use super::options::{Common, Reporter, check_writable, parse_count};
use super::stream::{Measured, PairRun, Runs, SETUP, Setting, measure};
use crate::results::{BenchmarkSession, Results};
use crate::runner::{self, Cell, Settings};
use crate::streams::{Cot, Vole};
use crate::{Error, Link, Machine, Result};

/// Measure correlations: both parties in this process, TCP between them
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Arguments {
    /// Benchmarks to run; see 'volery-bench list'
    #[arg(required = true, value_name = "NAME", value_parser = named)]
    names: Vec<&'static Bench>,

    /// Number of correlations
    #[arg(long, default_value = "1_048_576", allow_negative_numbers = true)]
    #[arg(value_parser = parse_count)]
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
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', value_parser = set)]
    set: Vec<(String, Option<usize>)>,

    /// Protocol, as in 'volery cot'; several may be given, and each is measured
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "auto")]
    protocol: Vec<Protocol>,

    /// Substreams of primal LPN: then all correlations are one draw
    #[arg(long, value_name = "L")]
    substreams: Option<usize>,

    /// Runs of each measurement, all once before any twice: the median by time counts;
    /// lab/compare.py needs at least 3
    #[arg(long, value_name = "R", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// Write the measurements to this file, which lab/compare.py reads
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    common: Common,
}

/// A benchmark.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) name: &'static str,
    /// A few words.
    pub(super) about: &'static str,
    measure: fn(&Setting) -> Result<Measured>,
}

pub(super) static BENCHES: [Bench; 4] = [
    Bench { name: "cot", about: "correlated OT, including setup", measure: measure::<Cot> },
    Bench {
        name: "vole-fp61",
        about: "vector OLE over the integers modulo 2^61 - 1, including setup",
        measure: measure::<Vole<Fp61>>,
    },
    Bench {
        name: "vole-z64",
        about: "vector OLE over the integers modulo 2^64, including setup",
        measure: measure::<Vole<Z64>>,
    },
    Bench {
        name: "vole-gf128",
        about: "vector OLE over GF(2^128), including setup",
        measure: measure::<Vole<Gf128>>,
    },
];

fn named(name: &str) -> std::result::Result<&'static Bench, String> {
    BENCHES.iter().find(|bench| bench.name == name).ok_or_else(|| {
        let names: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
        format!("choose one of: {}", names.join(", "))
    })
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    arguments.json.iter().try_for_each(|path| check_writable("--json", path))?;
    let (rows, results) = arguments.measure()?;
    arguments.json.iter().try_for_each(|path| results.save(path))?;
    if arguments.common.quiet {
        return Ok(());
    }
    print(&results.sittings[0].machine, rows).map_err(Error::output)
}

/// A set, alone or as a plan names it: b11/2 has two instances in lockstep.
fn set(text: &str) -> std::result::Result<(String, Option<usize>), String> {
    let Some((name, instances)) = text.split_once('/') else { return Ok((text.to_owned(), None)) };
    let what = "after the name of the set comes 1, 2 or 4, its instances in lockstep";
    let instances = instances.parse().map_err(|_| what.to_owned())?;
    Ok((name.to_owned(), Some(instances)))
}

impl Arguments {
    /// Runs every requested measurement as often as requested; returns the rows of its table.
    fn measure(&self) -> Result<(Vec<[String; 10]>, Results)> {
        let reporter = self.common.reporter();
        let (mut cells, mut rest): (Vec<Cell>, Vec<_>) = (Vec::new(), Vec::new());
        for (bench, setting) in self.settings() {
            let (cell, runs) = (bench.measure)(&setting)?;
            if !cells.iter().any(|have| have.key == cell.key) {
                cells.push(cell);
                rest.push((setting, runs));
            }
        }
        let mut results = Results::begin("bench run", self.common.threads(), reporter);
        let settings = Settings { runs: self.runs.into(), limit: f64::INFINITY };
        runner::run(&cells, &mut results, settings, &mut reporter.runs())?;
        let machine = &results.sittings[0].machine;
        let row = |((setting, runs), cell): ((Setting, Runs), &Cell)| {
            let measured = results.find(&cell.key).expect("every cell was run");
            let run = runs.median(&measured.samples).expect("every cell was run");
            row(&setting, machine, &run)
        };
        let rows = rest.into_iter().zip(&cells).map(row).collect();
        Ok((rows, results))
    }

    /// Every combination of the requested settings.
    fn settings(&self) -> Vec<(&'static Bench, Setting)> {
        fn or_default<T: Clone>(given: &[T]) -> Vec<Option<T>> {
            match given {
                [] => vec![None],
                given => given.iter().cloned().map(Some).collect(),
            }
        }
        let mut all = Vec::new();
        for bench in &self.names {
            for set in or_default(&self.set) {
                for noise in or_default(&self.noise) {
                    for security in or_default(&self.security) {
                        for protocol in &self.protocol {
                            for link in &self.link {
                                let (set, instances) = set.clone().unzip();
                                let setting = Setting {
                                    name: bench.name,
                                    n: self.n,
                                    link: link.clone(),
                                    threads: self.common.threads(),
                                    timeout: self.common.timeout(),
                                    security,
                                    noise,
                                    set,
                                    instances: instances.flatten(),
                                    substreams: self.substreams,
                                    protocol: *protocol,
                                };
                                all.push((*bench, setting));
                            }
                        }
                    }
                }
            }
        }
        all
    }
}

/// The row of a measurement, from its median run.
fn row(setting: &Setting, machine: &Machine, run: &PairRun) -> [String; 10] {
    let each = |value: f64| match setting.n {
        0 => 0.0,
        n => value / n as f64,
    };
    let setup = run.sample.phase(SETUP).map_or(0.0, |setup| setup.seconds);
    let seconds = run.sample.seconds();
    let nanoseconds = each(seconds * 1e9);
    [
        setting.name.to_owned(),
        setting.link.to_string(),
        run.plan.security().to_string(),
        run.plan.noise().to_string(),
        run.plan.describe(),
        format!("{:.1}", 1e3 * setup),
        format!("{seconds:.3}"),
        format!("{nanoseconds:.1}"),
        format!("{:.2}", each(8.0 * run.sample.bytes() as f64)),
        format!("{:.1}", nanoseconds / machine.nanoseconds_aes_block),
    ]
}

fn print(machine: &Machine, rows: Vec<[String; 10]>) -> std::io::Result<()> {
    let headings = [
        "name",
        "link",
        "security",
        "noise",
        "parameters",
        "setup ms",
        "total s",
        "ns each",
        "bits each",
        "AES blocks",
    ];
    let mut out = std::io::stdout().lock();
    let rows: Vec<_> = [headings.map(str::to_owned)].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    for row in &rows {
        let cells = row.iter().enumerate();
        let cells: Vec<_> = cells.map(|(at, cell)| format!("{cell:>0$}", width(at))).collect();
        writeln!(out, "{}", cells.join("  "))?;
    }
    writeln!(
        out,
        "Times are the slower party's; the last column is ns each in AES blocks. This machine in \
         the same\nrun, one thread, {}: {:.2} ns an AES block, {:.2} ns a random 16-byte read \
         from 2 MiB,\n{:.1} GB/s copied.",
        machine.cpu,
        machine.nanoseconds_aes_block,
        machine.nanoseconds_random_read,
        1.0 / machine.nanoseconds_copied_byte,
    )
}

impl Results {
    /// Results of a command that measures once, with a session that begins now.
    pub(super) fn begin(asked: &str, threads: usize, reporter: Reporter) -> Self {
        reporter.explain("measuring the machine");
        let session = BenchmarkSession::begin(env!("CARGO_PKG_VERSION"), threads);
        super::tell_remarks(reporter, &session.remarks);
        let mut results = Self::new(asked);
        results.sittings.push(session);
        results
    }
}
