//! The connection shared by all its substreams.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use volery_os::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use volery_os::thread;
use volery_os::time::Instant;

use super::PIECE;
use super::frame::{Frame, HEADER, Reader};
use super::queue::Incoming;
use crate::pipe::{deadline_after, is_timeout, lock};
use crate::{Error, QUEUE_BOUND, Transport};

/// Timeout, without progress and in total, for the peer to take the remaining bytes when the last
/// substream is dropped.
const LINGER: Duration = Duration::from_secs(5);
const LONGEST_LINGER: Duration = Duration::from_secs(60);

pub(super) struct Shared {
    transport: Box<dyn Transport>,
    /// The initial timeout.
    patience: Option<Duration>,
    /// Locked while a frame is built and written.
    writing: Mutex<Vec<u8>>,
    state: Mutex<State>,
    /// Signals that bytes arrived or that the reader is free.
    changed: Condvar,
    /// Grows with each byte that moves, in either direction.
    moved: AtomicU64,
}

/// The received bytes, and the reader.
pub(super) struct State {
    pub(super) substreams: Vec<Incoming>,
    /// `None` while a thread reads.
    reader: Option<Reader>,
    /// The reason why no substream receives or sends any more.
    failure: Option<Failure>,
    /// The reason why no more is written, though bytes may still arrive.
    write_failure: Option<Failure>,
}

impl State {
    /// Delivers the `count` bytes that `reader` has read to the substreams, unless the connection
    /// has failed.
    fn deliver(&mut self, count: usize, reader: &mut Reader) {
        if self.failure.is_none() {
            let delivered = reader.deliver(count, &mut self.substreams);
            self.failure = delivered.err().map(Failure::Misbehaved);
        }
    }
}

#[derive(Clone, Copy)]
enum Failure {
    Ended(io::ErrorKind),
    Misbehaved(&'static str),
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Ended(kind) => kind.into(),
            // no mutant: an error that is passed on
            Failure::Misbehaved(what) => Self::other(Error::PeerMisbehaved(what)),
        }
    }
}

/// The condition that a substream waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    ToRead,
    ToWrite,
}

/// Ends all substreams if it is dropped before it is disarmed, by a panic inside the transport: no
/// thread must wait for the one that panicked.
struct FailOnDrop<'a> {
    shared: &'a Shared,
    armed: bool,
}

impl<'a> FailOnDrop<'a> {
    const fn new(shared: &'a Shared) -> Self {
        Self { shared, armed: true }
    }

    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for FailOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            let failure = Failure::Ended(io::ErrorKind::Other);
            lock(&self.shared.state).failure.get_or_insert(failure);
            self.shared.changed.notify_all();
        }
    }
}

impl Shared {
    /// A connection of `count` substreams; `unread` has already been received.
    pub(super) fn new(
        transport: Box<dyn Transport>,
        patience: Option<Duration>,
        unread: &[u8],
        count: usize,
    ) -> Self {
        let window = QUEUE_BOUND / (count + 1);
        let mut state = State {
            substreams: (0..count).map(|_| Incoming::new(window)).collect(),
            reader: None,
            failure: None,
            write_failure: None,
        };
        let mut reader = Reader::default();
        let taken = reader.take(unread, &mut state.substreams);
        state.failure = taken.err().map(Failure::Misbehaved);
        state.reader = Some(reader);
        Self {
            transport,
            patience,
            writing: Mutex::new(Vec::with_capacity(HEADER + PIECE)),
            state: Mutex::new(state),
            changed: Condvar::new(),
            moved: AtomicU64::new(0),
        }
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.transport.round_trip()
    }

    /// Stops reading substream `number`. Returns whether to tell the peer.
    pub(super) fn drop_queue(&self, number: usize) -> bool {
        let mut state = lock(&self.state);
        state.substreams[number].drop_queue() && state.failure.is_none()
    }

    /// Sends one frame; fails after a failed write, of which a part may have been sent.
    pub(super) fn send(&self, frame: Frame<'_>, timeout: Option<Duration>) -> io::Result<()> {
        let mut bytes = lock(&self.writing);
        let state = lock(&self.state);
        // mutant(mux-silent): `(state.write_failure)` => `$0.filter(|_| !$ON)`
        if let Some(failure) = state.failure.or(state.write_failure) {
            return Err(failure.into());
        }
        drop(state);
        bytes.clear();
        frame.write(&mut bytes);
        let guard = FailOnDrop::new(self);
        let result = self.transport.write(&bytes, timeout);
        guard.disarm();
        match &result {
            Ok(()) => {
                self.moved.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            Err(error) => self.fail_writes(error.kind()),
        }
        result
    }

    /// Handles a failed write. Bytes that the peer sent before it closed can still be read, and
    /// then its end; a peer that is present and does not read would be waited for.
    fn fail_writes(&self, kind: io::ErrorKind) {
        let mut state = lock(&self.state);
        state.write_failure = Some(Failure::Ended(kind));
        if is_timeout(kind) {
            state.failure.get_or_insert(Failure::Ended(kind));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until `ready` returns something of substream `number`; reads for all substreams unless
    /// another thread does. Times out when no byte has moved for `timeout`.
    pub(super) fn wait<T>(
        &self,
        number: usize,
        waits: Waits,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut Incoming) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let mut moved = self.moved.load(Ordering::Relaxed);
        let mut deadline = deadline_after(timeout);
        let mut state = lock(&self.state);
        loop {
            if let Some(result) = ready(&mut state.substreams[number]) {
                return result;
            }
            let write_failure = state.write_failure.filter(|_| waits == Waits::ToWrite);
            // mutant(mux-failed): `(write_failure)` => `$0.filter(|_| !$ON)`
            if let Some(failure) = state.failure.or(write_failure) {
                return Err(failure.into());
            }
            let now = self.moved.load(Ordering::Relaxed);
            if now != moved {
                (moved, deadline) = (now, deadline_after(timeout));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            state = match state.reader.take() {
                Some(reader) => {
                    drop(state);
                    self.read_some(reader, left, moved)?
                }
                None => match left {
                    None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                    Some(left) => {
                        let woken = self.changed.wait_timeout(state, left);
                        woken.unwrap_or_else(PoisonError::into_inner).0
                    }
                },
            };
        }
    }

    /// Reads once, for all substreams. A timeout is not an error if more than `moved` bytes have
    /// moved.
    fn read_some(
        &self,
        mut reader: Reader,
        timeout: Option<Duration>,
        moved: u64,
    ) -> io::Result<MutexGuard<'_, State>> {
        let guard = FailOnDrop::new(self);
        let came = reader.read(&*self.transport, timeout);
        guard.disarm();
        let mut state = lock(&self.state);
        let result = match came {
            Ok(0) => {
                let end = Failure::Ended(io::ErrorKind::UnexpectedEof);
                state.failure.get_or_insert(end);
                Ok(())
            }
            Ok(count) => {
                self.moved.fetch_add(count as u64, Ordering::Relaxed);
                state.deliver(count, &mut reader);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) if is_timeout(error.kind()) => {
                match self.moved.load(Ordering::Relaxed) == moved {
                    true => Err(error),
                    false => Ok(()),
                }
            }
            Err(error) => {
                state.failure.get_or_insert(Failure::Ended(error.kind()));
                Err(error)
            }
        };
        state.reader = Some(reader);
        self.changed.notify_all();
        result.map(|()| state)
    }
}

impl Drop for Shared {
    /// Waits, briefly, until the peer has sent all its updates for the sent bytes. An operating
    /// system that receives data for a closed connection resets it and drops the bytes still in
    /// flight.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(mut reader) = state.reader.take() else {
            return;
        };
        let patience = self.patience.map_or(LINGER, |patience| patience.min(LINGER));
        let give_up = Instant::now() + LONGEST_LINGER;
        while !thread::panicking()
            && Instant::now() < give_up
            && state.failure.is_none()
            && state.write_failure.is_none()
            && state.substreams.iter().any(Incoming::is_update_due)
        {
            match reader.read(&*self.transport, Some(patience)) {
                Ok(count) if count > 0 => state.deliver(count, &mut reader),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }
}
