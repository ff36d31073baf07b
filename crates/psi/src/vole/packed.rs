//! Blocks of fewer than 128 bits, one after the other without gaps.

use volery_primitives::Block;

/// Bytes of `count` blocks of `bits` bits.
pub(crate) fn bytes(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// Writes the lowest `bits` bits of each block, at most 121; `out` is overwritten and gets their
/// length.
pub(crate) fn pack(blocks: &[Block], bits: u32, out: &mut Vec<u8>) {
    out.clear();
    // Each block is added as a whole word that may reach beyond the end.
    out.resize(bytes(blocks.len(), bits) + 16, 0);
    for (number, &block) in blocks.iter().enumerate() {
        let at = number * bits as usize;
        let place = out[at / 8..].first_chunk_mut().expect("16 bytes beyond");
        let word = (u128::from(block) & mask(bits)) << (at % 8);
        *place = (u128::from_le_bytes(*place) | word).to_le_bytes();
    }
    out.truncate(bytes(blocks.len(), bits));
}

/// Reads what [`pack`] wrote. `packed` is followed by at least 16 bytes of any contents.
pub(crate) fn unpack(packed: &[u8], bits: u32, out: &mut [Block]) {
    for (number, block) in out.iter_mut().enumerate() {
        let at = number * bits as usize;
        let word = packed[at / 8..].first_chunk().expect("16 bytes beyond");
        *block = Block::new((u128::from_le_bytes(*word) >> (at % 8)) & mask(bits));
    }
}

/// The lowest `bits` bits.
pub(crate) fn mask(bits: u32) -> u128 {
    u128::MAX >> (128 - bits)
}
