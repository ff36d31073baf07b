//! Base OT: the endemic OT of Masny and Rindal over Ristretto255.
//!
//! Masny, Rindal, *Endemic Oblivious Transfer*, ePrint 2019/706, the Diffie-Hellman instance; see
//! also McQuoid, Rosulek, Roy, *Batching Base Oblivious Transfers*, ePrint 2021/682, for what may
//! be shared in a batch. Written additively: `G` generates a group of prime order, `s` and `a` are
//! scalars, `H` hashes to the group and `RO` to 128 bits. For every OT `i` of the batch, with the
//! receiver's choice bit `c`:
//!
//! ```text
//! Sender                                          Receiver: c
//! 1.  s random, A = s*G  (one for the batch)      R_{1-c} random in the group,
//!                                                 with unknown logarithm
//!                                                 a random, R_c = a*G - H(sid, i, c, R_{1-c})
//! 2.  -------------------- A ------------------->
//!     <------------- all R_0, R_1 ---------------
//! 3.  for j = 0, 1:                               both: tau = RO(sid, A, all R_0, R_1)
//!     P_j = R_j + H(sid, i, j, R_{1-j})
//!     k_j = RO(tau, i, j, s*P_j)                  k_c = RO(tau, i, c, a*A)
//! ```
//!
//! The two agree because `P_c = a*G`. The receiver cannot control `P_{1-c}`: the later fixed of
//! `R_0`, `R_1` is an input of the hash that shifts the other.
//!
//! Functionality: *endemic* OT, the weakest of the uniform family. A corrupt sender may choose both
//! of its keys and a corrupt receiver may choose the one that it gets; an honest party's other keys
//! are uniform to the peer. This is enough for seeds of an OT extension, but not for giving the
//! keys to an application as uniform messages.
//!
//! Security: malicious, universally composable, with `H` and `RO` random oracles.
//!
//! * *Corrupt sender*: nothing is assumed. `R_0` and `R_1` are both uniform whatever `c` is, so the
//!   choice bits are hidden from any sender; a simulator that answers `H` knows the logarithms of
//!   both `P_j` and so both keys.
//! * *Corrupt receiver*: gap Diffie-Hellman with a fixed element. Given `A = s*G` and a uniform
//!   `B`, no adversary finds `s*B`, even with an oracle that decides for any `P`, `Z` whether
//!   `Z = s*P`. To distinguish a key `k_{1-c}` from random, the receiver must query `RO` on
//!   `s*P_{1-c}`. A reduction embeds `B` in the answer of `H` that completes `P_{1-c}` and reads
//!   `s*B` off that query. It does not know `s`, while the receiver chooses `P_c`: it needs the
//!   oracle to give the receiver, for all OTs of the batch, the `k_c` that agree with its queries
//!   to `RO`. Without the oracle (plain computational Diffie-Hellman) it would have to guess them,
//!   all at once as they share `A`. The reduction is not tight: it guesses which two queries to `H`
//!   make the pair of an OT.
//! * *One `A` for the batch*: equal or related `P_j` in several OTs have equal or related `s*P_j`,
//!   so these must only be used through a hash that separates the OTs. The number and the side
//!   enter `H`, and with `tau` (the session, `A` and all `R_0`, `R_1`) they enter every key. Keys
//!   of different OTs, sides, batches or sessions are then answers to different queries. A key that
//!   was a function of `s*P_j` alone would not suffice (ePrint 2021/682).
//!
//! Points are decoded canonically, and the identity is refused for `A`, `R_j` and `P_j`. The choice
//! bits are used in masked selections only.
//!
//! Cost: 1 message in each direction, and they may cross: 32 bytes from the sender, `64*n` from the
//! receiver, who sends the elements of some OTs before it makes the next ones, so that both parties
//! compute at once. (The sender's `s*P_j` need no `tau`, and leave it only inside keys.) Work: the
//! receiver hashes `2*n` times to the group and multiplies `G` by `n` scalars, then `A` by the
//! same; the sender decodes and hashes to the group `2*n` times and multiplies `2*n` elements by
//! `s`.

use curve25519_dalek::Scalar;
use rayon::prelude::*;
use subtle::{Choice, ConditionallySelectable};
use volery_channel::Channel;
use volery_channel::handshake::SessionId;
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_primitives::ristretto::{ENCODED, Points};
use volery_primitives::ro::RandomOracle;
use zeroize::Zeroizing;

use crate::{Error, Result};

/// OTs that one thread processes at a time.
const CHUNK: usize = 32;

/// The two encodings `R_0`, `R_1` that the receiver sends for one OT.
type Pair = [[u8; ENCODED]; 2];

/// The keys of all OTs.
type Keys<T> = Zeroizing<Vec<T>>;

/// Sender: the two keys of each of `n` OTs, wiped when dropped.
///
/// # Errors
/// If the channel fails, or if the peer sent something that is not a valid group element.
pub fn send(
    n: usize,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<[Block; 2]>>> {
    Ok(send_bound(n, session, rng, channel)?.0)
}

/// Receiver: the keys of `n` OTs selected by the choice bits `choices` (packed, low bit first),
/// wiped when dropped.
///
/// # Panics
/// If `choices.len()` is not `n.div_ceil(8)`.
///
/// # Errors
/// If the channel fails, or if the peer sent something that is not a valid group element.
pub fn receive(
    choices: &[u8],
    n: usize,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<Block>>> {
    Ok(receive_bound(choices, n, session, rng, channel)?.0)
}

/// [`send`], with a hash of both messages for the transcript of an enclosing protocol.
pub(crate) fn send_bound(
    n: usize,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<(Keys<[Block; 2]>, [u8; 32])> {
    let secret = random_scalar(rng); // step 1
    let public = generator_times(&secret);
    channel.send(&public)?; // step 2
    channel.flush()?;
    let half = Zeroizing::new(secret.div_by_2());
    let mut pairs = vec![Pair::default(); n];
    let mut shared = Zeroizing::new(vec![Pair::default(); n]);
    let runs = pairs.chunks_mut(run()).zip(shared.chunks_mut(run()));
    for (number, (pairs, shared)) in runs.enumerate() {
        channel.recv(bytemuck::cast_slice_mut(pairs))?;
        share(&half, session, number * run(), pairs, shared)?; // step 3
    }
    let tau = transcript(session, &public, &pairs);
    Ok((sender_keys(&tau, &shared), tau))
}

/// [`receive`], with a hash of both messages for the transcript of an enclosing protocol.
pub(crate) fn receive_bound(
    choices: &[u8],
    n: usize,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<(Keys<Block>, [u8; 32])> {
    assert_eq!(choices.len(), n.div_ceil(8), "one packed bit per OT");
    let (halves, pairs) = blind(choices, n, session, rng, |pairs| {
        channel.send(bytemuck::cast_slice(pairs))?; // step 2
        channel.flush()
    })?; // step 1
    let mut public = [0; ENCODED];
    channel.recv(&mut public)?;
    let tau = transcript(session, &public, &pairs);
    let keys = receiver_keys(choices, &halves, &tau, &public)?; // step 3
    Ok((keys, tau))
}

/// `scalar*G`.
fn generator_times(scalar: &Scalar) -> [u8; ENCODED] {
    let half = Zeroizing::new(scalar.div_by_2());
    let mut encoded = [[0; ENCODED]];
    Points::of_generator(&[*half]).encode_doubles(&mut encoded);
    encoded[0]
}

/// OTs between two sends of the receiver: as many as all threads process at a time.
fn run() -> usize {
    CHUNK * rayon::current_num_threads()
}

/// Step 1 of the receiver: `a/2` and the message of each OT. Calls `send` with the messages of some
/// OTs at a time, in order.
///
/// Scalars are halved because lists are encoded doubled.
///
/// The choice follows from which of the two messages was made without a logarithm: both lists are
/// wiped.
fn blind(
    choices: &[u8],
    n: usize,
    session: SessionId,
    rng: &mut Prg,
    mut send: impl FnMut(&[Pair]) -> Result<()>,
) -> Result<(Zeroizing<Vec<Scalar>>, Vec<Pair>)> {
    let mut random = Zeroizing::new(vec![[0; 64]; n]);
    rng.fill_bytes(random.as_flattened_mut());
    let halves: Zeroizing<Vec<Scalar>> =
        Zeroizing::new((0..n).map(|_| *random_scalar(rng)).collect());

    let mut pairs = vec![Pair::default(); n];
    for (number, pairs) in pairs.chunks_mut(run()).enumerate() {
        let first = number * run();
        pairs
            .par_chunks_mut(CHUNK)
            .zip(random[first..].par_chunks(CHUNK))
            .zip(halves[first..].par_chunks(CHUNK))
            .enumerate()
            .for_each(|(chunk, ((pairs, random), halves))| {
                let first = first + chunk * CHUNK;
                blind_chunk(choices, first, session, random, halves, pairs);
            });
        send(pairs)?;
    }
    Ok((halves, pairs))
}

/// [`blind`] for the OTs from number `first` on: the pairs of messages from the randomness of each
/// OT.
fn blind_chunk(
    choices: &[u8],
    first: usize,
    session: SessionId,
    random: &[[u8; 64]],
    halves: &[Scalar],
    pairs: &mut [Pair],
) {
    let mut free = Zeroizing::new(vec![[0; ENCODED]; pairs.len()]);
    // R_{1-c} = 2*X with X uniform is uniform too, as the order of the group is odd.
    Points::from_uniform(random).encode_doubles(&mut free);

    let inputs = free.iter().enumerate();
    let hashes = inputs.map(|(i, free)| {
        let side = choice(choices, first + i).unwrap_u8();
        half_hash(session, first + i, side, free)
    });
    let hashes: Zeroizing<Vec<[u8; 64]>> = Zeroizing::new(hashes.collect());
    let mut bound = Points::of_generator(halves);
    bound.sub(&Points::from_uniform(&hashes));
    let mut encoded = Zeroizing::new(vec![[0; ENCODED]; pairs.len()]);
    bound.encode_doubles(&mut encoded);

    for (i, (pair, (free, bound))) in
        pairs.iter_mut().zip(free.iter().zip(encoded.iter())).enumerate()
    {
        *pair = [*bound, *free];
        let [left, right] = pair;
        let choice = choice(choices, first + i);
        for (x, y) in left.iter_mut().zip(right) {
            u8::conditional_swap(x, y, choice);
        }
    }
}

/// Step 3 of the sender: `s*P_0` and `s*P_1` of the OTs from number `first` on, from `s/2`.
fn share(
    half: &Scalar,
    session: SessionId,
    first: usize,
    pairs: &[Pair],
    shared: &mut [Pair],
) -> Result<()> {
    shared.par_chunks_mut(CHUNK).zip(pairs.par_chunks(CHUNK)).enumerate().try_for_each(
        |(chunk, (shared, pairs))| {
            let mut points = unblind(session, first + chunk * CHUNK, pairs)?;
            points.multiply(half);
            points.encode_doubles(shared.as_flattened_mut());
            Ok(())
        },
    )
}

/// Step 3 of the sender, from all `s*P_j`.
fn sender_keys(tau: &[u8; 32], shared: &[Pair]) -> Keys<[Block; 2]> {
    let keys = shared
        .iter()
        .enumerate()
        .map(|(i, shared)| [0, 1].map(|side| key(tau, i, side, &shared[usize::from(side)])));
    Zeroizing::new(keys.collect())
}

/// `P_0` and `P_1` of the OTs from number `first` on, alternating.
fn unblind(session: SessionId, first: usize, pairs: &[Pair]) -> Result<Points> {
    let hashes: Vec<[u8; 64]> = pairs
        .iter()
        .enumerate()
        .flat_map(|(i, [left, right])| {
            [(0, right), (1, left)].map(|(side, other)| half_hash(session, first + i, side, other))
        })
        .collect();
    let hashes = Points::from_uniform(&hashes);
    let mut points = decode(pairs.as_flattened())?;
    points.add(&hashes);
    points.add(&hashes);
    // mutant(base-cancels): false
    if points.any_identity() {
        return Err(Error::PeerMisbehaved("a base OT element cancels its hash"));
    }
    Ok(points)
}

/// Step 3 of the receiver, for the sender's message `public`.
fn receiver_keys(
    choices: &[u8],
    halves: &[Scalar],
    tau: &[u8; 32],
    public: &[u8; ENCODED],
) -> Result<Zeroizing<Vec<Block>>> {
    let public = decode(&[*public])?;
    let mut shared = Zeroizing::new(vec![[0; ENCODED]; halves.len()]);
    public.multiples(halves).encode_doubles(&mut shared);
    let keys = shared
        .iter()
        .enumerate()
        .map(|(i, shared)| key(tau, i, choice(choices, i).unwrap_u8(), shared));
    Ok(Zeroizing::new(keys.collect()))
}

/// The uniform bytes whose image is half of `H(sid, i, side, other)`: its double is the hash of the
/// figure.
fn half_hash(session: SessionId, i: usize, side: u8, other: &[u8; ENCODED]) -> [u8; 64] {
    let mut oracle = RandomOracle::new("volery base OT: hash to the group");
    // mutant(base-point-session): drop
    oracle.absorb(session.as_bytes());
    // mutant(base-point-number): drop
    oracle.absorb(&(i as u64).to_le_bytes());
    // mutant(base-point-side): drop
    oracle.absorb(&[side]);
    // mutant(base-point-other): drop
    oracle.absorb(other);
    let mut uniform = [0; 64];
    oracle.finish_into(&mut uniform);
    uniform
}

/// `tau`, the hash of the session and of both messages.
fn transcript(session: SessionId, public: &[u8; ENCODED], pairs: &[Pair]) -> [u8; 32] {
    let mut oracle = RandomOracle::new("volery base OT: transcript");
    // mutant(base-transcript-session): drop
    oracle.absorb(session.as_bytes());
    // mutant(base-transcript-sender): drop
    oracle.absorb(public);
    // mutant(base-transcript-receiver): drop
    oracle.absorb(bytemuck::cast_slice(pairs));
    oracle.finish32()
}

/// `RO(tau, i, side, shared)`.
fn key(tau: &[u8; 32], i: usize, side: u8, shared: &[u8; ENCODED]) -> Block {
    let mut oracle = RandomOracle::new("volery base OT: key");
    // mutant(base-key-transcript): drop
    oracle.absorb(tau);
    // mutant(base-key-number): drop
    oracle.absorb(&(i as u64).to_le_bytes());
    // mutant(base-key-side): drop
    oracle.absorb(&[side]);
    // mutant(base-key-secret): drop
    oracle.absorb(shared);
    oracle.finish_block()
}

/// The elements with these encodings; the identity and non-canonical encodings are refused.
fn decode(encodings: &[[u8; ENCODED]]) -> Result<Points> {
    // mutant(base-encoding): `(encodings)` => `$0.or_else(|| $ON.then(||
    //     Points::of_generator(&vec![Scalar::ONE; encodings.len()])))`
    match Points::decode(encodings) {
        // mutant(base-identity): `!points.any_identity()` => `true`
        Some(points) if !points.any_identity() => Ok(points),
        Some(_) => Err(Error::PeerMisbehaved("a base OT element is the identity")),
        None if encodings.iter().all(is_canonical) => {
            Err(Error::PeerMisbehaved("a base OT element is not in the group"))
        }
        None => Err(Error::PeerMisbehaved("a base OT element is not in canonical form")),
    }
}

/// Whether these bytes are an even number below `2^255 - 19`, as all encodings are; the bytes are
/// public.
fn is_canonical(bytes: &[u8; ENCODED]) -> bool {
    let [low, middle @ .., high] = bytes;
    let below =
        *high < 0x7f || (*high == 0x7f && (middle.iter().any(|b| *b < 0xff) || *low < 0xed));
    below && low % 2 == 0
}

/// Bit `i` of the packed choice bits.
fn choice(choices: &[u8], i: usize) -> Choice {
    Choice::from((choices[i / 8] >> (i % 8)) & 1)
}

/// A uniform scalar, by reduction of 512 bits.
fn random_scalar(rng: &mut Prg) -> Zeroizing<Scalar> {
    let mut wide = Zeroizing::new([0; 64]);
    rng.fill_bytes(&mut *wide);
    Zeroizing::new(Scalar::from_bytes_mod_order_wide(&wide))
}

#[cfg(test)]
mod tests {
    use volery_channel::Channel;

    use super::*;

    const SESSION: SessionId = SessionId::from_bytes([7; 32]);

    /// The result of `send` with a receiver that sends `pairs`.
    fn answer_to(pairs: &[Pair]) -> Result<()> {
        let (mut channel, mut peer) = Channel::memory_pair();
        peer.send(bytemuck::cast_slice(pairs)).unwrap();
        peer.flush().unwrap();
        send(pairs.len(), SESSION, &mut Prg::new(Block::ONE), &mut channel).map(|_| ())
    }

    /// An honest receiver's messages.
    fn blind_all(choices: &[u8], n: usize, seed: Block) -> Vec<Pair> {
        let mut rng = Prg::new(seed);
        let mut sent = Vec::new();
        let send = |pairs: &[Pair]| {
            sent.extend_from_slice(pairs);
            Ok(())
        };
        let (_, pairs) = blind(choices, n, SESSION, &mut rng, send).unwrap();
        assert_eq!(sent, pairs, "all are sent, in order");
        pairs
    }

    /// Each argument of each hash changes it.
    #[test]
    fn hashes_depend_on_all_that_they_bind() {
        fn assert_different<T: PartialEq>(all: &[T]) {
            assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
        }
        let other = SessionId::from_bytes([8; 32]);
        let [zero, one] = [[0; ENCODED], [1; ENCODED]];
        assert_different(&[
            half_hash(SESSION, 0, 0, &zero),
            half_hash(other, 0, 0, &zero),
            half_hash(SESSION, 1, 0, &zero),
            half_hash(SESSION, 0, 1, &zero),
            half_hash(SESSION, 0, 0, &one),
        ]);
        assert_different(&[
            transcript(SESSION, &zero, &[[zero; 2]]),
            transcript(other, &zero, &[[zero; 2]]),
            transcript(SESSION, &one, &[[zero; 2]]),
            transcript(SESSION, &zero, &[[one, zero]]),
            transcript(SESSION, &zero, &[[zero, one]]),
        ]);
        assert_different(&[
            key(&[0; 32], 0, 0, &zero),
            key(&[1; 32], 0, 0, &zero),
            key(&[0; 32], 1, 0, &zero),
            key(&[0; 32], 0, 1, &zero),
            key(&[0; 32], 0, 0, &one),
        ]);
    }

    #[test]
    fn an_element_that_cancels_its_hash_is_refused() {
        let honest = blind_all(&[0], 2, Block::from(4));
        assert!(answer_to(&honest).is_ok());
        for i in 0..2 {
            for side in 0..2 {
                let mut pairs = honest.clone();
                let half = half_hash(SESSION, i, side as u8, &pairs[i][1 - side]);
                let mut hash = Points::from_uniform(&[half]);
                hash.multiply(&-Scalar::ONE);
                hash.encode_doubles(std::slice::from_mut(&mut pairs[i][side]));
                assert!(matches!(answer_to(&pairs), Err(Error::PeerMisbehaved(_))));
            }
        }
    }

    #[test]
    fn a_bad_element_anywhere_in_a_long_batch_is_refused() {
        let n = 2 * CHUNK + 3;
        let honest = blind_all(&vec![0x3c; n.div_ceil(8)], n, Block::ONE);
        assert!(answer_to(&honest).is_ok());
        // The identity, an odd number, and an even one above the modulus.
        let mut above = [0xff; ENCODED];
        (above[0], above[31]) = (0xf0, 0x7f);
        let mut odd = [0; ENCODED];
        odd[0] = 1;
        for i in [0, CHUNK - 1, CHUNK, n - 1] {
            for (side, bad) in [(0, [0; ENCODED]), (1, odd), (i % 2, above)] {
                let mut pairs = honest.clone();
                pairs[i][side] = bad;
                assert!(matches!(answer_to(&pairs), Err(Error::PeerMisbehaved(_))));
            }
        }
    }

    #[test]
    fn messages_are_random_elements_whatever_the_choice() {
        // A distinguisher that sees only the messages: every one decodes, none repeats.
        let mut seen = std::collections::HashSet::new();
        for choices in [[0x00], [0xff], [0x5a]] {
            let pairs = blind_all(&choices, 8, Block::from(u128::from(choices[0])));
            for encoding in pairs.as_flattened() {
                assert!(decode(&[*encoding]).is_ok());
                assert!(seen.insert(*encoding));
            }
        }
    }
}
