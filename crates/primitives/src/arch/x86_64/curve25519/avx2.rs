//! Arithmetic modulo 2^255 - 19, four elements at once, with the 32-bit multipliers of AVX2.
//!
//! An element is ten limbs of 26 and 25 bits by turns: limb `i` has the weight 2^ceil(25.5 i), as
//! in Bernstein, *Curve25519: new Diffie-Hellman speed records*, PKC 2006; with vectors: Bernstein,
//! Schwabe, *NEON crypto*, CHES 2012, and Chou, *Sandy2x*, SAC 2015. Functions take and return
//! *reduced* limbs, below 2^26 + 2^18 and 2^25 + 2^18, except that [`add_lazy`] and [`sub_lazy`]
//! return limbs up to three times as large, which [`mul`], [`square`], [`add`] and the first
//! operand of [`sub`] also accept. A value has several such forms; [`canonical`] gives the one
//! below the modulus.

use std::arch::x86_64::*;

use bytemuck::{Pod, Zeroable};

use super::Mask;
use super::constants::Limbs;

/// Elements in a vector.
pub(crate) const LANES: usize = 4;

const EVEN_BITS: i32 = 26;
const ODD_BITS: i32 = 25;

/// Four elements; limb `i` of all of them in vector `i`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Field([__m256i; 10]);

/// Twice the modulus, with limbs no less than those of any reduced element.
const TWICE_P: [i64; 10] = {
    let (even, odd) = ((1 << 27) - 2, (1 << 26) - 2);
    [even - 36, odd, even, odd, even, odd, even, odd, even, odd]
};

/// The same element in all lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn constant(limbs: &Limbs) -> Field {
    from_limbs(limbs.map(|limb| [limb; LANES]))
}

/// The elements with these limbs of 51 bits, each below 2^51 + 2^18.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn from_limbs(limbs: [[u64; LANES]; 5]) -> Field {
    let mut split = [_mm256_setzero_si256(); 10];
    for (split, limb) in split.as_chunks_mut::<2>().0.iter_mut().zip(limbs) {
        let limb = bytemuck::cast(limb);
        *split = [_mm256_and_si256(limb, mask(EVEN_BITS)), _mm256_srli_epi64::<EVEN_BITS>(limb)];
    }
    Field(split)
}

/// Limbs of 51 bits, each below 2^52, of reduced elements.
#[target_feature(enable = "avx2")]
pub(crate) fn limbs(x: &Field) -> [[u64; LANES]; 5] {
    let mut limbs = [[0; LANES]; 5];
    for (limb, [low, high]) in limbs.iter_mut().zip(x.0.as_chunks().0) {
        *limb = bytemuck::cast(_mm256_add_epi64(*low, _mm256_slli_epi64::<EVEN_BITS>(*high)));
    }
    limbs
}

/// The limbs of 51 bits of the representatives below the modulus.
#[target_feature(enable = "avx2")]
pub(crate) fn canonical_limbs(x: &Field) -> [[u64; LANES]; 5] {
    limbs(&canonical(x))
}

/// The element of the first lane in all lanes.
#[target_feature(enable = "avx2")]
pub(crate) fn first(x: &Field) -> Field {
    Field(x.0.map(|limb| _mm256_permute4x64_epi64::<0>(limb)))
}

/// The lowest bits of a word.
#[inline]
#[target_feature(enable = "avx2")]
fn mask(bits: i32) -> __m256i {
    _mm256_set1_epi64x((1 << bits) - 1)
}

/// A limb without the bits above its own, and those bits.
#[inline]
#[target_feature(enable = "avx2")]
fn split(x: __m256i, limb: usize) -> [__m256i; 2] {
    if limb.is_multiple_of(2) {
        [_mm256_and_si256(x, mask(EVEN_BITS)), _mm256_srli_epi64::<EVEN_BITS>(x)]
    } else {
        [_mm256_and_si256(x, mask(ODD_BITS)), _mm256_srli_epi64::<ODD_BITS>(x)]
    }
}

/// `19*x`, for any `x` of which the product fits into a word.
#[inline]
#[target_feature(enable = "avx2")]
fn times_19(x: __m256i) -> __m256i {
    let sum = _mm256_add_epi64(x, _mm256_add_epi64(x, x));
    _mm256_add_epi64(sum, _mm256_slli_epi64::<4>(x))
}

/// One round of carries, for limbs below 2^32.
#[inline]
#[target_feature(enable = "avx2")]
fn carry(x: [__m256i; 10]) -> Field {
    let mut low = x;
    let mut high = x;
    for i in 0..10 {
        [low[i], high[i]] = split(x[i], i);
    }
    low[0] = _mm256_add_epi64(low[0], times_19(high[9]));
    for i in 1..10 {
        low[i] = _mm256_add_epi64(low[i], high[i - 1]);
    }
    Field(low)
}

/// Reduces limbs below 2^63: two chains of carries side by side, from limbs 0 and 5 to 5 and 0, and
/// one limb further.
#[inline]
#[target_feature(enable = "avx2")]
fn carry_all(mut x: [__m256i; 10]) -> Field {
    carry_from::<0>(&mut x);
    carry_from::<5>(&mut x);
    carry_from::<1>(&mut x);
    carry_from::<6>(&mut x);
    carry_from::<2>(&mut x);
    carry_from::<7>(&mut x);
    carry_from::<3>(&mut x);
    carry_from::<8>(&mut x);
    carry_from::<4>(&mut x);
    carry_from::<9>(&mut x);
    carry_from::<5>(&mut x);
    carry_from::<0>(&mut x);
    Field(x)
}

/// Carries from limb `I` to the next one.
#[inline]
#[target_feature(enable = "avx2")]
fn carry_from<const I: usize>(x: &mut [__m256i; 10]) {
    let [low, high] = split(x[I], I);
    x[I] = low;
    let high = if I == 9 { times_19(high) } else { high };
    x[(I + 1) % 10] = _mm256_add_epi64(x[(I + 1) % 10], high);
}

/// `a + b`.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn add(a: &Field, b: &Field) -> Field {
    carry(add_lazy(a, b).0)
}

/// `a - b`; only `a` may have larger limbs.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn sub(a: &Field, b: &Field) -> Field {
    carry(sub_lazy(a, b).0)
}

/// `a + b` of reduced operands, not reduced.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn add_lazy(a: &Field, b: &Field) -> Field {
    let mut sum = a.0;
    for (sum, b) in sum.iter_mut().zip(b.0) {
        *sum = _mm256_add_epi64(*sum, b);
    }
    Field(sum)
}

/// `a - b` of reduced operands, not reduced.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn sub_lazy(a: &Field, b: &Field) -> Field {
    let mut difference = a.0;
    for ((difference, b), twice_p) in difference.iter_mut().zip(b.0).zip(TWICE_P) {
        let sum = _mm256_add_epi64(*difference, _mm256_set1_epi64x(twice_p));
        *difference = _mm256_sub_epi64(sum, b);
    }
    Field(difference)
}

/// `a*b`.
///
/// The product of limbs `i` and `j` has the weight of limb `i + j`, twice that if both are odd, and
/// 19 times that of limb `i + j - 10`. With limbs of three times their bounds the factors of 19
/// are below 2^32 and the sums below 2^63.
///
/// Not inlined: where the compiler sees the origin of the limbs, it drops the masks that tell it
/// that a multiplication of halves is enough, and makes three of them.
#[inline(never)]
#[target_feature(enable = "avx2")]
pub(crate) fn mul(a: &Field, b: &Field) -> Field {
    let mut wrapped = b.0;
    for limb in &mut wrapped {
        *limb = _mm256_mullo_epi32(*limb, _mm256_set1_epi64x(19));
    }
    let mut sums = [_mm256_setzero_si256(); 10];
    add_row::<0>(&mut sums, a, b, &wrapped);
    add_row::<1>(&mut sums, a, b, &wrapped);
    add_row::<2>(&mut sums, a, b, &wrapped);
    add_row::<3>(&mut sums, a, b, &wrapped);
    add_row::<4>(&mut sums, a, b, &wrapped);
    add_row::<5>(&mut sums, a, b, &wrapped);
    add_row::<6>(&mut sums, a, b, &wrapped);
    add_row::<7>(&mut sums, a, b, &wrapped);
    add_row::<8>(&mut sums, a, b, &wrapped);
    add_row::<9>(&mut sums, a, b, &wrapped);
    carry_all(sums)
}

/// Adds the products of limb `I` of `a`.
#[inline]
#[target_feature(enable = "avx2")]
fn add_row<const I: usize>(
    sums: &mut [__m256i; 10],
    a: &Field,
    b: &Field,
    wrapped: &[__m256i; 10],
) {
    let once = a.0[I];
    let twice = _mm256_add_epi64(once, once);
    for j in 0..10 {
        let left = if I % 2 == 1 && j % 2 == 1 { twice } else { once };
        let right = if I + j < 10 { b.0[j] } else { wrapped[j] };
        let sum = &mut sums[(I + j) % 10];
        *sum = _mm256_add_epi64(*sum, _mm256_mul_epu32(left, right));
    }
}

/// `a^2`.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn square(a: &Field) -> Field {
    // Limb by limb: a copy of the whole would be a call.
    let [a0, a1, a2, a3, a4, a5, a6, a7, a8, a9] = a.0;
    let mut square = Field([a0, a1, a2, a3, a4, a5, a6, a7, a8, a9]);
    square_in_place(&mut square);
    square
}

/// Squares an element where it is, with the products of unequal limbs counted twice.
#[inline(never)]
#[target_feature(enable = "avx2")]
pub(crate) fn square_in_place(a: &mut Field) {
    let mut wrapped = a.0;
    for limb in &mut wrapped[5..] {
        *limb = _mm256_mullo_epi32(*limb, _mm256_set1_epi64x(19));
    }
    let mut sums = [_mm256_setzero_si256(); 10];
    add_square_row::<0>(&mut sums, a, &wrapped);
    add_square_row::<1>(&mut sums, a, &wrapped);
    add_square_row::<2>(&mut sums, a, &wrapped);
    add_square_row::<3>(&mut sums, a, &wrapped);
    add_square_row::<4>(&mut sums, a, &wrapped);
    add_square_row::<5>(&mut sums, a, &wrapped);
    add_square_row::<6>(&mut sums, a, &wrapped);
    add_square_row::<7>(&mut sums, a, &wrapped);
    add_square_row::<8>(&mut sums, a, &wrapped);
    add_square_row::<9>(&mut sums, a, &wrapped);
    *a = carry_all(sums);
}

/// Adds the products of limb `I` and the limbs from it on.
#[inline]
#[target_feature(enable = "avx2")]
fn add_square_row<const I: usize>(sums: &mut [__m256i; 10], a: &Field, wrapped: &[__m256i; 10]) {
    let once = a.0[I];
    let twice = _mm256_add_epi64(once, once);
    let four_times = _mm256_add_epi64(twice, twice);
    for j in I..10 {
        let left = match (j == I, I % 2 == 1 && j % 2 == 1) {
            (true, false) => once,
            (true, true) | (false, false) => twice,
            (false, true) => four_times,
        };
        let right = if I + j < 10 { a.0[j] } else { wrapped[j] };
        let sum = &mut sums[(I + j) % 10];
        *sum = _mm256_add_epi64(*sum, _mm256_mul_epu32(left, right));
    }
}

/// `if_set` in the lanes of the mask, `otherwise` in the rest.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn select(mask: Mask, otherwise: &Field, if_set: &Field) -> Field {
    select_of(&[mask], &[if_set], otherwise)
}

/// In each lane the element of the mask that has it, or `otherwise`.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn select_of<const N: usize>(
    masks: &[Mask; N],
    elements: &[&Field; N],
    otherwise: &Field,
) -> Field {
    let bits = _mm256_set_epi64x(8, 4, 2, 1);
    let mut lanes = [bits; N];
    for (lanes, mask) in lanes.iter_mut().zip(masks) {
        let set = _mm256_and_si256(_mm256_set1_epi64x((*mask).into()), bits);
        *lanes = _mm256_cmpeq_epi64(set, bits);
    }
    let mut selected = otherwise.0;
    for (i, selected) in selected.iter_mut().enumerate() {
        for (lanes, element) in lanes.iter().zip(elements) {
            *selected = _mm256_blendv_epi8(*selected, element.0[i], *lanes);
        }
    }
    Field(selected)
}

/// The limbs of the representative below the modulus.
#[inline]
#[target_feature(enable = "avx2")]
fn canonical(x: &Field) -> Field {
    // Another round leaves a value below twice the modulus.
    let mut x = carry(x.0).0;
    // Tests whether it is at least the modulus: then adding 19 carries out of the top.
    let mut quotient = _mm256_set1_epi64x(19);
    for (i, limb) in x.into_iter().enumerate() {
        quotient = split(_mm256_add_epi64(limb, quotient), i)[1];
    }
    let mut over = times_19(quotient);
    for (i, limb) in x.iter_mut().enumerate() {
        [*limb, over] = split(_mm256_add_epi64(*limb, over), i);
    }
    Field(x)
}

/// The lanes whose word is set in all bits or in none.
#[inline]
#[target_feature(enable = "avx2")]
fn lanes(words: __m256i) -> Mask {
    _mm256_movemask_pd(_mm256_castsi256_pd(words)) as Mask
}

/// The lanes whose element is zero.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn is_zero(x: &Field) -> Mask {
    let mut any = _mm256_setzero_si256();
    for limb in canonical(x).0 {
        any = _mm256_or_si256(any, limb);
    }
    lanes(_mm256_cmpeq_epi64(any, _mm256_setzero_si256()))
}

/// Whether the representative below the modulus is odd (negative in RFC 9496).
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn is_negative(x: &Field) -> Mask {
    lanes(_mm256_slli_epi64::<63>(canonical(x).0[0]))
}

/// The lanes whose word is `value`.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn equal_words(words: &[u64; LANES], value: u64) -> Mask {
    lanes(_mm256_cmpeq_epi64(bytemuck::cast(*words), _mm256_set1_epi64x(value as i64)))
}
