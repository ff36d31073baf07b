//! More extensions between the same parties, without public-key operations.
//!
//! *Forks.* A fork has the `delta` of its parent extension and trees of its own: the seed of each
//! leaf is one block of the row of the same leaf of the parent, at a position that no row of a
//! batch covers. So the sender, who lacks one leaf of each tree of the parent, lacks that leaf of
//! the fork, and to the sender its seed is as random as that block. Its transcript continues the
//! parent's under the fork's session, and with it all challenges and the first counters of its
//! rows.
//!
//! Security: that of one longer session of the extension. The argument of `check` needs the rows
//! fixed before the challenge, and a receiver can compute challenges of forks before it has
//! answered in the parent. That does not help it: each challenge is an oracle's image of a
//! transcript that begins with the tags of the setup, which bind all leaves of all trees of the
//! parent. The seeds of every fork, and of its forks, are blocks of the rows of these leaves, so no
//! row of any fork is open when the first challenge is computed. Only the `d_i` of a batch can
//! still be chosen, and they are in its own challenge. A receiver that tries challenges must still
//! hit one, with the probability of `check` for each evaluation.
//!
//! A receiver's guesses at parts of `delta` add up over all forks, and a wrong one must end all of
//! them. So a failed call on one object makes every later call on all of its family fail with
//! [`Error::Broken`](crate::Error::Broken); the others wipe their state at their next call or when
//! they are dropped, and until then return neither outputs nor `delta`. This covers only the calls
//! of the extension. A failure above it (a difference that [`convert`](crate::convert) refuses, a
//! failed check of a layer that uses the OTs) ends the object on which it happens and reaches no
//! other fork: a layer with checks of its own must then end all forks itself. A layer that derives
//! keys from outputs gives the hashes of each fork a separate session, as
//! [`convert`](crate::convert) requires.
//!
//! *Given OTs.* [`Sender::setup_from_ots`] takes 128 existing random OTs, chosen by the bits of a
//! new `delta`: from another extension, as [`convert`](crate::convert) produces them. They must
//! have the security required of the extension. Base OTs give each setup a transcript of its own;
//! here only the `session` does, so it must never repeat.
//!
//! Cost: a fork takes no message and one AES call for each leaf; a setup from given OTs costs a
//! setup without base OTs.

use volery_channel::Channel;
use volery_channel::handshake::SessionId;
use volery_primitives::Block;
use zeroize::Zeroizing;

use super::check::Transcript;
use super::{Live, Receiver, Sender, Settings, State};
use crate::Result;

impl Sender {
    /// Another extension with the same `delta`, bound to `session`. Both parties fork at the same
    /// point of their calls.
    ///
    /// # Errors
    /// [`Error::Broken`](crate::Error::Broken) if a call failed, here or on another object of the
    /// family.
    pub fn fork(&mut self, session: SessionId) -> Result<Self> {
        let live = self.0.get_mut()?;
        let fork = Live { delta: live.delta.clone(), state: live.state.fork(session) };
        Ok(Self(self.0.sibling(fork)))
    }

    /// Sets up like [`setup_for_scalar`](Self::setup_for_scalar), with 128 existing random OTs:
    /// `keys[i]` is the message that bit `i` of `delta` chose. No two setups have the same
    /// `session`. The peer calls [`Receiver::setup_from_ots`].
    ///
    /// # Panics
    /// If there are not 128 keys.
    ///
    /// # Errors
    /// If the channel fails, or if a check of the peer's messages fails.
    pub fn setup_from_ots(
        delta: Block,
        keys: &[Block],
        settings: impl Into<Settings>,
        session: SessionId,
        channel: &mut Channel,
    ) -> Result<Self> {
        assert_eq!(keys.len(), 128, "one OT for each bit of delta");
        let given = Transcript::of_given_ots(session);
        Self::from_base(Zeroizing::new(delta), keys, &given, settings, session, channel)
    }
}

impl Receiver {
    /// The peer's [`Sender::fork`].
    ///
    /// # Errors
    /// [`Error::Broken`](crate::Error::Broken) if a call failed, here or on another object of the
    /// family.
    pub fn fork(&mut self, session: SessionId) -> Result<Self> {
        let fork = self.0.get_mut()?.fork(session);
        Ok(Self(self.0.sibling(fork)))
    }

    /// The peer of [`Sender::setup_from_ots`]: `keys[i]` are both messages of OT `i`. No two setups
    /// have the same `session`.
    ///
    /// # Panics
    /// If there are not 128 pairs.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn setup_from_ots(
        keys: &[[Block; 2]],
        settings: impl Into<Settings>,
        session: SessionId,
        channel: &mut Channel,
    ) -> Result<Self> {
        assert_eq!(keys.len(), 128, "one OT for each bit of delta");
        let given = Transcript::of_given_ots(session);
        Self::from_base(keys, &given, settings, session, channel)
    }
}

impl State {
    /// The state of a fork; uses up the block from which its seeds are made.
    fn fork(&mut self, session: SessionId) -> Self {
        let seeds = self.leaves.block_of_each(self.next);
        // mutant(softspoken-fork-seeds): drop
        self.next += 1;
        let transcript = self.transcript.fork(session);
        Self::new(self.settings, seeds, transcript)
    }
}

#[cfg(test)]
mod tests {
    use volery_channel::{run_two_parties, run_two_unchecked};
    use volery_primitives::prg::Prg;

    use super::super::SmallField;
    use super::*;
    use crate::{CotReceiver as _, CotSender as _, Error};

    const N: usize = 200;

    fn session(number: u8) -> SessionId {
        SessionId::from_bytes([number; 32])
    }

    /// The seeds of a fork are no part of any stream: not of the parent's, not of another fork's
    /// seeds.
    #[test]
    fn the_seeds_of_a_fork_are_not_used_again() {
        run_two_parties(
            |channel| {
                let rng = Prg::new(Block::from(1));
                let field = SmallField::Bits4;
                let mut parent = Sender::setup(None, field, session(0), rng, channel).unwrap();
                let mut seeds = || {
                    let state = &parent.0.get_mut().unwrap().state;
                    let seeds = state.leaves.block_of_each(state.next);
                    parent.fork(session(1)).unwrap();
                    seeds
                };
                let [one, other] = [seeds(), seeds()];
                assert!(one.iter().all(|seed| !other.contains(seed)));
                let state = &parent.0.get_mut().unwrap().state;
                let next = state.leaves.block_of_each(state.next);
                assert!(next.iter().all(|block| !other.contains(block)));
            },
            |channel| {
                let rng = Prg::new(Block::from(2));
                Receiver::setup(SmallField::Bits4, session(0), rng, channel).unwrap();
            },
        );
    }

    /// A receiver caught in one fork has ended them all.
    #[test]
    fn a_failed_fork_ends_the_family() {
        run_two_unchecked(
            |channel| {
                let rng = Prg::new(Block::from(1));
                let field = SmallField::Bits8;
                let mut parent = Sender::setup(None, field, session(0), rng, channel).unwrap();
                let mut a = parent.fork(session(1)).unwrap();
                let mut b = parent.fork(session(2)).unwrap();
                let v = &mut [Block::ZERO; N];
                assert!(matches!(a.extend(v, channel), Err(Error::PeerMisbehaved(_))));
                for one in [&parent, &a, &b] {
                    let delta = std::panic::AssertUnwindSafe(|| one.delta());
                    assert!(std::panic::catch_unwind(delta).is_err());
                }
                for one in [&mut parent, &mut a, &mut b] {
                    assert!(matches!(one.extend(v, channel), Err(Error::Broken)));
                    assert!(matches!(one.fork(session(3)).map(|_| ()), Err(Error::Broken)));
                }
            },
            |channel| {
                let rng = Prg::new(Block::from(2));
                let mut parent =
                    Receiver::setup(SmallField::Bits8, session(0), rng, channel).unwrap();
                // Another session: the same rows with another challenge.
                let mut wrong = parent.fork(session(9)).unwrap();
                let (mut u, mut w) = (vec![0; N / 8], vec![Block::ZERO; N]);
                wrong.extend(&mut u, &mut w, channel).unwrap();
            },
        );
    }
}
