//! The state that several vector-OLEs between the same two parties share, so that public-key
//! operations run once.
//!
//! A vector-OLE has one `x`. A product of a matrix and a vector takes one vector-OLE for each entry
//! of the vector, and each would begin with the base OTs of an extension for its trees and with
//! base OTs on the bits of its `x`. A shared setup holds two OT extensions, one in each direction,
//! which are set up once.
//!
//! ```text
//! Sender                                  Receiver
//! 1. -------- SoftSpoken setup for the trees: the receiver holds delta --------
//! 2. -------- SoftSpoken setup for the bits of x: the sender holds another delta --------
//! ```
//!
//! Vector-OLE number `j` ([`super::Sender::setup_with`]) then takes a fork of the first
//! ([`volery_ot::softspoken`]), which has the same `delta` and separate trees, and from the second
//! a random OT for each bit of `x_j`, chosen by that bit, in place of a base OT. Its session is a
//! hash of the shared setup's session and of `j`, so that no two vector-OLEs use the same hash or
//! generator. Before that both parties send hashes of this session and of the plan, and end the
//! shared setup if the two differ.
//!
//! Security: that of the vector-OLEs. Sharing `delta` makes all of their tree OTs those of one
//! extension with more outputs; the guesses at `delta` in the extension, and all other attacks of a
//! malicious peer at the risk of an abort, add up over all vector-OLEs. The same holds in the other
//! direction: the holder of the `x` is the receiver of the second extension, and can guess parts of
//! its `delta`, with which it would get both messages of each OT on the bits of an `x`, at the risk
//! of an abort. So a failed call on any of them, for any reason, ends the shared setup and all
//! others: every later call is [`Error::Broken`]. The state of the failed shared setup or
//! vector-OLE is wiped at once, that of the others at their next call or when they are dropped. The
//! random OTs on the bits of `x` have the functionality of the base OTs that they replace:
//! malicious parties may choose their own messages, and nothing else.
//!
//! Cost: of the setup, that of two setups of SoftSpoken with `k` = 8, in opposite directions. Of a
//! vector-OLE, in place of steps 1 and 2 of [`super`]: 32 bytes from each party, both at once, then
//! one message from the receiver of `15*c/8 + 48` bytes and one bit for each OT, with `c` 256 (528
//! bytes and 8 in fp61 and z64, 16 in gf128); in gf128 also the setup of the packed base without
//! its base OTs.

use volery_channel::{Channel, Error, Result, SessionId};
use volery_ot::{convert, softspoken};
use volery_primitives::{prg::Prg, ro::RandomOracle};

use super::OT_FIELD;
use crate::agree::{self, End};
use crate::{Plan, stream::Failure};

/// The endpoint of the holder of the `u` and `v`.
pub struct Sender {
    pub(super) extensions: GuardedExtensions<SenderExtensions>,
}

/// The share of the holder of the `u` and `v` in both extensions.
pub(super) struct SenderExtensions {
    pub(super) trees: softspoken::Receiver,
    pub(super) bits: convert::Sender<softspoken::Sender>,
}

/// The endpoint of the holder of the `x`.
pub struct Receiver {
    pub(super) extensions: GuardedExtensions<ReceiverExtensions>,
}

/// The share of the holder of the `x` in both extensions.
pub(super) struct ReceiverExtensions {
    pub(super) trees: softspoken::Sender,
    pub(super) bits: convert::Receiver<softspoken::Receiver>,
}

impl Sender {
    /// Steps 1 and 2. `session` is the one of the handshake, or a separate one for each shared
    /// setup; `rng` is the randomness of this party.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let part = |name| sub(session, name);
        let trees =
            softspoken::Receiver::setup(OT_FIELD, part("trees"), rng.fork("trees"), channel)?; // step 1
        let bits =
            softspoken::Sender::setup(None, OT_FIELD, part("bits"), rng.fork("bits"), channel)?; // step 2
        let extensions =
            SenderExtensions { trees, bits: convert::Sender::new(bits, part("bits hash")) };
        Ok(Self { extensions: GuardedExtensions::new(session, extensions) })
    }
}

impl Receiver {
    /// Steps 1 and 2, as the peer of [`Sender::setup`].
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let part = |name| sub(session, name);
        let trees =
            softspoken::Sender::setup(None, OT_FIELD, part("trees"), rng.fork("trees"), channel)?; // step 1
        let bits = softspoken::Receiver::setup(OT_FIELD, part("bits"), rng.fork("bits"), channel)?; // step 2
        let extensions =
            ReceiverExtensions { trees, bits: convert::Receiver::new(bits, part("bits hash")) };
        Ok(Self { extensions: GuardedExtensions::new(session, extensions) })
    }
}

/// A party's extensions, for one vector-OLE after the other, each with a session of its own.
pub(crate) struct GuardedExtensions<E> {
    session: SessionId,
    next: u64,
    failure: Failure,
    /// `None` after a failed call.
    extensions: Option<E>,
}

impl<E> GuardedExtensions<E> {
    pub(crate) fn new(session: SessionId, extensions: E) -> Self {
        Self { session, next: 0, failure: Failure::default(), extensions: Some(extensions) }
    }

    /// Compares what both parties start next (step 0 of the vector-OLE), and runs its setup.
    pub(crate) fn set_up<T>(
        &mut self,
        end: End,
        plan: &Plan,
        channel: &mut Channel,
        setup: impl FnOnce(&mut E, SessionId, Failure, &mut Channel) -> Result<T>,
    ) -> Result<T> {
        plan.open_card()?;
        let session = self.next_session();
        let mut extensions = self.extensions.take().ok_or(Error::Broken)?;
        let failure = self.failure.clone();
        let output = self.failure.guarded(|| {
            agree::start(end, session, plan, channel)?;
            channel.settle()?;
            setup(&mut extensions, session, failure, channel)
        })?;
        self.extensions = Some(extensions);
        Ok(output)
    }

    fn next_session(&mut self) -> SessionId {
        let mut oracle = RandomOracle::new("volery vole kit: one vector-OLE");
        // mutant(kit-session): drop
        oracle.absorb(self.session.as_bytes());
        // mutant(kit-number): drop
        oracle.absorb_u64(self.next);
        self.next += 1;
        SessionId::from_bytes(oracle.finish32())
    }
}

/// A separate session for a part of the shared setup.
fn sub(session: SessionId, part: &str) -> SessionId {
    let mut oracle = RandomOracle::new("volery vole kit: part");
    // mutant(kit-part-session): drop
    oracle.absorb(session.as_bytes());
    // mutant(kit-part): drop
    oracle.absorb(part.as_bytes());
    SessionId::from_bytes(oracle.finish32())
}

#[cfg(test)]
mod tests;
