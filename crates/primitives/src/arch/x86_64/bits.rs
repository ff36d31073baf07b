//! The lowest bits of blocks, packed: eight per instruction that collects sign bits.

use std::arch::x86_64::*;

use crate::Block;
use crate::arch::portable;

#[target_feature(enable = "avx2")]
pub(crate) fn lowest_bits(blocks: &[Block], out: &mut [u8]) {
    let (eights, rest) = blocks.as_chunks::<8>();
    let (bytes, last) = out.split_at_mut(eights.len());
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (byte, eight) in bytes.iter_mut().zip(eights) {
        let [a, b, c, d]: [__m256i; 4] = bytemuck::cast(*eight);
        // The lowest quarters of blocks 0 2 4 6 in one lane and of 1 3 5 7 in the other.
        let quarters =
            _mm256_unpacklo_epi64(_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
        let quarters = _mm256_permutevar8x32_epi32(quarters, order);
        let signs = _mm256_castsi256_ps(_mm256_slli_epi32::<31>(quarters));
        *byte = _mm256_movemask_ps(signs) as u8;
    }
    portable::bits::lowest_bits(rest, last);
}
