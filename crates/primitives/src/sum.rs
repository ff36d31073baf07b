//! Sums of blocks in a vector register.

use crate::Block;

#[cfg(target_arch = "x86_64")]
type Register = std::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Register = u128;

/// The XOR of some blocks, under way; the default is that of none.
///
/// In a register for vectors, where a [`Block`] takes two of the others, and adding one from memory two instructions more.
#[derive(Clone, Copy)]
pub struct BlockSum(Register);

impl BlockSum {
    /// The sum with one block more.
    #[inline(always)]
    #[must_use]
    pub fn plus(self, block: Block) -> Self {
        let block: Register = bytemuck::cast(block);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 has SSE2.
        let sum = unsafe { std::arch::x86_64::_mm_xor_si128(self.0, block) };
        #[cfg(not(target_arch = "x86_64"))]
        let sum = self.0 ^ block;
        Self(sum)
    }

    /// The sum.
    #[inline(always)]
    #[must_use]
    pub fn block(self) -> Block {
        bytemuck::cast(self.0)
    }
}

impl Default for BlockSum {
    #[inline(always)]
    fn default() -> Self {
        Self(bytemuck::Zeroable::zeroed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_blocks() {
        let blocks = [1u128 << 127 | 5, 3 << 63, u128::MAX].map(Block::new);
        let sum = blocks.iter().fold(BlockSum::default(), |s, b| s.plus(*b));
        assert_eq!(sum.block(), blocks[0] ^ blocks[1] ^ blocks[2]);
        assert_eq!(BlockSum::default().block(), Block::ZERO);
    }
}
