//! A link with a rate and a latency, for repeating a paper's measurements on one machine.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::Transport;
use crate::pipe::{CHUNK, Chunk, Pipe};

/// Sends over `inner` no faster than `rate` bits per second, and half of `round_trip` later.
///
/// Each party wraps its own end; only what it sends is delayed. Bytes travel one behind the other: the next message
/// leaves while the last one is on its way. The rate counts the bytes written, without any headers of the network.
/// Times are lower bounds; a busy machine adds to them.
///
/// # Panics
/// If `rate` is zero, or the system gives no thread.
pub fn shaped<T: Transport + 'static>(inner: T, rate: u64, round_trip: Duration) -> Shaped {
    assert!(rate > 0, "a link needs a rate");
    let inner: Arc<dyn Transport> = Arc::new(inner);
    let queue = Arc::new(Pipe::new());
    let timeout = Arc::new(Mutex::new(None));
    let courier = thread::Builder::new()
        .name("volery shaped link".into())
        .spawn({
            let (inner, queue, timeout) =
                (Arc::clone(&inner), Arc::clone(&queue), Arc::clone(&timeout));
            move || deliver(&*inner, &queue, &timeout)
        });
    let free = Mutex::new(Instant::now());
    let courier = Some(courier.expect("the system gives a thread"));
    Shaped {
        inner,
        queue,
        timeout,
        courier,
        free,
        rate,
        delay: round_trip / 2,
    }
}

/// A transport with limited rate and latency, made by [`shaped`].
///
/// Dropping it takes as long as the link needs for what is still on its way.
pub struct Shaped {
    inner: Arc<dyn Transport>,
    /// What is on its way.
    queue: Arc<Pipe>,
    /// The timeout of the last write.
    timeout: Arc<Mutex<Option<Duration>>>,
    courier: Option<JoinHandle<()>>,
    /// When the link has sent all it was given.
    free: Mutex<Instant>,
    rate: u64,
    delay: Duration,
}

impl Shaped {
    /// How long the link is busy with `count` bytes.
    fn busy(&self, count: usize) -> Duration {
        let nanoseconds = (count as u128 * 8 * 1_000_000_000).div_ceil(u128::from(self.rate));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// Bytes per piece: about a millisecond's worth, so that the far end sees a stream.
    fn piece(&self) -> usize {
        usize::try_from(self.rate / 8 / 1000)
            .unwrap_or(CHUNK)
            .clamp(1 << 10, CHUNK)
    }
}

/// Hands each chunk to `inner` when it is due.
fn deliver(inner: &dyn Transport, queue: &Pipe, timeout: &Mutex<Option<Duration>>) {
    while let Ok(Some(chunk)) = queue.take(None) {
        if !chunk.due.is_none_or(|due| queue.wait_until(due)) {
            return;
        }
        let timeout = *timeout.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = inner.write(&chunk.bytes, timeout) {
            return queue.fail(error.kind());
        }
        queue.release(chunk.bytes.len());
    }
}

impl Transport for Shaped {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = (*free).max(Instant::now());
        for piece in bytes.chunks(self.piece()) {
            *free += self.busy(piece.len());
            let chunk = Chunk {
                bytes: piece.to_vec(),
                due: Some(*free + self.delay),
            };
            self.queue.push_chunk(chunk, timeout)?;
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.queue
            .read_patiently(|| self.inner.read(bytes, timeout))
    }
}

impl Drop for Shaped {
    fn drop(&mut self) {
        self.queue.close();
        if thread::panicking() {
            self.queue.fail(io::ErrorKind::BrokenPipe);
        }
        if let Some(courier) = self.courier.take() {
            // Only a panic inside the wrapped transport can end it badly, and that has been reported.
            let _ = courier.join();
        }
    }
}
