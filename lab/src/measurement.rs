//! A measurement: a key, and samples of several phases.

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
    pub(crate) link: Link,
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

/// The last run.
impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: run {}:", self.key, self.samples.len())?;
        let Some(sample) = self.samples.last() else { return Ok(()) };
        for phase in &sample.phases {
            write!(f, " {} {:.3} s,", phase.name, phase.seconds)?;
        }
        write!(f, " {} bytes, {} messages", sample.bytes(), sample.messages())
    }
}

impl Measurement {
    /// The median time of a whole run, including the time outside the phases.
    pub(crate) fn wall_seconds(&self) -> Option<f64> {
        let seconds = self.samples.iter().map(|one| one.wall_seconds.max(one.seconds()));
        median(seconds.collect())
    }
}

/// The median of several values, of an even number the mean of the two middle ones; `None` for no
/// values.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(f64::midpoint(values[last / 2], values[values.len() / 2]))
}

#[cfg(test)]
impl Phase {
    pub(crate) fn example(name: &str, outputs: u64, seconds: f64, bytes: u64) -> Self {
        Self { name: name.to_owned(), outputs, seconds, bytes, messages: 1 }
    }
}

#[cfg(test)]
impl Key {
    pub(crate) fn example(protocol: &str, n: u64) -> Self {
        Self { protocol: protocol.to_owned(), n, link: Link::Loopback, threads: 1 }
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
        assert_eq!(median(Vec::new()), None);
        for (values, expected) in
            [(vec![2.0], 2.0), (vec![4.0, 1.0], 2.5), (vec![9.0, 1.0, 3.0], 3.0)]
        {
            assert_eq!(median(values), Some(expected));
        }
    }
}
