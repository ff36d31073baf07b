//! Band matrices times columns, on bytes.
//!
//! The method of four Russians, as in the portable kernel, for 32 rows at a time: of each four
//! columns all sixteen sums are kept, a table of sixteen bytes for each byte of a value. One
//! instruction looks up a byte for 32 rows.

use bytemuck::Zeroable;

use super::transpose::transpose_bytes;
use crate::arch::native::bytes::*;
use crate::arch::portable;
use crate::band::Value;
use crate::pages::Buffer;

/// Rows taken together.
const ROWS: usize = 32;

/// Columns of a group: a byte of a pattern.
const GROUP: usize = 8;

/// Groups between the starts of the first and the last of the rows, where these are taken together:
/// distances in columns fit into bytes.
const SPREAD: usize = 30;

/// Byte `r` has the bits of the columns of a group from column `r` on.
const FROM: [u8; 16] = [0xff, 0xfe, 0xfc, 0xf8, 0xf0, 0xe0, 0xc0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0];

/// The tables of half a group each, for the sixteen bytes of a part of a value.
type Tables = [[Half; 2]; 16];

/// Bytes of a value of type `V` in a part.
const fn part_bytes<V>() -> usize {
    if size_of::<V>() < 16 { size_of::<V>() } else { 16 }
}

/// Half parts of eight bytes that are not empty.
const fn half_parts<V>() -> usize {
    part_bytes::<V>().div_ceil(8)
}

/// A part of a value, behind a short one zeros.
#[inline]
fn part_of<V: Value>(value: &V, part: usize) -> Half {
    let mut bytes = [0; 16];
    let part = &bytemuck::bytes_of(value)[16 * part..][..part_bytes::<V>()];
    bytes[..part.len()].copy_from_slice(part);
    bytemuck::cast(bytes)
}

#[inline]
fn set_part<V: Value>(value: &mut V, part: usize, to: Half) {
    let bytes: [u8; 16] = bytemuck::cast(to);
    let part = &mut bytemuck::bytes_of_mut(value)[16 * part..][..part_bytes::<V>()];
    part.copy_from_slice(&bytes[..part.len()]);
}

/// The tables of a group of columns.
#[inline]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
fn tables(columns: [Half; GROUP]) -> Tables {
    let mut sums = [Vector::zeroed(); 16];
    for subset in 1..16_usize {
        let column = subset.trailing_zeros() as usize;
        let pair = bytemuck::cast([columns[column], columns[GROUP / 2 + column]]);
        sums[subset] = xor(sums[subset & (subset - 1)], pair);
    }
    bytemuck::cast(transpose_bytes(sums))
}

/// Byte `k` of all rows, for each `k`.
#[inline]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
fn bytes_of_rows<const WORDS: usize>(patterns: &[[u64; WORDS]; ROWS]) -> [[Vector; ROWS]; 2] {
    let mut bytes = [[Vector::zeroed(); ROWS]; 2];
    for (i, bytes) in bytes.iter_mut().enumerate().take(WORDS / 4) {
        let mut squares = [[Vector::zeroed(); 16]; 2];
        for (patterns, square) in patterns.as_chunks::<16>().0.iter().zip(&mut squares) {
            for (pattern, row) in patterns.iter().zip(&mut *square) {
                *row = bytemuck::cast(pattern.as_chunks::<4>().0[i]);
            }
            *square = transpose_bytes(*square);
        }
        for k in 0..16 {
            [bytes[k], bytes[16 + k]] = halves(squares[0][k], squares[1][k]);
        }
    }
    bytes
}

/// Adds to eight bytes of the sums what the bytes of the rows select.
#[inline]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
fn add(sums: &mut [Vector; 8], rows: Vector, tables: &[[Half; 2]; 8]) {
    let [low, high] = nibbles(rows);
    for (sum, &[first, second]) in sums.iter_mut().zip(tables) {
        let selected = xor(lookup(repeated(first), low), lookup(repeated(second), high));
        *sum = xor(*sum, selected);
    }
}

/// The columns of a group, `first` columns behind the first start of the rows, that are not before
/// the start of each row.
#[inline]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
fn from(distances: Vector, first: usize) -> Vector {
    let before = distance_to_8(distances, fill(first as u8));
    lookup(bytemuck::cast([FROM; 2]), before)
}

/// The sum of each row from those of its bytes.
#[inline]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
fn values(halves: [[Vector; 8]; 2]) -> [Half; ROWS] {
    let mut values = [Half::zeroed(); ROWS];
    let pairs = transpose_bytes(bytemuck::cast(halves));
    for (row, pair) in pairs.into_iter().enumerate() {
        [values[row], values[16 + row]] = bytemuck::cast(pair);
    }
    values
}

/// For values of `16 PARTS` bytes, or fewer in one part.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
pub(crate) fn sums<V: Value, const WORDS: usize, const PARTS: usize>(
    starts: &[u32],
    patterns: &[[u64; WORDS]],
    columns: &[V],
    out: &mut [V],
) {
    let groups = 8 * WORDS;
    let mut ring = Buffer::<Tables>::zeroed(2 * groups * PARTS);
    let ring = ring.as_chunks_mut::<PARTS>().0;
    let mut end = 0;
    let rows = starts.chunks(ROWS).zip(patterns.chunks(ROWS));
    for ((starts, patterns), out) in rows.zip(out.chunks_mut(ROWS)) {
        let first = starts[0] as usize / GROUP;
        let last = starts[starts.len() - 1] as usize / GROUP;
        if last - first > SPREAD {
            portable::band::sums(starts, patterns, columns, out);
            continue;
        }
        for group in first.max(end)..=last + groups {
            let columns = &columns[columns.len().min(GROUP * group)..];
            let mut padded = [V::zeroed(); GROUP];
            let columns = columns.first_chunk().unwrap_or_else(|| {
                padded[..columns.len()].copy_from_slice(columns);
                &padded
            });
            for (part, out) in ring[group % (2 * groups)].iter_mut().enumerate() {
                let mut of_part = [Half::zeroed(); GROUP];
                for (of_part, column) in of_part.iter_mut().zip(columns) {
                    *of_part = part_of(column, part);
                }
                *out = tables(of_part);
            }
        }
        end = last + groups + 1;

        let mut padded = [[0; WORDS]; ROWS];
        let bytes = bytes_of_rows(patterns.first_chunk().unwrap_or_else(|| {
            padded[..patterns.len()].copy_from_slice(patterns);
            &padded
        }));
        let bytes = bytes.as_flattened();
        let mut distances = [0; ROWS];
        for (distance, &start) in distances.iter_mut().zip(starts) {
            *distance = (start as usize - GROUP * first) as u8;
        }
        let distances: Vector = bytemuck::cast(distances);
        #[expect(
            clippy::needless_range_loop,
            reason = "the parts of one number are in all places of the ring"
        )]
        for part in 0..PARTS {
            let mut sums = [[Vector::zeroed(); 8]; 2];
            for (half, out) in sums.iter_mut().take(half_parts::<V>()).enumerate() {
                let mut sums = *out;
                let tables = |group: usize| &ring[group % (2 * groups)][part].as_chunks().0[half];
                // In these groups rows start: bits before the start are those of the end of the
                // window.
                for group in first..=last {
                    let from = from(distances, GROUP * (group - first));
                    let rows = bytes[group % groups];
                    add(&mut sums, and(rows, from), tables(group));
                    let end = without(rows, from);
                    add(&mut sums, end, tables(group + groups));
                }
                for group in last + 1..first + groups {
                    add(&mut sums, bytes[group % groups], tables(group));
                }
                *out = sums;
            }
            for (out, value) in out.iter_mut().zip(values(sums)) {
                set_part(out, part, value);
            }
        }
    }
}

/// For values of `16 PARTS` bytes, or fewer in one part: 32 columns at a time.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
pub(crate) fn substitute<V: Value, const WORDS: usize, const PARTS: usize>(
    pivots: &[[u64; WORDS]],
    columns: &mut [V],
) {
    const GROUPS: usize = ROWS / GROUP;
    let groups = 8 * WORDS;
    let mut ring = Buffer::<Tables>::zeroed(2 * groups * PARTS);
    let ring = ring.as_chunks_mut::<PARTS>().0;
    let distances: [u8; ROWS] = std::array::from_fn(|row| row as u8);
    let distances: Vector = bytemuck::cast(distances);
    let blocks = pivots.chunks(ROWS).zip(columns.chunks_mut(ROWS));
    for (block, (pivots, columns)) in blocks.enumerate().rev() {
        let first = GROUPS * block;
        let mut padded = [[0; WORDS]; ROWS];
        let bytes = bytes_of_rows(pivots.first_chunk().unwrap_or_else(|| {
            padded[..pivots.len()].copy_from_slice(pivots);
            &padded
        }));
        let bytes = bytes.as_flattened();
        #[expect(
            clippy::needless_range_loop,
            reason = "the parts of one number are in all places of the ring"
        )]
        for part in 0..PARTS {
            // The columns behind the block.
            let mut sums = [[Vector::zeroed(); 8]; 2];
            for (half, out) in sums.iter_mut().take(half_parts::<V>()).enumerate() {
                let mut sums = *out;
                let tables = |group: usize| &ring[group % (2 * groups)][part].as_chunks().0[half];
                for group in first..first + GROUPS {
                    let from = from(distances, GROUP * (group - first));
                    let end = without(bytes[group % groups], from);
                    add(&mut sums, end, tables(group + groups));
                }
                for group in first + GROUPS..first + groups {
                    add(&mut sums, bytes[group % groups], tables(group));
                }
                *out = sums;
            }
            // Those in it: the sums of all subsets of each four of them.
            let mut subsets = [[Half::zeroed(); 16]; ROWS / 4];
            let mut solution = values(sums);
            let words = (ROWS * block / 64) % WORDS;
            for (row, (pivot, column)) in pivots.iter().zip(&*columns).enumerate().rev() {
                let behind = pivot[words] >> (ROWS * block % 64) & !0 << row << 1;
                let mut value = xor_half(solution[row], part_of(column, part));
                for (i, subsets) in subsets.iter().enumerate() {
                    let subset = behind as usize >> (4 * i) & 15;
                    value = xor_half(value, subsets[subset]);
                }
                solution[row] = value;
                let subsets = &mut subsets[row / 4];
                for i in 0..8 {
                    let bit = 1 << (row % 4);
                    let subset = &mut subsets[(i + (i & !(bit - 1)) + bit) % 16];
                    *subset = xor_half(*subset, value);
                }
            }
            for (column, value) in columns.iter_mut().zip(solution) {
                set_part(column, part, value);
            }
            solution[columns.len()..].fill(Half::zeroed());
            for (group, columns) in (first..).zip(solution.as_chunks().0) {
                ring[group % (2 * groups)][part] = tables(*columns);
            }
        }
    }
}
