//! The integers modulo the Mersenne prime `2^31 - 1`, and their extension of degree 4.

use core::fmt;

use bytemuck::{Pod, Zeroable};
use subtle::Choice;
use volery_primitives::Block;

use crate::extension::{Extended, Extension};
use crate::ring::{Field, NotCanonical, Ring, assert_same_length};

/// An integer modulo `2^31 - 1`, in `0..2^31 - 1`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Fp31(u32);

/// `Fp31[X] / (X^4 - 4X^2 + 5)`, of about `2^124` elements.
///
/// `X^2 = 2 + i` with `i^2 = -1`: `-1` is no square modulo `2^31 - 1`, and `2 + i`, whose norm is
/// 5, none in the field with `i`.
pub type Fp31x4 = Extension<Fp31, 4>;

/// The modulus.
const P: u32 = Fp31::MODULUS;

impl Fp31 {
    /// The modulus, `2^31 - 1`.
    pub const MODULUS: u32 = (1 << 31) - 1;

    /// `value` modulo `2^31 - 1`, for any `value`.
    #[inline(always)]
    pub const fn reduce(value: u64) -> Self {
        let once = (value & P as u64) + (value >> 31);
        Self(subtract_modulus_once(((once & P as u64) + (once >> 31)) as u32))
    }

    /// The canonical value, below the modulus.
    #[inline(always)]
    pub const fn value(self) -> u32 {
        self.0
    }
}

/// Reduces from `0..2p` to `0..p`: exactly if the value is p or more, adding one sets bit 31.
#[inline(always)]
const fn subtract_modulus_once(value: u32) -> u32 {
    (value + ((value + 1) >> 31)) & P
}

crate::element!(Fp31: |x, y|
    Self(subtract_modulus_once(x.0 + y.0)),
    Self(subtract_modulus_once(x.0 + (P - y.0))),
    Self::reduce(u64::from(x.0) * u64::from(y.0)),
    Self(subtract_modulus_once(P - x.0))
);

/// Prints the canonical value in decimal.
impl fmt::Display for Fp31 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// The element of a number below `2^16`; [`Fp31::reduce`] takes larger ones.
impl From<u16> for Fp31 {
    fn from(value: u16) -> Self {
        Self(value.into())
    }
}

impl Field for Fp31 {
    const ORDER_LESS_TWO: u128 = P as u128 - 2;
}

impl Field for Fp31x4 {
    const ORDER_LESS_TWO: u128 = (P as u128).pow(4) - 2;
}

impl Extended<4> for Fp31 {
    const EXTENSION: &'static str = "fp31x4";
    const TOP: [Self; 4] = [Self(P - 5), Self(0), Self(4), Self(0)];
}

impl Ring for Fp31 {
    const ZERO: Self = Self(0);
    const ONE: Self = Self(1);
    const NAME: &'static str = "fp31";
    const BITS: u32 = 31;
    const BYTES: usize = 4;
    // 2^64 = 4 modulo p: four residues have one preimage more than the others.
    const WORDS: usize = 1;
    const GENERATED_BY_ONE: bool = true;

    type Lazy = u64;

    #[inline(always)]
    fn lazy_add(sum: u64, x: Self) -> u64 {
        sum + u64::from(x.0)
    }

    #[inline(always)]
    fn lazy_finish(sum: u64) -> Self {
        Self::reduce(sum)
    }

    type LazyPair = [u64; 2];

    #[inline(always)]
    fn pair_add([a, b]: [u64; 2], [x, y]: [Self; 2]) -> [u64; 2] {
        [Self::lazy_add(a, x), Self::lazy_add(b, y)]
    }

    #[inline(always)]
    fn pair_finish(sums: [u64; 2]) -> [Self; 2] {
        sums.map(Self::reduce)
    }

    #[inline(always)]
    fn from_block(block: Block) -> Self {
        Self::reduce(block.low())
    }

    #[inline(always)]
    fn from_words(words: &[u64]) -> Self {
        assert_same_length(words.len(), 1);
        Self::reduce(words[0])
    }

    #[inline(always)]
    fn bit(self, i: u32) -> Choice {
        assert!(i < Self::BITS, "bit {i} of an element of 31 bits");
        Choice::from((self.0 >> i) as u8 & 1)
    }

    #[inline(always)]
    fn power_of_two(i: u32) -> Self {
        assert!(i < Self::BITS, "2^{i} in a ring of 31 bits");
        Self(1 << i)
    }

    fn write(xs: &[Self], out: &mut Vec<u8>) {
        out.extend(xs.iter().flat_map(|x| x.0.to_le_bytes()));
    }

    fn read(bytes: &[u8], out: &mut [Self]) -> Result<(), NotCanonical> {
        assert_same_length(bytes.len(), Self::encoded_len(out.len()));
        let mut difference = 0;
        for (&bytes, out) in bytes.as_chunks().0.iter().zip(out) {
            let value = u32::from_le_bytes(bytes);
            *out = Self::reduce(value.into());
            difference |= value ^ out.0;
        }
        // mutant(fp31-canonical): `difference == 0` => `true`
        if difference == 0 { Ok(()) } else { Err(NotCanonical { ring: Self::NAME }) }
    }
}
