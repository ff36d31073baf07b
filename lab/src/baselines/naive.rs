//! Naive hashing: **insecure**, the floor under every comparison.
//!
//! Both parties hash their items with the same hash; one sends its hashes and the other looks for
//! its own among them.
//!
//! ```text
//! Sender: X                                       Receiver: Y
//! 1.  h(x) for all x, in a random order           h(y) for all y
//! 2.  ------------------ h(x) ------------------>
//! 3.                                              the y whose h(y) came
//! ```
//!
//! **Insecure**: an observer of the hashes can try candidates until one matches. Items that could
//! be guessed at all (addresses, numbers, names) are as good as sent in the clear. It is here
//! because BaRK-OPRF (CCS 2016, section 6.3) and many others measure it.
//!
//! `h` is BLAKE3 under a key of the session, cut to `v = 40 + log2(|X||Y|)` bits, rounded up to
//! bytes, so that no two different items meet but with probability 2^-40.
//!
//! Cost: 1 message from the sender, `v/8` bytes for each of its items.

use volery_channel::{Channel, Result, SessionId};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;

use crate::baselines::matching::{Matcher, Shuffled, cut, recv_values, value_bytes};

/// Bytes of a hash, for as many items on both sides.
pub(crate) fn hash_bytes(items: usize) -> usize {
    value_bytes((items as f64).powi(2))
}

/// Bytes that a run sends, all from the sender.
pub(crate) fn bytes(items: usize) -> u64 {
    (items * hash_bytes(items)) as u64
}

/// Sender: the receiver learns which items both have, and can search for the others.
pub(crate) fn send(
    items: &[Block],
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<()> {
    let bytes = hash_bytes(items.len());
    let mut message = Shuffled::new(items.len(), bytes, rng);
    for (item, value) in hashes(items, bytes, session).into_iter().enumerate() {
        message.put(item, value); // step 1
    }
    message.send(channel) // step 2
}

/// Receiver: the numbers of its items that the sender has too, ascending.
pub(crate) fn receive(
    items: &[Block],
    session: SessionId,
    channel: &mut Channel,
) -> Result<Vec<usize>> {
    let bytes = hash_bytes(items.len());
    let matcher = Matcher::new(hashes(items, bytes, session)); // step 1
    let mut common = Vec::new();
    recv_values(items.len(), bytes, channel, |value| {
        matcher.find(value, |item| common.push(item)); // step 3
    })?;
    common.sort_unstable();
    Ok(common)
}

/// Step 1: the hashes, in the order of the items.
fn hashes(items: &[Block], bytes: usize, session: SessionId) -> Vec<u128> {
    let mut oracle = RandomOracle::new("volery experiments naive: key of the hash");
    let key = oracle.absorb(session.as_bytes()).finish32();
    items
        .iter()
        .map(|item| cut(blake3::keyed_hash(&key, &item.to_bytes()).as_bytes(), bytes))
        .collect()
}
