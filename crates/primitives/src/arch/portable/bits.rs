//! The lowest bits of blocks, packed.

use crate::Block;

pub(crate) fn lowest_bits(blocks: &[Block], out: &mut [u8]) {
    let (eights, rest) = blocks.as_chunks::<8>();
    let (bytes, last) = out.split_at_mut(eights.len());
    for (byte, eight) in bytes.iter_mut().zip(eights) {
        *byte = pack(eight);
    }
    if let [last] = last {
        *last = pack(rest);
    }
}

/// The lowest bits of up to eight blocks.
#[inline]
fn pack(blocks: &[Block]) -> u8 {
    blocks.iter().enumerate().fold(0, |byte, (i, block)| byte | u8::from(block.lsb()) << i)
}
