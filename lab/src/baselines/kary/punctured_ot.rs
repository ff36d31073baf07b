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

use std::ops::Range;

use rayon::prelude::*;
use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_pcg::tree_batch;
use volery_primitives::{Block, prg::Prg};
use zeroize::Zeroizing;

use super::{Arity, Scratch, Shape, TreePrgs, all_but_one};

/// Leaves that are expanded at once: the peer works on them meanwhile.
const LEAVES_AT_ONCE: usize = 1 << 15;

/// The shapes of a batch of trees of one arity with consecutive leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeBatch {
    trees: tree_batch::TreeBatch,
    arity: Arity,
    /// The arity of each level of each tree.
    levels: Vec<Arity>,
    /// `sums[j]..sums[j + 1]` are the places of the level sums of tree `j`.
    sums: Vec<usize>,
}

impl TreeBatch {
    /// Trees of the given sizes.
    ///
    /// # Panics
    /// If a size is 0 or above 2^40.
    #[must_use]
    pub fn new(sizes: impl IntoIterator<Item = usize>, arity: Arity) -> Self {
        let trees = tree_batch::TreeBatch::new(sizes);
        let (mut levels, mut sums) = (Vec::new(), vec![0]);
        for tree in 0..trees.trees() {
            let shape = Shape::new(trees.leaves_of(tree).len(), arity);
            levels.extend((1..=shape.levels()).map(|level| shape.arity(level)));
            sums.push(sums[tree] + shape.sums());
        }
        Self {
            trees,
            arity,
            levels,
            sums,
        }
    }

    /// `trees` trees of `size` leaves each.
    ///
    /// # Panics
    /// If `size` is 0 or above 2^40.
    #[must_use]
    pub fn regular(trees: usize, size: usize, arity: Arity) -> Self {
        Self::new(std::iter::repeat_n(size, trees), arity)
    }

    /// Number of trees.
    #[must_use]
    pub fn trees(&self) -> usize {
        self.trees.trees()
    }

    /// Number of leaves of all trees together.
    #[must_use]
    pub fn leaves(&self) -> usize {
        self.trees.leaves()
    }

    /// The places of the leaves of tree `tree`.
    #[must_use]
    pub fn leaves_of(&self, tree: usize) -> Range<usize> {
        self.trees.leaves_of(tree)
    }

    /// The shape of tree `tree`.
    #[must_use]
    pub fn shape(&self, tree: usize) -> Shape {
        Shape::new(self.leaves_of(tree).len(), self.arity)
    }

    /// The arity of each level of each tree: the (k-1)-out-of-k OTs of Protocol 2.
    #[must_use]
    pub fn levels(&self) -> &[Arity] {
        &self.levels
    }

    /// The trees from `first` on that are processed at once.
    fn run_from(&self, first: usize) -> Range<usize> {
        self.trees.run_from(first, LEAVES_AT_ONCE)
    }

    /// The places of the level sums of a run of trees.
    fn sums_of_run(&self, run: &Range<usize>) -> Range<usize> {
        self.sums[run.start]..self.sums[run.end]
    }

    /// The parts of a run of trees of vectors with one element for each of its leaves and level
    /// sums.
    fn split_run<'a, R>(
        &self,
        run: Range<usize>,
        mut leaves: &'a mut [R],
        mut sums: &'a mut [Block],
    ) -> Vec<Part<'a, R>> {
        let mut parts = Vec::with_capacity(run.len());
        for tree in run {
            let (mine, rest) = leaves.split_at_mut(self.leaves_of(tree).len());
            leaves = rest;
            let (my_sums, rest) = sums.split_at_mut(self.sums[tree + 1] - self.sums[tree]);
            sums = rest;
            parts.push(Part {
                tree,
                leaves: mine,
                sums: my_sums,
            });
        }
        parts
    }

    fn check(&self, prgs: &TreePrgs, leaves: usize) {
        assert_eq!(prgs.arity(), self.arity, "one arity for trees and PRGs");
        assert_eq!(leaves, self.leaves(), "one place for each leaf");
    }
}

/// One tree's part of the vectors.
struct Part<'a, R> {
    tree: usize,
    leaves: &'a mut [R],
    sums: &'a mut [Block],
}

/// P1: expands a tree under a random root into each part of `leaves`. Returns the sum of all leaves
/// of each tree.
///
/// # Panics
/// If `leaves.len()` is not that of the batch, or `prgs` have another arity.
///
/// # Errors
/// If the channel or the source of OTs fails.
pub fn send<R: Ring, C: CotSender>(
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
    let mut pads = Zeroizing::new(vec![Block::ZERO; all_but_one::messages(levels)]);
    all_but_one::send_random(levels, &mut pads, prgs.pads(), rng, ot, channel)?; // step 4a
    let mut totals = Zeroizing::new(vec![R::ZERO; batch.trees()]);
    let mut run = batch.run_from(0);
    while !run.is_empty() {
        let leaves = &mut leaves[batch.trees.leaves_of_run(&run)];
        let masked = &mut pads[batch.sums_of_run(&run)];
        let parts = batch.split_run(run.clone(), leaves, masked);
        parts
            .into_par_iter()
            .zip(&mut totals[run.clone()])
            .for_each_init(Scratch::default, |scratch, (part, total)| {
                *total = grow(batch, prgs, roots[part.tree], part, scratch);
            });
        channel.send_blocks(masked)?; // step 4b
        channel.flush()?;
        run = batch.run_from(run.end);
    }
    Ok(totals)
}

/// P1, step 2 for one tree: its leaves, and its level sums added to the pads. Returns the sum of
/// the leaves.
fn grow<R: Ring>(
    batch: &TreeBatch,
    prgs: &TreePrgs,
    root: Block,
    part: Part<'_, R>,
    scratch: &mut Scratch,
) -> R {
    let (prg, shape) = (prgs.tree(part.tree), batch.shape(part.tree));
    let mut sums = Zeroizing::new(vec![Block::ZERO; part.sums.len()]);
    let total = super::expand(&prg, shape, root, part.leaves, &mut sums, scratch);
    for (masked, sum) in part.sums.iter_mut().zip(sums.iter()) {
        *masked ^= *sum;
    }
    total
}

/// P2: the leaves of each tree except number `alphas[tree]`, which becomes zero. Returns the sum of
/// the leaves of each tree.
///
/// # Panics
/// If `alphas.len()` or `leaves.len()` is not that of the batch, an alpha is not a leaf of its
/// tree, or `prgs` have another arity.
///
/// # Errors
/// If the channel or the source of OTs fails.
pub fn receive<R: Ring, C: CotReceiver>(
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
    let mut pads = Zeroizing::new(vec![Block::ZERO; all_but_one::messages(levels)]);
    all_but_one::receive_random(levels, &digits, &mut pads, prgs.pads(), ot, channel)?; // step 4a
    let mut totals = Zeroizing::new(vec![R::ZERO; batch.trees()]);
    let mut run = batch.run_from(0);
    while !run.is_empty() {
        let leaves = &mut leaves[batch.trees.leaves_of_run(&run)];
        let opened = &mut pads[batch.sums_of_run(&run)];
        let mut masked = vec![Block::ZERO; opened.len()];
        channel.recv_blocks(&mut masked)?; // step 4b
        for (opened, masked) in opened.iter_mut().zip(masked) {
            *opened ^= masked;
        }
        batch
            .split_run(run.clone(), leaves, opened)
            .into_par_iter()
            .zip(&mut totals[run.clone()])
            .for_each_init(Scratch::default, |scratch, (part, total)| {
                let (prg, shape) = (prgs.tree(part.tree), batch.shape(part.tree));
                let alpha = alphas[part.tree];
                *total =
                    super::expand_punctured(&prg, shape, alpha, part.sums, part.leaves, scratch);
            });
        run = batch.run_from(run.end);
    }
    Ok(totals)
}

/// P2, step 3: the digit that the path to alpha takes, for each level of each tree.
fn digits(batch: &TreeBatch, alphas: &[usize]) -> Vec<usize> {
    assert_eq!(alphas.len(), batch.trees(), "one alpha for each tree");
    // At its final capacity: a list that grows leaves copies behind.
    let mut digits = Vec::with_capacity(batch.levels.len());
    for (tree, alpha) in alphas.iter().enumerate() {
        let shape = batch.shape(tree);
        assert!(*alpha < shape.leaves(), "alpha is a leaf");
        digits.extend((1..=shape.levels()).map(|level| shape.digit(*alpha, level)));
    }
    digits
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use volery_channel::{Error, SessionId, run_two_parties_with_stats, run_two_unchecked};
    use volery_field::{Fp61, Gf128, Z64};
    use volery_ot::ideal;

    use super::*;

    const SESSION: SessionId = SessionId::from_bytes([9; 32]);

    fn ot() -> (
        convert::Sender<ideal::Sender>,
        convert::Receiver<ideal::Receiver>,
    ) {
        let (sender, receiver) = ideal::pair(Block::from(3), Block::from(1));
        (
            convert::Sender::new(sender, SESSION),
            convert::Receiver::new(receiver, SESSION),
        )
    }

    /// Runs both parties on trees of these sizes, compares their leaves, and compares the traffic
    /// with the doc.
    fn check<R: Ring>(arity: Arity, sizes: &[usize], place: impl Fn(usize) -> usize) {
        let batch = TreeBatch::new(sizes.iter().copied(), arity);
        let prgs = TreePrgs::new(SESSION, 1, arity);
        let alphas: Vec<_> = sizes.iter().map(|size| place(*size)).collect();
        let (mut ot_sender, mut ot_receiver) = ot();
        let (((all, sums), stats), ((rebuilt, totals), _)) = run_two_parties_with_stats(
            |channel| {
                let mut leaves = vec![R::ZERO; batch.leaves()];
                let (rng, ot) = (&mut Prg::new(Block::from(2)), &mut ot_sender);
                let sums = send(&batch, &prgs, &mut leaves, rng, ot, channel).unwrap();
                (leaves, sums)
            },
            |channel| {
                let (mut leaves, ot) = (vec![R::ONE; batch.leaves()], &mut ot_receiver);
                let totals = receive(&batch, &prgs, &alphas, &mut leaves, ot, channel).unwrap();
                (leaves, totals)
            },
        );
        for (tree, alpha) in alphas.iter().enumerate() {
            let mut expected = all[batch.leaves_of(tree)].to_vec();
            assert!(sums[tree] == R::sum(&expected));
            expected[*alpha] = R::ZERO;
            assert!(rebuilt[batch.leaves_of(tree)] == expected, "tree {tree}");
            assert!(totals[tree] == R::sum(&expected), "tree {tree}");
        }
        let (mut ots, mut bytes) = (0, 0);
        for size in sizes {
            let h = size.next_power_of_two().ilog2().max(1);
            ots += u64::from(h);
            bytes += bytes_of_levels(h / arity.bits(), arity.bits())
                + bytes_of_levels(1, h % arity.bits());
        }
        assert_eq!(all_but_one::ots(batch.levels()) as u64, ots);
        assert_eq!(stats.bytes_sent, bytes);
        assert_eq!(stats.bytes_received, ots.div_ceil(8));
    }

    /// The bytes that P1 sends for `levels` levels that take `c` bits of alpha each.
    fn bytes_of_levels(levels: u32, c: u32) -> u64 {
        let each = match c {
            0 => 0,
            1 => 32,
            c => 32 * c + (16 << c),
        };
        u64::from(levels * each)
    }

    #[test]
    fn p2_gets_all_leaves_but_alpha() {
        for arity in Arity::ALL {
            let k = arity.children();
            let around = [k - 1, k, k + 1, k * k - 1, k * k, k * k + 1];
            for sizes in [
                &[][..],
                &[1],
                &[2],
                &[3],
                &[16; 5],
                &[1, 2, 3, 5, 64, 65, 1009, 7],
                &around,
            ] {
                check::<Fp61>(arity, sizes, |size| size * 2 / 3);
                check::<Z64>(arity, sizes, |size| size - 1);
                check::<Gf128>(arity, sizes, |_| 0);
            }
        }
    }

    /// More leaves than are expanded at once.
    #[test]
    fn many_trees_go_in_runs() {
        let sizes = [20_000, 20_000, 5, 40_000, 12_345];
        check::<Fp61>(Arity::Eight, &sizes, |size| size / 2);
    }

    #[test]
    fn it_costs_what_the_doc_says() {
        let bytes = Arity::ALL.map(|arity| bytes_of_levels(12 / arity.bits(), arity.bits()));
        assert_eq!(bytes, [384, 768, 896, 1152]);
    }

    #[test]
    fn a_peer_that_stops_is_an_error() {
        let batch = TreeBatch::regular(2, 20, Arity::Four);
        let prgs = TreePrgs::new(SESSION, 1, Arity::Four);
        for sent in [0, 5, 300] {
            let (_, received) = run_two_unchecked(
                |channel| {
                    channel.recv(&mut [0; 1]).unwrap();
                    channel.send(&vec![1; sent]).unwrap();
                    channel.flush().unwrap();
                },
                |channel| {
                    let (mut leaves, ot) = (vec![Fp61::ZERO; 40], &mut ot().1);
                    receive(&batch, &prgs, &[0, 19], &mut leaves, ot, channel).map(|_| ())
                },
            );
            assert!(matches!(received, Err(Error::Disconnected)), "{received:?}");
        }
    }
}
