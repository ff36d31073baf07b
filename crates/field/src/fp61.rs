//! The integers modulo the Mersenne prime `2^61 - 1`.
//!
//! Since `2^61 = 1`, the bits from the 61st up of any number can be added to the lower ones. An
//! element is kept in `0..p`. Sums and inner products delay the reduction: a 64-bit word holds the
//! sum of eight elements. Operations on whole slices are in [`volery_primitives::mersenne`].

use core::fmt;

use bytemuck::{Pod, Zeroable};
use subtle::Choice;
use volery_primitives::{
    Block, WordSums,
    gather::Lanes,
    mersenne::{self, fold},
};

use crate::element;
use crate::ring::{Field, NotCanonical, Ring, assert_same_length};

/// An integer modulo `2^61 - 1`.
///
/// Every constructor gives a canonical value, in `0..2^61 - 1`. Memory reinterpreted as `Fp61` (the
/// type is [`Pod`]) must hold canonical values too; otherwise results are wrong, but memory stays
/// safe.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Fp61(u64);

/// The modulus.
const P: u64 = Fp61::MODULUS;

impl Fp61 {
    /// The modulus, `2^61 - 1`.
    pub const MODULUS: u64 = mersenne::MODULUS;

    /// The element with canonical value `value`, or `None` if `value` is not below the modulus.
    ///
    /// For public values: the time reveals the outcome.
    pub const fn new(value: u64) -> Option<Self> {
        if value < P { Some(Self(value)) } else { None }
    }

    /// `value` modulo `2^61 - 1`, for any `value`.
    #[inline(always)]
    pub const fn reduce(value: u64) -> Self {
        Self(mersenne::reduce(value))
    }

    /// The canonical value, below the modulus.
    #[inline(always)]
    pub const fn value(self) -> u64 {
        self.0
    }

    /// `self * x + y`, with one reduction.
    #[inline(always)]
    const fn multiply_add(self, x: Self, y: Self) -> Self {
        // At most (p-1)^2 + (p-1) = p(p-1), so the high part is below p and the sum of both parts
        // at most 2p-1.
        let wide = self.0 as u128 * x.0 as u128 + y.0 as u128;
        let low = (wide as u64) & P;
        let high = (wide >> 61) as u64;
        Self(subtract_modulus_once(low + high))
    }
}

/// Reduces from `0..2p` to `0..p`.
#[inline(always)]
const fn subtract_modulus_once(value: u64) -> u64 {
    // Exactly if the value is p or more, adding one sets bit 61; that one is then added and the bit
    // cleared.
    (value + ((value + 1) >> 61)) & P
}

/// Reduces from `-p..p`, in two's complement, to `0..p`.
#[inline(always)]
const fn add_modulus_if_negative(value: u64) -> u64 {
    let negative = 0u64.wrapping_sub(value >> 63);
    value.wrapping_add(P & negative)
}

element!(Fp61: |x, y|
    Self(subtract_modulus_once(x.0 + y.0)),
    Self(add_modulus_if_negative(x.0.wrapping_sub(y.0))),
    x.multiply_add(y, Self(0)),
    Self(0) - x
);

/// Prints the canonical value in decimal.
impl fmt::Display for Fp61 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// The element of a number below `2^32`; [`Fp61::reduce`] takes larger ones.
impl From<u32> for Fp61 {
    fn from(value: u32) -> Self {
        Self(value.into())
    }
}

impl Field for Fp61 {
    const ORDER_LESS_TWO: u128 = P as u128 - 2;
}

impl Ring for Fp61 {
    const ZERO: Self = Self(0);
    const ONE: Self = Self(1);
    const NAME: &'static str = "fp61";
    const BITS: u32 = 61;
    const BYTES: usize = 8;
    const WORDS: usize = 1;
    const GENERATED_BY_ONE: bool = true;

    type Lazy = u64;
    // A folded sum is at most p + 7, and p + 7 + 7(p-1) = 2^64 - 8.
    const LAZY_MAX: usize = 7;
    const LANES: Option<Lanes> = Some(Lanes::Mersenne);

    #[inline(always)]
    fn lazy_add(sum: u64, x: Self) -> u64 {
        sum + x.0
    }

    #[inline(always)]
    fn lazy_fold(sum: u64) -> u64 {
        fold(sum)
    }

    #[inline(always)]
    fn lazy_finish(sum: u64) -> Self {
        Self::reduce(sum)
    }

    type LazyPair = WordSums;

    #[inline(always)]
    fn pair_add(sums: WordSums, [x, y]: [Self; 2]) -> WordSums {
        sums.plus([x.0, y.0])
    }

    #[inline(always)]
    fn pair_fold(sums: WordSums) -> WordSums {
        sums.folded::<{ Self::BITS as i32 }>()
    }

    #[inline(always)]
    fn pair_finish(sums: WordSums) -> [Self; 2] {
        sums.words().map(Self::reduce)
    }

    fn finish_slice(sums: &[u64], x: &[Self], out: &mut [Self]) {
        assert_same_length(sums.len(), x.len());
        assert_same_length(sums.len(), out.len());
        mersenne::add_reduce(sums, bytemuck::cast_slice(x), bytemuck::cast_slice_mut(out));
    }

    fn pair_finish_slice(sums: &[WordSums], y: &[Self], u: &mut [Self], v: &mut [Self]) {
        for len in [y.len(), u.len(), v.len()] {
            assert_same_length(sums.len(), len);
        }
        mersenne::add_reduce_pairs(
            bytemuck::cast_slice(sums),
            bytemuck::cast_slice(y),
            bytemuck::cast_slice_mut(u),
            bytemuck::cast_slice_mut(v),
        );
    }

    #[inline(always)]
    fn from_block(block: Block) -> Self {
        // 2^64 = 8p + 8: eight residues have nine preimages, the others have eight.
        Self::reduce(block.low())
    }

    fn as_words_mut(elements: &mut [Self]) -> Option<&mut [u64]> {
        Some(bytemuck::cast_slice_mut(elements))
    }

    #[inline(always)]
    fn from_words(words: &[u64]) -> Self {
        assert_same_length(words.len(), 1);
        Self::reduce(words[0])
    }

    fn from_words_slice(words: &[u64], out: &mut [Self]) {
        assert_same_length(words.len(), out.len());
        for (out, &word) in out.iter_mut().zip(words) {
            *out = Self::reduce(word);
        }
    }

    fn from_words_sides(words: &[u64], out: &mut [Self]) -> [Self; 2] {
        assert_same_length(words.len(), out.len());
        mersenne::reduce_sides(words, bytemuck::cast_slice_mut(out)).map(Self)
    }

    #[inline(always)]
    fn bit(self, i: u32) -> Choice {
        assert!(i < Self::BITS, "bit {i} of an element of 61 bits");
        Choice::from((self.0 >> i) as u8 & 1)
    }

    #[inline(always)]
    fn power_of_two(i: u32) -> Self {
        assert!(i < Self::BITS, "2^{i} in a ring of 61 bits");
        Self(1 << i)
    }

    fn write(xs: &[Self], out: &mut Vec<u8>) {
        out.extend_from_slice(bytemuck::cast_slice(xs));
    }

    fn read(bytes: &[u8], out: &mut [Self]) -> Result<(), NotCanonical> {
        assert_same_length(bytes.len(), Self::encoded_len(out.len()));
        let (bytes, _) = bytes.as_chunks();
        let mut difference = 0;
        for (&bytes, out) in bytes.iter().zip(out) {
            let value = u64::from_le_bytes(bytes);
            *out = Self::reduce(value);
            difference |= value ^ out.0;
        }
        // mutant(fp61-canonical): `difference == 0` => `true`
        if difference == 0 { Ok(()) } else { Err(NotCanonical { ring: Self::NAME }) }
    }

    fn sum(x: &[Self]) -> Self {
        let (rows, tail) = x.as_chunks::<8>();
        let mut lanes = [0; 8];
        for rows in rows.chunks(Self::LAZY_MAX) {
            for row in rows {
                for (lane, &x) in lanes.iter_mut().zip(row) {
                    *lane = Self::lazy_add(*lane, x);
                }
            }
            lanes = lanes.map(fold);
        }
        let sum = lanes.iter().fold(Self::ZERO, |sum, &lane| sum + Self::lazy_finish(lane));
        tail.iter().fold(sum, |sum, &x| sum + x)
    }

    fn axpy(acc: &mut [Self], s: Self, x: &[Self]) {
        assert_same_length(acc.len(), x.len());
        for (acc, &x) in acc.iter_mut().zip(x) {
            *acc = s.multiply_add(x, *acc);
        }
    }

    fn inner_product(a: &[Self], b: &[Self]) -> Self {
        assert_same_length(a.len(), b.len());
        let (a, b) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
        Self(mersenne::inner_product(a, b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_laws_of_a_ring_hold() {
        crate::axioms::ring::<Fp61>();
    }

    #[test]
    fn values_out_of_range_are_refused_or_reduced() {
        for value in [0, 1, P - 1] {
            assert_eq!(Fp61::new(value).map(Fp61::value), Some(value));
        }
        for value in [P, P + 1, 1 << 61, 1 << 63, u64::MAX] {
            assert_eq!(Fp61::new(value), None);
        }
        for value in [0, 1, P - 1, P, P + 1, 2 * P, 8 * P - 1, 8 * P, u64::MAX] {
            assert_eq!(Fp61::reduce(value).value(), value % P, "{value}");
        }
    }

    #[test]
    fn arithmetic_agrees_with_128_bit_remainders() {
        let edges = [0, 1, 2, 7, 8, P / 2, P / 2 + 1, P - 2, P - 1];
        let p = u128::from(P);
        for a in edges {
            for b in edges {
                let (x, y) = (Fp61(a), Fp61(b));
                let (a, b) = (u128::from(a), u128::from(b));
                assert_eq!(u128::from((x + y).0), (a + b) % p, "{a} + {b}");
                assert_eq!(u128::from((x - y).0), (p + a - b) % p, "{a} - {b}");
                assert_eq!(u128::from((x * y).0), a * b % p, "{a} * {b}");
                assert_eq!(u128::from((-x).0), (p - a) % p, "-{a}");
                for z in edges {
                    let sum = (a * b + u128::from(z)) % p;
                    assert_eq!(u128::from(x.multiply_add(y, Fp61(z)).0), sum, "{a} * {b} + {z}");
                }
            }
        }
    }

    #[test]
    fn the_largest_elements_do_not_overflow() {
        let largest = Fp61(P - 1);
        for n in [7, 8, 56, 57, 63, 64, 65, 127, 128, 1009] {
            let xs = vec![largest; n];
            let n = u64::try_from(n).expect("a small number");
            assert_eq!(Fp61::sum(&xs), -Fp61(n));
            assert_eq!(Fp61::inner_product(&xs, &xs), Fp61(n));
        }
        let mut sum = 0;
        for n in 1..=5u64 {
            for _ in 0..Fp61::LAZY_MAX {
                sum = Fp61::lazy_add(sum, largest);
            }
            assert_eq!(Fp61::lazy_finish(sum), -Fp61(7 * n));
            sum = Fp61::lazy_fold(sum);
        }
    }

    #[test]
    fn non_canonical_encodings_are_refused() {
        for value in [P, P + 1, 1 << 61, 1 << 63, u64::MAX] {
            for position in [0, 3, 8] {
                let mut bytes = vec![0; 9 * 8];
                bytes[8 * position..][..8].copy_from_slice(&value.to_le_bytes());
                assert_eq!(
                    Fp61::read(&bytes, &mut [Fp61::ZERO; 9]),
                    Err(NotCanonical { ring: "fp61" }),
                    "{value} at {position}"
                );
            }
        }
    }
}
