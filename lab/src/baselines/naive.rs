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

use crate::baselines::Sizes;
use crate::baselines::matching::{Matcher, Shuffled, cut, recv_values, value_bytes};

/// Bytes of a hash.
pub(crate) fn hash_bytes(sizes: Sizes) -> usize {
    value_bytes(sizes.pairs())
}

/// Bytes that a run sends, all from the sender.
pub(crate) fn bytes(sizes: Sizes) -> u64 {
    if sizes.is_trivial() {
        return 0;
    }
    (sizes.sender * hash_bytes(sizes)) as u64
}

/// Sender: the receiver learns which items both have, and can search for the others.
pub(crate) fn send(
    items: &[Block],
    sizes: Sizes,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(items.len(), sizes.sender, "as many items as agreed");
    if sizes.is_trivial() {
        return Ok(());
    }
    let bytes = hash_bytes(sizes);
    let mut message = Shuffled::new(items.len(), bytes, rng);
    for (item, value) in hashes(items, bytes, session).into_iter().enumerate() {
        message.put(item, value); // step 1
    }
    message.send(channel) // step 2
}

/// Receiver: the numbers of its items that the sender has too, ascending.
pub(crate) fn receive(
    items: &[Block],
    sizes: Sizes,
    session: SessionId,
    channel: &mut Channel,
) -> Result<Vec<usize>> {
    assert_eq!(items.len(), sizes.receiver, "as many items as agreed");
    if sizes.is_trivial() {
        return Ok(Vec::new());
    }
    let matcher = Matcher::new(hashes(items, hash_bytes(sizes), session)); // step 1
    let mut common = Vec::new();
    recv_values(sizes.sender, hash_bytes(sizes), channel, |value| {
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use volery_channel::run_two_parties_with_stats;

    use super::*;
    use crate::baselines::cases::{Case, cases};

    const SESSION: SessionId = SessionId::from_bytes([5; 32]);

    fn sender(case: &Case, channel: &mut Channel) -> Result<()> {
        let rng = &mut Prg::new(Block::new(1));
        send(&case.sender, case.sizes(), SESSION, rng, channel)
    }

    fn receiver(case: &Case, channel: &mut Channel) -> Result<Vec<usize>> {
        receive(&case.receiver, case.sizes(), SESSION, channel)
    }

    #[test]
    fn the_intersection_and_the_cost() {
        for case in cases(128) {
            let ((sent, stats), (received, _)) = run_two_parties_with_stats(
                |channel| sender(&case, channel),
                |channel| receiver(&case, channel),
            );
            sent.unwrap();
            assert_eq!(received.unwrap(), case.common(), "{}", case.name);
            assert_eq!(stats.bytes_sent, bytes(case.sizes()));
            assert_eq!(stats.bytes_received, 0);
        }
    }
}
