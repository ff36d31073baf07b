//! Oblivious transfer: base OT, OT extension, and the conversions between the forms of OT.
//!
//! The one thing that upper layers ask for is *correlated OT* (COT) with random choice bits, which is the
//! vector OLE correlation over (F_2, F_2^128):
//!
//! ```text
//! w = v + u*delta        sender: delta, v        receiver: u (bits), w
//! ```
//!
//! [`CotSender`] and [`CotReceiver`] are its two ends. The rooms of this crate:
//!
//! * [`base`]: 128 and more OTs from public-key operations (endemic OT of Masny and Rindal);
//! * [`softspoken`]: many COTs from 128 base OTs, secure against malicious parties;
//! * [`iknp`]: the semi-honest baseline, for comparison only;
//! * [`flavour`]: every other form of OT (chosen choice bits, random or chosen messages) from any source of COTs;
//! * [`ideal`]: a trusted dealer, for the tests of upper layers.
//!
//! Roles: the *sender* of a COT holds `delta`, whoever else sends or receives messages on the way.

#![forbid(unsafe_code)]

pub mod base;
mod bits;
pub mod flavour;
pub mod ideal;
pub mod iknp;
pub mod softspoken;

use volery_channel::Channel;
use volery_primitives::Block;

pub use volery_channel::{Error, Result};

/// The holder of `delta` in a source of correlated OTs, `w = v + u*delta` in GF(2)^128.
///
/// `extend` may be called any number of times, with any lengths; the receiver must make the same calls with the same
/// lengths. An implementation must not write an output that has not passed its checks, and must refuse every call
/// after a failed one.
pub trait CotSender {
    /// The global difference `delta`, the same for all correlations of this source.
    fn delta(&self) -> Block;

    /// Fill `v` with `v.len()` fresh values.
    ///
    /// # Errors
    /// If the channel fails, or if the peer was caught cheating, now or before. The content of `v` is then unspecified
    /// and must not be used.
    fn extend(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()>;
}

/// The holder of the choice bits in a source of correlated OTs, `w = v + u*delta` in GF(2)^128.
pub trait CotReceiver {
    /// Fill `u` with `w.len()` fresh random bits (packed, low bit first, unused bits of the last byte zero) and `w`
    /// with the matching values.
    ///
    /// # Panics
    /// If `u.len()` is not `w.len().div_ceil(8)`.
    ///
    /// # Errors
    /// If the channel fails, now or before. The content of `u` and `w` is then unspecified and must not be used.
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], channel: &mut Channel) -> Result<()>;
}

impl<C: CotSender + ?Sized> CotSender for &mut C {
    fn delta(&self) -> Block {
        (**self).delta()
    }

    fn extend(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        (**self).extend(v, channel)
    }
}

impl<C: CotReceiver + ?Sized> CotReceiver for &mut C {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], channel: &mut Channel) -> Result<()> {
        (**self).extend(u, w, channel)
    }
}

impl<C: CotSender + ?Sized> CotSender for Box<C> {
    fn delta(&self) -> Block {
        (**self).delta()
    }

    fn extend(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        (**self).extend(v, channel)
    }
}

impl<C: CotReceiver + ?Sized> CotReceiver for Box<C> {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], channel: &mut Channel) -> Result<()> {
        (**self).extend(u, w, channel)
    }
}
