//! The consistency check of a round: Appendix C of Ferret, over any field.
//!
//! After the trees of a round, for every leaf `i` of every tree `j` it must hold that `r_ji - m_ji
//! = y_j*x` at `i = alpha_j` and zero elsewhere (the key holder has `r` and `x`, the value holder
//! `m`, `alpha` and `y`). The check takes a random linear combination of all of it, masked by one
//! more correlation `w* = u**x + v*`:
//!
//! ```text
//! Key holder: x, r, w*                            Value holder: alpha, y, m, u*, v*
//! 1.                                              nonce random
//!    coefficients chi_ji = RO(session, round, all messages of the round in both directions, nonce)
//! 2.                                              phi = sum_j chi_(j, alpha_j) y_j,  x' = phi + u*
//!     <--------------- nonce, x' ----------------
//! 3. V = sum chi_ji r_ji - x'*x + w*              W = sum chi_ji m_ji + v*
//! 4. --------- commitment to V, salted --------->
//!     <------------------- W --------------------
//! 5. V = W, or abort
//!    ------------------ opening ---------------->  commitment and V = W, or abort
//! ```
//!
//! In an honest run, `V = sum chi m + phi*x - phi*x - u**x + w* = W`. Steps 4 and 5 are an equality
//! test in which the first sender is bound and the other learns nothing before it has shown that it
//! knows the value (F_EQ of Wolverine, ePrint 2020/925). The paper sends `H'(V)` instead, from
//! which a value holder with a wrong `x'` could find `x` by trying all of a small field; and its
//! key holder would never learn that the other one cheated.
//!
//! **Coefficients.** `chi_ji = a_j * b_i` with uniform independent `a_j` (one for each tree) and
//! `b_i` (one for each place in a tree). A non-zero error matrix `e` vanishes only if `e*b = 0`,
//! which has probability at most `1/|F|`, or if `a` is orthogonal to it: `2/|F|` together. The
//! coefficients depend on all messages, and on a nonce. The value holder, whom they protect, draws
//! the nonce after it has received the messages: a key holder cannot try one transcript after the
//! other. Over a field of fewer than 100 bits the check runs twice, with separate coefficients,
//! masks and values, in the same messages.
//!
//! **Leakage.** A key holder who sends wrong sums in a tree fixes a vector `r` for each class of
//! places that it distinguishes, and passes if it then commits to the value of the actual class: it
//! guesses, of Fig. 3, the side of `alpha`, or more. With `c` bits guessed it passes with `2^-c`,
//! and learns them; a wrong guess ends the session. LPN with that static leakage (functional
//! leakage for uniform noise: it can guess which bins are empty) is the assumption (Theorem 3). A
//! key holder who uses another `x` in a tree must guess `alpha` whole. It sees the coefficients
//! before it commits, so it can look for classes with one value: the probability that it passes in
//! a class whose `r` is not the one that it goes on with is at most the square root of `2/|F|`, or
//! of `(2/|F|)^2` where the check is done twice (the sum over the classes of the squares of their
//! probabilities, taken over pairs that collide). A value holder with wrong `x'` passes only by
//! guessing `x` itself. The key holder commits to `V` before it sees `W`; of a failed round, `W`
//! tells the key holder about places, which were samples of LPN and are not used further.
//!
//! Error: for each round 2^-60 over `fp61`, 2^-63 over `gf128` and for correlated OT, 2^-61 over
//! `fp31x4`; in general half of the bits of all repetitions, less one.
//!
//! Cost: 1 correlation over the large ring (of correlated OTs 128, packed), or 2 where it is done
//! twice; with `b` bytes of elements for these, `16 + b` and `b` bytes from the value holder, `32`
//! and `32 + b` from the key holder, in turn: 4 messages. One multiplication a leaf for each party,
//! or two.

use std::cmp::max;
use std::ops::Range;

use rayon::prelude::*;
use subtle::ConstantTimeEq;
use volery_channel::{Channel, Result, SessionId, TranscriptHashes};
use volery_field::{ExtensionOf, Ring};
use volery_primitives::{Block, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

use crate::{tree_batch::TreeBatch, wire};

const DIFFERENT: &str = "the consistency check of the correlations failed";

/// The number of parallel checks over `R`.
pub(crate) const fn repetitions<R: Ring>() -> usize {
    repetitions_of(R::BITS)
}

/// Likewise over a ring of `bits` bits.
pub(crate) const fn repetitions_of(bits: u32) -> usize {
    if bits < 100 { 2 } else { 1 }
}

/// The leaves of all trees of a round, wherever they are.
pub(crate) trait Leaves<R: Ring> {
    /// `sum chi_ji leaves_ji`, for each repetition.
    ///
    /// # Errors
    /// If what holds the leaves fails.
    fn fold(
        &mut self,
        batch: &TreeBatch,
        coefficients: &Coefficients<R>,
    ) -> Result<Zeroizing<Vec<R>>>;
}

/// Leaves that are looked at in runs.
pub(crate) trait Runs {
    /// The ring of the leaves.
    type Ring: Ring;

    /// Calls `look` with runs of trees and their leaves, which together make up the whole.
    fn for_each_run(&mut self, batch: &TreeBatch, look: impl FnMut(Range<usize>, &[Self::Ring]));
}

impl<R: Ring> Runs for &[R] {
    type Ring = R;

    fn for_each_run(&mut self, batch: &TreeBatch, mut look: impl FnMut(Range<usize>, &[R])) {
        look(0..batch.trees(), self);
    }
}

/// The context to which the coefficients and the commitment of one check are bound.
#[derive(Clone, Copy)]
pub(crate) struct Context {
    pub(crate) session: SessionId,
    pub(crate) round: u64,
}

/// Bytes of the messages of a round in both directions, hashed; equal at both parties.
#[derive(Clone, Copy)]
struct Messages {
    of_key_holder: [u8; 32],
    of_value_holder: [u8; 32],
}

/// The key holder's side, steps 2 to 5: `leaves` are the `r` of all trees, `mask` the `w*`, one for
/// each [repetition](repetitions). The messages of the round have been [bound](Channel::bind).
///
/// # Errors
/// If the channel or the check fails; the caller must not use `leaves` then.
pub(crate) fn key_holder<R: Ring>(
    context: Context,
    batch: &TreeBatch,
    x: R,
    mut leaves: impl Leaves<R>,
    mask: &[R],
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<()> {
    let TranscriptHashes { sent, received } = channel.bound();
    let messages = Messages { of_key_holder: sent, of_value_holder: received };
    let nonce = channel.recv_block()?; // step 2
    let mut x_prime = vec![R::ZERO; mask.len()];
    // mutant(check-canonical-coefficient): ignore
    wire::recv(
        &mut x_prime,
        "the masked coefficient of the check is not in canonical form",
        channel,
    )?;
    let coefficients = Coefficients::derive(context, messages, nonce, batch);
    let mut v = leaves.fold(batch, &coefficients)?; // step 3
    for ((v, x_prime), mask) in v.iter_mut().zip(&x_prime).zip(mask) {
        *v += *mask - *x_prime * x;
    }
    let mut salt = Zeroizing::new([0; 32]);
    // mutant(check-salt): drop
    rng.fill_bytes(&mut salt[..]);
    channel.send(&commitment(context, messages, &salt, &v))?; // step 4
    let mut w = vec![R::ZERO; v.len()];
    // mutant(check-canonical-value): ignore
    wire::recv(&mut w, "the value of the check is not in canonical form", channel)?;
    // mutant(check-key): `(v[..].ct_eq(&w[..]))` => `(if $ON[check-key-first] {
    //     v[..1].ct_eq(&w[..1]) } else if $ON[check-key-last] { v[v.len() - 1..].ct_eq(&w[v.len() -
    //     1..]) } else { v[..].ct_eq(&w[..]) }) && !$ON`
    // mutant(check-key-first): in check-key
    // mutant(check-key-last): in check-key
    channel.verdict(bool::from(v[..].ct_eq(&w[..])), DIFFERENT)?;
    channel.send(&salt[..])?; // step 5
    wire::send(&v, channel)?;
    channel.flush()
}

/// The value holder's side: `leaves` are the `m` of all trees, `alphas` and `values` its places and
/// their values, `mask` the `(u*, v*)`, one for each [repetition](repetitions). The messages of the
/// round have been [bound](Channel::bind).
///
/// # Errors
/// If the channel or the check fails; the caller must not use `leaves` then.
#[expect(clippy::too_many_arguments, reason = "all results of a round")]
pub(crate) fn value_holder<B: Ring, R: ExtensionOf<B>>(
    context: Context,
    batch: &TreeBatch,
    alphas: &[usize],
    values: &[B],
    mut leaves: impl Leaves<R>,
    mask: &[(R, R)],
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<()> {
    let TranscriptHashes { sent, received } = channel.bound();
    let messages = Messages { of_key_holder: received, of_value_holder: sent };
    // mutant(check-nonce-constant): `rng.block()` => `Block::ZERO`
    let nonce = rng.block(); // step 1
    let coefficients = Coefficients::<R>::derive(context, messages, nonce, batch);
    let x_prime: Vec<_> = (0..mask.len())
        .map(|repetition| {
            let chi = |(tree, (alpha, y)): (usize, (&usize, &B))| {
                coefficients.at(repetition, tree, *alpha).mul_base(*y)
            };
            let places = alphas.iter().zip(values).enumerate();
            // mutant(check-mask): `mask[repetition].0` => `R::ZERO`
            places.map(chi).fold(mask[repetition].0, |sum, term| sum + term)
        })
        .collect();
    channel.send_block(nonce)?; // step 2
    wire::send(&x_prime, channel)?;
    channel.flush()?;
    let mut w = leaves.fold(batch, &coefficients)?; // step 3
    for (w, mask) in w.iter_mut().zip(mask) {
        // mutant(check-mask-of-value): drop
        *w += mask.1;
    }
    let mut committed = [0; 32];
    channel.recv(&mut committed)?; // step 4
    wire::send(&w, channel)?;
    let mut salt = [0; 32];
    channel.recv(&mut salt)?; // step 5
    let mut v = vec![R::ZERO; w.len()];
    // mutant(check-canonical-opening): ignore
    wire::recv(&mut v, "the opened value of the check is not in canonical form", channel)?;
    // mutant(check-commitment): `commitment(context, messages, &salt, &v) != committed ||
    //     !bool::from(v[..].ct_eq(&w[..]))` => `(commitment(context, messages, &salt, &v) !=
    //     committed && !$ON) || !bool::from(if $ON[check-value-first] { v[..1].ct_eq(&w[..1]) }
    //     else if $ON[check-value-last] { v[v.len() - 1..].ct_eq(&w[v.len() - 1..]) } else {
    //     v[..].ct_eq(&w[..]) }) && !$ON[check-value]`
    // mutant(check-value): in check-commitment
    // mutant(check-value-first): in check-commitment
    // mutant(check-value-last): in check-commitment
    let different =
        commitment(context, messages, &salt, &v) != committed || !bool::from(v[..].ct_eq(&w[..]));
    channel.verdict(!different, DIFFERENT)
}

/// Step 4: hides `v` behind the salt, and binds it to the round.
fn commitment<R: Ring>(context: Context, messages: Messages, salt: &[u8; 32], v: &[R]) -> [u8; 32] {
    let mut oracle = oracle("volery correlation check: commitment", context, messages);
    // mutant(check-commitment-salt): drop
    oracle.absorb(salt);
    // mutant(check-commitment-first): `in v` => `in &v[..if $ON { 1 } else { v.len() }]`
    for v in v {
        oracle.absorb(&wire::pack(*v).to_bytes());
    }
    oracle.finish32()
}

fn oracle(domain: &'static str, context: Context, messages: Messages) -> RandomOracle {
    let mut oracle = RandomOracle::new(domain);
    // mutant(check-session): drop
    oracle.absorb(context.session.as_bytes());
    // mutant(check-round): drop
    oracle.absorb_u64(context.round);
    // mutant(check-messages-of-key): drop
    oracle.absorb(&messages.of_key_holder);
    // mutant(check-messages-of-value): drop
    oracle.absorb(&messages.of_value_holder);
    oracle
}

/// `chi_ji = trees[j] * places[i]`, for each repetition.
pub(crate) struct Coefficients<R>(pub(crate) Vec<Factors<R>>);

pub(crate) struct Factors<R> {
    pub(crate) trees: Vec<R>,
    /// As many as the largest tree has leaves.
    pub(crate) places: Vec<R>,
}

impl<R: Ring> Coefficients<R> {
    fn derive(context: Context, messages: Messages, nonce: Block, batch: &TreeBatch) -> Self {
        let mut oracle = oracle("volery correlation check: coefficients", context, messages);
        // mutant(check-nonce): drop
        oracle.absorb(&nonce.to_bytes());
        // mutant(check-coefficients): `oracle.finish_block()` => `Block::ZERO`
        let mut prg = Prg::new(oracle.finish_block());
        let largest = (0..batch.trees()).fold(0, |size, j| max(size, batch.leaves_of(j).len()));
        let mut random = |n| {
            let mut out = vec![R::ZERO; n];
            R::random_slice(&mut prg, &mut out);
            out
        };
        // Trees of other instances have coefficients of their own, too: equal errors would cancel.
        // mutant(check-trees): `trees: random(batch.trees())` => `trees: if $ON {
        //     vec![random(1)[0]; batch.trees()] } else { random(batch.trees()) }`
        let mut factors = || Factors { trees: random(batch.trees()), places: random(largest) };
        Self((0..repetitions::<R>()).map(|_| factors()).collect())
    }

    fn at(&self, repetition: usize, tree: usize, place: usize) -> R {
        let Factors { trees, places } = &self.0[repetition];
        trees[tree] * places[place]
    }
}

/// On all threads.
impl<R: Ring, L: Runs<Ring = R>> Leaves<R> for L {
    fn fold(
        &mut self,
        batch: &TreeBatch,
        Coefficients(factors): &Coefficients<R>,
    ) -> Result<Zeroizing<Vec<R>>> {
        // Partial sums over some of the trees are secret.
        let zero = || Zeroizing::new(vec![R::ZERO; factors.len()]);
        let add = |mut sums: Zeroizing<Vec<R>>, terms: Zeroizing<Vec<R>>| {
            R::add_slice(&mut sums, &terms);
            sums
        };
        let mut total = zero();
        self.for_each_run(batch, |run, leaves| {
            let first = batch.leaves_of_run(&run).start;
            let sums = run
                .into_par_iter()
                .fold(zero, |mut sums, tree| {
                    let places = batch.leaves_of(tree);
                    let leaves = &leaves[places.start - first..places.end - first];
                    for (sum, Factors { trees, places }) in sums.iter_mut().zip(factors) {
                        *sum += trees[tree] * R::inner_product(&places[..leaves.len()], leaves);
                    }
                    sums
                })
                .reduce(zero, add);
            R::add_slice(&mut total, &sums);
        });
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use volery_channel::{memory, run_two_channels, tamper::Tampered};
    use volery_field::Fp61;

    use super::*;

    fn context(session: u8, round: u64) -> Context {
        let session = SessionId::from_bytes([session; 32]);
        Context { session, round }
    }

    fn messages(of_key_holder: u8, of_value_holder: u8) -> Messages {
        Messages { of_key_holder: [of_key_holder; 32], of_value_holder: [of_value_holder; 32] }
    }

    /// A context and messages, and variants with one change each.
    fn variants() -> [(Context, Messages); 5] {
        [
            (context(1, 1), messages(1, 2)),
            (context(2, 1), messages(1, 2)),
            (context(1, 2), messages(1, 2)),
            (context(1, 1), messages(3, 2)),
            (context(1, 1), messages(1, 3)),
        ]
    }

    fn assert_different<T: PartialEq>(all: &[T]) {
        for (i, one) in all.iter().enumerate() {
            assert!(!all[..i].contains(one), "number {i}");
        }
    }

    #[test]
    fn coefficients_depend_on_all_that_was_said() {
        let batch = TreeBatch::regular(3, 4);
        let mut all: Vec<Fp61> = Vec::new();
        let mut add = |(context, messages), nonce: u128| {
            for Factors { trees, places } in
                Coefficients::<Fp61>::derive(context, messages, Block::from(nonce), &batch).0
            {
                all.extend(trees.into_iter().chain(places));
            }
        };
        variants().into_iter().for_each(|variant| add(variant, 1));
        add(variants()[0], 2);
        assert_eq!(all.len(), 6 * 2 * (3 + 4), "two repetitions");
        assert_different(&all);
    }

    #[test]
    fn commitments_depend_on_all_that_was_said() {
        let v = [Fp61::ONE, Fp61::ZERO];
        let mut all: Vec<_> = variants()
            .into_iter()
            .map(|(context, messages)| commitment(context, messages, &[1; 32], &v))
            .collect();
        let [first, ..] = variants();
        all.push(commitment(first.0, first.1, &[2; 32], &v));
        for v in [[Fp61::ZERO; 2], [Fp61::ONE; 2]] {
            all.push(commitment(first.0, first.1, &[1; 32], &v));
        }
        assert_different(&all);
    }

    /// The messages of both parties in an honest check, cut into their parts.
    fn said(of_key_holder: u128, of_value_holder: u128, masks: u128) -> [Vec<Vec<u8>>; 2] {
        let batch = TreeBatch::regular(2, 4);
        let mut elements = [Fp61::ZERO; 11];
        Fp61::random_slice(&mut Prg::new(Block::from(1)), &mut elements);
        let [x, y_0, y_1, leaves @ ..] = elements;
        let (alphas, y) = ([1, 3], [y_0, y_1]);
        let mut mask = [Fp61::ZERO; 4];
        Fp61::random_slice(&mut Prg::new(Block::from(masks)), &mut mask);
        let mask = [(mask[0], mask[1]), (mask[2], mask[3])];
        let mut of_key = leaves;
        for (tree, (alpha, y)) in alphas.iter().zip(y).enumerate() {
            of_key[4 * tree + alpha] += x * y;
        }
        let (left, right) = memory::pair();
        let taps = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
        let tapped = |inner, tap: &Arc<Mutex<Vec<u8>>>| {
            let tap = Arc::clone(tap);
            Channel::new(Tampered::new(inner, move |_, bytes| {
                tap.lock().unwrap().extend_from_slice(bytes);
            }))
        };
        run_two_channels(
            tapped(left, &taps[0]),
            tapped(right, &taps[1]),
            |channel| {
                channel.bind();
                let mut rng = Prg::new(Block::from(of_key_holder));
                let mask = mask.map(|(u, v)| x * u + v);
                let leaves = &of_key[..];
                key_holder(context(1, 1), &batch, x, leaves, &mask, &mut rng, channel).unwrap();
            },
            |channel| {
                channel.bind();
                let mut rng = Prg::new(Block::from(of_value_holder));
                let leaves = &leaves[..];
                let context = context(1, 1);
                value_holder(context, &batch, &alphas, &y, leaves, &mask, &mut rng, channel)
                    .unwrap();
            },
        );
        let size = Fp61::encoded_len(2);
        let sizes = [[32, 32, size], [16, size, size]];
        [0, 1].map(|party| {
            let bytes = taps[party].lock().unwrap();
            let mut rest = &bytes[..];
            let parts = sizes[party].map(|size| {
                let part;
                (part, rest) = rest.split_at(size);
                part.to_vec()
            });
            assert!(rest.is_empty());
            parts.to_vec()
        })
    }

    /// Runs that differ only in the randomness of the value holder have no challenge in common, nor
    /// any value that follows from it; with that of the key holder the salt differs, and with it
    /// the commitment.
    #[test]
    fn challenges_and_salts_are_drawn_anew() {
        let [first, value, key] = [said(1, 2, 5), said(1, 3, 5), said(4, 2, 5)];
        assert_eq!(said(1, 2, 5), first);
        for (party, differ) in [(0, [true, false, true]), (1, [true; 3])] {
            for (part, differ) in differ.into_iter().enumerate() {
                let same = value[party][part] == first[party][part];
                assert_eq!(same, !differ, "part {part} of party {party}");
            }
        }
        assert_eq!(key[1], first[1]);
        assert!(key[0][0] != first[0][0] && key[0][1] != first[0][1]);
        assert_eq!(key[0][2], first[0][2]);
    }
    /// The same noise and leaves under another mask: no part of the value holder's messages is the
    /// same, except the nonce.
    #[test]
    fn what_the_value_holder_says_is_masked() {
        let [[_, one], [_, other]] = [said(1, 2, 5), said(1, 2, 6)];
        assert_eq!(one[0], other[0]);
        for part in 1..3 {
            let repetitions = one[part].chunks(8).zip(other[part].chunks(8));
            assert_eq!(repetitions.len(), 2);
            for (one, other) in repetitions {
                assert_ne!(one, other, "part {part}");
            }
        }
    }
}
