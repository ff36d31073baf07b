//! Arithmetic modulo 2^255 - 19, eight elements at once, with the 52-bit multipliers of AVX-512.
//!
//! An element is five limbs of 51 bits. Every function takes and returns limbs below 2^51 + 2^15:
//! the multipliers read 52 bits, so they accept such limbs, and one round of carries after each
//! operation restores the bound. A value has several such forms; [`canonical`] gives the one below
//! the modulus.

use std::arch::x86_64::*;

use bytemuck::{Pod, Zeroable};

/// Elements in a vector.
pub(super) const LANES: usize = 8;

const LIMB_BITS: u32 = 51;
const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;

/// Eight elements; limb `i` of all of them in vector `i`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct Field([__m512i; 5]);

/// The limbs of a constant.
pub(super) type Limbs = [u64; 5];

// The constants of RFC 9496, section 4.1.
pub(super) const ZERO: Limbs = [0; 5];
pub(super) const ONE: Limbs = [1, 0, 0, 0, 0];
pub(super) const D: Limbs = [
    0x34dca135978a3,
    0x1a8283b156ebd,
    0x5e7a26001c029,
    0x739c663a03cbb,
    0x52036cee2b6ff,
];
pub(super) const TWICE_D: Limbs = [
    0x69b9426b2f159,
    0x35050762add7a,
    0x3cf44c0038052,
    0x6738cc7407977,
    0x2406d9dc56dff,
];
pub(super) const SQRT_M1: Limbs = [
    0x61b274a0ea0b0,
    0x0d5a5fc8f189d,
    0x7ef5e9cbd0c60,
    0x78595a6804c9e,
    0x2b8324804fc1d,
];
pub(super) const SQRT_AD_MINUS_ONE: Limbs = [
    0x7f6a0497b2e1b,
    0x1836f0a97afd2,
    0x7d747f6be7638,
    0x456079e7e6498,
    0x376931bf2b834,
];
pub(super) const INVSQRT_A_MINUS_D: Limbs = [
    0x0fdaa805d40ea,
    0x2eb482e57d339,
    0x07610274bc58,
    0x6510b613dc8ff,
    0x786c8905cfaff,
];
pub(super) const ONE_MINUS_D_SQ: Limbs = [
    0x409c1945fc176,
    0x719abc6a1fc4f,
    0x1c37f90b20684,
    0x06bccca55eedf,
    0x029072a8b2b3e,
];
pub(super) const D_MINUS_ONE_SQ: Limbs = [
    0x55aaa44ed4d20,
    0x59603c3332635,
    0x26d3baf4a7928,
    0x120a66e6997a9,
    0x5968b37af66c2,
];
/// Twice the modulus, with limbs no less than those of any element.
const TWICE_P: Limbs = [
    (1 << 52) - 38,
    (1 << 52) - 2,
    (1 << 52) - 2,
    (1 << 52) - 2,
    (1 << 52) - 2,
];

/// The same element in all lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn constant(limbs: &Limbs) -> Field {
    Field(limbs.map(|limb| _mm512_set1_epi64(limb as i64)))
}

/// The element of the first lane in all lanes.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn first(x: &Field) -> Field {
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
pub(super) fn add(a: &Field, b: &Field) -> Field {
    let mut sum = a.0;
    for (sum, b) in sum.iter_mut().zip(b.0) {
        *sum = _mm512_add_epi64(*sum, b);
    }
    carry(sum)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn sub(a: &Field, b: &Field) -> Field {
    let mut difference = a.0;
    let twice_p = constant(&TWICE_P).0;
    for ((difference, b), twice_p) in difference.iter_mut().zip(b.0).zip(twice_p) {
        *difference = _mm512_sub_epi64(_mm512_add_epi64(*difference, twice_p), b);
    }
    carry(difference)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn negate(a: &Field) -> Field {
    sub(&constant(&ZERO), a)
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
pub(super) fn mul(a: &Field, b: &Field) -> Field {
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

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn square(a: &Field) -> Field {
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

/// `x^(2^times)` of each of `N` elements, computed in parallel.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn squares<const N: usize>(mut x: [Field; N], times: usize) -> [Field; N] {
    for _ in 0..times {
        for x in &mut x {
            *x = square(x);
        }
    }
    x
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
fn products<const N: usize>(mut a: [Field; N], b: &[Field; N]) -> [Field; N] {
    for (a, b) in a.iter_mut().zip(b) {
        *a = mul(a, b);
    }
    a
}

/// `x^(2^252 - 3)`, the exponent `(p - 5)/8`.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn power_for_root<const N: usize>(x: [Field; N]) -> [Field; N] {
    // The number in a name counts the ones of the exponent in binary.
    let two = products(squares(x, 1), &x);
    let four = products(squares(two, 2), &two);
    let five = products(squares(four, 1), &x);
    let ten = products(squares(five, 5), &five);
    let twenty = products(squares(ten, 10), &ten);
    let forty = products(squares(twenty, 20), &twenty);
    let fifty = products(squares(forty, 10), &ten);
    let hundred = products(squares(fifty, 50), &fifty);
    let two_hundred = products(squares(hundred, 100), &hundred);
    let most = products(squares(two_hundred, 50), &fifty);
    products(squares(most, 2), &x)
}

/// RFC 9496, section 4.2, for each of `N`: whether `u/v` is a square, and its non-negative root, or
/// that of `SQRT_M1*u/v` if it is not. Zero counts as a square; with `v` zero the root is zero and
/// `u/v` no square unless `u` is zero too.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn square_root_of_ratio<const N: usize>(
    u: [Field; N],
    v: [Field; N],
) -> [(__mmask8, Field); N] {
    let v3 = products(squares(v, 1), &v);
    let v7 = products(squares(v3, 1), &v);
    let roots = power_for_root(products(v7, &u));
    let roots = products(roots, &products(v3, &u));
    let root_of_minus_one = constant(&SQRT_M1);
    let mut results = [(0, constant(&ZERO)); N];
    for (i, root) in roots.iter().enumerate() {
        let check = mul(&v[i], &square(root));
        let opposite = negate(&u[i]);
        let correct = equal(&check, &u[i]);
        let flipped = equal(&check, &opposite);
        let flipped_other = equal(&check, &mul(&opposite, &root_of_minus_one));
        let turned = mul(root, &root_of_minus_one);
        let root = select(flipped | flipped_other, root, &turned);
        results[i] = (correct | flipped, absolute(&root));
    }
    results
}

/// `if_set` in the lanes of the mask, `otherwise` in the rest.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn select(mask: __mmask8, otherwise: &Field, if_set: &Field) -> Field {
    let mut selected = otherwise.0;
    for (selected, if_set) in selected.iter_mut().zip(if_set.0) {
        *selected = _mm512_mask_blend_epi64(mask, *selected, if_set);
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
pub(super) fn is_zero(x: &Field) -> __mmask8 {
    let any = canonical(x).0.into_iter();
    let any = any.fold(_mm512_setzero_si512(), |any, limb| {
        _mm512_or_si512(any, limb)
    });
    _mm512_testn_epi64_mask(any, any)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn equal(a: &Field, b: &Field) -> __mmask8 {
    is_zero(&sub(a, b))
}

/// Whether the representative below the modulus is odd (negative in RFC 9496).
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn is_negative(x: &Field) -> __mmask8 {
    _mm512_test_epi64_mask(canonical(x).0[0], _mm512_set1_epi64(1))
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn negate_where(mask: __mmask8, x: &Field) -> Field {
    select(mask, x, &negate(x))
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn absolute(x: &Field) -> Field {
    negate_where(is_negative(x), x)
}

/// The elements with these little-endian bytes, the highest bit ignored.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn from_bytes(bytes: [&[u8; 32]; LANES]) -> Field {
    let mut limbs = [[0; LANES]; 5];
    for (lane, bytes) in bytes.into_iter().enumerate() {
        let words: [[u8; 8]; 4] = bytemuck::cast(*bytes);
        let w = words.map(u64::from_le_bytes);
        let parts = [
            w[0],
            (w[0] >> 51) | (w[1] << 13),
            (w[1] >> 38) | (w[2] << 26),
            (w[2] >> 25) | (w[3] << 39),
            w[3] >> 12,
        ];
        for (limb, part) in limbs.iter_mut().zip(parts) {
            limb[lane] = part & LIMB_MASK;
        }
    }
    Field(bytemuck::cast(limbs))
}

/// The little-endian bytes of the representatives below the modulus.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(super) fn to_bytes(x: &Field) -> [[u8; 32]; LANES] {
    let limbs: [[u64; LANES]; 5] = bytemuck::cast(canonical(x).0);
    std::array::from_fn(|lane| {
        let l = limbs.map(|limb| limb[lane]);
        let words = [
            l[0] | (l[1] << 51),
            (l[1] >> 13) | (l[2] << 38),
            (l[2] >> 26) | (l[3] << 25),
            (l[3] >> 39) | (l[4] << 12),
        ];
        bytemuck::cast(words.map(u64::to_le_bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Block;
    use crate::cpu::Cpu;
    use crate::prg::Prg;

    type Lanes = [[u64; 8]; 5];

    /// The smallest limb that the module need not accept.
    const BOUND: u64 = (1 << LIMB_BITS) + (1 << 15);

    /// The representative below the modulus, one limb after the other.
    fn plain(mut x: [u128; 5]) -> [u64; 5] {
        let mask = u128::from(LIMB_MASK);
        for _ in 0..4 {
            for i in 0..5 {
                let carry = x[i] >> LIMB_BITS;
                x[i] &= mask;
                x[(i + 1) % 5] += if i == 4 { 19 * carry } else { carry };
            }
        }
        if x[0] >= mask - 18 && x[1..] == [mask; 4] {
            x = [x[0] - (mask - 18), 0, 0, 0, 0];
        }
        x.map(|limb| limb as u64)
    }

    fn product(a: [u64; 5], b: [u64; 5]) -> [u64; 5] {
        let mut sums = [0u128; 5];
        for (i, &a) in a.iter().enumerate() {
            for (j, &b) in b.iter().enumerate() {
                let wraps = if i + j < 5 { 1 } else { 19 };
                sums[(i + j) % 5] += u128::from(a) * u128::from(b) * wraps;
            }
        }
        plain(sums)
    }

    fn difference(a: [u64; 5], b: [u64; 5]) -> [u64; 5] {
        // Four times the modulus keeps every limb above zero.
        plain(std::array::from_fn(|i| {
            let modulus = LIMB_MASK - if i == 0 { 18 } else { 0 };
            u128::from(a[i]) + 4 * u128::from(modulus) - u128::from(b[i])
        }))
    }

    fn bytes(x: [u64; 5]) -> [u8; 32] {
        let bit = |i: usize| (x.get(i / 51).map_or(0, |limb| limb >> (i % 51)) & 1) as u8;
        std::array::from_fn(|byte| (0..8).map(|i| bit(8 * byte + i) << i).sum())
    }

    #[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
    fn compare(a: Lanes, b: Lanes) {
        let (x, y): (Field, Field) = (bytemuck::cast(a), bytemuck::cast(b));
        let results = [
            mul(&x, &y),
            square(&x),
            add(&x, &y),
            sub(&x, &y),
            negate(&x),
        ];
        let results: [Lanes; 5] = results.map(bytemuck::cast);
        let (encoded, zero, same) = (to_bytes(&x), is_zero(&x), equal(&x, &y));
        for lane in 0..8 {
            let of = |lanes: &Lanes| lanes.map(|limb| limb[lane]);
            let (a, b) = (of(&a), of(&b));
            let sum = plain(std::array::from_fn(|i| u128::from(a[i]) + u128::from(b[i])));
            let expected = [
                product(a, b),
                product(a, a),
                sum,
                difference(a, b),
                difference([0; 5], a),
            ];
            for (result, expected) in results.iter().zip(expected) {
                let limbs = of(result);
                assert!(limbs.iter().all(|limb| *limb < BOUND), "{limbs:x?}");
                assert_eq!(plain(limbs.map(u128::from)), expected, "{a:x?} {b:x?}");
            }
            let (a, b) = (plain(a.map(u128::from)), plain(b.map(u128::from)));
            assert_eq!(encoded[lane], bytes(a));
            assert_eq!(zero >> lane & 1 == 1, a == [0; 5]);
            assert_eq!(same >> lane & 1 == 1, a == b);
        }
    }

    /// Limbs at the ends of their range, which random elements never reach.
    #[test]
    fn limbs_at_their_bounds() {
        if !Cpu::IFMA.is_available() {
            return;
        }
        let half = 1 << LIMB_BITS;
        let ends = [
            0,
            1,
            half - 20,
            half - 19,
            half - 1,
            half,
            half + 18,
            BOUND - 1,
        ];
        let mut rng = Prg::new(Block::from(99));
        for round in 0..20_000usize {
            let mut limb = |odd: usize| {
                let random = u128::from(rng.block());
                let (choice, value) = (random as usize, (random >> 64) as u64);
                match (round + odd) % 3 {
                    0 => value % BOUND,
                    _ => ends[choice % ends.len()],
                }
            };
            let mut lanes = |odd| std::array::from_fn(|_| std::array::from_fn(|_| limb(odd)));
            let (mut a, mut b): (Lanes, Lanes) = (lanes(0), lanes(1));
            // The modulus itself, and equal elements.
            for i in 0..5 {
                a[i][0] = half - if i == 0 { 19 } else { 1 };
                b[i][1] = a[i][1];
            }
            // SAFETY: the level is available, and with it AVX-512 F, DQ and IFMA.
            unsafe { compare(a, b) };
        }
    }
}
