//! A queue of bytes between two threads, bounded by bytes.
//!
//! The memory transport is two of these. TCP and the shaped link put one between the caller and
//! their writer thread.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use volery_os::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use volery_os::time::Instant;

/// The number of bytes that the transports of this crate queue in each direction before a write
/// waits for the peer to read.
pub const QUEUE_BOUND: usize = 256 << 20;

/// Longest chunk: the most that the reading thread takes at a time.
pub(crate) const CHUNK: usize = 1 << 20;

/// Some bytes, not delivered before `due`, which is in the past for bytes without delay. (`due` is
/// not an `Option`: the padding of its `None` would copy stack contents of the pushing party.)
pub(crate) struct Chunk {
    pub(crate) bytes: Vec<u8>,
    pub(crate) due: Instant,
}

/// Queue of chunks. A chunk counts against the bound until its bytes are released.
pub(crate) struct Pipe {
    state: Mutex<State>,
    changed: Condvar,
    bound: usize,
    began: Instant,
}

#[derive(Default)]
struct State {
    chunks: VecDeque<Chunk>,
    /// Bytes pushed and not yet released.
    held: usize,
    /// Total bytes released.
    released: u64,
    /// The writing end is gone; queued bytes can still be taken.
    closed: bool,
    /// The reading end is gone, with the reason for failing later pushes.
    failed: Option<io::ErrorKind>,
}

impl Pipe {
    pub(crate) fn new() -> Self {
        Self::with_bound(QUEUE_BOUND)
    }

    pub(crate) fn with_bound(bound: usize) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), bound, began: Instant::now() }
    }

    /// The most bytes that it holds before a push waits.
    #[cfg(feature = "tcp")]
    pub(crate) fn bound(&self) -> usize {
        self.bound
    }

    /// Waits for a change, at most until `deadline`; returns whether the deadline has passed.
    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        deadline: Option<Instant>,
    ) -> (MutexGuard<'a, State>, bool) {
        let Some(deadline) = deadline else {
            return (self.changed.wait(state).unwrap_or_else(PoisonError::into_inner), false);
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (state, true);
        }
        let (state, _) =
            self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        (state, false)
    }

    /// Queues a copy of `bytes`; waits only when the bound is reached, as long as bytes are being
    /// released.
    pub(crate) fn push(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        bytes.chunks(CHUNK).try_for_each(|piece| {
            self.push_chunk(Chunk { bytes: piece.to_vec(), due: self.began }, timeout)
        })
    }

    /// Pushes one chunk like [`Pipe::push`].
    pub(crate) fn push_chunk(&self, chunk: Chunk, timeout: Option<Duration>) -> io::Result<()> {
        let mut state = lock(&self.state);
        let mut deadline = deadline_after(timeout);
        let mut released = state.released;
        loop {
            if let Some(kind) = state.failed {
                return Err(kind.into());
            }
            if state.held == 0 || state.held + chunk.bytes.len() <= self.bound {
                break;
            }
            if state.released != released {
                released = state.released;
                deadline = deadline_after(timeout);
            }
            let late;
            (state, late) = self.wait(state, deadline);
            if late {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        state.held += chunk.bytes.len();
        state.chunks.push_back(chunk);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// The next chunk; `None` once the writing end is closed and all chunks are taken, or the pipe
    /// has failed.
    pub(crate) fn take(&self, timeout: Option<Duration>) -> io::Result<Option<Chunk>> {
        let deadline = deadline_after(timeout);
        let mut state = lock(&self.state);
        loop {
            if state.failed.is_some() {
                return Ok(None);
            }
            if let Some(chunk) = state.chunks.pop_front() {
                return Ok(Some(chunk));
            }
            if state.closed {
                return Ok(None);
            }
            let late;
            (state, late) = self.wait(state, deadline);
            if late {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Marks `count` bytes of a taken chunk as processed.
    pub(crate) fn release(&self, count: usize) {
        let mut state = lock(&self.state);
        state.held -= count;
        state.released += count as u64;
        drop(state);
        self.changed.notify_all();
    }

    /// Whether all pushed bytes have been released.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.state).held == 0
    }

    /// Waits until all pushed bytes have been released, at most until `until`, and only while some
    /// are in every `pause`; returns whether they have.
    #[cfg(feature = "tcp")]
    pub(crate) fn drains(&self, until: Instant, pause: Duration) -> bool {
        let mut state = lock(&self.state);
        let mut released = state.released;
        let mut deadline = Instant::now() + pause;
        loop {
            if state.held == 0 {
                return true;
            }
            if state.failed.is_some() {
                return false;
            }
            if state.released != released {
                released = state.released;
                deadline = Instant::now() + pause;
            }
            let late;
            (state, late) = self.wait(state, Some(deadline.min(until)));
            if late {
                return false;
            }
        }
    }

    /// Total bytes released: changes while there is progress.
    pub(crate) fn released(&self) -> u64 {
        lock(&self.state).released
    }

    /// Runs `read`, and repeats it when it times out although bytes were being released meanwhile:
    /// the peer cannot answer bytes that have not reached it.
    pub(crate) fn read_patiently(
        &self,
        mut read: impl FnMut() -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            let before = self.released();
            match read() {
                Err(error) if is_timeout(error.kind()) && self.released() != before => {}
                result => return result,
            }
        }
    }

    /// The reason why the reading end is gone, if it is.
    #[cfg(feature = "tcp")]
    pub(crate) fn failure(&self) -> Option<io::ErrorKind> {
        lock(&self.state).failed
    }

    /// Closes the writing side: the reading side still takes the queued chunks.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }

    /// Closes the reading side: drops queued chunks; later pushes fail with `kind`.
    pub(crate) fn fail(&self, kind: io::ErrorKind) {
        let mut state = lock(&self.state);
        state.failed.get_or_insert(kind);
        state.chunks.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until `due`, or until the pipe fails; returns whether it still works.
    pub(crate) fn wait_until(&self, due: Instant) -> bool {
        let mut state = lock(&self.state);
        loop {
            if state.failed.is_some() {
                return false;
            }
            let late;
            (state, late) = self.wait(state, Some(due));
            if late {
                return true;
            }
        }
    }
}

/// Locks what no panic elsewhere can leave inconsistent: poisoning is ignored.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time until `deadline`, if there is one.
pub(crate) fn left(deadline: Option<Instant>) -> io::Result<Option<Duration>> {
    match deadline.map(|end| end.saturating_duration_since(Instant::now())) {
        Some(left) if left.is_zero() => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

/// Whether an error is a timeout, which has two kinds across operating systems.
pub(crate) fn is_timeout(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

/// The time `timeout` from now; `None` if there is no timeout or the time is not representable.
pub(crate) fn deadline_after(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const SHORT: Option<Duration> = Some(Duration::from_millis(20));

    #[test]
    fn draining_is_waited_for_while_it_goes_on() {
        let pipe = Pipe::new();
        let far = || Instant::now() + Duration::from_secs(60);
        assert!(pipe.drains(Instant::now(), Duration::ZERO));
        pipe.push(&[0; 100], None).unwrap();
        assert!(!pipe.drains(far(), Duration::from_millis(1)));
        assert!(!pipe.drains(Instant::now(), Duration::from_secs(60)));
        thread::scope(|scope| {
            scope.spawn(|| (0..100).for_each(|_| pipe.release(1)));
            assert!(pipe.drains(far(), Duration::from_secs(60)));
        });
        pipe.push(&[0; 100], None).unwrap();
        pipe.fail(io::ErrorKind::BrokenPipe);
        assert!(!pipe.drains(far(), Duration::from_secs(60)));
    }

    #[test]
    fn a_full_pipe_times_out_and_goes_on_after_release() {
        let pipe = Pipe::with_bound(10);
        pipe.push(&[1; 6], SHORT).unwrap();
        pipe.push(&[2; 4], SHORT).unwrap();
        assert_eq!(pipe.push(&[3], SHORT).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(pipe.take(SHORT).unwrap().unwrap().bytes, [1; 6]);
        assert!(pipe.push(&[3], SHORT).is_err(), "taken bytes count until they are released");
        pipe.release(6);
        pipe.push(&[3], SHORT).unwrap();
        assert_eq!(pipe.take(SHORT).unwrap().unwrap().bytes, [2; 4]);
        assert_eq!(pipe.take(SHORT).unwrap().unwrap().bytes, [3]);
        assert!(pipe.take(SHORT).is_err(), "nothing is left");
    }

    #[test]
    fn a_chunk_above_the_bound_passes_alone() {
        let pipe = Pipe::with_bound(10);
        pipe.push(&[1; 11], SHORT).unwrap();
        assert!(pipe.push(&[2], SHORT).is_err());
    }

    #[test]
    fn closing_leaves_what_is_queued_and_failing_does_not() {
        let pipe = Pipe::new();
        pipe.push(&[1], None).unwrap();
        pipe.close();
        assert!(pipe.take(None).unwrap().is_some());
        assert!(pipe.take(None).unwrap().is_none());

        let pipe = Pipe::new();
        pipe.push(&[1], None).unwrap();
        pipe.fail(io::ErrorKind::BrokenPipe);
        assert!(pipe.take(None).unwrap().is_none());
        assert_eq!(pipe.push(&[1], None).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(!pipe.wait_until(Instant::now() + Duration::from_secs(60)));
    }
}
