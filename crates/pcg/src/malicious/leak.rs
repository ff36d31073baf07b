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
//! `x*(1 - y)`, and one tree is enough.

use volery_channel::run_two_parties;
use volery_field::{Gf128, Ring};
use volery_ot::convert;
use volery_primitives::{Block, bits};

use super::{SESSION, Stage, rng, stage::deal_ots};
use crate::{
    correlation::Vole,
    ggm::{self, Growth, Scratch, Shape, TreePrgs},
    spcot::{self, Points},
    tree_batch::TreeBatch,
};

const LEAVES: usize = 16;

/// The leaves that the value holder of our own protocol has, for values `y` at `alphas`, on trees
/// whose difference is `x`.
fn ours(x: Gf128, alphas: &[usize], y: &[Gf128]) -> Vec<Vec<Gf128>> {
    let batch = TreeBatch::regular(y.len(), LEAVES);
    let prgs = TreePrgs::growing(Growth::PseudoCorrelated, SESSION, 0);
    let mut dealer = rng(90);
    let beta_2: Vec<_> = y.iter().map(|_| Gf128::random(&mut dealer)).collect();
    let beta_1: Vec<_> = y.iter().zip(&beta_2).map(|(y, beta_2)| *y * x - *beta_2).collect();
    let choices = bits::unpack(&spcot::choices(&batch, alphas), batch.levels());
    let (q, t) = deal_ots(x.value(), choices.into_iter(), &mut dealer);
    let (key_ot, value_ot) = Vole::<Gf128>::buffered(x.value(), &q, &t);
    let (_, m) = run_two_parties(
        |channel| {
            let mut leaves = vec![Gf128::ZERO; batch.leaves()];
            let mut ot = convert::Sender::new(key_ot, SESSION);
            let (public, points, rng) = ((&batch, &prgs), Points::Chosen(&[]), &mut rng(91));
            spcot::send(public, points, &beta_1, &mut leaves, rng, &mut ot, channel)
                .expect("trees");
        },
        |channel| {
            let mut leaves = vec![Gf128::ZERO; batch.leaves()];
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
fn noise(count: usize) -> (Vec<usize>, Vec<Gf128>) {
    let mut dealer = rng(93);
    (0..count).map(|_| (dealer.below(LEAVES as u64) as usize, Gf128::random(&mut dealer))).unzip()
}

#[test]
fn a_correlated_tree_under_a_vector_ole() {
    let x = Gf128::random(&mut rng(94));
    let (alphas, y) = noise(10);
    for (leaves, y) in correlated(x.value(), 10).iter().zip(&y) {
        let sum = Gf128::sum(leaves) - *y * x;
        assert!(sum == x * (Gf128::ONE - *y), "one correlated tree gives x away");
    }
    // Ours, even with the same delta under its trees: no two of them have anything in common.
    let mut all = vec![x];
    for (leaves, y) in ours(x, &alphas, &y).iter().zip(&y) {
        let sum = Gf128::sum(leaves);
        assert!(sum != x * (Gf128::ONE - *y));
        all.push(sum + *y * x);
    }
    assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
}
