//! The local linear code of primal LPN: the matrix `C` of Protocol 6, ten entries in each column.
//!
//! Section 8.2 of the 2019 paper (`d = 10`); Ferret, section 7. Column `i` of `C` has entries at
//! ten rows chosen independently and uniformly by AES in counter mode under a public seed, fresh
//! for every round of every session. Two of the ten coincide in about one column out of `k/45`;
//! like the implementations of both papers, this one leaves such columns as they are.
//!
//! The code computes `a * C` for a range of columns: each output is the sum of ten entries of `a`.
//! The run time is that of ten random reads from a table of `k` entries.
//!
//! # Entries other than one
//!
//! Over GF(2), the integers modulo 2^61 - 1 and modulo 2^64 the entries of `C` are ones. In a ring
//! that ones do not generate ([`Ring::GENERATED_BY_ONE`]: GF(2^128)) they must not all be. There
//! the samples `a*C + e` would be 128 samples over GF(2) side by side, of one code and with noise
//! at the same `t` places. An attacker takes about `k` samples, `m` of them noisy, and solves 128
//! systems of equations at once. At least `128 - m` combinations of them are free of noise: linear
//! algebra finds those, and with them the noise positions and all of `a` (the decoder of Metzner
//! and Kapturowski, *A general decoding technique applicable to replicated file disagreement
//! location and concatenated code decoding*, IEEE Transactions on Information Theory, 1990). The
//! sets have `m = t*k/n` from 101 to 132, and a choice of samples has less noise often enough. A
//! test runs the decisive step: it counts the combinations free of noise.
//!
//! The last five entries of column `j` are therefore `c_j`, a uniform element of the ring by AES
//! under the same seed. (The papers ask for ten non-zero entries and do not say which. A further
//! factor of the whole column would change nothing: it maps uniform noise to uniform noise.) This
//! leaves no smaller code: let an attacker look at sample `j` through `r` maps to GF(2). At a row
//! where the column has `c_j` these maps give other functions of `a` than at all other columns of
//! that row, because the `c_j` are independent; so the maps of the `5n/k` such columns together see
//! all 128 bits of an entry, or `5n/k * r` of them if that is less. The result is a code over GF(2)
//! of length `r*n` and dimension `128k` or `5r*n`, whose rate is at least `k/n`; the attacker gains
//! nothing over the code over GF(2^128), to which the estimates apply.
//!
//! # Instances in lockstep
//!
//! `B` instances can share one code: `B` secrets `a`, each with noise of its own. The entries of
//! all of them at a row lie side by side in the table, so that one read of a cache line serves `B`
//! outputs, and the indices of a column are computed once for all.
//!
//! The samples `(C, a_1*C + e_1, .., a_B*C + e_B)` look uniform if those of one instance do: an
//! attacker who knows `C` makes all instances but one itself, so a hybrid argument over `b` turns
//! an advantage against `B` of them into one against a single instance that is `B` times smaller,
//! in the same time. This holds for every ring and every `C`, and costs `log2 B` bits
//! ([`in_lockstep`](crate::estimate::in_lockstep)). The loss is real: an attacker may invert a part
//! of `C` once, and try the inverse on `B` secrets.
//!
//! The factors `c_j` are a part of `C`, so all instances share them. The attack above needs noise
//! at common places: it looks for combinations of the samples that are free of noise at once. The
//! samples of *different* instances have noise at independent places, and a combination of them has
//! noise at all of these. **Places that instances share would break them**: a combination of `B`
//! instances over the ring removes `B - 1` of the `m` noise values among `k` samples, which `B > m`
//! instances solve by linear algebra. Nor may the places of one follow from those of another. So
//! the instances have secrets, places, noise values, trees and OTs of their own.

use std::ops::{Deref, Range};

use bytemuck::{AnyBitPattern, TransparentWrapper, Zeroable};
use volery_field::Ring;
use volery_primitives::{
    Aligned, Block,
    aes::Aes128,
    cpu::Cpu,
    gather::{self, Columns, Lanes, PLACE_BITS, Words},
};

/// Ones in a column, `d`.
pub const WEIGHT: usize = 10;

/// Columns generated together. A whole number of them fills a whole number of AES blocks, for both
/// ways of taking indices from the stream.
pub const GROUP: usize = 48;

/// The counter from which the factors are generated: no row index reaches it.
const FACTORS: u128 = 1 << 64;

/// A summand of the code: a ring element, or several side by side that share their indices.
pub trait Entry: Copy + Send + Sync {
    /// An unreduced sum, in the form of an entry.
    type Sum: AnyBitPattern + Default;
    /// The entry for kernels.
    type Words: Words;
    /// The addition in kernels, if they do it.
    const LANES: Option<Lanes>;
    /// A table for kernels.
    fn words<const B: usize>(table: &[[Self; B]]) -> &[[Self::Words; B]];
    /// `sum + self`; at most 5 more after each [`fold`](Entry::fold), and one more at the very end.
    fn add_to(self, sum: Self::Sum) -> Self::Sum;
    /// Reduces a sum, so that it takes the next 6 additions.
    fn fold(sum: Self::Sum) -> Self::Sum;
}

impl<R: Ring> Entry for R {
    type Sum = R::Lazy;
    type Words = R;
    const LANES: Option<Lanes> = R::LANES;
    #[inline(always)]
    fn words<const B: usize>(table: &[[R; B]]) -> &[[R; B]] {
        table
    }
    #[inline(always)]
    fn add_to(self, sum: Self::Sum) -> Self::Sum {
        R::lazy_add(sum, self)
    }
    #[inline(always)]
    fn fold(sum: Self::Sum) -> Self::Sum {
        R::lazy_fold(sum)
    }
}

/// Entries of the sender's two vectors, `a` and `b` of Protocol 6, side by side: one read serves
/// both.
#[derive(Clone, Copy, Default, Zeroable, TransparentWrapper)]
#[repr(transparent)]
pub struct Pair<U, V = U>(gather::Pair<U, V>);

impl<U, V> Pair<U, V> {
    /// An entry of `a`, and the entry of `b` at the same place.
    pub const fn new(u: U, v: V) -> Self {
        Self(gather::Pair { u, v })
    }
}

impl<U, V> Deref for Pair<U, V> {
    type Target = gather::Pair<U, V>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// `P` elements of a ring as one entry.
pub trait Parts<R, const P: usize>: Entry {
    /// The elements of a sum.
    fn finish(sum: Self::Sum) -> [R; P];
}

impl<R: Ring> Parts<R, 1> for R {
    #[inline(always)]
    fn finish(sum: Self::Sum) -> [R; 1] {
        [R::lazy_finish(sum)]
    }
}

impl<R: Ring> Parts<R, 2> for Pair<R> {
    #[inline(always)]
    fn finish(sum: Self::Sum) -> [R; 2] {
        R::pair_finish(sum)
    }
}

impl<R: Ring> Entry for Pair<R> {
    type Sum = R::LazyPair;
    type Words = gather::Pair<R>;
    const LANES: Option<Lanes> = R::LANES;
    #[inline(always)]
    fn words<const B: usize>(table: &[[Self; B]]) -> &[[Self::Words; B]] {
        Self::peel_slice(table.as_flattened()).as_chunks().0
    }
    #[inline(always)]
    fn add_to(self, sums: Self::Sum) -> Self::Sum {
        R::pair_add(sums, [self.u, self.v])
    }
    #[inline(always)]
    fn fold(sums: Self::Sum) -> Self::Sum {
        R::pair_fold(sums)
    }
}

/// A [`Pair`] of an entry of `a` in a field and one of `b` in an extension of it.
#[derive(Clone, Copy, Default, Zeroable, TransparentWrapper)]
#[repr(transparent)]
pub struct SubPair<B, R>(gather::Pair<B, R>);

/// The sums of both entries of a [`SubPair`].
#[derive(Clone, Copy, Default, AnyBitPattern)]
#[repr(C)]
pub struct SubSums<U, V> {
    /// The sum of the first entries.
    pub u: U,
    /// The sum of the second entries.
    pub v: V,
}

impl<B, R> SubPair<B, R> {
    /// An entry of `a`, and the entry of `b` at the same place.
    pub const fn new(u: B, v: R) -> Self {
        Self(gather::Pair { u, v })
    }
}

impl<B, R> Deref for SubPair<B, R> {
    type Target = gather::Pair<B, R>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<B: Ring, R: Ring> Entry for SubPair<B, R> {
    type Sum = SubSums<B::Lazy, R::Lazy>;
    type Words = gather::Pair<B, R>;
    const LANES: Option<Lanes> = None;
    #[inline(always)]
    fn words<const I: usize>(table: &[[Self; I]]) -> &[[Self::Words; I]] {
        Self::peel_slice(table.as_flattened()).as_chunks().0
    }
    #[inline(always)]
    fn add_to(self, sum: Self::Sum) -> Self::Sum {
        SubSums { u: B::lazy_add(sum.u, self.u), v: R::lazy_add(sum.v, self.v) }
    }
    #[inline(always)]
    fn fold(sum: Self::Sum) -> Self::Sum {
        SubSums { u: B::lazy_fold(sum.u), v: R::lazy_fold(sum.v) }
    }
}

/// The code of one round: `k` rows, and any number of columns.
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
        assert!((1..=1 << 32).contains(&(k as u64)), "1 to 2^32 rows");
        assert!(!k.is_power_of_two() || k <= 1 << PLACE_BITS, "a power of two has at most 21 bits");
        Self { aes: Aes128::new(seed), k }
    }

    /// For each column `first + i` with `i < count`, calls `output(i, sums)` with the sums of the
    /// ten entries of the tables of all instances that the column selects.
    ///
    /// # Panics
    /// If `table.len()` is not `k`, or the table has more than 2^32 bytes.
    #[inline]
    pub fn encode<E: Entry, const B: usize>(
        &self,
        table: &[[E; B]],
        first: usize,
        count: usize,
        mut output: impl FnMut(usize, [E::Sum; B]),
    ) {
        self.for_each_group(table, first, count, |done, columns, take| {
            columns.sums(table, take, |i, sums| output(done + i, sums));
        });
    }

    /// Encodes like [`encode`](Self::encode), several columns at a time: calls `output(b, i, sums)`
    /// with the sums of instance `b` for the columns from `first + i` on.
    ///
    /// # Panics
    /// The panics of [`encode`](Self::encode).
    #[inline]
    pub fn encode_slices<E: Entry, const B: usize>(
        &self,
        table: &[[E; B]],
        first: usize,
        count: usize,
        mut output: impl FnMut(usize, usize, &[E::Sum]),
    ) {
        let Aligned(all) = &mut Aligned([[E::Sum::default(); GROUP]; B]);
        self.for_each_group(table, first, count, |done, columns, take| {
            let len = take.len();
            columns.sums(table, take, |i, sums| {
                for (all, sum) in all.iter_mut().zip(sums) {
                    all[i] = sum;
                }
            });
            for (b, sums) in all.iter().enumerate() {
                output(b, done, &sums[..len]);
            }
        });
    }

    /// The code of a vector OLE over the ring of the entries, several columns at a time: calls
    /// `output(b, i, sums)` with the sums of instance `b` for the columns from `first + i` on, one
    /// slice for each part of an entry. Uses entries other than one where the ring requires them.
    ///
    /// # Panics
    /// The panics of [`encode`](Self::encode).
    #[inline]
    pub fn encode_over<R: Ring, E: Parts<R, P>, const P: usize, const B: usize>(
        &self,
        table: &[[E; B]],
        first: usize,
        count: usize,
        mut output: impl FnMut(usize, usize, [&mut [R]; P]),
    ) {
        let Aligned(all) = &mut Aligned([[[R::ZERO; GROUP]; P]; B]);
        if R::GENERATED_BY_ONE {
            return self.for_each_group(table, first, count, |done, columns, take| {
                let len = take.len();
                columns.sums(table, take, |i, sums| {
                    for (all, sum) in all.iter_mut().zip(sums) {
                        for (all, sum) in all.iter_mut().zip(E::finish(sum)) {
                            all[i] = sum;
                        }
                    }
                });
                for (b, sums) in all.iter_mut().enumerate() {
                    output(b, done, sums.each_mut().map(|sums| &mut sums[..len]));
                }
            });
        }
        // As the kernel of half columns adds.
        const { assert!(R::GENERATED_BY_ONE || matches!(R::LANES, Some(Lanes::Xor))) };
        let Aligned(scaled) = &mut Aligned([[[R::ZERO; GROUP]; P]; B]);
        let Aligned(factors) = &mut Aligned([R::ZERO; GROUP]);
        self.for_each_group(table, first, count, |done, columns, take| {
            self.factors((first + done) / GROUP, factors);
            columns.split_sums(table, |i, [plain, other]| {
                for b in 0..B {
                    let (plain, other) = (E::finish(plain[b]), E::finish(other[b]));
                    for part in 0..P {
                        (all[b][part][i], scaled[b][part][i]) = (plain[part], other[part]);
                    }
                }
            });
            for (b, (all, scaled)) in all.iter_mut().zip(&*scaled).enumerate() {
                for (sums, scaled) in all.iter_mut().zip(scaled) {
                    R::add_products([factors], [scaled], sums);
                }
                output(b, done, all.each_mut().map(|sums| &mut sums[take.clone()]));
            }
        });
    }

    /// `c_j` for the columns `j` from `number * GROUP` on.
    fn factors<R: Ring>(&self, number: usize, out: &mut [R; GROUP]) {
        let mut blocks = [Block::ZERO; GROUP];
        self.aes.ctr(FACTORS + (number * GROUP) as u128, &mut blocks);
        // mutant(code-of-ones): `(&blocks, out);` => `$0 if $ON { out.fill(R::ONE); }`
        R::from_blocks(&blocks, out);
    }

    /// Calls `look(i, columns, of)` with groups and their columns, which together make up the
    /// range; the first is `first + i`.
    #[inline(always)]
    fn for_each_group<E: Entry, const B: usize>(
        &self,
        table: &[[E; B]],
        first: usize,
        count: usize,
        mut look: impl FnMut(usize, &Group<E, B>, Range<usize>),
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

/// Columns of a code that are generated together, for the tables of `B` instances with entries `E`.
struct Group<E: Entry, const B: usize> {
    columns: Columns<[E; B], WEIGHT, GROUP>,
    /// The blocks that the indices are cut from.
    blocks: Aligned<[Block; GROUP * WEIGHT / 4]>,
}

impl<E: Entry, const B: usize> Group<E, B> {
    /// Memory for the columns of a code with `k` rows.
    fn new(k: usize) -> Self {
        Self { columns: Columns::new(k), blocks: Aligned([Block::ZERO; GROUP * WEIGHT / 4]) }
    }

    /// The columns from `number * GROUP` on.
    #[inline]
    fn fill(&mut self, code: &LocalCode, number: usize) {
        let Self { columns, blocks: Aligned(blocks) } = self;
        if code.k.is_power_of_two() {
            let blocks = &mut blocks[..Columns::<[E; B], WEIGHT, GROUP>::CUT];
            code.aes.ctr((number * blocks.len()) as u128, blocks);
            columns.cut(blocks);
        } else {
            code.aes.ctr((number * blocks.len()) as u128, blocks);
            columns.scale(blocks);
        }
    }

    /// The sums of all columns by a kernel; `false` without one.
    #[inline(always)]
    fn wide(&self, lanes: Lanes, table: &[[E; B]], sums: &mut [[E::Sum; B]]) -> bool {
        self.columns.sums(Cpu::detect(), lanes, E::words(table), sums)
    }

    /// Calls `output(i, sums)` for each column, with the sums of its first five entries and of its
    /// last five.
    #[inline(always)]
    fn split_sums(&self, table: &[[E; B]], mut output: impl FnMut(usize, [[E::Sum; B]; 2])) {
        let Aligned(sums) = &mut Aligned([[zero::<E, B>(); 2]; GROUP]);
        if B > 1 && self.wide(Lanes::XorHalves, table, sums.as_flattened_mut()) {
            return sums.iter().enumerate().for_each(|(column, sums)| output(column, *sums));
        }
        let entries = self.columns.of(table);
        for column in 0..GROUP {
            let mut entries = entries.column(column);
            let mut half = || entries.by_ref().take(WEIGHT / 2).fold(zero::<E, B>(), add::<E, B>);
            let sums = [half(), half()];
            output(column, sums);
        }
    }

    /// Calls `output(i, sums)` for each of `columns`; `i` is the number of the column.
    #[inline(always)]
    fn sums(
        &self,
        table: &[[E; B]],
        columns: Range<usize>,
        mut output: impl FnMut(usize, [E::Sum; B]),
    ) {
        if let (2.., Some(lanes)) = (B, E::LANES) {
            let Aligned(sums) = &mut Aligned([zero::<E, B>(); GROUP]);
            if self.wide(lanes, table, sums) {
                return sums[columns].iter().enumerate().for_each(|(i, sums)| output(i, *sums));
            }
        }
        let entries = self.columns.of(table);
        for (i, column) in columns.enumerate() {
            let mut sums = zero::<E, B>();
            for (j, entries) in entries.column(column).enumerate() {
                if j == WEIGHT / 2 {
                    sums = sums.map(E::fold);
                }
                sums = add::<E, B>(sums, entries);
            }
            output(i, sums);
        }
    }
}

/// Empty sums.
#[inline(always)]
fn zero<E: Entry, const B: usize>() -> [E::Sum; B] {
    [E::Sum::default(); B]
}

/// The sums with one more entry each.
#[inline(always)]
fn add<E: Entry, const B: usize>(mut sums: [E::Sum; B], entries: [E; B]) -> [E::Sum; B] {
    for (sum, entry) in sums.iter_mut().zip(entries) {
        *sum = entry.add_to(*sum);
    }
    sums
}

#[cfg(test)]
pub(crate) mod tests {
    use volery_field::{Fp61, Gf128, Z64};
    use volery_primitives::prg::Prg;

    use super::*;

    /// Column `i`, computed directly from the definition.
    pub(crate) fn column(seed: Block, k: usize, i: usize) -> [usize; WEIGHT] {
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
        // The largest values: a late reduction overflows.
        table.iter_mut().step_by(2).for_each(|entry| *entry = R::ZERO - R::ONE);
        let expected: Vec<R> = (0..count)
            .map(|i| {
                let column = column(seed, k, first + i);
                column.iter().fold(R::ZERO, |sum, j| sum + table[*j])
            })
            .collect();
        let code = LocalCode::new(seed, k);
        let mut out = vec![R::ZERO; count];
        let rows = table.as_chunks::<1>().0;
        code.encode(rows, first, count, |i, [sum]| {
            out[i] = R::lazy_finish(R::lazy_add(sum, R::ONE)) - R::ONE;
        });
        assert!(out == expected, "k = {k}, {count} columns from {first}");
        let shares = vec![R::ONE; count];
        code.encode_slices(rows, first, count, |_, i, sums| {
            let to = i + sums.len();
            R::finish_slice(sums, &shares[i..to], &mut out[i..to]);
        });
        assert!((0..count).all(|i| out[i] == expected[i] + R::ONE));
        let pairs: Vec<_> = table.iter().map(|v| Pair::new(*v, -*v)).collect();
        code.encode(pairs.as_chunks::<1>().0, first, count, |i, [sums]| {
            assert!(R::pair_finish(sums) == [expected[i], -expected[i]]);
        });
    }

    /// The entries of column `i`, computed directly from the definition.
    fn entries<R: Ring>(seed: Block, i: usize) -> [R; WEIGHT] {
        let factor = Aes128::new(seed).encrypt(Block::from((1 << 64) + i as u128));
        std::array::from_fn(|j| match R::GENERATED_BY_ONE || j < 5 {
            true => R::ONE,
            false => R::from_block(factor),
        })
    }

    fn check_over<R: Ring>(k: usize, first: usize, count: usize) {
        let seed = Block::from(77);
        let mut random = Prg::new(Block::from(2));
        let [mut u, mut v] = [vec![R::ZERO; k], vec![R::ZERO; k]];
        R::random_slice(&mut random, &mut u);
        R::random_slice(&mut random, &mut v);
        let expected = |table: &[R]| -> Vec<R> {
            (first..first + count)
                .map(|i| {
                    let terms = column(seed, k, i).into_iter().zip(entries::<R>(seed, i));
                    terms.fold(R::ZERO, |sum, (row, entry)| sum + entry * table[row])
                })
                .collect()
        };
        let code = LocalCode::new(seed, k);
        let mut out = [vec![R::ZERO; count], vec![R::ZERO; count]];
        code.encode_over(v.as_chunks::<1>().0, first, count, |_, i, [sums]: [&mut [R]; 1]| {
            out[0][i..i + sums.len()].copy_from_slice(sums);
        });
        assert!(out[0] == expected(&v), "k = {k}, {count} from {first}");
        let entries = u.iter().zip(&v).map(|(&u, &v)| Pair::new(u, v));
        let pairs: Vec<_> = entries.collect();
        code.encode_over(pairs.as_chunks::<1>().0, first, count, |_, i, sums: [&mut [R]; 2]| {
            for (out, sums) in out.iter_mut().zip(sums) {
                out[i..i + sums.len()].copy_from_slice(sums);
            }
        });
        assert!(out == [expected(&u), expected(&v)], "k = {k}, {count} from {first}");
    }

    /// Several instances are each as one alone.
    fn check_instances<R: Ring, const B: usize>(k: usize, first: usize, count: usize) {
        let mut random = Prg::new(Block::from(4));
        let mut table = vec![Pair::new(R::ZERO, R::ZERO); k * B];
        for pair in &mut table {
            let mut both = [R::ZERO; 2];
            R::random_slice(&mut random, &mut both);
            *pair = Pair::new(both[0], R::ZERO - R::ONE);
        }
        let code = LocalCode::new(Block::from(77), k);
        let mut all = vec![[[R::ZERO; 2]; B]; count];
        code.encode_over(table.as_chunks::<B>().0, first, count, |b, i, sums: [&mut [R]; 2]| {
            for (j, all) in all[i..i + sums[0].len()].iter_mut().enumerate() {
                all[b] = [sums[0][j], sums[1][j]];
            }
        });
        let mut plain = vec![[[R::ZERO; 2]; B]; count];
        code.encode(table.as_chunks::<B>().0, first, count, |i, sums| {
            plain[i] = sums.map(R::pair_finish);
        });
        for b in 0..B {
            let own: Vec<_> = table.iter().skip(b).step_by(B).copied().collect();
            let rows = own.as_chunks::<1>().0;
            code.encode_over(rows, first, count, |_, i, sums: [&mut [R]; 2]| {
                for (j, all) in all[i..i + sums[0].len()].iter().enumerate() {
                    assert!(all[b] == [sums[0][j], sums[1][j]], "{b} of {B}, k = {k}, {first}");
                }
            });
            code.encode(rows, first, count, |i, [sums]| {
                assert!(plain[i][b] == R::pair_finish(sums), "{b} of {B}, k = {k}, {first}");
            });
        }
    }

    #[test]
    fn instances_are_as_alone() {
        for (k, first, count) in [(1 << 10, 0, 200), (1 << 10, 47, 100), (1131, 5, 49), (7, 96, 3)]
        {
            check_instances::<Gf128, 2>(k, first, count);
            check_instances::<Gf128, 4>(k, first, count);
            check_instances::<Fp61, 2>(k, first, count);
            check_instances::<Fp61, 4>(k, first, count);
            check_instances::<Z64, 4>(k, first, count);
        }
    }

    /// Samples over GF(2^128) of a random secret with regular noise, of this code or of the code
    /// with ones.
    fn samples(ours: bool, [n, k, t]: [usize; 3]) -> (Vec<Gf128>, Vec<usize>) {
        let mut random = Prg::new(Block::from(3));
        let mut secret = vec![Gf128::ZERO; k];
        Gf128::random_slice(&mut random, &mut secret);
        let mut out = vec![Gf128::ZERO; n];
        let code = LocalCode::new(Block::from(77), k);
        if ours {
            code.encode_over(secret.as_chunks::<1>().0, 0, n, |_, i, [sums]: [&mut [Gf128]; 1]| {
                out[i..i + sums.len()].copy_from_slice(sums);
            });
        } else {
            code.encode(secret.as_chunks::<1>().0, 0, n, |i, [sum]| {
                out[i] = Gf128::lazy_finish(sum);
            });
        }
        let block = n / t;
        let places: Vec<_> =
            (0..t).map(|i| i * block + random.below(block as u64) as usize).collect();
        for &place in &places {
            out[place] += Gf128::random_noise(&mut random);
        }
        (out, places)
    }

    /// The dimension of the space of linear maps from GF(2^128) to GF(2) under which the samples at
    /// the `chosen` places are those of a code of ones without noise: Gaussian elimination of the
    /// columns, each beside its sample.
    fn noiseless_maps(samples: &[Gf128], chosen: impl Iterator<Item = usize>, k: usize) -> usize {
        let seed = Block::from(77);
        let mut rows: Vec<Option<(Vec<u64>, u128)>> = vec![None; k];
        // Remainders of samples whose columns add up to zero: a map must take each of them to zero.
        let mut conditions = [0u128; 128];
        for place in chosen {
            let mut bits = vec![0u64; k.div_ceil(64)];
            for row in column(seed, k, place) {
                bits[row / 64] ^= 1 << (row % 64);
            }
            let mut sample = u128::from(samples[place].value());
            let pivot = loop {
                let Some(word) = bits.iter().position(|word| *word != 0) else {
                    break None;
                };
                let pivot = 64 * word + bits[word].trailing_zeros() as usize;
                let Some((other, other_sample)) = &rows[pivot] else {
                    break Some(pivot);
                };
                bits.iter_mut().zip(other).for_each(|(bits, other)| *bits ^= other);
                sample ^= other_sample;
            };
            if let Some(pivot) = pivot {
                rows[pivot] = Some((bits, sample));
                continue;
            }
            while sample != 0 {
                let condition = &mut conditions[sample.trailing_zeros() as usize];
                if *condition == 0 {
                    *condition = sample;
                }
                sample ^= *condition;
            }
        }
        conditions.iter().filter(|condition| **condition == 0).count()
    }

    /// The attack that entries other than one prevent, on samples of `k + 200` places: with ones,
    /// an attacker solves 128 systems at once, and all but as many linear maps as there are noisy
    /// places are free of noise.
    #[test]
    fn over_gf128_a_code_of_ones_is_solved_by_linear_algebra() {
        let sizes @ [n, k, _] = [4096, 1024, 128];
        // Every third place, up to the required number: `m` of them are noisy, about 38
        let chosen = || (0..n).step_by(3).take(k + 200);
        let noisy = |places: &[usize]| chosen().filter(|place| places.contains(place)).count();
        let (ones, places) = samples(false, sizes);
        assert_eq!(noiseless_maps(&ones, chosen(), k), 128 - noisy(&places));
        assert!(noisy(&places) < 64);
        let (ours, _) = samples(true, sizes);
        assert_eq!(noiseless_maps(&ours, chosen(), k), 0);
    }

    #[test]
    fn columns_over_a_ring_are_the_definition() {
        for k in [1, 2, 1000, 1024, 7391] {
            for (first, count) in [(0, 0), (0, 1), (47, 2), (48, 48), (5, 200), (1 << 33, 50)] {
                check_over::<Fp61>(k, first, count);
                check_over::<Z64>(k, first, count);
                check_over::<Gf128>(k, first, count);
            }
        }
    }

    #[test]
    fn columns_are_the_definition() {
        for k in [1, 2, 1000, 1024, 4096, 7391] {
            for (first, count) in
                [(0, 0), (0, 1), (47, 1), (47, 2), (48, 48), (5, 200), (1 << 33, 50)]
            {
                check::<Fp61>(k, first, count);
                check::<Z64>(k, first, count);
                check::<Gf128>(k, first, count);
            }
        }
    }
}
