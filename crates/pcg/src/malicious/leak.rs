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
//! Where `delta` is `x`, as over F_2^128 with the correlated OTs of the same key, that is
//! `x*(1 - y)`, and one tree is enough. Over F_p the leaves are words of blocks that add up to
//! `delta` bit by bit: each tree is a linear equation in the bits of `delta` and in `x`, and 65
//! trees are a linear system.

use volery_channel::run_two_parties;
use volery_field::{Fp61, Gf128, Ring};
use volery_ot::convert;
use volery_primitives::{Block, bits};

use super::{SESSION, Stage, rng, stage::deal_ots};
use crate::{
    correlation::Vole,
    ggm::{self, Growth, Scratch, Shape, TreePrgs},
    punctured_ot,
    spcot::{self, Points},
    tree_batch::TreeBatch,
    vole::VoleRing,
};

const LEAVES: usize = 16;

/// The leaves that the value holder of our own protocol has, for values `y` at `alphas`, on trees
/// whose difference is `delta`.
fn ours<R: VoleRing>(x: R, delta: Block, alphas: &[usize], y: &[R]) -> Vec<Vec<R>> {
    let batch = TreeBatch::regular(y.len(), LEAVES);
    let prgs = TreePrgs::growing(Growth::PseudoCorrelated, SESSION, 0);
    let mut dealer = rng(90);
    let beta_2: Vec<_> = y.iter().map(|_| R::random(&mut dealer)).collect();
    let beta_1: Vec<_> = y.iter().zip(&beta_2).map(|(y, beta_2)| *y * x - *beta_2).collect();
    let choices = bits::unpack(&punctured_ot::choices(&batch, alphas), batch.levels());
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
            let (public, points) = ((&batch, &prgs), Points::Chosen(alphas));
            spcot::receive(public, points, &beta_2, &mut leaves, &mut ot, channel).expect("trees");
            leaves
        },
    );
    (0..y.len()).map(|tree| m[batch.leaves_of(tree)].to_vec()).collect()
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

/// One of many places in each of `count` trees, and values.
fn noise<R: Ring>(count: usize) -> (Vec<usize>, Vec<R>) {
    let mut dealer = rng(93);
    (0..count).map(|_| (dealer.below(LEAVES as u64) as usize, R::random(&mut dealer))).unzip()
}

#[test]
fn gf128() {
    let x = Gf128::random(&mut rng(94));
    let (alphas, y) = noise::<Gf128>(10);
    for (leaves, y) in correlated(x.value(), 10).iter().zip(&y) {
        let sum = Gf128::sum(leaves) - *y * x;
        assert!(sum == x * (Gf128::ONE - *y), "one correlated tree gives x away");
    }
    // Ours, even with the same delta under its trees: no two of them have anything in common.
    let mut all = vec![x];
    for (leaves, y) in ours(x, x.value(), &alphas, &y).iter().zip(&y) {
        let sum = Gf128::sum(leaves);
        assert!(sum != x * (Gf128::ONE - *y));
        all.push(sum + *y * x);
    }
    assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
}

/// `base` to the power of -1 over F_p.
fn inverse(base: Fp61) -> Fp61 {
    let (mut square, mut power) = (base, Fp61::ONE);
    for bit in 0..61 {
        if (Fp61::MODULUS - 2) >> bit & 1 == 1 {
            power *= square;
        }
        square *= square;
    }
    power
}

/// With `c` the XOR of the other leaves' words, the missing word is `c + delta` bit by bit:
/// `m_alpha = sum 2^i (c_i + (1 - 2 c_i) delta_i) - y*x`. The unknowns are the `bits` of `delta`,
/// and `x`.
fn equation(words: &[u64], alpha: usize, bits: usize, y: Fp61, m_alpha: Fp61) -> Vec<Fp61> {
    let c = words.iter().fold(words[alpha], |sum, word| sum ^ word);
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
        let inverse = inverse(rows[column][column]);
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
    let mut secret = rng(95);
    let (delta, x) = (secret.block(), Fp61::random(&mut secret));
    let (alphas, y) = noise::<Fp61>(65);
    let equations = correlated(delta, 65).into_iter().zip(&alphas).zip(&y);
    let equations = equations.map(|((blocks, alpha), y)| {
        let words: Vec<_> = blocks.iter().map(|leaf| leaf.value().low()).collect();
        equation(&words, *alpha, 64, *y, Fp61::reduce(words[*alpha]) - *y * x)
    });
    let solution = solve(equations.collect());
    assert!(solution[64] == x, "65 correlated trees give x away");
    let delta_bit = |i: usize| Fp61::reduce(u64::from(delta.bit(i)));
    assert!((0..64).all(|i| solution[i] == delta_bit(i)));
    // Ours, whose leaves have only the 61 bits of an element: the solution differs.
    let (alphas, y) = (&alphas[..62], &y[..62]);
    let equations = ours(x, delta, alphas, y).into_iter().zip(alphas).zip(y);
    let equations = equations.map(|((leaves, alpha), y)| {
        let words: Vec<_> = leaves.iter().map(|leaf| leaf.value()).collect();
        equation(&words, *alpha, 61, *y, leaves[*alpha])
    });
    let solution = solve(equations.collect());
    assert!(solution[61] != x);
    let is_bit = |value: &Fp61| *value == Fp61::ZERO || *value == Fp61::ONE;
    assert!(!solution[..61].iter().any(is_bit), "not a vector of bits");
}
