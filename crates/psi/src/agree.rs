//! What both parties agree on before their items are hashed: the sizes, and a seed that neither chose alone.
//!
//! ```text
//! offline, both: share random
//!   <--- RO(session, role, share) ------------   before the OTs
//!   ------------- the same ------------------>   behind them
//! online, when both have fixed their items:
//!   ---- size, note, terms, share -------->   <--- the same ----
//! both: seed = RO(session, sizes, notes, terms, shares)
//! ```
//!
//! The commitments keep the second to speak from choosing the seed; everything that is hashed afterwards (the salt of the
//! items, cuckoo hashing, the code) is derived from it. The terms are a hash of the protocol and its settings: parties that
//! were started differently part here.
//!
//! Cost: 32 bytes in each direction offline, which travel with the messages of the OTs, and 1 message of 64 bytes in each
//! direction online.

use std::fmt;

use volery_channel::{Channel, Error as ChannelError, SessionId};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::params::{MAX_ITEMS, Parameters};

/// Which party this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Sender,
    Receiver,
}

impl Role {
    const fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

/// What both parties are about to run, in 16 bytes.
pub(crate) type Terms = [u8; 16];

/// A share of the seed that the peer is committed to, as this party is to its own.
pub(crate) struct Committed {
    role: Role,
    session: SessionId,
    share: Zeroizing<[u8; 32]>,
    theirs: [u8; 32],
}

impl Committed {
    /// Exchanges commitments to new shares, and does what else is to be done between them. The receiver's commitment goes
    /// out first and the sender's last, so that neither waits for the other's alone.
    ///
    /// # Errors
    /// If the channel or `between` fails.
    pub(crate) fn exchange<T>(
        role: Role,
        session: SessionId,
        rng: &mut Prg,
        channel: &mut Channel,
        between: impl FnOnce(&mut Channel) -> Result<T>,
    ) -> Result<(Self, T)> {
        let mut share = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut share[..]);
        let ours = commitment(session, role, &share);
        let mut theirs = [0; 32];
        let done;
        match role {
            Role::Receiver => {
                channel.send(&ours)?;
                done = between(channel)?;
                channel.recv(&mut theirs)?;
            }
            Role::Sender => {
                channel.recv(&mut theirs)?;
                done = between(channel)?;
                channel.send(&ours)?;
                channel.flush()?;
            }
        }
        let committed = Self {
            role,
            session,
            share,
            theirs,
        };
        Ok((committed, done))
    }

    /// Both parties' commitments, from a dealer.
    #[cfg(test)]
    pub(crate) fn dealt(session: SessionId, rng: &mut Prg) -> [Self; 2] {
        let roles = [Role::Sender, Role::Receiver];
        let mut shares = [[0; 32]; 2];
        rng.fill_bytes(shares.as_flattened_mut());
        [0, 1].map(|i| Self {
            role: roles[i],
            session,
            share: Zeroizing::new(shares[i]),
            theirs: commitment(session, roles[1 - i], &shares[1 - i]),
        })
    }
}

/// What was agreed on.
#[derive(Clone)]
pub(crate) struct Agreement {
    /// Items of the sender.
    pub(crate) sender_items: u64,
    /// Items of the receiver.
    pub(crate) receiver_items: u64,
    /// What the sender said beside its size.
    pub(crate) note: u64,
    seed: [u8; 32],
}

/// Size, note, terms, share.
const MESSAGE: usize = 8 + 8 + 16 + 32;

impl Agreement {
    /// Runs the exchange for a set of `items` items; the `note` of the receiver is not looked at.
    ///
    /// # Errors
    /// If the channel fails; [`Error::TooMany`] if this set is too large, and an error of the channel if the peer's is, if
    /// the peer has other terms, or opened another share than it had committed to.
    pub(crate) fn reach(
        committed: &Committed,
        terms: Terms,
        items: usize,
        note: u64,
        channel: &mut Channel,
    ) -> Result<Self> {
        let (role, session) = (committed.role, committed.session);
        let items = items as u64;
        if items > MAX_ITEMS {
            return Err(Error::TooMany {
                items,
                most: MAX_ITEMS,
            });
        }
        let mut ours = [0; MESSAGE];
        ours[..8].copy_from_slice(&items.to_le_bytes());
        ours[8..16].copy_from_slice(&note.to_le_bytes());
        ours[16..32].copy_from_slice(&terms);
        ours[32..].copy_from_slice(&committed.share[..]);
        channel.send(&ours)?;
        let mut theirs = [0; MESSAGE];
        channel.recv(&mut theirs)?;
        if theirs[16..32] != terms {
            return Err(misbehaved(
                "it runs another protocol, or has other settings",
            ));
        }
        if word(&theirs) > MAX_ITEMS {
            return Err(misbehaved("its set is larger than any version takes"));
        }
        let share = theirs.last_chunk().expect("a message ends with 32 bytes");
        if committed.theirs != commitment(session, role.other(), share) {
            return Err(misbehaved(
                "it opened another share of the seed than it had committed to",
            ));
        }
        let (sender, receiver) = match role {
            Role::Sender => (&ours, &theirs),
            Role::Receiver => (&theirs, &ours),
        };
        let seed = RandomOracle::new("volery psi: seed")
            .absorb(session.as_bytes())
            .absorb(sender)
            .absorb(receiver)
            .finish32();
        Ok(Self {
            sender_items: word(sender),
            receiver_items: word(receiver),
            note: word(&sender[8..]),
            seed,
        })
    }

    /// The salt of the items.
    pub(crate) fn salt(&self) -> [u8; 32] {
        self.derive("salt", 0)
    }

    /// The seed of the code.
    pub(crate) fn code(&self) -> [u8; 32] {
        self.derive("code", 0)
    }

    /// The key of the cuckoo hash functions, a new one for each attempt to build the table.
    pub(crate) fn cuckoo(&self, attempt: u8) -> Block {
        let key = self.derive("cuckoo", attempt);
        let (block, _) = key.split_first_chunk().expect("32 bytes");
        Block::from_bytes(*block)
    }

    /// Keeps the tags and masks of one keyword search apart from those of all others.
    pub(crate) fn search(&self) -> Block {
        let key = self.derive("search", 0);
        let (block, _) = key.split_first_chunk().expect("32 bytes");
        Block::from_bytes(*block)
    }

    /// What a party sends when it has sent everything else: the peer then knows that it read what was meant, with the same
    /// parameters.
    pub(crate) fn end(&self, role: Role, parameters: &Parameters) -> [u8; 16] {
        let end = RandomOracle::new("volery psi: end")
            .absorb(&self.seed)
            .absorb(&[role as u8])
            .absorb_u64(parameters.bins as u64)
            .absorb_u64(parameters.stash as u64)
            .absorb_u64(parameters.width as u64)
            .absorb_u64(parameters.tag as u64)
            .finish32();
        *end.first_chunk().expect("32 bytes")
    }

    fn derive(&self, what: &str, number: u8) -> [u8; 32] {
        RandomOracle::new("volery psi: from the seed")
            .absorb(&self.seed)
            .absorb(what.as_bytes())
            .absorb(&[number])
            .finish32()
    }
}

/// The peer did something that an honest one never does.
pub(crate) fn misbehaved(what: &'static str) -> Error {
    Error::Channel(ChannelError::PeerMisbehaved(what))
}

/// Says nothing of the seed, from which the salt of the items follows.
impl fmt::Debug for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sender, receiver) = (self.sender_items, self.receiver_items);
        write!(f, "Agreement({sender} and {receiver} items, ..)")
    }
}

fn commitment(session: SessionId, role: Role, share: &[u8; 32]) -> [u8; 32] {
    RandomOracle::new("volery psi: commitment")
        .absorb(session.as_bytes())
        .absorb(&[role as u8])
        .absorb(share)
        .finish32()
}

/// The first eight bytes.
fn word(bytes: &[u8]) -> u64 {
    let bytes = bytes
        .first_chunk()
        .expect("a message has more than 8 bytes");
    u64::from_le_bytes(*bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use volery_channel::tamper::Tampered;
    use volery_channel::{memory, run_two_channels, run_two_parties_with_stats};

    use super::*;
    use crate::params::Variant;

    const SESSION: SessionId = SessionId::from_bytes([3; 32]);
    const TERMS: Terms = [5; 16];

    fn reach(role: Role, items: usize, terms: Terms, channel: &mut Channel) -> Result<Agreement> {
        let mut rng = Prg::new(Block::new(role as u128 + 1));
        let (committed, ()) = Committed::exchange(role, SESSION, &mut rng, channel, |_| Ok(()))?;
        let agreement = Agreement::reach(&committed, terms, items, 7 + items as u64, channel)?;
        channel.flush()?;
        Ok(agreement)
    }

    #[test]
    fn both_reach_the_same() {
        let ((sender, stats), (receiver, _)) = run_two_parties_with_stats(
            |channel| reach(Role::Sender, 5, TERMS, channel).unwrap(),
            |channel| reach(Role::Receiver, 9, TERMS, channel).unwrap(),
        );
        for agreement in [&sender, &receiver] {
            assert_eq!((agreement.sender_items, agreement.receiver_items), (5, 9));
            assert_eq!(agreement.note, 12);
        }
        assert_eq!(sender.seed, receiver.seed);
        assert_eq!((stats.bytes_sent, stats.bytes_received), (96, 96));
        let derived = [
            sender.salt(),
            sender.code(),
            sender.derive("cuckoo", 0),
            sender.derive("cuckoo", 1),
            sender.derive("search", 0),
        ];
        assert!((0..5).all(|i| (0..i).all(|j| derived[i] != derived[j])));
    }

    #[test]
    fn ends_differ_by_party_and_parameters() {
        let (mut left, mut right) = Channel::memory_pair();
        let (agreement, _) = std::thread::scope(|scope| {
            let receiver = scope.spawn(|| reach(Role::Receiver, 9, TERMS, &mut right).unwrap());
            let sender = reach(Role::Sender, 5, TERMS, &mut left).unwrap();
            (sender, receiver.join().unwrap())
        });
        let parameters = Parameters::new(Variant::Kkrt, 5, 9);
        let mut ends = vec![
            agreement.end(Role::Sender, &parameters),
            agreement.end(Role::Receiver, &parameters),
        ];
        let changes: [fn(&mut Parameters); 4] = [
            |parameters| parameters.bins += 1,
            |parameters| parameters.stash += 1,
            |parameters| parameters.width += 8,
            |parameters| parameters.tag += 1,
        ];
        for change in changes {
            let mut changed = parameters.clone();
            change(&mut changed);
            ends.push(agreement.end(Role::Sender, &changed));
        }
        assert!((0..6).all(|i| (0..i).all(|j| ends[i] != ends[j])));
    }

    #[test]
    fn other_terms_are_refused_by_both() {
        let (left, right) = Channel::memory_pair();
        let ((sender, _), (receiver, _)) = run_two_channels(
            left,
            right,
            |channel| reach(Role::Sender, 5, TERMS, channel),
            |channel| reach(Role::Receiver, 9, [6; 16], channel),
        );
        for error in [sender.unwrap_err(), receiver.unwrap_err()] {
            assert!(error.to_string().contains("other settings"), "{error}");
        }
    }

    /// Each byte of what the sender says is either refused by the receiver or changes what it agrees to.
    #[test]
    fn a_changed_byte_does_not_pass() {
        for at in 0..96 {
            let (ours, theirs) = memory::pair();
            let timeout = Some(std::time::Duration::from_secs(5));
            let (_, (receiver, _)) = run_two_channels(
                Channel::with_timeout(Tampered::flip(ours, at, 0x40), timeout),
                Channel::with_timeout(theirs, timeout),
                |channel| reach(Role::Sender, 5, TERMS, channel),
                |channel| reach(Role::Receiver, 9, TERMS, channel),
            );
            match receiver {
                Ok(agreement) => {
                    let numbers = 32..48;
                    assert!(numbers.contains(&at), "{at}");
                    assert_ne!((agreement.sender_items, agreement.note), (5, 12));
                }
                Err(Error::Channel(ChannelError::PeerMisbehaved(_))) => {}
                Err(other) => panic!("{at}: {other}"),
            }
        }
    }

    #[test]
    fn a_set_that_is_too_large_is_refused() {
        let mut channel = Channel::memory_pair().0;
        let [committed, _] = Committed::dealt(SESSION, &mut Prg::new(Block::ONE));
        let items = MAX_ITEMS as usize + 1;
        let sender = Agreement::reach(&committed, TERMS, items, 0, &mut channel);
        assert!(matches!(sender, Err(Error::TooMany { .. })));
    }
}
