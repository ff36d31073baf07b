//! A correlated tree under a vector OLE would reveal `delta`; the actual tree does not.
//!
//! In a correlated half-tree every level adds up to `delta`, the leaves too. A vector OLE sends the
//! sum of the leaves under a mask, `psi = sum r - beta_1`, where the value holder knows its own
//! part of `beta_1 + beta_2 = y*x`. So `psi - beta_2` is the sum of the leaves less `y*x`, and with
//! the value holder's leaves,
//!
//! ```text
//! m_alpha + (the others) = delta - y*x
//! ```
//!
//! Where `delta` is `x`, as over F_2^128 with the correlated OTs of the same key, that is `x*(1 -
//! y)`, and one tree is enough. Over F_p the leaves are words of blocks that add up to `delta` bit
//! by bit: each tree is a linear equation in the bits of `delta` and `x`, and 65 trees are a linear
//! system.

use volery_channel::run_two_parties;
use volery_field::{Fp61, Gf128, Ring};
use volery_ot::convert;
use volery_primitives::{Block, bits, prg::Prg};

use super::{SESSION, Stage, rng, stage::deal_ots};
use crate::{
    correlation::Vole,
    ggm::{self, Growth, Scratch, Shape, TreePrgs},
    punctured_ot,
    spcot::{self, Points},
    tree_batch::TreeBatch,
};

const LEAVES: usize = 16;

/// The data of a value holder about one tree: the sum of its leaves, `m_alpha` with the others, and
/// the relevant part of the blocks under the other leaves.
struct View<R> {
    alpha: usize,
    y: R,
    /// All except the one at `alpha`.
    leaves: Vec<R>,
    m_alpha: R,
}

impl<R: Ring> View<R> {
    /// `delta - y*x`, if the tree is correlated.
    fn sum(&self) -> R {
        self.m_alpha + R::sum(&self.leaves)
    }
}

fn power<R: Ring>(base: R, mut exponent: u128) -> R {
    let (mut square, mut power) = (base, R::ONE);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    power
}

/// One of many places in each of `count` trees, with a value.
fn noise<R: Ring>(count: usize, rng: &mut Prg) -> Vec<(usize, R)> {
    let place = |_| (rng.below(LEAVES as u64) as usize, R::random(rng));
    (0..count).map(place).collect()
}

/// The views of our own protocol, on trees whose difference is `delta`.
fn ours<R: crate::vole::VoleRing>(x: R, delta: Block, count: usize) -> Vec<View<R>> {
    let batch = TreeBatch::regular(count, LEAVES);
    let prgs = TreePrgs::growing(Growth::PseudoCorrelated, SESSION, 0);
    let mut dealer = rng(90);
    let noise = noise::<R>(count, &mut dealer);
    let alphas: Vec<_> = noise.iter().map(|(alpha, _)| *alpha).collect();
    let beta_2: Vec<_> = (0..count).map(|_| R::random(&mut dealer)).collect();
    let shared = noise.iter().zip(&beta_2);
    let beta_1: Vec<_> = shared.map(|((_, y), beta_2)| *y * x - *beta_2).collect();
    let choices = bits::unpack(&punctured_ot::choices(&batch, &alphas), batch.levels());
    let (q, t) = deal_ots(delta, choices.into_iter(), &mut dealer);
    let (key_ot, value_ot) = Vole::<R>::buffered(delta, &q, &t);
    let (_, m) = run_two_parties(
        |channel| {
            let mut leaves = vec![R::ZERO; batch.leaves()];
            let mut ot = convert::Sender::new(key_ot, SESSION);
            let (public, points, rng) = ((&batch, &prgs), Points::Chosen(&[]), &mut rng(91));
            spcot::send(public, points, &beta_1, &mut leaves, rng, &mut ot, channel)
                .expect("trees");
        },
        |channel| {
            let mut leaves = vec![R::ZERO; batch.leaves()];
            let mut ot = convert::Receiver::new(value_ot, SESSION);
            let (public, points) = ((&batch, &prgs), Points::Chosen(&alphas));
            spcot::receive(public, points, &beta_2, &mut leaves, &mut ot, channel).expect("trees");
            leaves
        },
    );
    let view = |(tree, (alpha, y)): (usize, (usize, R))| {
        let mut leaves = m[batch.leaves_of(tree)].to_vec();
        let m_alpha = leaves.remove(alpha);
        View { alpha, y, leaves, m_alpha }
    };
    noise.into_iter().enumerate().map(view).collect()
}

/// The blocks that correlated trees have for leaves.
fn correlated(delta: Block, count: usize) -> Vec<Vec<Gf128>> {
    let prgs = TreePrgs::growing(Growth::Correlated, SESSION, 0);
    let mut roots = rng(92);
    let tree = |tree| {
        let mut leaves = vec![Gf128::ZERO; LEAVES];
        let (prg, shape) = (prgs.tree(tree), Shape::new(LEAVES));
        let scratch = &mut Scratch::default();
        let _ = ggm::expand(&prg, shape, roots.block(), delta, &mut leaves, scratch);
        leaves
    };
    (0..count).map(tree).collect()
}

/// The views of a vector OLE on correlated trees: `leaf` derives its leaves from theirs.
fn wrong<R: Ring>(x: R, delta: Block, count: usize, leaf: fn(Gf128) -> R) -> Vec<View<R>> {
    let noise = noise::<R>(count, &mut rng(90));
    let view = |(blocks, (alpha, y)): (Vec<Gf128>, (usize, R))| {
        let mut leaves: Vec<_> = blocks.into_iter().map(leaf).collect();
        let r_alpha = leaves.remove(alpha);
        // psi - beta_2 - (the others)
        let m_alpha = r_alpha - y * x;
        View { alpha, y, leaves, m_alpha }
    };
    correlated(delta, count).into_iter().zip(noise).map(view).collect()
}

/// The `x` that solves `sum = x*(1 - y)`.
fn guess(view: &View<Gf128>) -> Gf128 {
    let inverse = power(Gf128::ONE - view.y, u128::MAX - 1);
    view.sum() * inverse
}

#[test]
fn gf128() {
    let delta = rng(93).block();
    let x = Gf128::new(delta);
    for view in wrong(x, delta, 10, |leaf| leaf) {
        assert!(guess(&view) == x, "one correlated tree gives x away");
    }
    // Ours, even with the same delta under its trees: no two of them have anything in common.
    let mut guesses: Vec<_> = ours(x, delta, 10).iter().map(guess).collect();
    assert!(!guesses.contains(&x));
    guesses.extend(ours(x, delta, 10).iter().map(|view| view.sum() + view.y * x));
    guesses.sort_by_key(|guess| u128::from(guess.value()));
    guesses.dedup();
    assert_eq!(guesses.len(), 20);
    assert!(!guesses.contains(&x));
}

/// With `c` the XOR of the other leaves' words, the missing word is `c + delta` bit by bit:
/// `m_alpha = sum 2^i (c_i + (1 - 2 c_i) delta_i) - y*x`. The unknowns are the `bits` of `delta`,
/// and `x`.
fn equation(words: impl Iterator<Item = u64>, bits: usize, y: Fp61, m_alpha: Fp61) -> Vec<Fp61> {
    let c = words.fold(0, |sum, word| sum ^ word);
    let signed = |i: usize| {
        let power = Fp61::reduce(1 << i);
        if c >> i & 1 == 1 { -power } else { power }
    };
    let mut row: Vec<_> = (0..bits).map(signed).collect();
    row.extend([-y, m_alpha - Fp61::reduce(c)]);
    row
}

/// Gauss, for as many equations as unknowns.
fn solve(mut rows: Vec<Vec<Fp61>>) -> Vec<Fp61> {
    for column in 0..rows.len() {
        let pivot = (column..rows.len()).find(|row| rows[*row][column] != Fp61::ZERO);
        rows.swap(column, pivot.expect("one solution"));
        let inverse = power(rows[column][column], u128::from(Fp61::MODULUS) - 2);
        let scaled: Vec<_> = rows[column].iter().map(|entry| *entry * inverse).collect();
        for row in &mut rows {
            let factor = row[column];
            for (entry, scaled) in row.iter_mut().zip(&scaled) {
                *entry -= factor * *scaled;
            }
        }
        rows[column] = scaled;
    }
    rows.iter().map(|row| row[row.len() - 1]).collect()
}

#[test]
fn fp61() {
    let mut secret = rng(94);
    let (delta, x) = (secret.block(), Fp61::random(&mut secret));
    let views = wrong(x, delta, 65, |leaf| Fp61::reduce(leaf.value().low()));
    let blocks = correlated(delta, views.len());
    let equations = views.iter().zip(&blocks).map(|(view, blocks)| {
        let others = (0..LEAVES).filter(|leaf| *leaf != view.alpha);
        let words = others.map(|leaf| blocks[leaf].value().low());
        equation(words, 64, view.y, view.m_alpha)
    });
    let solution = solve(equations.collect());
    assert!(solution[64] == x, "65 correlated trees give x away");
    let delta_bit = |i: usize| Fp61::reduce(u64::from(delta.bit(i)));
    assert!((0..64).all(|i| solution[i] == delta_bit(i)));
    // Ours, whose leaves have only the 61 bits of an element: the solution differs.
    let views = ours(x, delta, 62);
    let equations = views.iter().map(|view| {
        let words = view.leaves.iter().map(|leaf| leaf.value());
        equation(words, 61, view.y, view.m_alpha)
    });
    let solution = solve(equations.collect());
    assert!(solution[61] != x);
    let is_bit = |value: &Fp61| *value == Fp61::ZERO || *value == Fp61::ONE;
    assert!(!solution[..61].iter().any(is_bit), "not a vector of bits");
}

/// A level of our trees below the first two leaves is no longer a sum of known values: the sums of
/// the leaves are all different, and none is `delta` or `x`.
#[test]
fn the_sums_of_our_leaves_are_unrelated() {
    fn check<R: crate::vole::VoleRing>() {
        let mut secret = rng(95);
        let (delta, x) = (secret.block(), R::random(&mut secret));
        let sums: Vec<_> = ours(x, delta, 100).iter().map(|view| view.sum() + view.y * x).collect();
        for (i, sum) in sums.iter().enumerate() {
            assert!(!sums[..i].contains(sum), "tree {i}");
            assert!(*sum != x && *sum != R::from_block(delta), "tree {i}");
        }
    }
    check::<Fp61>();
    check::<Gf128>();
}
