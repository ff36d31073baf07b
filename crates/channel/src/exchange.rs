//! The exchange between a protocol on a thread of a [`Pool`] and the one that drives it: bytes in
//! both directions, and the protocol's end.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;
use std::time::Duration;

use volery_os::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use volery_os::time::Instant;
use volery_primitives::Wiped;

use crate::pipe::{deadline_after, lock};
use crate::{Channel, Pool, QUEUE_BOUND, Transport};

/// Bytes from the peer that the driver brings before the protocol has read them.
pub(crate) const INCOMING_BOUND: usize = 256 << 10;

/// A queue of more bytes gives its memory back when it is empty.
const IDLE_QUEUE: usize = 2 << 10;

#[derive(Default)]
pub(crate) struct Exchange {
    state: Mutex<State>,
    /// Who waits on a thread, for either side.
    pub(crate) changed: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) incoming: VecDeque<u8>,
    pub(crate) outgoing: VecDeque<u8>,
    /// The driver's stream may hold back bytes that it has taken.
    #[cfg(feature = "tokio")]
    pub(crate) unflushed: bool,
    /// Grows with each outgoing byte that the driver has taken.
    moved: u64,
    /// Why no more bytes come after those in the queue, and why none can be sent.
    pub(crate) unreadable: Option<io::Error>,
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

/// Channel and result of a protocol that has ended, or its panic; wiped, as what is moved to the
/// heap takes along what lay on the stack.
pub(crate) type Slot<T> = Arc<Mutex<Wiped<Option<(Box<Wiped<Channel>>, std::thread::Result<T>)>>>>;

/// Takes the result of a protocol that has ended, or panics as it did.
pub(crate) fn outcome<T>(slot: &Slot<T>) -> (Box<Wiped<Channel>>, T) {
    let (channel, value) = lock(slot).take().expect("the result is taken once");
    (channel, value.unwrap_or_else(|panic| resume_unwind(panic)))
}

/// An error like this one.
fn again(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

/// Gives the memory of an empty queue back.
fn give_back(queue: &mut VecDeque<u8>) {
    if queue.is_empty() && queue.capacity() > IDLE_QUEUE {
        *queue = VecDeque::new();
    }
}

impl State {
    /// Drops `count` outgoing bytes, which the driver has taken.
    pub(crate) fn taken(&mut self, count: usize) {
        self.moved += count as u64;
        self.outgoing.drain(..count);
        give_back(&mut self.outgoing);
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

    /// No more bytes come, and none can be sent. Without a driver, a protocol that has no thread
    /// yet does not begin.
    pub(crate) fn end(&self, cancelled: bool) {
        self.change(|state| {
            let gone = || io::ErrorKind::ConnectionAborted.into();
            state.unreadable.get_or_insert_with(gone);
            state.unwritable.get_or_insert_with(gone);
            state.cancelled = cancelled;
        });
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
        let outgoing: Vec<_> = state.outgoing.iter().copied().collect();
        state.taken(outgoing.len());
        (state.done, outgoing)
    }

    /// Waits, on the protocol's thread, until `ready` returns something; times out when no outgoing
    /// byte has moved for `timeout`: the peer cannot answer what has not reached it.
    pub(crate) fn until<T>(
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
            let woken = self.changed.wait_timeout(state, left.unwrap_or(Duration::MAX));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
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
            if state.incoming.is_empty() {
                // no mutant: an error that is passed on
                return state.unreadable.as_ref().map(|error| Err(again(error)));
            }
            let was_full = state.incoming.len() >= INCOMING_BOUND;
            let count = state.incoming.read(bytes);
            give_back(&mut state.incoming);
            Some(count.map(|count| (count, was_full)))
        })?;
        if was_full {
            self.0.wake();
        }
        Ok(count)
    }
}
