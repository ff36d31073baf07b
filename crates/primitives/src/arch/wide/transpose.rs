//! Bit-matrix transposition, two groups of 128 columns at a time, one in each half of a vector.
//!
//! Write a row number in binary as `hhhh lll`, a column number as `bbbb kkk`: bit `k` of byte `b`.
//! First, for each `l`, the sixteen rows `h` are a square of bytes, which is transposed: `h` and
//! `b` are exchanged. Then, for each `b`, the eight vectors `l` hold squares of eight by eight
//! bits, which are transposed: `l` and `k` are exchanged. Bit `bbbb kkk` of row `hhhh lll` is now
//! bit `hhhh lll` of row `bbbb kkk`.

use crate::arch::native::bytes::*;

/// Halves of a vector.
const LANES: usize = size_of::<Vector>() / 16;

/// Transposes `out.len()` columns. Lengths are as in the portable kernel.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
pub(crate) fn transpose_128(rows: &[u128], stride: usize, out: &mut [u128]) {
    // Index 8b + l: the vector l of square b.
    let mut half_done: [Vector; 128] = [bytemuck::Zeroable::zeroed(); 128];
    for (group, out) in out.chunks_mut(128 * LANES).enumerate() {
        let lanes = out.len() / 128;
        for l in 0..8 {
            let mut square = [bytemuck::Zeroable::zeroed(); 16];
            for (h, row) in square.iter_mut().enumerate() {
                let start = (8 * h + l) * stride + group * LANES;
                *row = load(&rows[start..start + lanes]);
            }
            let square = transpose_bytes(square);
            for (b, row) in square.into_iter().enumerate() {
                half_done[8 * b + l] = row;
            }
        }
        for (b, square) in half_done.as_chunks::<8>().0.iter().enumerate() {
            let square: [[u128; LANES]; 8] = bytemuck::cast(transpose_bits(*square));
            for (lane, out) in out.as_chunks_mut::<128>().0.iter_mut().enumerate() {
                for (k, row) in square.iter().enumerate() {
                    out[8 * b + k] = row[lane];
                }
            }
        }
    }
}

/// One block in each half; fewer at the right edge of the matrix.
#[inline]
fn load(blocks: &[u128]) -> Vector {
    if let Ok(full) = <[u128; LANES]>::try_from(blocks) {
        return bytemuck::cast(full);
    }
    let mut padded = [0; LANES];
    padded[..blocks.len()].copy_from_slice(blocks);
    bytemuck::cast(padded)
}

/// Transposes a square of 16 rows of 16 bytes in each half.
///
/// One round interleaves the bytes of vectors `i` and `i + 8`: it rotates the eight bits of (row,
/// byte) by one. Four rounds exchange row and byte.
#[inline]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
pub(super) fn transpose_bytes(mut x: [Vector; 16]) -> [Vector; 16] {
    for _ in 0..4 {
        let mut next = x;
        for i in 0..8 {
            [next[2 * i], next[2 * i + 1]] = interleaved(x[i], x[i + 8]);
        }
        x = next;
    }
    x
}

/// Transposes, at each byte position, the square of 8 vectors by 8 bits.
#[inline]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
fn transpose_bits(mut x: [Vector; 8]) -> [Vector; 8] {
    for i in 0..4 {
        exchange::<4>(&mut x, i, i + 4, fill(0x0f));
    }
    for i in [0, 1, 4, 5] {
        exchange::<2>(&mut x, i, i + 2, fill(0x33));
    }
    for i in [0, 2, 4, 6] {
        exchange::<1>(&mut x, i, i + 1, fill(0x55));
    }
    x
}

/// Exchanges the high bits of each group of `2 * SIZE` bits of one vector with the low bits of the
/// other.
#[inline]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
fn exchange<const SIZE: i32>(x: &mut [Vector; 8], upper: usize, lower: usize, low_bits: Vector) {
    let exchanged = and(xor(right::<SIZE>(x[upper]), x[lower]), low_bits);
    x[upper] = xor(x[upper], left::<SIZE>(exchanged));
    x[lower] = xor(x[lower], exchanged);
}
