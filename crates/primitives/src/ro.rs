//! The random oracle: BLAKE3 with a domain string.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::Block;

/// A hash of a sequence of byte strings, modelled as a random oracle: Fiat-Shamir transcripts,
/// commitments, keys.
///
/// The domain string is the context of BLAKE3's key derivation mode, so oracles of different
/// domains are unrelated. Each absorbed string is preceded by its length as eight little-endian
/// bytes, so different sequences of strings with equal concatenations have different hashes. The
/// state is wiped on drop.
#[derive(Clone)]
pub struct RandomOracle(blake3::Hasher);

impl RandomOracle {
    /// An oracle that has absorbed nothing. `domain` names the protocol and the purpose, for
    /// example `"volery base ot: message key"`; every use has its own.
    pub fn new(domain: &'static str) -> Self {
        Self(blake3::Hasher::new_derive_key(domain))
    }

    /// Absorbs one byte string.
    pub fn absorb(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Absorbs the eight little-endian bytes of a number as one byte string.
    pub fn absorb_u64(&mut self, number: u64) -> &mut Self {
        self.absorb(&number.to_le_bytes())
    }

    /// 32 bytes of hash. The oracle can absorb more afterwards.
    pub fn finish32(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }

    /// A block of hash: the first 16 bytes of [`RandomOracle::finish32`].
    pub fn finish_block(&self) -> Block {
        let mut bytes = [0; 16];
        self.finish_into(&mut bytes);
        Block::from_bytes(bytes)
    }

    /// Fills `out` with hash bytes; a shorter output is a prefix of a longer one.
    pub fn finish_into(&self, out: &mut [u8]) {
        let mut output = self.0.finalize_xof();
        output.fill(out);
        output.zeroize();
    }
}

impl Drop for RandomOracle {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for RandomOracle {}

/// A running hash of a stream of bytes: plain BLAKE3, independent of how the stream is cut.
///
/// It is wiped on drop although its input is public: most of a hasher is uninitialized buffer, and
/// a hasher moved to the heap carries along old contents of the stack.
#[derive(Default)]
pub struct StreamHash {
    hasher: blake3::Hasher,
    /// Bytes that the hasher does not have yet: it hashes many at once several times as fast.
    next: Vec<u8>,
}

/// Bytes from which on a stream is hashed at full speed.
const AT_ONCE: usize = 1 << 16;

impl StreamHash {
    /// The next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        if self.next.len() + bytes.len() < AT_ONCE {
            self.next.extend_from_slice(bytes);
            return;
        }
        self.hasher.update(&self.next);
        self.next.clear();
        let (now, later) = bytes.split_at(bytes.len() / AT_ONCE * AT_ONCE);
        self.hasher.update(now);
        self.next.extend_from_slice(later);
    }

    /// The hash of all bytes so far.
    pub fn finish32(&self) -> [u8; 32] {
        let mut hasher = self.hasher.clone();
        let hash = *hasher.update(&self.next).finalize().as_bytes();
        hasher.zeroize();
        hash
    }
}

impl Drop for StreamHash {
    fn drop(&mut self) {
        self.hasher.zeroize();
        self.next.zeroize();
    }
}

impl ZeroizeOnDrop for StreamHash {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_in_terms_of_blake3() {
        let mut oracle = RandomOracle::new("volery test");
        oracle.absorb(b"ab").absorb(b"").absorb_u64(7);
        let mut input = Vec::new();
        input.extend(2u64.to_le_bytes());
        input.extend(b"ab");
        input.extend(0u64.to_le_bytes());
        input.extend(8u64.to_le_bytes());
        input.extend(7u64.to_le_bytes());
        assert_eq!(oracle.finish32(), blake3::derive_key("volery test", &input));
    }

    #[test]
    fn shorter_outputs_are_prefixes() {
        let mut oracle = RandomOracle::new("volery test");
        oracle.absorb(b"volery");
        let mut long = [0; 100];
        oracle.finish_into(&mut long);
        assert_eq!(long[..32], oracle.finish32());
        assert_eq!(long[..16], oracle.finish_block().to_bytes());
    }
    #[test]
    fn a_stream_may_be_cut_anywhere() {
        let bytes: Vec<u8> = (0..3 * AT_ONCE + 7).map(|i| i as u8).collect();
        for cut in [1000, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 2 * AT_ONCE + 5, bytes.len()] {
            let mut hash = StreamHash::default();
            bytes.chunks(cut).for_each(|part| hash.update(part));
            assert_eq!(hash.finish32(), *blake3::hash(&bytes).as_bytes(), "cut at {cut}");
        }
    }
}
