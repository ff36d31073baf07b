//! Integers modulo `2^61 - 1` with AVX2, and with AVX-512, where IFMA multiplies words of 52 bits.

use std::arch::x86_64::*;

use crate::arch::portable;
use crate::mersenne::{MODULUS, reduce, reduce_wide};

/// Words in a vector of AVX-512.
const WIDTH: usize = 8;

/// Sums of the words at even and at odd positions, each at most `p + 7`.
#[inline(always)]
fn sides<const N: usize>(lanes: [u64; N]) -> [u64; 2] {
    let pairs = lanes.as_chunks::<2>().0;
    pairs.iter().fold([0; 2], |sums, pair| [reduce(sums[0] + pair[0]), reduce(sums[1] + pair[1])])
}

#[target_feature(enable = "avx2")]
pub(crate) fn reduce_sides(words: &[u64], out: &mut [u64]) -> [u64; 2] {
    const LANES: usize = 4;
    // p + 7 plus that many residues are below 2^64.
    const LAZY: usize = 4;
    let (chunks, words_rest) = words.as_chunks::<{ LAZY * LANES }>();
    let (out, out_rest) = out.as_chunks_mut::<{ LAZY * LANES }>();
    let modulus = _mm256_set1_epi64x(MODULUS as i64);
    let one = _mm256_set1_epi64x(1);
    let mut sums = _mm256_setzero_si256();
    for (words, out) in chunks.iter().zip(out) {
        let mut words: [__m256i; LAZY] = bytemuck::cast(*words);
        for word in &mut words {
            // As `reduce`.
            let low = _mm256_and_si256(*word, modulus);
            let folded = _mm256_add_epi64(low, _mm256_srli_epi64::<61>(*word));
            let carry = _mm256_srli_epi64::<61>(_mm256_add_epi64(folded, one));
            *word = _mm256_and_si256(_mm256_add_epi64(folded, carry), modulus);
            sums = _mm256_add_epi64(sums, *word);
        }
        *out = bytemuck::cast(words);
        let low = _mm256_and_si256(sums, modulus);
        sums = _mm256_add_epi64(low, _mm256_srli_epi64::<61>(sums));
    }
    let lanes: [u64; LANES] = bytemuck::cast(sums);
    total(sides(lanes), portable::mersenne::reduce_sides(words_rest, out_rest))
}

#[inline(always)]
fn total(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    [reduce(a[0] + b[0]), reduce(a[1] + b[1])]
}

/// Reduces each word like [`reduce`].
#[inline]
#[target_feature(enable = "avx512f")]
fn residues(words: __m512i) -> __m512i {
    let modulus = _mm512_set1_epi64(MODULUS as i64);
    let low = _mm512_and_si512(words, modulus);
    let folded = _mm512_add_epi64(low, _mm512_srli_epi64::<61>(words));
    // Below p the difference wraps around and is the larger of the two.
    _mm512_min_epu64(folded, _mm512_sub_epi64(folded, modulus))
}

#[target_feature(enable = "avx2,avx512f")]
pub(crate) fn reduce_sides_wide(words: &[u64], out: &mut [u64]) -> [u64; 2] {
    // p + 7 plus that many residues are below 2^64.
    const LAZY: usize = 4;
    let (chunks, words_rest) = words.as_chunks::<{ LAZY * WIDTH }>();
    let (out, out_rest) = out.as_chunks_mut::<{ LAZY * WIDTH }>();
    let modulus = _mm512_set1_epi64(MODULUS as i64);
    let mut sums = _mm512_setzero_si512();
    for (words, out) in chunks.iter().zip(out) {
        let mut words: [__m512i; LAZY] = bytemuck::cast(*words);
        for word in &mut words {
            *word = residues(*word);
        }
        *out = bytemuck::cast(words);
        let pairs = [_mm512_add_epi64(words[0], words[1]), _mm512_add_epi64(words[2], words[3])];
        sums = _mm512_add_epi64(sums, _mm512_add_epi64(pairs[0], pairs[1]));
        let low = _mm512_and_si512(sums, modulus);
        sums = _mm512_add_epi64(low, _mm512_srli_epi64::<61>(sums));
    }
    let lanes: [u64; WIDTH] = bytemuck::cast(sums);
    total(sides(lanes), portable::mersenne::reduce_sides(words_rest, out_rest))
}

/// The compiler vectorizes the plain loop.
#[target_feature(enable = "avx2")]
pub(crate) fn add_reduce(sums: &[u64], x: &[u64], out: &mut [u64]) {
    portable::mersenne::add_reduce(sums, x, out);
}

/// The compiler vectorizes this plain loop, too.
#[target_feature(enable = "avx2")]
pub(crate) fn add_reduce_pairs(sums: &[[u64; 2]], y: &[u64], u: &mut [u64], v: &mut [u64]) {
    portable::mersenne::add_reduce_pairs(sums, y, u, v);
}

#[target_feature(enable = "avx2,avx512f")]
pub(crate) fn add_reduce_wide(sums: &[u64], x: &[u64], out: &mut [u64]) {
    let (sums, sums_rest) = sums.as_chunks::<WIDTH>();
    let (x, x_rest) = x.as_chunks::<WIDTH>();
    let (out, out_rest) = out.as_chunks_mut::<WIDTH>();
    for ((out, sums), x) in out.iter_mut().zip(sums).zip(x) {
        let sums = _mm512_add_epi64(bytemuck::cast(*sums), bytemuck::cast(*x));
        *out = bytemuck::cast(residues(sums));
    }
    portable::mersenne::add_reduce(sums_rest, x_rest, out_rest);
}

#[target_feature(enable = "avx2,avx512f")]
pub(crate) fn add_reduce_pairs_wide(sums: &[[u64; 2]], y: &[u64], u: &mut [u64], v: &mut [u64]) {
    let (sums, sums_rest) = sums.as_chunks::<WIDTH>();
    let (y, y_rest) = y.as_chunks::<WIDTH>();
    let (u, u_rest) = u.as_chunks_mut::<WIDTH>();
    let (v, v_rest) = v.as_chunks_mut::<WIDTH>();
    let first = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
    let second = _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1);
    for (((u, v), sums), y) in u.iter_mut().zip(v).zip(sums).zip(y) {
        let [low, high]: [__m512i; 2] = bytemuck::cast(*sums);
        *u = bytemuck::cast(residues(_mm512_permutex2var_epi64(low, first, high)));
        let sums = _mm512_permutex2var_epi64(low, second, high);
        *v = bytemuck::cast(residues(_mm512_add_epi64(sums, bytemuck::cast(*y))));
    }
    portable::mersenne::add_reduce_pairs(sums_rest, y_rest, u_rest, v_rest);
}

/// Sums of parts of products: of 52-bit words `a0 + 2^52 a1` and `b0 + 2^52 b1` the low and the
/// high 52 bits of `a0 b0`, of `a0 b1` and of `a1 b0`, and `a1 b1`. Each sum has its own register,
/// so that no sum waits for another.
type Parts = [__m512i; 7];

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn add_products(sums: &mut Parts, a: __m512i, b: __m512i) {
    // The multiplication ignores the bits above 52.
    let (a_high, b_high) = (_mm512_srli_epi64::<52>(a), _mm512_srli_epi64::<52>(b));
    sums[0] = _mm512_madd52lo_epu64(sums[0], a, b);
    sums[1] = _mm512_madd52hi_epu64(sums[1], a, b);
    sums[2] = _mm512_madd52lo_epu64(sums[2], a, b_high);
    sums[3] = _mm512_madd52lo_epu64(sums[3], a_high, b);
    sums[4] = _mm512_madd52hi_epu64(sums[4], a, b_high);
    sums[5] = _mm512_madd52hi_epu64(sums[5], a_high, b);
    sums[6] = _mm512_madd52lo_epu64(sums[6], a_high, b_high);
}

#[target_feature(enable = "avx2,avx512f,avx512ifma")]
pub(crate) fn inner_product(a: &[u64], b: &[u64]) -> u64 {
    // A part has 52 bits, so a word holds the sum of 2^12 parts; each lane adds at most half as
    // many, and the last one.
    const TERMS: usize = (1 << 11) * 2 * WIDTH;
    a.chunks(TERMS)
        .zip(b.chunks(TERMS))
        .fold(0, |sum, (a, b)| reduce(sum + inner_product_short(a, b)))
}

#[inline]
#[target_feature(enable = "avx2,avx512f,avx512ifma")]
fn inner_product_short(a: &[u64], b: &[u64]) -> u64 {
    let (a, a_rest) = a.as_chunks::<{ 2 * WIDTH }>();
    let (b, b_rest) = b.as_chunks::<{ 2 * WIDTH }>();
    let mut sums: [Parts; 2] = [[_mm512_setzero_si512(); 7]; 2];
    for (a, b) in a.iter().zip(b) {
        let (a, b): ([__m512i; 2], [__m512i; 2]) = (bytemuck::cast(*a), bytemuck::cast(*b));
        add_products(&mut sums[0], a[0], b[0]);
        add_products(&mut sums[1], a[1], b[1]);
    }
    // The remainder stays in vectors too: single elements would go through the stack.
    for (a, b) in a_rest.chunks(WIDTH).zip(b_rest.chunks(WIDTH)) {
        let mask = ((1u32 << a.len()) - 1) as u8;
        // SAFETY: `a` and `b` have an element for each bit of the mask; the others are not read.
        let (a, b) = unsafe {
            (
                _mm512_maskz_loadu_epi64(mask, a.as_ptr().cast()),
                _mm512_maskz_loadu_epi64(mask, b.as_ptr().cast()),
            )
        };
        add_products(&mut sums[0], a, b);
    }
    // Sums of 64-bit words over all lanes have at most 70 bits, and 2^104 is 2^43.
    let mut parts = [0; 3];
    for sums in sums {
        for (sum, weight) in sums.into_iter().zip([0, 1, 1, 1, 2, 2, 2]) {
            let lanes: [u64; WIDTH] = bytemuck::cast(sum);
            parts[weight] += lanes.into_iter().map(u128::from).sum::<u128>();
        }
    }
    reduce_wide(parts[0] + (parts[1] << 52) + (parts[2] << 43))
}
