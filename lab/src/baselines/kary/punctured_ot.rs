//! (n-1)-out-of-n random OT with trees of any arity: Protocol 2 of the 2019 paper, for many trees
//! at once.
//!
//! ```text
//! P1: -                                   P2: alpha_j for each tree j
//! 1. s_0 random, for each tree
//! 3.                                      digits b_1 .. b_L of alpha, most significant first
//! 4a. p_0 .. p_(k-1)                      p_i for i != b_l
//!        ------ (k-1)-out-of-k random OT for each level of each tree ([`all_but_one`]) ------>
//! 2. the tree under s_0; m_i, the sum of the nodes of level l that are child i of theirs
//! 4b.    ------ m_i + p_i, for each i and each level of each tree ------>
//!                                         q_(l,i) = m_i for i != b_l
//! Expand: all leaves                      Expand: all leaves but alpha
//! ```
//!
//! P1 is the OT sender, P2 the OT receiver. Step 4a, 4b together is the paper's (k-1)-out-of-k OT;
//! as the pads come first, P1 sends the sums of some trees before it expands the next ones, and P2
//! works on them meanwhile. The trees are those of [`super`]: `L = ceil(h / c)` levels
//! for `k = 2^c` and `h = max(1, ceil(log2 n))`, of which the first has a smaller arity if `c` does
//! not divide `h`. With arity 2 it is [`volery_pcg::punctured_ot`] with other keys.
//!
//! Security: as [`volery_pcg::punctured_ot`]: P1 learns nothing of alpha, P2 nothing of leaf alpha;
//! semi-honest (Theorem A.3), with nothing checked about the sums. A malicious P2 gets at most `k -
//! 1` sums of a level ([`all_but_one`]); but the place that it leaves out is a leaf for certain
//! only where `n` is a power of two above 1. The `prgs` of a call are for that call only: those of
//! another, or of other trees, have another session or number.
//!
//! Cost for each tree, in addition to the cost of the source of OTs: `h` OTs, for any arity, with a
//! bit each from P2. From P1, a level of arity `2^c`: `32c + 16 * 2^c` bytes, but 32 for `c = 1`:
//! 128, 224, 384 for 4, 8, 16. For `n = 2^12` that is 384, 768, 896, 1152 bytes a tree. 1 message
//! from P2 for each 2^16 OTs and then 1 from P1. Computation as in [`super`], and a
//! binary tree of `k` leaves a level.

use rayon::prelude::*;
use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::{Block, prg::Prg};
use zeroize::Zeroizing;

use super::{Arity, Scratch, Shape, TreePrgs, all_but_one};

/// Leaves that are expanded at once: the peer works on them meanwhile.
const LEAVES_AT_ONCE: usize = 1 << 15;

/// A batch of trees of one shape with consecutive leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeBatch {
    trees: usize,
    shape: Shape,
}

impl TreeBatch {
    /// `trees` trees of `size` leaves each.
    pub(crate) fn new(trees: usize, size: usize, arity: Arity) -> Self {
        let shape = Shape::new(size, arity);
        Self { trees, shape }
    }

    /// Number of trees.
    pub(crate) fn trees(&self) -> usize {
        self.trees
    }

    /// The shape of each tree.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Number of leaves of all trees together.
    pub(crate) fn leaves(&self) -> usize {
        self.trees * self.shape.leaves()
    }

    /// The arity of each level of each tree: the (k-1)-out-of-k OTs of Protocol 2.
    pub(crate) fn levels(&self) -> Vec<Arity> {
        let of_tree = (1..=self.shape.levels()).map(|level| self.shape.arity(level));
        of_tree.collect::<Vec<_>>().repeat(self.trees)
    }

    /// The trees that are processed at once.
    fn at_once(&self) -> usize {
        (LEAVES_AT_ONCE / self.shape.leaves()).max(1)
    }

    fn check(&self, prgs: &TreePrgs, leaves: usize) {
        let arity = self.shape.arity;
        assert_eq!(prgs.arity(), arity, "one arity for trees and PRGs");
        assert_eq!(leaves, self.leaves(), "one place for each leaf");
    }
}

/// P1: expands a tree under a random root into each part of `leaves`. Returns the sum of all leaves
/// of each tree.
pub(crate) fn send<R: Ring, C: CotSender>(
    batch: &TreeBatch,
    prgs: &TreePrgs,
    leaves: &mut [R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    batch.check(prgs, leaves.len());
    let mut roots = Zeroizing::new(vec![Block::ZERO; batch.trees()]);
    rng.fill_blocks(&mut roots); // step 1
    let levels = batch.levels();
    let mut pads = Zeroizing::new(vec![Block::ZERO; all_but_one::messages(&levels)]);
    all_but_one::send_random(&levels, &mut pads, prgs.pads(), rng, ot, channel)?; // step 4a
    let mut totals = Zeroizing::new(vec![R::ZERO; batch.trees()]);
    let (shape, at_once) = (batch.shape(), batch.at_once());
    let runs = leaves
        .chunks_mut(at_once * shape.leaves())
        .zip(pads.chunks_mut(at_once * shape.sums()))
        .zip(totals.chunks_mut(at_once));
    for (run, ((leaves, masked), totals)) in runs.enumerate() {
        leaves
            .par_chunks_mut(shape.leaves())
            .zip(masked.par_chunks_mut(shape.sums()))
            .zip(totals)
            .enumerate()
            .for_each_init(Scratch::default, |scratch, (number, tree)| {
                let ((leaves, masked), total) = tree;
                let number = run * at_once + number;
                let (prg, root) = (prgs.tree(number), roots[number]);
                let mut sums = Zeroizing::new(vec![Block::ZERO; masked.len()]);
                *total = super::expand(&prg, shape, root, leaves, &mut sums, scratch); // step 2
                for (masked, sum) in masked.iter_mut().zip(sums.iter()) {
                    *masked ^= *sum;
                }
            });
        channel.send_blocks(masked)?; // step 4b
        channel.flush()?;
    }
    Ok(totals)
}

/// P2: the leaves of each tree except number `alphas[tree]`, which becomes zero. Returns the sum of
/// the leaves of each tree.
pub(crate) fn receive<R: Ring, C: CotReceiver>(
    batch: &TreeBatch,
    prgs: &TreePrgs,
    alphas: &[usize],
    leaves: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    batch.check(prgs, leaves.len());
    let digits = Zeroizing::new(digits(batch, alphas)); // step 3
    let levels = batch.levels();
    let mut pads = Zeroizing::new(vec![Block::ZERO; all_but_one::messages(&levels)]);
    all_but_one::receive_random(&levels, &digits, &mut pads, prgs.pads(), ot, channel)?; // step 4a
    let mut totals = Zeroizing::new(vec![R::ZERO; batch.trees()]);
    let (shape, at_once) = (batch.shape(), batch.at_once());
    let runs = leaves
        .chunks_mut(at_once * shape.leaves())
        .zip(pads.chunks_mut(at_once * shape.sums()))
        .zip(totals.chunks_mut(at_once));
    for (run, ((leaves, opened), totals)) in runs.enumerate() {
        let mut masked = vec![Block::ZERO; opened.len()];
        channel.recv_blocks(&mut masked)?; // step 4b
        for (opened, masked) in opened.iter_mut().zip(masked) {
            *opened ^= masked;
        }
        leaves
            .par_chunks_mut(shape.leaves())
            .zip(opened.par_chunks(shape.sums()))
            .zip(totals)
            .enumerate()
            .for_each_init(Scratch::default, |scratch, (number, tree)| {
                let ((leaves, sums), total) = tree;
                let number = run * at_once + number;
                let (prg, alpha) = (prgs.tree(number), alphas[number]);
                *total = super::expand_punctured(&prg, shape, alpha, sums, leaves, scratch);
            });
    }
    Ok(totals)
}

/// P2, step 3: the digit that the path to alpha takes, for each level of each tree.
fn digits(batch: &TreeBatch, alphas: &[usize]) -> Vec<usize> {
    assert_eq!(alphas.len(), batch.trees(), "one alpha for each tree");
    let shape = batch.shape();
    // At its final capacity: a list that grows leaves copies behind.
    let mut digits = Vec::with_capacity(batch.trees() * shape.levels() as usize);
    for alpha in alphas {
        assert!(*alpha < shape.leaves(), "alpha is a leaf");
        digits.extend((1..=shape.levels()).map(|level| shape.digit(*alpha, level)));
    }
    digits
}
