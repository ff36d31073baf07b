//! Indices cut with AVX2; sums in vector registers, where plain Rust takes two of the others for a block.

use std::arch::x86_64::*;

use crate::Block;
use crate::gather::{CUT_BLOCKS, CUT_INDICES, INDEX_BITS};

const MIDDLE: i32 = INDEX_BITS as i32;
const HIGH: i32 = 2 * INDEX_BITS as i32;

#[target_feature(enable = "avx2")]
pub(crate) fn cut_indices(blocks: &[Block], out: &mut [u32]) {
    let cuts = blocks.as_chunks::<CUT_BLOCKS>().0;
    for (blocks, out) in cuts.iter().zip(out.as_chunks_mut::<CUT_INDICES>().0) {
        let words: [__m256i; 2] = bytemuck::cast(*blocks);
        let middle = words.map(|words| _mm256_srli_epi64::<MIDDLE>(words));
        let high = words.map(|words| _mm256_srli_epi64::<HIGH>(words));
        *out = bytemuck::cast([low_halves(words), low_halves(middle), low_halves(high)]);
    }
}

/// The low halves of eight words, in their order.
#[inline]
#[target_feature(enable = "avx2")]
fn low_halves([a, b]: [__m256i; 2]) -> __m256i {
    // Works on the two lanes of 128 bits apart: a0 a1 b0 b1 | a2 a3 b2 b3.
    let halves = _mm256_shuffle_ps::<0b10_00_10_00>(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(halves))
}

/// SSE2 is there on every x86-64.
#[inline]
pub(crate) fn sum_columns<const WEIGHT: usize>(
    table: &[Block],
    columns: &[[u32; WEIGHT]],
    out: &mut [Block],
) {
    let table: &[__m128i] = bytemuck::cast_slice(table);
    let out: &mut [__m128i] = bytemuck::cast_slice_mut(out);
    for (out, column) in out.iter_mut().zip(columns) {
        let mut sum: __m128i = bytemuck::Zeroable::zeroed();
        for index in column {
            // In this form the compiler sees that the index is in bounds.
            let entry = table[*index as usize & (table.len() - 1)];
            // SAFETY: x86-64 has SSE2.
            sum = unsafe { _mm_xor_si128(sum, entry) };
        }
        *out = sum;
    }
}
