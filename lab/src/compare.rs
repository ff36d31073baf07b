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

/// The unit in which times are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// As measured.
    #[default]
    Seconds,
    /// In AES blocks of the same session.
    AesBlocks,
    /// In random reads of the same session.
    RandomReads,
    /// In copied bytes of the same session.
    CopiedBytes,
    /// In OT hashes of the same session.
    OtHashes,
}

impl Unit {
    /// Seconds of one unit.
    fn seconds(self, machine: &Machine) -> f64 {
        1e-9 * match self {
            Self::Seconds => 1e9,
            Self::AesBlocks => machine.nanoseconds_aes_block,
            Self::RandomReads => machine.nanoseconds_random_read,
            Self::CopiedBytes => machine.nanoseconds_copied_byte,
            Self::OtHashes => machine.nanoseconds_ot_hash,
        }
    }
}

/// The comparison of two times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
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
pub struct Row {
    /// The measurement.
    pub key: Key,
    /// Its name; `all` for all phases together.
    pub phase: String,
    /// In the first file: in units, per output where outputs are counted.
    pub a: Spread,
    /// In the second file.
    pub b: Spread,
    /// The second's median over the first's.
    pub ratio: f64,
    /// The result of the comparison.
    pub verdict: Verdict,
}

/// A measurement whose bytes differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The measurement.
    pub key: Key,
    /// Bytes in both directions, median over the runs of the first file; per output where outputs
    /// are counted.
    pub a: f64,
    /// Of the second file.
    pub b: f64,
}

/// A measurement that the second file left out because a run would have taken too long.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// The measurement.
    pub key: Key,
    /// A run in the first file, in seconds.
    pub a: f64,
    /// Predicted seconds of a run in the second file.
    pub b: f64,
}

/// The comparison of two files of results.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// All phases of all measurements that are in both files, in the order of the first.
    pub rows: Vec<Row>,
    /// Measurements whose traffic differs.
    pub traffic: Vec<Traffic>,
    /// Measurements that the second file left out as too slow.
    pub left_out: Vec<LeftOut>,
    /// Measurements whose parameters differ: they are compared, but may not be equivalent.
    pub other_parameters: Vec<Key>,
    /// Phases that only one file has, of measurements that both have.
    pub other_phases: Vec<(Key, String)>,
    /// Measurements that the second file lacks.
    pub only_a: Vec<Key>,
    /// Measurements that the first file lacks.
    pub only_b: Vec<Key>,
}

/// Compares two files of results.
#[must_use]
pub fn compare(a: &Results, b: &Results, unit: Unit) -> Comparison {
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
    results
        .measurements
        .iter()
        .filter(|measurement| !measurement.samples.is_empty())
}

fn left_out(first: &Measurement, second: &Measurement) -> Option<LeftOut> {
    Some(LeftOut {
        key: first.key.clone(),
        a: first.seconds()?.median,
        b: second.skipped_seconds?,
    })
}

/// The phases of a measurement, as its first sample has them.
fn phases(measurement: &Measurement) -> &[Phase] {
    measurement
        .samples
        .first()
        .map_or(&[], |sample| &sample.phases)
}

/// The names of the phases that only one of the two has.
fn phases_of_one(first: &Measurement, second: &Measurement) -> Vec<String> {
    let lacks = |one: &Measurement, name: &str| !phases(one).iter().any(|phase| phase.name == name);
    let of_first = phases(first)
        .iter()
        .filter(|phase| lacks(second, &phase.name));
    let of_second = phases(second)
        .iter()
        .filter(|phase| lacks(first, &phase.name));
    of_first
        .chain(of_second)
        .map(|phase| phase.name.clone())
        .collect()
}

/// The phases that both have and that count, and all together if there are several and both have
/// the same output counts.
fn rows(files: [(&Results, &Measurement); 2], unit: Unit) -> Vec<Row> {
    let [first, second] = files.map(|(_, measurement)| phases(measurement));
    let counts = |name: &str| {
        files
            .iter()
            .any(|(_, measurement)| share(measurement, name) >= LEAST)
    };
    let both = |phase: &&Phase| {
        let same_count = |other: &Phase| {
            other.name == phase.name && (other.outputs == 0) == (phase.outputs == 0)
        };
        second.iter().any(same_count) && counts(&phase.name)
    };
    let of = |phase: &Phase| {
        row(files, unit, &phase.name, |sample| {
            sample.phase(&phase.name).map(seconds_each)
        })
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
    ((a - b).abs() > 1e-9 * a.max(b)).then(|| Traffic {
        key: first.key.clone(),
        a,
        b,
    })
}

impl Comparison {
    /// Measurements that are slower by more than the fraction `threshold` (0.1: a tenth) beyond the
    /// spread.
    pub fn slower(&self, threshold: f64) -> impl Iterator<Item = &Row> {
        self.rows
            .iter()
            .filter(move |row| row.verdict == Verdict::Slower && row.ratio > 1.0 + threshold)
    }

    /// Measurements that are faster by more than the fraction `threshold` beyond the spread: for a
    /// tenth, times of 1/1.1.
    pub fn faster(&self, threshold: f64) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| {
            row.verdict == Verdict::Faster && row.ratio * (1.0 + threshold) < 1.0
        })
    }

    /// Measurements that send more by more than the fraction `threshold`.
    pub fn sends_more(&self, threshold: f64) -> impl Iterator<Item = &Traffic> {
        self.traffic
            .iter()
            .filter(move |traffic| traffic.b > traffic.a * (1.0 + threshold))
    }

    /// The number of rows in which a file has fewer than three runs.
    #[must_use]
    pub fn unknown(&self) -> usize {
        let unknown = |row: &&Row| row.verdict == Verdict::Unknown;
        self.rows.iter().filter(unknown).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::BenchmarkSession;

    fn key(protocol: &str) -> Key {
        Key {
            protocol: protocol.to_owned(),
            n: 1000,
            link: crate::Link::Loopback,
            threads: 1,
        }
    }

    /// Measurements of one phase with these times, on a machine with this many nanoseconds per AES
    /// block.
    fn results(aes: f64, measurements: &[(&str, u64, &[f64])]) -> Results {
        let mut results = Results::new("test");
        let mut sitting = BenchmarkSession::example();
        sitting.machine.nanoseconds_aes_block = aes;
        results.sittings.push(sitting);
        for (protocol, bytes, seconds) in measurements {
            let sample = |seconds: &f64| Sample {
                phases: vec![Phase {
                    name: "stream".to_owned(),
                    outputs: 1000,
                    seconds: *seconds,
                    bytes: *bytes,
                    messages: 2,
                }],
                ..Sample::default()
            };
            results.measurements.push(Measurement {
                key: key(protocol),
                plan: None,
                security_bits: None,
                skipped_seconds: None,
                samples: seconds.iter().map(sample).collect(),
            });
        }
        results
    }

    #[test]
    fn beyond_the_spread_only() {
        let a = results(
            1.0,
            &[
                ("slower", 9, &[1.0, 1.1, 1.2]),
                ("faster", 9, &[1.0, 1.1, 1.2]),
                ("touching", 9, &[1.0, 1.1, 3.0]),
                ("once", 9, &[1.0, 1.1, 1.2]),
                ("a", 9, &[1.0]),
                ("left out", 9, &[1.0]),
                ("skipped", 9, &[]),
            ],
        );
        let b = results(
            1.0,
            &[
                ("slower", 9, &[1.3, 1.21, 1.4]),
                ("faster", 9, &[0.5, 0.6, 0.99]),
                ("touching", 9, &[2.0, 2.1, 2.2]),
                ("once", 9, &[7.0, 7.1]),
                ("b", 9, &[1.0]),
                ("skipped", 9, &[1.0]),
            ],
        );
        let mut b = b;
        b.measurements.push(Measurement {
            key: key("left out"),
            plan: None,
            security_bits: None,
            skipped_seconds: Some(40.0),
            samples: Vec::new(),
        });
        let comparison = compare(&a, &b, Unit::Seconds);
        let verdicts: Vec<_> = comparison.rows.iter().map(|row| row.verdict).collect();
        use Verdict::{Faster, Same, Slower, Unknown};
        assert_eq!(verdicts, [Slower, Faster, Same, Unknown]);
        assert_eq!(comparison.unknown(), 1);
        let slower: Vec<_> = comparison.slower(0.1).collect();
        assert_eq!(slower.len(), 1);
        assert!((slower[0].ratio - 1.3 / 1.1).abs() < 1e-9);
        assert!((slower[0].a.median - 1.1e-3).abs() < 1e-9, "for one output");
        assert_eq!(comparison.slower(0.2).count(), 0);
        assert_eq!(comparison.faster(0.5).count(), 1);
        assert_eq!(comparison.faster(1.0).count(), 0);
        assert_eq!(
            comparison.left_out,
            [LeftOut {
                key: key("left out"),
                a: 1.0,
                b: 40.0
            }]
        );
        assert_eq!(comparison.only_a, [key("a")]);
        assert_eq!(comparison.only_b, [key("b"), key("skipped")]);
        assert!(comparison.traffic.is_empty());
    }

    #[test]
    fn two_machines_in_units_of_what_each_can_do() {
        let a = results(1.0, &[("cot", 9, &[1.0, 1.1, 1.05])]);
        let b = results(3.0, &[("cot", 9, &[3.0, 3.2, 3.1])]);
        let verdict = |unit| compare(&a, &b, unit).rows[0].verdict;
        assert_eq!(verdict(Unit::Seconds), Verdict::Slower);
        assert_eq!(verdict(Unit::AesBlocks), Verdict::Same);
    }

    #[test]
    fn more_bytes_are_told() {
        let a = results(1.0, &[("cot", 1000, &[1.0]), ("vole", 1000, &[1.0])]);
        let b = results(1.0, &[("cot", 1000, &[1.0]), ("vole", 1200, &[1.0])]);
        let comparison = compare(&a, &b, Unit::Seconds);
        let keys: Vec<_> = comparison
            .traffic
            .iter()
            .map(|traffic| &traffic.key)
            .collect();
        assert_eq!(keys, [&key("vole")]);
        assert_eq!(comparison.sends_more(0.1).count(), 1);
        assert_eq!(comparison.sends_more(0.3).count(), 0);
        assert_eq!(compare(&b, &a, Unit::Seconds).sends_more(0.1).count(), 0);
    }

    /// A setup of this many seconds before the stream, which makes this many outputs.
    fn with_setup(name: &str, seconds: f64, outputs: u64) -> Results {
        let mut results = results(1.0, &[("cot", 9, &[1.0, 1.1, 1.2])]);
        for sample in &mut results.measurements[0].samples {
            let mut setup = sample.phases[0].clone();
            setup.name = name.to_owned();
            (setup.outputs, setup.seconds) = (0, seconds);
            sample.phases[0].outputs = outputs;
            sample.phases.insert(0, setup);
        }
        results
    }

    fn compared(a: &Results, b: &Results) -> Vec<String> {
        let rows = compare(a, b, Unit::Seconds).rows;
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

    #[test]
    fn other_phases_and_other_parameters_are_told() {
        let (a, mut b) = (with_setup("setup", 0.5, 5), with_setup("offline", 0.5, 5));
        b.measurements[0].security_bits = Some(80);
        assert_eq!(compared(&a, &b), ["stream", "all"]);
        let comparison = compare(&a, &b, Unit::Seconds);
        let named = |name: &str| (key("cot"), name.to_owned());
        assert_eq!(comparison.other_phases, [named("setup"), named("offline")]);
        assert_eq!(comparison.other_parameters, [key("cot")]);
        assert!(compare(&a, &a, Unit::Seconds).other_parameters.is_empty());
    }
}
