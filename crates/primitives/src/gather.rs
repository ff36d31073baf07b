//! Table entries at pseudorandom indices: the inner loop of a local linear code.
//!
//! The speed of such a loop is limited by the number of reads in flight, so by the instructions
//! between one read and the next. Therefore the indices of a group of columns are cut at once from
//! a stream of random blocks, as byte offsets below the end of the table; a read is then two
//! instructions, its offset and the entry.
//!
//! The indices are public; the entries may be secret, and no branch depends on them.

use std::marker::PhantomData;

use bytemuck::{AnyBitPattern, NoUninit, Zeroable};

use crate::Block;
#[cfg(target_arch = "aarch64")]
use crate::arch::aarch64;
use crate::arch::portable;
#[cfg(target_arch = "x86_64")]
use crate::arch::x86_64;
use crate::cpu::Cpu;

/// Bits of an index that is cut; three fill a 64-bit word, but for its highest bit.
pub const PLACE_BITS: u32 = 21;

/// Blocks from which a whole number of indices is cut.
pub(crate) const CUT_BLOCKS: usize = 4;

/// Indices from [`CUT_BLOCKS`] blocks.
pub(crate) const CUT_PLACES: usize = 24;

/// Two values side by side: one read serves both.
#[derive(Clone, Copy, Default, Zeroable)]
#[repr(C, align(16))]
pub struct Pair<U, V = U> {
    /// The first value.
    pub u: U,
    /// The second value.
    pub v: V,
}

/// The words of 64 bits of entries, added up one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// By XOR.
    Xor,
    /// Modulo 2^64.
    Words,
    /// Modulo `2^61 - 1`: the first half of the entries is reduced to numbers below `2^61 + 7`
    /// before the other half is added.
    Mersenne,
    /// By XOR, each half of the entries alone.
    XorHalves,
}

/// An entry that a kernel reads as words.
///
/// # Safety
/// Its fields have [`BYTES`](Self::BYTES) bytes together, and are all initialised.
pub unsafe trait Words: Copy {
    /// The bytes of its fields: the bytes of the type if it has no padding.
    const BYTES: usize;
}

// SAFETY: the type has no padding.
unsafe impl<T: NoUninit> Words for T {
    const BYTES: usize = size_of::<T>();
}

// SAFETY: neither of the two has padding.
unsafe impl<U: NoUninit, V: NoUninit> Words for Pair<U, V> {
    const BYTES: usize = size_of::<U>() + size_of::<V>();
}

/// Indices into a table of entries `E`: `WEIGHT` of them for each of `COLUMNS` columns.
#[repr(C, align(64))]
pub struct Columns<E, const WEIGHT: usize, const COLUMNS: usize> {
    /// Offsets from the start of the table in bytes: whole entries, and fewer than `rows` of them.
    distances: [[u32; WEIGHT]; COLUMNS],
    rows: usize,
    entry: PhantomData<E>,
}

/// A table and the indices to read it at.
#[derive(Clone, Copy)]
pub struct Reader<'a, E, const WEIGHT: usize> {
    /// The table, with as many entries as the offsets were cut for.
    table: &'a [E],
    distances: &'a [[u32; WEIGHT]],
}

impl<E: Copy, const WEIGHT: usize, const COLUMNS: usize> Columns<E, WEIGHT, COLUMNS> {
    /// Blocks that [`cut`](Self::cut) takes.
    pub const CUT: usize = COLUMNS * WEIGHT / CUT_PLACES * CUT_BLOCKS;
    /// Blocks that [`scale`](Self::scale) takes.
    pub const SCALED: usize = COLUMNS * WEIGHT / 4;

    /// Indices into a table of `rows` entries, all of them zero at first.
    ///
    /// # Panics
    /// If there are no rows, or the table has more than 2^32 bytes; if the size of an entry is no
    /// power of two, or a group of columns does not need a whole number of cuts.
    pub fn new(rows: usize) -> Self {
        const {
            assert!(size_of::<E>().is_power_of_two());
            assert!((COLUMNS * WEIGHT).is_multiple_of(CUT_PLACES));
        }
        assert!(rows > 0, "a table has a row");
        let bytes = rows.checked_mul(size_of::<E>());
        assert!(
            bytes.is_some_and(|bytes| bytes as u64 <= 1 << 32),
            "a table has at most 2^32 bytes"
        );
        Self { distances: [[0; WEIGHT]; COLUMNS], rows, entry: PhantomData }
    }

    /// Sets the indices from `blocks`, where the number of rows is a power of two: of each eight
    /// words, low word of a block first, the lowest pieces of [`PLACE_BITS`] bits of all, then the
    /// middle ones, then the highest; of each piece the lowest bits.
    ///
    /// # Panics
    /// If the number of rows is no power of two or above `2^PLACE_BITS`, or there are not
    /// [`CUT`](Self::CUT) blocks.
    #[inline]
    pub fn cut(&mut self, blocks: &[Block]) {
        self.cut_on(Cpu::detect(), blocks);
    }

    /// [`cut`](Self::cut) with the kernels of one level.
    #[inline]
    pub fn cut_on(&mut self, cpu: Cpu, blocks: &[Block]) {
        cpu.assert_available();
        assert!(
            self.rows.is_power_of_two() && self.rows <= 1 << PLACE_BITS,
            "a power of two of rows"
        );
        assert_eq!(blocks.len(), Self::CUT, "blocks for all columns");
        let mask = (self.rows - 1) as u32;
        let shift = size_of::<E>().ilog2();
        let out = self.distances.as_flattened_mut();
        match cpu {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level is available, and with it AVX-512F.
            cpu if cpu.has(Cpu::AVX512) => unsafe {
                x86_64::gather::cut_wide(blocks, mask, shift, out)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level is available, and with it AVX2.
            cpu if cpu.has(Cpu::AES_NI) => unsafe { x86_64::gather::cut(blocks, mask, shift, out) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: the level is available, and with it NEON.
            cpu if cpu.has(Cpu::NEON) => unsafe { aarch64::gather::cut(blocks, mask, shift, out) },
            _ => portable::gather::cut(blocks, mask, shift, out),
        }
    }

    /// Sets the indices from `blocks`, for any number of rows: of each word of 32 bits, lowest of a
    /// block first, the high part of its product with the number of rows.
    ///
    /// # Panics
    /// If there are not [`SCALED`](Self::SCALED) blocks.
    #[inline]
    pub fn scale(&mut self, blocks: &[Block]) {
        assert_eq!(blocks.len(), Self::SCALED, "blocks for all columns");
        let words: &[u32] = bytemuck::cast_slice(blocks);
        let out = self.distances.as_flattened_mut();
        for (distance, &word) in out.iter_mut().zip(words) {
            let row = (u64::from(word) * self.rows as u64) >> 32;
            *distance = row as u32 * size_of::<E>() as u32;
        }
    }

    /// The sums of the entries of each column, all their lanes at once: of `B` values side by side,
    /// wide registers read all. `out` has one sum for each column, in the form of an entry, or for
    /// [`Lanes::XorHalves`] two. `false` without a kernel for this processor and entry, with `out`
    /// as before.
    ///
    /// # Panics
    /// If `table` or `out` have another length.
    #[inline]
    pub fn sums<T: Words, S: AnyBitPattern, const B: usize>(
        &self,
        cpu: Cpu,
        lanes: Lanes,
        table: &[[T; B]],
        out: &mut [[S; B]],
    ) -> bool {
        const { assert!(size_of::<[T; B]>() == size_of::<E>(), "entries of this size") };
        // An entry with padding, or not of whole words, has no kernel.
        if T::BYTES != size_of::<T>() || !size_of::<T>().is_multiple_of(8) {
            return false;
        }
        cpu.assert_available();
        assert_eq!(table.len(), self.rows, "one entry for each row");
        let sums = if lanes == Lanes::XorHalves { 2 * COLUMNS } else { COLUMNS };
        assert_eq!(size_of_val(out), sums * size_of::<E>(), "one sum for each column");
        #[cfg(target_arch = "x86_64")]
        let (table, out) = (table.as_ptr().cast::<u8>(), out.as_mut_ptr().cast::<u8>());
        match cpu {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level is available, and with it AVX-512F. Offsets are within the table,
            // see `Reader::column`; its entries have no padding, and `out` takes the sums.
            cpu if cpu.has(Cpu::AVX512) && size_of::<E>() >= 64 => unsafe {
                x86_64::gather::sums_wide(lanes, size_of::<E>(), table, &self.distances, out)
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: likewise, with AVX2.
            cpu if cpu.has(Cpu::AES_NI) => unsafe {
                x86_64::gather::sums(lanes, size_of::<E>(), table, &self.distances, out)
            },
            _ => false,
        }
    }

    /// `table` read at these indices.
    ///
    /// # Panics
    /// If its number of rows is not the one that the indices are for.
    #[inline]
    pub fn of<'a>(&'a self, table: &'a [E]) -> Reader<'a, E, WEIGHT> {
        assert_eq!(table.len(), self.rows, "one entry for each row");
        Reader { table, distances: &self.distances }
    }
}

impl<E: Copy, const WEIGHT: usize> Reader<'_, E, WEIGHT> {
    /// The entries of one column.
    ///
    /// # Panics
    /// If there is no such column.
    #[inline(always)]
    pub fn column(&self, column: usize) -> impl Iterator<Item = E> {
        let start = self.table.as_ptr();
        self.distances[column].iter().map(move |distance| {
            // SAFETY: offsets are whole entries and end within the table, which `of` has found to
            // have `rows` entries: `cut` masks the index, `scale` multiplies a number below 2^32 by
            // the number of rows and divides by 2^32, and `new` has limited the bytes of a table,
            // so that no offset is cut off at 32 bits.
            unsafe { *start.byte_add(*distance as usize) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prg::Prg;

    type Group<E> = Columns<E, 10, 48>;

    fn stream(blocks: usize) -> Vec<Block> {
        let mut stream = vec![Block::ZERO; blocks];
        Prg::new(Block::from(7)).fill_blocks(&mut stream);
        stream
    }

    /// The indices of all columns, read from a table that holds its own indices.
    fn places(columns: &Group<u64>) -> Vec<u64> {
        let table: Vec<_> = (0..columns.rows as u64).collect();
        let reader = columns.of(&table);
        (0..48).flat_map(|column| reader.column(column)).collect()
    }

    #[test]
    fn places_are_cut_as_the_text_says() {
        let blocks = stream(Group::<u64>::CUT);
        let words: Vec<_> = blocks.iter().flat_map(|b| [b.low(), b.high()]).collect();
        for rows in [1, 2, 64, 4096, 1 << PLACE_BITS] {
            if cfg!(miri) && rows > 64 {
                continue;
            }
            let expected: Vec<_> = words
                .chunks(8)
                .flat_map(|words| {
                    (0..3).flat_map(|piece| {
                        let cut = move |word: &u64| (word >> (PLACE_BITS * piece)) % rows;
                        words.iter().map(cut).collect::<Vec<_>>()
                    })
                })
                .collect();
            for cpu in Cpu::available() {
                let mut columns = Group::<u64>::new(rows as usize);
                columns.cut_on(cpu, &blocks);
                assert_eq!(places(&columns), expected, "{rows} rows, {cpu}");
            }
        }
    }

    #[test]
    fn places_are_scaled_as_the_text_says() {
        let blocks = stream(Group::<u64>::SCALED);
        for rows in [1usize, 2, 1000, 7391] {
            let expected: Vec<_> = blocks
                .iter()
                .flat_map(|block| (0..4).map(|i| (u128::from(*block) >> (32 * i)) as u32))
                .map(|word| (u64::from(word) * rows as u64) >> 32)
                .collect();
            let mut columns = Group::<u64>::new(rows);
            columns.scale(&blocks);
            assert_eq!(places(&columns), expected, "{rows} rows");
        }
    }

    /// Every kernel against sums of single lanes; of numbers below `2^61 - 1`, the largest too.
    fn check_sums<const B: usize>() {
        let mut random = Prg::new(Block::from(8));
        let mut table = vec![[(1u64 << 61) - 2; B]; 64];
        table.as_flattened_mut()[1..]
            .iter_mut()
            .step_by(2)
            .for_each(|x| *x = random.next_u64() >> 3);
        let mut columns = Columns::<[u64; B], 10, 48>::new(64);
        columns.cut(&stream(Group::<u64>::CUT));
        let sum = |i: usize, first: usize, to: usize, add: &dyn Fn(u64, u64) -> u64| {
            let rows: Vec<_> = columns.of(&table).column(i).collect();
            std::array::from_fn::<_, B, _>(|b| {
                rows[first..to].iter().fold(0, |s, row| add(s, row[b]))
            })
        };
        let (xor, plus) = (|a, b| a ^ b, u64::wrapping_add);
        for cpu in Cpu::available().into_iter().filter(|cpu| cpu.has(Cpu::AES_NI)) {
            let (mut out, mut halves) = ([[0; B]; 48], [[[0; B]; 2]; 48]);
            assert!(columns.sums(cpu, Lanes::Words, &table, &mut out));
            assert!((0..48).all(|i| out[i] == sum(i, 0, 10, &plus)), "{cpu}");
            assert!(columns.sums(cpu, Lanes::Xor, &table, &mut out));
            assert!((0..48).all(|i| out[i] == sum(i, 0, 10, &xor)), "{cpu}");
            assert!(columns.sums(cpu, Lanes::XorHalves, &table, halves.as_flattened_mut()));
            assert!(
                (0..48).all(|i| halves[i] == [sum(i, 0, 5, &xor), sum(i, 5, 10, &xor)]),
                "{cpu}"
            );
            assert!(columns.sums(cpu, Lanes::Mersenne, &table, &mut out));
            let fold = |sum: u64| (sum & ((1 << 61) - 1)) + (sum >> 61);
            for (i, out) in out.iter().enumerate() {
                let halves = [sum(i, 0, 5, &plus), sum(i, 5, 10, &plus)];
                assert!((0..B).all(|b| out[b] == fold(halves[0][b]) + halves[1][b]), "{cpu}");
            }
        }
    }

    #[test]
    fn sums_of_lanes_are_those_of_the_entries() {
        check_sums::<4>();
        check_sums::<8>();
        check_sums::<16>();
    }

    #[test]
    #[should_panic(expected = "a power of two of rows")]
    fn other_numbers_of_rows_are_not_cut() {
        Group::<u64>::new(3).cut(&[Block::ZERO; Group::<u64>::CUT]);
    }

    #[test]
    #[should_panic(expected = "one entry for each row")]
    fn tables_of_other_sizes_are_refused() {
        let columns = Group::<u64>::new(3);
        let _ = columns.of(&[1, 2]);
    }

    #[test]
    #[should_panic(expected = "at most 2^32 bytes")]
    fn tables_that_are_too_large_are_refused() {
        let _ = Group::<u64>::new((1 << 29) + 1);
    }
}
