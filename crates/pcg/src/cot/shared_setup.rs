//! The OT extension that several correlated OTs of the same two parties share, so that public-key
//! operations run once: lanes, for one thread or purpose each.
//!
//! Each takes a fork of the extension ([`volery_ot::softspoken`]), with the same `delta` and trees
//! of its own, in a session that is a hash of this one's and of its number. Before that the parties
//! compare session and plan.
//!
//! Security: that of the correlated OTs, with one `delta`; guesses at it add up. A failed call on
//! any of them ends all, as in [`crate::vole::shared_setup`].
//!
//! Cost: one setup of SoftSpoken with `k` = 8, whichever base a plan names.

use volery_channel::{Channel, Result, SessionId};
use volery_ot::softspoken::{self, SmallField};
use volery_primitives::{Block, prg::Prg};
use zeroize::Zeroizing;

use crate::vole::shared_setup::GuardedExtensions;

/// The end of the holder of `delta`.
pub struct Sender(pub(super) GuardedExtensions<softspoken::Sender>);

/// The end of the holders of `u`.
pub struct Receiver(pub(super) GuardedExtensions<softspoken::Receiver>);

impl Sender {
    /// The setup for the given `delta` or a random one, whose lowest bit is set. `session` is the
    /// one of the handshake, or another for each shared setup.
    ///
    /// # Panics
    /// If the lowest bit of a given `delta` is not set.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves.
    pub fn setup(
        delta: Option<Block>,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let delta = Zeroizing::new(delta.unwrap_or_else(|| rng.block() | Block::ONE));
        assert!(delta.lsb(), "the lowest bit of a shared delta is set");
        let field = SmallField::Bits8;
        let extension = softspoken::Sender::setup(Some(*delta), field, session, rng, channel)?;
        Ok(Self(GuardedExtensions::new(session, extension)))
    }
}

impl Receiver {
    /// The setup, as the peer of [`Sender::setup`].
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves.
    pub fn setup(session: SessionId, rng: Prg, channel: &mut Channel) -> Result<Self> {
        let extension = softspoken::Receiver::setup(SmallField::Bits8, session, rng, channel)?;
        Ok(Self(GuardedExtensions::new(session, extension)))
    }
}
