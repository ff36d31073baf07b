//! The field of `2^128` elements, `GF(2)[X] / (X^128 + X^7 + X^2 + X + 1)`; bit `i` of the block is
//! the coefficient of `X^i`.

use core::fmt;

use bytemuck::{Pod, Zeroable};
use subtle::Choice;
use volery_primitives::{Block, BlockSum, clmul, gather::Lanes};

use crate::F2;
use crate::element;
use crate::ring::{ExtensionOf, Field, NotCanonical, Ring, assert_same_length};

/// An element of `GF(2^128)`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Gf128(Block);

impl Gf128 {
    /// The element whose coefficient of `X^i` is bit `i` of `block`.
    #[inline(always)]
    pub const fn new(block: Block) -> Self {
        Self(block)
    }

    /// The block whose bit `i` is the coefficient of `X^i`.
    #[inline(always)]
    pub const fn value(self) -> Block {
        self.0
    }
}

impl From<Block> for Gf128 {
    fn from(block: Block) -> Self {
        Self(block)
    }
}

impl From<u128> for Gf128 {
    fn from(coefficients: u128) -> Self {
        Self(coefficients.into())
    }
}

impl From<Gf128> for Block {
    fn from(x: Gf128) -> Self {
        x.0
    }
}

// Sums and differences modulo 2 are the same, and an element is its own negative.
element!(Gf128: |x, y|
    Self(x.0 ^ y.0),
    Self(x.0 ^ y.0),
    Self(clmul::gf128_mul(x.0, y.0)),
    x
);

/// Prints the coefficients as one hexadecimal number of 32 digits, that of `X^127` first.
impl fmt::Display for Gf128 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from(self.0))
    }
}

impl Field for Gf128 {
    const ORDER_LESS_TWO: u128 = u128::MAX - 1;
}

impl Ring for Gf128 {
    const ZERO: Self = Self(Block::ZERO);
    const ONE: Self = Self(Block::ONE);
    const NAME: &'static str = "gf128";
    const BITS: u32 = 128;
    const BYTES: usize = 16;
    const WORDS: usize = 2;
    const GENERATED_BY_ONE: bool = false;

    type Lazy = BlockSum;
    const LANES: Option<Lanes> = Some(Lanes::Xor);

    #[inline(always)]
    fn lazy_add(sum: BlockSum, x: Self) -> BlockSum {
        sum.plus(x.0)
    }

    #[inline(always)]
    fn lazy_finish(sum: BlockSum) -> Self {
        Self(sum.block())
    }

    type LazyPair = [BlockSum; 2];

    #[inline(always)]
    fn pair_add([a, b]: [BlockSum; 2], [x, y]: [Self; 2]) -> [BlockSum; 2] {
        [a.plus(x.0), b.plus(y.0)]
    }

    #[inline(always)]
    fn pair_finish(sums: [BlockSum; 2]) -> [Self; 2] {
        sums.map(Self::lazy_finish)
    }

    fn as_blocks_mut(elements: &mut [Self]) -> Option<&mut [Block]> {
        Some(bytemuck::cast_slice_mut(elements))
    }

    fn as_words_mut(elements: &mut [Self]) -> Option<&mut [u64]> {
        Some(bytemuck::cast_slice_mut(elements))
    }

    #[inline(always)]
    fn from_block(block: Block) -> Self {
        Self(block)
    }

    #[inline(always)]
    fn from_words(words: &[u64]) -> Self {
        assert_same_length(words.len(), 2);
        Self(Block::from_words(words[0], words[1]))
    }

    #[inline(always)]
    fn bit(self, i: u32) -> Choice {
        assert!(i < Self::BITS, "bit {i} of an element of 128 bits");
        Choice::from((u128::from(self.0) >> i) as u8 & 1)
    }

    #[inline(always)]
    fn power_of_two(i: u32) -> Self {
        assert!(i < Self::BITS, "X^{i} in a field of 128 bits");
        Self(Block::from(1 << i))
    }

    fn write(xs: &[Self], out: &mut Vec<u8>) {
        out.extend_from_slice(bytemuck::cast_slice(xs));
    }

    fn read(bytes: &[u8], out: &mut [Self]) -> Result<(), NotCanonical> {
        assert_same_length(bytes.len(), Self::encoded_len(out.len()));
        bytemuck::cast_slice_mut(out).copy_from_slice(bytes);
        Ok(())
    }

    fn axpy(acc: &mut [Self], s: Self, x: &[Self]) {
        assert_same_length(acc.len(), x.len());
        clmul::gf128_axpy(bytemuck::cast_slice_mut(acc), s.0, bytemuck::cast_slice(x));
    }

    fn add_products<const N: usize>(a: [&[Self]; N], b: [&[Self]; N], out: &mut [Self]) {
        for factors in a.iter().chain(&b) {
            assert_same_length(factors.len(), out.len());
        }
        let (a, b) = (a.map(bytemuck::cast_slice), b.map(bytemuck::cast_slice));
        clmul::gf128_add_products(a, b, bytemuck::cast_slice_mut(out));
    }

    fn inner_product(a: &[Self], b: &[Self]) -> Self {
        assert_same_length(a.len(), b.len());
        Self(clmul::gf128_inner_product(bytemuck::cast_slice(a), bytemuck::cast_slice(b)))
    }
}

impl ExtensionOf<F2> for Gf128 {
    const DEGREE: usize = 128;

    fn basis(i: usize) -> Self {
        Self::power_of_two(i as u32)
    }

    #[inline(always)]
    fn embed(b: F2) -> Self {
        Self(Block::from(u128::from(b.value())))
    }

    #[inline(always)]
    fn mul_base(self, b: F2) -> Self {
        let mask = 0u128.wrapping_sub(u128::from(b.value()));
        Self(self.0 & Block::from(mask))
    }

    fn axpy_base(acc: &mut [Self], s: Self, x: &[F2]) {
        assert_same_length(acc.len(), x.len());
        for (acc, &x) in acc.iter_mut().zip(x) {
            *acc += s.mul_base(x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_laws_of_a_ring_and_of_an_extension_hold() {
        crate::axioms::ring::<Gf128>();
        crate::axioms::extension::<Gf128, F2>();
    }
}
