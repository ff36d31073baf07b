//! The connection, as all its lanes have it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::PIECE;
use super::frame::{Frame, HEADER, Reader};
use super::traffic::Traffic;
use crate::pipe::{deadline_after, is_timeout};
use crate::{Error, QUEUE_BOUND, Transport};

/// How long the last lane, when it is dropped, waits for a peer that takes nothing; and how long for any.
const LINGER: Duration = Duration::from_secs(5);
const LONGEST_LINGER: Duration = Duration::from_secs(60);

/// The connection.
pub(super) struct Shared {
    transport: Box<dyn Transport>,
    /// The timeout at first.
    patience: Option<Duration>,
    /// Held while a frame is made and written.
    writing: Mutex<Vec<u8>>,
    state: Mutex<State>,
    /// Something came, or nobody reads.
    changed: Condvar,
    /// Grows with each byte that moves, in either direction.
    moved: AtomicU64,
}

/// What came, and who may read.
pub(super) struct State {
    pub(super) lanes: Vec<Traffic>,
    /// Away while somebody reads.
    reader: Option<Reader>,
    /// Why nothing more comes on any lane; nothing more is written, either.
    pub(super) failure: Option<Failure>,
    /// Why nothing more is written, though something may come.
    mute: Option<Failure>,
}

#[derive(Clone, Copy)]
pub(super) enum Failure {
    Ended(io::ErrorKind),
    Misbehaved(&'static str),
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Ended(kind) => kind.into(),
            Failure::Misbehaved(what) => Self::other(Error::PeerMisbehaved(what)),
        }
    }
}

/// What a lane waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    ToRead,
    ToWrite,
}

/// Ends all lanes when it is dropped before it is disarmed, by a panic inside the transport: nobody is to wait for who panicked.
struct Alarm<'a> {
    shared: &'a Shared,
    armed: bool,
}

impl<'a> Alarm<'a> {
    const fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            armed: true,
        }
    }

    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if self.armed {
            let failure = Failure::Ended(io::ErrorKind::Other);
            self.shared.lock().failure.get_or_insert(failure);
            self.shared.changed.notify_all();
        }
    }
}

impl Shared {
    /// Of `count` lanes; `unread` came already.
    pub(super) fn new(
        transport: Box<dyn Transport>,
        patience: Option<Duration>,
        unread: &[u8],
        count: usize,
    ) -> Self {
        let window = QUEUE_BOUND / (count + 1);
        let mut state = State {
            lanes: (0..count).map(|_| Traffic::new(window)).collect(),
            reader: None,
            failure: None,
            mute: None,
        };
        let mut reader = Reader::default();
        reader.take(unread, &mut state);
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

    /// The state; a panic elsewhere cannot leave it inconsistent, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody reads lane `number` any more. Says whether the peer is to be told.
    pub(super) fn drop_queue(&self, number: usize) -> bool {
        let mut state = self.lock();
        state.lanes[number].drop_queue() && state.failure.is_none()
    }

    /// Sends one frame; none after one that failed, of which perhaps half is out.
    pub(super) fn send(&self, frame: Frame<'_>, timeout: Option<Duration>) -> io::Result<()> {
        let mut bytes = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.lock();
        if let Some(failure) = state.failure.or(state.mute) {
            return Err(failure.into());
        }
        drop(state);
        bytes.clear();
        frame.write(&mut bytes);
        let alarm = Alarm::new(self);
        let result = self.transport.write(&bytes, timeout);
        alarm.disarm();
        match &result {
            Ok(()) => {
                self.moved.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            Err(error) => self.fall_silent(error.kind()),
        }
        result
    }

    /// A write failed. What the peer sent before it went can still be read, and then its end; but a peer that is there and does
    /// not read would be waited for.
    fn fall_silent(&self, kind: io::ErrorKind) {
        let mut state = self.lock();
        state.mute = Some(Failure::Ended(kind));
        if is_timeout(kind) {
            state.failure.get_or_insert(Failure::Ended(kind));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until `ready` has something of lane `number`; reads for all lanes as long as nobody else does. Gives up when
    /// nothing has moved for `timeout`.
    pub(super) fn wait<T>(
        &self,
        number: usize,
        waits: Waits,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut Traffic) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let mut moved = self.moved.load(Ordering::Relaxed);
        let mut deadline = deadline_after(timeout);
        let mut state = self.lock();
        loop {
            if let Some(result) = ready(&mut state.lanes[number]) {
                return result;
            }
            let mute = state.mute.filter(|_| waits == Waits::ToWrite);
            if let Some(failure) = state.failure.or(mute) {
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
                    None => self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner),
                    Some(left) => {
                        let woken = self.changed.wait_timeout(state, left);
                        woken.unwrap_or_else(PoisonError::into_inner).0
                    }
                },
            };
        }
    }

    /// Reads once, for all lanes. It is no failure if nothing comes in time, but more than `moved` bytes have moved.
    fn read_some(
        &self,
        mut reader: Reader,
        timeout: Option<Duration>,
        moved: u64,
    ) -> io::Result<MutexGuard<'_, State>> {
        let alarm = Alarm::new(self);
        let came = reader.read(&*self.transport, timeout);
        alarm.disarm();
        let mut state = self.lock();
        let result = match came {
            Ok(0) => {
                let end = Failure::Ended(io::ErrorKind::UnexpectedEof);
                state.failure.get_or_insert(end);
                Ok(())
            }
            Ok(count) => {
                self.moved.fetch_add(count as u64, Ordering::Relaxed);
                reader.deliver(count, &mut state);
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
    /// Waits, not for long, until the peer has said of what was sent all that it is going to say. Systems answer what comes
    /// over a connection after it was closed by throwing away what of ours is still under way.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(mut reader) = state.reader.take() else {
            return;
        };
        let patience = self
            .patience
            .map_or(LINGER, |patience| patience.min(LINGER));
        let give_up = Instant::now() + LONGEST_LINGER;
        while !thread::panicking()
            && Instant::now() < give_up
            && state.failure.is_none()
            && state.mute.is_none()
            && state.lanes.iter().any(Traffic::is_owed)
        {
            match reader.read(&*self.transport, Some(patience)) {
                Ok(count) if count > 0 => reader.deliver(count, state),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }
}
