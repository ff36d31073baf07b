//! The time budget that writes may spend waiting for a peer that reads.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Nanoseconds of waiting granted to a new connection, and the maximum budget.
pub(super) const ALLOWED: i64 = 20_000_000;

/// Bytes that grant one more nanosecond. On a connection that is faster than this, waiting costs
/// nothing: a copy in the queue and a thread switch take longer. On a slower one, waiting takes
/// this part of the time in which the party could compute.
const BYTES_A_NANOSECOND: i64 = 1;

/// The factor by which a wait counts in which the peer read nothing. A peer that sleeps on a busy
/// machine is rare; a peer that sends first itself may cause it each time.
const UNREAD_FACTOR: i64 = 16;

/// Maximum charge for one wait: this machine may have slept in it.
const LONGEST: Duration = Duration::from_millis(20);

/// Nanoseconds that the writes of a connection may still wait, at most [`ALLOWED`]; writes wait
/// only while it is above zero.
pub(super) struct Allowance(AtomicI64);

impl Default for Allowance {
    fn default() -> Self {
        Self(AtomicI64::new(ALLOWED))
    }
}

impl Allowance {
    /// Adds the grant for a write of `bytes` bytes; returns whether the write may wait.
    pub(super) fn earn(&self, bytes: usize) -> bool {
        let earned = i64::try_from(bytes).unwrap_or(i64::MAX) / BYTES_A_NANOSECOND;
        let left = self.0.load(Ordering::Relaxed);
        let left = left.saturating_add(earned).min(ALLOWED);
        self.0.store(left, Ordering::Relaxed);
        left > 0
    }

    /// Charges a finished wait.
    pub(super) fn charge(&self, waited: Duration, unread: bool) {
        let waited = waited.min(LONGEST).as_nanos() as i64;
        let times = if unread { UNREAD_FACTOR } else { 1 };
        self.0.fetch_sub(times * waited, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Allowance {
        pub(in super::super) fn left(&self) -> i64 {
            self.0.load(Ordering::Relaxed)
        }

        pub(in super::super) fn set(&self, left: i64) {
            self.0.store(left, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_is_written_allows_waits_again() {
        let allowance = Allowance::default();
        assert!(allowance.earn(1 << 30));
        assert_eq!(allowance.left(), ALLOWED);
        allowance.charge(Duration::from_millis(3), false);
        assert_eq!(allowance.left(), ALLOWED - 3_000_000);
        allowance.charge(Duration::from_millis(2), true);
        assert_eq!(allowance.left(), -15_000_000);
        assert!(!allowance.earn(15_000_000));
        assert!(allowance.earn(1));
        allowance.charge(Duration::from_secs(3600), true);
        assert_eq!(allowance.left(), 1 - 320_000_000);
    }
}
