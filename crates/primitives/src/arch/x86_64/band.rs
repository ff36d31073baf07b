//! Band matrices times columns, with AVX2.
//!
//! The method of four Russians, as in the portable kernel, for 32 rows at a time: of each four
//! columns all sixteen sums are kept, a table of sixteen bytes for each byte of a value. One
//! instruction looks up a byte for 32 rows.

use std::arch::x86_64::*;

use super::transpose::transpose_bytes;
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
const FROM: [u8; 16] = [
    0xff, 0xfe, 0xfc, 0xf8, 0xf0, 0xe0, 0xc0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// The tables of half a group each, for the sixteen bytes of a part of a value.
type Tables = [[__m128i; 2]; 16];

/// The tables of a group of columns.
#[inline]
#[target_feature(enable = "avx2")]
fn tables(columns: [__m128i; GROUP]) -> Tables {
    let mut sums = [_mm256_setzero_si256(); 16];
    for subset in 1..16_usize {
        let column = subset.trailing_zeros() as usize;
        let pair = _mm256_set_m128i(columns[GROUP / 2 + column], columns[column]);
        sums[subset] = _mm256_xor_si256(sums[subset & (subset - 1)], pair);
    }
    bytemuck::cast(transpose_bytes(sums))
}

/// Byte `k` of all rows, for each `k`.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes_of_rows<const WORDS: usize>(patterns: &[[u64; WORDS]; ROWS]) -> [[__m256i; ROWS]; 2] {
    let mut bytes = [[_mm256_setzero_si256(); ROWS]; 2];
    for (i, bytes) in bytes.iter_mut().enumerate().take(WORDS / 4) {
        let mut halves = [[_mm256_setzero_si256(); 16]; 2];
        for (patterns, half) in patterns.as_chunks::<16>().0.iter().zip(&mut halves) {
            for (pattern, row) in patterns.iter().zip(&mut *half) {
                *row = bytemuck::cast(pattern.as_chunks::<4>().0[i]);
            }
            *half = transpose_bytes(*half);
        }
        for k in 0..16 {
            let (first, second) = (halves[0][k], halves[1][k]);
            bytes[k] = _mm256_permute2x128_si256::<0x20>(first, second);
            bytes[16 + k] = _mm256_permute2x128_si256::<0x31>(first, second);
        }
    }
    bytes
}

/// Adds to eight bytes of the sums what the bytes of the rows select.
#[inline]
#[target_feature(enable = "avx2")]
fn add(sums: &mut [__m256i; 8], rows: __m256i, tables: &[[__m128i; 2]; 8]) {
    let nibble = _mm256_set1_epi8(0x0f);
    let low = _mm256_and_si256(rows, nibble);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(rows), nibble);
    for (sum, &[first, second]) in sums.iter_mut().zip(tables) {
        let selected = _mm256_xor_si256(
            _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(first), low),
            _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(second), high),
        );
        *sum = _mm256_xor_si256(*sum, selected);
    }
}

/// The columns of a group, `first` columns behind the first start of the rows, that are not before
/// the start of each row.
#[inline]
#[target_feature(enable = "avx2")]
fn from(distances: __m256i, first: usize) -> __m256i {
    let before = _mm256_subs_epu8(distances, _mm256_set1_epi8(first as i8));
    let before = _mm256_min_epu8(before, _mm256_set1_epi8(8));
    _mm256_shuffle_epi8(bytemuck::cast([FROM; 2]), before)
}

/// The sum of each row from those of its bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn values(halves: [[__m256i; 8]; 2]) -> [__m128i; ROWS] {
    let mut values = [_mm_setzero_si128(); ROWS];
    let pairs = transpose_bytes(bytemuck::cast(halves));
    for (row, pair) in pairs.into_iter().enumerate() {
        values[row] = _mm256_castsi256_si128(pair);
        values[16 + row] = _mm256_extracti128_si256::<1>(pair);
    }
    values
}

/// For values of `16 PARTS` bytes.
#[target_feature(enable = "avx2")]
pub(crate) fn sums<V: Value, const WORDS: usize, const PARTS: usize>(
    starts: &[u32],
    patterns: &[[u64; WORDS]],
    columns: &[V],
    out: &mut [V],
) {
    let groups = 8 * WORDS;
    let mut ring = Buffer::<Tables>::zeroed(2 * groups * PARTS);
    let ring = ring.as_chunks_mut::<PARTS>().0;
    let all: &[[__m128i; PARTS]] = bytemuck::cast_slice::<V, __m128i>(columns).as_chunks().0;
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
            let columns = &all[all.len().min(GROUP * group)..];
            let mut padded = [[_mm_setzero_si128(); PARTS]; GROUP];
            let columns = columns.first_chunk().unwrap_or_else(|| {
                padded[..columns.len()].copy_from_slice(columns);
                &padded
            });
            for (part, out) in ring[group % (2 * groups)].iter_mut().enumerate() {
                let mut of_part = [_mm_setzero_si128(); GROUP];
                for (of_part, column) in of_part.iter_mut().zip(columns) {
                    *of_part = column[part];
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
        let distances: __m256i = bytemuck::cast(distances);
        for part in 0..PARTS {
            let mut halves = [[_mm256_setzero_si256(); 8]; 2];
            for (half, out) in halves.iter_mut().enumerate() {
                let mut sums = *out;
                let tables = |group: usize| &ring[group % (2 * groups)][part].as_chunks().0[half];
                // In these groups rows start: bits before the start are those of the end of the
                // window.
                for group in first..=last {
                    let from = from(distances, GROUP * (group - first));
                    let rows = bytes[group % groups];
                    add(&mut sums, _mm256_and_si256(rows, from), tables(group));
                    let end = _mm256_andnot_si256(from, rows);
                    add(&mut sums, end, tables(group + groups));
                }
                for group in last + 1..first + groups {
                    add(&mut sums, bytes[group % groups], tables(group));
                }
                *out = sums;
            }
            let values = transpose_bytes(bytemuck::cast(halves));
            let out: &mut [[__m128i; PARTS]] = bytemuck::cast_slice_mut::<V, __m128i>(out)
                .as_chunks_mut()
                .0;
            for (row, out) in out.iter_mut().enumerate() {
                let value = values[row % 16];
                out[part] = match row < 16 {
                    true => _mm256_castsi256_si128(value),
                    false => _mm256_extracti128_si256::<1>(value),
                };
            }
        }
    }
}

/// For values of `16 PARTS` bytes: 32 columns at a time.
#[target_feature(enable = "avx2")]
pub(crate) fn substitute<V: Value, const WORDS: usize, const PARTS: usize>(
    pivots: &[[u64; WORDS]],
    columns: &mut [V],
) {
    const GROUPS: usize = ROWS / GROUP;
    let groups = 8 * WORDS;
    let mut ring = Buffer::<Tables>::zeroed(2 * groups * PARTS);
    let ring = ring.as_chunks_mut::<PARTS>().0;
    let columns: &mut [[__m128i; PARTS]] = bytemuck::cast_slice_mut::<V, __m128i>(columns)
        .as_chunks_mut()
        .0;
    let distances: [u8; ROWS] = std::array::from_fn(|row| row as u8);
    let distances: __m256i = bytemuck::cast(distances);
    let blocks = pivots.chunks(ROWS).zip(columns.chunks_mut(ROWS));
    for (block, (pivots, columns)) in blocks.enumerate().rev() {
        let first = GROUPS * block;
        let mut padded = [[0; WORDS]; ROWS];
        let bytes = bytes_of_rows(pivots.first_chunk().unwrap_or_else(|| {
            padded[..pivots.len()].copy_from_slice(pivots);
            &padded
        }));
        let bytes = bytes.as_flattened();
        for part in 0..PARTS {
            // The columns behind the block.
            let mut halves = [[_mm256_setzero_si256(); 8]; 2];
            for (half, out) in halves.iter_mut().enumerate() {
                let mut sums = *out;
                let tables = |group: usize| &ring[group % (2 * groups)][part].as_chunks().0[half];
                for group in first..first + GROUPS {
                    let from = from(distances, GROUP * (group - first));
                    let end = _mm256_andnot_si256(from, bytes[group % groups]);
                    add(&mut sums, end, tables(group + groups));
                }
                for group in first + GROUPS..first + groups {
                    add(&mut sums, bytes[group % groups], tables(group));
                }
                *out = sums;
            }
            // Those in it: the sums of all subsets of each four of them.
            let mut subsets = [[_mm_setzero_si128(); 16]; ROWS / 4];
            let mut solution = values(halves);
            let words = (ROWS * block / 64) % WORDS;
            for (row, (pivot, column)) in pivots.iter().zip(&*columns).enumerate().rev() {
                let behind = pivot[words] >> (ROWS * block % 64) & !0 << row << 1;
                let mut value = _mm_xor_si128(solution[row], column[part]);
                for (i, subsets) in subsets.iter().enumerate() {
                    let subset = behind as usize >> (4 * i) & 15;
                    value = _mm_xor_si128(value, subsets[subset]);
                }
                solution[row] = value;
                let subsets = &mut subsets[row / 4];
                for i in 0..8 {
                    let bit = 1 << (row % 4);
                    let subset = &mut subsets[(i + (i & !(bit - 1)) + bit) % 16];
                    *subset = _mm_xor_si128(*subset, value);
                }
            }
            for (column, value) in columns.iter_mut().zip(solution) {
                column[part] = value;
            }
            solution[columns.len()..].fill(_mm_setzero_si128());
            for (group, columns) in (first..).zip(solution.as_chunks().0) {
                ring[group % (2 * groups)][part] = tables(*columns);
            }
        }
    }
}
