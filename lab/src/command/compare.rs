//! `volery-bench compare`: faster and slower measurements between two files of results.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::compare::{Comparison, LeftOut, Traffic, Unit, Verdict, compare};
use crate::measurement::{Key, Spread};
use crate::page::short;
use crate::page::text::{prose, words};
use crate::results::{BenchmarkSession, Results};

use super::exit::{Failure, Status};
use super::options::Common;

/// Compare two files of measurements: list what is faster or slower beyond the spread of the runs
///
/// Status 1 if a measurement in the second file is slower by more than the threshold with all runs
/// slower than all of the first, was left out there as too long, or sends more by more than the
/// threshold. Times are compared where both files have 3 runs.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Arguments {
    /// Measurements of 'volery-bench paper' (results.json) or of 'volery-bench run --json'
    #[arg(value_name = "A.json")]
    a: PathBuf,

    /// Later measurements, or measurements of another machine
    #[arg(value_name = "B.json")]
    b: PathBuf,

    /// Threshold below which a slower measurement does not cause status 1
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 10.0,
        value_parser = percent,
        allow_negative_numbers = true,
    )]
    threshold: f64,

    /// Compare times as measured or, for files of two machines, in units of each machine's
    /// calibration in the same session
    #[arg(long, value_name = "UNIT", default_value = "none")]
    machine: Unit,

    #[command(flatten)]
    common: Common,
}

/// A time with its unit and range.
fn text(unit: Unit, time: Spread) -> String {
    let (factor, name) = match unit {
        Unit::None => match time.median {
            seconds if seconds >= 1.0 => (1.0, "s"),
            seconds if seconds >= 1e-3 => (1e3, "ms"),
            seconds if seconds >= 1e-6 => (1e6, "us"),
            _ => (1e9, "ns"),
        },
        Unit::Aes => (1.0, "AES blocks"),
        Unit::Reads => (1.0, "reads"),
        Unit::Copies => (1.0, "copied bytes"),
        Unit::Hashes => (1.0, "hashes"),
    };
    let [median, least, most] =
        [time.median, time.least, time.most].map(|value| short(value * factor));
    format!("{median} ({least}..{most}) {name}")
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=1e6).contains(&percent) => Ok(percent),
        _ => Err("a percentage of 0 or more, such as 10".to_owned()),
    }
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let load = |path: &Path| Ok::<_, Failure>(Results::load(path)?);
    let (a, b) = (load(&arguments.a)?, load(&arguments.b)?);
    arguments.tell_machines(&a, &b);
    let comparison = compare(&a, &b, arguments.machine);
    arguments.check_common(&a, &b, &comparison)?;
    if !common.quiet {
        arguments.print(&comparison, [&a, &b]).map_err(Failure::output)?;
    }
    let threshold = arguments.threshold / 100.0;
    let slower = comparison.slower(threshold).count();
    let more = comparison.sends_more(threshold).count();
    let left_out = comparison.left_out.len();
    if slower + more + left_out == 0 {
        return Ok(());
    }
    Err(Failure::new(
        Status::Other,
        format_args!(
            "slower by more than {} % beyond the spread: {slower}; sending so much more: {more}; left out as too long: {left_out}",
            arguments.threshold
        ),
    ))
}

/// The machine of the last session.
fn machine(results: &Results) -> Option<String> {
    let machine = &results.sittings.last()?.machine;
    let plural = if machine.cores == 1 { "" } else { "s" };
    Some(format!(
        "{} with {} core{plural} and instructions {}",
        machine.processor.as_deref().unwrap_or("an unnamed processor"),
        machine.cores,
        machine.cpu
    ))
}

/// Whether both files have runs of a common measurement.
fn share_measurements(a: &Results, b: &Results) -> bool {
    let has_runs = |results: &Results, key: &Key| {
        let have = results.find(key);
        have.is_some_and(|have| !have.samples.is_empty())
    };
    let mut keys = a.measurements.iter().map(|one| &one.key);
    keys.any(|key| has_runs(a, key) && has_runs(b, key))
}

/// The differences between the two most similar measurements.
fn nearest(a: &Results, b: &Results) -> Option<String> {
    let fields = |key: &Key| {
        [
            ("protocol", key.protocol.clone()),
            ("n", key.n.to_string()),
            ("link", key.link.to_string()),
            ("threads", key.threads.to_string()),
        ]
    };
    let differ = |a: &Key, b: &Key| -> Vec<String> {
        let pairs = fields(a).into_iter().zip(fields(b));
        let other = pairs.filter(|((_, a), (_, b))| a != b);
        other.map(|((name, a), (_, b))| format!("{name} is {a} and {b}")).collect()
    };
    let keys = |results| -> Vec<&Key> {
        let all: &Results = results;
        let measured = all.measurements.iter().filter(|one| !one.samples.is_empty());
        measured.map(|one| &one.key).collect()
    };
    let of_b = keys(b);
    let pairs = keys(a).into_iter().flat_map(|a| of_b.iter().map(move |b| differ(a, b)));
    let least = pairs.min_by_key(Vec::len)?;
    Some(format!("in the most similar ones {}", least.join(", ")))
}

/// The remarks of the sessions of a file, each once.
fn remarks(results: &Results) -> Vec<&str> {
    let mut remarks: Vec<&str> = Vec::new();
    let all = results.sittings.iter();
    for remark in all.flat_map(|sitting: &BenchmarkSession| &sitting.remarks) {
        if !remarks.contains(&&**remark) {
            remarks.push(remark);
        }
    }
    remarks
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Same => "same",
        Verdict::Unknown => "unknown",
    }
}

impl Arguments {
    /// Notes on standard error that the files are of two machines, if times are compared as
    /// measured.
    fn tell_machines(&self, a: &Results, b: &Results) {
        if let (Some(first), Some(second)) = (machine(a), machine(b))
            && first != second
            && self.machine == Unit::None
        {
            let line = format_args!(
                "the files are of two machines, {first}, and {second}: --machine compares in units of what each can do"
            );
            self.common.reporter().announce(line, true);
        }
    }

    /// Refuses files without comparable measurements.
    fn check_common(
        &self,
        a: &Results,
        b: &Results,
        comparison: &Comparison,
    ) -> Result<(), Failure> {
        let nothing = comparison.rows.is_empty()
            && comparison.traffic.is_empty()
            && comparison.left_out.is_empty();
        if !nothing {
            return Ok(());
        }
        let (first, second) = (self.a.display(), self.b.display());
        if share_measurements(a, b) {
            let what = format_args!(
                "{first} and {second} have measurements in common, but no phase of them that takes time"
            );
            return Err(Failure::new(Status::Other, what)
                .with_hint("the programs that measured them divide a run into different phases"));
        }
        let what = match nearest(a, b) {
            Some(differ) => format!("{first} and {second} have no measurement in common: {differ}"),
            None => format!("{first} and {second} have no measurement in common"),
        };
        Err(Failure::new(Status::Other, what)
            .with_hint("two measurements match if protocol, n, link and threads are equal"))
    }

    /// Prints the changes, the worst first, the number of unchanged measurements, and those that
    /// could not be compared.
    fn print(&self, comparison: &Comparison, files: [&Results; 2]) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        let lines = self.lines(comparison);
        if !lines.is_empty() {
            let past = format!("past {} %", self.threshold);
            let headings = ["measurement", "phase", "A", "B", ">B/A", "what", &past];
            writeln!(out, "{}", words(headings, lines))?;
        }
        let count = |verdict| {
            let rows = comparison.rows.iter();
            rows.filter(|row| row.verdict == verdict).count()
        };
        let line = format!(
            "beyond the spread: {} faster, {} slower; within it: {}; of fewer than three runs: {}",
            count(Verdict::Faster),
            count(Verdict::Slower),
            count(Verdict::Same),
            count(Verdict::Unknown),
        );
        writeln!(out, "{}", prose("", &line))?;
        let names = |keys: &[Key]| keys.iter().map(Key::to_string).collect::<Vec<_>>();
        let phases = comparison.other_phases.iter();
        let phases = phases.map(|(key, phase)| format!("{key}: {phase}"));
        for (what, names) in [
            ("measurements in A only", names(&comparison.only_a)),
            ("measurements in B only", names(&comparison.only_b)),
            ("phases that one of the two has", phases.collect()),
            (
                "measured with other parameters or security, and compared all the same",
                names(&comparison.other_parameters),
            ),
        ] {
            if names.is_empty() {
                continue;
            }
            writeln!(out, "{what}: {}", names.len())?;
            if self.common.verbose > 0 {
                names.iter().try_for_each(|name| writeln!(out, "  {name}"))?;
            }
        }
        for (name, results) in ["A", "B"].iter().zip(files) {
            for remark in remarks(results) {
                writeln!(out, "of {name}: {remark}")?;
            }
        }
        Ok(())
    }

    /// The changes, the worst first.
    fn lines(&self, comparison: &Comparison) -> Vec<[String; 7]> {
        let rows = comparison.rows.iter();
        let rows = rows
            .filter(|row| match row.verdict {
                Verdict::Faster | Verdict::Slower => true,
                Verdict::Unknown => self.is_past(row.ratio),
                Verdict::Same => false,
            })
            .map(|row| {
                let texts = [text(self.machine, row.a), text(self.machine, row.b)];
                let what = word(row.verdict);
                (row.ratio, self.line(&row.key, &row.phase, texts, row.ratio, what))
            });
        let traffic = comparison.traffic.iter().map(|Traffic { key, a, b }| {
            let texts = [a, b].map(|bytes| format!("{} bytes", short(*bytes)));
            let what = if b > a { "sends more" } else { "sends less" };
            let ratio = b / a;
            (ratio, self.line(key, "traffic", texts, ratio, what))
        });
        let left_out = comparison.left_out.iter().map(|LeftOut { key, a, b }| {
            let texts = [a, b].map(|seconds| format!("about {} s", short(*seconds)));
            let ratio = b / a;
            (ratio, self.line(key, "all", texts, ratio, "left out"))
        });
        let mut lines: Vec<_> = rows.chain(traffic).chain(left_out).collect();
        lines.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        lines.into_iter().map(|(_, line)| line).collect()
    }

    /// Whether a value grew or shrank by more than the threshold.
    fn is_past(&self, ratio: f64) -> bool {
        let threshold = 1.0 + self.threshold / 100.0;
        ratio > threshold || ratio * threshold < 1.0
    }

    fn line(
        &self,
        key: &Key,
        phase: &str,
        [a, b]: [String; 2],
        ratio: f64,
        what: &str,
    ) -> [String; 7] {
        [
            key.to_string(),
            phase.to_owned(),
            a,
            b,
            format!("{ratio:.3}"),
            what.to_owned(),
            if self.is_past(ratio) { "yes" } else { "" }.to_owned(),
        ]
    }
}
