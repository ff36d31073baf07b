//! The pseudorandom code: Definition 2 and Lemma 1 of the BaRK-OPRF paper.
//!
//! A code word is the AES encryption of an input of 128 bits under four keys, `C(x) = AES_1(x) |
//! AES_2(x) | AES_3(x) | AES_4(x)`, cut to `k` bits (section 6.3; the paper counts within one key,
//! which leaves less than 128 bits for the input). Any two code words differ in at least
//! [`DISTANCE`] places, except with a probability that [`width`] bounds, if the inputs are fixed
//! before the keys are drawn.
//!
//! A [`Code`] also holds four public random weights in GF(2^128), drawn together with the keys,
//! with which [`oprf`](crate::oprf) folds a row of `k` bits to a block.

use volery_primitives::Block;
use volery_primitives::aes::Aes128;
use volery_primitives::clmul::gf128_combine;
use volery_primitives::ro::RandomOracle;

/// `kappa`: the least distance between two code words, the computational security in bits.
pub const DISTANCE: usize = 128;

/// `sigma`: the statistical security in bits.
pub const STATISTICAL: u32 = crate::failure::STATISTICAL;

/// Blocks of a code word of the maximum width.
pub const BLOCKS: usize = 4;

/// The maximum width of a code in bits.
pub const MAX_WIDTH: usize = 128 * BLOCKS;

/// `k`, the bits of a code word: the least multiple of eight for which all of `evaluations` pairs
/// of code words are at distance [`DISTANCE`], except with probability 2^-[`STATISTICAL`].
///
/// Lemma 1: a pair of random words of `k` bits is closer with probability `2^-k` times the sum of
/// `C(k, i)` over `i` below the distance. Section 6.1 asks for `2^-(sigma + log2 m)`, `m` the
/// number of outputs that the sender computes.
///
/// # Panics
/// If `evaluations` is above 2^56: then [`MAX_WIDTH`] bits are not enough.
pub fn width(evaluations: u64) -> usize {
    width_for(f64::from(STATISTICAL) + (evaluations.max(1) as f64).log2())
}

/// The least multiple of eight for which one pair is closer with probability 2^-`bits` at most.
pub(crate) fn width_for(bits: f64) -> usize {
    (DISTANCE..=MAX_WIDTH)
        .step_by(8)
        .find(|&width| closeness(width) >= bits)
        .expect("512 bits are enough for 2^56 evaluations")
}

/// `epsilon` of Lemma 1: minus the binary logarithm of the probability that two random words of
/// `width` bits differ in fewer than [`DISTANCE`] places.
pub(crate) fn closeness(width: usize) -> f64 {
    // The sum of C(width, i), from its last and largest term downwards.
    let last = DISTANCE - 1;
    let largest: f64 = (1..=last).map(|i| ((width - last + i) as f64 / i as f64).log2()).sum();
    let (mut term, mut sum) = (1.0, 1.0);
    for i in (1..=last).rev() {
        term *= i as f64 / (width - i + 1) as f64;
        sum += term;
    }
    width as f64 - largest - f64::log2(sum)
}

/// A member of the family of codes, with its weights. Public.
#[derive(Debug)]
pub struct Code {
    width: usize,
    keys: [Aes128; BLOCKS],
    weights: [Block; BLOCKS],
    /// The key of the OPRF's hash.
    hash: Block,
}

impl Code {
    /// The code with code words of `width` bits derived from a seed of 32 bytes.
    ///
    /// The seed must be drawn after all inputs are fixed: knowledge of the code allows a search for
    /// inputs whose code words are close.
    ///
    /// # Panics
    /// If `width` is not a multiple of eight, below [`DISTANCE`] or above [`MAX_WIDTH`].
    pub fn new(seed: &[u8; 32], width: usize) -> Self {
        assert!(
            width.is_multiple_of(8) && (DISTANCE..=MAX_WIDTH).contains(&width),
            "the width of a code must be a multiple of 8 from 128 to 512"
        );
        let mut drawn = [Block::ZERO; 2 * BLOCKS + 1];
        RandomOracle::new("volery oprf: code")
            .absorb(seed)
            .absorb_u64(width as u64)
            .finish_into(Block::as_bytes_mut(&mut drawn));
        Self {
            width,
            keys: std::array::from_fn(|i| Aes128::new(drawn[i])),
            weights: std::array::from_fn(|i| drawn[BLOCKS + i]),
            hash: drawn[2 * BLOCKS],
        }
    }

    /// `k`, the bits of a code word.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Bits of a code word that lie in block `block`: 128 except in the last blocks.
    pub fn bits(&self, block: usize) -> usize {
        self.width.saturating_sub(128 * block).min(128)
    }

    /// The ones of a block of a code word.
    pub(crate) fn mask(&self, block: usize) -> Block {
        match self.bits(block) {
            0 => Block::ZERO,
            bits => Block::new(u128::MAX >> (128 - bits)),
        }
    }

    /// Block `block` of the code word of each input.
    ///
    /// # Panics
    /// If the lengths differ, or `block` is 4 or more.
    pub fn encode(&self, block: usize, inputs: &[Block], out: &mut [Block]) {
        out.copy_from_slice(inputs);
        // mutant(psi-code-key): `block` => `0`
        self.keys[block].encrypt_blocks(out);
        let mask = self.mask(block);
        if mask != Block::ALL_ONES {
            out.iter_mut().for_each(|out| *out &= mask);
        }
    }

    /// `L(row)`: the weighted sum of the blocks of each row.
    ///
    /// # Panics
    /// If the lengths differ.
    pub(crate) fn fold(&self, columns: [&[Block]; BLOCKS], out: &mut [Block]) {
        gf128_combine(columns, self.weights, out);
    }

    /// The key under which the output of an instance on an input is hashed.
    ///
    /// The instance is added to the highest 64 bits. So two outputs have different keys if their
    /// inputs differ in the lowest 64 bits, or nowhere, or their instances are the same. They share
    /// a key only if the inputs agree in the lowest 64 bits and the others differ by exactly the
    /// difference of the instances: for inputs that are hashes, as those of
    /// [`items`](crate::items), that is as rare as two equal hashes. Other inputs must be chosen so
    /// that it does not happen.
    #[inline]
    pub(crate) fn hash_key(&self, instance: u64, input: Block) -> Block {
        self.hash ^ input ^ Block::from_words(0, instance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lemma 1 in whole numbers, for words short enough to count.
    #[test]
    fn closeness_is_the_sum_of_binomials() {
        // The sum of C(130, i) for i < 128 counts all words except C(130, 128) + C(130, 129) + 1 of
        // them.
        let missing = 130.0 * 129.0 / 2.0 + 130.0 + 1.0;
        let expected = -(1.0 - missing / 130_f64.exp2()).log2();
        assert!((closeness(130) - expected).abs() < 1e-9);
        // At twice the distance less one, half of all words are closer.
        assert!((closeness(255) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn widths_grow_and_suffice() {
        let mut last = 0;
        for log in 0..=56 {
            let width = width(1 << log);
            assert!(width >= last && closeness(width) >= f64::from(STATISTICAL + log));
            assert!(closeness(width - 8) < f64::from(STATISTICAL + log));
            last = width;
        }
        assert_eq!(width(0), width(1));
    }

    /// Outputs share a key exactly as documented.
    #[test]
    fn keys_of_the_hash() {
        let code = Code::new(&[9; 32], 448);
        let input = Block::from_words(77, 5);
        let key =
            |instance, low, high| code.hash_key(instance, input ^ Block::from_words(low, high));
        // The instances differ by 6.
        assert_ne!(key(3, 0, 0), key(5, 0, 0));
        assert_ne!(key(3, 0, 0), key(5, 6, 0));
        assert_ne!(key(3, 0, 0), key(5, 1, 6));
        assert_ne!(key(3, 0, 0), key(5, 0, 7));
        assert_eq!(key(3, 0, 0), key(5, 0, 6));
        // Of one instance, no two inputs.
        for bit in 0..64 {
            assert_ne!(key(3, 0, 0), key(3, 1 << bit, 0));
            assert_ne!(key(3, 0, 0), key(3, 0, 1 << bit));
        }
    }
}

#[cfg(test)]
mod statistics;
