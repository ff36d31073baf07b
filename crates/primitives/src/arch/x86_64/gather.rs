//! Indices cut with AVX2, and with AVX-512.

use std::arch::x86_64::*;

use crate::Block;
use crate::gather::{CUT_BLOCKS, CUT_PLACES, PLACE_BITS};

const MIDDLE: u32 = PLACE_BITS;
const HIGH: u32 = 2 * PLACE_BITS;

#[target_feature(enable = "avx2")]
pub(crate) fn cut(blocks: &[Block], mask: u32, shift: u32, out: &mut [u32]) {
    let mask = _mm256_set1_epi32(mask as i32);
    let shift = _mm_cvtsi32_si128(shift as i32);
    let cuts = blocks.as_chunks::<CUT_BLOCKS>().0;
    for (blocks, out) in cuts.iter().zip(out.as_chunks_mut::<CUT_PLACES>().0) {
        let words: [__m256i; 2] = bytemuck::cast(*blocks);
        let middle = words.map(|words| _mm256_srli_epi64::<{ MIDDLE as i32 }>(words));
        let high = words.map(|words| _mm256_srli_epi64::<{ HIGH as i32 }>(words));
        let distances = [words, middle, high].map(|pieces| {
            let places = _mm256_and_si256(low_halves(pieces), mask);
            _mm256_sll_epi32(places, shift)
        });
        *out = bytemuck::cast(distances);
    }
}

/// The low halves of eight words, in their order.
#[inline]
#[target_feature(enable = "avx2")]
fn low_halves([a, b]: [__m256i; 2]) -> __m256i {
    // The instruction works on the two lanes of 128 bits separately: a0 a1 b0 b1 | a2 a3 b2 b3.
    let halves = _mm256_shuffle_ps::<0b10_00_10_00>(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(halves))
}

#[target_feature(enable = "avx2,avx512f")]
pub(crate) fn cut_wide(blocks: &[Block], mask: u32, shift: u32, out: &mut [u32]) {
    let mask = _mm256_set1_epi32(mask as i32);
    let shift = _mm_cvtsi32_si128(shift as i32);
    let cuts = blocks.as_chunks::<CUT_BLOCKS>().0;
    for (blocks, out) in cuts.iter().zip(out.as_chunks_mut::<CUT_PLACES>().0) {
        let words: __m512i = bytemuck::cast(*blocks);
        let pieces = [words, _mm512_srli_epi64::<MIDDLE>(words), _mm512_srli_epi64::<HIGH>(words)];
        let distances = pieces.map(|pieces| {
            let places = _mm256_and_si256(_mm512_cvtepi64_epi32(pieces), mask);
            _mm256_sll_epi32(places, shift)
        });
        *out = bytemuck::cast(distances);
    }
}
