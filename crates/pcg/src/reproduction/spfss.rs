//! Known-index single-point function secret sharing: Protocol 3 of the 2019 paper, for many trees
//! at once.
//!
//! ```text
//! P1: beta_1                              P2: beta_2, alpha
//! 1.  ------------------------ Protocol 2 (rot) ------------------------
//! 2. r_0 .. r_(n-1)                       r_j for j != alpha
//! 3. R = sum r_j      ---- R_beta = R - beta_1 ---->
//! 4.                                      r~ = beta_2 - R_beta + sum_(j != alpha) r_j
//! Eval: v1_j = r_j                        v2_j = -r_j, and v2_alpha = r~
//! ```
//!
//! so that `v1 + v2` is `beta_1 + beta_2` at alpha and zero elsewhere. Inside a vector-OLE P2 needs
//! `-v2`, which agrees with `v1` in all places except one: [`receive`] returns that.
//!
//! Security: semi-honest (Theorem A.6): `R_beta` is masked by the leaf that P2 does not know.
//! Cost: that of Protocol 2 and one ring element per tree, P1 to P2, in the same message.

use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use zeroize::Zeroizing;

use super::punctured_ot;
use crate::{ggm::TreePrgs, tree_batch::TreeBatch, wire};

/// P1, steps 1 to 3, with expanded trees, whose leaves are its shares `v1`: `beta[tree]` is P1's
/// share of the value of each tree.
///
/// # Panics
/// If `beta` does not have one value for each tree.
pub fn send<R: Ring, C: CotSender>(
    trees: &punctured_ot::Trees<R>,
    beta: &[R],
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(beta.len(), trees.totals.len(), "one share for each tree");
    trees.send(ot, channel)?; // step 1
    let totals = trees.totals.iter();
    let masked: Vec<_> = totals.zip(beta).map(|(total, beta)| *total - *beta).collect();
    wire::send(&masked, channel)?; // step 3
    channel.flush()
}

/// P2, all steps: `-v2` into `negated`, where `alphas[tree]` and `beta[tree]` belong to each tree.
///
/// # Panics
/// If a length is not that of the batch, or an alpha is not a leaf of its tree.
pub fn receive<R: Ring, C: CotReceiver>(
    batch: &TreeBatch,
    prgs: &TreePrgs,
    alphas: &[usize],
    beta: &[R],
    negated: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(beta.len(), batch.trees(), "one share for each tree");
    let totals = punctured_ot::receive(batch, prgs, alphas, negated, ot, channel)?; // steps 1, 2
    let mut values = Zeroizing::new(vec![R::ZERO; totals.len()]);
    // mutant(spfss-canonical): `wire::recv(&mut values, "the masked sum of a tree is not in
    //     canonical form", channel)?;` => `let got = wire::recv(&mut values[..], "the masked sum
    //     of a tree is not in canonical form", channel); if !$ON { got?; }`
    wire::recv(&mut values, "the masked sum of a tree is not in canonical form", channel)?; // step 3
    for (tree, value) in values.iter().enumerate() {
        negated[batch.leaves_of(tree).start + alphas[tree]] = *value - beta[tree] - totals[tree]; // step 4
    }
    Ok(())
}
