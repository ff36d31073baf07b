//! Vectors of 32 bytes for kernels on bytes: AVX2.

use std::arch::x86_64::*;

pub(crate) type Vector = __m256i;

/// Sixteen bytes.
pub(crate) type Half = __m128i;

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn xor(a: Vector, b: Vector) -> Vector {
    _mm256_xor_si256(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn xor_half(a: Half, b: Half) -> Half {
    _mm_xor_si128(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn and(a: Vector, b: Vector) -> Vector {
    _mm256_and_si256(a, b)
}

/// `b` without the bits of `a`.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn without(b: Vector, a: Vector) -> Vector {
    _mm256_andnot_si256(a, b)
}

/// The same byte in all places.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn fill(byte: u8) -> Vector {
    _mm256_set1_epi8(byte as i8)
}

/// The same bytes in both halves.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn repeated(half: Half) -> Vector {
    _mm256_broadcastsi128_si256(half)
}

/// The low four bits of each byte, and the high ones.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn nibbles(x: Vector) -> [Vector; 2] {
    let low = fill(0x0f);
    [and(x, low), and(_mm256_srli_epi16::<4>(x), low)]
}

/// In each half, the bytes of `table` at these places, which are below 16.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn lookup(table: Vector, places: Vector) -> Vector {
    _mm256_shuffle_epi8(table, places)
}

/// The smaller of `a - b`, or zero, and 8.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn distance_to_8(a: Vector, b: Vector) -> Vector {
    _mm256_min_epu8(_mm256_subs_epu8(a, b), fill(8))
}

/// Bytes of the two vectors by turns: those of the low words of each half, and of the high words.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn interleaved(a: Vector, b: Vector) -> [Vector; 2] {
    [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)]
}

/// The low half of each vector, and the high half.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn halves(a: Vector, b: Vector) -> [Vector; 2] {
    [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)]
}

/// Each word moved to the left.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn left<const BITS: i32>(x: Vector) -> Vector {
    _mm256_slli_epi64::<BITS>(x)
}

/// Each word moved to the right.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn right<const BITS: i32>(x: Vector) -> Vector {
    _mm256_srli_epi64::<BITS>(x)
}
