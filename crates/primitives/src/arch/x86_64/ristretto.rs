//! Ristretto255 with the 52-bit multipliers of AVX-512, eight elements at once.

mod field;
pub(crate) mod montgomery;
mod point;

use std::arch::x86_64::*;

use field::LANES;
use zeroize::{Zeroize, Zeroizing};

pub(crate) use point::Points;
use point::{Addend, add_points, decode as decode_eight, double, encode, is_identity};

/// Digits of a scalar to the base 16.
const DIGITS: usize = 64;
/// The largest absolute value of a digit.
const LARGEST: usize = 8;

impl Zeroize for Points {
    fn zeroize(&mut self) {
        bytemuck::cast_mut::<_, [[u64; 32]; 5]>(self).zeroize();
    }
}

/// References to eight of the strings; the last one repeated if there are fewer.
fn eight<T>(strings: &[T]) -> [&T; LANES] {
    std::array::from_fn(|lane| &strings[lane.min(strings.len() - 1)])
}

#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn from_uniform(strings: &[[u8; 64]]) -> Vec<Points> {
    let groups = strings.chunks(LANES);
    groups
        .map(|group| point::from_uniform(eight(group)))
        .collect()
}

#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn decode(encodings: &[[u8; 32]]) -> Option<Vec<Points>> {
    let mut all = __mmask8::MAX;
    let mut points = Vec::with_capacity(encodings.len().div_ceil(LANES));
    for group in encodings.chunks(LANES) {
        let (valid, group) = decode_eight(eight(group));
        all &= valid;
        points.push(group);
    }
    (all == __mmask8::MAX).then_some(points)
}

#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn any_identity(points: &[Points], n: usize) -> bool {
    let mut any = 0;
    for (group, points) in points.iter().enumerate() {
        let used = (n - group * LANES).min(LANES);
        any |= is_identity(points) & (__mmask8::MAX >> (LANES - used));
    }
    any != 0
}

#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn encode_doubles(points: &[Points], encodings: &mut [[u8; 32]]) {
    for (points, out) in points.iter().zip(encodings.chunks_mut(LANES)) {
        let mut eight = encode(&double::<true>(points));
        out.copy_from_slice(&eight[..out.len()]);
        eight.zeroize();
    }
}

#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn add(a: &mut [Points], b: &[Points]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = add_points(a, &Addend::new(b));
    }
}

#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn sub(a: &mut [Points], b: &[Points]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = add_points(a, &Addend::new(b).negate_where(__mmask8::MAX));
    }
}

/// Multiplies each point by the scalar, which is below 2^253, in little-endian bytes.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn multiply(points: &mut [Points], scalar: &[u8; 32]) {
    let mut digits = Zeroizing::new([[0; LANES]; DIGITS]);
    signed_digits([scalar; LANES], &mut digits);
    for points in points {
        *points = multiply_eight(points, &digits);
    }
}

/// Multiplies the first of the eight points by each of the scalars.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
pub(crate) fn multiples(points: &Points, scalars: &[[u8; 32]]) -> Vec<Points> {
    let point = points.first();
    let scalars = scalars.chunks(LANES);
    scalars
        .map(|scalars| {
            let mut digits = Zeroizing::new([[0; LANES]; DIGITS]);
            signed_digits(eight(scalars), &mut digits);
            multiply_eight(&point, &digits)
        })
        .collect()
}

/// Four doublings and one addition for each digit, the most significant first.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
fn multiply_eight(point: &Points, digits: &[[i64; LANES]; DIGITS]) -> Points {
    let multiples = first_multiples(point);
    let mut sum = Points::identity();
    for digits in digits.iter().rev() {
        for _ in 0..3 {
            sum = double::<false>(&sum);
        }
        sum = double::<true>(&sum);
        sum = add_points(&sum, &multiple(&multiples, bytemuck::cast(*digits)));
    }
    sum
}

/// `p, 2*p, .., 8*p`.
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
fn first_multiples(p: &Points) -> [Addend; LARGEST] {
    let first = Addend::new(p);
    let mut multiples = [first; LARGEST];
    let mut last = *p;
    for multiple in &mut multiples[1..] {
        last = add_points(&last, &first);
        *multiple = Addend::new(&last);
    }
    multiples
}

/// The multiple by a digit in each lane; all table entries are read.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512dq")]
fn multiple(multiples: &[Addend; LARGEST], digits: __m512i) -> Addend {
    let size = _mm512_abs_epi64(digits);
    let mut selected = Addend::identity();
    for (k, multiple) in multiples.iter().enumerate() {
        let here = _mm512_cmpeq_epi64_mask(size, _mm512_set1_epi64(k as i64 + 1));
        selected = multiple.or(here, &selected);
    }
    selected.negate_where(_mm512_movepi64_mask(digits))
}

/// The scalars to the base 16 with digits from -8 to 7, the least significant first.
fn signed_digits(scalars: [&[u8; 32]; LANES], digits: &mut [[i64; LANES]; DIGITS]) {
    let mut carries = [0; LANES];
    for (i, digits) in digits.iter_mut().enumerate() {
        for (lane, digit) in digits.iter_mut().enumerate() {
            let nibble = (scalars[lane][i / 2] >> (4 * (i % 2))) & 15;
            let sum = i64::from(nibble) + carries[lane];
            carries[lane] = (sum + 8) >> 4;
            *digit = sum - 16 * carries[lane];
        }
    }
}
