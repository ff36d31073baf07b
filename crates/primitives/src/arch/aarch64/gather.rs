//! Indices cut with NEON.

use std::arch::aarch64::*;

use crate::Block;
use crate::gather::{CUT_BLOCKS, CUT_PLACES, PLACE_BITS};

const MIDDLE: i32 = PLACE_BITS as i32;
/// The highest piece begins at this bit of the upper half of a word.
const HIGH: i32 = 2 * PLACE_BITS as i32 - 32;

#[target_feature(enable = "neon")]
pub(crate) fn cut(blocks: &[Block], mask: u32, shift: u32, out: &mut [u32]) {
    // A shift by a variable is to the left, or to the right if it is negative.
    let shift = shift as i32;
    let (low, high) = (vdupq_n_s32(shift), vdupq_n_s32(shift - HIGH));
    let mask = vdupq_n_u32(mask << shift);
    let cuts = blocks.as_chunks::<CUT_BLOCKS>().0;
    for (blocks, out) in cuts.iter().zip(out.as_chunks_mut::<CUT_PLACES>().0) {
        let words: [[uint64x2_t; 2]; 2] = bytemuck::cast(*blocks);
        let mut distances = [[low_halves(words[0]); 2]; 3];
        for (i, [a, b]) in words.into_iter().enumerate() {
            let middle = vshrn_high_n_u64::<MIDDLE>(vshrn_n_u64::<MIDDLE>(a), b);
            distances[0][i] = vandq_u32(vshlq_u32(low_halves([a, b]), low), mask);
            distances[1][i] = vandq_u32(vshlq_u32(middle, low), mask);
            distances[2][i] = vandq_u32(vshlq_u32(high_halves([a, b]), high), mask);
        }
        *out = bytemuck::cast(distances);
    }
}

/// The low halves of four words.
#[inline]
#[target_feature(enable = "neon")]
fn low_halves([a, b]: [uint64x2_t; 2]) -> uint32x4_t {
    vuzp1q_u32(vreinterpretq_u32_u64(a), vreinterpretq_u32_u64(b))
}

/// The high halves of four words.
#[inline]
#[target_feature(enable = "neon")]
fn high_halves([a, b]: [uint64x2_t; 2]) -> uint32x4_t {
    vuzp2q_u32(vreinterpretq_u32_u64(a), vreinterpretq_u32_u64(b))
}
