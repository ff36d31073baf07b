//! What plans have only by name, or because their options say so: the GGM trees of the papers, and
//! uniform noise in cuckoo bins. No default leads here.
//!
//! Single-point correlations on any kind of tree ([`send_trees`], [`receive_trees`]), of which both
//! parties then hold all leaves.
//! Rounds begin here from `stream::kept`. With GGM trees the steps of Figure 6 are those of
//! Protocol 3 of the 2019 paper ([`spfss`], over [`punctured_ot`]) on chosen OTs:
//!
//! | Figure 6 | GGM trees |
//! |---|---|
//! | 2: correlated OTs | in the chosen OTs of step 4 |
//! | 3: tree, level sums | [`punctured_ot::Trees::grow`] |
//! | 4: P2's bits `b_i` | [`punctured_ot::receive`] |
//! | 4: P1's sums `M_0`, `M_1` | [`punctured_ot::Trees::send`] |
//! | 4: P1's `c` | [`spfss::send`]: `R_beta` |
//! | 5: P2's tree | [`spfss::receive`] |
//!
//! Security and cost: those of [`crate::spcot`] and [`crate::mpcot`], with `spfss` for GGM trees.

pub mod punctured_ot;
pub mod spfss;

use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use crate::{
    ggm::Growth,
    spcot::{self, Points},
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
    let trees = punctured_ot::Trees::grow(batch, prgs, rng, leaves);
    spfss::send(&trees, beta, ot, channel)
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
    spfss::receive(batch, prgs, alphas, beta, leaves, ot, channel)?;
    if prgs.clears_leaves() {
        for (tree, alpha) in alphas.iter().enumerate() {
            spcot::carry(&mut leaves[batch.leaves_of(tree)][*alpha]);
        }
    }
    Ok(Zeroizing::new(alphas.to_vec()))
}
