//! Tools for the tests of protocols: ideal functionalities in place of real ones, tampered
//! channels, and assertions.
//!
//! **Nothing here is secure.** A trusted dealer makes the correlations from a seed that both
//! parties hold, without a message. Its types implement the traits of the real ones, so a protocol
//! that is generic over them runs over either:
//!
//! | ideal | real | trait |
//! |---|---|---|
//! | [`cot::pair`] | [`crate::cot`], [`crate::ot::softspoken`] | [`CotSender`], [`CotReceiver`] |
//! | [`vole::pair`] | [`crate::vole`] | [`VoleSender`], [`VoleReceiver`] |
//! | [`ots`] | [`crate::ot::convert`] over a real COT | the same types |
//! | `oprf::pair` (feature `psi`) | `oprf::Kkrt` over `psi::oprf` | `OprfSender`, `OprfReceiver` |
//!
//! [`Failing`] makes a source fail at a given call; [`tamper`] flips bytes of a party's messages.
//!
//! ```
//! use volery::prelude::*;
//! use volery::testing::{cot, sessions};
//!
//! let (delta, seed) = (Block::from(77), Block::from(1));
//! let (mut sender, mut receiver) = cot::pair(delta, seed);
//! let (mut left, mut right) = sessions(2);
//! let (mut v, mut u, mut w) = ([Block::ZERO; 9], [0; 2], [Block::ZERO; 9]);
//! sender.extend(&mut v, &mut left)?;
//! receiver.extend(&mut u, &mut w, &mut right)?;
//! cot::assert_cot(delta, &v, &u, &w);
//! # Ok::<_, Error>(())
//! ```

use volery_channel::{Channel, Error, Result, Session, SessionId};
use volery_ot::convert;
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::vole::{VoleReceiver, VoleSender};
use volery_primitives::{Block, prg::Prg};

/// A transport that flips bits of a party's messages, or cuts them off.
pub use volery_channel::tamper;
pub use volery_channel::{run_two_channels, run_two_parties_with_stats, run_two_unchecked};
/// Ideal correlated OT.
pub use volery_ot::ideal as cot;
/// Ideal vector OLE over any ring, also with `u` in a subfield.
pub use volery_pcg::vole::ideal as vole;

#[cfg(feature = "psi")]
pub mod oprf;

/// Both parties of random and chosen OT over an ideal COT with a random `delta`.
pub fn ots(seed: u128) -> (convert::Sender<cot::Sender>, convert::Receiver<cot::Receiver>) {
    let mut prg = Prg::new(Block::from(seed));
    let (sender, receiver) = cot::pair(prg.block(), prg.block());
    let id = SessionId::from_bytes([0; 32]);
    (convert::Sender::new(sender, id), convert::Receiver::new(receiver, id))
}

/// Two sessions over memory, connected to each other, whose ids and randomness follow from `seed`.
#[must_use]
pub fn sessions(seed: u128) -> (Session, Session) {
    let mut prg = Prg::new(Block::from(seed));
    let mut id = [0; 32];
    prg.fill_bytes(&mut id);
    let id = SessionId::from_bytes(id);
    let (left, right) = Channel::memory_pair();
    (Session::new(left, id, prg.fork("left")), Session::new(right, id, prg.fork("right")))
}

/// A source whose calls succeed until one fails as if the peer had disconnected; then it refuses
/// every call, as the traits ask.
pub struct Failing<T> {
    source: T,
    /// Calls that succeed yet; `None` after the failure.
    left: Option<usize>,
}

impl<T> Failing<T> {
    /// Passes `calls` calls on to `source`, and fails in the next one.
    pub const fn after(calls: usize, source: T) -> Self {
        Self { source, left: Some(calls) }
    }

    fn next(&mut self) -> Result<&mut T> {
        self.left = self.left.ok_or(Error::Broken)?.checked_sub(1);
        self.left.map(|_| &mut self.source).ok_or(Error::Disconnected)
    }

    fn live(&self) -> Result<&T> {
        self.left.map(|_| &self.source).ok_or(Error::Broken)
    }
}

impl<C: CotSender> CotSender for Failing<C> {
    fn delta(&self) -> Block {
        self.try_delta().expect("no earlier call on this source of OTs failed")
    }

    fn try_delta(&self) -> Result<Block> {
        self.live()?.try_delta()
    }

    fn extend(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        self.next()?.extend(v, channel)
    }
}

impl<C: CotReceiver> CotReceiver for Failing<C> {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], channel: &mut Channel) -> Result<()> {
        self.next()?.extend(u, w, channel)
    }
}

impl<R, B, V: VoleSender<R, B>> VoleSender<R, B> for Failing<V> {
    fn extend(&mut self, u: &mut [B], v: &mut [R], channel: &mut Channel) -> Result<()> {
        self.next()?.extend(u, v, channel)
    }
}

impl<R, V: VoleReceiver<R>> VoleReceiver<R> for Failing<V> {
    fn try_x(&self) -> Result<R> {
        self.live()?.try_x()
    }

    fn extend(&mut self, w: &mut [R], channel: &mut Channel) -> Result<()> {
        self.next()?.extend(w, channel)
    }
}
