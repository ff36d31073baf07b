//! What passes between a protocol on a thread of a [`Pool`] and the one that drives it: bytes in
//! both directions, and its end.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::time::Duration;

use volery_os::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use volery_os::time::Instant;
use volery_primitives::Wiped;

use crate::pipe::{deadline_after, lock};
use crate::pool::Pool;
use crate::{Channel, QUEUE_BOUND, Transport};

/// Bytes from the peer that the driver brings before the protocol has read them.
pub(crate) const INCOMING_BOUND: usize = 256 << 10;

/// A queue that is larger gives its memory back when it is empty.
const IDLE_QUEUE: usize = 2 << 10;

#[derive(Default)]
pub(crate) struct Exchange {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) incoming: VecDeque<u8>,
    pub(crate) outgoing: VecDeque<u8>,
    /// The driver has written bytes that its stream may hold back.
    #[cfg(feature = "tokio")]
    pub(crate) unflushed: bool,
    /// Grows with each outgoing byte that the driver has taken.
    pub(crate) moved: u64,
    /// Why no more bytes come, after those in the queue.
    pub(crate) unreadable: Option<io::Error>,
    /// Why no more bytes can be sent.
    pub(crate) unwritable: Option<io::Error>,
    /// The protocol waits for the driver: for bytes, or to have sent some.
    waits: bool,
    pub(crate) waits_to_send: bool,
    /// The protocol has ended.
    pub(crate) done: bool,
    /// The driver has gone.
    cancelled: bool,
    /// Of a driver that is an async task.
    pub(crate) waker: Option<Waker>,
}

/// The channel and the result of a protocol that has ended, or its panic. Wiped, as what is moved
/// to the heap takes along what lay on the stack.
pub(crate) type Outcome<T> = Option<(Box<Wiped<Channel>>, std::thread::Result<T>)>;

/// The place of an [`Outcome`].
pub(crate) type Slot<T> = Arc<Mutex<Wiped<Outcome<T>>>>;

/// An error like this one.
fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Empties a queue's memory with the queue.
fn give_back(queue: &mut VecDeque<u8>) {
    if queue.is_empty() && queue.capacity() > IDLE_QUEUE {
        *queue = VecDeque::new();
    }
}

impl State {
    /// Takes `count` outgoing bytes, which have been sent.
    pub(crate) fn sent(&mut self, count: usize) {
        self.outgoing.drain(..count);
        give_back(&mut self.outgoing);
        self.moved += count as u64;
    }
}

impl Exchange {
    /// A channel whose bytes pass here.
    pub(crate) fn channel(self: &Arc<Self>) -> Box<Wiped<Channel>> {
        Box::new(Wiped::new(Channel::new(End(Arc::clone(self)))))
    }

    /// Runs `protocol` on a thread of `pool`.
    pub(crate) fn start<T: Send + 'static>(
        self: &Arc<Self>,
        pool: &Pool,
        mut channel: Box<Wiped<Channel>>,
        mut protocol: Box<Wiped<Option<impl FnOnce(&mut Channel) -> T + Send + 'static>>>,
    ) -> io::Result<Slot<T>> {
        let slot: Slot<T> = Arc::new(Mutex::new(Wiped::new(None)));
        let (exchange, result) = (Arc::clone(self), Arc::clone(&slot));
        self.lock().done = false;
        pool.submit(move || {
            let run = protocol.take().filter(|_| !exchange.lock().cancelled);
            if let Some(run) = run {
                let value = catch_unwind(AssertUnwindSafe(|| run(&mut channel)));
                **lock(&result) = Some((channel, value));
            }
            exchange.change(|state| state.done = true);
        })?;
        Ok(slot)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Wakes the protocol, if it waits.
    #[cfg(feature = "tokio")]
    pub(crate) fn told(&self) {
        self.changed.notify_all();
    }

    /// Changes the state, and wakes whoever waits.
    pub(crate) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
        self.wake();
    }

    /// Wakes the driver, if it is an async task.
    fn wake(&self) {
        let waker = self.lock().waker.take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// No more bytes come, and none can be sent.
    pub(crate) fn end(&self) {
        self.change(|state| {
            let gone = || io::ErrorKind::ConnectionAborted.into();
            state.unreadable.get_or_insert_with(gone);
            state.unwritable.get_or_insert_with(gone);
        });
    }

    /// The driver goes: a protocol that runs finds its connection closed, one that has no thread
    /// yet does not begin.
    pub(crate) fn cancel(&self) {
        self.lock().cancelled = true;
        self.end();
    }

    /// Brings bytes of the peer, and waits until the protocol waits for more or has ended; returns
    /// whether it has, and what it sent.
    pub(crate) fn step(&self, incoming: &[u8]) -> (bool, Vec<u8>) {
        self.change(|state| {
            state.incoming.extend(incoming);
            state.waits = false;
        });
        let mut state = self.lock();
        while !state.waits && !state.done {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let count = state.outgoing.len();
        let outgoing = state.outgoing.drain(..).collect();
        state.sent(0);
        state.moved += count as u64;
        (state.done, outgoing)
    }

    /// Waits, on the protocol's thread, until `ready` returns something; times out when no outgoing
    /// byte has moved for `timeout`: the peer cannot answer what has not reached it.
    fn until<T>(
        &self,
        to_send: bool,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut State) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let mut state = self.lock();
        let (mut moved, mut deadline) = (state.moved, deadline_after(timeout));
        loop {
            if let Some(result) = ready(&mut state) {
                return result;
            }
            if state.moved != moved {
                (moved, deadline) = (state.moved, deadline_after(timeout));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            (state.waits, state.waits_to_send) = (true, to_send);
            self.changed.notify_all();
            state = match left {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let woken = self.changed.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Waits, at the end of a protocol, until the driver has sent all. A peer that has gone, or
    /// reads no more, is the next protocol's error: this one has its result.
    #[cfg(feature = "tokio")]
    pub(crate) fn drain(&self, timeout: Option<Duration>) {
        let drained = self.until(true, timeout, |state| {
            let all = state.outgoing.is_empty() && !state.unflushed;
            (all || state.unwritable.is_some()).then_some(Ok(()))
        });
        if let Err(error) = drained {
            self.lock().unwritable.get_or_insert(error);
        }
    }
}

/// The end of a protocol, as a transport.
struct End(Arc<Exchange>);

impl Transport for End {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let now = self.0.until(true, timeout, |state| {
                if let Some(error) = &state.unwritable {
                    // no mutant: an error that is passed on
                    return Some(Err(again(error)));
                }
                let now = rest.len().min(QUEUE_BOUND - state.outgoing.len());
                state.outgoing.extend(&rest[..now]);
                (now > 0).then_some(Ok(now))
            })?;
            rest = &rest[now..];
            self.0.wake();
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let (count, was_full) = self.0.until(false, timeout, |state| {
            let was_full = state.incoming.len() >= INCOMING_BOUND;
            match (&state.unreadable, state.incoming.is_empty()) {
                // no mutant: an error that is passed on
                (Some(error), true) => Some(Err(again(error))),
                (None, true) => None,
                (_, false) => {
                    let count = state.incoming.read(bytes);
                    give_back(&mut state.incoming);
                    Some(count.map(|count| (count, was_full)))
                }
            }
        })?;
        if was_full {
            self.0.wake();
        }
        Ok(count)
    }
}
