//! The rows of the small-field VOLEs: step 1 of the parent module, the same for both parties.

use rayon::prelude::*;
use volery_primitives::Block;
use volery_primitives::aes::Aes128;
use zeroize::Zeroizing;

use super::SmallField;

/// Blocks of a row that are made at a time, so that the partial sums of one tree stay in the first-level cache.
const CHUNK: usize = 64;

/// Blocks of AES output below which a second thread is not worth waking.
const PARALLEL: usize = 1 << 14;

/// The leaves of all trees, each the key of its row of bits: AES in counter mode, by the number of the 128 columns.
///
/// The counters of a tree start at a public random place. If all started at 0, one guess of a key could be compared
/// with the rows of all trees of all sessions.
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
        Self {
            field,
            ciphers: seeds.iter().map(|&seed| Aes128::new(seed)).collect(),
            starts,
        }
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

    /// Fill `rows` (128 of them, `rows.len()/128` blocks each) with `v_ij` and `sums` with `u_i`, for the columns that
    /// start with block number `first`.
    pub(super) fn expand(&self, first: u128, rows: &mut [Block], sums: &mut [Block]) {
        let bits = self.field.bits();
        let row_blocks = rows.len() / 128;
        let counter = |start: &Block| u128::from(*start).wrapping_add(first);
        if row_blocks * self.ciphers.len() < PARALLEL {
            let rows = rows.chunks_exact_mut(bits * row_blocks);
            let sums = sums.chunks_exact_mut(row_blocks);
            let trees = self.ciphers.chunks_exact(self.field.leaves());
            for (((tree, start), rows), sum) in trees.zip(&self.starts).zip(rows).zip(sums) {
                expand_tree(tree, counter(start), rows, sum);
            }
        } else {
            self.ciphers
                .par_chunks_exact(self.field.leaves())
                .zip(&self.starts)
                .zip(rows.par_chunks_exact_mut(bits * row_blocks))
                .zip(sums.par_chunks_exact_mut(row_blocks))
                .for_each(|(((tree, start), rows), sum)| {
                    expand_tree(tree, counter(start), rows, sum);
                });
        }
    }
}

/// The rows of one tree: `rows` becomes `sum of x_j*r_x`, row by row for `j = 0, 1, ..`, and `sum` the sum of `r_x`.
fn expand_tree(leaves: &[Aes128], first: u128, rows: &mut [Block], sum: &mut [Block]) {
    let row_blocks = sum.len();
    let heights = rows.len() / row_blocks;
    let chunk = CHUNK.min(row_blocks);
    let mut scratch = Zeroizing::new(vec![Block::ZERO; (heights + 1) * chunk]);
    rows.fill(Block::ZERO);
    for (i, sum) in sum.chunks_mut(chunk).enumerate() {
        let start = i * chunk;
        let rows = Rows {
            rows,
            row_blocks,
            start,
        };
        add_up(
            leaves,
            first.wrapping_add(start as u128),
            rows,
            sum,
            &mut scratch,
            chunk,
        );
    }
}

/// The blocks of some rows from `start` on.
struct Rows<'a> {
    rows: &'a mut [Block],
    row_blocks: usize,
    start: usize,
}

/// [`expand_tree`] for some blocks of each row, as many as `sum` has.
///
/// The leaves are added up as in a binary counter: whenever two neighbours of one height are complete, the right one
/// (all its leaves have the bit of that height set) goes into the row of that bit, and both become one.
fn add_up(
    leaves: &[Aes128],
    counter: u128,
    Rows {
        rows,
        row_blocks,
        start,
    }: Rows<'_>,
    sum: &mut [Block],
    scratch: &mut [Block],
    chunk: usize,
) {
    let blocks = sum.len();
    // The left neighbours that wait, by height.
    let (current, waiting) = scratch.split_at_mut(chunk);
    let current = &mut current[..blocks];
    for (x, leaf) in leaves.iter().enumerate() {
        if x % 2 == 0 {
            leaf.ctr(counter, &mut waiting[..blocks]);
            continue;
        }
        leaf.ctr(counter, current);
        let height = x.trailing_ones() as usize;
        for (j, left) in waiting.chunks_exact(chunk).take(height).enumerate() {
            let row = &mut rows[j * row_blocks + start..][..blocks];
            for ((v, right), left) in row.iter_mut().zip(&mut *current).zip(left) {
                *v ^= *right;
                *right ^= *left;
            }
        }
        if x + 1 == leaves.len() {
            sum.copy_from_slice(current);
        } else {
            waiting[height * chunk..][..blocks].copy_from_slice(current);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_the_defined_ones() {
        for field in SmallField::ALL {
            for row_blocks in [1, 2, 63, 64, 65, 130] {
                let seeds: Vec<Block> = (0..field.trees() * field.leaves())
                    .map(|i| Block::from(i as u128 + 1))
                    .collect();
                let mut rows = vec![Block::ALL_ONES; 128 * row_blocks];
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
                    assert_eq!(
                        &rows[tree * v.len()..][..v.len()],
                        v,
                        "{field:?} {row_blocks}"
                    );
                    assert_eq!(
                        &sums[tree * row_blocks..][..row_blocks],
                        u,
                        "{field:?} {row_blocks}"
                    );
                }
            }
        }
    }
}
