//! The local linear code of primal LPN: the matrix `C` of Protocol 6, ten ones in each column.
//!
//! Section 8.2 of the 2019 paper (`d = 10`); Ferret, section 7. Column `i` of `C` holds ones at ten rows chosen
//! independently and uniformly by AES in counter mode under a public seed, fresh for every round of every session.
//! Two of the ten coincide in about one column out of `k/45`; like the implementations of both papers we
//! leave that as it is.
//!
//! The code computes `a * C` for the columns of a range: each output is the sum of ten entries of `a`. That is ten
//! reads from random places of a table of `k` entries, which is the time it takes.

use std::ops::Range;

use bytemuck::Zeroable;
use volery_field::Ring;
use volery_primitives::{
    Aligned, Block,
    aes::Aes128,
    gather::{Columns, PLACE_BITS},
};

/// Ones in a column, `d`.
pub const WEIGHT: usize = 10;

/// Columns whose indices are made together. A whole number of them fills a whole number of AES blocks, for both ways
/// of cutting indices from the stream.
pub const GROUP: usize = 48;

/// Something that the code can add up: a ring element, or several side by side that share their indices.
pub trait Entry: Copy + Send + Sync {
    /// A sum that is not reduced.
    type Sum: Copy + Default;
    /// `sum + self`; at most 5 more after each [`fold`](Entry::fold), and one more at the very end.
    fn add_to(self, sum: Self::Sum) -> Self::Sum;
    /// Makes room in a sum for the next 6 additions.
    fn fold(sum: Self::Sum) -> Self::Sum;
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
}

/// Entries of the sender's two vectors, `a` and `b` of Protocol 6, side by side: one read serves both.
#[derive(Clone, Copy, Default, Zeroable)]
#[repr(C, align(16))]
pub struct Pair<R> {
    /// An entry of `a`.
    pub u: R,
    /// The entry of `b` at the same place.
    pub v: R,
}

impl<R: Ring> Entry for Pair<R> {
    type Sum = R::LazyPair;
    #[inline(always)]
    fn add_to(self, sums: Self::Sum) -> Self::Sum {
        R::pair_add(sums, [self.u, self.v])
    }
    #[inline(always)]
    fn fold(sums: Self::Sum) -> Self::Sum {
        R::pair_fold(sums)
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
            !k.is_power_of_two() || k <= 1 << PLACE_BITS,
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
    /// If `table.len()` is not `k`, or the table has more than 2^32 bytes.
    #[inline]
    pub fn encode<E: Entry>(
        &self,
        table: &[E],
        first: usize,
        count: usize,
        mut output: impl FnMut(usize, E::Sum),
    ) {
        self.for_each_group(table, first, count, |done, columns, take| {
            columns.sums(table, take, |i, sum| output(done + i, sum));
        });
    }

    /// As [`encode`](Self::encode), some columns at a time: calls `output(i, sums)` with the sums of the columns from `first + i`
    /// on.
    ///
    /// # Panics
    /// As [`encode`](Self::encode).
    #[inline]
    pub fn encode_slices<E: Entry>(
        &self,
        table: &[E],
        first: usize,
        count: usize,
        mut output: impl FnMut(usize, &[E::Sum]),
    ) {
        let Aligned(sums) = &mut Aligned([E::Sum::default(); GROUP]);
        self.for_each_group(table, first, count, |done, columns, take| {
            let sums = &mut sums[..take.len()];
            columns.sums(table, take, |i, sum| sums[i] = sum);
            output(done, sums);
        });
    }

    /// Calls `look(i, columns, of)` with groups and their columns, which together are the range; the first is `first + i`.
    #[inline(always)]
    fn for_each_group<E: Entry>(
        &self,
        table: &[E],
        first: usize,
        count: usize,
        mut look: impl FnMut(usize, &Group<E>, Range<usize>),
    ) {
        assert_eq!(table.len(), self.k, "one entry for each row");
        let mut columns = Group::new(self.k);
        let mut done = 0;
        while done < count {
            let (group, skip) = ((first + done) / GROUP, (first + done) % GROUP);
            columns.fill(self, group);
            let take = (GROUP - skip).min(count - done);
            look(done, &columns, skip..skip + take);
            done += take;
        }
    }
}

/// Columns of a code that are made together, for tables of entries `E`.
pub struct Group<E>(Columns<E, WEIGHT, GROUP>);

impl<E: Entry> Group<E> {
    /// Room for the columns of a code with `k` rows.
    ///
    /// # Panics
    /// If `k` is 0, or the table has more than 2^32 bytes.
    #[must_use]
    pub fn new(k: usize) -> Self {
        Self(Columns::new(k))
    }

    /// The columns from `number * GROUP` on.
    ///
    /// # Panics
    /// If the number of rows is not that of the code.
    #[inline]
    pub fn fill(&mut self, code: &LocalCode, number: usize) {
        assert_eq!(code.k, self.0.rows(), "columns of one code");
        let Aligned(blocks) = &mut Aligned([Block::ZERO; GROUP * WEIGHT / 4]);
        if code.k.is_power_of_two() {
            let blocks = &mut blocks[..Columns::<E, WEIGHT, GROUP>::CUT];
            code.aes.ctr((number * blocks.len()) as u128, blocks);
            self.0.cut(blocks);
        } else {
            code.aes.ctr((number * blocks.len()) as u128, blocks);
            self.0.scale(blocks);
        }
    }

    /// Calls `output(i, sum)` for each of `columns`, of which it is number `i`.
    ///
    /// # Panics
    /// If `table` has not an entry for each row, or there are no such columns.
    #[inline(always)]
    pub fn sums(&self, table: &[E], columns: Range<usize>, mut output: impl FnMut(usize, E::Sum)) {
        let entries = self.0.of(table);
        for (i, column) in columns.enumerate() {
            let mut sum = E::Sum::default();
            for (j, entry) in entries.column(column).enumerate() {
                if j == WEIGHT / 2 {
                    sum = E::fold(sum);
                }
                sum = entry.add_to(sum);
            }
            output(i, sum);
        }
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
        let shares = vec![R::ONE; count];
        code.encode_slices(&table, first, count, |i, sums| {
            let to = i + sums.len();
            R::finish_slice(sums, &shares[i..to], &mut out[i..to]);
        });
        assert!((0..count).all(|i| out[i] == expected[i] + R::ONE));
        let pairs: Vec<_> = table.iter().map(|v| Pair { u: *v, v: -*v }).collect();
        code.encode(&pairs, first, count, |i, sums| {
            assert!(R::pair_finish(sums) == [expected[i], -expected[i]]);
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
