//! The field of two elements.
//!
//! An element takes a byte in memory and a bit on the wire. Speed-critical code keeps bits packed,
//! with [`volery_primitives::bits`]; this type is for code generic over all rings.

use core::fmt;

use bytemuck::{NoUninit, Zeroable};
use subtle::Choice;
use volery_primitives::{Block, gather::Lanes, prg::Prg};
use zeroize::Zeroize;

use crate::element;
use crate::ring::{Field, NotCanonical, Ring, assert_same_length};

/// An element of the field of two elements.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, NoUninit, Zeroable)]
#[repr(transparent)]
pub struct F2(u8);

impl F2 {
    /// One for `true`, zero for `false`.
    #[inline(always)]
    pub const fn new(value: bool) -> Self {
        Self(value as u8)
    }

    /// 0 or 1.
    #[inline(always)]
    pub const fn value(self) -> u8 {
        self.0
    }
}

impl From<Choice> for F2 {
    fn from(choice: Choice) -> Self {
        Self(choice.unwrap_u8())
    }
}

impl From<F2> for Choice {
    fn from(x: F2) -> Self {
        Self::from(x.0)
    }
}

// Sums and differences modulo 2 are the same, and an element is its own negative.
element!(F2: |x, y| Self(x.0 ^ y.0), Self(x.0 ^ y.0), Self(x.0 & y.0), x);

/// Prints 0 or 1.
impl fmt::Display for F2 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

impl Field for F2 {
    // In two elements x^1 = x^0, except of zero.
    const ORDER_LESS_TWO: u128 = 1;
}

impl Ring for F2 {
    const ZERO: Self = Self(0);
    const ONE: Self = Self(1);
    const NAME: &'static str = "f2";
    const BITS: u32 = 1;
    const BYTES: usize = 1;
    const WORDS: usize = 1;
    const GENERATED_BY_ONE: bool = true;

    type Lazy = u8;
    const LANES: Option<Lanes> = Some(Lanes::Xor);

    #[inline(always)]
    fn lazy_add(sum: u8, x: Self) -> u8 {
        sum ^ x.0
    }

    #[inline(always)]
    fn lazy_finish(sum: u8) -> Self {
        Self(sum)
    }

    type LazyPair = [u8; 2];

    #[inline(always)]
    fn pair_add([a, b]: [u8; 2], [x, y]: [Self; 2]) -> [u8; 2] {
        [a ^ x.0, b ^ y.0]
    }

    #[inline(always)]
    fn pair_finish(sums: [u8; 2]) -> [Self; 2] {
        sums.map(Self)
    }

    #[inline(always)]
    fn from_block(block: Block) -> Self {
        Self(block.low() as u8 & 1)
    }

    #[inline(always)]
    fn from_words(words: &[u64]) -> Self {
        assert_same_length(words.len(), 1);
        Self(words[0] as u8 & 1)
    }

    fn random_slice(prg: &mut Prg, out: &mut [Self]) {
        const BUFFER: usize = 512;
        let mut buffer = [0; BUFFER];
        for out in out.chunks_mut(8 * BUFFER) {
            let bytes = &mut buffer[..Self::encoded_len(out.len())];
            prg.fill_bytes(bytes);
            unpack(bytes, out);
        }
        buffer.zeroize();
    }

    fn random_noise(_: &mut Prg) -> Self {
        Self::ONE
    }

    #[inline(always)]
    fn bit(self, i: u32) -> Choice {
        assert!(i < Self::BITS, "bit {i} of an element of one bit");
        Choice::from(self.0)
    }

    #[inline(always)]
    fn power_of_two(i: u32) -> Self {
        assert!(i < Self::BITS, "2^{i} in a field of one bit");
        Self::ONE
    }

    fn encoded_len(n: usize) -> usize {
        n.div_ceil(8)
    }

    fn write(xs: &[Self], out: &mut Vec<u8>) {
        out.extend(
            xs.chunks(8).map(|xs| xs.iter().enumerate().fold(0, |byte, (i, x)| byte | (x.0 << i))),
        );
    }

    fn read(bytes: &[u8], out: &mut [Self]) -> Result<(), NotCanonical> {
        assert_same_length(bytes.len(), Self::encoded_len(out.len()));
        unpack(bytes, out);
        let used = out.len() % 8;
        let padding = match bytes.last() {
            Some(&last) if used != 0 => last >> used,
            _ => 0,
        };
        // mutant(f2-canonical): `padding == 0` => `true`
        if padding == 0 { Ok(()) } else { Err(NotCanonical { ring: Self::NAME }) }
    }
}

/// The first `out.len()` bits of `bytes`, low bit first.
fn unpack(bytes: &[u8], out: &mut [F2]) {
    for (out, byte) in out.chunks_mut(8).zip(bytes) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = F2((byte >> i) & 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_laws_of_a_ring_hold() {
        crate::axioms::ring::<F2>();
    }

    #[test]
    fn bits_are_packed_low_bit_first() {
        let bits = [1, 0, 0, 1, 0, 0, 0, 0, 0, 1].map(|bit| F2::new(bit == 1));
        let mut bytes = vec![0xff];
        F2::write(&bits, &mut bytes);
        assert_eq!(bytes, [0xff, 0b1001, 0b10]);
    }

    #[test]
    fn a_bit_in_the_padding_is_refused() {
        for n in [1, 7, 9, 15, 17] {
            let len = F2::encoded_len(n);
            for padding_bit in n % 8..8 {
                let mut bytes = vec![0; len];
                bytes[len - 1] = 1 << padding_bit;
                assert_eq!(
                    F2::read(&bytes, &mut vec![F2::ZERO; n]),
                    Err(NotCanonical { ring: "f2" }),
                    "bit {padding_bit} after {n}"
                );
            }
        }
        assert_eq!(F2::read(&[0xff], &mut [F2::ZERO; 8]), Ok(()));
    }
}
