//! Indices cut from random words, and the sums of what they name.

use crate::Block;
use crate::gather::{CUT_BLOCKS, CUT_INDICES, INDEX_BITS};

pub(crate) fn cut_indices(blocks: &[Block], out: &mut [u32]) {
    let words: &[u64] = bytemuck::cast_slice(blocks);
    let words = words.as_chunks::<{ 2 * CUT_BLOCKS }>().0;
    for (words, out) in words.iter().zip(out.as_chunks_mut::<CUT_INDICES>().0) {
        for (piece, out) in (0..).zip(out.as_chunks_mut::<8>().0) {
            for (out, word) in out.iter_mut().zip(words) {
                *out = (word >> (INDEX_BITS * piece)) as u32;
            }
        }
    }
}

#[cfg_attr(
    target_arch = "x86_64",
    allow(dead_code, reason = "the twin that tests compare with")
)]
pub(crate) fn sum_columns<const WEIGHT: usize>(
    table: &[Block],
    columns: &[[u32; WEIGHT]],
    out: &mut [Block],
) {
    for (out, column) in out.iter_mut().zip(columns) {
        *out = column.iter().fold(Block::ZERO, |sum, index| {
            sum ^ table[*index as usize & (table.len() - 1)]
        });
    }
}
