//! Carry-less multiplication with PCLMULQDQ.

use std::arch::x86_64::*;

/// The low 128 coefficients, the 128 from 64 on, and the 128 from 128 on, to be added at those
/// positions: an unreduced product that can be summed.
type Product = [__m128i; 3];

#[inline]
#[target_feature(enable = "pclmulqdq,avx2")]
fn mul_wide(a: __m128i, b: __m128i) -> Product {
    let middle =
        _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(a, b), _mm_clmulepi64_si128::<0x10>(a, b));
    [_mm_clmulepi64_si128::<0x00>(a, b), middle, _mm_clmulepi64_si128::<0x11>(a, b)]
}

/// The remainder modulo X^128 + X^7 + X^2 + X + 1.
#[inline]
#[target_feature(enable = "pclmulqdq,avx2")]
fn reduce([low, middle, high]: Product) -> __m128i {
    let low = _mm_xor_si128(low, _mm_slli_si128::<8>(middle));
    let high = _mm_xor_si128(high, _mm_srli_si128::<8>(middle));
    // X^128 = X^7 + X^2 + X + 1: fold the highest word to position 64, then the one below it, with
    // the overflow of the first fold, to position 0.
    let modulus = _mm_set_epi64x(0, 0x87);
    let top = _mm_clmulepi64_si128::<0x01>(high, modulus);
    let low = _mm_xor_si128(low, _mm_slli_si128::<8>(top));
    let high = _mm_xor_si128(high, _mm_srli_si128::<8>(top));
    _mm_xor_si128(low, _mm_clmulepi64_si128::<0x00>(high, modulus))
}

#[target_feature(enable = "pclmulqdq,avx2")]
pub(crate) fn mul(a: u128, b: u128) -> u128 {
    let product = mul_wide(bytemuck::cast(a), bytemuck::cast(b));
    bytemuck::cast(reduce(product))
}

#[target_feature(enable = "pclmulqdq,avx2")]
pub(crate) fn axpy(acc: &mut [u128], s: u128, x: &[u128]) {
    for (acc, &x) in acc.iter_mut().zip(x) {
        *acc ^= mul(s, x);
    }
}

/// By Karatsuba's method.
#[target_feature(enable = "pclmulqdq,avx2")]
pub(crate) fn inner_product(a: &[u128], b: &[u128]) -> u128 {
    let mut sum: Product = bytemuck::Zeroable::zeroed();
    for (&a, &b) in a.iter().zip(b) {
        let (a, b): (__m128i, __m128i) = (bytemuck::cast(a), bytemuck::cast(b));
        let halves = |x| _mm_xor_si128(x, _mm_shuffle_epi32::<0b01_00_11_10>(x));
        let products = [
            _mm_clmulepi64_si128::<0x00>(a, b),
            _mm_clmulepi64_si128::<0x00>(halves(a), halves(b)),
            _mm_clmulepi64_si128::<0x11>(a, b),
        ];
        for (sum, product) in sum.iter_mut().zip(products) {
            *sum = _mm_xor_si128(*sum, product);
        }
    }
    let [low, middle, high] = sum;
    let middle = _mm_xor_si128(middle, _mm_xor_si128(low, high));
    bytemuck::cast(reduce([low, middle, high]))
}

#[target_feature(enable = "pclmulqdq,avx2")]
pub(crate) fn combine<const N: usize>(columns: [&[u128]; N], weights: [u128; N], out: &mut [u128]) {
    let columns = columns.map(|column| &column[..out.len()]);
    for (j, out) in out.iter_mut().enumerate() {
        let mut sum: Product = bytemuck::Zeroable::zeroed();
        for (column, weight) in columns.iter().zip(weights) {
            let product = mul_wide(bytemuck::cast(column[j]), bytemuck::cast(weight));
            for (sum, product) in sum.iter_mut().zip(product) {
                *sum = _mm_xor_si128(*sum, product);
            }
        }
        *out = bytemuck::cast(reduce(sum));
    }
}

#[target_feature(enable = "pclmulqdq,avx2")]
pub(crate) fn add_products<const N: usize>(a: [&[u128]; N], b: [&[u128]; N], out: &mut [u128]) {
    let (a, b) = (a.map(|a| &a[..out.len()]), b.map(|b| &b[..out.len()]));
    for (j, out) in out.iter_mut().enumerate() {
        let mut sum: Product = bytemuck::Zeroable::zeroed();
        for (a, b) in a.iter().zip(&b) {
            let product = mul_wide(bytemuck::cast(a[j]), bytemuck::cast(b[j]));
            for (sum, product) in sum.iter_mut().zip(product) {
                *sum = _mm_xor_si128(*sum, product);
            }
        }
        let sum: u128 = bytemuck::cast(reduce(sum));
        *out ^= sum;
    }
}
