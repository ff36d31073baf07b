//! The number of common items alone, by Diffie-Hellman: De Cristofaro, Gasti, Tsudik, *Fast and
//! Private Computation of Cardinality of Set Intersection and Union*, CANS 2012 (ePrint 2011/141),
//! Figure 1.
//!
//! ```text
//! Sender: X, n items                              Receiver: Y, m items
//! 0. both: sizes, terms, seed, committed to       (module agree)
//!                                                 1. b random, B_i = b*H1(y_i)
//!    <------------------- B_1 .. B_m ------------
//! 2. a random, C = (a*B_i) in a random order,
//!    T = { H2(a*H1(x)) }
//!    ------- C; T, ascending; end -------------->
//!                                                 3. count of { H2(b^-1*C_j) } and T
//! ```
//!
//! The group is Ristretto255. `H1` and `H2` are drawn from the seed, so after both parties have
//! fixed their items; `a` and `b` are new in each run. A tag of `T` has `40 + log2 n + log2 m`
//! bits, rounded up, so that two honest parties count a pair of different items with probability at
//! most 2^-40. The tags are coded as in [`vole`](crate::vole): sorted, in less than two bits more
//! than `40 + log2 m` each. The order of `C` is uniform among all `m!`.
//!
//! Changes to Figure 1: the paper adds an element that both compute by a key agreement of their own
//! to what is hashed, `g^(R_c R_s)`; here `H2` depends on the seed instead. Tags are truncated,
//! sorted and coded, and the receiver checks what it gets, see below.
//!
//! Security: **semi-honest**. Each party learns the size of the other's set, the receiver also the
//! number of common items, and nothing else, under the decisional Diffie-Hellman assumption if `H1`
//! and `H2` are random oracles. Against a peer that deviates:
//!
//! * *A malicious sender learns the receiver's size only.* It sees `m` elements `b*H1(y_i)`, which
//!   are random to it under the same assumption, and no error of the receiver depends on the
//!   receiver's items: a multiplication by `b^-1` maps elements other than the identity to such
//!   elements, and different ones to different ones. But the sender determines the number that the
//!   receiver gets: by other items than it has, by tags or elements that belong to no item. Only
//!   `m` different elements are accepted, so the number is at most `min(n, m)`.
//! * *A malicious receiver learns at most which of `m` items of its choice are common*, as after an
//!   intersection. It gets `a` times `m` elements of its choice, and with those can compute
//!   `a*H1(x)` for at most `m` items, under the one-more gap Diffie-Hellman assumption; all other
//!   tags are random to it. It does learn that much: where it multiplies each item by another
//!   number instead of `b`, it finds out which answer belongs to which, in time that grows with the
//!   square of the number of items that it wants to tell apart. **The number alone is not
//!   guaranteed against a receiver that deviates**, and no proof of its conduct is part of the
//!   protocol.
//! * Neither can choose the seed, or its items by the seed.
//!
//! The number itself can say much: of a receiver with one item, it tells whether that is common,
//! and two runs whose sets differ in one item do the same. Limits on sizes and on repetition are
//! up to the caller.
//!
//! A failed check ends the run with an error and no result. The end of the sender is a hash of the
//! seed and of all messages after step 0, so that a transmission error is noticed by the receiver.
//!
//! Cost: 3 messages from the sender and 2 from the receiver, in two round trips. The sender sends
//! 112 bytes, 32 for each item of the receiver and about 8 for each of its own; the receiver sends
//! 96 bytes and 32 for each of its items: [`bytes`]. If a set is empty, 96 bytes each way.
//! Computation is a hash to the group for each item, a multiplication for each item of the sender,
//! and three for each of the receiver, of which the sender does one.

mod protocol;

use curve25519_dalek::Scalar;
use rayon::prelude::*;
use volery_channel::{Channel, Role, SessionId};
use volery_primitives::Block;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use volery_primitives::ristretto::{ENCODED, Points};
use volery_primitives::ro::{RandomOracle, StreamHash};
use zeroize::{Zeroize, Zeroizing};

use crate::agree::{Agreement, Terms};
use crate::duplicates::check_duplicates;
use crate::error::{Result, misbehaved};
use crate::failure::STATISTICAL;
use crate::items::{self, Items};
use crate::rice::Rice;
use crate::watch::{Phase, Watch};

pub use protocol::Count;

/// Elements that one thread works on at a time: their lists stay in the level-2 cache.
const TASK: usize = 256;

/// Elements that are sent or received at a time.
const PIECE: usize = 1 << 14;

type EncodedElement = [u8; ENCODED];

/// Bytes that the sender and the receiver send.
///
/// # Panics
/// If a set is larger than [`MAX_ITEMS`](crate::params::MAX_ITEMS).
pub fn bytes(sender_items: u64, receiver_items: u64) -> (u64, u64) {
    if sender_items == 0 || receiver_items == 0 {
        return (96, 96);
    }
    let parameters = Parameters::new(sender_items, receiver_items);
    let points = ENCODED as u64 * receiver_items;
    (96 + points + parameters.tags().bytes() + 16, 96 + points)
}

/// The parameters of a run: the numbers of items, and the length of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Items of the sender.
    pub sender_items: u64,
    /// Items of the receiver.
    pub receiver_items: u64,
    /// Bits of a tag.
    pub tag: u32,
}

impl Parameters {
    /// The parameters for two sets of these sizes.
    ///
    /// # Panics
    /// If a set is larger than [`MAX_ITEMS`](crate::params::MAX_ITEMS).
    pub fn new(sender_items: u64, receiver_items: u64) -> Self {
        let most = crate::params::MAX_ITEMS;
        assert!(sender_items.max(receiver_items) <= most, "sets too large");
        Self::with_bits(STATISTICAL, sender_items, receiver_items)
    }

    /// With tags of which two are equal with probability `2^-bits` at most.
    fn with_bits(bits: u32, sender_items: u64, receiver_items: u64) -> Self {
        let log = |items: u64| items.max(1).next_power_of_two().ilog2();
        Self { sender_items, receiver_items, tag: bits + log(sender_items) + log(receiver_items) }
    }

    fn tags(&self) -> Rice {
        Rice::new(self.sender_items, self.tag)
    }

    /// The tag of an output of `H2`.
    fn truncate(&self, output: Block) -> u128 {
        // mutant(psi-count-tag): `(128 - self.tag)` => `$0 & if $ON { !3 } else { !0 }`
        u128::from(output) >> (128 - self.tag)
    }
}

fn terms() -> Terms {
    let terms = RandomOracle::new("volery psi: terms").absorb(b"count").finish32();
    *terms.first_chunk().expect("32 bytes")
}

/// A party after step 0, with its items.
struct Run {
    agreement: Agreement,
    parameters: Parameters,
    digests: Buffer<Block>,
    /// Of the messages after step 0.
    transcript: StreamHash,
}

impl Run {
    fn begin(
        (role, session, rng): (Role, SessionId, &mut Prg),
        items: &(impl Items + ?Sized),
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Self> {
        watch.begin(Phase::Agree, 0);
        let agreement = Agreement::reach(role, session, rng, terms(), (items.len(), 0), channel)?;
        watch.begin(Phase::Hash, items.len() as u64);
        let digests = items::digests(&agreement.salt(), items, &mut |done| {
            watch.done(done as u64);
        });
        check_duplicates(&digests, |item| item)?;
        Ok(Self {
            parameters: Parameters::new(agreement.sender_items, agreement.receiver_items),
            agreement,
            digests,
            transcript: StreamHash::default(),
        })
    }

    /// Whether a set is empty, so that the run is over.
    const fn trivial(&self) -> bool {
        self.parameters.sender_items == 0 || self.parameters.receiver_items == 0
    }

    /// `H1` of these items, times twice the scalar.
    fn points(&self, digests: &[Block], half: &Scalar, out: &mut [EncodedElement]) {
        let key = self.agreement.derive("count", 1);
        out.par_chunks_mut(TASK).zip(digests.par_chunks(TASK)).for_each(|(out, digests)| {
            let mut strings = Zeroizing::new(vec![[0; 64]; digests.len()]);
            let mut oracle = RandomOracle::new("volery psi count: point");
            oracle.absorb(&key);
            for (string, digest) in strings.iter_mut().zip(digests) {
                oracle.clone().absorb(&digest.to_bytes()).finish_into(string);
            }
            let mut points = Points::from_uniform(&strings);
            points.multiply(half);
            points.encode_doubles(out);
        });
    }

    /// `H2` of these elements.
    fn hash(&self, points: &[EncodedElement], out: &mut [Block]) {
        items::hash(&self.agreement.derive("count", 2), points, 0, out);
    }

    /// The last block of the sender, which shows that both have seen the same messages.
    fn end(&self) -> [u8; 16] {
        RandomOracle::new("volery psi count: end")
            .absorb(&self.agreement.derive("count", 3))
            .absorb(&self.transcript.finish32())
            .finish_block()
            .to_bytes()
    }
}

/// A random scalar other than zero.
fn scalar(rng: &mut Prg) -> Zeroizing<Scalar> {
    let mut bytes = Zeroizing::new([0; 64]);
    loop {
        rng.fill_bytes(&mut bytes[..]);
        let scalar = Zeroizing::new(Scalar::from_bytes_mod_order_wide(&bytes));
        if *scalar != Scalar::ZERO {
            return scalar;
        }
    }
}

/// Half of a scalar: the kernels encode the doubles of elements.
fn half(scalar: &Scalar) -> Zeroizing<Scalar> {
    Zeroizing::new(scalar * Scalar::from(2_u8).invert())
}

/// Multiplies elements of the peer by twice the scalar.
fn multiply(points: &mut [EncodedElement], half: &Scalar) -> Result<()> {
    points.par_chunks_mut(TASK).try_for_each(|encodings| {
        // mutant(psi-count-identity): `!points.any_identity()` => `true`
        let decoded = Points::decode(encodings).filter(|points| !points.any_identity());
        // mutant(psi-count-group): `Some(mut points) = decoded` => `other = || $ON.then(||
        //     Points::from_uniform(&vec![[1; 64]; encodings.len()])); let $0.or_else(other)`
        let Some(mut points) = decoded else {
            return Err(misbehaved("it sent what is not an element of the group, or the identity"));
        };
        points.multiply(half);
        points.encode_doubles(encodings);
        Ok(())
    })
}

/// The sender, who learns the size of the receiver's set, lets the receiver learn how many of its
/// items are among these, in a session that is used for nothing else. The call fixes the items,
/// which must be distinct.
///
/// # Errors
/// [`Error::Duplicate`](crate::Error::Duplicate) if two items are equal;
/// [`Error::TooMany`](crate::Error::TooMany) if there are more than
/// [`MAX_ITEMS`](crate::params::MAX_ITEMS); if the channel fails, or the peer does not follow
/// the protocol.
pub fn send(
    (session, mut rng): (SessionId, Prg),
    items: &(impl Items + ?Sized),
    watch: &mut dyn Watch,
    channel: &mut Channel,
) -> Result<Parameters> {
    let party = (Role::Sender, session, &mut rng);
    let mut run = Run::begin(party, items, watch, channel)?; // step 0
    let parameters = run.parameters;
    if run.trivial() {
        return Ok(parameters);
    }
    // The tags depend on nothing that the receiver sends, who computes meanwhile.
    let secret = scalar(&mut rng); // step 2
    let half = half(&secret);
    let steps = parameters.sender_items + parameters.receiver_items;
    watch.begin(Phase::Rows, steps);
    let mut done = 0;
    let mut points = Zeroizing::new(vec![[0; ENCODED]; PIECE.min(items.len())]);
    let mut outputs = Buffer::zeroed(items.len());
    for (digests, outputs) in run.digests.chunks(PIECE).zip(outputs.chunks_mut(PIECE)) {
        let points = &mut points[..digests.len()];
        run.points(digests, &half, points);
        run.hash(points, outputs);
        done += digests.len() as u64;
        watch.done(done);
    }
    drop(points);
    // The order indexes this party's own memory.
    outputs.par_sort_unstable_by_key(|&output| u128::from(output));

    let mut points = vec![[0; ENCODED]; parameters.receiver_items as usize];
    for points in points.chunks_mut(PIECE) {
        channel.recv(points.as_flattened_mut())?;
        run.transcript.update(points.as_flattened());
        multiply(points, &half)?;
        done += points.len() as u64;
        watch.done(done);
    }
    // mutant(psi-count-shuffle): drop
    shuffle(&mut points, &mut rng);

    watch.begin(Phase::Match, 0);
    for points in points.chunks(PIECE) {
        run.transcript.update(points.as_flattened());
        channel.send(points.as_flattened())?;
    }
    let tags = outputs.iter().map(|&output| parameters.truncate(output));
    for tag in tags.clone() {
        run.transcript.update(&tag.to_le_bytes());
    }
    parameters.tags().send(tags, channel)?;
    channel.send(&run.end())?;
    channel.flush()?;
    Ok(parameters)
}

/// Brings elements into an order that is uniform among all of them, by Fisher and Yates.
fn shuffle(points: &mut [EncodedElement], rng: &mut Prg) {
    // The places index this party's own memory.
    for last in (1..points.len()).rev() {
        points.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

/// The receiver learns how many of these items are among the sender's, and the size of the sender's
/// set. The call fixes the items, which must be distinct. Fails as [`send`] does.
pub fn receive(
    (session, mut rng): (SessionId, Prg),
    items: &(impl Items + ?Sized),
    watch: &mut dyn Watch,
    channel: &mut Channel,
) -> Result<(Parameters, u64)> {
    let party = (Role::Receiver, session, &mut rng);
    let mut run = Run::begin(party, items, watch, channel)?; // step 0
    let parameters = run.parameters;
    if run.trivial() {
        return Ok((parameters, 0));
    }
    let secret = scalar(&mut rng); // step 1
    watch.begin(Phase::Rows, parameters.receiver_items);
    let mut points = Zeroizing::new(vec![[0; ENCODED]; PIECE.min(items.len())]);
    let mut done = 0;
    for digests in run.digests.chunks(PIECE) {
        let points = &mut points[..digests.len()];
        run.points(digests, &half(&secret), points);
        run.transcript.update(points.as_flattened());
        channel.send(points.as_flattened())?;
        done += digests.len() as u64;
        watch.done(done);
    }
    channel.flush()?;

    watch.begin(Phase::Match, parameters.receiver_items);
    let inverse = half(&Zeroizing::new(secret.invert()));
    let mut outputs = Buffer::zeroed(items.len());
    let mut done = 0;
    for outputs in outputs.chunks_mut(PIECE) {
        let points = &mut points[..outputs.len()];
        channel.recv(points.as_flattened_mut())?; // step 3
        run.transcript.update(points.as_flattened());
        multiply(points, &inverse)?;
        run.hash(points, outputs);
        done += outputs.len() as u64;
        watch.done(done);
    }
    // The order indexes this party's own memory.
    outputs.par_sort_unstable_by_key(|&output| u128::from(output));
    let common = common(&mut run, &outputs, channel)?;
    let mut end = [0; 16];
    channel.recv(&mut end)?;
    // mutant(psi-count-end): false
    if end != run.end() {
        return Err(misbehaved("it has seen or sent other messages than this party"));
    }
    // mutant(psi-count-distinct): false
    if !outputs.is_sorted_by(|one, next| u128::from(*one) < u128::from(*next)) {
        return Err(misbehaved("its elements are not distinct"));
    }
    Ok((parameters, common))
}

/// The number of these outputs, which ascend, with a tag among those of the sender.
fn common(run: &mut Run, outputs: &[Block], channel: &mut Channel) -> Result<u64> {
    let mut ours = outputs.iter().map(|&output| run.parameters.truncate(output)).peekable();
    let mut reader = run.parameters.tags().receive(false);
    let mut tags = Vec::new();
    let mut common = 0;
    loop {
        reader.read(PIECE, &mut tags, channel)?;
        if tags.is_empty() {
            tags.zeroize();
            return Ok(common);
        }
        for &tag in &tags {
            run.transcript.update(&tag.to_le_bytes());
            while ours.next_if(|&our| our < tag).is_some() {}
            while ours.next_if(|&our| our == tag).is_some() {
                common += 1;
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod counting;
#[cfg(test)]
mod tests;
