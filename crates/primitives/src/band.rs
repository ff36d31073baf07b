//! Band matrices over F_2 times vectors: sums of columns selected by patterns of bits, and back-
//! substitution.
//!
//! A row of a band matrix has a *start* and a *pattern* of `64 * WORDS` bits, both a power of two.
//! It covers that many columns from its start on, and bit `c % (64 * WORDS)` of the pattern is the
//! entry of column `c`: the place of a column in a pattern does not depend on the start, so two
//! rows are added without a shift.
//!
//! The starts and patterns select what is read: the time and the memory accesses of these functions
//! depend on them, except within a pattern on [`Cpu::VBMI`]. They never depend on the values. The
//! caller says why that is allowed.

use bytemuck::Pod;

use crate::Block;
use crate::arch::portable;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::arch::wide;
#[cfg(target_arch = "x86_64")]
use crate::arch::x86_64;
use crate::cpu::Cpu;
use crate::sum::BlockSum;

/// An element of a vector space over F_2, whose addition is the XOR of all bits.
///
/// The fastest kernels take values of 8, 16 and 32 bytes.
pub trait Value: Pod + Send + Sync + sealed::Sealed {
    /// The sum of two elements.
    #[must_use]
    fn xor(self, other: Self) -> Self;
}

mod sealed {
    /// Kernels add the bytes of values: no other crate can define another addition.
    pub trait Sealed {}
    impl Sealed for u8 {}
    impl Sealed for u64 {}
    impl Sealed for crate::Block {}
    impl Sealed for [crate::Block; 2] {}
}

impl Value for u8 {
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }
}

impl Value for u64 {
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }
}

impl Value for Block {
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        BlockSum::default().plus(self).plus(other).block()
    }
}

impl Value for [Block; 2] {
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        [self[0].xor(other[0]), self[1].xor(other[1])]
    }
}

/// `out[i]` = the sum of the columns that row `i` selects.
///
/// # Panics
/// If the numbers of starts, patterns and sums differ, the starts do not ascend, a row ends behind
/// the last column, or the processor cannot run the kernels of the level.
pub fn sums<V: Value, const WORDS: usize>(
    cpu: Cpu,
    starts: &[u32],
    patterns: &[[u64; WORDS]],
    columns: &[V],
    out: &mut [V],
) {
    const { assert!(WORDS == 4 || WORDS == 8, "patterns of 256 or 512 bits") };
    cpu.assert_available();
    assert_eq!(starts.len(), patterns.len(), "one pattern for each start");
    assert_eq!(starts.len(), out.len(), "one sum for each row");
    assert!(starts.is_sorted(), "the starts ascend");
    if let Some(&last) = starts.last() {
        let end = last as usize + 64 * WORDS;
        assert!(end <= columns.len(), "rows end before the last column");
    }
    match (cpu, size_of::<V>()) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX-512 and GFNI.
        (cpu, 8) if cpu.has(Cpu::VBMI) => unsafe {
            x86_64::band_wide::sums::<V, WORDS, 1>(starts, patterns, columns, out)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (cpu, 16) if cpu.has(Cpu::VBMI) => unsafe {
            x86_64::band_wide::sums::<V, WORDS, 2>(starts, patterns, columns, out)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (cpu, 32) if cpu.has(Cpu::VBMI) => unsafe {
            x86_64::band_wide::sums::<V, WORDS, 4>(starts, patterns, columns, out)
        },
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        // SAFETY: the level is available, and with it AVX2 or NEON.
        (cpu, 8 | 16) if cpu.has(Cpu::NATIVE) => unsafe {
            wide::band::sums::<V, WORDS, 1>(starts, patterns, columns, out)
        },
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        // SAFETY: as above.
        (cpu, 32) if cpu.has(Cpu::NATIVE) => unsafe {
            wide::band::sums::<V, WORDS, 2>(starts, patterns, columns, out)
        },
        _ => portable::band::sums(starts, patterns, columns, out),
    }
}

/// Solves a triangular system in place: from the last column to the first, adds to column `c` the
/// columns behind it that `pivots[c]` selects.
///
/// `pivots[c]` is the pattern of a row that starts at column `c`, or zero; its bit of column `c`
/// has no effect. Before the call `columns[c]` is the right-hand side of that row, or the value
/// that the solution is to have where there is none.
///
/// # Panics
/// If the numbers of pivots and columns differ, or the processor cannot run the kernels of the
/// level.
pub fn substitute<V: Value, const WORDS: usize>(
    cpu: Cpu,
    pivots: &[[u64; WORDS]],
    columns: &mut [V],
) {
    const { assert!(WORDS == 4 || WORDS == 8, "patterns of 256 or 512 bits") };
    cpu.assert_available();
    assert_eq!(pivots.len(), columns.len(), "a pattern for each column");
    match (cpu, size_of::<V>()) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX-512 and GFNI.
        (cpu, 8) if cpu.has(Cpu::VBMI) => unsafe {
            x86_64::band_wide::substitute::<V, WORDS, 1>(pivots, columns)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (cpu, 16) if cpu.has(Cpu::VBMI) => unsafe {
            x86_64::band_wide::substitute::<V, WORDS, 2>(pivots, columns)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (cpu, 32) if cpu.has(Cpu::VBMI) => unsafe {
            x86_64::band_wide::substitute::<V, WORDS, 4>(pivots, columns)
        },
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        // SAFETY: the level is available, and with it AVX2 or NEON.
        (cpu, 8 | 16) if cpu.has(Cpu::NATIVE) => unsafe {
            wide::band::substitute::<V, WORDS, 1>(pivots, columns)
        },
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        // SAFETY: as above.
        (cpu, 32) if cpu.has(Cpu::NATIVE) => unsafe {
            wide::band::substitute::<V, WORDS, 2>(pivots, columns)
        },
        _ => portable::band::substitute(pivots, columns),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::prg::Prg;

    fn drawn<T: Pod>(prg: &mut Prg, len: usize) -> Vec<T> {
        let mut drawn = vec![T::zeroed(); len];
        prg.fill_bytes(bytemuck::cast_slice_mut(&mut drawn));
        drawn
    }

    /// The sum of the columns that a row selects, one after the other.
    fn plain<V: Value>(start: usize, pattern: &[u64], columns: &[V]) -> V {
        let width = 64 * pattern.len();
        (start..columns.len().min(start + width))
            .filter(|column| pattern[column % width / 64] >> (column % 64) & 1 == 1)
            .fold(V::zeroed(), |sum, column| sum.xor(columns[column]))
    }

    fn check_sums<V: Value + PartialEq, const WORDS: usize>(starts: &[u32], columns: usize) {
        let prg = &mut Prg::new(Block::new(1));
        let patterns: Vec<[u64; WORDS]> =
            starts.iter().map(|_| std::array::from_fn(|_| prg.next_u64())).collect();
        let columns: Vec<V> = drawn(prg, columns);
        let rows = starts.iter().zip(&patterns);
        let expected: Vec<V> =
            rows.map(|(&start, pattern)| plain(start as usize, pattern, &columns)).collect();
        for cpu in Cpu::available() {
            let mut out = drawn(prg, starts.len());
            sums(cpu, starts, &patterns, &columns, &mut out);
            let size = size_of::<V>();
            assert!(out == expected, "{size} bytes, {WORDS} words, {cpu}");
        }
    }

    /// `pivots` of the columns for which `has` is true; the others are zero.
    fn check_substitution<V: Value + PartialEq, const WORDS: usize>(
        columns: usize,
        has: impl Fn(usize) -> bool,
    ) {
        let prg = &mut Prg::new(Block::new(2));
        let mut pivots = vec![[0; WORDS]; columns];
        for (column, pivot) in pivots.iter_mut().enumerate().filter(|(column, _)| has(*column)) {
            *pivot = std::array::from_fn(|_| prg.next_u64());
            // A row of the last columns has no bits behind them.
            for place in (columns..column + 64 * WORDS).map(|other| other % (64 * WORDS)) {
                pivot[place / 64] &= !(1 << (place % 64));
            }
            pivot[column / 64 % WORDS] |= 1 << (column % 64);
        }
        let right: Vec<V> = drawn(prg, columns);
        for cpu in Cpu::available() {
            let mut solution = right.clone();
            substitute(cpu, &pivots, &mut solution);
            for (column, pivot) in pivots.iter().enumerate() {
                let sum = match has(column) {
                    true => plain(column, pivot, &solution),
                    false => solution[column],
                };
                assert!(sum == right[column], "column {column} of {columns}, {cpu}");
            }
        }
    }

    fn check_all(starts: &[u32], columns: usize) {
        check_sums::<u8, 4>(starts, columns);
        check_sums::<u64, 4>(starts, columns);
        check_sums::<Block, 4>(starts, columns);
        check_sums::<[Block; 2], 4>(starts, columns);
        if starts.iter().all(|start| *start as usize + 512 <= columns) {
            check_sums::<u64, 8>(starts, columns);
            check_sums::<Block, 8>(starts, columns);
        }
    }

    #[test]
    fn windows_at_the_edges() {
        check_all(&[], 0);
        check_all(&[], 1000);
        check_all(&[0], 256);
        check_all(&[0; 9], 512);
        check_all(&[1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233], 800);
        // Gaps as wide as a window, and wider.
        check_all(&[0, 255, 256, 257, 511, 512, 513, 1024], 1536);
        check_all(&[7, 700, 1400, 1400, 2111], 2367);
    }

    #[test]
    fn systems_of_any_size_are_solved() {
        for columns in [0, 1, 7, 8, 9, 63, 64, 255, 256, 257, 511, 512, 513, 1000] {
            check_substitution::<u8, 4>(columns, |_| true);
            check_substitution::<u64, 4>(columns, |column| column % 3 > 0);
            check_substitution::<Block, 4>(columns, |column| column % 11 > 0);
            check_substitution::<[Block; 2], 4>(columns, |_| true);
            check_substitution::<u64, 8>(columns, |_| false);
            check_substitution::<Block, 8>(columns, |column| column % 20 > 0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

        #[test]
        fn any_starts(mut starts in proptest::collection::vec(0_u32..600, 0..80), behind in 0..9) {
            starts.sort_unstable();
            let last = starts.last().map_or(0, |last| *last as usize);
            check_all(&starts, last + 256 + behind as usize);
            check_all(&starts, last + 512 + behind as usize);
        }
    }

    #[test]
    #[should_panic(expected = "the starts ascend")]
    fn unsorted_rows_are_refused() {
        sums(Cpu::PORTABLE, &[1, 0], &[[0; 4]; 2], &[0_u8; 300], &mut [0; 2]);
    }

    #[test]
    #[should_panic(expected = "rows end before the last column")]
    fn rows_behind_the_last_column_are_refused() {
        sums(Cpu::PORTABLE, &[45], &[[0; 4]], &[0_u8; 300], &mut [0]);
    }
}
