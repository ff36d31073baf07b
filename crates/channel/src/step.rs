//! Protocols that the caller drives, with bytes in and bytes out.

use std::panic::resume_unwind;

use volery_os::sync::Arc;
use volery_primitives::Wiped;

use crate::exchange::{Exchange, Slot};
use crate::pipe::lock;
use crate::{Channel, Error, Pool, Result};

/// A protocol that runs until it waits for bytes of the peer, in each [`step`](Self::step): for
/// programs that move the bytes themselves, and for tests that decide what arrives when.
///
/// It blocks on a thread of a [`Pool`] while the caller has the bytes. What it sends depends on
/// what it is given, not on when, nor where it is cut. Dropping it ends the protocol, which finds
/// its connection closed.
///
/// A timeout that the protocol sets on its channel runs between the steps.
///
/// # Examples
///
/// ```
/// use volery_channel::step::{Machine, State};
/// use volery_channel::{Channel, Error};
///
/// let party = |ours: u8| {
///     move |channel: &mut Channel| {
///         let mut theirs = [0];
///         channel.send(&[ours])?;
///         channel.recv(&mut theirs)?;
///         Ok::<_, Error>(theirs[0])
///     }
/// };
/// let (mut left, mut right) = (Machine::new(party(1))?, Machine::new(party(2))?);
/// let from_left = left.step(&[]);
/// assert!(matches!(from_left.state, State::Waiting));
/// let from_right = right.step(&from_left.outgoing);
/// assert!(matches!(from_right.state, State::Done(Ok(1))));
/// assert!(matches!(left.step(&from_right.outgoing).state, State::Done(Ok(2))));
/// # Ok::<_, Error>(())
/// ```
pub struct Machine<T> {
    exchange: Arc<Exchange>,
    slot: Slot<T>,
}

/// What came of a [step](Machine::step).
pub struct Step<T> {
    /// Bytes for the peer. They may be what the peer waits for.
    pub outgoing: Vec<u8>,
    /// Whether there is a result.
    pub state: State<T>,
}

/// Whether a [`Machine`] has a result.
pub enum State<T> {
    /// The protocol waits for bytes of the peer, or has sent
    /// [`QUEUE_BOUND`](crate::QUEUE_BOUND) bytes in one step.
    Waiting,
    /// The protocol has ended, with this value.
    Done(T),
}

impl<T: Send + 'static> Machine<T> {
    /// A machine in the pool of the process.
    ///
    /// # Errors
    /// If the operating system starts no thread and the pool has none.
    pub fn new(protocol: impl FnOnce(&mut Channel) -> T + Send + 'static) -> Result<Self> {
        Self::with_pool(&Pool::shared(), protocol)
    }

    /// A machine in `pool`.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn with_pool(
        pool: &Pool,
        protocol: impl FnOnce(&mut Channel) -> T + Send + 'static,
    ) -> Result<Self> {
        let protocol = Box::new(Wiped::new(Some(protocol)));
        let exchange = Arc::<Exchange>::default();
        let slot = exchange.start(pool, exchange.channel(), protocol).map_err(Error::Io)?;
        Ok(Self { exchange, slot })
    }

    /// Gives the protocol `incoming`, any number of the peer's next bytes, and returns when it
    /// waits for more or has ended. If the pool is full, waits for a thread first.
    ///
    /// # Panics
    /// If the protocol panics, with its panic; after [`State::Done`].
    pub fn step(&mut self, incoming: &[u8]) -> Step<T> {
        let (done, outgoing) = self.exchange.step(incoming);
        if !done {
            return Step { outgoing, state: State::Waiting };
        }
        let (_channel, value) = lock(&self.slot).take().expect("no step after the last");
        Step { outgoing, state: State::Done(value.unwrap_or_else(|panic| resume_unwind(panic))) }
    }

    /// The peer has closed: when the protocol has read all bytes it gets
    /// [`Error::Disconnected`], in the next step.
    pub fn close(&mut self) {
        self.exchange.end();
    }
}

impl<T> Drop for Machine<T> {
    fn drop(&mut self) {
        self.exchange.cancel();
    }
}
