//! Bit-matrix transposition with GFNI and the byte permutations of AVX-512 VBMI, 128 columns at a
//! time: nearly all 32 vectors of the square stay in the registers.
//!
//! Row `8*(4q + a) + i` of the square is lane `a` of vector `i` of octet group `q`. In each lane
//! the eight vectors of a group are a matrix of 8 rows by 16 bytes; it is transposed so that the
//! bytes of one column of bytes lie side by side. The affine transformation of GFNI, with the unit
//! matrix in place of the argument, then transposes each group of eight bytes as a square of bits.
//! A transposition of bytes remains: 16 rows (`q`, `a`) by the 16 columns of a vector.

use std::arch::x86_64::*;

/// The permutation of the bytes of a vector: byte `c` of lane `a` goes to byte `a` of the double
/// word `4*(c % 4) + c/4`.
const GATHER: [u8; 64] = {
    let mut places = [0; 64];
    let mut c = 0;
    while c < 16 {
        let mut a = 0;
        while a < 4 {
            places[4 * (4 * (c % 4) + c / 4) + a] = (16 * a + c) as u8;
            a += 1;
        }
        c += 1;
    }
    places
};

/// Transposes `out.len()` columns, whole groups of 128.
///
/// # Safety
/// The processor has the features, and `rows` is at least `127*stride + out.len()/128` long.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(crate) unsafe fn transpose_128(rows: &[u128], stride: usize, out: &mut [u128]) {
    let units = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    for (group, out) in out.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        let mut squares = [[_mm512_setzero_si512(); 8]; 4];
        for (q, square) in squares.iter_mut().enumerate() {
            for (i, vector) in square.iter_mut().enumerate() {
                // The transformation counts the rows of its matrix from the top.
                let first = (32 * q + 7 - i) * stride + group;
                let lane = |a: usize| {
                    // SAFETY: the last row read is 127, and the caller promises
                    // `127*stride + group` to be inside.
                    let block = unsafe { rows.get_unchecked(first + 8 * a * stride) };
                    _mm512_broadcast_i32x4(bytemuck::cast(*block))
                };
                let mut x = lane(0);
                x = _mm512_mask_mov_epi64(x, 0b0000_1100, lane(1));
                x = _mm512_mask_mov_epi64(x, 0b0011_0000, lane(2));
                x = _mm512_mask_mov_epi64(x, 0b1100_0000, lane(3));
                *vector = x;
            }
            *square = interleave(*square);
            for vector in square {
                *vector = _mm512_gf2p8affine_epi64_epi8::<0>(units, *vector);
            }
        }
        for m in 0..8 {
            let columns = columns([0, 1, 2, 3].map(|q| squares[q][m]));
            let out: &mut [u128; 16] = (&mut out[16 * m..16 * m + 16]).try_into().expect("16");
            *out = bytemuck::cast(columns);
        }
    }
}

/// In each lane: byte `c` of vector `i` becomes byte `8*(c % 2) + i` of vector `c/2`.
///
/// One round interleaves the bytes of vectors `i` and `i + 4`: it rotates the seven bits of
/// (vector, byte) by one.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleave(mut x: [__m512i; 8]) -> [__m512i; 8] {
    for _ in 0..3 {
        let mut next = x;
        for i in 0..4 {
            next[2 * i] = _mm512_unpacklo_epi8(x[i], x[i + 4]);
            next[2 * i + 1] = _mm512_unpackhi_epi8(x[i], x[i + 4]);
        }
        x = next;
    }
    x
}

/// Byte `c` of lane `a` of vector `q` becomes byte `4q + a` of block `c`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn columns(x: [__m512i; 4]) -> [__m512i; 4] {
    let places = bytemuck::cast(GATHER);
    let x = x.map(|x| _mm512_permutexvar_epi8(places, x));
    let low = [_mm512_unpacklo_epi32(x[0], x[1]), _mm512_unpacklo_epi32(x[2], x[3])];
    let high = [_mm512_unpackhi_epi32(x[0], x[1]), _mm512_unpackhi_epi32(x[2], x[3])];
    [
        _mm512_unpacklo_epi64(low[0], low[1]),
        _mm512_unpackhi_epi64(low[0], low[1]),
        _mm512_unpacklo_epi64(high[0], high[1]),
        _mm512_unpackhi_epi64(high[0], high[1]),
    ]
}
