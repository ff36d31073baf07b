//! AES-128 with the instructions of ARMv8, a block at a time: key schedules, and what the kernels
//! for vectors leave over.

use std::arch::aarch64::*;

use zeroize::Zeroize;

use crate::Block;
use crate::arch::portable::aes::orthomorphism;

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

/// `AES(x) ^ x`.
#[inline]
#[target_feature(enable = "neon,aes")]
fn hash(keys: &[Block; 11], x: Block) -> Block {
    encrypt(keys, x) ^ x
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn encrypt_blocks(schedule: &Schedule, x: &mut [Block]) {
    for x in x {
        *x = encrypt(schedule.keys(), *x);
    }
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn ctr(schedule: &Schedule, counter: u128, out: &mut [Block]) {
    for (i, out) in out.iter_mut().enumerate() {
        *out = encrypt(schedule.keys(), Block::new(counter.wrapping_add(i as u128)));
    }
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn feed_forward(schedule: &Schedule, x: &[Block], out: &mut [Block]) {
    for (x, out) in x.iter().zip(out) {
        *out = hash(schedule.keys(), *x);
    }
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn double(
    schedules: [&Schedule; 2],
    parents: &[Block],
    children: &mut [Block],
) -> [Block; 2] {
    let mut sums = [Block::ZERO; 2];
    for (i, child) in children.iter_mut().enumerate() {
        *child = hash(schedules[i % 2].keys(), parents[i / 2]);
        sums[i % 2] ^= *child;
    }
    sums
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn leaf_pairs(schedule: &Schedule, parents: &[Block], out: &mut [u64]) {
    for (out, parent) in out.chunks_mut(2).zip(parents) {
        let words: [u64; 2] = bytemuck::cast(hash(schedule.keys(), *parent));
        out.copy_from_slice(&words[..out.len()]);
    }
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn split(
    schedule: &Schedule,
    parents: &[Block],
    children: &mut [Block],
    mask: Block,
) -> [Block; 2] {
    let mut sums = [Block::ZERO; 2];
    for (pair, &parent) in children.as_chunks_mut::<2>().0.iter_mut().zip(parents) {
        let left = hash(schedule.keys(), orthomorphism(parent));
        let right = parent ^ left;
        *pair = [left & mask, right & mask];
        sums = [sums[0] ^ left, sums[1] ^ right];
    }
    sums
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn hash_words(schedule: &Schedule, parents: &[Block], out: &mut [u64]) {
    for (out, &parent) in out.chunks_mut(2).zip(parents) {
        let hash = hash(schedule.keys(), orthomorphism(parent));
        let words: [u64; 2] = bytemuck::cast(hash);
        out.copy_from_slice(&words[..out.len()]);
    }
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn hash_pairs(schedule: &Schedule, parents: &[Block], out: &mut [Block]) -> [Block; 2] {
    let mut sums = [Block::ZERO; 2];
    for (i, out) in out.iter_mut().enumerate() {
        let parent = parents[i / 2] ^ Block::new((i % 2) as u128);
        *out = hash(schedule.keys(), orthomorphism(parent));
        sums[i % 2] ^= *out;
    }
    sums
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn rekeyed(keys: &[Block], x: &mut [Block]) {
    for (key, x) in keys.iter().zip(x) {
        *x = hash(Schedule::new(*key).keys(), *x);
    }
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn rekeyed_circular(keys: &[Block], x: &mut [Block]) {
    for (key, x) in keys.iter().zip(x) {
        *x = hash(Schedule::new(*key).keys(), orthomorphism(*x));
    }
}

#[target_feature(enable = "neon,aes")]
pub(crate) fn rekeyed_circular_pairs(keys: &[Block], x: &mut [[Block; 2]]) {
    for (key, [first, second]) in keys.iter().zip(x) {
        let schedule = Schedule::new(*key);
        *first = hash(schedule.keys(), orthomorphism(*first));
        *second = hash(schedule.keys(), orthomorphism(*second));
    }
}
