//! How long writes may wait for a peer that reads.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Nanoseconds that the waits of a new connection may take in all, and the most that are saved up.
pub(super) const ALLOWED: i64 = 20_000_000;

/// Bytes that allow a nanosecond more. Over a connection that carries more it costs nothing to wait: there a copy in the queue and a
/// change of threads take longer. Over a slower one this is the part of the time in which a party waits that could compute.
const BYTES_A_NANOSECOND: i64 = 1;

/// How many times a wait counts in which the peer read nothing. That one is asleep on a busy machine happens now and then; that it sends
/// first itself may happen each time.
const IN_VAIN: i64 = 16;

/// No more than this is charged for one wait: this machine may have slept in it.
const LONGEST: Duration = Duration::from_millis(20);

/// Nanoseconds that the writes of a connection may still wait, at most [`ALLOWED`]; none may while it is not above zero.
pub(super) struct Allowance(AtomicI64);

impl Default for Allowance {
    fn default() -> Self {
        Self(AtomicI64::new(ALLOWED))
    }
}

impl Allowance {
    /// What a write of so many bytes allows is saved up; says whether it may wait.
    pub(super) fn earn(&self, bytes: usize) -> bool {
        let earned = i64::try_from(bytes).unwrap_or(i64::MAX) / BYTES_A_NANOSECOND;
        let left = self.0.load(Ordering::Relaxed);
        let left = left.saturating_add(earned).min(ALLOWED);
        self.0.store(left, Ordering::Relaxed);
        left > 0
    }

    /// A wait is over.
    pub(super) fn charge(&self, waited: Duration, in_vain: bool) {
        let waited = waited.min(LONGEST).as_nanos() as i64;
        let times = if in_vain { IN_VAIN } else { 1 };
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
