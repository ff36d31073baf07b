//! What both parties agree on before their items are hashed: the sizes, and a seed that neither chose alone.
//!
//! ```text
//! both: share random
//!   ---- size, note, RO(session, role, share) --->   <--- the same ----
//!   -------------------- share ------------------>   <----- share -----
//! both: seed = RO(session, sizes, notes, shares)
//! ```
//!
//! Both call this when their items are fixed. The commitments keep the second to speak from choosing the seed; everything
//! that is hashed afterwards (the salt of the items, cuckoo hashing, the code) is derived from it.
//!
//! Cost: 2 messages in each direction, 48 and 32 bytes.

use volery_channel::{Channel, Error as ChannelError, SessionId};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;

use crate::error::{Error, Result};
use crate::params::MAX_ITEMS;

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

/// What was agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Agreement {
    /// Items of the sender.
    pub(crate) sender_items: u64,
    /// Items of the receiver.
    pub(crate) receiver_items: u64,
    /// What the sender said beside its size.
    pub(crate) note: u64,
    seed: [u8; 32],
}

impl Agreement {
    /// Runs the exchange for a set of `items` items; the `note` of the receiver is not looked at.
    ///
    /// # Errors
    /// If the channel fails; [`Error::TooMany`] if this set is too large, and an error of the channel if the peer's is, or
    /// the peer opened another share than it had committed to.
    pub(crate) fn reach(
        role: Role,
        items: usize,
        note: u64,
        session: SessionId,
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let items = items as u64;
        if items > MAX_ITEMS {
            return Err(Error::TooMany {
                items,
                most: MAX_ITEMS,
            });
        }
        let mut share = [0; 32];
        rng.fill_bytes(&mut share);
        let mut ours = [0; 48];
        ours[..8].copy_from_slice(&items.to_le_bytes());
        ours[8..16].copy_from_slice(&note.to_le_bytes());
        ours[16..].copy_from_slice(&commitment(session, role, &share));
        channel.send(&ours)?;
        let mut theirs = [0; 48];
        channel.recv(&mut theirs)?;
        if word(&theirs) > MAX_ITEMS {
            return Err(misbehaved("its set is larger than any version takes"));
        }
        channel.send(&share)?;
        let mut other = [0; 32];
        channel.recv(&mut other)?;
        if theirs[16..] != commitment(session, role.other(), &other) {
            return Err(misbehaved(
                "it opened another share of the seed than it had committed to",
            ));
        }
        let (sender, receiver) = match role {
            Role::Sender => ((&ours, &share), (&theirs, &other)),
            Role::Receiver => ((&theirs, &other), (&ours, &share)),
        };
        let mut oracle = RandomOracle::new("volery psi: seed");
        oracle.absorb(session.as_bytes());
        for (message, share) in [sender, receiver] {
            oracle.absorb(message).absorb(share);
        }
        Ok(Self {
            sender_items: word(sender.0),
            receiver_items: word(receiver.0),
            note: word(&sender.0[8..]),
            seed: oracle.finish32(),
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

    /// What a party sends when it has sent everything else: the peer then knows that it read what was meant.
    pub(crate) fn end(&self, role: Role) -> [u8; 16] {
        let end = self.derive("end", role as u8);
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

    const SESSION: SessionId = SessionId::from_bytes([3; 32]);

    fn reach(role: Role, items: usize, channel: &mut Channel) -> Result<Agreement> {
        let seed = Block::new(role as u128 + 1);
        Agreement::reach(
            role,
            items,
            7 + items as u64,
            SESSION,
            &mut Prg::new(seed),
            channel,
        )
    }

    #[test]
    fn both_reach_the_same() {
        let ((sender, stats), (receiver, _)) = run_two_parties_with_stats(
            |channel| reach(Role::Sender, 5, channel).unwrap(),
            |channel| reach(Role::Receiver, 9, channel).unwrap(),
        );
        for agreement in [&sender, &receiver] {
            assert_eq!((agreement.sender_items, agreement.receiver_items), (5, 9));
            assert_eq!(agreement.note, 12);
        }
        assert_eq!(sender.seed, receiver.seed);
        assert_eq!((stats.bytes_sent, stats.bytes_received), (80, 80));
        let derived = [
            sender.salt(),
            sender.code(),
            sender.derive("cuckoo", 0),
            sender.derive("cuckoo", 1),
        ];
        assert!((0..4).all(|i| (0..i).all(|j| derived[i] != derived[j])));
        assert_ne!(sender.end(Role::Sender), sender.end(Role::Receiver));
    }

    /// Each byte of what the sender says is either refused by the receiver or changes what it agrees to.
    #[test]
    fn a_changed_byte_does_not_pass() {
        for at in 0..80 {
            let (ours, theirs) = memory::pair();
            let timeout = Some(std::time::Duration::from_secs(5));
            let (_, (receiver, _)) = run_two_channels(
                Channel::with_timeout(Tampered::flip(ours, at, 0x40), timeout),
                Channel::with_timeout(theirs, timeout),
                |channel| reach(Role::Sender, 5, channel),
                |channel| reach(Role::Receiver, 9, channel),
            );
            match receiver {
                Ok(agreement) => {
                    assert!(at < 16 && (agreement.sender_items, agreement.note) != (5, 12))
                }
                Err(Error::Channel(ChannelError::PeerMisbehaved(_))) => {}
                Err(other) => panic!("{at}: {other}"),
            }
        }
    }

    #[test]
    fn a_set_that_is_too_large_is_refused() {
        let mut channel = Channel::memory_pair().0;
        let sender = reach(Role::Sender, MAX_ITEMS as usize + 1, &mut channel);
        assert!(matches!(sender, Err(Error::TooMany { .. })));
    }
}
