//! Masks from packed bits (low bit first), matrices of rows, and other helpers shared by the
//! modules of this crate.

use subtle::ConstantTimeEq;
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

/// Bytes that hold `n` packed bits.
pub(crate) fn bytes_for(n: usize) -> usize {
    n.div_ceil(8)
}

/// All ones if bit `j` of the packed `bits` is set, else zero.
pub(crate) fn mask(bits: &[u8], j: usize) -> Block {
    let bit = (bits[j / 8] >> (j % 8)) & 1;
    Block::from(0u128.wrapping_sub(u128::from(bit)))
}

/// `v + d*delta` for the packed bits `d`, without branching on them.
pub(crate) fn correct(delta: Block, v: &mut [Block], d: &[u8]) {
    for (j, v) in v.iter_mut().enumerate() {
        *v ^= delta & mask(d, j);
    }
}

/// `acc + x`.
pub(crate) fn xor_blocks(acc: &mut [Block], x: &[Block]) {
    for (acc, x) in acc.iter_mut().zip(x) {
        *acc ^= *x;
    }
}

/// The caller's `delta`, or a random one; never zero.
///
/// # Panics
/// If the caller's `delta` is zero.
pub(crate) fn delta_or_random(delta: Option<Block>, rng: &mut Prg) -> Zeroizing<Block> {
    // no mutant: this party's own secret
    let is_zero = |delta: &Block| bool::from(delta.ct_eq(&Block::ZERO));
    if let Some(delta) = delta {
        assert!(!is_zero(&delta), "delta must not be zero");
        return Zeroizing::new(delta);
    }
    loop {
        let delta = Zeroizing::new(rng.block());
        if !is_zero(&delta) {
            return delta;
        }
    }
}

/// The distance between the starts of a matrix's rows, for rows of `row_blocks` blocks: an odd
/// number of cache lines, so that the rows, which the transposition reads at one column, lie in
/// different cache sets.
pub(crate) fn stride(row_blocks: usize) -> usize {
    (row_blocks.div_ceil(4) | 1) * 4
}

/// Resizes a matrix to `blocks` blocks, with arbitrary content. If it must move, the old memory is
/// wiped.
pub(crate) fn resize(matrix: &mut Zeroizing<Vec<Block>>, blocks: usize) {
    if blocks > matrix.capacity() {
        *matrix = Zeroizing::new(Vec::with_capacity(blocks));
    }
    matrix.resize(blocks, Block::ZERO);
}
