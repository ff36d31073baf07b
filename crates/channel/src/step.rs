//! Protocols that the caller drives, with bytes in and bytes out.

use std::task::Poll;

use volery_os::sync::Arc;
use volery_primitives::Wiped;

use crate::exchange::{Exchange, Slot, outcome};
use crate::{Channel, Error, Pool, Result};

/// A protocol that runs until it waits for bytes of the peer, in each [`step`](Self::step): for
/// programs that move the bytes themselves, and for tests that decide what arrives when.
///
/// It blocks on a thread of [`Pool::shared`] while the caller has the bytes. What it sends depends
/// on what it is given, not on when, nor where it is cut. Dropping the machine ends the protocol,
/// which finds its connection closed. A timeout of its channel runs between the steps.
///
/// # Examples
///
/// ```
/// use std::task::Poll;
/// use volery_channel::step::Machine;
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
/// assert!(from_left.state.is_pending());
/// let from_right = right.step(&from_left.outgoing);
/// assert_eq!(from_right.state, Poll::Ready(Ok(1)));
/// assert_eq!(left.step(&from_right.outgoing).state, Poll::Ready(Ok(2)));
/// # Ok::<_, Error>(())
/// ```
pub struct Machine<T> {
    exchange: Arc<Exchange>,
    slot: Slot<T>,
}

/// The result of a [step](Machine::step).
pub struct Step<T> {
    /// Bytes for the peer, which may wait for them.
    pub outgoing: Vec<u8>,
    /// The value of a protocol that has ended. Pending are those that wait for bytes, or have sent
    /// [`QUEUE_BOUND`](crate::QUEUE_BOUND) bytes in one step.
    pub state: Poll<T>,
}

impl<T: Send + 'static> Machine<T> {
    /// A machine for `protocol`, which begins.
    ///
    /// # Errors
    /// If the operating system starts no thread and the pool has none.
    pub fn new(protocol: impl FnOnce(&mut Channel) -> T + Send + 'static) -> Result<Self> {
        let protocol = Box::new(Wiped::new(Some(protocol)));
        let exchange = Arc::<Exchange>::default();
        let slot = exchange.start(&Pool::shared(), exchange.channel(), protocol);
        Ok(Self { slot: slot.map_err(Error::Io)?, exchange })
    }

    /// Gives the protocol `incoming`, any number of the peer's next bytes, and returns when it
    /// waits for more or has ended. If the pool is full, waits for a thread first.
    ///
    /// # Panics
    /// If the protocol panics, with its panic; after the step in which it ended.
    pub fn step(&mut self, incoming: &[u8]) -> Step<T> {
        let (done, outgoing) = self.exchange.step(incoming);
        let state = if done { Poll::Ready(outcome(&self.slot).1) } else { Poll::Pending };
        Step { outgoing, state }
    }

    /// The peer has closed: when the protocol has read all bytes it gets
    /// [`Error::Disconnected`], in the next step.
    pub fn close(&mut self) {
        self.exchange.end(false);
    }
}

impl<T> Drop for Machine<T> {
    fn drop(&mut self) {
        self.exchange.end(true);
    }
}
