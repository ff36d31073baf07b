//! Faster and slower measurements between two files of results.
//!
//! A phase is compared by its time for one output. It is faster or slower *beyond the spread* if
//! the ranges of the two files do not overlap. Equal programs show this too: one row in 10 with
//! three runs each, one row in 126 with five. The difference must therefore also exceed a
//! threshold, and a file of hundreds of rows still has some by chance. A phase that takes less than
//! a hundredth of its run in both files is not compared. Figures of two machines are compared in
//! units of each machine's calibration in the same session ([`Unit`]).

use crate::machine::Machine;
use crate::measurement::{Key, Measurement, Phase, Sample, Spread};
use crate::results::Results;

/// The unit in which times are compared: as measured, or that of the machine in the same session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Unit {
    /// As measured.
    None,
    /// AES blocks.
    Aes,
    /// Random 16-byte reads from 2 MiB.
    Reads,
    /// Copied bytes.
    Copies,
    /// Hashes of an OT.
    Hashes,
}

impl Unit {
    /// Seconds of one unit.
    fn seconds(self, machine: &Machine) -> f64 {
        1e-9 * match self {
            Self::None => 1e9,
            Self::Aes => machine.nanoseconds_aes_block,
            Self::Reads => machine.nanoseconds_random_read,
            Self::Copies => machine.nanoseconds_copied_byte,
            Self::Hashes => machine.nanoseconds_ot_hash,
        }
    }
}

/// The comparison of two times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Each run of the second file took less than each of the first.
    Faster,
    /// Each run of the second file took more than each of the first.
    Slower,
    /// The ranges overlap.
    Same,
    /// A file has fewer than three runs: their spread is unknown.
    Unknown,
}

/// A phase of a measurement that is in both files.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The measurement.
    pub(crate) key: Key,
    /// Its name; `all` for all phases together.
    pub(crate) phase: String,
    /// In the first file: in units, per output where outputs are counted.
    pub(crate) a: Spread,
    /// In the second file.
    pub(crate) b: Spread,
    /// The second's median over the first's.
    pub(crate) ratio: f64,
    /// The result of the comparison.
    pub(crate) verdict: Verdict,
}

/// A measurement whose bytes differ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Traffic {
    /// The measurement.
    pub(crate) key: Key,
    /// Bytes in both directions, median over the runs of the first file; per output where outputs
    /// are counted.
    pub(crate) a: f64,
    /// Of the second file.
    pub(crate) b: f64,
}

/// A measurement that the second file left out because a run would have taken too long.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LeftOut {
    /// The measurement.
    pub(crate) key: Key,
    /// A run in the first file, in seconds.
    pub(crate) a: f64,
    /// Predicted seconds of a run in the second file.
    pub(crate) b: f64,
}

/// The comparison of two files of results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    /// All phases of all measurements that are in both files, in the order of the first.
    pub(crate) rows: Vec<Row>,
    /// Measurements whose traffic differs.
    pub(crate) traffic: Vec<Traffic>,
    /// Measurements that the second file left out as too slow.
    pub(crate) left_out: Vec<LeftOut>,
    /// Measurements whose parameters differ: they are compared, but may not be equivalent.
    pub(crate) other_parameters: Vec<Key>,
    /// Phases that only one file has, of measurements that both have.
    pub(crate) other_phases: Vec<(Key, String)>,
    /// Measurements that the second file lacks.
    pub(crate) only_a: Vec<Key>,
    /// Measurements that the first file lacks.
    pub(crate) only_b: Vec<Key>,
}

/// Compares two files of results.
pub(crate) fn compare(a: &Results, b: &Results, unit: Unit) -> Comparison {
    let mut comparison = Comparison::default();
    for first in measured(a) {
        let Some(second) = b.find(&first.key) else {
            comparison.only_a.push(first.key.clone());
            continue;
        };
        if second.samples.is_empty() {
            comparison.left_out.extend(left_out(first, second));
            continue;
        }
        let files = [(a, first), (b, second)];
        comparison.rows.extend(rows(files, unit));
        comparison.traffic.extend(traffic(first, second));
        let names = phases_of_one(first, second);
        let named = names.into_iter().map(|name| (first.key.clone(), name));
        comparison.other_phases.extend(named);
        if (&first.plan, first.security_bits) != (&second.plan, second.security_bits) {
            comparison.other_parameters.push(first.key.clone());
        }
    }
    let lacks = |key: &&Key| !measured(a).any(|first| first.key == **key);
    let keys = measured(b).map(|second| &second.key);
    comparison.only_b = keys.filter(lacks).cloned().collect();
    comparison
}

/// Measurements that were not skipped.
fn measured(results: &Results) -> impl Iterator<Item = &Measurement> {
    results.measurements.iter().filter(|measurement| !measurement.samples.is_empty())
}

fn left_out(first: &Measurement, second: &Measurement) -> Option<LeftOut> {
    Some(LeftOut { key: first.key.clone(), a: first.seconds()?.median, b: second.skipped_seconds? })
}

/// The phases of a measurement, as its first sample has them.
fn phases(measurement: &Measurement) -> &[Phase] {
    measurement.samples.first().map_or(&[], |sample| &sample.phases)
}

/// The names of the phases that only one of the two has.
fn phases_of_one(first: &Measurement, second: &Measurement) -> Vec<String> {
    let lacks = |one: &Measurement, name: &str| !phases(one).iter().any(|phase| phase.name == name);
    let of_first = phases(first).iter().filter(|phase| lacks(second, &phase.name));
    let of_second = phases(second).iter().filter(|phase| lacks(first, &phase.name));
    of_first.chain(of_second).map(|phase| phase.name.clone()).collect()
}

/// The phases that both have and that count, and all together if there are several and both have
/// the same output counts.
fn rows(files: [(&Results, &Measurement); 2], unit: Unit) -> Vec<Row> {
    let [first, second] = files.map(|(_, measurement)| phases(measurement));
    let counts =
        |name: &str| files.iter().any(|(_, measurement)| share(measurement, name) >= LEAST);
    let both = |phase: &&Phase| {
        let same_count = |other: &Phase| {
            other.name == phase.name && (other.outputs == 0) == (phase.outputs == 0)
        };
        second.iter().any(same_count) && counts(&phase.name)
    };
    let of = |phase: &Phase| {
        row(files, unit, &phase.name, |sample| sample.phase(&phase.name).map(seconds_each))
    };
    let mut rows: Vec<_> = first.iter().filter(both).filter_map(of).collect();
    let made = |phases: &[Phase]| phases.iter().map(|phase| phase.outputs).max();
    if first.len().max(second.len()) > 1 && made(first) == made(second) {
        rows.extend(row(files, unit, "all", |sample| Some(sample.seconds())));
    }
    rows
}

/// The part of a run below which a phase is not compared.
const LEAST: f64 = 0.01;

/// The fraction of a run that a phase takes, by medians.
fn share(measurement: &Measurement, name: &str) -> f64 {
    let part = measurement.spread(|sample| {
        let seconds = sample.phase(name)?.seconds;
        Some(seconds / sample.seconds().max(f64::MIN_POSITIVE))
    });
    part.map_or(0.0, |part| part.median)
}

/// Per output, where outputs are counted.
fn seconds_each(phase: &Phase) -> f64 {
    phase.seconds / phase.outputs.max(1) as f64
}

/// The least number of runs for a known spread.
const RUNS: usize = 3;

fn row(
    files: [(&Results, &Measurement); 2],
    unit: Unit,
    phase: &str,
    seconds: impl Fn(&Sample) -> Option<f64>,
) -> Option<Row> {
    let [a, b] = files.map(|(results, measurement)| {
        measurement.spread(|sample| {
            let sitting = results.sittings.get(sample.sitting)?;
            Some(seconds(sample)? / unit.seconds(&sitting.machine))
        })
    });
    let (a, b) = (a?, b?);
    let verdict = match () {
        () if a.count.min(b.count) < RUNS => Verdict::Unknown,
        () if b.most < a.least => Verdict::Faster,
        () if b.least > a.most => Verdict::Slower,
        () => Verdict::Same,
    };
    Some(Row {
        key: files[0].1.key.clone(),
        phase: phase.to_owned(),
        a,
        b,
        ratio: match () {
            () if a.median > 0.0 => b.median / a.median,
            () if b.median > 0.0 => f64::INFINITY,
            () => 1.0,
        },
        verdict,
    })
}

fn traffic(first: &Measurement, second: &Measurement) -> Option<Traffic> {
    let each = |sample: &Sample| {
        let made = sample.phases.iter().map(|phase| phase.outputs).max();
        sample.bytes() as f64 / made.unwrap_or(0).max(1) as f64
    };
    let [a, b] = [first, second].map(|measurement| {
        let spread = measurement.spread(|sample| Some(each(sample)));
        spread.map_or(0.0, |spread| spread.median)
    });
    // Counts: equal ones differ only by rounding.
    ((a - b).abs() > 1e-9 * a.max(b)).then(|| Traffic { key: first.key.clone(), a, b })
}

impl Comparison {
    /// Measurements that are slower by more than the fraction `threshold` (0.1: a tenth) beyond the
    /// spread.
    pub(crate) fn slower(&self, threshold: f64) -> impl Iterator<Item = &Row> {
        self.rows
            .iter()
            .filter(move |row| row.verdict == Verdict::Slower && row.ratio > 1.0 + threshold)
    }

    /// Measurements that send more by more than the fraction `threshold`.
    pub(crate) fn sends_more(&self, threshold: f64) -> impl Iterator<Item = &Traffic> {
        self.traffic.iter().filter(move |traffic| traffic.b > traffic.a * (1.0 + threshold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::BenchmarkSession;

    /// A setup of this many seconds before a stream of this many outputs.
    fn with_setup(name: &str, seconds: f64, outputs: u64) -> Results {
        let mut results = Results::new("test");
        results.sittings.push(BenchmarkSession::example());
        let phase = |name: &str, outputs, seconds| Phase {
            name: name.to_owned(),
            outputs,
            seconds,
            bytes: 9,
            messages: 2,
        };
        let sample = |stream| Sample {
            phases: vec![phase(name, 0, seconds), phase("stream", outputs, stream)],
            ..Sample::default()
        };
        results.measurements.push(Measurement {
            key: Key {
                protocol: "cot".to_owned(),
                n: 1000,
                link: crate::Link::Loopback,
                threads: 1,
            },
            plan: None,
            security_bits: None,
            skipped_seconds: None,
            samples: [1.0, 1.1, 1.2].map(sample).to_vec(),
        });
        results
    }

    fn compared(a: &Results, b: &Results) -> Vec<String> {
        let rows = compare(a, b, Unit::None).rows;
        rows.into_iter().map(|row| row.phase).collect()
    }

    #[test]
    fn all_phases_together_only_of_as_much() {
        let [five, six] = [5, 6].map(|outputs| with_setup("setup", 0.5, outputs));
        assert_eq!(compared(&five, &five), ["setup", "stream", "all"]);
        assert_eq!(compared(&five, &six), ["setup", "stream"]);
    }

    /// A phase shorter than the clock's resolution is not compared.
    #[test]
    fn what_takes_no_time_is_not_compared_until_it_does() {
        let [short, longer] = [80e-9, 0.1].map(|seconds| with_setup("setup", seconds, 5));
        assert_eq!(compared(&short, &short), ["stream", "all"]);
        assert_eq!(compared(&short, &longer), ["setup", "stream", "all"]);
    }
}
