//! Keyed BLAKE3 of many short strings at a time.
//!
//! O'Connor, Aumasson, Neves, Wilcox-O'Hearn, *BLAKE3: one function, fast everywhere*, 2020. A
//! string of up to [`BLOCK_BYTES`] bytes is one call of the compression function. One string alone
//! is bound by the latency of each step; here each lane of a vector hashes a string of its own.

use zeroize::Zeroize;

use crate::Block;
use crate::arch::portable;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::arch::wide;
use crate::cpu::Cpu;

/// Bytes of the longest string that is one call of the compression function.
pub const BLOCK_BYTES: usize = 64;

/// Strings hashed side by side: the most efficient number per call.
pub const LANES: usize = 16;

/// Words of a block of the compression function, and of its state.
pub(crate) const WORDS: usize = 16;

/// Words of a key.
pub(crate) const KEY_WORDS: usize = 8;

/// Words of the hash that are kept.
pub(crate) const OUT_WORDS: usize = 4;

/// A word of each lane.
pub(crate) type Lanes = [u32; LANES];

/// The first words of the initial value, those of SHA-256 (section 2.2, table 1 of the paper).
pub(crate) const INITIAL: [u32; 4] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a];

/// The flags of a block that is the first and last of its chunk, the only chunk, with a key (table
/// 3).
pub(crate) const FLAGS: u32 = 1 | 2 | 8 | 16;

/// Rounds of the compression function.
pub(crate) const ROUNDS: usize = 7;

/// The order in which each round takes the message words: permuted each time by table 2.
pub(crate) const SCHEDULE: [[usize; WORDS]; ROUNDS] = {
    const PERMUTATION: [usize; WORDS] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
    let mut schedule = [[0; WORDS]; ROUNDS];
    let mut round = 0;
    while round < ROUNDS {
        let mut word = 0;
        while word < WORDS {
            schedule[round][word] = match round {
                0 => word,
                _ => schedule[round - 1][PERMUTATION[word]],
            };
            word += 1;
        }
        round += 1;
    }
    schedule
};

/// The state words that each of the eight steps of a round mixes: columns, then diagonals.
pub(crate) const STEPS: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

/// The messages of the lanes: each word of the message in all lanes, and the byte length of each.
/// Words from `used` on are zero in all lanes. Aligned as the widest vector is.
#[repr(C, align(64))]
pub(crate) struct Message {
    pub(crate) words: [Lanes; WORDS],
    pub(crate) bytes: Lanes,
    used: usize,
}

impl Drop for Message {
    fn drop(&mut self) {
        self.words.as_flattened_mut().zeroize();
        self.bytes.zeroize();
    }
}

impl Message {
    const fn empty() -> Self {
        Self { words: [[0; LANES]; WORDS], bytes: [0; LANES], used: 0 }
    }

    /// Takes up to [`LANES`] strings; one that is too long is left out.
    fn load(&mut self, strings: &[&[u8]]) {
        for words in &mut self.words[..self.used] {
            words.fill(0);
        }
        self.used = 0;
        for (lane, string) in strings.iter().enumerate() {
            let string = if is_short(string) { string } else { &[][..] };
            self.bytes[lane] = string.len() as u32;
            self.used = self.used.max(string.len().div_ceil(4));
            let (words, rest) = string.as_chunks::<4>();
            for (word, bytes) in self.words.iter_mut().zip(words) {
                word[lane] = u32::from_le_bytes(*bytes);
            }
            if !rest.is_empty() {
                let mut bytes = [0; 4];
                bytes[..rest.len()].copy_from_slice(rest);
                self.words[words.len()][lane] = u32::from_le_bytes(bytes);
            }
        }
    }
}

/// Whether a single call of the compression function hashes the string.
const fn is_short(string: &[u8]) -> bool {
    string.len() <= BLOCK_BYTES
}

/// The first 16 bytes of the keyed BLAKE3 hash of each string. The time depends on the lengths of
/// the strings, not on their contents.
///
/// # Panics
/// If the lengths differ.
pub fn keyed_hashes(key: &[u8; 32], strings: &[&[u8]], out: &mut [Block]) {
    keyed_hashes_on(Cpu::detect(), key, strings, out);
}

/// [`keyed_hashes`] with the kernels of one level.
pub fn keyed_hashes_on(cpu: Cpu, key: &[u8; 32], strings: &[&[u8]], out: &mut [Block]) {
    cpu.assert_available();
    assert_eq!(strings.len(), out.len(), "a hash for each string");
    let mut words = [0; KEY_WORDS];
    for (word, bytes) in words.iter_mut().zip(key.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let mut message = Message::empty();
    for (strings, out) in strings.chunks(LANES).zip(out.chunks_mut(LANES)) {
        if let [string] = strings {
            out[0] = long(key, string);
            continue;
        }
        message.load(strings);
        let hashes = compress(cpu, &words, &message);
        for (lane, (out, string)) in out.iter_mut().zip(strings).enumerate() {
            let pair = |i: usize| u64::from(hashes[i][lane]) | u64::from(hashes[i + 1][lane]) << 32;
            *out = match is_short(string) {
                true => Block::from_words(pair(0), pair(2)),
                false => long(key, string),
            };
        }
    }
}

/// The hash of a string of any length.
fn long(key: &[u8; 32], string: &[u8]) -> Block {
    let hash = blake3::keyed_hash(key, string);
    let (block, _) = hash.as_bytes().split_first_chunk().expect("a hash has 32 bytes");
    Block::from_bytes(*block)
}

/// The first words of the compression of each lane's message.
fn compress(cpu: Cpu, key: &[u32; KEY_WORDS], message: &Message) -> [Lanes; OUT_WORDS] {
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX-512F.
        cpu if cpu.has(Cpu::AVX512) => unsafe { wide::keyed::avx512::compress(key, message) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX2.
        cpu if cpu.has(Cpu::AES_NI) => unsafe { wide::keyed::avx2::compress(key, message) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the level is available, and with it NEON.
        cpu if cpu.has(Cpu::NEON) => unsafe { wide::keyed::neon::compress(key, message) },
        _ => portable::keyed::compress(key, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All levels against the `blake3` crate: every length around a word, a block, a chunk, in
    /// every mixture of lanes.
    #[test]
    fn hashes_are_those_of_blake3() {
        let bytes: Vec<u8> = (0..2000_u32).map(|i| (i * i / 7) as u8).collect();
        let key: [u8; 32] = std::array::from_fn(|i| 200 - 3 * i as u8);
        let equal = [16; 35];
        let mixed: Vec<usize> = (0..=130).chain([1023, 1024, 1025, 1999, 0, 16]).collect();
        let falling: Vec<usize> = (0..=65).rev().collect();
        for lengths in [&equal[..], &mixed, &falling] {
            for n in [0, 1, 2, 15, 16, 17, 33, lengths.len()] {
                let lengths = &lengths[..n.min(lengths.len())];
                let strings: Vec<&[u8]> = (0..)
                    .zip(lengths)
                    .map(|(i, &length)| &bytes[(bytes.len() - length).min(i)..][..length])
                    .collect();
                let expected: Vec<_> = strings
                    .iter()
                    .map(|string| {
                        let hash = blake3::keyed_hash(&key, string);
                        Block::from_bytes(std::array::from_fn(|i| hash.as_bytes()[i]))
                    })
                    .collect();
                for cpu in Cpu::available() {
                    let mut out = vec![Block::ONE; strings.len()];
                    keyed_hashes_on(cpu, &key, &strings, &mut out);
                    assert_eq!(out, expected, "{cpu}, {n} strings");
                }
            }
        }
    }
}
