//! Band matrices times columns, with GFNI.
//!
//! The columns stand in groups of eight. Byte `j` of the eight values of a group is a matrix of
//! 8x8 bits, and so one instruction multiplies eight bits of eight rows by eight bytes of the
//! values of a group. Rows are taken by eight too.
//!
//! A value is `PARTS` words, and a vector has the matrices of one word of a group.

use std::arch::x86_64::*;

use crate::arch::portable;
use crate::band::Value;
use crate::pages::Buffer;
use crate::prefetch::prefetch;

/// Rows taken together; columns of a group.
const GROUP: usize = 8;

/// Groups between the starts of the first and the last of eight rows, where these are taken
/// together: distances in columns fit into bytes.
const SPREAD: usize = 32;

/// Rows between the request of a pattern and its use.
const AHEAD: usize = 32;

/// Byte `r` has the bits of the columns of a group from column `r` on.
const FROM: u64 = 0x80c0_e0f0_f8fc_feff;

/// Byte `8i + j` of a vector from byte `8j + i`.
const TRANSPOSED: [u8; 64] = {
    let mut order = [0; 64];
    let mut i = 0;
    while i < 64 {
        order[i] = (8 * (i % 8) + i / 8) as u8;
        i += 1;
    }
    order
};

/// The bytes of each word from the last to the first, in both words of 128 bits.
const REVERSED: [u8; 16] = [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8];

/// Byte `r` has bit `7 - r`.
const UNITS: i64 = 0x0102_0408_1020_4080;

/// Byte `r` has bit `r`.
const IDENTITY: i64 = UNITS.swap_bytes();

/// Word `i` of eight entries.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn words<const N: usize>(entries: &[[u64; N]; GROUP], i: usize) -> __m512i {
    let mut words = [0; GROUP];
    for (word, entry) in words.iter_mut().zip(entries) {
        *word = entry[i];
    }
    bytemuck::cast(words)
}

/// Byte `k` of word `i` of row `r` as byte `r` of word `8i + k`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn bytes_of_rows<const WORDS: usize>(patterns: &[[u64; WORDS]; GROUP]) -> [[u64; 8]; WORDS] {
    let mut bytes = [[0; 8]; WORDS];
    for (i, bytes) in bytes.iter_mut().enumerate() {
        let order = bytemuck::cast(TRANSPOSED);
        *bytes = bytemuck::cast(_mm512_permutexvar_epi8(order, words(patterns, i)));
    }
    bytes
}

/// Byte `j` of eight values as word `j`, from the words of the values.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn by_bytes<const PARTS: usize>(values: &[[u64; PARTS]; GROUP]) -> [__m512i; PARTS] {
    let mut bytes = [_mm512_setzero_si512(); PARTS];
    for (part, bytes) in bytes.iter_mut().enumerate() {
        *bytes = _mm512_permutexvar_epi8(bytemuck::cast(TRANSPOSED), words(values, part));
    }
    bytes
}

/// The words of eight values from their bytes: undoes [`by_bytes`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn by_values<const PARTS: usize>(bytes: [__m512i; PARTS]) -> [[u64; PARTS]; GROUP] {
    let mut values = [[0; PARTS]; GROUP];
    for (part, bytes) in bytes.into_iter().enumerate() {
        let words = _mm512_permutexvar_epi8(bytemuck::cast(TRANSPOSED), bytes);
        let words: [u64; GROUP] = bytemuck::cast(words);
        for (value, word) in values.iter_mut().zip(words) {
            value[part] = word;
        }
    }
    values
}

/// The matrices of a group of columns, in the form that [`add`] takes.
///
/// The instruction takes the rows of a matrix from the last to the first. With a matrix of data and
/// the unit vectors as bytes it transposes; the vectors from the last to the first put the rows in
/// the order that the next multiplication takes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn matrices<const PARTS: usize>(mut bytes: [__m512i; PARTS]) -> [__m512i; PARTS] {
    for bytes in &mut bytes {
        let reversed = _mm512_shuffle_epi8(*bytes, bytemuck::cast([REVERSED; 4]));
        *bytes = _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_set1_epi64(UNITS), reversed);
    }
    bytes
}

/// The inverse of the identity plus `n`, whose byte `r` has the bits of row `r`, all of them behind
/// bit `r`: the product of the identity plus `n`, `n^2` and `n^4`, as `n^8` is zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn inverse(n: u64) -> u64 {
    let n = _mm_set_epi64x(0, n as i64);
    let identity = _mm_set_epi64x(0, IDENTITY);
    let times = |a, b| {
        let reversed = _mm_shuffle_epi8(b, bytemuck::cast(REVERSED));
        let b = _mm_gf2p8affine_epi64_epi8::<0>(_mm_set1_epi64x(UNITS), reversed);
        _mm_gf2p8affine_epi64_epi8::<0>(a, b)
    };
    let square = times(n, n);
    let fourth = times(square, square);
    let [n, square, fourth] = [n, square, fourth].map(|n| _mm_xor_si128(n, identity));
    _mm_cvtsi128_si64(times(times(n, square), fourth)) as u64
}

/// Adds the columns of a group that the bytes of eight rows select.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn add<const PARTS: usize>(sums: &mut [__m512i; PARTS], rows: u64, matrices: &[__m512i; PARTS]) {
    let rows = _mm512_set1_epi64(rows as i64);
    for (sum, &matrix) in sums.iter_mut().zip(matrices) {
        let product = _mm512_gf2p8affine_epi64_epi8::<0>(rows, matrix);
        *sum = _mm512_xor_si512(*sum, product);
    }
}

/// Up to eight entries, the others zero.
#[inline(always)]
fn padded<const N: usize>(entries: &[[u64; N]]) -> [[u64; N]; GROUP] {
    let mut all = [[0; N]; GROUP];
    all[..entries.len()].copy_from_slice(entries);
    all
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(crate) fn sums<V: Value, const WORDS: usize, const PARTS: usize>(
    starts: &[u32],
    patterns: &[[u64; WORDS]],
    columns: &[V],
    out: &mut [V],
) {
    let groups = 8 * WORDS;
    let mut ring = Buffer::zeroed(2 * groups * PARTS);
    let ring = ring.as_chunks_mut::<PARTS>().0;
    let all = patterns;
    let words = bytemuck::cast_slice::<V, u64>(columns).as_chunks().0;
    let mut end = 0;
    let rows = starts.chunks(GROUP).zip(patterns.chunks(GROUP));
    for (i, ((starts, patterns), out)) in rows.zip(out.chunks_mut(GROUP)).enumerate() {
        for row in 0..GROUP {
            prefetch(all, GROUP * i + AHEAD + row);
        }
        let first = starts[0] as usize / GROUP;
        let last = starts[starts.len() - 1] as usize / GROUP;
        if last - first >= SPREAD {
            portable::band::sums(starts, patterns, columns, out);
            continue;
        }
        for group in first.max(end)..=last + groups {
            let columns = &words[words.len().min(GROUP * group)..];
            let bytes = by_bytes(&match columns.first_chunk() {
                Some(columns) => *columns,
                None => padded(columns),
            });
            ring[group % (2 * groups)] = matrices(bytes);
        }
        end = last + groups + 1;

        let rows = bytes_of_rows(&match patterns.first_chunk() {
            Some(patterns) => *patterns,
            None => padded(patterns),
        });
        let rows = rows.as_flattened();
        let mut distances = [0; 16];
        for (distance, &start) in distances.iter_mut().zip(starts) {
            *distance = (start as usize - GROUP * first) as u8;
        }
        let distances = bytemuck::cast(distances);
        let mut sums = [_mm512_setzero_si512(); PARTS];
        // In these groups rows start: bits before the start are those of the end of the window.
        for group in first..=last {
            let before = _mm_set1_epi8((GROUP * (group - first)) as i8);
            let before = _mm_min_epu8(_mm_subs_epu8(distances, before), _mm_set1_epi8(8));
            let from = _mm_shuffle_epi8(_mm_set_epi64x(0, FROM as i64), before);
            let from = _mm_cvtsi128_si64(from) as u64;
            let row = rows[group % groups];
            add(&mut sums, row & from, &ring[group % (2 * groups)]);
            add(&mut sums, row & !from, &ring[(group + groups) % (2 * groups)]);
        }
        for group in last + 1..first + groups {
            add(&mut sums, rows[group % groups], &ring[group % (2 * groups)]);
        }
        let values = by_values(sums);
        let out = bytemuck::cast_slice_mut::<V, u64>(out).as_chunks_mut().0;
        out.copy_from_slice(&values[..out.len()]);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(crate) fn substitute<V: Value, const WORDS: usize, const PARTS: usize>(
    pivots: &[[u64; WORDS]],
    columns: &mut [V],
) {
    let groups = 8 * WORDS;
    let mut ring = Buffer::zeroed(2 * groups * PARTS);
    let ring = ring.as_chunks_mut::<PARTS>().0;
    let columns = bytemuck::cast_slice_mut::<V, u64>(columns).as_chunks_mut::<PARTS>().0;
    let pairs = pivots.chunks(GROUP).zip(columns.chunks_mut(GROUP));
    for (group, (pivots, columns)) in pairs.enumerate().rev() {
        let rows = bytes_of_rows(&match pivots.first_chunk() {
            Some(pivots) => *pivots,
            None => padded(pivots),
        });
        let rows = rows.as_flattened();
        let mut sums = by_bytes(&match columns.first_chunk() {
            Some(columns) => *columns,
            None => padded(columns),
        });
        // The group's own bits: those of its columns, and those at the end of the windows.
        let own = rows[group % groups];
        add(&mut sums, own & !FROM, &ring[(group + groups) % (2 * groups)]);
        // The next group last: its solution is the newest.
        for other in (group + 1..group + groups).rev() {
            add(&mut sums, rows[other % groups], &ring[other % (2 * groups)]);
        }
        // With the bits among its own columns the group is a triangular system.
        let mut solution = [_mm512_setzero_si512(); PARTS];
        let inverse = inverse(own & FROM & !(IDENTITY as u64));
        add(&mut solution, inverse, &matrices(sums));
        ring[group % (2 * groups)] = matrices(solution);
        columns.copy_from_slice(&by_values(solution)[..columns.len()]);
    }
}
