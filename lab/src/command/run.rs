//! `volery-bench run`: the cost of correlations on this machine and its breakdown, with the
//! machine's speed measured in the same run.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use volery_field::{Fp61, Gf128, Z64};
use volery_pcg::{Noise, Protocol, Security};

use super::exit::Failure;
use super::options::{Common, Reporter, parse_count};
use super::output::SingleFile;
use super::parts::{self, Parts};
use super::stream::{Cot, Measured, PairRun, Parameters, Setting, Vole, measure};
use crate::measurement::Sample;
use crate::page::text::{prose, words};
use crate::parties::Mark;
use crate::results::{BenchmarkSession, Results};
use crate::runner::{self, Cell, Observer, Settings};
use crate::{Link, Machine};

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

type MeasureParts = fn(&parts::Run<'_>) -> Result<Option<Parts>, Failure>;

/// A benchmark.
#[derive(Debug)]
pub(super) struct Bench {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// A few words.
    pub(super) about: &'static str,
    measure: fn(&Setting) -> Result<Measured, Failure>,
    parts: MeasureParts,
}

/// All benchmarks.
pub(super) static BENCHES: [Bench; 4] = [
    Bench {
        name: "cot",
        about: "correlated OT, including setup",
        measure: measure::<Cot>,
        parts: parts::measure::<Cot>,
    },
    Bench {
        name: "vole-fp61",
        about: "vector OLE over the integers modulo 2^61 - 1, including setup",
        measure: measure::<Vole<Fp61>>,
        parts: parts::measure::<Vole<Fp61>>,
    },
    Bench {
        name: "vole-z64",
        about: "vector OLE over the integers modulo 2^64, including setup",
        measure: measure::<Vole<Z64>>,
        parts: parts::measure::<Vole<Z64>>,
    },
    Bench {
        name: "vole-gf128",
        about: "vector OLE over GF(2^128), including setup",
        measure: measure::<Vole<Gf128>>,
        parts: parts::measure::<Vole<Gf128>>,
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
    let report = common.prepare_report()?;
    let json = SingleFile::optional("--json", arguments.json.as_deref())?;
    let (rows, results) = arguments.measure()?;
    let rows_json: Value = rows.iter().map(|row| row.json.clone()).collect();
    if let Some(json) = json {
        let mut results = results.clone();
        results.more.insert("rows".to_owned(), rows_json.clone());
        json.commit(&results.to_bytes())?;
    }
    let machine = &results.sittings[0].machine;
    let samples = results.measurements.iter().flat_map(|one| &one.samples);
    let peak = samples.filter_map(|sample| sample.peak_bytes).max();
    let result = json!({ "machine": machine, "rows": rows_json });
    report.write("bench", Some(arguments.n), peak, result)?;
    if common.quiet {
        return Ok(());
    }
    print(machine, &rows).map_err(Failure::output)
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
    /// Runs every requested measurement as often as requested; then measures the parts of each.
    fn measure(&self) -> Result<(Vec<Row>, Results), Failure> {
        let reporter = self.common.reporter();
        let (mut cells, mut rest): (Vec<Cell>, Vec<_>) = (Vec::new(), Vec::new());
        for (bench, setting) in self.settings() {
            let measured = (bench.measure)(&setting)?;
            if !cells.iter().any(|have| have.key == measured.cell.key) {
                let (cell, runs) = measured.split();
                cells.push(cell);
                rest.push((bench, setting, runs));
            }
        }
        let mut results = Results::begin("bench run", self.common.threads(), reporter);
        let machine = results.sittings[0].machine.clone();
        let settings = Settings {
            runs: self.runs.into(),
            limit: f64::INFINITY,
        };
        runner::run(&cells, &mut results, settings, &mut Spoken(reporter))?;
        let mut rows = Vec::new();
        for ((bench, setting, runs), cell) in rest.into_iter().zip(&cells) {
            reporter.explain("measuring the parts");
            let measured = results.find(&cell.key).expect("every cell was run");
            let run = runs.median(&measured.samples).expect("every cell was run");
            let parts = (bench.parts)(&parts::Run {
                plan: run.plan(),
                n: setting.n,
                link: &setting.link,
                timeout: setting.timeout,
                machine: &machine,
                marks: run.marks,
            })?;
            rows.push(Row::new(&setting, &machine, &run, parts));
        }
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
                                let setting = Setting {
                                    name: bench.name,
                                    n: self.n,
                                    link: link.clone(),
                                    threads: self.common.threads(),
                                    timeout: self.common.timeout(),
                                    security,
                                    noise,
                                    set: set.clone(),
                                    parameters: self.parameters,
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

/// A row of the results: as JSON, and the words that are printed.
struct Row {
    json: Value,
    cells: [String; 10],
    parts: Option<Parts>,
    which: String,
}

impl Row {
    fn new(setting: &Setting, machine: &Machine, run: &PairRun, parts: Option<Parts>) -> Self {
        let n = setting.n;
        let each = |value: f64| if n == 0 { 0.0 } else { value / n as f64 };
        let plan = run.plan();
        let seconds = |[setup, stream]: [Mark; 2]| {
            let (setup, total) = (setup.elapsed.as_secs_f64(), stream.elapsed.as_secs_f64());
            [setup, total - setup, total]
        };
        let slower = |place: usize| {
            let of = run.marks.map(|marks| seconds(marks)[place]);
            of[0].max(of[1])
        };
        let party = |marks: [Mark; 2]| {
            let [setup, extend, total] = seconds(marks);
            json!({
                "seconds_setup": setup,
                "seconds_extend": extend,
                "seconds_total": total,
                "bytes_sent": marks[1].traffic.bytes_sent,
                "setup_bytes_sent": marks[0].traffic.bytes_sent,
                "messages_sent": marks[1].traffic.messages_sent,
            })
        };
        let bytes: u64 = run
            .marks
            .iter()
            .map(|marks| marks[1].traffic.bytes_sent)
            .sum();
        let nanoseconds = each(slower(2) * 1e9);
        let bits = each(8.0 * bytes as f64);
        let choice = run.link.map(|link| {
            let predicted = |one: &super::stream::Candidate| {
                let (protocol, seconds) = (one.plan.name(), one.seconds);
                json!({ "protocol": protocol, "seconds": seconds, "bytes": one.bytes })
            };
            json!({
                "bits_per_second": link.bits_per_second as u64,
                "round_trip_seconds": link.round_trip,
                "predicted": run.candidates.iter().map(predicted).collect::<Vec<_>>(),
            })
        });
        let [link, security, noise] = [
            setting.link.to_string(),
            plan.security().to_string(),
            plan.noise().to_string(),
        ];
        let parameters = plan.describe();
        let json = json!({
            "name": setting.name,
            "n": n,
            "link": link,
            "threads": setting.threads,
            "security": security,
            "security_bits": plan.claimed_bits(),
            "statistical_bits": plan.statistical_bits(),
            "noise": noise,
            "protocol": plan.name(),
            "choice": choice,
            "parameters": parameters,
            "sender": party(run.marks[0]),
            "receiver": party(run.marks[1]),
            "nanoseconds_each": nanoseconds,
            "nanoseconds_each_extend": each(slower(1) * 1e9),
            "bits_each": bits,
            "ratios": {
                "aes_blocks": nanoseconds / machine.nanoseconds_aes_block,
                "random_reads": nanoseconds / machine.nanoseconds_random_read,
                "copied_bytes": nanoseconds / machine.nanoseconds_copied_byte,
            },
            "parts": parts,
        });
        let which = format!("{} ({security}, {parameters})", setting.name);
        let cells = [
            setting.name.to_owned(),
            link,
            security,
            noise,
            parameters,
            format!("{:.1}", 1e3 * slower(0)),
            format!("{:.3}", slower(2)),
            format!("{nanoseconds:.1}"),
            format!("{bits:.2}"),
            format!("{:.1}", nanoseconds / machine.nanoseconds_aes_block),
        ];
        Self {
            json,
            cells,
            parts,
            which,
        }
    }
}

/// Prints the table of the measurements, and of the parts of each.
fn print(machine: &Machine, rows: &[Row]) -> std::io::Result<()> {
    let headings = [
        "name",
        "link",
        "security",
        "noise",
        "parameters",
        ">setup ms",
        ">total s",
        ">ns each",
        ">bits each",
        ">AES blocks",
    ];
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{}",
        words(headings, rows.iter().map(|row| row.cells.clone()))
    )?;
    let line = format!(
        "Times are the slower party's; the last column is ns each in AES blocks. This machine in \
         the same run, one thread, {}: {:.2} ns an AES block, {:.2} ns a random 16-byte read from \
         2 MiB, {:.1} GB/s copied.",
        machine.cpu,
        machine.nanoseconds_aes_block,
        machine.nanoseconds_random_read,
        1.0 / machine.nanoseconds_copied_byte,
    );
    writeln!(out, "{}", prose("", &line))?;
    for row in rows {
        if let Some(parts) = &row.parts {
            parts.print(&row.which, &mut out)?;
        }
    }
    Ok(())
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
