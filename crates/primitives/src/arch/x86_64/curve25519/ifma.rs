//! Arithmetic modulo 2^255 - 19, eight elements at once, with the 52-bit multipliers of AVX-512.
//!
//! An element is five limbs of 51 bits. Every function takes and returns limbs below 2^51 + 2^15:
//! the multipliers read 52 bits, so they accept such limbs, and one round of carries after each
//! operation restores the bound. A value has several such forms; [`canonical`] gives the one below
//! the modulus.

use std::arch::x86_64::*;

use bytemuck::{Pod, Zeroable};

use super::Mask;
use super::constants::{LIMB_BITS, LIMB_MASK, Limbs};

/// Elements in a vector.
pub(crate) const LANES: usize = 8;

/// Eight elements; limb `i` of all of them in vector `i`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Field([__m512i; 5]);

/// Twice the modulus, with limbs no less than those of any element.
const TWICE_P: Limbs = [(1 << 52) - 38, (1 << 52) - 2, (1 << 52) - 2, (1 << 52) - 2, (1 << 52) - 2];

/// The same element in all lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn constant(limbs: &Limbs) -> Field {
    Field(limbs.map(|limb| _mm512_set1_epi64(limb as i64)))
}

/// The element of the first lane in all lanes.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn first(x: &Field) -> Field {
    let zero = _mm512_setzero_si512();
    Field(x.0.map(|limb| _mm512_permutexvar_epi64(zero, limb)))
}

/// One round of carries. Limbs may have any 64 bits, except the top one, which is below 2^61: its
/// carry comes back 19 times.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
fn carry(x: [__m512i; 5]) -> Field {
    let mask = _mm512_set1_epi64(LIMB_MASK as i64);
    let high = x.map(|limb| _mm512_srli_epi64::<LIMB_BITS>(limb));
    let mut low = x.map(|limb| _mm512_and_si512(limb, mask));
    for i in 0..4 {
        low[i + 1] = _mm512_add_epi64(low[i + 1], high[i]);
    }
    low[0] = _mm512_madd52lo_epu64(low[0], high[4], _mm512_set1_epi64(19));
    Field(low)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn add(a: &Field, b: &Field) -> Field {
    let mut sum = a.0;
    for (sum, b) in sum.iter_mut().zip(b.0) {
        *sum = _mm512_add_epi64(*sum, b);
    }
    carry(sum)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn sub(a: &Field, b: &Field) -> Field {
    let mut difference = a.0;
    let twice_p = constant(&TWICE_P).0;
    for ((difference, b), twice_p) in difference.iter_mut().zip(b.0).zip(twice_p) {
        *difference = _mm512_sub_epi64(_mm512_add_epi64(*difference, twice_p), b);
    }
    carry(difference)
}

/// A sum of which only products are made. The AVX2 form of this function leaves larger limbs.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn add_lazy(a: &Field, b: &Field) -> Field {
    add(a, b)
}

/// A difference of which only products are made, as [`add_lazy`].
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn sub_lazy(a: &Field, b: &Field) -> Field {
    sub(a, b)
}

/// The sum of `low[k]*2^(51k)` and `high[k]*2^(51k + 52)`, the limbs from 5 on folded down: 2^255 =
/// 19.
///
/// The upper half of a product of 52 bits has twice the weight of the next limb.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
fn fold(low: [__m512i; 9], high: [__m512i; 9]) -> Field {
    let nineteen = _mm512_set1_epi64(19);
    let twice = high.map(|high| _mm512_add_epi64(high, high));
    let mut sums = [_mm512_setzero_si512(); 10];
    sums[..9].copy_from_slice(&low);
    for k in 0..9 {
        sums[k + 1] = _mm512_add_epi64(sums[k + 1], twice[k]);
    }
    let mut folded = [_mm512_setzero_si512(); 5];
    for k in 0..5 {
        folded[k] = _mm512_add_epi64(sums[k], _mm512_mullo_epi64(sums[k + 5], nineteen));
    }
    carry(folded)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn mul(a: &Field, b: &Field) -> Field {
    let (a, b) = (&a.0, &b.0);
    let mut low = [_mm512_setzero_si512(); 9];
    let mut high = low;
    for i in 0..5 {
        for j in 0..5 {
            low[i + j] = _mm512_madd52lo_epu64(low[i + j], a[i], b[j]);
            high[i + j] = _mm512_madd52hi_epu64(high[i + j], a[i], b[j]);
        }
    }
    fold(low, high)
}

/// Squares an element where it is.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn square_in_place(a: &mut Field) {
    *a = square(a);
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn square(a: &Field) -> Field {
    let a = &a.0;
    // The products of unequal limbs count twice.
    let mut low = [_mm512_setzero_si512(); 9];
    let mut high = low;
    for i in 0..5 {
        for j in i + 1..5 {
            low[i + j] = _mm512_madd52lo_epu64(low[i + j], a[i], a[j]);
            high[i + j] = _mm512_madd52hi_epu64(high[i + j], a[i], a[j]);
        }
    }
    low = low.map(|low| _mm512_add_epi64(low, low));
    high = high.map(|high| _mm512_add_epi64(high, high));
    for i in 0..5 {
        low[2 * i] = _mm512_madd52lo_epu64(low[2 * i], a[i], a[i]);
        high[2 * i] = _mm512_madd52hi_epu64(high[2 * i], a[i], a[i]);
    }
    fold(low, high)
}

/// `if_set` in the lanes of the mask, `otherwise` in the rest.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn select(mask: Mask, otherwise: &Field, if_set: &Field) -> Field {
    select_of(&[mask], &[if_set], otherwise)
}

/// In each lane the element of the mask that has it, or `otherwise`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn select_of<const N: usize>(
    masks: &[Mask; N],
    elements: &[&Field; N],
    otherwise: &Field,
) -> Field {
    let mut selected = otherwise.0;
    for (i, selected) in selected.iter_mut().enumerate() {
        for (mask, element) in masks.iter().zip(elements) {
            *selected = _mm512_mask_blend_epi64(*mask, *selected, element.0[i]);
        }
    }
    Field(selected)
}

/// The limbs of the representative below the modulus, each of 51 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
fn canonical(x: &Field) -> Field {
    let mask = _mm512_set1_epi64(LIMB_MASK as i64);
    // A second round leaves limbs of at most 2^51 + 18, and so a value below twice the modulus.
    let mut x = carry(x.0).0;
    // Tests whether it is at least the modulus: then adding 19 carries out of the top.
    let mut quotient = _mm512_set1_epi64(19);
    for limb in x {
        quotient = _mm512_srli_epi64::<LIMB_BITS>(_mm512_add_epi64(limb, quotient));
    }
    let mut over = _mm512_madd52lo_epu64(_mm512_setzero_si512(), quotient, _mm512_set1_epi64(19));
    for limb in &mut x {
        let sum = _mm512_add_epi64(*limb, over);
        over = _mm512_srli_epi64::<LIMB_BITS>(sum);
        *limb = _mm512_and_si512(sum, mask);
    }
    Field(x)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn is_zero(x: &Field) -> Mask {
    let any = canonical(x).0.into_iter();
    let any = any.fold(_mm512_setzero_si512(), |any, limb| _mm512_or_si512(any, limb));
    _mm512_testn_epi64_mask(any, any)
}

/// Whether the representative below the modulus is odd (negative in RFC 9496).
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn is_negative(x: &Field) -> Mask {
    _mm512_test_epi64_mask(canonical(x).0[0], _mm512_set1_epi64(1))
}

/// The elements with these limbs, which are within the bounds.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn from_limbs(limbs: [[u64; LANES]; 5]) -> Field {
    bytemuck::cast(limbs)
}

/// Limbs of the elements.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn limbs(x: &Field) -> [[u64; LANES]; 5] {
    bytemuck::cast(*x)
}

/// The limbs of the representatives below the modulus.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn canonical_limbs(x: &Field) -> [[u64; LANES]; 5] {
    bytemuck::cast(canonical(x))
}

/// The lanes whose word is `value`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn equal_words(words: &[u64; LANES], value: u64) -> Mask {
    _mm512_cmpeq_epi64_mask(bytemuck::cast(*words), _mm512_set1_epi64(value as i64))
}
