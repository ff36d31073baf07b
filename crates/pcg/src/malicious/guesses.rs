//! Selective failure: a key holder who guesses a place of the noise.
//!
//! It makes a wrong tree for which the value holder's result matches the key holder's only where
//! `alpha` is in a set `I` that the key holder has chosen (Fig. 3 of Ferret). Here all `alpha` of a
//! small tree are run against all the sets that such a key holder can choose: the value holder goes
//! on if `alpha` is in `I` and aborts if not. A right guess reveals only that it was right: all
//! messages that the key holder receives are the same for every `alpha` in `I`.

use std::sync::Arc;

use volery_channel::{Error, memory, run_two_channels};
use volery_field::{ExtensionOf, Fp61, Gf128, Ring};
use volery_ot::convert;
use volery_primitives::Block;

use super::{
    MaliciousKeyHolder, SESSION, Stage, channel, deal_base,
    key_holder::{self, GrownTrees, Node, Round},
    prgs, rng,
    stage::deal_ots,
};
use crate::{
    Trees, check,
    correlation::{Cot, Vole},
    ggm::Growth,
    mpcot::Layout,
    reproduction::receive_trees,
    spcot::{self, Points},
};

const LEAVES: usize = 8;
const LEVELS: u32 = 3;

/// The result of one round of two trees.
struct RoundView<R> {
    /// Whether the value holder went on; then its leaves were right.
    passed: bool,
    /// Whether the key holder's value was the value holder's.
    agreed: bool,
    x_prime: Vec<R>,
    /// A hash of all that the key holder received.
    view: [u8; 32],
}

/// One round of two trees. The OTs make the value holder's choices look the same for all `alphas`;
/// its masks are `u_star`.
fn round<K: Stage>(
    trees: Trees,
    alphas: [usize; 2],
    malicious: &MaliciousKeyHolder<'_, K::Ring>,
    u_star: &[K::Ring],
) -> RoundView<K::Ring> {
    let layout = Arc::new(Layout::regular(2, LEAVES));
    let batch = layout.batch();
    let prgs = || prgs::<K>(trees, 0);
    let mut dealer = rng(50);
    let base = deal_base::<K>(2, &mut dealer);
    let (delta, x) = (base.delta, base.x);
    let values = [K::noise(&mut dealer), K::noise(&mut dealer)];
    let mut key_mask = u_star.to_vec();
    K::Ring::random_slice(&mut dealer, &mut key_mask);
    let masks = u_star.iter().zip(&key_mask);
    let value_mask: Vec<_> = masks.map(|(u, w)| (*u, *w - *u * x)).collect();
    let choices = volery_primitives::bits::unpack(&spcot::choices(batch, &alphas), batch.levels());
    let (q, t) = deal_ots(delta, choices.into_iter(), &mut dealer);
    let (key_ot, value_ot) = K::buffered(delta, &q, &t);
    let (left, right) = memory::pair();
    let (((r, agreed, x_prime, view), _), (m, _)) = run_two_channels(
        channel(left),
        channel(right),
        |channel| {
            channel.record_transcript();
            channel.bind();
            let round =
                Round { layout: Arc::clone(&layout), prgs: prgs(), session: SESSION, number: 0 };
            let mut ot = convert::Sender::new(key_ot, SESSION);
            let rng = &mut rng(51);
            let r = key_holder::trees::<K>(
                &round,
                false,
                x,
                &base.key_spare,
                malicious,
                &mut ot,
                rng,
                channel,
            )
            .expect("trees");
            let lie = (malicious.lie, None);
            let said = key_holder::check(&round, batch, x, &r, &key_mask, lie, rng, channel)
                .expect("a check");
            let view = channel.transcript().expect("a transcript").received;
            (r, said.agreed, said.x_prime, view)
        },
        |channel| {
            channel.bind();
            let mut ot = convert::Receiver::new(value_ot, SESSION);
            let beta = K::value_shares(&values, &base.value_spare, channel).expect("shares");
            let (points, mut m) = (Points::Chosen(&alphas), layout.leaves(None));
            receive_trees((batch, &prgs()), points, &beta, &mut m, &mut ot, channel)
                .expect("trees");
            let context = check::Context { session: SESSION, round: 0 };
            let rng = &mut rng(52);
            let checked = check::value_holder(
                context,
                batch,
                &alphas,
                &values,
                &m[..],
                &value_mask,
                rng,
                channel,
            );
            match checked {
                Ok(()) => Some(m),
                Err(Error::PeerMisbehaved(_)) => None,
                Err(error) => panic!("{error}"),
            }
        },
    );
    if let Some(m) = &m {
        for tree in 0..2 {
            for (i, place) in batch.leaves_of(tree).enumerate() {
                let at = if i == alphas[tree] { x.mul_base(values[tree]) } else { K::Ring::ZERO };
                assert!(r[place] - m[place] == at, "leaf {i}");
            }
        }
    }
    RoundView { passed: m.is_some(), agreed, x_prime, view }
}

fn no_mask<R: Ring>() -> Vec<R> {
    vec![R::ZERO; check::repetitions::<R>()]
}

/// All `alpha` of the first tree against one guess.
fn play<K: Stage>(
    trees: Trees,
    malicious: &MaliciousKeyHolder<'_, K::Ring>,
    guess: impl Fn(usize) -> bool,
    what: &str,
) {
    let nothing = no_mask::<K::Ring>();
    let mut views = Vec::new();
    for alpha in 0..LEAVES {
        let seen = round::<K>(trees, [alpha, 5], malicious, &nothing);
        let right = guess(alpha);
        assert_eq!((seen.passed, seen.agreed), (right, right), "{what}: {alpha}");
        if right {
            // Another mask, which hides another alpha under the same x'.
            let mut u_star = nothing.clone();
            K::Ring::random_slice(&mut rng(53), &mut u_star);
            K::Ring::sub_slice(&mut u_star, &seen.x_prime);
            let again = round::<K>(trees, [alpha, 5], malicious, &u_star);
            assert!(again.passed);
            views.push(again.view);
        }
    }
    assert!(!views.is_empty(), "{what}: some alpha is in the set");
    assert!(views.iter().all(|view| *view == views[0]), "{what}");
}

#[test]
fn honest_control() {
    fn check<K: Stage>() {
        for trees in [Trees::Ggm, Trees::Half] {
            play::<K>(trees, &MaliciousKeyHolder::HONEST, |_| true, "honest");
        }
    }
    of_each_kind!(check());
}

/// Two children that do not come from their parent: a value holder whose path goes through the
/// parent does not detect it.
#[test]
fn the_subtree_that_alpha_is_in() {
    fn check<K: Stage>() {
        for trees in [Trees::Ggm, Trees::Half] {
            for level in 1..=LEVELS {
                for node in 0..1 << (level - 1) {
                    // One message serves both sides, except on hashed levels.
                    let one = K::growth(trees) == Growth::Correlated
                        || K::growth(trees) == Growth::PseudoCorrelated && level < LEVELS;
                    let errors = [6, if one { 6 } else { 10 }].map(Block::from);
                    let wrong = MaliciousKeyHolder {
                        node: Some(Node { tree: 0, level, node, errors }),
                        ..MaliciousKeyHolder::HONEST
                    };
                    let below = |alpha: usize| alpha >> (LEVELS - level + 1) == node;
                    let what = format!("{trees}, node {node} above level {level}");
                    play::<K>(trees, &wrong, below, &what);
                }
            }
        }
    }
    of_each_kind!(check());
}

/// A wrong message for one side of a level: one bit of `alpha`.
#[test]
fn one_bit_of_alpha() {
    fn check<K: Stage>(trees: Trees) {
        let first = if trees == Trees::Ggm { 1 } else { LEVELS };
        for level in first..=LEVELS {
            for side in [0, 1] {
                let wrong = |grown: &mut GrownTrees<K::Ring>| {
                    grown.sums[level as usize - 1][side] ^= Block::from(6);
                };
                let wrong = MaliciousKeyHolder { sums: &wrong, ..MaliciousKeyHolder::HONEST };
                // The value holder takes the side off its path.
                let takes_other = |alpha: usize| alpha >> (LEVELS - level) & 1 == side;
                let what = format!("{trees}, side {side} of level {level}");
                play::<K>(trees, &wrong, takes_other, &what);
            }
        }
    }
    check::<Cot>(Trees::Ggm);
    for trees in [Trees::Ggm, Trees::Half] {
        check::<Vole<Fp61>>(trees);
        check::<Vole<Gf128>>(trees);
    }
}

/// A wrong sum of all leaves changes the value holder's leaf at `alpha`; a key holder who knows
/// that place compensates for it.
#[test]
fn alpha_itself() {
    fn check<K: Stage>(trees: Trees) {
        for guess in 0..LEAVES {
            let error = K::Ring::from_block(Block::from(6));
            let wrong = |grown: &mut GrownTrees<K::Ring>| {
                grown.psi[0] += error;
                grown.leaves[guess] += error;
            };
            let wrong = MaliciousKeyHolder { sums: &wrong, ..MaliciousKeyHolder::HONEST };
            play::<K>(trees, &wrong, |alpha| alpha == guess, &format!("{trees}, {guess}"));
        }
    }
    check::<Cot>(Trees::Ggm);
    for trees in [Trees::Ggm, Trees::Half] {
        check::<Vole<Fp61>>(trees);
        check::<Vole<Gf128>>(trees);
    }
}

/// Guesses in two trees are two guesses: both must be right.
#[test]
fn two_guesses() {
    fn check<K: Stage>(trees: Trees) {
        let nothing = no_mask::<K::Ring>();
        let error = K::Ring::from_block(Block::from(6));
        for guesses in [[2, 5], [2, 4]] {
            let wrong = |grown: &mut GrownTrees<K::Ring>| {
                for (tree, guess) in guesses.into_iter().enumerate() {
                    grown.psi[tree] += error;
                    grown.leaves[LEAVES * tree + guess] += error;
                }
            };
            let wrong = MaliciousKeyHolder { sums: &wrong, ..MaliciousKeyHolder::HONEST };
            for alpha in [2, 3] {
                let seen = round::<K>(trees, [alpha, 5], &wrong, &nothing);
                assert_eq!(seen.passed, [alpha, 5] == guesses, "{trees}, {guesses:?}");
            }
        }
    }
    check::<Cot>(Trees::Ggm);
    for trees in [Trees::Ggm, Trees::Half] {
        check::<Vole<Fp61>>(trees);
        check::<Vole<Gf128>>(trees);
    }
}
