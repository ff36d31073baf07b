//! The clock.

use std::ops::{Add, AddAssign, Sub};
use std::sync::LazyLock;
pub use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::world::me;

type System = std::time::Instant;

/// Where the clock of every world begins, on the clock of the system.
static START: LazyLock<System> = LazyLock::new(System::now);

/// The time of day at which every world begins.
const MORNING: Duration = Duration::from_secs(1_795_000_000);

/// A time of the system's clock, or of the world's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(System);

/// As the standard library's.
#[allow(missing_docs, reason = "they are the standard library's")]
impl Instant {
    pub fn now() -> Self {
        Self(match me() {
            Some(me) => *START + me.now(),
            None => System::now(),
        })
    }

    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }

    pub fn duration_since(&self, then: Self) -> Duration {
        self.0.saturating_duration_since(then.0)
    }

    pub fn saturating_duration_since(&self, then: Self) -> Duration {
        self.duration_since(then)
    }

    #[must_use]
    pub fn checked_add(&self, time: Duration) -> Option<Self> {
        self.0.checked_add(time).map(Self)
    }

    #[must_use]
    pub fn checked_sub(&self, time: Duration) -> Option<Self> {
        self.0.checked_sub(time).map(Self)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, time: Duration) -> Self {
        Self(self.0 + time)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, time: Duration) {
        self.0 += time;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, time: Duration) -> Self {
        Self(self.0 - time)
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, then: Self) -> Duration {
        self.duration_since(then)
    }
}

/// The time of day.
pub fn wall_clock() -> SystemTime {
    let Some(me) = me() else {
        return SystemTime::now();
    };
    let right = UNIX_EPOCH + MORNING + me.now();
    let wrong = Duration::from_secs(me.clock().unsigned_abs());
    if me.clock() < 0 { right - wrong } else { right + wrong }
}
