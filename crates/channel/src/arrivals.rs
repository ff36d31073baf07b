//! Arrival times of bytes, from which [`crate::link`] estimates the rate of the link.

use std::time::Duration;

use web_time::Instant;

/// Arrival times of bytes from the transport.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    last: Option<Instant>,
    /// From the first bytes to the last.
    all: Interval,
    /// The longest wait, and the bytes that ended it.
    longest: Interval,
}

/// A duration, and the bytes that arrived in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) time: Duration,
    pub(crate) bytes: usize,
}

impl Arrivals {
    /// Notes that `bytes` bytes arrived at `now`.
    pub(crate) fn note(&mut self, now: Instant, bytes: usize) {
        if let Some(last) = self.last.replace(now) {
            let time = now.saturating_duration_since(last);
            self.all.time += time;
            self.all.bytes += bytes;
            if time >= self.longest.time {
                self.longest = Interval { time, bytes };
            }
        }
    }

    /// The arrivals after the first bytes.
    pub(crate) fn all(&self) -> Interval {
        self.all
    }

    /// The same without the longest wait, in which a busy machine may have been asleep.
    pub(crate) fn without_longest(&self) -> Interval {
        Interval {
            time: self.all.time - self.longest.time,
            bytes: self.all.bytes - self.longest.bytes,
        }
    }
}
