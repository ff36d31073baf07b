//! The local linear code of primal LPN: the matrix `C` of Protocol 6, ten ones in each column.
//!
//! Section 8.2 of the 2019 paper (`d = 10`); Ferret, section 7. Column `i` of `C` holds ones at ten rows chosen
//! independently and uniformly by AES in counter mode under a public seed, fresh for every round of every session.
//! Two of the ten coincide in about one column out of `k/45`; like the implementations of both papers we
//! leave that as it is.
//!
//! The code computes `a * C` for the columns of a range: each output is the sum of ten entries of `a`. That is ten
//! reads from random places of a table of `k` entries, which is the time it takes.

use bytemuck::Zeroable;
use volery_field::Ring;
use volery_primitives::{
    Block,
    aes::Aes128,
    gather::{self, INDEX_BITS},
};

/// Ones in a column, `d`.
pub const WEIGHT: usize = 10;

/// Columns whose indices are made together. A whole number of them fills a whole number of AES blocks, for both ways
/// of cutting indices from the stream.
const GROUP: usize = 48;

/// Something that the code can add up: a ring element, or several side by side that share their indices.
pub trait Entry: Copy + Send + Sync {
    /// A sum that is not reduced.
    type Sum: Copy + Default;
    /// `sum + self`; at most 5 more after each [`fold`](Entry::fold), and one more at the very end.
    fn add_to(self, sum: Self::Sum) -> Self::Sum;
    /// Makes room in a sum for the next 6 additions.
    fn fold(sum: Self::Sum) -> Self::Sum;
    /// The table as blocks, where entries are nothing else and their sum is the XOR; there is a kernel for that.
    fn as_blocks(_table: &[Self]) -> Option<&[Block]> {
        None
    }
    /// The entry that is this block, as a sum. Called only where [`as_blocks`](Self::as_blocks) gives blocks.
    fn sum_of(block: Block) -> Self::Sum;
}

impl<R: Ring> Entry for R {
    type Sum = R::Lazy;
    #[inline(always)]
    fn add_to(self, sum: Self::Sum) -> Self::Sum {
        R::lazy_add(sum, self)
    }
    #[inline(always)]
    fn fold(sum: Self::Sum) -> Self::Sum {
        R::lazy_fold(sum)
    }
    fn as_blocks(table: &[Self]) -> Option<&[Block]> {
        R::as_blocks(table)
    }
    #[inline(always)]
    fn sum_of(block: Block) -> Self::Sum {
        R::lazy_add(R::Lazy::default(), R::from_block(block))
    }
}

/// Entries of the sender's two vectors, `a` and `b` of Protocol 6, side by side: one read serves both.
#[derive(Clone, Copy, Default, Zeroable)]
#[repr(C, align(16))]
pub struct Pair<B, R> {
    /// An entry of `a`.
    pub u: B,
    /// The entry of `b` at the same place.
    pub v: R,
}

impl<B: Ring, R: Ring> Entry for Pair<B, R> {
    type Sum = (B::Lazy, R::Lazy);
    #[inline(always)]
    fn add_to(self, (u, v): Self::Sum) -> Self::Sum {
        (B::lazy_add(u, self.u), R::lazy_add(v, self.v))
    }
    #[inline(always)]
    fn fold((u, v): Self::Sum) -> Self::Sum {
        (B::lazy_fold(u), R::lazy_fold(v))
    }
    fn sum_of(_block: Block) -> Self::Sum {
        unreachable!("a pair is no block")
    }
}

/// The code of one round: `k` rows, as many columns as are asked for.
pub struct LocalCode {
    aes: Aes128,
    k: usize,
}

impl LocalCode {
    /// The code with the public `seed` and `k` rows.
    ///
    /// # Panics
    /// If `k` is 0 or above 2^32, or a power of two above 2^21.
    #[must_use]
    pub fn new(seed: Block, k: usize) -> Self {
        assert!((1..=1 << 32).contains(&k), "1 to 2^32 rows");
        assert!(
            !k.is_power_of_two() || k <= 1 << INDEX_BITS,
            "a power of two has at most 21 bits"
        );
        Self {
            aes: Aes128::new(seed),
            k,
        }
    }

    /// For each column `first + i` with `i < count`, calls `output(i, sum)` with the sum of the ten entries of `table`
    /// that the column names.
    ///
    /// # Panics
    /// If `table.len()` is not `k`.
    #[inline]
    pub fn encode<E: Entry>(
        &self,
        table: &[E],
        first: usize,
        count: usize,
        output: impl FnMut(usize, E::Sum),
    ) {
        assert_eq!(table.len(), self.k, "one entry for each row");
        if self.k.is_power_of_two() {
            self.encode_with::<E, PackedIndices>(table, first, count, output);
        } else {
            self.encode_with::<E, ScaledIndices>(table, first, count, output);
        }
    }

    #[inline]
    fn encode_with<E: Entry, I: Indices>(
        &self,
        table: &[E],
        first: usize,
        count: usize,
        mut output: impl FnMut(usize, E::Sum),
    ) {
        let mut blocks = vec![Block::ZERO; GROUP * WEIGHT / I::PER_BLOCK];
        let mut indices = [0u32; GROUP * WEIGHT];
        let mut done = 0;
        while done < count {
            let (group, skip) = ((first + done) / GROUP, (first + done) % GROUP);
            self.aes.ctr((group * blocks.len()) as u128, &mut blocks);
            I::cut(&blocks, self.k, &mut indices);
            let take = (GROUP - skip).min(count - done);
            let columns = &indices.as_chunks::<WEIGHT>().0[skip..skip + take];
            I::sums(table, columns, |i, sum| output(done + i, sum));
            done += take;
        }
    }
}

/// A way to cut row indices from the AES stream.
trait Indices: Sized {
    const PER_BLOCK: usize;
    fn cut(blocks: &[Block], k: usize, indices: &mut [u32]);
    fn entry<E: Copy>(table: &[E], index: u32) -> E;

    /// Calls `output(i, sum)` for column number `i` of `columns`.
    #[inline(always)]
    fn sums<E: Entry>(table: &[E], columns: &[[u32; WEIGHT]], output: impl FnMut(usize, E::Sum)) {
        plain_sums::<Self, E>(table, columns, output);
    }
}

#[inline(always)]
fn plain_sums<I: Indices, E: Entry>(
    table: &[E],
    columns: &[[u32; WEIGHT]],
    mut output: impl FnMut(usize, E::Sum),
) {
    for (i, column) in columns.iter().enumerate() {
        let mut sum = E::Sum::default();
        for index in &column[..WEIGHT / 2] {
            sum = I::entry(table, *index).add_to(sum);
        }
        sum = E::fold(sum);
        for index in &column[WEIGHT / 2..] {
            sum = I::entry(table, *index).add_to(sum);
        }
        output(i, sum);
    }
}

/// `k` a power of two: 21 bits each, three to a word; the low bits of each are the index.
struct PackedIndices;

impl Indices for PackedIndices {
    const PER_BLOCK: usize = gather::CUT_INDICES / gather::CUT_BLOCKS;

    #[inline(always)]
    fn cut(blocks: &[Block], _k: usize, indices: &mut [u32]) {
        gather::cut_indices(blocks, indices);
    }

    #[inline(always)]
    fn entry<E: Copy>(table: &[E], index: u32) -> E {
        // In this form the compiler sees that the index is in bounds.
        table[index as usize & (table.len() - 1)]
    }

    #[inline(always)]
    fn sums<E: Entry>(
        table: &[E],
        columns: &[[u32; WEIGHT]],
        mut output: impl FnMut(usize, E::Sum),
    ) {
        if let Some(blocks) = E::as_blocks(table) {
            let mut sums = [Block::ZERO; GROUP];
            let sums = &mut sums[..columns.len()];
            gather::sum_columns(blocks, columns, sums);
            for (i, sum) in sums.iter().enumerate() {
                output(i, E::sum_of(*sum));
            }
            return;
        }
        plain_sums::<Self, E>(table, columns, output);
    }
}

/// Any `k`: the high part of a 32-bit number times `k`.
struct ScaledIndices;

impl Indices for ScaledIndices {
    const PER_BLOCK: usize = 4;

    #[inline(always)]
    fn cut(blocks: &[Block], k: usize, indices: &mut [u32]) {
        let (indices, _) = indices.as_chunks_mut::<4>();
        for (block, indices) in blocks.iter().zip(indices) {
            for (j, word) in [
                block.low(),
                block.low() >> 32,
                block.high(),
                block.high() >> 32,
            ]
            .into_iter()
            .enumerate()
            {
                indices[j] = ((u64::from(word as u32) * k as u64) >> 32) as u32;
            }
        }
    }

    #[inline(always)]
    fn entry<E: Copy>(table: &[E], index: u32) -> E {
        table[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use volery_field::{Fp61, Gf128, Z64};
    use volery_primitives::prg::Prg;

    use super::*;

    /// A plain reading of the definition of column `i`.
    fn column(seed: Block, k: usize, i: usize) -> [usize; WEIGHT] {
        let aes = Aes128::new(seed);
        std::array::from_fn(|j| {
            let number = i * WEIGHT + j;
            if k.is_power_of_two() {
                let (cut, piece, word) = (number / 24, number % 24 / 8, number % 8);
                let block = aes.encrypt(Block::from((4 * cut + word / 2) as u128));
                let word = (u128::from(block) >> (64 * (word % 2))) as u64;
                (word >> (21 * piece)) as usize % k
            } else {
                let block = u128::from(aes.encrypt(Block::from((number / 4) as u128)));
                let word = (block >> (32 * (number % 4))) as u32;
                ((u64::from(word) * k as u64) >> 32) as usize
            }
        })
    }

    fn check<R: Ring>(k: usize, first: usize, count: usize) {
        let seed = Block::from(77);
        let mut random = Prg::new(Block::from(1));
        let mut table = vec![R::ZERO; k];
        R::random_slice(&mut random, &mut table);
        // The largest values, so that a sum that is folded too late overflows.
        table
            .iter_mut()
            .step_by(2)
            .for_each(|entry| *entry = R::ZERO - R::ONE);
        let expected: Vec<R> = (0..count)
            .map(|i| {
                let column = column(seed, k, first + i);
                column.iter().fold(R::ZERO, |sum, j| sum + table[*j])
            })
            .collect();
        let code = LocalCode::new(seed, k);
        let mut out = vec![R::ZERO; count];
        code.encode(&table, first, count, |i, sum| {
            out[i] = R::lazy_finish(R::lazy_add(sum, R::ONE)) - R::ONE;
        });
        assert!(out == expected, "k = {k}, {count} columns from {first}");
        let pairs: Vec<_> = table.iter().map(|v| Pair { u: *v, v: -*v }).collect();
        code.encode(&pairs, first, count, |i, (u, v)| {
            assert!(R::lazy_finish(u) == expected[i] && R::lazy_finish(v) == -expected[i]);
        });
    }

    #[test]
    fn columns_are_the_definition() {
        for k in [1, 2, 1000, 1024, 4096, 7391] {
            for (first, count) in [
                (0, 0),
                (0, 1),
                (47, 1),
                (47, 2),
                (48, 48),
                (5, 200),
                (1 << 33, 50),
            ] {
                check::<Fp61>(k, first, count);
                check::<Z64>(k, first, count);
                check::<Gf128>(k, first, count);
            }
        }
    }

    #[test]
    fn rows_are_hit_evenly() {
        for k in [64usize, 100] {
            let table: Vec<_> = (0..k)
                .map(|j| Gf128::from_block(Block::from(1 << j.min(127))))
                .collect();
            let mut hits = vec![0u32; k];
            let columns = 20_000;
            LocalCode::new(Block::from(5), k).encode(&table, 0, columns, |i, _| {
                for row in column(Block::from(5), k, i) {
                    hits[row] += 1;
                }
            });
            let mean = (columns * WEIGHT) as f64 / k as f64;
            let chi: f64 = hits
                .iter()
                .map(|h| (f64::from(*h) - mean).powi(2) / mean)
                .sum();
            // Mean k - 1, standard deviation sqrt(2k): six of them up or down.
            let (expected, spread) = (k as f64 - 1.0, 6.0 * (2.0 * k as f64).sqrt());
            assert!(
                (chi - expected).abs() < spread,
                "chi-square {chi} for k = {k}"
            );
        }
    }
}
