//! When bytes came, for [`crate::pace`] to tell how fast they can come.

use std::time::{Duration, Instant};

/// When bytes came from the transport.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    last: Option<Instant>,
    /// From the first bytes to the last.
    all: Stretch,
    /// The longest wait, and what it ended with.
    longest: Stretch,
}

/// Some time, and the bytes that came in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) time: Duration,
    pub(crate) bytes: usize,
}

impl Arrivals {
    /// `bytes` came at `now`.
    pub(crate) fn note(&mut self, now: Instant, bytes: usize) {
        if let Some(last) = self.last.replace(now) {
            let time = now.saturating_duration_since(last);
            self.all.time += time;
            self.all.bytes += bytes;
            if time >= self.longest.time {
                self.longest = Stretch { time, bytes };
            }
        }
    }

    /// What came after the first bytes.
    pub(crate) fn all(&self) -> Stretch {
        self.all
    }

    /// The same without the longest wait: a busy machine may have been asleep in it.
    pub(crate) fn but_for_the_longest(&self) -> Stretch {
        Stretch {
            time: self.all.time - self.longest.time,
            bytes: self.all.bytes - self.longest.bytes,
        }
    }
}
