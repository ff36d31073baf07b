//! Sums of products in GF(2^128) with VPCLMULQDQ on AVX-512, four elements at a time.

use std::arch::x86_64::*;

use super::clmul;

/// Elements in a vector.
const WIDTH: usize = 4;

/// The exclusive or of three, as an argument of VPTERNLOG.
const XOR: i32 = 0x96;

#[inline]
#[target_feature(enable = "avx512f")]
fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi64::<XOR>(a, b, c)
}

/// Elements of each column, one in each lane.
#[inline]
#[target_feature(enable = "vpclmulqdq,pclmulqdq,avx2,avx512f,avx512bw")]
fn combine_lanes<const N: usize>(columns: [__m512i; N], weights: &[__m512i; N]) -> __m512i {
    let mut low = _mm512_setzero_si512();
    let mut middle = _mm512_setzero_si512();
    let mut high = _mm512_setzero_si512();
    for (x, &weight) in columns.into_iter().zip(weights) {
        low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128::<0x00>(x, weight));
        middle = xor3(
            middle,
            _mm512_clmulepi64_epi128::<0x01>(x, weight),
            _mm512_clmulepi64_epi128::<0x10>(x, weight),
        );
        high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128::<0x11>(x, weight));
    }
    reduce([low, middle, high])
}

/// The remainder, as in `clmul`: X^128 = X^7 + X^2 + X + 1.
#[inline]
#[target_feature(enable = "vpclmulqdq,pclmulqdq,avx2,avx512f,avx512bw")]
fn reduce([mut low, middle, mut high]: [__m512i; 3]) -> __m512i {
    low = _mm512_xor_si512(low, _mm512_bslli_epi128::<8>(middle));
    high = _mm512_xor_si512(high, _mm512_bsrli_epi128::<8>(middle));
    let modulus = _mm512_set1_epi64(0x87);
    let top = _mm512_clmulepi64_epi128::<0x01>(high, modulus);
    low = _mm512_xor_si512(low, _mm512_bslli_epi128::<8>(top));
    high = _mm512_xor_si512(high, _mm512_bsrli_epi128::<8>(top));
    _mm512_xor_si512(low, _mm512_clmulepi64_epi128::<0x00>(high, modulus))
}

/// `out[j]` is the sum of `weights[i] * columns[i][j]`.
#[target_feature(enable = "vpclmulqdq,pclmulqdq,avx2,avx512f,avx512bw")]
pub(crate) fn combine<const N: usize>(columns: [&[u128]; N], weights: [u128; N], out: &mut [u128]) {
    let columns = columns.map(|column| column[..out.len()].as_chunks::<WIDTH>());
    let wide = weights.map(|weight| bytemuck::cast([weight; WIDTH]));
    let (chunks, rest) = out.as_chunks_mut::<WIDTH>();
    for (j, out) in chunks.iter_mut().enumerate() {
        // A loop, because the compiler does not inline a closure with its own instruction sets.
        let mut lanes = [_mm512_setzero_si512(); N];
        for (lane, (column, _)) in lanes.iter_mut().zip(&columns) {
            *lane = bytemuck::cast(column[j]);
        }
        *out = bytemuck::cast(combine_lanes(lanes, &wide));
    }
    clmul::combine(columns.map(|(_, rest)| rest), weights, rest);
}

/// In each lane the sum of the low and the high half, twice.
#[inline]
#[target_feature(enable = "avx512f")]
fn sum_of_halves(x: __m512i) -> __m512i {
    _mm512_xor_si512(x, _mm512_shuffle_epi32::<_MM_PERM_BADC>(x))
}

/// `out[j] += ` the sum of `a[i][j] * b[i][j]`.
///
/// # Panics
///
/// If the lengths differ.
#[target_feature(enable = "vpclmulqdq,pclmulqdq,avx2,avx512f,avx512bw")]
pub(crate) fn add_products<const N: usize>(a: [&[u128]; N], b: [&[u128]; N], out: &mut [u128]) {
    assert!(a.iter().chain(&b).all(|factors| factors.len() == out.len()));
    let whole = out.len() / WIDTH * WIDTH;
    for j in (0..whole).step_by(WIDTH) {
        // Karatsuba: multiplications are the bottleneck.
        let mut low = _mm512_setzero_si512();
        let mut middle = _mm512_setzero_si512();
        let mut high = _mm512_setzero_si512();
        for (a, b) in a.iter().zip(&b) {
            // SAFETY: both have the length of `out`, in which there are four elements from `j` on.
            let (a, b) = unsafe {
                let vector = |x: &[u128]| _mm512_loadu_si512(x.as_ptr().add(j).cast());
                (vector(a), vector(b))
            };
            low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128::<0x00>(a, b));
            high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128::<0x11>(a, b));
            let (a, b) = (sum_of_halves(a), sum_of_halves(b));
            middle = _mm512_xor_si512(middle, _mm512_clmulepi64_epi128::<0x00>(a, b));
        }
        let sums = reduce([low, xor3(low, middle, high), high]);
        let out = &mut out.as_chunks_mut::<WIDTH>().0[j / WIDTH];
        *out = bytemuck::cast(_mm512_xor_si512(sums, bytemuck::cast(*out)));
    }
    let (a, b) = (a.map(|a| &a[whole..]), b.map(|b| &b[whole..]));
    clmul::add_products(a, b, &mut out[whole..]);
}
