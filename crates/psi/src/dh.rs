//! Set intersection and keyword search for small sets from Diffie-Hellman key agreement, secure
//! against malicious parties: Rosulek, Trieu, *Compact and Malicious Private Set Intersection for
//! Small Sets*, CCS 2021 (ePrint 2021/1159), Figure 4.
//!
//! ```text
//! Sender: X, n items                              Receiver: Y, m items
//! 0. both: sizes, terms, seed, committed to       (module agree)
//! 1. and 2. a random, A = a*G
//!    ------------------- A ---------------------->
//!                                                 3. b_i random, B_i = b_i*(G + T),
//!                                                    r_i its representative, f_i = P^-1(r_i)
//!                                                 4. p of degree m with leading coefficient 1,
//!                                                    p(H1(y_i)) = f_i and a random highest bit
//!    <------ the m lower coefficients of p -------
//! 5. r = P(p(H1(x))), B its point
//!    k = H2(x, A, r, a*B) for each x
//! 6. ----- all k, ascending; values; end -------->
//!                                                 7. y_i is common if k contains
//!                                                    H2(y_i, A, r_i, b_i*A)
//! ```
//!
//! The group is Curve25519, and the field of the polynomial is its field, modulo 2^255 - 19.
//! Representatives are those of Elligator 2, strings of 254 bits; so `P` is a permutation of
//! 254-bit strings, and the highest bit of the 255 bits of a field element is free. `a` is a
//! multiple of 8, which clears the part of small order. Everything depends on the seed: `H1`, `H2`
//! (through the hash of the item) and `P` are drawn after both parties have fixed their items.
//!
//! For keyword search, `H2` is longer: its first 128 bits are the tag, the others are added to the
//! length and the value, padded to the longest one as in [`lookup`]. The sender ends
//! with a hash of the seed and of all messages, so that a transmission error is noticed.
//!
//! Changes to Figure 4:
//!
//! * `p` has degree exactly `m`, with leading coefficient 1, and is as uniform as a polynomial of
//!   degree below `m`. A constant would give the receiver a key for every item; the paper lets the
//!   sender abort if `p` is constant, and so for every receiver with one item. Here no coefficients
//!   make it constant.
//! * Tags have 128 bits, not 256; see below.
//! * `H2` has the message `r` among its inputs: several `r` have the same `a*B`.
//! * The receiver does not wait for `A`, which its polynomial does not depend on (the paper's
//!   optimization of Section 4 for such key agreements).
//!
//! Security: **malicious** sender or receiver, with the functionality of the paper's Figure 2. It
//! assumes that `H1` and `H2` are random oracles, that `P` is an ideal permutation (the module
//! `permutation` says what is proven about the one used), and that Diffie-Hellman keys of
//! Curve25519 are hard to compute even with an oracle that tells whether a key is right: the gap
//! Diffie-Hellman assumption, which gives the oracle Diffie-Hellman assumption of the paper if `H2`
//! is a random oracle.
//!
//! * A receiver learns the common items of the sender's set and of a set of `m'` items that is
//!   fixed when it sends `p`: those that it has hashed with `p(H1(y)) = P^-1(r)` for a key `r` of
//!   its own. `m'` may exceed `m`. But `m` points determine `p`, which hits any further one with
//!   probability at most `m / 2^255`. So with probability 1 - 2^-40 (a union bound over all choices
//!   of points) there is no polynomial for `1.5 m + 2` items with 2^40 evaluations of `H1` and of
//!   `P`, for `2 m + 2` with 2^64, or for `2.8 m + 2` with 2^80; the paper conjectures that finding
//!   those that exist is hard.
//! * A sender learns nothing but `m`, and its messages fix its set. That is larger than the stated
//!   `n` only if two items have the same tag, for which it must compute about 2^64 keys while the
//!   receiver waits: the tags depend on `p`. Its values are any strings of the stated length.
//!
//! A failed check ends the run with an error and no result. It does not depend on the items of the
//! receiver. Two tags of different items are equal with probability 2^-128, so that a wrong result
//! between honest parties has probability at most 2^-100 with the largest sets.
//!
//! Leakage: each party learns the size of the other's set; the receiver learns which of its items
//! are common, in a search also their values and the length of the longest value of all.
//!
//! Cost: 4 messages from the sender (commitment, opening, `A`, tags) and 3 from the receiver
//! (commitment, opening, polynomial), in two round trips. The sender sends 144 bytes, 16 for each
//! of its items and in a search the longest value plus 2; the receiver sends 96 bytes and 32 for
//! each of its items: [`bytes`]. If a set is empty, 96 bytes each way. Computation is a
//! multiplication in the group for each item of the sender and, on average, three for each of the
//! receiver, and about `m (n + m)` multiplications of field elements.

mod elligator;
mod permutation;
mod polynomial;
mod protocol;

use curve25519_dalek::MontgomeryPoint;
use curve25519_dalek::traits::IsIdentity;
use rayon::prelude::*;
use volery_channel::{Channel, Role, SessionId};
use volery_primitives::Block;
use volery_primitives::curve25519::{Element, multiply};
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use zeroize::{Zeroize, Zeroizing};

use crate::agree::{Agreement, Terms};
use crate::duplicates::check_duplicates;
use crate::error::{Error, Result, misbehaved};
use crate::items::Items;
use crate::lookup::{self, LENGTH, MAX_VALUE, cut, longest};
use crate::matching::Outcome;
use crate::watch::{Phase, Watch};
use elligator::{Key, TASK, map, sample};
use permutation::Permutation;
use polynomial::{evaluate, interpolate};

pub use protocol::Dh;

/// The maximum number of items of a set: time grows with the square of the number, and other
/// protocols are faster long before.
pub const MAX_ITEMS: u64 = 1 << 14;

/// The coordinate of `G`, the base point of RFC 7748.
const BASE: [u8; 32] = {
    let mut base = [0; 32];
    base[0] = 9;
    base
};

/// Bytes of a tag.
const TAG: usize = 16;

/// Bytes that the sender and the receiver send; `value` is the length of the longest value in a
/// search, and `None` in an intersection.
pub const fn bytes(sender_items: u64, receiver_items: u64, value: Option<usize>) -> (u64, u64) {
    if sender_items == 0 || receiver_items == 0 {
        return (96, 96);
    }
    let item = TAG + payload(value);
    (144 + sender_items * item as u64, 96 + 32 * receiver_items)
}

/// Bytes of an encrypted value.
const fn payload(value: Option<usize>) -> usize {
    match value {
        Some(longest) => LENGTH + longest,
        None => 0,
    }
}

/// The parameters of a run: the numbers of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Items of the sender.
    pub sender_items: u64,
    /// Items of the receiver.
    pub receiver_items: u64,
}

/// The protocols of this module.
#[derive(Clone, Copy)]
enum Protocol {
    Intersection,
    Search,
}

impl Protocol {
    fn terms(self) -> Terms {
        let name = match self {
            Self::Intersection => "dh intersection",
            Self::Search => "dh search",
        };
        let terms = RandomOracle::new("volery psi: terms").absorb(name.as_bytes()).finish32();
        *terms.first_chunk().expect("32 bytes")
    }
}

/// The message and the key of each item.
type Keys = Zeroizing<Vec<[[u8; 32]; 2]>>;

/// The hash of an item, in two parts.
#[derive(Clone, Copy, Zeroize)]
struct Digest {
    /// `H1` of the item.
    point: Element,
    /// Stands for the item in `H2`.
    name: [u8; 32],
}

/// A party after step 0, with its items.
struct Run {
    agreement: Agreement,
    digests: Zeroizing<Vec<Digest>>,
}

impl Run {
    fn begin(
        (role, session, rng): (Role, SessionId, &mut Prg),
        items: &(impl Items + ?Sized),
        (protocol, note): (Protocol, u64),
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Self> {
        if items.len() as u64 > MAX_ITEMS {
            return Err(Error::TooMany { items: items.len() as u64, most: MAX_ITEMS });
        }
        watch.begin(Phase::Agree, 0);
        let said = (items.len(), note);
        let agreement = Agreement::reach(role, session, rng, protocol.terms(), said, channel)?;
        // mutant(psi-dh-sizes): false
        if agreement.sender_items.max(agreement.receiver_items) > MAX_ITEMS {
            return Err(misbehaved("it announced a set larger than the maximum of this protocol"));
        }
        watch.begin(Phase::Hash, items.len() as u64);
        let mut oracle = RandomOracle::new("volery psi dh: item");
        oracle.absorb(&agreement.salt());
        let digest = |item| {
            let mut hash = Zeroizing::new([0; 64]);
            oracle.clone().absorb(items.item(item)).finish_into(&mut hash[..]);
            let ([point, name], _) = hash.as_chunks() else {
                unreachable!("64 bytes are two chunks of 32")
            };
            Digest { point: Element::from_bytes(point), name: *name }
        };
        let digests = (0..items.len()).into_par_iter().map(digest).collect();
        let digests: Zeroizing<Vec<Digest>> = Zeroizing::new(digests);
        let blocks = digests.iter().map(|digest| {
            let (block, _) = digest.name.split_first_chunk().expect("32 bytes");
            Block::from_bytes(*block)
        });
        let blocks = Zeroizing::new(blocks.collect::<Vec<_>>());
        check_duplicates(&blocks, |item| item)?;
        Ok(Self { agreement, digests })
    }

    fn parameters(&self) -> Parameters {
        Parameters {
            sender_items: self.agreement.sender_items,
            receiver_items: self.agreement.receiver_items,
        }
    }

    /// Whether a set is empty, so that the run is over.
    fn trivial(&self) -> bool {
        self.agreement.sender_items == 0 || self.agreement.receiver_items == 0
    }

    /// `H1` of all items.
    fn points(&self) -> Zeroizing<Vec<Element>> {
        Zeroizing::new(self.digests.iter().map(|digest| digest.point).collect())
    }

    fn permutation(&self) -> Permutation {
        let key = RandomOracle::new("volery psi dh: permutation")
            .absorb(&self.agreement.salt())
            .finish32();
        Permutation::new(key)
    }

    /// The message in the polynomial and the key of each item.
    fn answers(&self, secret: &[u8; 32], polynomial: &[Element]) -> Keys {
        let permutation = self.permutation();
        // mutant(psi-dh-constant): `let values = evaluate(Element::ONE, polynomial,
        //     &self.points())` => `let leading = if $ON { Element::ZERO } else { Element::ONE };
        //     let values = evaluate(leading, polynomial, &self.points())`
        let values = evaluate(Element::ONE, polynomial, &self.points());
        let mut keys = Zeroizing::new(vec![[[0; 32]; 2]; values.len()]);
        keys.par_chunks_mut(TASK).zip(values.par_chunks(TASK)).for_each(|(keys, values)| {
            for ([message, _], value) in keys.iter_mut().zip(values) {
                *message = permutation.forward(&value.to_bytes());
            }
            let messages = keys.iter().map(|[message, _]| Element::from_bytes(message));
            let points = map(&Zeroizing::new(messages.collect::<Vec<_>>()));
            let points = points.iter().map(|point| point.to_bytes());
            let points = Zeroizing::new(points.collect::<Vec<_>>());
            let multiples = multiply(&[*secret], &points);
            for ([_, key], &multiple) in keys.iter_mut().zip(multiples.iter()) {
                *key = multiple;
            }
        });
        keys
    }

    /// `H2`: `size` bytes for each item, given its message and its key.
    fn derive(&self, public: &[u8; 32], keys: &Keys, size: usize) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(vec![0; keys.len() * size]);
        out.par_chunks_exact_mut(size)
            .enumerate()
            .with_min_len(TASK)
            .for_each(|(item, out)| self.derive_one(public, keys, item, out));
        out
    }

    /// `H2` for one item: of any two lengths the shorter one begins the longer one.
    fn derive_one(&self, public: &[u8; 32], keys: &Keys, item: usize, out: &mut [u8]) {
        let [message, key] = &keys[item];
        // mutant(psi-dh-message): `message` => `&[]`
        RandomOracle::new("volery psi dh: tag")
            .absorb(public)
            .absorb(&self.digests[item].name)
            .absorb(message)
            .absorb(key)
            .finish_into(out);
    }

    /// The last block of the sender, which shows that both have seen the same messages.
    fn end(&self, messages: [&[u8]; 4]) -> [u8; 16] {
        let mut oracle = RandomOracle::new("volery psi dh: end");
        oracle.absorb(&self.agreement.salt());
        for message in messages {
            oracle.absorb(message);
        }
        oracle.finish_block().to_bytes()
    }
}

/// Lets the receiver learn which of its items are among these, and in a search the values of
/// common ones, of which there is one for each item. The call fixes items and values; the items
/// must be distinct. The session is used for nothing else; the randomness is this party's.
///
/// # Panics
/// If the numbers of items and values differ.
///
/// # Errors
/// [`Error::Duplicate`] if two items are equal; [`Error::TooMany`] if there are more than
/// [`MAX_ITEMS`]; [`Error::LongValue`] if a value is longer than [`MAX_VALUE`] bytes; if the
/// channel fails, or the peer does not follow the protocol.
pub fn send(
    (session, mut rng): (SessionId, Prg),
    items: &(impl Items + ?Sized),
    values: Option<&dyn Items>,
    watch: &mut dyn Watch,
    channel: &mut Channel,
) -> Result<Outcome> {
    let count = values.map_or(items.len(), Items::len);
    assert_eq!(items.len(), count, "a value for each keyword");
    let longest = values.map(longest).transpose()?;
    let terms = match longest {
        Some(longest) => (Protocol::Search, longest as u64),
        None => (Protocol::Intersection, 0),
    };
    let party = (Role::Sender, session, &mut rng);
    let run = Run::begin(party, items, terms, watch, channel)?; // step 0
    let outcome = Outcome { longest, ..Outcome::with(run.parameters()) };
    if run.trivial() {
        return Ok(outcome);
    }
    let mut secret = Zeroizing::new([0; 32]);
    rng.fill_bytes(&mut secret[..]); // step 1
    // mutant(psi-dh-cofactor): drop
    secret[0] &= !7; // a multiple of 8
    let public = multiply(&[*secret], &[BASE])[0];
    channel.send(&public)?; // step 2
    channel.flush()?;

    watch.begin(Phase::Rows, run.agreement.sender_items);
    let mut received = vec![[0; 32]; run.agreement.receiver_items as usize];
    channel.recv(received.as_flattened_mut())?; // step 4
    let polynomial = received.iter().map(Element::from_canonical);
    // mutant(psi-dh-coefficients): insert `let polynomial =
    //     polynomial.zip(&received).map(|(number, bytes)| if $ON {
    //     Some(Element::from_bytes(bytes)) } else { number });`
    let Some(polynomial) = polynomial.collect::<Option<Vec<_>>>() else {
        return Err(misbehaved("a coefficient is not below 2^255 - 19"));
    };
    let keys = run.answers(&secret, &polynomial); // step 5
    watch.done(run.agreement.sender_items);

    watch.begin(Phase::Match, run.agreement.sender_items);
    let size = payload(longest);
    let mut hashes = run.derive(&public, &keys, TAG + size);
    if let Some(values) = values {
        for (item, hash) in hashes.chunks_exact_mut(TAG + size).enumerate() {
            let value = values.item(item);
            let length = (value.len() as u16).to_le_bytes();
            for (byte, plain) in hash[TAG..].iter_mut().zip(length.iter().chain(value)) {
                *byte ^= plain;
            }
        }
    }
    // The order indexes this party's own memory.
    let mut sorted: Vec<_> = hashes.chunks_exact(TAG + size).collect();
    sorted.sort_unstable();
    let tags: Vec<_> = sorted.iter().flat_map(|hash| &hash[..TAG]).copied().collect();
    let ciphertexts = sorted.iter().flat_map(|hash| &hash[TAG..]);
    let ciphertexts: Vec<_> = ciphertexts.copied().collect();
    let messages = [&public, received.as_flattened(), &tags, &ciphertexts];
    let end = run.end(messages);
    channel.send(&tags)?; // step 6
    channel.send(&ciphertexts)?;
    channel.send(&end)?;
    channel.flush()?;
    watch.done(run.agreement.sender_items);
    Ok(outcome)
}

/// Learns which of these items are among the sender's, and in a search their values. The call fixes
/// the items, which must be distinct. A malicious sender chooses the values, each of at most
/// [`longest`](Outcome::longest) bytes. Fails as [`send`] does.
pub fn receive(
    (session, mut rng): (SessionId, Prg),
    items: &(impl Items + ?Sized),
    search: bool,
    watch: &mut dyn Watch,
    channel: &mut Channel,
) -> Result<Outcome> {
    let protocol = if search { Protocol::Search } else { Protocol::Intersection };
    let party = (Role::Receiver, session, &mut rng);
    let run = Run::begin(party, items, (protocol, 0), watch, channel)?; // step 0
    let longest = usize::try_from(run.agreement.note).unwrap_or(usize::MAX);
    // mutant(psi-dh-values): false
    if longest > MAX_VALUE {
        return Err(misbehaved("it announced values longer than the maximum"));
    }
    let size = payload(search.then_some(longest));
    let (mut common, mut values) = (Vec::new(), Vec::new());
    let outcome = |common, values| Outcome {
        common: Some(common),
        values,
        longest: search.then_some(longest),
        ..Outcome::with(run.parameters())
    };
    if run.trivial() {
        return Ok(outcome(common, values));
    }
    watch.begin(Phase::Place, run.agreement.receiver_items);
    let own = sample(items.len(), &mut rng); // step 3
    let permutation = run.permutation();
    let mut highest = Zeroizing::new(vec![0; items.len()]);
    rng.fill_bytes(&mut highest);
    let preimages = own.iter().zip(highest.iter()).map(|(key, random)| {
        let mut preimage = permutation.backward(&key.representative.to_bytes());
        // mutant(psi-dh-highest-bit): drop
        preimage[31] |= random & 0x40;
        Element::from_bytes(&preimage)
    });
    let preimages = Zeroizing::new(preimages.collect::<Vec<_>>());
    let polynomial = interpolate(&run.points(), &preimages); // step 4
    let coefficients = polynomial.iter().map(|coefficient| coefficient.to_bytes());
    let coefficients: Vec<_> = coefficients.collect();
    channel.send(coefficients.as_flattened())?;
    channel.flush()?;
    let mut public = [0; 32];
    channel.recv(&mut public)?; // step 2
    check_public(&public)?;
    watch.done(run.agreement.receiver_items);

    watch.begin(Phase::Match, run.agreement.receiver_items);
    let keys = shared_keys(&public, &own);
    // The streams of values follow for common items only: their length is the sender's word.
    let hashes = run.derive(&public, &keys, TAG);
    let mut tags = vec![[0; TAG]; run.agreement.sender_items as usize];
    channel.recv(tags.as_flattened_mut())?; // step 6
    let ciphertexts = lookup::receive(tags.len() * size, channel)?;
    let mut end = [0; 16];
    channel.recv(&mut end)?;
    let coefficients = coefficients.as_flattened();
    // mutant(psi-dh-end): false
    if end != run.end([&public, coefficients, tags.as_flattened(), &ciphertexts]) {
        return Err(misbehaved("it has seen or sent other messages than this party"));
    }
    // mutant(psi-dh-order): false
    if !tags.is_sorted_by(|one, next| one < next) {
        return Err(misbehaved("its tags are not distinct or not in order"));
    }
    let mut hash = Zeroizing::new(vec![0; TAG + size]);
    for (item, tag) in hashes.as_chunks().0.iter().enumerate() {
        // The place indexes this party's own memory.
        let Ok(place) = tags.binary_search(tag) else {
            continue;
        };
        common.push(item); // step 7
        if search {
            let ciphertext = &ciphertexts[place * size..][..size];
            run.derive_one(&public, &keys, item, &mut hash);
            values.push(decrypt(ciphertext, &hash[TAG..]));
        }
    }
    watch.touched(values.len() as u64);
    watch.done(run.agreement.receiver_items);
    Ok(outcome(common, values))
}

/// Checks the sender's key: an element other than the identity of the subgroup of prime order.
fn check_public(public: &[u8; 32]) -> Result<()> {
    let point = Element::from_canonical(public).and(MontgomeryPoint(*public).to_edwards(0));
    match point {
        // mutant(psi-dh-key): insert `Some(_) if $ON => Ok(()),`
        Some(point) if point.is_torsion_free() && !point.is_identity() => Ok(()),
        // mutant(psi-dh-no-key): insert `_ if $ON => Ok(()),`
        _ => Err(misbehaved("its key is not an element of the group")),
    }
}

/// The message and the key of each item of the receiver.
fn shared_keys(public: &[u8; 32], own: &[Key]) -> Keys {
    let mut keys = Zeroizing::new(vec![[[0; 32]; 2]; own.len()]);
    keys.par_chunks_mut(TASK).zip(own.par_chunks(TASK)).for_each(|(keys, own)| {
        let secrets = Zeroizing::new(own.iter().map(|key| key.secret).collect::<Vec<_>>());
        let multiples = multiply(&secrets, &[*public]);
        for ((out, key), &multiple) in keys.iter_mut().zip(own).zip(multiples.iter()) {
            *out = [key.representative.to_bytes(), multiple];
        }
    });
    keys
}

/// The value, as in [`crate::lookup`].
fn decrypt(ciphertext: &[u8], stream: &[u8]) -> Vec<u8> {
    let plain = ciphertext.iter().zip(stream).map(|(byte, stream)| byte ^ stream);
    let plain = Zeroizing::new(plain.collect::<Vec<_>>());
    cut(&plain).to_vec()
}

#[cfg(test)]
pub(crate) mod counting;
#[cfg(test)]
mod tests;
