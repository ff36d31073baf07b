//! AES-128 by the `aes` crate, which is constant time on every processor; and the kernels over any
//! cipher that encrypts many blocks in one call.

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

use crate::Block;

/// Blocks encrypted at a time, a multiple of what the `aes` crate has in flight on any processor.
const CHUNK: usize = 64;

/// AES-128 of many blocks: all that the kernels need.
pub(crate) trait Cipher {
    /// Replaces each block by its encryption.
    fn encrypt_blocks(&self, x: &mut [Block]);

    /// The same for the blocks of each set under the set's key.
    fn encrypt_sets<const B: usize>(keys: &[Block], x: &mut [[Block; B]]);
}

/// The round keys. The `aes` crate wipes them on drop.
pub(crate) struct Schedule(aes::Aes128);

impl Schedule {
    pub(crate) fn new(key: Block) -> Self {
        Self(aes::Aes128::new(&Array(key.to_bytes())))
    }
}

impl Cipher for Schedule {
    fn encrypt_blocks(&self, x: &mut [Block]) {
        let bytes: &mut [[u8; 16]] = bytemuck::cast_slice_mut(x);
        self.0.encrypt_blocks(Array::cast_slice_from_core_mut(bytes));
    }

    fn encrypt_sets<const B: usize>(keys: &[Block], x: &mut [[Block; B]]) {
        for (&key, x) in keys.iter().zip(x) {
            Self::new(key).encrypt_blocks(x);
        }
    }
}

pub(crate) fn encrypt_blocks(keys: &impl Cipher, x: &mut [Block]) {
    keys.encrypt_blocks(x);
}

pub(crate) fn ctr(keys: &impl Cipher, counter: u128, out: &mut [Block]) {
    for (i, block) in out.iter_mut().enumerate() {
        *block = Block::new(counter.wrapping_add(i as u128));
    }
    encrypt_blocks(keys, out);
}

pub(crate) fn feed_forward(keys: &impl Cipher, x: &[Block], out: &mut [Block]) {
    out.copy_from_slice(x);
    encrypt_blocks(keys, out);
    for (out, &x) in out.iter_mut().zip(x) {
        *out ^= x;
    }
}

pub(crate) fn double(
    keys: [&impl Cipher; 2],
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

pub(crate) fn leaf_pairs(keys: &impl Cipher, parents: &[Block], out: &mut [u64]) {
    let mut hashes = [Block::ZERO; CHUNK];
    for (parents, out) in parents.chunks(CHUNK).zip(out.chunks_mut(2 * CHUNK)) {
        let hashes = &mut hashes[..parents.len()];
        feed_forward(keys, parents, hashes);
        let words: &[u64] = bytemuck::cast_slice(hashes);
        out.copy_from_slice(&words[..out.len()]);
    }
}

/// `s(l || r) = (l ^ r) || l`, `l` the high half: linear, and so is `x -> s(x) ^ x`, and both are
/// invertible.
#[inline]
pub(crate) fn orthomorphism(x: Block) -> Block {
    Block::from_words(x.high(), x.high() ^ x.low())
}

/// `H(x) = AES(s(x)) ^ s(x)` of each block; at most `CHUNK` of them.
fn circular(keys: &impl Cipher, x: &[Block], out: &mut [Block]) {
    let mut inputs = [Block::ZERO; CHUNK];
    let inputs = &mut inputs[..x.len()];
    for (input, &x) in inputs.iter_mut().zip(x) {
        *input = orthomorphism(x);
    }
    feed_forward(keys, inputs, out);
}

pub(crate) fn split(
    keys: &impl Cipher,
    parents: &[Block],
    children: &mut [Block],
    mask: Block,
) -> [Block; 2] {
    let mut sums = [Block::ZERO; 2];
    let mut hashes = [Block::ZERO; CHUNK];
    for (parents, children) in parents.chunks(CHUNK).zip(children.chunks_mut(2 * CHUNK)) {
        let hashes = &mut hashes[..parents.len()];
        circular(keys, parents, hashes);
        let children = children.as_chunks_mut::<2>().0;
        for ((pair, &parent), &left) in children.iter_mut().zip(parents).zip(hashes.iter()) {
            let right = parent ^ left;
            *pair = [left & mask, right & mask];
            sums[0] ^= left;
            sums[1] ^= right;
        }
    }
    sums
}

pub(crate) fn hash_words(keys: &impl Cipher, parents: &[Block], out: &mut [u64]) {
    let mut hashes = [Block::ZERO; CHUNK];
    for (parents, out) in parents.chunks(CHUNK).zip(out.chunks_mut(2 * CHUNK)) {
        let hashes = &mut hashes[..parents.len()];
        circular(keys, parents, hashes);
        let words: &[u64] = bytemuck::cast_slice(hashes);
        out.copy_from_slice(&words[..out.len()]);
    }
}

pub(crate) fn hash_pairs(keys: &impl Cipher, parents: &[Block], out: &mut [Block]) -> [Block; 2] {
    let mut sums = [Block::ZERO; 2];
    let mut inputs = [Block::ZERO; CHUNK];
    for (parents, out) in parents.chunks(CHUNK / 2).zip(out.chunks_mut(CHUNK)) {
        for (pair, &parent) in inputs.as_chunks_mut::<2>().0.iter_mut().zip(parents) {
            *pair = [parent, parent ^ Block::ONE];
        }
        circular(keys, &inputs[..out.len()], out);
        for (i, &hash) in out.iter().enumerate() {
            sums[i % 2] ^= hash;
        }
    }
    sums
}

pub(crate) fn rekeyed<C: Cipher>(keys: &[Block], x: &mut [Block]) {
    rekeyed_sets::<C, 1>(keys, bytemuck::cast_slice_mut(x));
}

pub(crate) fn rekeyed_circular<C: Cipher>(keys: &[Block], x: &mut [Block]) {
    x.iter_mut().for_each(|x| *x = orthomorphism(*x));
    rekeyed::<C>(keys, x);
}

pub(crate) fn rekeyed_circular_pairs<C: Cipher>(keys: &[Block], x: &mut [[Block; 2]]) {
    x.as_flattened_mut().iter_mut().for_each(|x| *x = orthomorphism(*x));
    rekeyed_sets::<C, 2>(keys, x);
}

/// Each block of a set becomes `AES(x) ^ x` under the set's key.
fn rekeyed_sets<C: Cipher, const B: usize>(keys: &[Block], x: &mut [[Block; B]]) {
    let mut y = [[Block::ZERO; B]; CHUNK];
    for (keys, x) in keys.chunks(CHUNK).zip(x.chunks_mut(CHUNK)) {
        let y = &mut y[..x.len()];
        y.copy_from_slice(x);
        C::encrypt_sets(keys, y);
        for (x, y) in x.as_flattened_mut().iter_mut().zip(y.as_flattened()) {
            *x ^= *y;
        }
    }
}
