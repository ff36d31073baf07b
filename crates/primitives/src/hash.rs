//! Hashes of one block from AES with a public key, one type for each security property.
//!
//! Guo, Katz, Wang, Yu, *Efficient and Secure Multiparty Computation from Fixed-Key Block Ciphers*,
//! ePrint 2019/074, in the ideal-permutation model. Below, `pi` is AES under the key given to
//! `new`, which is public, fresh for each session, and chosen after the parties have fixed
//! everything they can choose. The hashes are separate types because a protocol that uses a weaker
//! hash than its proof requires still gives correct results.
//!
//! | type | hash | property |
//! |---|---|---|
//! | [`CorrelationRobust`] | `pi(x) ^ x` | correlation robust: `H(x ^ delta)` looks random for unknown `delta` |
//! | [`Circular`] | `pi(s(x)) ^ s(x)` | the same, with `delta` optionally added to the output |
//! | [`Tweaked`] | `pi_i(s(x)) ^ s(x)`, a key for each `i` | the same with tweaks `i`, and for inputs the adversary chooses |

use crate::Block;
use crate::aes::{self, Aes128};
use crate::arch::portable::aes::orthomorphism;

/// Keys computed at a time.
const KEYS: usize = 128;

/// Blocks hashed at a time in place.
const CHUNK: usize = 32;

/// `H(x) = pi(x) ^ x`: correlation robust (ePrint 2019/074), not circular.
pub struct CorrelationRobust(Aes128);

impl CorrelationRobust {
    /// The hash with this public key.
    pub fn new(key: Block) -> Self {
        Self(Aes128::new(key))
    }

    /// The hash of one block.
    pub fn hash(&self, x: Block) -> Block {
        self.0.encrypt(x) ^ x
    }

    /// Each block replaced by its hash.
    pub fn hash_slice(&self, x: &mut [Block]) {
        in_place(&self.0, x);
    }
}

/// `H(x) = pi(s(x)) ^ s(x)` with the orthomorphism `s(l || r) = (l ^ r) || l`, `l` the high half:
/// circular correlation robust (ePrint 2019/074).
pub struct Circular(Aes128);

impl Circular {
    /// The hash with this public key.
    pub fn new(key: Block) -> Self {
        Self(Aes128::new(key))
    }

    /// The hash of one block.
    pub fn hash(&self, x: Block) -> Block {
        let x = orthomorphism(x);
        self.0.encrypt(x) ^ x
    }

    /// Each block replaced by its hash.
    pub fn hash_slice(&self, x: &mut [Block]) {
        for block in x.iter_mut() {
            *block = orthomorphism(*block);
        }
        in_place(&self.0, x);
    }
}

/// `H(i, x) = pi_i(s(x)) ^ s(x)` with `s` as in [`Circular`] and `pi_i` AES under the key
/// `start ^ i`: tweakable circular correlation robust in the ideal-cipher model. Use it where a
/// malicious party can influence `x`.
///
/// This is MITCCRH of Guo, Katz, Wang, Weng, Yu, *Better Concrete Security for Half-Gates
/// Garbling*, CRYPTO 2020 (ePrint 2019/1168), with one key per tweak. A key that serves one tweak
/// keeps its hashes apart from all others: one AES call on a guessed input tests the few inputs of
/// one tweak, not those of all `u` tweaks seen, which would be a search of `2^128 / u` calls.
///
/// The bound requires that each tweak is used a bounded number of times, and that `start` is chosen
/// after the parties have fixed everything they can choose. Here tweaks are running numbers, each
/// used for one OT, and `start` is a hash of the session.
pub struct Tweaked {
    start: Block,
}

impl Tweaked {
    /// The hash with keys starting at this public value.
    pub fn new(start: Block) -> Self {
        Self { start }
    }

    /// The hash of one block.
    pub fn hash(&self, tweak: u128, x: Block) -> Block {
        let mut x = [x];
        self.hash_slice(tweak, &mut x);
        x[0]
    }

    /// Each block replaced by its hash; the tweak of element `j` is `first_tweak + j`, wrapping.
    pub fn hash_slice(&self, first_tweak: u128, x: &mut [Block]) {
        self.chunks(first_tweak, x, aes::rekeyed_circular);
    }

    /// Hashes like [`hash_slice`](Self::hash_slice), two blocks with each tweak: those of `x[j]`
    /// have `first_tweak + j`.
    pub fn hash_pairs(&self, first_tweak: u128, x: &mut [[Block; 2]]) {
        self.chunks(first_tweak, x, aes::rekeyed_circular_pairs);
    }

    fn chunks<T>(&self, first_tweak: u128, x: &mut [T], hash: impl Fn(&[Block], &mut [T])) {
        let mut keys = [Block::ZERO; KEYS];
        let mut tweak = first_tweak;
        for chunk in x.chunks_mut(KEYS) {
            let keys = &mut keys[..chunk.len()];
            for key in &mut *keys {
                // mutant(tweaked-key): `self.start ^ Block::new(tweak)` => `self.start`
                *key = self.start ^ Block::new(tweak);
                tweak = tweak.wrapping_add(1);
            }
            hash(keys, chunk);
        }
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
