//! The integers modulo the Mersenne prime `2^31 - 1`, and their extension of degree 4.

use bytemuck::{Pod, Zeroable};

use crate::extension::{Extended, Extension};
use crate::ring::Field;

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

// 2^64 = 4 modulo p: four residues have one preimage more than the others.
crate::prime_field!(Fp31(u32): "fp31", 31 bits, 1 words, u64 sums, Fp31::reduce);
