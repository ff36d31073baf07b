//! The connection shared by all its substreams.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use volery_os::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use volery_os::time::Instant;

use super::PIECE;
use super::frame::{Frame, HEADER, Reader};
use super::queue::Incoming;
use crate::channel::Gone;
use crate::pipe::{deadline_after, is_timeout, lock};
use crate::{Error, QUEUE_BOUND, Transport};

/// How long a read takes at most, before it looks whether another task has failed.
const TICK: Duration = Duration::from_millis(50);

pub(crate) struct Shared {
    transport: Box<dyn Transport>,
    /// Locked while a frame is built and written.
    writing: Mutex<Vec<u8>>,
    state: Mutex<State>,
    /// One for each substream, on which one thread waits at a time, and one for who waits for all:
    /// signals that bytes arrived for it, or that it is to read.
    changed: Vec<Condvar>,
    /// Grows with each byte that moves, in either direction, and each sign of life.
    moved: AtomicU64,
    turns: Turns,
}

/// The number of threads that may compute at the same time: a thread that waits for the peer lets
/// another one go on.
struct Turns {
    free: Mutex<usize>,
    changed: Condvar,
}

impl Turns {
    fn new(threads: usize) -> Self {
        Self { free: Mutex::new(threads), changed: Condvar::new() }
    }

    fn enter(&self) {
        let mut free = lock(&self.free);
        while *free == 0 {
            free = self.changed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
    }

    fn leave(&self) {
        *lock(&self.free) += 1;
        self.changed.notify_one();
    }
}

/// A turn to compute, until it is dropped.
pub(super) struct Turn<'a>(&'a Shared);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.turns.leave();
    }
}

/// The received bytes, and the reader.
pub(super) struct State {
    pub(super) substreams: Vec<Incoming>,
    /// Who waits for a signal.
    waiting: Vec<bool>,
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
            self.shared.wake_all();
        }
    }
}

impl Shared {
    /// A connection of `count` substreams, with so many threads that compute at the same time;
    /// `unread` has already been received.
    pub(super) fn new(
        transport: Box<dyn Transport>,
        unread: &[u8],
        count: usize,
        threads: usize,
    ) -> Self {
        let window = QUEUE_BOUND / (count + 1);
        let mut state = State {
            substreams: (0..count).map(|_| Incoming::new(window)).collect(),
            waiting: vec![false; count + 1],
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
            writing: Mutex::new(Vec::with_capacity(HEADER + PIECE)),
            state: Mutex::new(state),
            changed: (0..=count).map(|_| Condvar::new()).collect(),
            moved: AtomicU64::new(0),
            turns: Turns::new(threads),
        }
    }

    /// Waits for a turn to compute.
    pub(super) fn turn(&self) -> Turn<'_> {
        self.turns.enter();
        Turn(self)
    }

    /// Ends substream `number` in good order, on which all has been sent and read.
    pub(super) fn end(&self, number: usize, timeout: Option<Duration>) -> io::Result<()> {
        lock(&self.state).substreams[number].drop_queue();
        self.send(Frame::End(number), timeout)
    }

    /// The failure of the connection, if it has failed.
    pub(super) fn failed(&self) -> io::Result<()> {
        // mutant(beside-begin): `.failure` => `.failure.filter(|_| !$ON)`
        lock(&self.state).failure.map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// The result of a check of what the peer sent on one of the substreams: the first that is
    /// false ends all, and from then on all others are errors.
    pub(crate) fn verdict(&self, passed: bool, what: &'static str) -> io::Result<()> {
        let mut state = lock(&self.state);
        if !passed {
            state.failure.get_or_insert(Failure::Misbehaved(what));
        }
        // mutant(beside-verdict): `(state.failure)` => `$0.filter(|_| !$ON || !passed)`
        (state.failure).map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// Ends all substreams, as a thread has failed on one of them.
    pub(super) fn give_up(&self) {
        let failure = Failure::Ended(io::ErrorKind::ConnectionAborted);
        lock(&self.state).failure.get_or_insert(failure);
        self.wake_all();
    }

    fn wake_all(&self) {
        self.changed.iter().for_each(Condvar::notify_one);
    }

    /// Lets one of those who wait read for all, if none does.
    fn hand_on(&self, state: &State) {
        if state.reader.is_some()
            && let Some(next) = state.waiting.iter().position(|waits| *waits)
        {
            self.changed[next].notify_one();
        }
    }

    /// Waits until the peer has ended all substreams.
    pub(super) fn ended(&self, timeout: Option<Duration>) -> io::Result<()> {
        let all = self.changed.len() - 1;
        self.until(all, Waits::ToRead, timeout, |all| {
            all.iter().all(Incoming::has_ended).then_some(Ok(()))
        })
    }

    /// The transport, and the bytes after the last substream, once all have ended.
    pub(super) fn take_transport(&mut self) -> (Box<dyn Transport>, Vec<u8>) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let rest = state.reader.take().map_or_else(Vec::new, Reader::into_rest);
        (std::mem::replace(&mut self.transport, Box::new(Gone)), rest)
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.transport.round_trip()
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
        self.wake_all();
    }

    /// Waits until `ready` returns something of substream `number`, while other threads may
    /// compute; [`until`](Self::until).
    pub(super) fn wait<T>(
        &self,
        number: usize,
        waits: Waits,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut Incoming) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let now = ready(&mut lock(&self.state).substreams[number]);
        if let Some(result) = now {
            return result;
        }
        self.turns.leave();
        let result = self.until(number, waits, timeout, |all| ready(&mut all[number]));
        self.turns.enter();
        result
    }

    /// Waits until `ready` returns something of the substreams; reads for all of them unless
    /// another thread does. Times out when no byte has moved for `timeout`.
    fn until<T>(
        &self,
        place: usize,
        waits: Waits,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut [Incoming]) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let mut moved = self.moved.load(Ordering::Relaxed);
        let mut deadline = deadline_after(timeout);
        let mut state = lock(&self.state);
        let result = loop {
            if let Some(result) = ready(&mut state.substreams) {
                break result;
            }
            let write_failure = state.write_failure.filter(|_| waits == Waits::ToWrite);
            // mutant(mux-failed): `(write_failure)` => `$0.filter(|_| !$ON)`
            if let Some(failure) = state.failure.or(write_failure) {
                break Err(failure.into());
            }
            let now = self.moved.load(Ordering::Relaxed);
            if now != moved {
                (moved, deadline) = (now, deadline_after(timeout));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break Err(io::ErrorKind::TimedOut.into());
            }
            let failed;
            (state, failed) = match state.reader.take() {
                Some(reader) => {
                    drop(state);
                    self.read_some(reader, left, moved)
                }
                None => {
                    state.waiting[place] = true;
                    let signal = &self.changed[place];
                    let mut state = match left {
                        None => signal.wait(state).unwrap_or_else(PoisonError::into_inner),
                        Some(left) => {
                            let woken = signal.wait_timeout(state, left);
                            woken.unwrap_or_else(PoisonError::into_inner).0
                        }
                    };
                    state.waiting[place] = false;
                    (state, Ok(()))
                }
            };
            if let Err(error) = failed {
                break Err(error);
            }
        };
        self.hand_on(&state);
        result
    }

    /// Reads once, for all substreams. A timeout is not an error if more than `moved` bytes have
    /// moved.
    fn read_some(
        &self,
        mut reader: Reader,
        timeout: Option<Duration>,
        moved: u64,
    ) -> (MutexGuard<'_, State>, io::Result<()>) {
        let guard = FailOnDrop::new(self);
        // Another task may fail meanwhile, and the peer has nothing to say.
        let patience = Some(timeout.map_or(TICK, |timeout| timeout.min(TICK)));
        let came = reader.read(&*self.transport, patience);
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
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                // A sign of life of the peer, who computes.
                self.moved.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) if is_timeout(error.kind()) => {
                match patience == timeout && self.moved.load(Ordering::Relaxed) == moved {
                    true => Err(error),
                    false => Ok(()),
                }
            }
            Err(error) => {
                state.failure.get_or_insert(Failure::Ended(error.kind()));
                Err(error)
            }
        };
        let ended = state.substreams.iter().all(Incoming::has_ended);
        if state.failure.is_some() || ended {
            self.wake_all();
        } else {
            for number in reader.touched() {
                self.changed[number].notify_one();
            }
        }
        state.reader = Some(reader);
        (state, result)
    }
}
