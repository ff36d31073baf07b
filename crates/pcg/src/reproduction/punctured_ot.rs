//! (n-1)-out-of-n random OT: Protocol 2 of the 2019 paper with k = 2, for many trees at once.
//!
//! ```text
//! P1: -                                   P2: alpha_j for each tree j
//! 1. s_0 random, for each tree
//! 2. the tree under s_0; its level sums
//! 3.                                      bits b_1 .. b_h of alpha
//! 4. m_0, m_1 = sums of the left and of the right nodes of level l
//!        ------ one 1-of-2 OT for each level of each tree; P2 takes m_(1 - b_l) ------>
//! Expand: all leaves                      Expand: all leaves but alpha
//! ```
//!
//! A tree is the paper's puncturable PRF (section 3, Definition A.1) with the key `s_0`: `F(j)` is
//! leaf `j`, and what P2 has after step 4 is the key punctured at alpha, which P1 does not learn.
//!
//! P1 is the OT sender, P2 the OT receiver. The paper's indices start at 1, ours at 0. The sums of
//! the seed levels are XORs, those of the last level are sums in the ring `R` of the leaves: the
//! missing leaf is masked by `G` of a seed that P2 does not know, in whichever group its sum is
//! formed.
//!
//! Security: that of the OT and of `G` (Theorem A.3); P1 learns nothing of alpha, P2 nothing of
//! leaf alpha. The opened sums are not checked here: a P1 who sends wrong ones gets leaves that do
//! not agree. In a malicious protocol the check of the layer above covers that. P2 takes any block
//! for a sum of leaves ([`Ring::from_block`]): if it refused some, P1 could learn from the refusal
//! which of the two it had opened. A malicious P2 can only choose another point, if the OTs are
//! secure against it and `n` is a power of two above 1; otherwise it may choose a place beyond the
//! last point, and so get all leaves.
//!
//! Cost: one chosen OT of 16-byte messages a level, `h = max(1, ceil(log2 n))` levels a tree: 32
//! bytes from P1 and 1 bit from P2 each, in addition to the cost of the source of OTs. 2 messages
//! for each 2^16 levels. Computation as in [`crate::ggm`].

use rayon::prelude::*;
use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::{Block, prg::Prg};
use zeroize::Zeroizing;

use crate::{
    ggm::{self, PuncturedSums, Scratch, TreePrgs},
    spcot,
    tree_batch::TreeBatch,
    wire,
};

/// P1's trees after step 2, ready for the OTs of step 4.
pub struct Trees<R: Ring> {
    /// The sum of all leaves of each tree.
    pub totals: Zeroizing<Vec<R>>,
    /// `[m_0, m_1]` for each level of each tree.
    messages: Zeroizing<Vec<[Block; 2]>>,
}

impl<R: Ring> Trees<R> {
    /// P1, steps 1 and 2: samples a root for each tree and expands it into its part of `leaves`.
    #[must_use]
    pub fn grow(batch: &TreeBatch, prgs: &TreePrgs, rng: &mut Prg, leaves: &mut [R]) -> Self {
        let mut roots = Zeroizing::new(vec![Block::ZERO; batch.trees()]);
        rng.fill_blocks(&mut roots);
        let mut messages = Zeroizing::new(vec![[Block::ZERO; 2]; batch.levels()]);
        let mut totals = Zeroizing::new(vec![R::ZERO; batch.trees()]);
        batch.split(leaves, &mut messages).into_par_iter().zip(&mut totals[..]).for_each_init(
            Scratch::default,
            |scratch, (part, total)| {
                let sums = ggm::expand(
                    &prgs.tree(part.tree),
                    part.shape,
                    roots[part.tree],
                    Block::ZERO,
                    part.leaves,
                    scratch,
                );
                let (last, levels) = part.levels.split_last_mut().expect("a tree has a level");
                levels.copy_from_slice(&sums.inner);
                *last = sums.leaf.map(wire::pack);
                *total = sums.leaf[0] + sums.leaf[1];
            },
        );
        Self { totals, messages }
    }

    /// P1, step 4: sends the sums of each level.
    pub fn send<C: CotSender>(
        &self,
        ot: &mut convert::Sender<C>,
        channel: &mut Channel,
    ) -> Result<()> {
        ot.chosen(&self.messages, channel)
    }
}

/// P2, steps 3 and 4 and `Expand`: the leaves of each tree except number `alphas[tree]`, which
/// becomes zero. Returns the sum of the leaves of each tree.
///
/// # Panics
/// If `alphas.len()` or `leaves.len()` is not that of the batch, or an alpha is not a leaf of its
/// tree.
pub fn receive<R: Ring, C: CotReceiver>(
    batch: &TreeBatch,
    prgs: &TreePrgs,
    alphas: &[usize],
    leaves: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    let choices = Zeroizing::new(spcot::choices(batch, alphas)); // step 3
    let mut opened = Zeroizing::new(vec![Block::ZERO; batch.levels()]);
    ot.chosen(&choices, &mut opened, channel)?; // step 4
    // Expand
    let mut totals = Zeroizing::new(vec![R::ZERO; batch.trees()]);
    batch.split(leaves, &mut opened).into_par_iter().zip(&mut totals[..]).for_each_init(
        Scratch::default,
        |scratch, (part, total)| {
            let (last, inner) = part.levels.split_last().expect("a tree has a level");
            let (alpha, leaf) = (alphas[part.tree], wire::unpack(*last));
            let sums = PuncturedSums { alpha, inner: inner.to_vec(), leaf };
            let prg = prgs.tree(part.tree);
            *total = ggm::expand_punctured(&prg, part.shape, &sums, part.leaves, scratch);
        },
    );
    Ok(totals)
}
