//! Vectors of 32 bytes for kernels on bytes: two registers of NEON, which every aarch64 has.

use std::arch::aarch64::*;

pub(crate) type Vector = [Half; 2];

/// Sixteen bytes.
pub(crate) type Half = uint8x16_t;

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn xor(a: Vector, b: Vector) -> Vector {
    [veorq_u8(a[0], b[0]), veorq_u8(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn xor_half(a: Half, b: Half) -> Half {
    veorq_u8(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn and(a: Vector, b: Vector) -> Vector {
    [vandq_u8(a[0], b[0]), vandq_u8(a[1], b[1])]
}

/// `b` without the bits of `a`.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn without(b: Vector, a: Vector) -> Vector {
    [vbicq_u8(b[0], a[0]), vbicq_u8(b[1], a[1])]
}

/// The same byte in all places.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn fill(byte: u8) -> Vector {
    [vdupq_n_u8(byte); 2]
}

/// The same bytes in both halves.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn repeated(half: Half) -> Vector {
    [half; 2]
}

/// The low four bits of each byte, and the high ones.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn nibbles(x: Vector) -> [Vector; 2] {
    [and(x, fill(0x0f)), [vshrq_n_u8::<4>(x[0]), vshrq_n_u8::<4>(x[1])]]
}

/// In each half, the bytes of `table` at these places, which are below 16.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn lookup(table: Vector, places: Vector) -> Vector {
    [vqtbl1q_u8(table[0], places[0]), vqtbl1q_u8(table[1], places[1])]
}

/// The smaller of `a - b`, or zero, and 8.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn distance_to_8(a: Vector, b: Vector) -> Vector {
    let most = vdupq_n_u8(8);
    [vminq_u8(vqsubq_u8(a[0], b[0]), most), vminq_u8(vqsubq_u8(a[1], b[1]), most)]
}

/// Bytes of the two vectors by turns: those of the low words of each half, and of the high words.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn interleaved(a: Vector, b: Vector) -> [Vector; 2] {
    [[vzip1q_u8(a[0], b[0]), vzip1q_u8(a[1], b[1])], [vzip2q_u8(a[0], b[0]), vzip2q_u8(a[1], b[1])]]
}

/// The low half of each vector, and the high half.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn halves(a: Vector, b: Vector) -> [Vector; 2] {
    [[a[0], b[0]], [a[1], b[1]]]
}

/// Each word moved to the left.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn left<const BITS: i32>(x: Vector) -> Vector {
    let words: [uint64x2_t; 2] = bytemuck::cast(x);
    bytemuck::cast([vshlq_n_u64::<BITS>(words[0]), vshlq_n_u64::<BITS>(words[1])])
}

/// Each word moved to the right.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn right<const BITS: i32>(x: Vector) -> Vector {
    let words: [uint64x2_t; 2] = bytemuck::cast(x);
    bytemuck::cast([vshrq_n_u64::<BITS>(words[0]), vshrq_n_u64::<BITS>(words[1])])
}
