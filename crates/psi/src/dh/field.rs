//! Arithmetic modulo p = 2^255 - 19, in constant time.
//!
//! An element is five limbs of 51 bits, each below 2^52 between operations: a product of two
//! elements, with the factor 19 of the reduction, is then below 2^111 in each of its sums, and 2^17
//! products can be added before they are reduced.

use std::ops::{Add, Mul, Neg, Sub};

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroize;

const LIMB: u32 = 51;
const MASK: u64 = (1 << LIMB) - 1;

/// An element of the field.
#[derive(Clone, Copy, Debug, Default, Zeroize)]
pub(super) struct Element([u64; 5]);

/// A root of -1: RFC 9496, section 4.1.
const ROOT_OF_MINUS_ONE: Element = Element([
    0x61b2_74a0_ea0b0,
    0x0d5a_5fc8_f189d,
    0x7ef5_e9cb_d0c60,
    0x7859_5a68_04c9e,
    0x2b83_2480_4fc1d,
]);

/// A sum of products.
#[derive(Clone, Copy, Default, Zeroize)]
pub(super) struct Sum([u128; 5]);

impl Sum {
    /// Adds `a * b`.
    #[inline]
    pub(super) fn add_product(&mut self, a: Element, b: Element) {
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
    pub(super) fn add(&mut self, a: Element) {
        for (sum, limb) in self.0.iter_mut().zip(a.0) {
            *sum += u128::from(limb);
        }
    }

    /// The sum as an element.
    #[inline]
    pub(super) fn reduce(self) -> Element {
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
    pub(super) const ZERO: Self = Self([0; 5]);
    pub(super) const ONE: Self = Self::small(1);

    /// A number below 2^51.
    pub(super) const fn small(number: u64) -> Self {
        Self([number, 0, 0, 0, 0])
    }

    /// The number with these 32 little-endian bytes modulo p; the highest bit is ignored.
    pub(super) fn from_bytes(bytes: &[u8; 32]) -> Self {
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
    pub(super) fn from_canonical(bytes: &[u8; 32]) -> Option<Self> {
        let element = Self::from_bytes(bytes);
        (element.to_bytes() == *bytes).then_some(element)
    }

    /// The number from 0 to p - 1 in 32 little-endian bytes.
    pub(super) fn to_bytes(self) -> [u8; 32] {
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
        let words = [
            l0 | l1 << 51,
            l1 >> 13 | l2 << 38,
            l2 >> 26 | l3 << 25,
            l3 >> 39 | l4 << 12,
        ];
        let mut bytes = [0; 32];
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        bytes
    }

    /// One round of carries.
    #[inline]
    fn carry(self) -> Self {
        let [l0, l1, l2, l3, l4] = self.0;
        Self([
            (l0 & MASK) + 19 * (l4 >> LIMB),
            (l1 & MASK) + (l0 >> LIMB),
            (l2 & MASK) + (l1 >> LIMB),
            (l3 & MASK) + (l2 >> LIMB),
            (l4 & MASK) + (l3 >> LIMB),
        ])
    }

    pub(super) fn square(self) -> Self {
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
    pub(super) fn invert(self) -> Self {
        let (long, x11) = self.long_power();
        long.squares(5) * x11 // p - 2 = 32 (2^250 - 1) + 11
    }

    /// Whether this is a square other than zero.
    pub(super) fn is_square(self) -> Choice {
        let (long, _) = self.long_power();
        let x2 = self.square();
        // (p - 1) / 2 = 16 (2^250 - 1) + 6
        (long.squares(4) * x2.square() * x2).ct_eq(&Self::ONE)
    }

    /// Whether `u / v` is a square, and then its root from 0 to (p - 1)/2. RFC 9496, section 4.2,
    /// has the formula for a root.
    pub(super) fn root_of_ratio(u: Self, v: Self) -> (Choice, Self) {
        let v3 = v.square() * v;
        let base = u * v3.square() * v;
        let (long, _) = base.long_power();
        let root = u * v3 * long.squares(2) * base; // (p - 5) / 8 = 4 (2^250 - 1) + 1
        let check = v * root.square();
        let (equal, opposite) = (check.ct_eq(&u), check.ct_eq(&-u));
        let other = root * ROOT_OF_MINUS_ONE;
        let root = Self::conditional_select(&root, &other, opposite);
        // Above (p - 1)/2 exactly if twice the number, minus p, is odd.
        let high = Choice::from((root + root).to_bytes()[0] & 1);
        let root = Self::conditional_select(&root, &-root, high);
        (equal | opposite, root)
    }

    /// Inverts all elements, none of which is zero.
    pub(super) fn invert_all(elements: &mut [Self]) {
        let mut product = Self::ONE;
        let mut before = zeroize::Zeroizing::new(Vec::with_capacity(elements.len()));
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
        sum.reduce()
    }
}

impl ConditionallySelectable for Element {
    fn conditional_select(a: &Self, b: &Self, choice: Choice) -> Self {
        Self(std::array::from_fn(|i| {
            u64::conditional_select(&a.0[i], &b.0[i], choice)
        }))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dh::tests::{element, elements};

    /// p - 1, and numbers around multiples of p, in all their forms.
    #[test]
    fn one_form_for_each_number() {
        let mut p = [0xff; 32];
        (p[0], p[31]) = (0xed, 0x7f);
        for (low, expected) in [
            (0xec, None),
            (0xed, Some(0)),
            (0xee, Some(1)),
            (0xff, Some(18)),
        ] {
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
                assert_eq!(
                    (a + b).square() - (a - b).square(),
                    Element::small(4) * a * b
                );
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
        // 2 is no square modulo p, -1 is one.
        for (number, square) in [(2, false), (4, true), (8, false), (9, true)] {
            for number in [Element::small(number), -Element::small(number)] {
                assert_eq!(bool::from(number.is_square()), square);
            }
        }
        assert!(!bool::from(Element::ZERO.is_square()));
        for i in 0..50 {
            let (a, b) = (element(2 * i), element(2 * i + 1));
            let (square, root) = Element::root_of_ratio(a.square(), b.square());
            assert!(bool::from(square));
            assert_eq!(root.square() * b.square(), a.square());
            assert_eq!((root + root).to_bytes()[0] & 1, 0, "in the lower half");
            let (square, _) = Element::root_of_ratio(a.square() + a.square(), b.square());
            assert!(!bool::from(square));
            let (square, _) = Element::root_of_ratio(a, b);
            assert_eq!(bool::from(square), bool::from((a * b).is_square()));
        }
    }
}
