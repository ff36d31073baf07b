//! Blocks truncated to their first bytes on the wire.

use volery_primitives::Block;

/// The first bytes of a block, padded with zeros.
#[inline]
pub(crate) fn cut(block: Block, bytes: usize) -> Block {
    block & Block::new(u128::MAX >> (128 - 8 * bytes))
}

/// The first `bytes` bytes of each block, one after the other. `out` has exactly their length.
pub(crate) fn write_cut(blocks: impl Iterator<Item = Block>, bytes: usize, out: &mut [u8]) {
    if bytes == 16 {
        for (out, block) in out.as_chunks_mut().0.iter_mut().zip(blocks) {
            *out = block.to_bytes();
        }
        return;
    }
    let mut rest = out;
    for block in blocks {
        let block = block.to_bytes();
        // The next block overwrites the excess bytes: a copy of a fixed length is a single
        // instruction.
        match rest.first_chunk_mut() {
            Some(out) => *out = block,
            None => rest[..bytes].copy_from_slice(&block[..bytes]),
        }
        rest = rest.split_off_mut(bytes..).unwrap_or_default();
    }
}

/// Block number `index` of those written by [`write_cut`].
///
/// # Panics
/// If there is none.
#[inline]
pub(crate) fn read_cut(written: &[u8], bytes: usize, index: usize) -> Block {
    let rest = &written[bytes * index..];
    match rest.first_chunk() {
        Some(block) => cut(Block::from_bytes(*block), bytes),
        None => {
            let mut block = [0; 16];
            block[..bytes].copy_from_slice(&rest[..bytes]);
            Block::from_bytes(block)
        }
    }
}
