//! Agreement on the sizes and on a seed that neither party chose alone, before the items are
//! hashed.
//!
//! ```text
//! both, when their items are fixed: share random, opening = size | note | terms | share
//!   --- RO(session, role, opening) --->   <--- the same ---    commitments
//!   ------------ opening ------------->   <--- the same ---    once the other's commitment arrived
//! both: seed = RO(session, openings)
//! ```
//!
//! Neither party can choose the seed. Everything that enters it is committed to, and a party opens
//! only once it has the other's commitment: by then the other has seen only a hash, which hides the
//! opening because the share has 256 random bits, and can open only what it has committed to. So
//! the honest party's share is independent of all other hashed data, and the seed is uniform for a
//! random oracle. (If the party that speaks last could still change its size or note, it could try
//! values until it liked the seed.) The role is part of a commitment, so echoing the other's
//! commitment does not give a valid one.
//!
//! A party may stop after it has seen the other's opening. Then there is no run with that seed, and
//! another run needs another session.
//!
//! Everything that is hashed afterwards is derived from the seed: the salt of the items, cuckoo
//! hashing, the code. The terms are a hash of the protocol and its settings: parties that were
//! started differently stop here.
//!
//! Cost: 2 messages in each direction, of 32 and 64 bytes.

use std::fmt;

use volery_channel::{Channel, Role, SessionId};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use zeroize::Zeroizing;

use crate::error::{Error, Result, misbehaved};
use crate::params::MAX_ITEMS;

/// The protocol and settings that both parties are about to run, in 16 bytes.
pub(crate) type Terms = [u8; 16];

/// The agreed values.
#[derive(Clone)]
pub(crate) struct Agreement {
    pub(crate) sender_items: u64,
    pub(crate) receiver_items: u64,
    /// The number that the sender sent along with its size.
    pub(crate) note: u64,
    seed: [u8; 32],
}

/// Bytes of an opening: size, note, terms, share.
const OPENING: usize = 8 + 8 + 16 + 32;

impl Agreement {
    /// Runs the exchange for a set of `items` items; the `note` of the receiver is ignored.
    ///
    /// # Errors
    /// If the channel fails; [`Error::TooMany`] if this set is too large; an error of the channel
    /// if the peer's set is too large, or the peer has other terms, or its opening does not match
    /// its commitment.
    pub(crate) fn reach(
        role: Role,
        session: SessionId,
        rng: &mut Prg,
        terms: Terms,
        (items, note): (usize, u64),
        channel: &mut Channel,
    ) -> Result<Self> {
        let items = items as u64;
        if items > MAX_ITEMS {
            return Err(Error::TooMany { items, most: MAX_ITEMS });
        }
        let mut ours = Zeroizing::new([0; OPENING]);
        ours[..8].copy_from_slice(&items.to_le_bytes());
        ours[8..16].copy_from_slice(&note.to_le_bytes());
        ours[16..32].copy_from_slice(&terms);
        // mutant(psi-share): drop
        rng.fill_bytes(&mut ours[32..]);
        channel.send(&commitment(session, role, &ours))?;
        let mut committed = [0; 32];
        // mutant(psi-early-opening): insert `if $ON { channel.send(&ours[..])?; channel.flush()?;
        //     }`
        channel.recv(&mut committed)?;
        channel.send(&ours[..])?;
        let mut theirs = Zeroizing::new([0; OPENING]);
        channel.recv(&mut theirs[..])?;
        // mutant(psi-opening): false
        if committed != commitment(session, role.other(), &theirs) {
            return Err(misbehaved("its opening does not match its commitment"));
        }
        // mutant(psi-terms): false
        if theirs[16..32] != terms {
            return Err(misbehaved("it runs another protocol or has other settings"));
        }
        // mutant(psi-size): false
        if word(&theirs[..]) > MAX_ITEMS {
            return Err(misbehaved("it announced a set larger than the maximum"));
        }
        let (sender, receiver) = match role {
            Role::Sender => (&ours, &theirs),
            Role::Receiver => (&theirs, &ours),
        };
        // mutant(psi-seed-session): `session.as_bytes()` => `if $ON { &[] } else { &$0[..] }`
        // mutant(psi-seed-sender): `&sender[..]` => `b""`
        // mutant(psi-seed-receiver): `&receiver[..]` => `b""`
        let seed = RandomOracle::new("volery psi: seed")
            .absorb(session.as_bytes())
            .absorb(&sender[..])
            .absorb(&receiver[..])
            .finish32();
        Ok(Self {
            sender_items: word(&sender[..]),
            receiver_items: word(&receiver[..]),
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

    /// Separates the tags and masks of one keyword search from those of all others.
    pub(crate) fn search(&self) -> Block {
        let key = self.derive("search", 0);
        let (block, _) = key.split_first_chunk().expect("32 bytes");
        Block::from_bytes(*block)
    }

    /// The last block that a party sends: it shows the peer that the peer read the right amount of
    /// data, with the same parameters.
    pub(crate) fn end(&self, role: Role, parameters: &[u64]) -> [u8; 16] {
        let mut oracle = RandomOracle::new("volery psi: end");
        // mutant(psi-end-role): `role as u8` => `0`
        // mutant(psi-end-seed): `seed` => `seed[..if $ON { 0 } else { 32 }]`
        oracle.absorb(&self.seed).absorb(&[role as u8]);
        // mutant(psi-end-bins): `parameters` => `$0.iter().skip(usize::from($ON)).take(if
        //     $ON[psi-end-tag] { 3 } else { usize::MAX })`
        // mutant(psi-end-tag): in psi-end-bins
        for &parameter in parameters {
            oracle.absorb_u64(parameter);
        }
        *oracle.finish32().first_chunk().expect("32 bytes")
    }

    /// A key of the name `what`.
    pub(crate) fn derive(&self, what: &str, number: u8) -> [u8; 32] {
        RandomOracle::new("volery psi: from the seed")
            .absorb(&self.seed)
            .absorb(what.as_bytes())
            .absorb(&[number])
            .finish32()
    }
}

/// Does not show the seed, from which the salt of the items follows.
impl fmt::Debug for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sender, receiver) = (self.sender_items, self.receiver_items);
        write!(f, "Agreement({sender} and {receiver} items, ..)")
    }
}

// mutant(psi-commitment-size): `fn commitment(session: SessionId, role: Role, opening: &[u8;
//     OPENING]) -> [u8; 32] {` => `$0 let opening: &[u8] = if $ON { &opening[8..] } else if
//     $ON[psi-commitment-note] { &[&opening[..8], &opening[16..]].concat() } else if
//     $ON[psi-commitment-terms] { &[&opening[..16], &opening[32..]].concat() } else if
//     $ON[psi-commitment-share] { &opening[..32] } else { opening };`
// mutant(psi-commitment-note): in psi-commitment-size
// mutant(psi-commitment-terms): in psi-commitment-size
// mutant(psi-commitment-share): in psi-commitment-size
pub(crate) fn commitment(session: SessionId, role: Role, opening: &[u8; OPENING]) -> [u8; 32] {
    // mutant(psi-commitment-session): `session.as_bytes()` => `if $ON { &[] } else { &$0[..] }`
    // mutant(psi-commitment-role): `role as u8` => `0`
    RandomOracle::new("volery psi: commitment")
        .absorb(session.as_bytes())
        .absorb(&[role as u8])
        .absorb(opening)
        .finish32()
}

/// The first eight bytes.
fn word(bytes: &[u8]) -> u64 {
    let bytes = bytes.first_chunk().expect("a message has more than 8 bytes");
    u64::from_le_bytes(*bytes)
}

#[cfg(test)]
impl Agreement {
    /// An agreement that no parties made.
    pub(crate) fn numbered(number: u64, [sender_items, receiver_items]: [u64; 2]) -> Self {
        Self {
            sender_items,
            receiver_items,
            note: 0,
            seed: RandomOracle::new("volery psi: seed of a test").absorb_u64(number).finish32(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use volery_channel::{run_two_parties, run_two_parties_with_stats};

    use super::*;
    use crate::fixtures::{assert_caught, meet};
    use crate::params::{Parameters, Variant};

    const SESSION: SessionId = SessionId::from_bytes([3; 32]);
    const TERMS: Terms = [5; 16];

    fn reach(role: Role, items: usize, terms: Terms, channel: &mut Channel) -> Result<Agreement> {
        let mut rng = Prg::new(Block::new(role as u128 + 1));
        let said = (items, 7 + items as u64);
        Agreement::reach(role, SESSION, &mut rng, terms, said, channel)
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
        let [first, second, search] =
            [("cuckoo", 0), ("cuckoo", 1), ("search", 0)].map(|(name, i)| sender.derive(name, i));
        assert_different(&[sender.salt(), sender.code(), first, second, search]);
    }

    /// The shares are the same in all of these runs.
    #[test]
    fn the_seed_depends_on_both_openings() {
        let seed = |sender: usize, receiver: usize, terms: Terms| {
            let (agreement, _) = run_two_parties(
                |channel| reach(Role::Sender, sender, terms, channel).unwrap(),
                |channel| reach(Role::Receiver, receiver, terms, channel).unwrap(),
            );
            agreement.seed
        };
        let first = seed(5, 9, TERMS);
        assert_different(&[first, seed(6, 9, TERMS), seed(5, 8, TERMS), seed(5, 9, [6; 16])]);
        assert_eq!(first, seed(5, 9, TERMS));
    }

    #[test]
    fn ends_differ_by_party_and_parameters() {
        let agreement = reached(1, 2, 3);
        let parameters = Parameters::new(Variant::Kkrt, 5, 9);
        let mut ends = vec![
            agreement.end(Role::Sender, &parameters.words()),
            agreement.end(Role::Receiver, &parameters.words()),
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
            ends.push(agreement.end(Role::Sender, &changed.words()));
        }
        assert_different(&ends);
    }

    #[test]
    fn other_terms_are_refused_by_both() {
        let (sender, receiver) = meet(
            |channel| reach(Role::Sender, 5, TERMS, channel),
            |channel| reach(Role::Receiver, 9, [6; 16], channel),
        );
        for refused in [sender, receiver] {
            assert_caught(refused, "it runs another protocol or has other settings");
        }
    }

    /// The result of an honest party whose peer runs `malicious`.
    fn reach_against(
        role: Role,
        malicious: impl FnOnce(&mut Channel) -> Result<()> + Send,
    ) -> Result<Agreement> {
        let (agreement, _) = meet(
            |channel| reach(role, 9, TERMS, channel),
            |channel| {
                malicious(channel)?;
                channel.flush().map_err(Error::from)
            },
        );
        agreement
    }

    /// An opening with these terms and this size.
    fn opening(size: u64) -> [u8; OPENING] {
        let mut opening = [7; OPENING];
        opening[..8].copy_from_slice(&size.to_le_bytes());
        opening[16..32].copy_from_slice(&TERMS);
        opening
    }

    const REFUSED: &str = "its opening does not match its commitment";

    /// The party that speaks last cannot steer the seed: it can no longer change its size, its note
    /// or its share.
    #[test]
    fn nothing_can_be_changed_after_the_others_opening() {
        for role in [Role::Sender, Role::Receiver] {
            for changed in (0..OPENING).map(Some).chain([None]) {
                let agreement = reach_against(role, |channel| {
                    let mut opening = opening(5);
                    channel.send(&commitment(SESSION, role.other(), &opening))?;
                    let mut theirs = [0; 32 + OPENING];
                    channel.recv(&mut theirs)?;
                    if let Some(at) = changed {
                        opening[at] ^= 1;
                    }
                    channel.send(&opening)?;
                    Ok(())
                });
                match changed {
                    Some(_) => assert_caught(agreement, REFUSED),
                    None => assert!(agreement.is_ok(), "right but for the change"),
                }
            }
        }
    }

    /// The bound itself is a valid size.
    #[test]
    fn a_size_above_the_bound() {
        for role in [Role::Sender, Role::Receiver] {
            for size in [MAX_ITEMS, MAX_ITEMS + 1, 1 << 32, u64::MAX] {
                let agreement = reach_against(role, |channel| {
                    let opening = opening(size);
                    channel.send(&commitment(SESSION, role.other(), &opening))?;
                    channel.recv(&mut [0; 32 + OPENING])?;
                    channel.send(&opening)?;
                    Ok(())
                });
                match size <= MAX_ITEMS {
                    true => assert!(agreement.is_ok()),
                    false => {
                        assert_caught(agreement, "it announced a set larger than the maximum");
                    }
                }
            }
        }
    }

    /// A party that has not committed receives only a commitment.
    #[test]
    fn no_opening_before_the_others_commitment() {
        for role in [Role::Sender, Role::Receiver] {
            let mut heard = 0;
            let agreement = reach_against(role, |channel| {
                channel.set_timeout(Some(Duration::from_millis(100)));
                while channel.recv(&mut [0]).is_ok() {
                    heard += 1;
                }
                Ok(())
            });
            assert!(agreement.is_err());
            assert_eq!(heard, 32);
        }
    }

    /// A party that echoes the other's messages is refused: the role is part of the commitment.
    #[test]
    fn an_echo_is_refused() {
        for role in [Role::Sender, Role::Receiver] {
            let agreement = reach_against(role, |channel| {
                for length in [32, OPENING] {
                    let mut bytes = vec![0; length];
                    channel.recv(&mut bytes)?;
                    channel.send(&bytes)?;
                }
                Ok(())
            });
            assert_caught(agreement, REFUSED);
        }
    }

    /// A commitment of another session is refused.
    #[test]
    fn a_commitment_of_another_session_is_refused() {
        for role in [Role::Sender, Role::Receiver] {
            let agreement = reach_against(role, |channel| {
                let other = SessionId::from_bytes([4; 32]);
                let mut rng = Prg::new(Block::ONE);
                Agreement::reach(role.other(), other, &mut rng, TERMS, (5, 0), channel).map(|_| ())
            });
            assert_caught(agreement, REFUSED);
        }
    }

    #[test]
    fn a_set_that_is_too_large_is_refused() {
        let mut channel = Channel::memory_pair().0;
        let sender = reach(Role::Sender, MAX_ITEMS as usize + 1, TERMS, &mut channel);
        assert!(matches!(sender, Err(Error::TooMany { .. })));
    }

    /// The agreement of both parties, given the session and the randomness of each.
    fn reached(session: u8, of_sender: u128, of_receiver: u128) -> Agreement {
        let reach = |role: Role, seed: u128, channel: &mut Channel| {
            let session = SessionId::from_bytes([session; 32]);
            let mut rng = Prg::new(Block::new(seed));
            let agreement = Agreement::reach(role, session, &mut rng, [5; 16], (7, 0), channel);
            channel.flush().unwrap();
            agreement.unwrap()
        };
        let (sender, receiver) = run_two_parties(
            |channel| reach(Role::Sender, of_sender, channel),
            |channel| reach(Role::Receiver, of_receiver, channel),
        );
        assert_eq!(sender.seed, receiver.seed);
        sender
    }

    fn assert_different<T: PartialEq>(all: &[T]) {
        assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
    }

    /// Fresh randomness of either party gives another seed, and so does another session: no salt,
    /// code or hash function repeats.
    #[test]
    fn seeds_are_drawn_anew() {
        let runs = [reached(1, 2, 3), reached(1, 2, 4), reached(1, 5, 3), reached(6, 2, 3)];
        assert_eq!(reached(1, 2, 3).seed, runs[0].seed);
        assert_different(&runs.each_ref().map(|run| run.seed));
        assert_different(&runs.each_ref().map(Agreement::salt));
        assert_different(&runs.each_ref().map(Agreement::code));
        assert_different(&runs.each_ref().map(|run| run.cuckoo(0)));
        assert_different(&runs.each_ref().map(Agreement::search));
    }

    /// The end of another run is invalid in this one.
    #[test]
    fn ends_differ_by_seed() {
        let parameters = Parameters::new(Variant::Kkrt, 7, 7);
        let runs = [reached(1, 2, 3), reached(1, 2, 4)];
        assert_different(&runs.map(|run| run.end(Role::Sender, &parameters.words())));
    }
}
