//! What several vector-OLEs between the same two parties share, so that public-key operations are done once.
//!
//! A vector-OLE has one `x`. A product of a matrix and a vector takes one for each entry of the vector, and each would begin
//! with the base OTs of an extension for its trees and with base OTs on the bits of its `x`. A kit holds two OT extensions, one
//! in each direction, which are set up once.
//!
//! ```text
//! Sender                                  Receiver
//! 1. -------- SoftSpoken setup for the trees: the receiver holds delta --------
//! 2. -------- SoftSpoken setup for the bits of x: the sender holds another delta --------
//! ```
//!
//! Vector-OLE number `j` ([`super::Sender::setup_with`]) then takes a fork of the first ([`volery_ot::softspoken`]), which
//! has the same `delta` and trees of its own, and from the second a random OT for each bit of `x_j`, chosen by that bit, in place
//! of a base OT. Its session is a hash of the kit's session and of `j`, so that no hash or generator is used by two. Before that
//! both parties send a hash of this session, the ring and the plan, and end the kit if the two differ.
//!
//! Security: that of the vector-OLEs. Sharing `delta` makes all of their tree OTs those of one extension with more outputs; the
//! extension's guesses at `delta`, and all else that a cheating peer can try at the risk of an abort, add up over all
//! vector-OLEs. The same holds the other way: the holder of the `x` is the receiver of the second extension, and can guess parts of
//! its `delta`, with which it would get both messages of each OT on the bits of an `x`, at the risk of an abort. So a failed call
//! on any of them, whatever failed, ends the kit and all others: every later call is [`Error::Broken`]. What the kit, or the
//! vector-OLE, that failed held is wiped at once, what the others hold at their next call or when they are dropped.
//! The random OTs on the bits of `x` have the functionality of the base OTs that they replace: malicious parties may choose
//! their own messages, and nothing else.
//!
//! Cost: of the setup, that of two setups of SoftSpoken with `k` = 8, in opposite directions. Of a vector-OLE, in place of steps 1 and 2
//! of [`super`]: 32 bytes from each party, both at once, then one message from the receiver of `15*c/8 + 48` bytes and one bit for
//! each OT, with `c` 256 (528 bytes and 8 in fp61 and z64, 16 in gf128); in gf128 also the setup of the packed base without its base
//! OTs.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use volery_channel::{Channel, Error, Result, SessionId};
use volery_ot::{flavour, softspoken};
use volery_primitives::{prg::Prg, ro::RandomOracle};

use super::OT_FIELD;

/// The end of the holder of the `u` and `v`.
pub struct Sender {
    /// Until a call failed.
    extensions: Option<SenderExtensions>,
    numbers: Numbers,
}

/// What the holder of the `u` and `v` has of both extensions.
pub(super) struct SenderExtensions {
    pub(super) trees: softspoken::Receiver,
    pub(super) bits: flavour::Sender<softspoken::Sender>,
}

/// The end of the holder of the `x`.
pub struct Receiver {
    /// Until a call failed.
    extensions: Option<ReceiverExtensions>,
    numbers: Numbers,
}

/// What the holder of the `x` has of both extensions.
pub(super) struct ReceiverExtensions {
    pub(super) trees: softspoken::Sender,
    pub(super) bits: flavour::Receiver<softspoken::Receiver>,
}

impl Sender {
    /// Steps 1 and 2. `session` is the one of the handshake, or one of its own for each kit; `rng` this party's own randomness.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let part = |name| sub(session, name);
        let trees =
            softspoken::Receiver::setup(OT_FIELD, part("trees"), rng.fork("trees"), channel)?; // step 1
        let bits =
            softspoken::Sender::setup(None, OT_FIELD, part("bits"), rng.fork("bits"), channel)?; // step 2
        Ok(Self {
            extensions: Some(SenderExtensions {
                trees,
                bits: flavour::Sender::new(bits, part("bits hash")),
            }),
            numbers: Numbers::new(session),
        })
    }

    /// Runs the setup of the next vector-OLE.
    pub(super) fn guarded<T>(
        &mut self,
        setup: impl FnOnce(&mut SenderExtensions, SessionId, Family) -> Result<T>,
    ) -> Result<T> {
        let (session, family) = self.numbers.next();
        let mut extensions = self.extensions.take().ok_or(Error::Broken)?;
        let output = family
            .clone()
            .guarded(|| setup(&mut extensions, session, family))?;
        self.extensions = Some(extensions);
        Ok(output)
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
        Ok(Self {
            extensions: Some(ReceiverExtensions {
                trees,
                bits: flavour::Receiver::new(bits, part("bits hash")),
            }),
            numbers: Numbers::new(session),
        })
    }

    /// Runs the setup of the next vector-OLE.
    pub(super) fn guarded<T>(
        &mut self,
        setup: impl FnOnce(&mut ReceiverExtensions, SessionId, Family) -> Result<T>,
    ) -> Result<T> {
        let (session, family) = self.numbers.next();
        let mut extensions = self.extensions.take().ok_or(Error::Broken)?;
        let output = family
            .clone()
            .guarded(|| setup(&mut extensions, session, family))?;
        self.extensions = Some(extensions);
        Ok(output)
    }
}

/// Whether a call on one of the objects that share a kit failed.
#[derive(Clone, Default)]
pub(super) struct Family(Arc<AtomicBool>);

impl Family {
    /// # Errors
    /// [`Error::Broken`] if a call of the family failed.
    pub(super) fn alive(&self) -> Result<()> {
        if self.0.load(Ordering::SeqCst) {
            return Err(Error::Broken);
        }
        Ok(())
    }

    /// Runs a call; if it fails, or panics, it was the last of the family. If another call of the family fails meanwhile, on
    /// another thread, it has failed too.
    pub(super) fn guarded<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.alive()?;
        let alarm = Alarm(&self.0);
        let output = call()?;
        std::mem::forget(alarm);
        self.alive()?;
        Ok(output)
    }
}

/// Sets the flag when it is dropped.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The sessions of a kit's vector-OLEs.
struct Numbers {
    session: SessionId,
    next: u64,
    family: Family,
}

impl Numbers {
    fn new(session: SessionId) -> Self {
        Self {
            session,
            next: 0,
            family: Family::default(),
        }
    }

    fn next(&mut self) -> (SessionId, Family) {
        let mut oracle = RandomOracle::new("volery vole kit: one vector-OLE");
        oracle.absorb(self.session.as_bytes());
        oracle.absorb_u64(self.next);
        self.next += 1;
        (
            SessionId::from_bytes(oracle.finish32()),
            self.family.clone(),
        )
    }
}

/// Both parties: whether the peer makes the same vector-OLE, by the hash of its number, ring and plan.
pub(super) fn agree(mine: SessionId, channel: &mut Channel) -> Result<()> {
    channel.send(mine.as_bytes())?;
    channel.flush()?;
    let mut theirs = [0; 32];
    channel.recv(&mut theirs)?;
    if theirs != *mine.as_bytes() {
        return Err(Error::PeerMisbehaved(
            "it makes this vector-OLE for another plan, over another ring or as another one of the kit",
        ));
    }
    Ok(())
}

/// A session of its own for a part of the kit.
fn sub(session: SessionId, part: &str) -> SessionId {
    let mut oracle = RandomOracle::new("volery vole kit: part");
    oracle.absorb(session.as_bytes());
    oracle.absorb(part.as_bytes());
    SessionId::from_bytes(oracle.finish32())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
