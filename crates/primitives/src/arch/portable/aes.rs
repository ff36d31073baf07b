//! AES-128 by the `aes` crate, which is constant time on every processor.

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

use crate::Block;

/// Blocks encrypted at a time, a multiple of what the `aes` crate has in flight on any processor.
const CHUNK: usize = 64;

/// The round keys. The `aes` crate wipes them on drop.
pub(crate) struct Schedule(aes::Aes128);

impl Schedule {
    pub(crate) fn new(key: Block) -> Self {
        Self(aes::Aes128::new(&Array(key.to_bytes())))
    }
}

pub(crate) fn encrypt_blocks(keys: &Schedule, x: &mut [Block]) {
    let bytes: &mut [[u8; 16]] = bytemuck::cast_slice_mut(x);
    keys.0
        .encrypt_blocks(Array::cast_slice_from_core_mut(bytes));
}

pub(crate) fn ctr(keys: &Schedule, counter: u128, out: &mut [Block]) {
    for (i, block) in out.iter_mut().enumerate() {
        *block = Block::new(counter.wrapping_add(i as u128));
    }
    encrypt_blocks(keys, out);
}

pub(crate) fn feed_forward(keys: &Schedule, x: &[Block], out: &mut [Block]) {
    out.copy_from_slice(x);
    encrypt_blocks(keys, out);
    for (out, &x) in out.iter_mut().zip(x) {
        *out ^= x;
    }
}

pub(crate) fn double(
    keys: [&Schedule; 2],
    parents: &[Block],
    children: &mut [Block],
) -> [Block; 2] {
    let mut sums = [Block::ZERO; 2];
    let mut hashes = [Block::ZERO; CHUNK];
    for (parents, children) in parents.chunks(CHUNK).zip(children.chunks_mut(2 * CHUNK)) {
        for side in 0..2 {
            let hashes = &mut hashes[..parents.len()];
            feed_forward(keys[side], parents, hashes);
            let children = children.iter_mut().skip(side).step_by(2);
            for (child, &hash) in children.zip(hashes.iter()) {
                *child = hash;
                sums[side] ^= hash;
            }
        }
    }
    sums
}

pub(crate) fn leaf_pairs(keys: &Schedule, parents: &[Block], out: &mut [u64]) {
    let mut hashes = [Block::ZERO; CHUNK];
    for (parents, out) in parents.chunks(CHUNK).zip(out.chunks_mut(2 * CHUNK)) {
        let hashes = &mut hashes[..parents.len()];
        feed_forward(keys, parents, hashes);
        let words: &[u64] = bytemuck::cast_slice(hashes);
        out.copy_from_slice(&words[..out.len()]);
    }
}
