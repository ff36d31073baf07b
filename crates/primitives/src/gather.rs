//! Sums of blocks at pseudorandom places of a table: the inner loop of a local linear code.
//!
//! Two kernels: one cuts indices from a stream of random blocks, one adds up what they name. The places are public; the
//! blocks need not be, and no branch depends on them.

use crate::Block;
use crate::arch::portable;
#[cfg(target_arch = "x86_64")]
use crate::arch::x86_64;
use crate::cpu::Cpu;

/// Bits of an index; three make up a 64-bit word, but for its highest bit.
pub const INDEX_BITS: u32 = 21;

/// Blocks from which a whole number of indices is cut, as [`cut_indices`] wants it.
pub const CUT_BLOCKS: usize = 4;

/// Indices from [`CUT_BLOCKS`] blocks.
pub const CUT_INDICES: usize = 24;

/// Cuts the blocks into pieces of [`INDEX_BITS`] bits: of each eight words, low word of a block first, the lowest pieces of
/// all, then the middle ones, then the highest. Only the low `INDEX_BITS` bits of an `out[i]` are to be used.
///
/// # Panics
///
/// If `blocks` is not a whole number of [`CUT_BLOCKS`], or `out` has not [`CUT_INDICES`] places for each of them.
pub fn cut_indices(blocks: &[Block], out: &mut [u32]) {
    cut_indices_on(Cpu::detect(), blocks, out);
}

/// [`cut_indices`] with the kernels of one level.
///
/// # Panics
///
/// As [`cut_indices`], or if the processor cannot run the kernels.
pub fn cut_indices_on(cpu: Cpu, blocks: &[Block], out: &mut [u32]) {
    cpu.assert_available();
    assert!(blocks.len().is_multiple_of(CUT_BLOCKS), "whole cuts");
    assert_eq!(
        blocks.len() / CUT_BLOCKS * CUT_INDICES,
        out.len(),
        "a place for each index"
    );
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX2.
        Cpu::AesNi | Cpu::Vaes => unsafe { x86_64::gather::cut_indices(blocks, out) },
        _ => portable::gather::cut_indices(blocks, out),
    }
}

/// `out[i]` becomes the XOR of `table[j mod table.len()]` over the `j` in `columns[i]`.
///
/// # Panics
///
/// If the length of `table` is no power of two, or `out` has not a place for each column.
#[inline]
pub fn sum_columns<const WEIGHT: usize>(
    table: &[Block],
    columns: &[[u32; WEIGHT]],
    out: &mut [Block],
) {
    assert!(table.len().is_power_of_two(), "a power of two of entries");
    assert_eq!(columns.len(), out.len(), "a sum for each column");
    #[cfg(target_arch = "x86_64")]
    x86_64::gather::sum_columns(table, columns, out);
    #[cfg(not(target_arch = "x86_64"))]
    portable::gather::sum_columns(table, columns, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prg::Prg;

    #[test]
    fn indices_are_cut_as_the_text_says() {
        for cuts in [0, 1, 2, 3, 20] {
            let mut blocks = vec![Block::ZERO; cuts * CUT_BLOCKS];
            Prg::new(Block::from(7)).fill_blocks(&mut blocks);
            let words: Vec<_> = blocks.iter().flat_map(|b| [b.low(), b.high()]).collect();
            let mask = (1 << INDEX_BITS) - 1;
            let expected: Vec<u32> = words
                .chunks(8)
                .flat_map(|words| {
                    (0..3).flat_map(|piece| {
                        let cut = move |word: &u64| (word >> (INDEX_BITS * piece)) as u32 & mask;
                        words.iter().map(cut).collect::<Vec<_>>()
                    })
                })
                .collect();
            for cpu in Cpu::available() {
                let mut out = vec![0; cuts * CUT_INDICES];
                cut_indices_on(cpu, &blocks, &mut out);
                out.iter_mut().for_each(|index| *index &= mask);
                assert_eq!(out, expected, "{cpu:?}");
            }
        }
    }

    #[test]
    fn sums_of_columns() {
        for entries in [1, 2, 64, if cfg!(miri) { 128 } else { 4096 }] {
            let mut prg = Prg::new(Block::from(8));
            let mut table = vec![Block::ZERO; entries];
            prg.fill_blocks(&mut table);
            for count in [0, 1, 2, 47] {
                let mut columns = vec![[0u32; 10]; count];
                columns
                    .as_flattened_mut()
                    .iter_mut()
                    .for_each(|index| *index = prg.next_u64() as u32);
                let expected: Vec<_> = columns
                    .iter()
                    .map(|column| {
                        let entry = |index: &u32| table[*index as usize % entries];
                        column.iter().map(entry).fold(Block::ZERO, |sum, b| sum ^ b)
                    })
                    .collect();
                let mut out = vec![Block::ONE; count];
                sum_columns(&table, &columns, &mut out);
                assert!(out == expected);
                portable::gather::sum_columns(&table, &columns, &mut out);
                assert!(out == expected, "portable");
            }
        }
    }

    #[test]
    #[should_panic(expected = "a power of two of entries")]
    fn tables_of_other_sizes_are_refused() {
        sum_columns::<10>(&[Block::ZERO; 3], &[], &mut []);
    }
}
