//! The integers modulo `2^64`: the machine's own arithmetic.

use core::fmt;

use bytemuck::{Pod, Zeroable};
use subtle::Choice;
use volery_primitives::{Block, WordSums, gather::Lanes, prg::Prg};

use crate::element;
use crate::ring::{NotCanonical, Ring, assert_same_length};

/// An integer modulo `2^64`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Z64(u64);

impl Z64 {
    /// The element of this value.
    #[inline(always)]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The value.
    #[inline(always)]
    pub const fn value(self) -> u64 {
        self.0
    }
}

element!(Z64: |x, y|
    Self(x.0.wrapping_add(y.0)),
    Self(x.0.wrapping_sub(y.0)),
    Self(x.0.wrapping_mul(y.0)),
    Self(x.0.wrapping_neg())
);

impl From<u64> for Z64 {
    fn from(value: u64) -> Self {
        Self(value)
    }
}

/// Prints the value in decimal.
impl fmt::Display for Z64 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

impl Ring for Z64 {
    const ZERO: Self = Self(0);
    const ONE: Self = Self(1);
    const NAME: &'static str = "z64";
    const BITS: u32 = 64;
    const BYTES: usize = 8;
    const WORDS: usize = 1;
    const GENERATED_BY_ONE: bool = true;

    type Lazy = u64;
    const LANES: Option<Lanes> = Some(Lanes::Words);

    #[inline(always)]
    fn lazy_add(sum: u64, x: Self) -> u64 {
        sum.wrapping_add(x.0)
    }

    #[inline(always)]
    fn lazy_finish(sum: u64) -> Self {
        Self(sum)
    }

    type LazyPair = WordSums;

    #[inline(always)]
    fn pair_add(sums: WordSums, [x, y]: [Self; 2]) -> WordSums {
        sums.plus([x.0, y.0])
    }

    #[inline(always)]
    fn pair_finish(sums: WordSums) -> [Self; 2] {
        sums.words().map(Self)
    }

    #[inline(always)]
    fn from_block(block: Block) -> Self {
        Self(block.low())
    }

    #[inline(always)]
    fn from_words(words: &[u64]) -> Self {
        assert_same_length(words.len(), 1);
        Self(words[0])
    }

    fn from_words_slice(words: &[u64], out: &mut [Self]) {
        assert_same_length(words.len(), out.len());
        out.copy_from_slice(bytemuck::cast_slice(words));
    }

    fn sum_sides(x: &[Self]) -> [Self; 2] {
        let (rows, tail) = x.as_chunks::<8>();
        let mut lanes = [0u64; 8];
        for row in rows {
            for (lane, x) in lanes.iter_mut().zip(row) {
                *lane = lane.wrapping_add(x.0);
            }
        }
        let mut sides = [Self::ZERO; 2];
        for (i, x) in lanes.into_iter().map(Self).chain(tail.iter().copied()).enumerate() {
            sides[i % 2] += x;
        }
        sides
    }

    fn random_noise(prg: &mut Prg) -> Self {
        Self(Self::random(prg).0 | 1)
    }

    #[inline(always)]
    fn bit(self, i: u32) -> Choice {
        assert!(i < Self::BITS, "bit {i} of an element of 64 bits");
        Choice::from((self.0 >> i) as u8 & 1)
    }

    #[inline(always)]
    fn power_of_two(i: u32) -> Self {
        assert!(i < Self::BITS, "2^{i} in a ring of 64 bits");
        Self(1 << i)
    }

    fn write(xs: &[Self], out: &mut Vec<u8>) {
        out.extend_from_slice(bytemuck::cast_slice(xs));
    }

    fn read(bytes: &[u8], out: &mut [Self]) -> Result<(), NotCanonical> {
        assert_same_length(bytes.len(), Self::encoded_len(out.len()));
        bytemuck::cast_slice_mut(out).copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_laws_of_a_ring_hold() {
        crate::axioms::ring::<Z64>();
    }

    #[test]
    fn noise_is_odd() {
        let mut prg = Prg::new(Block::ONE);
        for _ in 0..100 {
            assert_eq!(Z64::random_noise(&mut prg).value() & 1, 1);
        }
    }
}
