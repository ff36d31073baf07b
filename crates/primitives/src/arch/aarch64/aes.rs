//! AES-128 with the instructions of ARMv8, a block at a time: key schedules, and what the kernels
//! for vectors leave over.

use std::arch::aarch64::*;

use zeroize::Zeroize;

use crate::Block;
use crate::arch::portable::aes::orthomorphism;
use crate::arch::wide::single;

/// The round constants of FIPS 197, section 5.2.
const ROUND_CONSTANTS: [u32; 10] = [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];

/// The eleven round keys, wiped on drop.
pub(crate) struct Schedule([Block; 11]);

impl Schedule {
    /// The key schedule of FIPS 197, section 5.2, in constant time.
    #[target_feature(enable = "neon,aes")]
    pub(crate) fn new(key: Block) -> Self {
        let mut keys = [key; 11];
        for (round, constant) in ROUND_CONSTANTS.into_iter().enumerate() {
            keys[round + 1] = next_round_key(keys[round], constant);
        }
        Self(keys)
    }

    #[inline]
    pub(crate) fn keys(&self) -> &[Block; 11] {
        &self.0
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The instruction substitutes bytes and shifts rows, which has no effect if all columns are equal.
#[inline]
#[target_feature(enable = "neon,aes")]
fn next_round_key(key: Block, constant: u32) -> Block {
    let zero = vdupq_n_u8(0);
    let key: uint8x16_t = bytemuck::cast(key);
    // RotWord of the last word, in all four.
    let rotate = vreinterpretq_u8_u32(vdupq_n_u32(0x0c0f_0e0d));
    let assist = vaeseq_u8(vqtbl1q_u8(key, rotate), zero);
    let assist = veorq_u8(assist, vreinterpretq_u8_u32(vdupq_n_u32(constant)));
    // Each word of the new key is that word plus the sum of the old words up to its position.
    let mut sums = veorq_u8(key, vextq_u8::<12>(zero, key));
    sums = veorq_u8(sums, vextq_u8::<8>(zero, sums));
    bytemuck::cast(veorq_u8(sums, assist))
}

#[inline]
#[target_feature(enable = "neon,aes")]
fn encrypt(keys: &[Block; 11], x: Block) -> Block {
    let mut x: uint8x16_t = bytemuck::cast(x);
    for key in &keys[..9] {
        x = vaesmcq_u8(vaeseq_u8(x, bytemuck::cast(*key)));
    }
    x = vaeseq_u8(x, bytemuck::cast(keys[9]));
    bytemuck::cast(veorq_u8(x, bytemuck::cast(keys[10])))
}

single::kernels!("neon,aes");
