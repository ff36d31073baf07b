//! What got faster or slower between two files of results.
//!
//! A phase is compared by its time for one output. It got faster or slower *beyond the spread* if the ranges of the two files do not
//! touch: with five runs each, equal programs do that once in 126 times. Figures of two machines are compared in units of
//! what each could do in the same sitting ([`Unit`]).

use crate::machine::Machine;
use crate::measurement::{Key, Measurement, Phase, Sample, Spread};
use crate::results::Results;

/// In what times are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// As measured.
    #[default]
    Seconds,
    /// In AES blocks of the same sitting.
    AesBlocks,
    /// In random reads of the same sitting.
    RandomReads,
    /// In copied bytes of the same sitting.
    CopiedBytes,
    /// In hashes of an OT of the same sitting.
    OtHashes,
}

impl Unit {
    /// Seconds of one.
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

/// What became of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Each run takes less than all were.
    Faster,
    /// Each run takes more than all were.
    Slower,
    /// The ranges touch.
    Same,
    /// A file has one run only: nobody knows its spread.
    Unknown,
}

/// A phase of a measurement that is in both files.
#[derive(Clone, Debug)]
pub struct Row {
    /// Of what.
    pub key: Key,
    /// Its name; `all` for all phases together.
    pub phase: String,
    /// In the first file: in units, for one output where outputs are counted.
    pub a: Spread,
    /// In the second file.
    pub b: Spread,
    /// The second's median over the first's.
    pub ratio: f64,
    /// What became of it.
    pub verdict: Verdict,
}

/// A measurement of which the bytes are others.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Of what.
    pub key: Key,
    /// Bytes both ways, median over the runs of the first file; for one output where outputs are counted.
    pub a: f64,
    /// Of the second file.
    pub b: f64,
}

/// Two files of results, side by side.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// All phases of all measurements that are in both files, in the order of the first.
    pub rows: Vec<Row>,
    /// Those that do not send the same, to a hundredth.
    pub traffic: Vec<Traffic>,
    /// Measurements that the second file lacks.
    pub only_a: Vec<Key>,
    /// Measurements that the first file lacks.
    pub only_b: Vec<Key>,
}

/// Puts two files of results side by side.
#[must_use]
pub fn compare(a: &Results, b: &Results, unit: Unit) -> Comparison {
    let mut comparison = Comparison::default();
    for first in measured(a) {
        let Some(second) = measured(b).find(|second| second.key == first.key) else {
            comparison.only_a.push(first.key.clone());
            continue;
        };
        let files = [(a, first), (b, second)];
        comparison.rows.extend(rows(files, unit));
        comparison.traffic.extend(traffic(first, second));
    }
    let lacks = |key: &&Key| !measured(a).any(|first| first.key == **key);
    let keys = measured(b).map(|second| &second.key);
    comparison.only_b = keys.filter(lacks).cloned().collect();
    comparison
}

/// What was not skipped.
fn measured(results: &Results) -> impl Iterator<Item = &Measurement> {
    results
        .measurements
        .iter()
        .filter(|measurement| !measurement.samples.is_empty())
}

/// The phases that both have, and all together if there are several and both made as much.
fn rows(files: [(&Results, &Measurement); 2], unit: Unit) -> Vec<Row> {
    let [first, second] = files.map(|(_, measurement)| &measurement.samples[0].phases);
    let mut rows: Vec<_> = first
        .iter()
        .filter_map(|phase| {
            row(files, unit, &phase.name, |sample| {
                sample.phase(&phase.name).map(seconds_each)
            })
        })
        .collect();
    let made = |phases: &[Phase]| phases.iter().map(|phase| phase.outputs).collect::<Vec<_>>();
    if first.len() > 1 && made(first) == made(second) {
        rows.extend(row(files, unit, "all", |sample| Some(sample.seconds())));
    }
    rows
}

/// Of one output, where outputs are counted.
fn seconds_each(phase: &Phase) -> f64 {
    phase.seconds / phase.outputs.max(1) as f64
}

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
        () if a.count < 2 || b.count < 2 => Verdict::Unknown,
        () if b.most < a.least => Verdict::Faster,
        () if b.least > a.most => Verdict::Slower,
        () => Verdict::Same,
    };
    Some(Row {
        key: files[0].1.key.clone(),
        phase: phase.to_owned(),
        a,
        b,
        ratio: if a.median > 0.0 {
            b.median / a.median
        } else {
            1.0
        },
        verdict,
    })
}

fn traffic(first: &Measurement, second: &Measurement) -> Option<Traffic> {
    let each = |sample: &Sample| {
        let made: u64 = sample.phases.iter().map(|phase| phase.outputs).sum();
        sample.bytes() as f64 / made.max(1) as f64
    };
    let [a, b] = [first, second].map(|measurement| {
        let spread = measurement.spread(|sample| Some(each(sample)));
        spread.map_or(0.0, |spread| spread.median)
    });
    ((a - b).abs() > 0.01 * a.max(b)).then(|| Traffic {
        key: first.key.clone(),
        a,
        b,
    })
}

impl Comparison {
    /// What got slower by more than a part `threshold` (0.1: a tenth) beyond the spread.
    pub fn slower(&self, threshold: f64) -> impl Iterator<Item = &Row> {
        self.rows
            .iter()
            .filter(move |row| row.verdict == Verdict::Slower && row.ratio > 1.0 + threshold)
    }

    /// What got faster by more than a part `threshold` beyond the spread: the times of a tenth are 1/1.1.
    pub fn faster(&self, threshold: f64) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| {
            row.verdict == Verdict::Faster && row.ratio * (1.0 + threshold) < 1.0
        })
    }

    /// What sends more by more than a part `threshold`.
    pub fn sends_more(&self, threshold: f64) -> impl Iterator<Item = &Traffic> {
        self.traffic
            .iter()
            .filter(move |traffic| traffic.b > traffic.a * (1.0 + threshold))
    }

    /// How many rows have a file with one run only.
    #[must_use]
    pub fn unknown(&self) -> usize {
        let unknown = |row: &&Row| row.verdict == Verdict::Unknown;
        self.rows.iter().filter(unknown).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Sitting;

    fn key(protocol: &str) -> Key {
        Key {
            protocol: protocol.to_owned(),
            n: 1000,
            link: crate::Link::Loopback,
            threads: 1,
        }
    }

    /// Measurements of one phase with these times, on a machine with an AES block in so many nanoseconds.
    fn results(aes: f64, measurements: &[(&str, u64, &[f64])]) -> Results {
        let mut results = Results::new("test");
        let mut sitting = Sitting::begin("test", 1);
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
                ("once", 9, &[1.0, 1.1]),
                ("a", 9, &[1.0]),
                ("skipped", 9, &[]),
            ],
        );
        let b = results(
            1.0,
            &[
                ("slower", 9, &[1.3, 1.21, 1.4]),
                ("faster", 9, &[0.5, 0.6, 0.99]),
                ("touching", 9, &[2.0, 2.1, 2.2]),
                ("once", 9, &[7.0]),
                ("b", 9, &[1.0]),
                ("skipped", 9, &[1.0]),
            ],
        );
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
        assert_eq!(comparison.only_a, [key("a")]);
        assert_eq!(comparison.only_b, [key("b"), key("skipped")]);
        assert!(comparison.traffic.is_empty());
    }

    #[test]
    fn two_machines_in_units_of_what_each_can_do() {
        let a = results(1.0, &[("cot", 9, &[1.0, 1.1])]);
        let b = results(3.0, &[("cot", 9, &[3.0, 3.2])]);
        let verdict = |unit| compare(&a, &b, unit).rows[0].verdict;
        assert_eq!(verdict(Unit::Seconds), Verdict::Slower);
        assert_eq!(verdict(Unit::AesBlocks), Verdict::Same);
    }

    #[test]
    fn more_bytes_are_told() {
        let a = results(1.0, &[("cot", 1000, &[1.0]), ("vole", 1000, &[1.0])]);
        let b = results(1.0, &[("cot", 1005, &[1.0]), ("vole", 1200, &[1.0])]);
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

    #[test]
    fn all_phases_together_only_of_as_much() {
        let two = |outputs| {
            let mut results = results(1.0, &[("cot", 9, &[1.0, 2.0])]);
            for sample in &mut results.measurements[0].samples {
                let mut setup = sample.phases[0].clone();
                setup.name = "setup".to_owned();
                setup.outputs = 0;
                sample.phases[0].outputs = outputs;
                sample.phases.insert(0, setup);
            }
            results
        };
        let phases = |a, b| {
            let rows = compare(&two(a), &two(b), Unit::Seconds).rows;
            rows.into_iter().map(|row| row.phase).collect::<Vec<_>>()
        };
        assert_eq!(phases(5, 5), ["setup", "stream", "all"]);
        assert_eq!(phases(5, 6), ["setup", "stream"]);
    }
}
