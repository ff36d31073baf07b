//! The lowest bits of blocks, packed: eight added up in one instruction.

use std::arch::aarch64::*;

use crate::Block;
use crate::arch::portable;

#[target_feature(enable = "neon")]
pub(crate) fn lowest_bits(blocks: &[Block], out: &mut [u8]) {
    let (eights, rest) = blocks.as_chunks::<8>();
    let (bytes, last) = out.split_at_mut(eights.len());
    let weights: uint16x8_t = bytemuck::cast([1u16, 2, 4, 8, 16, 32, 64, 128]);
    for (byte, eight) in bytes.iter_mut().zip(eights) {
        let [a, b, c, d, e, f, g, h]: [uint32x4_t; 8] = bytemuck::cast(*eight);
        let quarters = [low_quarters([a, b, c, d]), low_quarters([e, f, g, h])];
        let [low, high] = quarters.map(|quarters| vreinterpretq_u16_u32(quarters));
        // A bit that is set gives a number with all bits set.
        let set = vtstq_u16(vuzp1q_u16(low, high), vdupq_n_u16(1));
        *byte = vaddvq_u16(vandq_u16(set, weights)) as u8;
    }
    portable::bits::lowest_bits(rest, last);
}

/// The lowest quarter of each of four blocks.
#[inline]
#[target_feature(enable = "neon")]
fn low_quarters([a, b, c, d]: [uint32x4_t; 4]) -> uint32x4_t {
    vuzp1q_u32(vuzp1q_u32(a, b), vuzp1q_u32(c, d))
}
