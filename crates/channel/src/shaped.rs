//! A link with a limited rate and a latency, for repeating a paper's measurements on one machine.

use std::io;
use std::time::Duration;

use volery_os::sync::{Arc, Mutex};
use volery_os::time::Instant;

use crate::pipe::{CHUNK, Chunk, lock};
use crate::{Queued, Transport, queued};

/// Sends over `inner` at no more than `rate` bits per second, delayed by half of `round_trip`.
///
/// Each party wraps its own end; only its own bytes are delayed. The link is pipelined: the next
/// message leaves while the previous one is in flight. The rate counts the bytes written, without
/// any headers of the network. Times are lower bounds; a busy machine adds to them.
///
/// # Panics
/// If `rate` is zero, or the operating system cannot start a thread.
pub fn shaped<T: Transport + 'static>(inner: T, rate: u64, round_trip: Duration) -> Shaped {
    assert!(rate > 0, "the rate of a link is above zero");
    let below = inner.round_trip().unwrap_or_default();
    let inner = Arc::new(inner);
    let reader = Arc::clone(&inner);
    let queued = queued(
        move |bytes, timeout| reader.read(bytes, timeout),
        move |bytes, timeout| inner.write(bytes, timeout),
    );
    let delay = round_trip / 2;
    Shaped { queued, free: Mutex::new(Instant::now()), rate, delay, round_trip: 2 * delay + below }
}

/// A transport with limited rate and latency, made by [`shaped`].
///
/// Dropping it takes as long as the link needs for the bytes in flight.
pub struct Shaped {
    /// The bytes in flight.
    queued: Queued,
    /// The time at which the link has sent all queued bytes.
    free: Mutex<Instant>,
    rate: u64,
    delay: Duration,
    round_trip: Duration,
}

impl Shaped {
    /// Transmission time of `count` bytes.
    fn busy(&self, count: usize) -> Duration {
        let nanoseconds = (count as u128 * 8 * 1_000_000_000).div_ceil(u128::from(self.rate));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// Bytes per piece: about a tenth of a millisecond of traffic, so that the peer receives a
    /// stream and can measure its rate.
    fn piece(&self) -> usize {
        usize::try_from(self.rate / 8 / 10_000).unwrap_or(CHUNK).clamp(1 << 10, CHUNK)
    }
}

impl Transport for Shaped {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        let mut free = lock(&self.free);
        *free = (*free).max(Instant::now());
        for piece in bytes.chunks(self.piece()) {
            *free += self.busy(piece.len());
            let chunk = Chunk { bytes: piece.to_vec(), due: *free + self.delay };
            self.queued.push(chunk, timeout)?;
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.queued.read(bytes, timeout)
    }

    fn round_trip(&self) -> Option<Duration> {
        Some(self.round_trip)
    }
}
