//! The consistency check of a round: Appendix C of Ferret, over any field.
//!
//! After the trees of a round, for every leaf `i` of every tree `j` it must hold that `r_ji - m_ji = y_j*x` at
//! `i = alpha_j` and zero elsewhere (the key holder has `r` and `x`, the value holder `m`, `alpha` and `y`). The
//! check takes a random linear combination of all of it, masked by one more correlation `w* = u**x + v*`:
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
//! If all is well, `V = sum chi m + phi*x - phi*x - u**x + w* = W`. Steps 4 and 5 are an equality test in which the one who
//! speaks first is bound and the other learns nothing before it has shown that it knows the value (F_EQ of Wolverine,
//! ePrint 2020/925). The paper sends `H'(V)` instead, from which a value holder with a wrong `x'` could find `x` by
//! trying all of a small field; and its key holder would never learn that the other one cheated.
//!
//! **Coefficients.** `chi_ji = a_j * b_i` with uniform independent `a_j` (one for each tree) and `b_i` (one for each place
//! in a tree). An error matrix `e` that is not zero passes only if `e*b = 0`, which has probability at most `1/|F|`, or
//! if `a` is orthogonal to it: `2/|F|` together. They depend on all messages, and on a nonce that the value holder, whom
//! they protect, draws after it has received them: a key holder cannot try one transcript after the other.
//!
//! **What it leaves.** A key holder who sends wrong sums in a tree passes if it guesses the side of `alpha` (Fig. 3):
//! it learns one bit on average over all it guesses, once, as a wrong guess ends the session; LPN with that static
//! leakage is the assumption (Theorem 3). One who uses another `x` somewhere fails. A value holder with wrong `x'`
//! passes only by guessing `x` itself. `V` is committed to before `W` is seen, so `W` tells a cheating key holder nothing
//! that it could still use.
//!
//! Error: for each round `2/|F|`, that is 2^-60 over `fp61`, 2^-127 over `gf128` (and for correlated OT).
//! Cost: 1 correlation over the large ring (of correlated OTs 128, packed); with elements of `b` bytes, `16 + b` and `b`
//! bytes from the value holder, `32` and `32 + b` from the key holder, in turn: 4 messages. One multiplication a leaf for
//! each party.

use std::cmp::max;

use rayon::prelude::*;
use volery_channel::{Channel, Error, Result, SessionId, TranscriptHashes};
use volery_field::{ExtensionOf, Ring};
use volery_primitives::{Block, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

use crate::{forest::Forest, wire};

const DIFFERENT: &str = "the consistency check of the correlations failed";

/// What the coefficients and the commitment of one check are bound to.
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

/// The key holder's side, steps 2 to 5: `leaves` are the `r` of all trees, `mask` is `w*`. The messages of the
/// round have been [bound](Channel::bind).
///
/// # Errors
/// If the channel fails or the check does; `leaves` is then not to be used.
pub(crate) fn key_holder<R: Ring>(
    context: Context,
    forest: &Forest,
    x: R,
    leaves: &[R],
    mask: R,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<()> {
    let TranscriptHashes { sent, received } = channel.bound();
    let messages = Messages {
        of_key_holder: sent,
        of_value_holder: received,
    };
    let nonce = channel.recv_block()?; // step 2
    let mut x_prime = [R::ZERO];
    wire::recv(
        &mut x_prime,
        "the masked coefficient of the check is not in canonical form",
        channel,
    )?;
    let coefficients = Coefficients::derive(context, messages, nonce, forest);
    let v = coefficients.fold(forest, leaves) - x_prime[0] * x + mask; // step 3
    let mut salt = Zeroizing::new([0; 32]);
    rng.fill_bytes(&mut salt[..]);
    channel.send(&commitment(context, messages, &salt, v))?; // step 4
    let mut w = [R::ZERO];
    wire::recv(
        &mut w,
        "the value of the check is not in canonical form",
        channel,
    )?;
    if !bool::from(v.ct_eq(&w[0])) {
        return Err(Error::PeerMisbehaved(DIFFERENT));
    }
    channel.send(&salt[..])?; // step 5
    wire::send(&[v], channel)?;
    channel.flush()
}

/// The value holder's side: `leaves` are the `m` of all trees, `alphas` and `values` its places and their values, `mask`
/// is `(u*, v*)`. The messages of the round have been [bound](Channel::bind).
///
/// # Errors
/// If the channel fails or the check does; `leaves` is then not to be used.
#[expect(clippy::too_many_arguments, reason = "all that a round has made")]
pub(crate) fn value_holder<B: Ring, R: ExtensionOf<B>>(
    context: Context,
    forest: &Forest,
    alphas: &[usize],
    values: &[B],
    leaves: &[R],
    mask: (R, R),
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<()> {
    let TranscriptHashes { sent, received } = channel.bound();
    let messages = Messages {
        of_key_holder: received,
        of_value_holder: sent,
    };
    let nonce = rng.block(); // step 1
    let coefficients = Coefficients::<R>::derive(context, messages, nonce, forest);
    let phi = alphas
        .iter()
        .zip(values)
        .enumerate()
        .map(|(tree, (alpha, y))| coefficients.at(tree, *alpha).mul_base(*y))
        .fold(R::ZERO, |sum, term| sum + term);
    channel.send_block(nonce)?; // step 2
    wire::send(&[phi + mask.0], channel)?;
    channel.flush()?;
    let w = coefficients.fold(forest, leaves) + mask.1; // step 3
    let mut committed = [0; 32];
    channel.recv(&mut committed)?; // step 4
    wire::send(&[w], channel)?;
    let mut salt = [0; 32];
    channel.recv(&mut salt)?; // step 5
    let mut v = [R::ZERO];
    wire::recv(
        &mut v,
        "the opened value of the check is not in canonical form",
        channel,
    )?;
    if commitment(context, messages, &salt, v[0]) != committed || !bool::from(v[0].ct_eq(&w)) {
        return Err(Error::PeerMisbehaved(DIFFERENT));
    }
    Ok(())
}

/// Step 4: hides `v` behind the salt, and binds it to the round.
fn commitment<R: Ring>(context: Context, messages: Messages, salt: &[u8; 32], v: R) -> [u8; 32] {
    let mut oracle = oracle("volery correlation check: commitment", context, messages);
    oracle.absorb(salt);
    oracle.absorb(&wire::pack(v).to_bytes());
    oracle.finish32()
}

fn oracle(domain: &'static str, context: Context, messages: Messages) -> RandomOracle {
    let mut oracle = RandomOracle::new(domain);
    oracle.absorb(context.session.as_bytes());
    oracle.absorb_u64(context.round);
    oracle.absorb(&messages.of_key_holder);
    oracle.absorb(&messages.of_value_holder);
    oracle
}

/// `chi_ji = trees[j] * places[i]`.
struct Coefficients<R> {
    trees: Vec<R>,
    places: Vec<R>,
}

impl<R: Ring> Coefficients<R> {
    fn derive(context: Context, messages: Messages, nonce: Block, forest: &Forest) -> Self {
        let mut oracle = oracle("volery correlation check: coefficients", context, messages);
        oracle.absorb(&nonce.to_bytes());
        let mut prg = Prg::new(oracle.finish_block());
        let largest = (0..forest.trees()).fold(0, |size, j| max(size, forest.leaves_of(j).len()));
        let mut coefficients = Self {
            trees: vec![R::ZERO; forest.trees()],
            places: vec![R::ZERO; largest],
        };
        R::random_slice(&mut prg, &mut coefficients.trees);
        R::random_slice(&mut prg, &mut coefficients.places);
        coefficients
    }

    fn at(&self, tree: usize, place: usize) -> R {
        self.trees[tree] * self.places[place]
    }

    /// `sum chi_ji leaves_ji`.
    fn fold(&self, forest: &Forest, leaves: &[R]) -> R {
        (0..forest.trees())
            .into_par_iter()
            .map(|tree| {
                let leaves = &leaves[forest.leaves_of(tree)];
                self.trees[tree] * R::inner_product(&self.places[..leaves.len()], leaves)
            })
            .reduce(|| R::ZERO, |sum, term| sum + term)
    }
}
