//! AES-128 with a key for each block, with VAES on AVX-512: the key schedules are computed
//! alongside the rounds.

use std::arch::x86_64::*;

use crate::Block;

use super::{aes, vaes::orthomorphism};

/// Blocks in a vector.
const WIDTH: usize = 4;
/// Vectors in flight: keys and blocks fit into the registers together.
const VECTORS: usize = 8;

/// The round constants of FIPS 197, section 5.2.
const ROUND_CONSTANTS: [i32; 10] = [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];

/// The next round key in each lane, as in the kernel for AES-NI.
#[inline]
#[target_feature(enable = "vaes,aes,avx2,avx512f,avx512bw")]
fn next_round_keys<const N: usize>(keys: &mut [__m512i; N], constant: i32) {
    let constant = _mm512_set1_epi32(constant);
    // RotWord of the last word, in all four.
    let rotate = _mm512_set1_epi32(0x0c0f_0e0d);
    for key in keys {
        let assist = _mm512_aesenclast_epi128(_mm512_shuffle_epi8(*key, rotate), constant);
        let sums = _mm512_xor_si512(*key, _mm512_bslli_epi128::<4>(*key));
        // The exclusive or of the three.
        let shifted = _mm512_bslli_epi128::<8>(sums);
        *key = _mm512_ternarylogic_epi64::<0x96>(sums, shifted, assist);
    }
}

/// `AES(x) ^ x`, each lane under its own key: `B` blocks for each key.
#[inline]
#[target_feature(enable = "vaes,aes,avx2,avx512f,avx512bw")]
fn rekeyed_lanes<const N: usize, const B: usize>(
    mut keys: [__m512i; N],
    x: [[__m512i; N]; B],
) -> [[__m512i; N]; B] {
    let mut y = x;
    for y in &mut y {
        for (y, key) in y.iter_mut().zip(keys) {
            *y = _mm512_xor_si512(*y, key);
        }
    }
    for constant in &ROUND_CONSTANTS[..9] {
        next_round_keys(&mut keys, *constant);
        for y in &mut y {
            for (y, key) in y.iter_mut().zip(keys) {
                *y = _mm512_aesenc_epi128(*y, key);
            }
        }
    }
    next_round_keys(&mut keys, ROUND_CONSTANTS[9]);
    for (y, x) in y.iter_mut().zip(x) {
        for ((y, key), x) in y.iter_mut().zip(keys).zip(x) {
            *y = _mm512_xor_si512(_mm512_aesenclast_epi128(*y, key), x);
        }
    }
    y
}

#[target_feature(enable = "vaes,aes,avx2,avx512f,avx512bw")]
pub(crate) fn rekeyed(keys: &[Block], x: &mut [Block]) {
    let (keys, keys_rest) = keys.as_chunks::<{ WIDTH * VECTORS }>();
    let (x, x_rest) = x.as_chunks_mut::<{ WIDTH * VECTORS }>();
    for (keys, x) in keys.iter().zip(x) {
        let [lanes] = rekeyed_lanes::<VECTORS, 1>(bytemuck::cast(*keys), [bytemuck::cast(*x)]);
        *x = bytemuck::cast(lanes);
    }
    aes::rekeyed(keys_rest, x_rest);
}

/// As [`rekeyed`], with the orthomorphism applied first.
#[target_feature(enable = "vaes,aes,avx2,avx512f,avx512bw")]
pub(crate) fn rekeyed_circular(keys: &[Block], x: &mut [Block]) {
    let (keys, keys_rest) = keys.as_chunks::<{ WIDTH * VECTORS }>();
    let (x, x_rest) = x.as_chunks_mut::<{ WIDTH * VECTORS }>();
    for (keys, x) in keys.iter().zip(x) {
        let mut lanes: [__m512i; VECTORS] = bytemuck::cast(*x);
        for lane in &mut lanes {
            *lane = orthomorphism(*lane);
        }
        let [lanes] = rekeyed_lanes::<VECTORS, 1>(bytemuck::cast(*keys), [lanes]);
        *x = bytemuck::cast(lanes);
    }
    aes::rekeyed_circular(keys_rest, x_rest);
}

/// Vectors of keys in flight if each key serves two blocks.
const PAIRED: usize = VECTORS / 2;

/// As [`rekeyed_circular`], two blocks under each key.
#[target_feature(enable = "vaes,aes,avx2,avx512f,avx512bw")]
pub(crate) fn rekeyed_circular_pairs(keys: &[Block], x: &mut [[Block; 2]]) {
    // `first` and `second` separate the blocks of four pairs; `low` and `high` restore the pairs.
    let first = _mm512_set_epi64(13, 12, 9, 8, 5, 4, 1, 0);
    let second = _mm512_set_epi64(15, 14, 11, 10, 7, 6, 3, 2);
    let low = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
    let high = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    let (keys, keys_rest) = keys.as_chunks::<{ WIDTH * PAIRED }>();
    let (x, x_rest) = x.as_chunks_mut::<{ WIDTH * PAIRED }>();
    // Loops, because the compiler does not inline closures with their own instruction sets.
    for (keys, x) in keys.iter().zip(x) {
        let pairs: [[__m512i; 2]; PAIRED] = bytemuck::cast(*x);
        let mut sides = [[_mm512_setzero_si512(); PAIRED]; 2];
        for (side, order) in sides.iter_mut().zip([first, second]) {
            for (side, [a, b]) in side.iter_mut().zip(pairs) {
                *side = orthomorphism(_mm512_permutex2var_epi64(a, order, b));
            }
        }
        let [a, b] = rekeyed_lanes::<PAIRED, 2>(bytemuck::cast(*keys), sides);
        let mut pairs = [[_mm512_setzero_si512(); 2]; PAIRED];
        for (pairs, (a, b)) in pairs.iter_mut().zip(a.into_iter().zip(b)) {
            *pairs = [
                _mm512_permutex2var_epi64(a, low, b),
                _mm512_permutex2var_epi64(a, high, b),
            ];
        }
        *x = bytemuck::cast(pairs);
    }
    aes::rekeyed_circular_pairs(keys_rest, x_rest);
}
