//! AES-128 with AES-NI, a block at a time: key schedules, and what the kernels for vectors leave
//! over.

use std::arch::x86_64::*;

use zeroize::Zeroize;

use crate::Block;
use crate::arch::portable::aes::orthomorphism;
use crate::arch::wide::single;

/// The round constants of FIPS 197, section 5.2.
const ROUND_CONSTANTS: [i32; 10] = [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];

/// The eleven round keys, wiped on drop.
pub(crate) struct Schedule([Block; 11]);

impl Schedule {
    /// The key schedule of FIPS 197, section 5.2, in constant time.
    #[target_feature(enable = "aes,avx2")]
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

/// AESKEYGENASSIST is slow on many processors. AESENCLAST substitutes bytes as well; it also shifts
/// rows, which has no effect if all columns are equal.
#[inline]
#[target_feature(enable = "aes,avx2")]
fn next_round_key(key: Block, constant: i32) -> Block {
    let key: __m128i = bytemuck::cast(key);
    // RotWord of the last word, in all four.
    let rotated = _mm_shuffle_epi8(key, _mm_set1_epi32(0x0c0f_0e0d));
    let assist = _mm_aesenclast_si128(rotated, _mm_set1_epi32(constant));
    // Each word of the new key is that word plus the sum of the old words up to its position.
    let mut sums = _mm_xor_si128(key, _mm_slli_si128::<4>(key));
    sums = _mm_xor_si128(sums, _mm_slli_si128::<8>(sums));
    bytemuck::cast(_mm_xor_si128(sums, assist))
}

#[inline]
#[target_feature(enable = "aes,avx2")]
fn encrypt(keys: &[Block; 11], x: Block) -> Block {
    let keys: &[__m128i; 11] = bytemuck::cast_ref(keys);
    let mut x = _mm_xor_si128(bytemuck::cast(x), keys[0]);
    for key in &keys[1..10] {
        x = _mm_aesenc_si128(x, *key);
    }
    bytemuck::cast(_mm_aesenclast_si128(x, keys[10]))
}

single::kernels!("aes,avx2");
