//! The ideal permutation of 254-bit strings: eight rounds of a balanced Feistel network.
//!
//! Dai, Steinberger, *Indifferentiability of 8-Round Feistel Networks*, CRYPTO 2016: if the round
//! functions are random oracles, the network is indifferentiable from a random permutation. The
//! proven bound, `O(q^8 / 2^127)` for `q` queries, is far from tight and says little for `q` above
//! 2^15; that no attack does better than on a random permutation for `q` up to 2^64 and above is an
//! assumption, as it is for the fixed-key block ciphers that are commonly used in its place. The
//! round functions are BLAKE3 under a key that is drawn for each run.

/// Rounds of the network.
const ROUNDS: u8 = 8;
/// Bits of a half.
const HALF: u32 = 127;
const MASK: u128 = (1 << HALF) - 1;

/// A permutation of 254-bit strings, in 32 bytes whose two highest bits are zero.
pub(super) struct Permutation {
    key: [u8; 32],
}

impl Permutation {
    pub(super) const fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    fn round(&self, number: u8, half: u128) -> u128 {
        let mut input = [number; 17];
        input[..16].copy_from_slice(&half.to_le_bytes());
        let hash = blake3::keyed_hash(&self.key, &input);
        let (first, _) = hash.as_bytes().split_first_chunk().expect("32 bytes");
        u128::from_le_bytes(*first) & MASK
    }

    /// The image; the two highest bits of the string are ignored.
    pub(super) fn forward(&self, string: &[u8; 32]) -> [u8; 32] {
        let rounds = 0..ROUNDS;
        let step = |(left, right), number| (right, left ^ self.round(number, right));
        join(rounds.fold(split(string), step))
    }

    /// The string with this image, whose two highest bits are ignored.
    pub(super) fn backward(&self, image: &[u8; 32]) -> [u8; 32] {
        let rounds = (0..ROUNDS).rev();
        let step = |(left, right), number| (right ^ self.round(number, left), left);
        join(rounds.fold(split(image), step))
    }
}

fn split(string: &[u8; 32]) -> (u128, u128) {
    let (words, _) = string.as_chunks();
    let [low, high] = [0, 1].map(|i| u128::from_le_bytes(words[i]));
    (low & MASK, (low >> HALF | high << 1) & MASK)
}

fn join((left, right): (u128, u128)) -> [u8; 32] {
    let mut string = [0; 32];
    string[..16].copy_from_slice(&(left | right << HALF).to_le_bytes());
    string[16..].copy_from_slice(&(right >> 1).to_le_bytes());
    string
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(i: u8) -> [u8; 32] {
        let mut string = *blake3::hash(&[i]).as_bytes();
        string[31] &= 0x3f;
        string
    }

    #[test]
    fn forward_and_back() {
        let permutation = Permutation::new([3; 32]);
        for i in 0..100 {
            assert_eq!(join(split(&string(i))), string(i));
            let image = permutation.forward(&string(i));
            assert_eq!(image[31] >> 6, 0, "254 bits");
            assert_eq!(permutation.backward(&image), string(i));
            assert_eq!(permutation.forward(&permutation.backward(&string(i))), string(i));
            assert_ne!(Permutation::new([4; 32]).forward(&string(i)), image);
            // The two highest bits do not matter.
            let mut other = string(i);
            other[31] |= 0xc0;
            assert_eq!(permutation.forward(&other), image);
        }
    }
}
