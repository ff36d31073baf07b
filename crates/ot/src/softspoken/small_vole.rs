//! The rows of the small-field VOLEs: step 1 of the parent module, the same for both parties.

use rayon::prelude::*;
use volery_primitives::Block;
use volery_primitives::aes::Aes128;
use volery_primitives::fold::{fold, fold_corrected};
use zeroize::Zeroizing;

use super::SmallField;

/// Minimum number of blocks of AES output for a second thread.
const PARALLEL: usize = 1 << 14;

/// The leaves of all trees, each the key of its row of bits: AES in counter mode, indexed by the
/// number of the 128 columns.
///
/// The counters of a tree start at a public random value. If all started at 0, one guess of a key
/// could be compared with the rows of all trees of all sessions.
pub(super) struct Leaves {
    field: SmallField,
    seeds: Zeroizing<Vec<Block>>,
    /// The ciphers of the seeds, or none while nobody draws: they take eleven times the memory.
    ciphers: Vec<Aes128>,
    /// The first counter of each tree.
    starts: Vec<Block>,
}

impl Leaves {
    /// Leaves with these seeds, tree after tree, and the first counter of each tree.
    pub(super) fn new(field: SmallField, seeds: Zeroizing<Vec<Block>>, starts: Vec<Block>) -> Self {
        assert_eq!(seeds.len(), field.trees() * field.leaves());
        assert_eq!(starts.len(), field.trees());
        Self { field, seeds, ciphers: Vec::new(), starts }
    }

    /// Expands the keys, unless they are.
    pub(super) fn wake(&mut self) {
        if self.ciphers.is_empty() {
            self.ciphers = self.seeds.iter().map(|&seed| Aes128::new(seed)).collect();
        }
    }

    /// Wipes the expanded keys.
    pub(super) fn rest(&mut self) {
        self.ciphers = Vec::new();
    }

    /// Block `number` of the row of each leaf, tree after tree.
    pub(super) fn block_of_each(&self, number: u128) -> Zeroizing<Vec<Block>> {
        let mut blocks = Zeroizing::new(vec![Block::ZERO; self.seeds.len()]);
        let trees = self.seeds.chunks_exact(self.field.leaves());
        let of_tree = blocks.chunks_exact_mut(self.field.leaves());
        for ((tree, start), blocks) in trees.zip(&self.starts).zip(of_tree) {
            let counter = u128::from(*start).wrapping_add(number);
            for (leaf, block) in tree.iter().zip(blocks) {
                Aes128::new(*leaf).ctr(counter, std::slice::from_mut(block));
            }
        }
        blocks
    }

    /// Receiver: fills `rows` (128 of them, each beginning at a multiple of `rows.len()/128`) with
    /// `v_ij` and `sums` with `u_i`, for the columns that start with block number `first`.
    pub(super) fn expand(&self, first: u128, rows: &mut [Block], sums: &mut [Block]) {
        let stride = rows.len() / 128;
        let row_blocks = sums.len() / self.field.trees();
        let sums = sums.par_chunks_exact_mut(row_blocks);
        self.for_each_tree(first, row_blocks, rows, sums, |leaves, counter, rows, sum| {
            fold(leaves, counter, rows, stride, sum);
        });
    }

    /// Sender: fills `rows`, as in [`expand`](Self::expand), with `q_ij`: `v_ij` for its leaves,
    /// plus the sum of `u_i` and the row of `corrections` in the rows whose bit of `delta` is set.
    pub(super) fn expand_corrected(
        &self,
        first: u128,
        rows: &mut [Block],
        delta: Block,
        corrections: &[Block],
    ) {
        let stride = rows.len() / 128;
        let row_blocks = corrections.len() / self.field.trees();
        let bits = Zeroizing::new(delta.to_bytes());
        let masks: Vec<Block> = (0..128).map(|r| crate::bits::mask(&bits[..], r)).collect();
        let masks = Zeroizing::new(masks);
        let corrections =
            corrections.par_chunks_exact(row_blocks).zip(masks.par_chunks_exact(self.field.bits()));
        self.for_each_tree(
            first,
            row_blocks,
            rows,
            corrections,
            |leaves, counter, rows, (correction, masks)| {
                fold_corrected(leaves, counter, rows, stride, masks, correction);
            },
        );
    }

    /// Runs `expand` for each tree, with its leaves, its counter at block `first`, its rows and its
    /// element of `others`.
    fn for_each_tree<T: Send>(
        &self,
        first: u128,
        row_blocks: usize,
        rows: &mut [Block],
        others: impl IndexedParallelIterator<Item = T>,
        expand: impl Fn(&[Aes128], u128, &mut [Block], T) + Sync,
    ) {
        let at_least = match row_blocks * self.ciphers.len() < PARALLEL {
            true => self.field.trees(),
            false => 1,
        };
        let tree_blocks = self.field.bits() * (rows.len() / 128);
        self.ciphers
            .par_chunks_exact(self.field.leaves())
            .zip(&self.starts)
            .zip(rows.par_chunks_exact_mut(tree_blocks))
            .zip(others)
            .with_min_len(at_least)
            .for_each(|(((leaves, start), rows), other)| {
                let counter = u128::from(*start).wrapping_add(first);
                expand(leaves, counter, rows, other);
            });
    }
}
