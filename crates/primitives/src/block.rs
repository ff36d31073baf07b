//! The 128-bit block.

use std::fmt;
use std::ops::{BitAnd, BitAndAssign, BitOr, BitXor, BitXorAssign, Not};

use bytemuck::{Pod, Zeroable};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// 128 bits: a seed, a key, a row of a bit matrix, or an element of GF(2^128).
///
/// As bytes a block is little endian; bit `i` is bit `i` of the integer, bit `i % 8` of byte
/// `i / 8`, and in GF(2^128) the coefficient of X^i. In memory a block is 16-byte aligned.
///
/// `==` takes time that may depend on the values; compare secrets with [`ConstantTimeEq`]. `Debug`
/// does not print the value; `{:x}` does.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Block(u128);

impl Block {
    /// All bits zero.
    pub const ZERO: Self = Self(0);
    /// Only bit 0 set: the one of GF(2^128).
    pub const ONE: Self = Self(1);
    /// All bits one.
    pub const ALL_ONES: Self = Self(u128::MAX);

    /// The block with the bits of `value`.
    #[inline]
    pub const fn new(value: u128) -> Self {
        Self(value)
    }

    /// The block of 16 bytes, little endian.
    #[inline]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }

    /// The 16 bytes, little endian.
    #[inline]
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// The block of two words: bits 0 to 63 and bits 64 to 127.
    #[inline]
    pub const fn from_words(low: u64, high: u64) -> Self {
        Self(low as u128 | (high as u128) << 64)
    }

    /// Bits 0 to 63.
    #[inline]
    #[must_use]
    pub const fn low(self) -> u64 {
        self.0 as u64
    }

    /// Bits 64 to 127.
    #[inline]
    #[must_use]
    pub const fn high(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Bit 0.
    #[inline]
    #[must_use]
    pub const fn lsb(self) -> bool {
        self.0 & 1 == 1
    }

    /// The same block with bit 0 replaced.
    #[inline]
    #[must_use]
    pub const fn with_lsb(self, bit: bool) -> Self {
        Self(self.0 & !1 | bit as u128)
    }

    /// Bit `index`.
    ///
    /// # Panics
    /// If `index` is 128 or more.
    #[inline]
    #[must_use]
    pub const fn bit(self, index: usize) -> bool {
        assert!(index < 128, "a block has 128 bits");
        self.0 >> index & 1 == 1
    }

    /// All bits equal to `bit`, without a branch: `x & Block::select_mask(b)` is `x` or zero.
    #[inline]
    pub const fn select_mask(bit: bool) -> Self {
        Self((bit as u128).wrapping_neg())
    }

    /// The blocks as bytes, little endian one after the other.
    #[inline]
    pub fn as_bytes(blocks: &[Self]) -> &[u8] {
        bytemuck::cast_slice(blocks)
    }

    /// The blocks as bytes that can be written, little endian one after the other.
    #[inline]
    #[must_use]
    pub fn as_bytes_mut(blocks: &mut [Self]) -> &mut [u8] {
        bytemuck::cast_slice_mut(blocks)
    }
}

impl From<u128> for Block {
    #[inline]
    fn from(value: u128) -> Self {
        Self(value)
    }
}

impl From<Block> for u128 {
    #[inline]
    fn from(block: Block) -> Self {
        block.0
    }
}

impl From<[u8; 16]> for Block {
    #[inline]
    fn from(bytes: [u8; 16]) -> Self {
        Self::from_bytes(bytes)
    }
}

impl From<Block> for [u8; 16] {
    #[inline]
    fn from(block: Block) -> Self {
        block.to_bytes()
    }
}

impl BitXor for Block {
    type Output = Self;

    #[inline]
    fn bitxor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
}

impl BitXorAssign for Block {
    #[inline]
    fn bitxor_assign(&mut self, other: Self) {
        self.0 ^= other.0;
    }
}

impl BitAnd for Block {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitAndAssign for Block {
    #[inline]
    fn bitand_assign(&mut self, other: Self) {
        self.0 &= other.0;
    }
}

impl BitOr for Block {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Not for Block {
    type Output = Self;

    #[inline]
    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl ConstantTimeEq for Block {
    #[inline]
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl ConditionallySelectable for Block {
    #[inline]
    fn conditional_select(a: &Self, b: &Self, choice: Choice) -> Self {
        Self(u128::conditional_select(&a.0, &b.0, choice))
    }
}

impl zeroize::DefaultIsZeroes for Block {}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Block(..)")
    }
}

impl fmt::LowerHex for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_little_endian_and_bits_follow_them() {
        let bytes: [u8; 16] = std::array::from_fn(|i| (i * 17 + 1) as u8);
        let block = Block::from_bytes(bytes);
        assert_eq!(block.to_bytes(), bytes);
        assert_eq!(Block::as_bytes(&[block]), bytes);
        assert_eq!(block, Block::from_words(block.low(), block.high()));
        assert_eq!(block.low(), u64::from_le_bytes(std::array::from_fn(|i| bytes[i])));
        for i in 0..128 {
            assert_eq!(block.bit(i), bytes[i / 8] >> (i % 8) & 1 == 1);
        }
    }

    #[test]
    fn debug_hides_the_value() {
        assert_eq!(format!("{:?}", Block::new(0xabc)), "Block(..)");
        assert_eq!(format!("{:x}", Block::new(0xabc)), "abc");
    }
}
