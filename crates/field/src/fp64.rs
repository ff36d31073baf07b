//! The integers modulo the prime `2^64 - 2^32 + 1` ("Goldilocks"), and their extension of degree 2.
//!
//! `2^64 = 2^32 - 1` and `2^96 = -1` reduce a product with additions.

use bytemuck::{Pod, Zeroable};

use crate::extension::{Extended, Extension};
use crate::ring::Field;

/// An integer modulo `2^64 - 2^32 + 1`, in canonical form.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Fp64(u64);

/// `Fp64[X] / (X^2 - 7)`, of about `2^128` elements: 7 generates the multiplicative group, so it is
/// no square.
pub type Fp64x2 = Extension<Fp64, 2>;

/// The modulus.
const P: u64 = Fp64::MODULUS;

/// `2^64` modulo [`P`].
const EXCESS: u64 = P.wrapping_neg();

impl Fp64 {
    /// The modulus, `2^64 - 2^32 + 1`.
    pub const MODULUS: u64 = u64::MAX - u32::MAX as u64 + 1;

    /// `value` modulo the modulus, for any `value`.
    #[inline(always)]
    pub const fn reduce(value: u128) -> Self {
        let (low, high) = (value as u64, (value >> 64) as u64);
        // low + high_low * 2^64 + high_high * 2^96
        let (sum, borrow) = low.overflowing_sub(high >> 32);
        // 2^64 was added; the difference is at least 2^64 - 2^32, so no other borrow follows.
        let sum = sum.wrapping_sub(EXCESS & mask(borrow));
        let (sum, carry) = sum.overflowing_add((high & EXCESS) * EXCESS);
        // The second summand is at most 2^64 - 2^33 + 1, so no other carry follows.
        canonical(sum.wrapping_add(EXCESS & mask(carry)), false)
    }

    /// The canonical value, below the modulus.
    #[inline(always)]
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// All ones if `condition`.
#[inline(always)]
const fn mask(condition: bool) -> u64 {
    (condition as u64).wrapping_neg()
}

/// `value`, plus `2^64` if `carry`, from `0..2p` to `0..p`.
#[inline(always)]
const fn canonical(value: u64, carry: bool) -> Fp64 {
    let (less, borrow) = value.overflowing_sub(P);
    let keep = mask(borrow & !carry);
    Fp64((value & keep) | (less & !keep))
}

/// The sum.
#[inline(always)]
const fn add(x: Fp64, y: Fp64) -> Fp64 {
    let (sum, carry) = x.0.overflowing_add(y.0);
    canonical(sum, carry)
}

/// The difference.
#[inline(always)]
const fn subtract(x: Fp64, y: Fp64) -> Fp64 {
    let (difference, borrow) = x.0.overflowing_sub(y.0);
    Fp64(difference.wrapping_add(P & mask(borrow)))
}

crate::element!(Fp64: |x, y|
    add(x, y),
    subtract(x, y),
    Self::reduce(u128::from(x.0) * u128::from(y.0)),
    subtract(Self(0), x)
);

/// The element of a number below `2^32`; [`Fp64::reduce`] takes larger ones.
impl From<u32> for Fp64 {
    fn from(value: u32) -> Self {
        Self(value.into())
    }
}

impl Field for Fp64 {
    const ORDER_LESS_TWO: u128 = P as u128 - 2;
}

impl Field for Fp64x2 {
    const ORDER_LESS_TWO: u128 = (P as u128).pow(2) - 2;
}

impl Extended<2> for Fp64 {
    const EXTENSION: &'static str = "fp64x2";
    const TOP: [Self; 2] = [Self(7), Self(0)];
}

// From one word, 2^32 - 1 of 2^64 values would be too many by one.
crate::prime_field!(Fp64(u64): "fp64", 64 bits, 2 words, u128 sums, Fp64::reduce);
