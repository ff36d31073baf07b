//! Oblivious transfer: base OT, OT extension, and the conversions between the forms of OT.
//!
//! Upper layers need only *correlated OT* (COT) with random choice bits, which is the vector OLE
//! correlation over (F_2, F_2^128):
//!
//! ```text
//! w = v + u*delta        sender: delta, v        receiver: u (bits), w
//! ```
//!
//! [`CotSender`] and [`CotReceiver`] are its two parties. The modules of this crate:
//!
//! * [`base`]: 128 and more OTs from public-key operations (endemic OT of Masny and Rindal);
//! * [`softspoken`]: many COTs from 128 base OTs, secure against malicious parties unless its check
//!   is switched off;
//! * [`convert`]: every other form of OT (chosen choice bits, random or chosen messages) from any
//!   source of COTs;
//! * `ideal`: a trusted dealer without any security, for the tests of upper layers; available only
//!   with the Cargo feature `testing`.
//!
//! Roles: the *sender* of a COT holds `delta`, whichever party sends or receives messages.
//!
//! # Examples
//!
//! OT of chosen blocks, with choices that the receiver picks. A real run takes its session from the
//! handshake and its seeds from [`Prg::from_os`](volery_primitives::prg::Prg::from_os).
//!
//! ```
//! use volery_channel::{SessionId, run_two_parties};
//! use volery_ot::softspoken::{self, SmallField};
//! use volery_ot::{Result, convert};
//! use volery_primitives::{Block, prg::Prg};
//!
//! let session = SessionId::from_bytes([7; 32]);
//! let field = SmallField::Bits4;
//! let messages = [[Block::from(10), Block::from(11)], [Block::from(20), Block::from(21)]];
//! let (sent, received) = run_two_parties(
//!     |channel| -> Result<()> {
//!         let rng = Prg::new(Block::from(1));
//!         let cot = softspoken::Sender::setup(None, field, session, rng, channel)?;
//!         convert::Sender::new(cot, session).chosen(&messages, channel)
//!     },
//!     |channel| -> Result<[Block; 2]> {
//!         let rng = Prg::new(Block::from(2));
//!         let cot = softspoken::Receiver::setup(field, session, rng, channel)?;
//!         let mut chosen = [Block::ZERO; 2];
//!         // Message 1 of the first OT, message 0 of the second.
//!         convert::Receiver::new(cot, session).chosen(&[0b01], &mut chosen, channel)?;
//!         Ok(chosen)
//!     },
//! );
//! sent?;
//! assert_eq!(received?, [messages[0][1], messages[1][0]]);
//! # Ok::<_, volery_ot::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod base;
mod batches;
mod bits;
pub mod convert;
#[cfg(any(test, feature = "testing"))]
pub mod ideal;
mod poisonable;
pub mod softspoken;

use volery_channel::Channel;
use volery_primitives::Block;

pub use volery_channel::{Error, Result};

/// The holder of `delta` in a source of correlated OTs, `w = v + u*delta` in GF(2)^128.
///
/// `extend` may be called any number of times, with any lengths; the receiver must make the same
/// calls with the same lengths. An implementation must not write an output that has not passed its
/// checks. After a failed call it must refuse every later one with [`Error::Broken`], and should
/// have deleted its state.
pub trait CotSender {
    /// The global difference `delta`, the same for all correlations of this source.
    ///
    /// # Panics
    /// If a call failed: `delta` is deleted with the rest of the state, as the peer may know some
    /// of it.
    fn delta(&self) -> Block;

    /// As [`delta`](Self::delta), without its panic.
    ///
    /// # Errors
    /// [`Error::Broken`] if a call failed, here or on an object that shares secrets with this one.
    fn try_delta(&self) -> Result<Block> {
        Ok(self.delta())
    }

    /// Fills `v` with `v.len()` fresh values.
    ///
    /// # Errors
    /// If the channel fails, or if the peer is caught cheating. The content of `v` is then
    /// unspecified and must not be used. [`Error::Broken`] if an earlier call failed.
    fn extend(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()>;

    /// Frees memory that the next call makes again, where there is some: of an OT extension. Other
    /// sources do so by themselves.
    fn rest(&mut self) {}
}

/// The holder of the choice bits in a source of correlated OTs, `w = v + u*delta` in GF(2)^128.
pub trait CotReceiver {
    /// Fills `u` with `w.len()` fresh random bits (packed, low bit first, unused bits of the last
    /// byte zero) and `w` with the matching values.
    ///
    /// # Panics
    /// If `u.len()` is not `w.len().div_ceil(8)`.
    ///
    /// # Errors
    /// If the channel fails. The content of `u` and `w` is then unspecified and must not be used.
    /// [`Error::Broken`] if an earlier call failed.
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], channel: &mut Channel) -> Result<()>;

    /// Frees memory that the next call makes again, where there is some: of an OT extension. Other
    /// sources do so by themselves.
    fn rest(&mut self) {}
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<C: CotSender + ?Sized> CotSender for $pointer {
            fn delta(&self) -> Block {
                (**self).delta()
            }

            fn try_delta(&self) -> Result<Block> {
                (**self).try_delta()
            }

            fn extend(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
                (**self).extend(v, channel)
            }

            fn rest(&mut self) {
                (**self).rest();
            }
        }

        impl<C: CotReceiver + ?Sized> CotReceiver for $pointer {
            fn extend(&mut self, u: &mut [u8], w: &mut [Block], peer: &mut Channel) -> Result<()> {
                (**self).extend(u, w, peer)
            }

            fn rest(&mut self) {
                (**self).rest();
            }
        }
    )*};
}

forward!(&mut C, Box<C>);
