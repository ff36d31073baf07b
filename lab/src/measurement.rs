//! A measurement: a key, samples of several phases, and the median and range of a quantity over
//! them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Link;
use crate::parties::Mark;

/// The identity of a measurement. Two measurements with the same key can be compared if their
/// parameters are the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Key {
    /// The protocol and its variant as one word: `vole-fp61-malicious`, `pssz-32`.
    pub(crate) protocol: String,
    /// Correlations, or items of each party.
    pub(crate) n: u64,
    /// The link between the parties.
    pub(crate) link: Link,
    /// Threads of each party.
    pub(crate) threads: usize,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, n, link, threads } = self;
        let plural = if *threads == 1 { "" } else { "s" };
        write!(f, "{protocol}, n = {n}, {link}, {threads} thread{plural} a party")
    }
}

/// A part of a run, of both parties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Phase {
    /// `setup`, `offline`, `online`, `stream`, ...
    pub(crate) name: String,
    /// The number of outputs; zero where outputs are not counted.
    pub(crate) outputs: u64,
    /// Time of the slower party.
    pub(crate) seconds: f64,
    /// Both directions.
    pub(crate) bytes: u64,
    /// Both directions: a message is all bytes sent one way before the next bytes the other way.
    pub(crate) messages: u64,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// The number of its session in [`crate::results::Results::sittings`]; set by the runner.
    pub(crate) sitting: usize,
    /// The phases in order.
    pub(crate) phases: Vec<Phase>,
    /// Time of the whole run, including preparation and checks outside the phases; set by the
    /// runner.
    pub(crate) wall_seconds: f64,
    /// The peak memory of the process with both parties during the run, in bytes, where the system
    /// reports it, including memory that its allocator kept from earlier runs; set by the runner.
    pub(crate) peak_bytes: Option<u64>,
}

impl Sample {
    /// From the stopwatches of both parties: a phase lasts from the moment the slower party ended
    /// the previous phase until the slower party, possibly the other, ends this one. So the phases
    /// add up to the time of the slower party.
    pub(crate) fn of([left, right]: [Vec<Mark>; 2]) -> Self {
        assert_eq!(left.len(), right.len(), "both parties mark the same phases");
        let mut phases: Vec<Phase> = Vec::new();
        let (mut seconds, mut bytes, mut messages) = (0.0, 0, 0);
        for (left, right) in left.into_iter().zip(right) {
            assert_eq!(left.name, right.name, "both parties mark the same phases");
            let so_far = left.elapsed.max(right.elapsed).as_secs_f64();
            let bytes_so_far = left.traffic.bytes_sent + right.traffic.bytes_sent;
            let messages_so_far = left.traffic.messages_sent + right.traffic.messages_sent;
            phases.push(Phase {
                name: left.name.to_owned(),
                outputs: left.outputs.max(right.outputs),
                seconds: so_far - seconds,
                bytes: bytes_so_far - bytes,
                messages: messages_so_far - messages,
            });
            (seconds, bytes, messages) = (so_far, bytes_so_far, messages_so_far);
        }
        Self { phases, ..Self::default() }
    }

    /// A phase by its name.
    pub(crate) fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// Of all phases.
    pub(crate) fn seconds(&self) -> f64 {
        self.phases.iter().map(|phase| phase.seconds).sum()
    }

    /// Of all phases, both directions.
    pub(crate) fn bytes(&self) -> u64 {
        let add = |sum: u64, phase: &Phase| sum.saturating_add(phase.bytes);
        self.phases.iter().fold(0, add)
    }

    /// Of all phases, both directions.
    pub(crate) fn messages(&self) -> u64 {
        let add = |sum: u64, phase: &Phase| sum.saturating_add(phase.messages);
        self.phases.iter().fold(0, add)
    }
}

/// All runs of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measurement {
    /// The key.
    pub(crate) key: Key,
    /// The parameters, in words; `None` if there are none.
    pub(crate) plan: Option<String>,
    /// The security that these parameters claim, in bits.
    pub(crate) security_bits: Option<u32>,
    /// Set if the cell was skipped because a run would take about this many seconds.
    pub(crate) skipped_seconds: Option<f64>,
    /// In the order in which they were taken.
    pub(crate) samples: Vec<Sample>,
}

impl Measurement {
    /// The median and range of a quantity over the samples that have it; `None` if no sample has
    /// it.
    pub(crate) fn spread(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.samples.iter().filter_map(of).collect())
    }

    /// The median time of a whole run, including the time outside the phases.
    pub(crate) fn wall_seconds(&self) -> Option<f64> {
        let spread = self.spread(|sample| Some(sample.wall_seconds.max(sample.seconds())))?;
        Some(spread.median)
    }

    /// The median and range of the time of all phases, in seconds.
    pub(crate) fn seconds(&self) -> Option<Spread> {
        self.spread(|sample| Some(sample.seconds()))
    }
}

/// The median of several values, and their range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    /// The mean of the two middle values if their number is even.
    pub(crate) median: f64,
    /// The least.
    pub(crate) least: f64,
    /// The greatest.
    pub(crate) most: f64,
    /// The number of values.
    pub(crate) count: usize,
}

impl Spread {
    /// The spread of several values; `None` for no values.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most, count) = (*values.first()?, *values.last()?, values.len());
        let half = count / 2;
        let median = if count % 2 == 1 {
            values[half]
        } else {
            f64::midpoint(values[half - 1], values[half])
        };
        Some(Self { median, least, most, count })
    }

    /// A single value that is known without measuring.
    pub(crate) const fn exactly(value: f64) -> Self {
        Self { median: value, least: value, most: value, count: 1 }
    }
}

/// A quantity of one run, above zero: measured, or the difference of two measured quantities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Term {
    /// The measured quantity.
    pub(crate) whole: f64,
    /// The subtracted quantity; zero where the quantity itself was measured.
    pub(crate) less: f64,
}

impl Term {
    /// The quantity itself was measured.
    pub(crate) const fn measured(value: f64) -> Self {
        Self { whole: value, less: 0.0 }
    }

    /// In another unit.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { whole: self.whole * factor, less: self.less * factor }
    }
}

/// The result of several runs for a quantity that may be a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Difference {
    /// It is above zero in each run.
    Value(Spread),
    /// In at least one run, the subtracted quantity hides it.
    Below {
        /// Above zero, at most: the largest difference of the two terms, or the difference between
        /// their runs if that is larger; for a single run, the whole.
        bound: f64,
        /// The number of runs.
        count: usize,
    },
}

impl Difference {
    /// From one quantity per run; `None` for no runs.
    pub(crate) fn of(terms: &[Term]) -> Option<Self> {
        let over = |of: fn(&Term) -> f64| Spread::of(terms.iter().map(of).collect());
        let difference = over(|term| term.whole - term.less)?;
        if difference.least > 0.0 {
            return Some(Self::Value(difference));
        }
        let (whole, less) = (over(|term| term.whole)?, over(|term| term.less)?);
        let runs_differ = (whole.most - whole.least) + (less.most - less.least);
        let bound = runs_differ.max(whole.most - less.least).min(whole.most);
        let count = difference.count;
        Some(Self::Below {
            bound: if count > 1 && bound > 0.0 { bound } else { whole.most },
            count,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use volery_channel::Stats;

    use super::*;

    fn mark(name: &'static str, milliseconds: u64, bytes: u64) -> Mark {
        Mark {
            name,
            outputs: 0,
            elapsed: Duration::from_millis(milliseconds),
            traffic: Stats { bytes_sent: bytes, messages_sent: 1, ..Stats::default() },
        }
    }

    #[test]
    fn phases_add_up_to_the_slower_partys_time() {
        let left = vec![mark("setup", 10, 5), mark("stream", 90, 6)];
        let right = vec![mark("setup", 30, 0), mark("stream", 80, 100)];
        let sample = Sample::of([left, right]);
        let phase = |name| sample.phase(name).expect("both parties marked the phase");
        assert!((phase("setup").seconds - 0.03).abs() < 1e-12);
        assert!((phase("stream").seconds - 0.06).abs() < 1e-12);
        assert!((sample.seconds() - 0.09).abs() < 1e-12);
        assert_eq!((phase("setup").bytes, phase("stream").bytes), (5, 101));
        assert_eq!((sample.bytes(), sample.messages()), (106, 2));
        assert!(sample.phase("online").is_none());
    }

    #[test]
    fn medians() {
        assert!(Spread::of(Vec::new()).is_none());
        for (values, median, count) in
            [(vec![2.0], 2.0, 1), (vec![4.0, 1.0], 2.5, 2), (vec![9.0, 1.0, 3.0], 3.0, 3)]
        {
            let spread = Spread::of(values).expect("the list of values is not empty");
            assert!((spread.median - median).abs() < 1e-12);
            assert_eq!(spread.count, count);
            assert!(spread.least <= spread.median && spread.median <= spread.most);
        }
    }

    fn terms(pairs: &[[f64; 2]]) -> Vec<Term> {
        let term = |&[whole, less]: &[f64; 2]| Term { whole, less };
        pairs.iter().map(term).collect()
    }

    #[test]
    fn a_difference_is_told_where_each_run_shows_it() {
        assert_eq!(Difference::of(&[]), None);
        let told = Difference::of(&terms(&[[5.0, 2.0], [6.0, 2.0], [9.0, 4.0]]));
        let spread = Spread::of(vec![3.0, 4.0, 5.0]).expect("the list of values is not empty");
        assert_eq!(told, Some(Difference::Value(spread)));
        let measured = Difference::of(&[Term::measured(3.0).times(2.0)]);
        assert_eq!(measured, Some(Difference::Value(Spread::exactly(6.0))));
    }

    /// The bound is above zero, whatever was measured, and never above the whole.
    #[test]
    fn a_difference_that_is_lost_has_a_bound() {
        for (pairs, expected) in [
            // One run gives no estimate of its error.
            (&[[5.0, 6.0]][..], 5.0),
            (&[[5.0, 5.0]], 5.0),
            // The greatest whole minus the least subtracted quantity.
            (&[[5.0, 4.0], [6.0, 7.0]], 4.0),
            // The runs differ by 0.1 and 0.5, the terms by less than zero.
            (&[[5.0, 6.0], [5.1, 6.5]], 0.6),
            // Not more than the whole.
            (&[[1.0, 0.0], [2.0, 9.0]], 2.0),
            // All alike.
            (&[[2.0, 3.0], [2.0, 3.0]], 2.0),
        ] {
            let told = Difference::of(&terms(pairs));
            let Some(Difference::Below { bound, count }) = told else {
                panic!("{pairs:?}: {told:?}");
            };
            assert!((bound - expected).abs() < 1e-9, "{pairs:?}: {bound}");
            assert_eq!(count, pairs.len());
            let most = pairs.iter().map(|[whole, less]| whole - less);
            assert!(most.fold(0.0, f64::max) <= bound);
        }
    }
}
