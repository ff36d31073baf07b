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
    ciphers: Vec<Aes128>,
    /// The first counter of each tree.
    starts: Vec<Block>,
}

impl Leaves {
    /// Leaves with these seeds, tree after tree, and the first counter of each tree.
    pub(super) fn new(field: SmallField, seeds: &[Block], starts: Vec<Block>) -> Self {
        assert_eq!(seeds.len(), field.trees() * field.leaves());
        assert_eq!(starts.len(), field.trees());
        Self { field, ciphers: seeds.iter().map(|&seed| Aes128::new(seed)).collect(), starts }
    }

    /// Block `number` of the row of each leaf, tree after tree.
    pub(super) fn block_of_each(&self, number: u128) -> Zeroizing<Vec<Block>> {
        let mut blocks = Zeroizing::new(vec![Block::ZERO; self.ciphers.len()]);
        let trees = self.ciphers.chunks_exact(self.field.leaves());
        let of_tree = blocks.chunks_exact_mut(self.field.leaves());
        for ((tree, start), blocks) in trees.zip(&self.starts).zip(of_tree) {
            let counter = u128::from(*start).wrapping_add(number);
            for (leaf, block) in tree.iter().zip(blocks) {
                leaf.ctr(counter, std::slice::from_mut(block));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_the_defined_ones() {
        for field in SmallField::ALL {
            for (row_blocks, stride) in [(1, 1), (2, 4), (63, 63), (64, 68), (130, 132)] {
                let seeds: Vec<Block> = (0..field.trees() * field.leaves())
                    .map(|i| Block::from(i as u128 + 1))
                    .collect();
                let mut rows = vec![Block::ALL_ONES; 128 * stride];
                let mut sums = vec![Block::ALL_ONES; field.trees() * row_blocks];
                // The counters of the second half of the trees wrap.
                let starts: Vec<Block> = (0..field.trees())
                    .map(|tree| {
                        Block::from(if 2 * tree < field.trees() {
                            tree as u128
                        } else {
                            u128::MAX - 8
                        })
                    })
                    .collect();
                Leaves::new(field, &seeds, starts.clone()).expand(7, &mut rows, &mut sums);
                for tree in [0, field.trees() - 1] {
                    let mut expected = vec![Block::ZERO; (field.bits() + 1) * row_blocks];
                    for x in 0..field.leaves() {
                        let mut r = vec![Block::ZERO; row_blocks];
                        let first = u128::from(starts[tree]).wrapping_add(7);
                        Aes128::new(seeds[tree * field.leaves() + x]).ctr(first, &mut r);
                        for (j, row) in expected.chunks_exact_mut(row_blocks).enumerate() {
                            // The last of the rows is the plain sum.
                            if j == field.bits() || (x >> j) & 1 == 1 {
                                crate::bits::xor_blocks(row, &r);
                            }
                        }
                    }
                    let (v, u) = expected.split_at(field.bits() * row_blocks);
                    let rows = rows.chunks_exact(stride).skip(tree * field.bits());
                    for (row, v) in rows.zip(v.chunks_exact(row_blocks)) {
                        assert_eq!(&row[..row_blocks], v, "{field:?} {row_blocks}");
                    }
                    assert_eq!(
                        &sums[tree * row_blocks..][..row_blocks],
                        u,
                        "{field:?} {row_blocks}"
                    );
                }
            }
        }
    }

    #[test]
    fn corrections_go_where_delta_has_a_one() {
        for field in SmallField::ALL {
            let (row_blocks, stride) = (5, 8);
            let seeds: Vec<Block> =
                (0..field.trees() * field.leaves()).map(|i| Block::from(i as u128 + 1)).collect();
            let starts = vec![Block::from(3); field.trees()];
            let leaves = Leaves::new(field, &seeds, starts);
            let mut v = vec![Block::ALL_ONES; 128 * stride];
            let mut sums = vec![Block::ALL_ONES; field.trees() * row_blocks];
            leaves.expand(2, &mut v, &mut sums);
            let corrections: Vec<Block> = (0..sums.len() as u128).map(Block::from).collect();
            let delta = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978;
            let mut q = vec![Block::ALL_ONES; 128 * stride];
            leaves.expand_corrected(2, &mut q, Block::from(delta), &corrections);
            for r in 0..128 {
                for i in 0..row_blocks {
                    let place = r / field.bits() * row_blocks + i;
                    let set = Block::select_mask(delta >> r & 1 == 1);
                    let change = set & (sums[place] ^ corrections[place]);
                    assert_eq!(q[r * stride + i], v[r * stride + i] ^ change, "{field:?}");
                }
            }
        }
    }
}
