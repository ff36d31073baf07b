//! The field of Curve25519, modulo p = 2^255 - 19, and the multiples of points of the curve.
//!
//! Points are given by the coordinate `u` of the Montgomery form, as in RFC 7748, which is the same
//! for a point and its opposite. Functions on slices work on four elements at once with AVX2, and
//! on eight with AVX-512 IFMA; on other processors they are the code for single elements, and
//! `curve25519-dalek` for multiples. All of it is constant time.
//!
//! An [`Element`] is five limbs of 51 bits, each below 2^52 between operations: a product of two
//! elements, with the factor 19 of the reduction, is then below 2^111 in each of its sums, and 2^17
//! products can be added before they are reduced.

use std::ops::{Add, Mul, Neg, Sub};

use curve25519_dalek::constants::{
    ED25519_BASEPOINT_POINT, ED25519_BASEPOINT_TABLE, EIGHT_TORSION,
};
use curve25519_dalek::{EdwardsPoint, MontgomeryPoint, Scalar};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, Zeroizing};

#[cfg(target_arch = "x86_64")]
use crate::arch::x86_64::curve25519::montgomery::{x4, x8};
use crate::cpu::Cpu;

const LIMB: u32 = 51;
const MASK: u64 = (1 << LIMB) - 1;

/// An element of the field.
#[derive(Clone, Copy, Debug, Default, Zeroize)]
pub struct Element(pub(crate) [u64; 5]);

/// A root of -1: RFC 9496, section 4.1.
const ROOT_OF_MINUS_ONE: Element = Element([
    0x0006_1b27_4a0e_a0b0,
    0x0000_d5a5_fc8f_189d,
    0x0007_ef5e_9cbd_0c60,
    0x0007_8595_a680_4c9e,
    0x0002_b832_4804_fc1d,
]);

/// A sum of products.
#[derive(Clone, Copy, Default, Zeroize)]
pub struct Sum([u128; 5]);

impl Sum {
    /// Adds `a * b`.
    #[inline]
    pub fn add_product(&mut self, a: Element, b: Element) {
        let ([a0, a1, a2, a3, a4], b) = (a.0.map(u128::from), b.0);
        // 2^255 = 19.
        let high = b.map(|limb| u128::from(19 * limb));
        let b = b.map(u128::from);
        let sums = &mut self.0;
        sums[0] += a0 * b[0] + a1 * high[4] + a2 * high[3] + a3 * high[2] + a4 * high[1];
        sums[1] += a0 * b[1] + a1 * b[0] + a2 * high[4] + a3 * high[3] + a4 * high[2];
        sums[2] += a0 * b[2] + a1 * b[1] + a2 * b[0] + a3 * high[4] + a4 * high[3];
        sums[3] += a0 * b[3] + a1 * b[2] + a2 * b[1] + a3 * b[0] + a4 * high[4];
        sums[4] += a0 * b[4] + a1 * b[3] + a2 * b[2] + a3 * b[1] + a4 * b[0];
    }

    /// Adds `a`.
    #[inline]
    pub fn add(&mut self, a: Element) {
        for (sum, limb) in self.0.iter_mut().zip(a.0) {
            *sum += u128::from(limb);
        }
    }

    /// The sum of one product and one element.
    #[inline]
    fn reduce_small(self) -> Element {
        // As `reduce`; the carries fit into 64 bits.
        let mut sums = self.0;
        for i in 0..4 {
            sums[i + 1] += u128::from((sums[i] >> LIMB) as u64);
        }
        let carry = (sums[4] >> LIMB) as u64;
        let [l0, l1, l2, l3, l4] = sums.map(|sum| sum as u64 & MASK);
        let l0 = l0 + 19 * carry;
        Element([l0 & MASK, l1 + (l0 >> LIMB), l2, l3, l4])
    }

    /// The sum as an element.
    #[inline]
    #[must_use]
    pub fn reduce(self) -> Element {
        let mask = u128::from(MASK);
        let [mut s0, mut s1, mut s2, mut s3, mut s4] = self.0;
        s1 += s0 >> LIMB;
        s2 += s1 >> LIMB;
        s3 += s2 >> LIMB;
        s4 += s3 >> LIMB;
        s0 = (s0 & mask) + 19 * (s4 >> LIMB);
        s1 = (s1 & mask) + (s0 >> LIMB);
        Element([s0 & mask, s1, s2 & mask, s3 & mask, s4 & mask].map(|limb| limb as u64))
    }
}

impl Element {
    /// 0.
    pub const ZERO: Self = Self([0; 5]);
    /// 1.
    pub const ONE: Self = Self::small(1);

    /// A number below 2^51.
    pub const fn small(number: u64) -> Self {
        Self([number, 0, 0, 0, 0])
    }

    /// The number with these 32 little-endian bytes modulo p; the highest bit is ignored.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        let (words, _) = bytes.as_chunks();
        let [w0, w1, w2, w3] = std::array::from_fn(|i| u64::from_le_bytes(words[i]));
        Self([
            w0 & MASK,
            (w0 >> 51 | w1 << 13) & MASK,
            (w1 >> 38 | w2 << 26) & MASK,
            (w2 >> 25 | w3 << 39) & MASK,
            (w3 >> 12) & MASK,
        ])
    }

    /// The number with these bytes, if it is below p.
    #[must_use]
    pub fn from_canonical(bytes: &[u8; 32]) -> Option<Self> {
        let element = Self::from_bytes(bytes);
        (element.to_bytes() == *bytes).then_some(element)
    }

    /// The number from 0 to p - 1 in 32 little-endian bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 32] {
        // Now below 2p, so that the quotient is 0 or 1.
        let mut limbs = self.carry().0;
        let mut quotient = 19;
        for limb in limbs {
            quotient = (limb + quotient) >> LIMB;
        }
        let mut carry = 19 * quotient;
        for limb in &mut limbs {
            carry += *limb;
            *limb = carry & MASK;
            carry >>= LIMB;
        }
        let [l0, l1, l2, l3, l4] = limbs;
        let words = [l0 | l1 << 51, l1 >> 13 | l2 << 38, l2 >> 26 | l3 << 25, l3 >> 39 | l4 << 12];
        let mut bytes = [0; 32];
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        bytes
    }

    /// One round of carries.
    #[inline]
    pub(crate) fn carry(self) -> Self {
        let [l0, l1, l2, l3, l4] = self.0;
        Self([
            (l0 & MASK) + 19 * (l4 >> LIMB),
            (l1 & MASK) + (l0 >> LIMB),
            (l2 & MASK) + (l1 >> LIMB),
            (l3 & MASK) + (l2 >> LIMB),
            (l4 & MASK) + (l3 >> LIMB),
        ])
    }

    /// `x^2`.
    #[must_use]
    pub fn square(self) -> Self {
        self * self
    }

    fn squares(self, times: usize) -> Self {
        (0..times).fold(self, |x, _| x.square())
    }

    /// The powers with the exponents 2^250 - 1 and 11.
    fn long_power(self) -> (Self, Self) {
        let x9 = self.squares(3) * self;
        let x11 = x9 * self.square();
        let x5 = x11.square() * x9; // 2^5 - 1
        let x10 = x5.squares(5) * x5; // 2^10 - 1, and so on
        let x20 = x10.squares(10) * x10;
        let x40 = x20.squares(20) * x20;
        let x50 = x40.squares(10) * x10;
        let x100 = x50.squares(50) * x50;
        let x200 = x100.squares(100) * x100;
        (x200.squares(50) * x50, x11)
    }

    /// The inverse; that of zero is zero.
    #[must_use]
    pub fn invert(self) -> Self {
        let (long, x11) = self.long_power();
        long.squares(5) * x11 // p - 2 = 32 (2^250 - 1) + 11
    }

    /// Whether `u / v` is a square, and then its root from 0 to (p - 1)/2; `v` is not zero.
    ///
    /// RFC 9496, section 4.2, has the formula for a root.
    pub fn root_of_ratio(u: Self, v: Self) -> (Choice, Self) {
        let v3 = v.square() * v;
        let base = u * v3.square() * v;
        let (long, _) = base.long_power();
        let root = u * v3 * long.squares(2) * base; // (p - 5) / 8 = 4 (2^250 - 1) + 1
        let check = v * root.square();
        let (equal, opposite) = (check.ct_eq(&u), check.ct_eq(&-u));
        let other = root * ROOT_OF_MINUS_ONE;
        let root = Self::conditional_select(&root, &other, opposite);
        (equal | opposite, root.lower())
    }

    /// This number or its opposite, the one from 0 to (p - 1)/2.
    pub(crate) fn lower(self) -> Self {
        // Above (p - 1)/2 exactly if twice the number, minus p, is odd.
        let high = Choice::from((self + self).to_bytes()[0] & 1);
        Self::conditional_select(&self, &-self, high)
    }

    /// Inverts all elements, none of which is zero.
    pub fn invert_all(elements: &mut [Self]) {
        let mut product = Self::ONE;
        let mut before = Zeroizing::new(Vec::with_capacity(elements.len()));
        for &element in elements.iter() {
            before.push(product);
            product = product * element;
        }
        let mut inverse = product.invert();
        for (element, &before) in elements.iter_mut().zip(before.iter()).rev() {
            (*element, inverse) = (inverse * before, inverse * *element);
        }
    }
}

impl Add for Element {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i])).carry()
    }
}

impl Sub for Element {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        // Four times p, so that no limb is negative.
        let bias = |i| if i == 0 { 4 * (MASK - 18) } else { 4 * MASK };
        Self(std::array::from_fn(|i| self.0[i] + bias(i) - other.0[i])).carry()
    }
}

impl Neg for Element {
    type Output = Self;

    fn neg(self) -> Self {
        Self::ZERO - self
    }
}

impl Mul for Element {
    type Output = Self;

    #[inline]
    fn mul(self, other: Self) -> Self {
        let mut sum = Sum::default();
        sum.add_product(self, other);
        sum.reduce_small()
    }
}

impl ConditionallySelectable for Element {
    fn conditional_select(a: &Self, b: &Self, choice: Choice) -> Self {
        Self(std::array::from_fn(|i| u64::conditional_select(&a.0[i], &b.0[i], choice)))
    }
}

impl ConstantTimeEq for Element {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.to_bytes().ct_eq(&other.to_bytes())
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.ct_eq(other).into()
    }
}

/// Bytes of a coordinate and of a scalar.
pub const BYTES: usize = 32;

/// The values in these points of the polynomial with these coefficients, the lowest first, and
/// above them the leading coefficient.
///
/// # Panics
/// If the numbers of points and values differ.
pub fn evaluate(
    leading: Element,
    coefficients: &[Element],
    points: &[Element],
    values: &mut [Element],
) {
    evaluate_on(Cpu::detect(), leading, coefficients, points, values);
}

/// [`evaluate`] with the kernels of one level.
pub fn evaluate_on(
    cpu: Cpu,
    leading: Element,
    coefficients: &[Element],
    points: &[Element],
    values: &mut [Element],
) {
    cpu.assert_available();
    assert_eq!(points.len(), values.len(), "a value for each point");
    match cpu {
        #[cfg(target_arch = "x86_64")]
        cpu if cpu.has(Cpu::IFMA) => {
            // SAFETY: the level is available, and with it AVX-512 F, DQ and IFMA.
            unsafe { x8::evaluate(leading, coefficients, points, values) }
        }
        #[cfg(target_arch = "x86_64")]
        cpu if cpu.has(Cpu::AES_NI) => {
            // SAFETY: the level is available, and with it AVX2.
            unsafe { x4::evaluate(leading, coefficients, points, values) }
        }
        _ => {
            // Several at a time, whose products do not wait for each other.
            const AT_A_TIME: usize = 4;
            for (values, points) in values.chunks_mut(AT_A_TIME).zip(points.chunks(AT_A_TIME)) {
                let mut x = [Element::ZERO; AT_A_TIME];
                x[..points.len()].copy_from_slice(points);
                let mut y = [leading; AT_A_TIME];
                for &coefficient in coefficients.iter().rev() {
                    for (y, &x) in y.iter_mut().zip(&x) {
                        let mut sum = Sum::default();
                        sum.add_product(*y, x);
                        sum.add(coefficient);
                        *y = sum.reduce_small();
                    }
                }
                values.copy_from_slice(&y[..points.len()]);
            }
        }
    }
}

/// For each ratio, of a numerator and a denominator that is not zero: whether it is a square, and
/// then its root from 0 to (p - 1)/2.
pub fn roots_of_ratios(ratios: &[[Element; 2]]) -> Zeroizing<Vec<(u8, Element)>> {
    roots_of_ratios_on(Cpu::detect(), ratios)
}

/// [`roots_of_ratios`] with the kernels of one level.
pub fn roots_of_ratios_on(cpu: Cpu, ratios: &[[Element; 2]]) -> Zeroizing<Vec<(u8, Element)>> {
    cpu.assert_available();
    let mut roots = Zeroizing::new(vec![(0, Element::ZERO); ratios.len()]);
    match cpu {
        #[cfg(target_arch = "x86_64")]
        cpu if cpu.has(Cpu::IFMA) => {
            // SAFETY: the level is available, and with it AVX-512 F, DQ and IFMA.
            unsafe { x8::roots_of_ratios(ratios, &mut roots) }
        }
        #[cfg(target_arch = "x86_64")]
        cpu if cpu.has(Cpu::AES_NI) => {
            // SAFETY: the level is available, and with it AVX2.
            unsafe { x4::roots_of_ratios(ratios, &mut roots) }
        }
        _ => {
            for (out, &[u, v]) in roots.iter_mut().zip(ratios) {
                let (square, root) = Element::root_of_ratio(u, v);
                *out = (square.unwrap_u8(), root);
            }
        }
    }
    roots
}

/// The coordinates of the multiples of points by scalars, numbers of 256 bits in little-endian
/// bytes that are *not* reduced modulo the order. A list of one scalar or one point stands for a
/// list of copies. The coordinate of the identity is zero.
///
/// # Panics
/// If the lists have different numbers of entries, neither of them one.
pub fn multiply(scalars: &[[u8; BYTES]], points: &[[u8; BYTES]]) -> Zeroizing<Vec<[u8; BYTES]>> {
    multiply_on(Cpu::detect(), scalars, points)
}

/// [`multiply`] with the kernels of one level.
pub fn multiply_on(
    cpu: Cpu,
    scalars: &[[u8; BYTES]],
    points: &[[u8; BYTES]],
) -> Zeroizing<Vec<[u8; BYTES]>> {
    cpu.assert_available();
    let n = if scalars.len() == 1 { points.len() } else { scalars.len() };
    assert!(points.len() == n || points.len() == 1, "lists of different lengths");
    let (scalar, point) = (
        |i: usize| &scalars[i.min(scalars.len() - 1)],
        |i: usize| &points[i.min(points.len() - 1)],
    );
    let mut products = Zeroizing::new(vec![[0; BYTES]; n]);
    match cpu {
        #[cfg(target_arch = "x86_64")]
        cpu if cpu.has(Cpu::IFMA) => {
            // SAFETY: the level is available, and with it AVX-512 F, DQ and IFMA.
            unsafe { x8::multiply(scalar, point, &mut products) }
        }
        #[cfg(target_arch = "x86_64")]
        cpu if cpu.has(Cpu::AES_NI) => {
            // SAFETY: the level is available, and with it AVX2.
            unsafe { x4::multiply(scalar, point, &mut products) }
        }
        _ => {
            for (i, product) in products.iter_mut().enumerate() {
                let scalar = scalar(i);
                let bits = (0..256).rev().map(|bit| scalar[bit / 8] >> (bit % 8) & 1 == 1);
                *product = MontgomeryPoint(*point(i)).mul_bits_be(bits).0;
            }
        }
    }
    products
}

/// The coordinates of the multiples by scalars of 256 bits of a generator of the whole group, with
/// its 8 (2^252 + ..) points: the usual base point plus one of order 8.
pub fn of_generator(scalars: &[[u8; BYTES]]) -> Zeroizing<Vec<[u8; BYTES]>> {
    of_generator_on(Cpu::detect(), scalars)
}

/// [`of_generator`] with the kernels of one level.
pub fn of_generator_on(cpu: Cpu, scalars: &[[u8; BYTES]]) -> Zeroizing<Vec<[u8; BYTES]>> {
    cpu.assert_available();
    if cpu.has(Cpu::AES_NI) {
        let generator = (ED25519_BASEPOINT_POINT + EIGHT_TORSION[1]).to_montgomery();
        return multiply_on(cpu, scalars, &[generator.0]);
    }
    let points = scalars.iter().map(|scalar| {
        let mut small = EIGHT_TORSION[0];
        for (i, point) in EIGHT_TORSION.iter().enumerate() {
            small.conditional_assign(point, (i as u8).ct_eq(&(scalar[0] & 7)));
        }
        &Scalar::from_bytes_mod_order(*scalar) * ED25519_BASEPOINT_TABLE + small
    });
    let points = Zeroizing::new(points.collect::<Vec<_>>());
    let points = Zeroizing::new(EdwardsPoint::to_montgomery_batch(&points));
    Zeroizing::new(points.iter().map(|point| point.0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some element, the same one for the same number.
    fn element(number: usize) -> Element {
        Element::from_bytes(blake3::hash(&number.to_le_bytes()).as_bytes())
    }

    fn elements(count: usize) -> Vec<Element> {
        (0..count).map(element).collect()
    }

    /// p - 1, and numbers around multiples of p, in all their forms.
    #[test]
    fn one_form_for_each_number() {
        let mut p = [0xff; 32];
        (p[0], p[31]) = (0xed, 0x7f);
        for (low, expected) in [(0xec, None), (0xed, Some(0)), (0xee, Some(1)), (0xff, Some(18))] {
            p[0] = low;
            let (element, mut small) = (Element::from_bytes(&p), p);
            if let Some(number) = expected {
                small = [0; 32];
                small[0] = number;
            }
            assert_eq!(element.to_bytes(), small);
            assert_eq!(Element::from_canonical(&p).is_some(), expected.is_none());
        }
        p[31] = 0xff;
        assert!(Element::from_canonical(&p).is_none(), "the highest bit");
        assert_eq!((-Element::ZERO).to_bytes(), [0; 32]);
        assert_eq!((Element::ONE - Element::ONE).to_bytes(), [0; 32]);
        assert_eq!(Element::ZERO - Element::ONE, -Element::ONE);
    }

    #[test]
    fn axioms() {
        let all = [Element::ZERO, Element::ONE, -Element::ONE].into_iter();
        let all: Vec<_> = all.chain(elements(20)).collect();
        for &a in &all {
            assert_eq!(Element::from_bytes(&a.to_bytes()), a);
            let is_zero = a == Element::ZERO;
            assert_eq!(a * a.invert() == Element::ONE, !is_zero);
            assert_eq!(a - a, Element::ZERO);
            for &b in &all {
                assert_eq!(a + b, b + a);
                assert_eq!((a - b) + b, a);
                assert_eq!(a * b, b * a);
                assert_eq!((a + b).square() - (a - b).square(), Element::small(4) * a * b);
            }
        }
        let mut inverses = all[1..].to_vec();
        Element::invert_all(&mut inverses);
        for (&a, &inverse) in all[1..].iter().zip(&inverses) {
            assert_eq!(a * inverse, Element::ONE);
        }
        Element::invert_all(&mut []);
    }

    /// As many products as are ever added, with the largest limbs.
    #[test]
    fn long_sums() {
        let most = Element([(1 << 52) - 1; 5]);
        let mut sum = Sum::default();
        for _ in 0..1 << 17 {
            sum.add_product(most, most);
        }
        assert_eq!(sum.reduce(), Element::small(1 << 17) * most * most);
    }

    #[test]
    fn roots() {
        assert_eq!(ROOT_OF_MINUS_ONE.square(), -Element::ONE);
        // 2 is no square modulo p, -1 is one, and zero too.
        for (number, square) in [(0, true), (2, false), (4, true), (8, false), (9, true)] {
            for number in [Element::small(number), -Element::small(number)] {
                let (is_square, _) = Element::root_of_ratio(number, Element::ONE);
                assert_eq!(bool::from(is_square), square);
            }
        }
        for i in 0..50 {
            let (a, b) = (element(2 * i), element(2 * i + 1));
            let (square, root) = Element::root_of_ratio(a.square(), b.square());
            assert!(bool::from(square));
            assert_eq!(root.square() * b.square(), a.square());
            assert_eq!((root + root).to_bytes()[0] & 1, 0, "in the lower half");
            let (square, _) = Element::root_of_ratio(a.square() + a.square(), b.square());
            assert!(!bool::from(square));
        }
    }

    /// Numbers of elements around those that a kernel processes at a time.
    const NUMBERS: [usize; 9] = [0, 1, 2, 7, 8, 9, 16, 17, 40];

    #[test]
    fn kernels_evaluate() {
        for n in NUMBERS {
            let points = [elements(n), vec![Element::ZERO, -Element::ONE]].concat();
            for degree in [0, 1, 2, 33] {
                let mut coefficients = elements(degree);
                // The largest limbs between operations.
                coefficients.push(Element([(1 << 52) - 1; 5]));
                let plain = |x: Element| {
                    let mut powers = Element::ONE;
                    let mut sum = Element::ZERO;
                    for &coefficient in coefficients.iter().chain([&element(99)]) {
                        sum = sum + coefficient * powers;
                        powers = powers * x;
                    }
                    sum
                };
                for cpu in Cpu::available() {
                    let mut values = vec![Element::ZERO; points.len()];
                    evaluate_on(cpu, element(99), &coefficients, &points, &mut values);
                    for (&x, &y) in points.iter().zip(&values) {
                        assert_eq!(y, plain(x), "{cpu} {n} {degree}");
                    }
                }
            }
        }
    }

    #[test]
    fn kernels_find_roots() {
        for n in NUMBERS {
            let ratio = |i| [element(2 * i), element(2 * i + 1)];
            let mut ratios: Vec<_> = (0..n).map(ratio).collect();
            ratios.push([Element::ZERO, Element::ONE]);
            ratios.push([Element::small(4), Element([(1 << 52) - 1; 5])]);
            for cpu in Cpu::available() {
                let roots = roots_of_ratios_on(cpu, &ratios);
                assert_eq!(roots.len(), ratios.len());
                for (&[u, v], &(square, root)) in ratios.iter().zip(roots.iter()) {
                    let (expected, lower) = Element::root_of_ratio(u, v);
                    assert_eq!(square, expected.unwrap_u8(), "{cpu} {n}");
                    if square == 1 {
                        assert_eq!(root, lower, "{cpu} {n}");
                        assert_eq!(root.square() * v, u);
                    }
                }
            }
        }
    }

    /// RFC 7748, section 5.2, whose scalars are changed to multiples of 8 of 255 bits; the highest
    /// bit of a coordinate is ignored.
    #[test]
    fn known_multiples() {
        for (scalar, point, expected) in [
            (
                "a046e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449a44",
                "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
                "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
            ),
            (
                "4866e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba4d",
                "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
                "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
            ),
        ] {
            let [scalar, point, expected] = [scalar, point, expected].map(|hex| {
                std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..][..2], 16).unwrap_or(0))
            });
            for cpu in Cpu::available() {
                assert_eq!(*multiply_on(cpu, &[scalar], &[point]), [expected], "{cpu}");
            }
        }
    }

    #[test]
    fn kernels_multiply() {
        let largest = [0xff; BYTES];
        // Points of small order, one on the twist, the base point, and some that are any of these.
        let small = EIGHT_TORSION.iter().map(|point| point.to_montgomery().0);
        let points: Vec<_> = small
            .chain([2, 9].map(|u| Element::small(u).to_bytes()))
            .chain(elements(30).iter().map(|u| u.to_bytes()))
            .collect();
        let mut scalars = vec![[0; BYTES], Element::ONE.to_bytes(), largest];
        scalars.extend(elements(37).iter().map(|scalar| {
            let mut bytes = scalar.to_bytes();
            bytes[31] |= bytes[0] << 7;
            bytes
        }));
        assert_eq!(points.len(), scalars.len());
        for cpu in Cpu::available() {
            for n in NUMBERS {
                let (scalars, points) = (&scalars[..n], &points[..n]);
                let expected = multiply_on(Cpu::PORTABLE, scalars, points);
                assert_eq!(multiply_on(cpu, scalars, points), expected, "{cpu} {n}");
                for i in 0..n.min(3) {
                    let expected = multiply_on(Cpu::PORTABLE, &scalars[i..=i], points);
                    assert_eq!(multiply_on(cpu, &scalars[i..=i], points), expected);
                    let expected = multiply_on(Cpu::PORTABLE, scalars, &points[i..=i]);
                    assert_eq!(multiply_on(cpu, scalars, &points[i..=i]), expected);
                }
                let generator = (ED25519_BASEPOINT_POINT + EIGHT_TORSION[1]).to_montgomery();
                let expected = multiply_on(Cpu::PORTABLE, scalars, &[generator.0]);
                assert_eq!(of_generator_on(cpu, scalars), expected, "{cpu} {n}");
            }
        }
    }
}
