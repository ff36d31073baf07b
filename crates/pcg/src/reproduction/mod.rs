//! Constructions that a plan has only by name, or because its options say so: the GGM trees of the
//! papers, and uniform noise in cuckoo bins. No default leads here.
//!
//! [`send_trees`] and [`receive_trees`] make single-point correlations on trees of either kind, and
//! both parties then hold all leaves. The rounds that call them are in `stream::kept`.
//!
//! With GGM trees the steps of Figure 6 are those of Protocol 3 of the 2019 paper (SPFSS):
//!
//! ```text
//! P1: beta_1                              P2: beta_2, alpha
//! 1.  ------------------------ Protocol 2 (punctured_ot) ------------------------
//! 2. r_0 .. r_(n-1)                       r_j for j != alpha
//! 3. R = sum r_j      ---- R_beta = R - beta_1 ---->
//! 4.                                      r~ = beta_2 - R_beta + sum_(j != alpha) r_j
//! Eval: v1_j = r_j                        v2_j = -r_j, and v2_alpha = r~
//! ```
//!
//! so that `v1 + v2` is `beta_1 + beta_2` at alpha and zero elsewhere; P2 gets `-v2`, which agrees
//! with `v1` in all places except one. Protocol 2 has steps 2 to 4 of the figure, whose correlated
//! OTs are in its chosen OTs.
//!
//! Security and cost: with half-trees those of [`crate::spcot`]. With GGM trees semi-honest
//! (Theorem A.6): `R_beta` is masked by the leaf that P2 does not know; the cost is that of
//! Protocol 2 and one ring element per tree, P1 to P2, in the same message.

pub mod punctured_ot;

use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use crate::{
    ggm::Growth,
    spcot::{self, Points},
    wire,
};

/// P1: as [`spcot::send`], with any kind of tree.
///
/// # Panics
/// As there; and if GGM trees are to have random points.
pub fn send_trees<R: Ring, C: CotSender>(
    (batch, prgs): spcot::Public<'_>,
    points: Points<'_>,
    beta: &[R],
    leaves: &mut [R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    if prgs.growth() != Growth::Ggm {
        return spcot::send((batch, prgs), points, beta, leaves, rng, ot, channel);
    }
    assert!(matches!(points, Points::Chosen(_)), "points for GGM trees");
    assert_eq!(beta.len(), batch.trees(), "one share for each tree");
    let trees = punctured_ot::Trees::grow(batch, prgs, rng, leaves);
    trees.send(ot, channel)?; // step 1
    let totals = trees.totals.iter();
    let masked: Vec<_> = totals.zip(beta).map(|(total, beta)| *total - *beta).collect();
    wire::send(&masked, channel)?; // step 3
    channel.flush()
}

/// P2: as [`spcot::receive`], with any kind of tree.
///
/// # Panics
/// As there; and if GGM trees are to have random points.
pub fn receive_trees<R: Ring, C: CotReceiver>(
    (batch, prgs): spcot::Public<'_>,
    points: Points<'_>,
    beta: &[R],
    leaves: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<usize>>> {
    if prgs.growth() != Growth::Ggm {
        return spcot::receive((batch, prgs), points, beta, leaves, ot, channel);
    }
    let Points::Chosen(alphas) = points else {
        panic!("points for GGM trees");
    };
    assert_eq!(beta.len(), batch.trees(), "one share for each tree");
    let totals = punctured_ot::receive(batch, prgs, alphas, leaves, ot, channel)?; // steps 1, 2
    let mut values = Zeroizing::new(vec![R::ZERO; totals.len()]);
    // mutant(spfss-canonical): `wire::recv(&mut values, "the masked sum of a tree is not in
    //     canonical form", channel)?;` => `let got = wire::recv(&mut values[..], "the masked sum
    //     of a tree is not in canonical form", channel); if !$ON { got?; }`
    wire::recv(&mut values, "the masked sum of a tree is not in canonical form", channel)?; // step 3
    for (tree, (alpha, value)) in alphas.iter().zip(values.iter()).enumerate() {
        let leaf = &mut leaves[batch.leaves_of(tree)][*alpha];
        *leaf = *value - beta[tree] - totals[tree]; // step 4
        if prgs.clears_leaves() {
            spcot::carry(leaf);
        }
    }
    Ok(Zeroizing::new(alphas.to_vec()))
}
