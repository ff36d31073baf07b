//! Indices cut from random words.

use crate::Block;
use crate::gather::{CUT_BLOCKS, CUT_PLACES, PLACE_BITS};

pub(crate) fn cut(blocks: &[Block], mask: u32, shift: u32, out: &mut [u32]) {
    let words: &[u64] = bytemuck::cast_slice(blocks);
    let words = words.as_chunks::<{ 2 * CUT_BLOCKS }>().0;
    for (words, out) in words.iter().zip(out.as_chunks_mut::<CUT_PLACES>().0) {
        for (piece, out) in (0..).zip(out.as_chunks_mut::<8>().0) {
            for (out, word) in out.iter_mut().zip(words) {
                *out = ((word >> (PLACE_BITS * piece)) as u32 & mask) << shift;
            }
        }
    }
}
