//! Running sums in a vector register: of blocks, and of pairs of words.

use bytemuck::{Pod, Zeroable};

use crate::Block;

#[cfg(target_arch = "x86_64")]
type Register = std::arch::x86_64::__m128i;
#[cfg(target_arch = "aarch64")]
type Register = std::arch::aarch64::uint64x2_t;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
type Register = u128;

/// The running XOR of blocks; the default value is the empty sum.
///
/// It lives in a vector register. A [`Block`] takes two general registers, and adding one from
/// memory two instructions more.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(transparent)]
pub struct BlockSum(Register);

impl BlockSum {
    /// The sum with one more block.
    #[inline(always)]
    #[must_use]
    pub fn plus(self, block: Block) -> Self {
        let block: Register = bytemuck::cast(block);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 has SSE2.
        let sum = unsafe { std::arch::x86_64::_mm_xor_si128(self.0, block) };
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the targets of aarch64 have NEON.
        let sum = unsafe { std::arch::aarch64::veorq_u64(self.0, block) };
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
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
        Self(Zeroable::zeroed())
    }
}

/// Two running sums modulo 2^64, one of the first and one of the second words of pairs; the default
/// value is the empty sums.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(transparent)]
pub struct WordSums(
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))] Register,
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))] [u64; 2],
);

#[cfg(target_arch = "x86_64")]
impl WordSums {
    /// The sums with one more pair.
    #[inline(always)]
    #[must_use]
    pub fn plus(self, words: [u64; 2]) -> Self {
        // SAFETY: every x86-64 has SSE2.
        Self(unsafe { std::arch::x86_64::_mm_add_epi64(self.0, bytemuck::cast(words)) })
    }

    /// Of each sum, the `BITS` lowest bits plus the remaining bits shifted down: the same number
    /// modulo `2^BITS - 1`.
    #[inline(always)]
    #[must_use]
    pub fn folded<const BITS: i32>(self) -> Self {
        use std::arch::x86_64::{_mm_add_epi64, _mm_and_si128, _mm_set1_epi64x, _mm_srli_epi64};
        // SAFETY: every x86-64 has SSE2.
        unsafe {
            let low = _mm_and_si128(self.0, _mm_set1_epi64x((1 << BITS) - 1));
            Self(_mm_add_epi64(low, _mm_srli_epi64::<BITS>(self.0)))
        }
    }
}

#[cfg(target_arch = "aarch64")]
impl WordSums {
    /// The sums with one more pair.
    #[inline(always)]
    #[must_use]
    pub fn plus(self, words: [u64; 2]) -> Self {
        // SAFETY: the targets of aarch64 have NEON.
        Self(unsafe { std::arch::aarch64::vaddq_u64(self.0, bytemuck::cast(words)) })
    }

    /// Of each sum, the `BITS` lowest bits plus the remaining bits shifted down: the same number
    /// modulo `2^BITS - 1`.
    #[inline(always)]
    #[must_use]
    pub fn folded<const BITS: i32>(self) -> Self {
        use std::arch::aarch64::{vandq_u64, vdupq_n_u64, vsraq_n_u64};
        // SAFETY: the targets of aarch64 have NEON.
        unsafe {
            let low = vandq_u64(self.0, vdupq_n_u64((1 << BITS) - 1));
            Self(vsraq_n_u64::<BITS>(low, self.0))
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl WordSums {
    /// The sums with one more pair.
    #[inline(always)]
    #[must_use]
    pub fn plus(self, [a, b]: [u64; 2]) -> Self {
        Self([self.0[0].wrapping_add(a), self.0[1].wrapping_add(b)])
    }

    /// Of each sum, the `BITS` lowest bits plus the remaining bits shifted down: the same number
    /// modulo `2^BITS - 1`.
    #[inline(always)]
    #[must_use]
    pub fn folded<const BITS: i32>(self) -> Self {
        Self(self.0.map(|sum| (sum & ((1 << BITS) - 1)) + (sum >> BITS)))
    }
}

impl WordSums {
    /// The two sums.
    #[inline(always)]
    #[must_use]
    pub fn words(self) -> [u64; 2] {
        bytemuck::cast(self.0)
    }
}

impl Default for WordSums {
    #[inline(always)]
    fn default() -> Self {
        Self(Zeroable::zeroed())
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

    #[test]
    fn sums_of_words_are_apart() {
        let pairs = [[u64::MAX, 1], [2, u64::MAX - 1], [1 << 61, (1 << 61) - 1]];
        let sums = pairs.iter().fold(WordSums::default(), |s, p| s.plus(*p));
        assert_eq!(sums.words(), [(1 << 61) + 1, (1 << 61) - 2]);
        assert_eq!(sums.folded::<61>().words(), [2, (1 << 61) - 2]);
        assert_eq!(
            WordSums::default().plus([u64::MAX, 0]).folded::<61>().words(),
            [(1 << 61) + 6, 0]
        );
    }
}
