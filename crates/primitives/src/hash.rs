//! Hashes of one block from AES with a fixed public key, each with the property its name says.
//!
//! Guo, Katz, Wang, Yu, *Efficient and Secure Multiparty Computation from Fixed-Key Block Ciphers*, ePrint 2019/074,
//! in the ideal-permutation model. Below, `pi` is AES under the key given to `new`, which is public, fresh for each
//! session, and chosen after the parties have fixed what they can choose. They are separate types because a protocol
//! that uses a weaker hash than its proof asks for still gives right results.
//!
//! | type | hash | property |
//! |---|---|---|
//! | [`CorrelationRobust`] | `pi(x) ^ x` | correlation robust: `H(x ^ delta)` looks random for unknown `delta` |
//! | [`Circular`] | `pi(s(x)) ^ s(x)` | the same with `delta` added to the output on wish |
//! | [`Tweaked`] | `pi(pi(x) ^ i) ^ pi(x)` | the same with tweaks `i`, and for inputs the adversary chooses |

use crate::Block;
use crate::aes::{self, Aes128};
use crate::arch::portable::aes::orthomorphism;

/// Blocks hashed at a time in place.
const CHUNK: usize = 32;

/// `H(x) = pi(x) ^ x`: correlation robust (ePrint 2019/074), not circular.
pub struct CorrelationRobust(Aes128);

impl CorrelationRobust {
    /// The hash with this public key.
    #[must_use]
    pub fn new(key: Block) -> Self {
        Self(Aes128::new(key))
    }

    /// The hash of one block.
    #[must_use]
    pub fn hash(&self, x: Block) -> Block {
        self.0.encrypt(x) ^ x
    }

    /// The hash of each block of `x`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub fn hash_into(&self, x: &[Block], out: &mut [Block]) {
        self.0.feed_forward(x, out);
    }

    /// Each block replaced by its hash.
    pub fn hash_slice(&self, x: &mut [Block]) {
        in_place(&self.0, x);
    }
}

/// `H(x) = pi(s(x)) ^ s(x)` with the orthomorphism `s(l || r) = (l ^ r) || l`, `l` the high half: circular correlation
/// robust (ePrint 2019/074).
pub struct Circular(Aes128);

impl Circular {
    /// The hash with this public key.
    #[must_use]
    pub fn new(key: Block) -> Self {
        Self(Aes128::new(key))
    }

    /// The hash of one block.
    #[must_use]
    pub fn hash(&self, x: Block) -> Block {
        let x = orthomorphism(x);
        self.0.encrypt(x) ^ x
    }

    /// The hash of each block of `x`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub fn hash_into(&self, x: &[Block], out: &mut [Block]) {
        assert_eq!(x.len(), out.len(), "hashes and inputs differ in number");
        aes::hash_words(&self.0, x, bytemuck::cast_slice_mut(out));
    }

    /// Each block replaced by its hash.
    pub fn hash_slice(&self, x: &mut [Block]) {
        for block in x.iter_mut() {
            *block = orthomorphism(*block);
        }
        in_place(&self.0, x);
    }
}

/// `H(i, x) = pi(pi(x) ^ i) ^ pi(x)` with a tweak `i`: tweakable circular correlation robust (ePrint
/// 2019/074), the hash to use where a malicious party has a say in `x`.
///
/// The proof wants each tweak used a bounded number of times; ours are running numbers, each used once per value of
/// the other party's choice.
pub struct Tweaked(Aes128);

impl Tweaked {
    /// The hash with this public key.
    #[must_use]
    pub fn new(key: Block) -> Self {
        Self(Aes128::new(key))
    }

    /// The hash of one block.
    #[must_use]
    pub fn hash(&self, tweak: u128, x: Block) -> Block {
        let y = self.0.encrypt(x);
        self.0.encrypt(y ^ Block::new(tweak)) ^ y
    }

    /// Each block replaced by its hash; the tweak of element `j` is `first_tweak + j`, wrapping.
    pub fn hash_slice(&self, first_tweak: u128, x: &mut [Block]) {
        let mut tweak = first_tweak;
        for chunk in x.chunks_mut(CHUNK) {
            self.0.encrypt_blocks(chunk);
            // With z = pi(x) ^ i the hash is (pi(z) ^ z) ^ i.
            xor_counter(tweak, chunk);
            in_place(&self.0, chunk);
            xor_counter(tweak, chunk);
            tweak = tweak.wrapping_add(CHUNK as u128);
        }
    }
}

/// `x[j] ^= first + j`.
fn xor_counter(first: u128, x: &mut [Block]) {
    let mut counter = first;
    for block in x {
        *block ^= Block::new(counter);
        counter = counter.wrapping_add(1);
    }
}

/// `x[j] = pi(x[j]) ^ x[j]`.
fn in_place(aes: &Aes128, x: &mut [Block]) {
    let mut inputs = [Block::ZERO; CHUNK];
    for chunk in x.chunks_mut(CHUNK) {
        let inputs = &mut inputs[..chunk.len()];
        inputs.copy_from_slice(chunk);
        aes.feed_forward(inputs, chunk);
    }
}
