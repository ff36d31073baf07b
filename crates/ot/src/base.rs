//! Base OT: the endemic OT of Masny and Rindal over Ristretto255.
//!
//! Masny, Rindal, *Endemic Oblivious Transfer*, ePrint 2019/706, the Diffie-Hellman instance; see also
//! McQuoid, Rosulek, Roy, *Batching Base Oblivious Transfers*, ePrint 2021/682, for what may be shared in a batch.
//! Written additively: `G` generates a group of prime order, `s` and `a` are scalars, `H` hashes to the group and
//! `RO` to 128 bits. For every OT `i` of the batch, with the receiver's choice bit `c`:
//!
//! ```text
//! Sender                                          Receiver: c
//! 1.  s random, A = s*G  (one for the batch)      R_{1-c} random in the group, nobody knows its logarithm
//!                                                 a random, R_c = a*G - H(sid, i, c, R_{1-c})
//! 2.  -------------------- A ------------------->
//!     <------------- all R_0, R_1 ---------------
//! 3.  for j = 0, 1:                               both: tau = RO(sid, A, all R_0, R_1)
//!     P_j = R_j + H(sid, i, j, R_{1-j})
//!     k_j = RO(tau, i, j, s*P_j)                  k_c = RO(tau, i, c, a*A)
//! ```
//!
//! The two agree because `P_c = a*G`. `P_{1-c}` is out of the receiver's control: whichever of `R_0`, `R_1` it fixes
//! last is an input of the hash that moves the other.
//!
//! Functionality: *endemic* OT, the weakest of the uniform family. A corrupt sender may choose both of its keys and a
//! corrupt receiver may choose the one that it gets; an honest party's other keys are uniform to the peer. That is
//! enough for seeds of an OT extension, and not for giving the keys to an application as uniform messages.
//!
//! Security: malicious, universally composable, with `H` and `RO` random oracles.
//!
//! * *Corrupt sender*: nothing is assumed. `R_0` and `R_1` are both uniform whatever `c` is, so the choice bits are
//!   hidden from any sender; a simulator that answers `H` knows the logarithms of both `P_j` and so both keys.
//! * *Corrupt receiver*: gap Diffie-Hellman with a fixed element. Given `A = s*G` and a uniform `B`, nobody finds
//!   `s*B`, even with an oracle that says of any `P`, `Z` whether `Z = s*P`. To tell a key `k_{1-c}` from random, the
//!   receiver must ask `RO` for `s*P_{1-c}`. A reduction embeds `B` in the answer of `H` that completes `P_{1-c}` and
//!   reads `s*B` off that question. It does not know `s`, while `P_c` is of the receiver's making: it needs the oracle
//!   to give the receiver, for all OTs of the batch, the `k_c` that agree with its questions to `RO`. Without the
//!   oracle (plain computational Diffie-Hellman) it would have to guess them, all at once as they share `A`. The
//!   reduction is not tight: it guesses which two questions to `H` make the pair of an OT.
//! * *One `A` for the batch*: equal or related `P_j` in several OTs have equal or related `s*P_j`, so these must not
//!   be used but through a hash that tells the OTs apart. The number and the side enter `H`, and with `tau` (the
//!   session, `A` and all `R_0`, `R_1`) they enter every key. Keys of different OTs, sides, batches or sessions are
//!   then answers to different questions. A key that was a function of `s*P_j` alone would not do (ePrint 2021/682).
//!
//! Points are decoded canonically, and the identity is refused for `A`, `R_j` and `P_j`. The choice bits take part in
//! masked selections only.
//!
//! Cost: 1 message in each direction, and they may cross: 32 bytes from the sender, `64*n` from the receiver.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_TABLE;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable};
use curve25519_dalek::traits::{Identity, IsIdentity};
use curve25519_dalek::{RistrettoPoint, Scalar};
use rayon::prelude::*;
use subtle::{Choice, ConditionallySelectable};
use volery_channel::Channel;
use volery_channel::handshake::SessionId;
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use zeroize::Zeroizing;

use crate::{Error, Result};

/// Bytes of one encoded group element.
const POINT: usize = 32;

/// The number of multiplications of one element from which on a table of its multiples pays.
const TABLE_FROM: usize = 64;

/// The two encodings `R_0`, `R_1` that the receiver sends for one OT.
type Pair = [[u8; POINT]; 2];

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

/// Receiver: the key of each of `n` OTs that its choice bit in `choices` (packed, low bit first) asks for, wiped when
/// dropped.
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
    let public = (&*secret * RISTRETTO_BASEPOINT_TABLE).compress().to_bytes();
    channel.send(&public)?; // step 2
    let mut pairs = vec![Pair::default(); n];
    channel.recv(bytemuck::cast_slice_mut(&mut pairs))?;
    let tau = transcript(session, &public, &pairs);
    let keys = sender_keys(&secret, session, &tau, &pairs)?; // step 3
    Ok((keys, tau))
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
    let (halves, pairs) = blind(choices, n, session, rng); // step 1
    channel.send(bytemuck::cast_slice(&pairs))?; // step 2
    let mut public = [0; POINT];
    channel.recv(&mut public)?;
    let tau = transcript(session, &public, &pairs);
    let keys = receiver_keys(choices, &halves, &tau, &public)?; // step 3
    Ok((keys, tau))
}

/// Step 1 of the receiver: `a/2` and the message of each OT.
///
/// Halves, because the encoder that shares one inversion among many points encodes the doubles of its arguments.
///
/// Whoever sees which of the two messages was made without a logarithm knows the choice: both lists are wiped.
fn blind(
    choices: &[u8],
    n: usize,
    session: SessionId,
    rng: &mut Prg,
) -> (Zeroizing<Vec<Scalar>>, Vec<Pair>) {
    let mut random = Zeroizing::new(vec![[0; 64]; n]);
    rng.fill_bytes(random.as_flattened_mut());
    let halves: Zeroizing<Vec<Scalar>> =
        Zeroizing::new((0..n).map(|_| *random_scalar(rng)).collect());

    // R_{1-c} = 2*X with X uniform is uniform too, as the order of the group is odd.
    let free: Zeroizing<Vec<RistrettoPoint>> = Zeroizing::new(
        random
            .par_iter()
            .map(RistrettoPoint::from_uniform_bytes)
            .collect(),
    );
    let free = Zeroizing::new(RistrettoPoint::double_and_compress_batch(free.iter()));

    let bound = (0..n).into_par_iter().map(|i| {
        let side = choice(choices, i).unwrap_u8();
        &halves[i] * RISTRETTO_BASEPOINT_TABLE - half_hash(session, i, side, free[i].as_bytes())
    });
    let bound: Zeroizing<Vec<RistrettoPoint>> = Zeroizing::new(bound.collect());
    let bound = Zeroizing::new(RistrettoPoint::double_and_compress_batch(bound.iter()));

    let pairs = free
        .iter()
        .zip(bound.iter())
        .enumerate()
        .map(|(i, (free, bound))| {
            let mut pair = [bound.to_bytes(), free.to_bytes()];
            let [left, right] = &mut pair;
            let choice = choice(choices, i);
            for (x, y) in left.iter_mut().zip(right) {
                u8::conditional_swap(x, y, choice);
            }
            pair
        })
        .collect();
    (halves, pairs)
}

/// Step 3 of the sender.
fn sender_keys(
    secret: &Scalar,
    session: SessionId,
    tau: &[u8; 32],
    pairs: &[Pair],
) -> Result<Zeroizing<Vec<[Block; 2]>>> {
    let half = Zeroizing::new(secret.div_by_2());
    // Filled in place: a list that is collected until the first error leaves copies behind.
    let mut shared = Zeroizing::new(vec![[RistrettoPoint::identity(); 2]; pairs.len()]);
    shared
        .par_iter_mut()
        .zip(pairs)
        .enumerate()
        .try_for_each(|(i, (shared, pair))| {
            for (side, shared) in shared.iter_mut().enumerate() {
                let own = decode(&pair[side])?;
                let other = half_hash(session, i, side as u8, &pair[1 - side]);
                let point = own + other + other;
                if point.is_identity() {
                    return Err(Error::PeerMisbehaved("a base OT element cancels its hash"));
                }
                *shared = point * *half;
            }
            Ok(())
        })?;
    let encoded = Zeroizing::new(RistrettoPoint::double_and_compress_batch(
        shared.as_flattened(),
    ));
    let keys = encoded
        .chunks_exact(2)
        .enumerate()
        .map(|(i, shared)| [0, 1].map(|side| key(tau, i, side, &shared[usize::from(side)])));
    Ok(Zeroizing::new(keys.collect()))
}

/// Step 3 of the receiver, for the sender's message `public`.
fn receiver_keys(
    choices: &[u8],
    halves: &[Scalar],
    tau: &[u8; 32],
    public: &[u8; POINT],
) -> Result<Zeroizing<Vec<Block>>> {
    let public = decode(public)?;
    // A table costs as much as some thirty multiplications, and halves the cost of each.
    let shared: Zeroizing<Vec<RistrettoPoint>> = Zeroizing::new(if halves.len() >= TABLE_FROM {
        let table = RistrettoBasepointTable::create(&public);
        halves.par_iter().map(|half| half * &table).collect()
    } else {
        halves.iter().map(|half| half * public).collect()
    });
    let encoded = Zeroizing::new(RistrettoPoint::double_and_compress_batch(shared.iter()));
    let keys = encoded
        .iter()
        .enumerate()
        .map(|(i, shared)| key(tau, i, choice(choices, i).unwrap_u8(), shared));
    Ok(Zeroizing::new(keys.collect()))
}

/// Half of `H(sid, i, side, other)`: a uniform element whose double is the hash of the figure.
fn half_hash(session: SessionId, i: usize, side: u8, other: &[u8; POINT]) -> RistrettoPoint {
    let mut oracle = RandomOracle::new("volery base OT: hash to the group");
    oracle.absorb(session.as_bytes());
    oracle.absorb(&(i as u64).to_le_bytes());
    oracle.absorb(&[side]);
    oracle.absorb(other);
    let mut uniform = [0; 64];
    oracle.finish_into(&mut uniform);
    RistrettoPoint::from_uniform_bytes(&uniform)
}

/// `tau`, the hash of the session and of both messages.
fn transcript(session: SessionId, public: &[u8; POINT], pairs: &[Pair]) -> [u8; 32] {
    let mut oracle = RandomOracle::new("volery base OT: transcript");
    oracle.absorb(session.as_bytes());
    oracle.absorb(public);
    oracle.absorb(bytemuck::cast_slice(pairs));
    oracle.finish32()
}

/// `RO(tau, i, side, shared)`.
fn key(tau: &[u8; 32], i: usize, side: u8, shared: &CompressedRistretto) -> Block {
    let mut oracle = RandomOracle::new("volery base OT: key");
    oracle.absorb(tau);
    oracle.absorb(&(i as u64).to_le_bytes());
    oracle.absorb(&[side]);
    oracle.absorb(shared.as_bytes());
    oracle.finish_block()
}

/// The element with this encoding; the identity and every encoding but the canonical one are refused.
fn decode(bytes: &[u8; POINT]) -> Result<RistrettoPoint> {
    match CompressedRistretto(*bytes).decompress() {
        Some(point) if !point.is_identity() => Ok(point),
        Some(_) => Err(Error::PeerMisbehaved("a base OT element is the identity")),
        None if is_canonical(bytes) => Err(Error::PeerMisbehaved(
            "a base OT element is not in the group",
        )),
        None => Err(Error::PeerMisbehaved(
            "a base OT element is not in canonical form",
        )),
    }
}

/// Whether these bytes are an even number below `2^255 - 19`, as all encodings are; about public bytes.
fn is_canonical(bytes: &[u8; POINT]) -> bool {
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
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use volery_channel::Channel;

    use super::*;

    const SESSION: SessionId = SessionId::from_bytes([7; 32]);

    /// What `send` says to a receiver that sends `pairs`.
    fn answer_to(pairs: &[Pair]) -> Result<()> {
        let (mut channel, mut peer) = Channel::memory_pair();
        peer.send(bytemuck::cast_slice(pairs)).unwrap();
        peer.flush().unwrap();
        send(
            pairs.len(),
            SESSION,
            &mut Prg::new(Block::ONE),
            &mut channel,
        )
        .map(|_| ())
    }

    #[test]
    fn an_element_that_cancels_its_hash_is_refused() {
        let honest = blind(&[0], 2, SESSION, &mut Prg::new(Block::from(4))).1;
        assert!(answer_to(&honest).is_ok());
        for i in 0..2 {
            for side in 0..2 {
                let mut pairs = honest.clone();
                let half = half_hash(SESSION, i, side as u8, &pairs[i][1 - side]);
                pairs[i][side] = (-(half + half)).compress().to_bytes();
                assert!(matches!(answer_to(&pairs), Err(Error::PeerMisbehaved(_))));
            }
        }
    }

    #[test]
    fn messages_are_random_elements_whatever_the_choice() {
        // A distinguisher that sees only the messages: every one decodes, none repeats.
        let mut seen = std::collections::HashSet::new();
        for choices in [[0x00], [0xff], [0x5a]] {
            let seed = Prg::new(Block::from(u128::from(choices[0])));
            let (_, pairs) = blind(&choices, 8, SESSION, &mut { seed });
            for encoding in pairs.as_flattened() {
                assert!(decode(encoding).is_ok());
                assert!(seen.insert(*encoding));
            }
        }
    }

    #[test]
    fn both_branches_of_the_receiver_agree() {
        let mut rng = Prg::new(Block::from(11));
        let choices = [0xa5; TABLE_FROM / 8];
        let (halves, _) = blind(&choices, TABLE_FROM, SESSION, &mut rng);
        let public = RistrettoPoint::mul_base(&random_scalar(&mut rng))
            .compress()
            .to_bytes();
        let table = receiver_keys(&choices, &halves, &[1; 32], &public).unwrap();
        let single = receiver_keys(&choices[..1], &halves[..8], &[1; 32], &public).unwrap();
        assert!(table[..8] == single[..]);
    }
}
