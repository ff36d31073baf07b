//! The pseudorandom generator: AES-128 in counter mode.

use std::fmt;
use std::io;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::Block;
use crate::aes::Aes128;
use crate::ro::RandomOracle;

/// Blocks that are generated ahead for short requests: as many as a kernel has in flight.
const BUFFER: usize = 8;

/// AES-128 in counter mode under a seed: one stream of bytes, the little-endian blocks
/// `AES_seed(0)`, `AES_seed(1)`, ...
///
/// The stream does not depend on how the caller cuts it into requests. The state is wiped on drop
/// and not shown by `Debug`. A generator is as secret as its seed; it cannot be cloned.
pub struct Prg {
    aes: Aes128,
    /// Number of the first block after the buffer.
    counter: u128,
    buffer: [Block; BUFFER],
    /// Bytes of the buffer already returned.
    used: usize,
}

impl Prg {
    /// The generator with this seed.
    pub fn new(seed: Block) -> Self {
        Self {
            aes: Aes128::new(seed),
            counter: 0,
            buffer: [Block::ZERO; BUFFER],
            used: BUFFER * 16,
        }
    }

    /// The generator with this seed whose first block is `AES_seed(start)`.
    ///
    /// Where many seeds are used, distinct starts keep one guess of a seed from being compared with
    /// all streams.
    pub fn starting_at(seed: Block, start: Block) -> Self {
        let mut prg = Self::new(seed);
        prg.counter = start.into();
        prg
    }

    /// A generator with fresh randomness from the operating system: 128 bits of seed and 128 bits
    /// of [start](Self::starting_at).
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn from_os() -> io::Result<Self> {
        #[cfg(feature = "testing")]
        if let Some(prg) = seeded::next() {
            return Ok(prg);
        }
        let mut random = [Block::ZERO; 2];
        volery_os::random::fill(Block::as_bytes_mut(&mut random))?;
        Ok(Self::from_random(&mut random))
    }

    /// A generator whose seed and [start](Self::starting_at) are drawn from `rng`.
    ///
    /// `rng` must be cryptographic, with at least 128 bits of fresh entropy.
    #[must_use]
    pub fn from_rng(rng: &mut (impl rand_core::CryptoRng + ?Sized)) -> Self {
        let mut random = [Block::ZERO; 2];
        rng.fill_bytes(Block::as_bytes_mut(&mut random));
        Self::from_random(&mut random)
    }

    /// The generator with the seed `random[0]` and the start `random[1]`, which are wiped.
    fn from_random(random: &mut [Block; 2]) -> Self {
        // mutant(prg-start): `Self::starting_at(random[0], random[1])` => `Self::new(random[0])`
        let prg = Self::starting_at(random[0], random[1]);
        random.zeroize();
        prg
    }

    /// The next `out.len()` bytes of the stream.
    pub fn fill_bytes(&mut self, out: &mut [u8]) {
        let (head, rest) = out.split_at_mut(out.len().min(BUFFER * 16 - self.used));
        self.take_from_buffer(head);
        // Here the buffer is empty or nothing is left to do. Aligned whole blocks need no buffer.
        let whole = rest.len() - rest.len() % 16;
        let (middle, mut tail) = rest.split_at_mut(whole);
        if let Ok(blocks) = bytemuck::try_cast_slice_mut::<u8, Block>(middle) {
            self.aes.ctr(self.counter, blocks);
            self.counter = self.counter.wrapping_add(blocks.len() as u128);
        } else {
            tail = rest;
        }
        for chunk in tail.chunks_mut(BUFFER * 16) {
            self.aes.ctr(self.counter, &mut self.buffer);
            self.counter = self.counter.wrapping_add(BUFFER as u128);
            self.used = 0;
            self.take_from_buffer(chunk);
        }
    }

    /// The next `out.len()` blocks of the stream.
    pub fn fill_blocks(&mut self, out: &mut [Block]) {
        self.fill_bytes(Block::as_bytes_mut(out));
    }

    /// The next 16 bytes of the stream.
    #[must_use]
    pub fn block(&mut self) -> Block {
        let mut bytes = [0; 16];
        self.fill_bytes(&mut bytes);
        Block::from_bytes(bytes)
    }

    /// The next eight bytes of the stream, little endian.
    #[must_use]
    pub fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A uniform number below `bound`: Lemire, *Fast random integer generation in an interval*,
    /// 2019.
    ///
    /// The time depends on the number of rejected draws, which reveals nothing about the result.
    ///
    /// # Panics
    /// If `bound` is zero.
    #[must_use]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "the bound is above zero");
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// A child generator with a stream independent of this one's and of that of any other fork.
    ///
    /// Its seed is a hash of `label` and of the next 32 bytes of this stream.
    #[must_use]
    pub fn fork(&mut self, label: &str) -> Self {
        let mut bytes = [0; 32];
        self.fill_bytes(&mut bytes);
        let mut oracle = RandomOracle::new("volery primitives: prg fork");
        oracle.absorb(label.as_bytes()).absorb(&bytes);
        bytes.zeroize();
        Self::new(oracle.finish_block())
    }

    /// Copies bytes from the buffer.
    fn take_from_buffer(&mut self, out: &mut [u8]) {
        let bytes = &Block::as_bytes(&self.buffer)[self.used..][..out.len()];
        out.copy_from_slice(bytes);
        self.used += out.len();
    }
}

impl rand_core::TryRng for Prg {
    type Error = rand_core::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.next_u64())
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        self.fill_bytes(out);
        Ok(())
    }
}

impl rand_core::TryCryptoRng for Prg {}

impl Drop for Prg {
    fn drop(&mut self) {
        self.buffer.zeroize();
    }
}

impl ZeroizeOnDrop for Prg {}

impl fmt::Debug for Prg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prg(..)")
    }
}

/// Seeds of a thread in place of the system's randomness, so that a test repeats a whole run.
#[cfg(feature = "testing")]
pub mod seeded {
    use std::cell::RefCell;

    use super::{Block, Prg};

    thread_local! {
        static SEEDS: RefCell<Option<Prg>> = const { RefCell::new(None) };
    }

    /// Runs `party`, whose calls of [`Prg::from_os`] on this thread give generators that follow
    /// from `seed`.
    pub fn run<T>(seed: Block, party: impl FnOnce() -> T) -> T {
        let before = SEEDS.replace(Some(Prg::new(seed)));
        let result = party();
        SEEDS.set(before);
        result
    }

    pub(super) fn next() -> Option<Prg> {
        SEEDS.with_borrow_mut(|seeds| seeds.as_mut().map(Prg::from_rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(seed: Block, bytes: usize) -> Vec<u8> {
        let aes = Aes128::new(seed);
        (0..bytes.div_ceil(16))
            .flat_map(|i| aes.encrypt(Block::new(i as u128)).to_bytes())
            .take(bytes)
            .collect()
    }

    #[test]
    fn the_stream_is_aes_of_the_counter() {
        let seed = Block::new(0x1234_5678);
        for n in [0, 1, 15, 16, 17, 127, 128, 129, 1000] {
            let mut out = vec![0; n];
            Prg::new(seed).fill_bytes(&mut out);
            assert_eq!(out, stream(seed, n), "{n} bytes");
        }
        let mut prg = Prg::new(seed);
        let expected = stream(seed, 24);
        assert_eq!(prg.block().to_bytes(), expected[..16]);
        assert_eq!(prg.next_u64().to_le_bytes(), expected[16..]);
    }

    #[test]
    fn forks_differ_from_each_other_and_from_the_parent() {
        let draw = |label| Prg::new(Block::ONE).fork(label).block();
        let mut parent = Prg::new(Block::ONE);
        let (first, second) = (parent.fork("a").block(), parent.fork("a").block());
        assert_eq!(first, draw("a"));
        assert_ne!(first, second);
        assert_ne!(first, draw("b"));
        assert_ne!(first, parent.block());
    }

    #[test]
    fn below_stays_below_and_reaches_everything() {
        let mut prg = Prg::new(Block::ONE);
        let mut seen = [0; 7];
        let draws = if cfg!(miri) { 350 } else { 7000 };
        for _ in 0..draws {
            seen[prg.below(7) as usize] += 1;
        }
        // Five standard deviations.
        let expected = f64::from(draws) / 7.0;
        let far = |count: &i32| (f64::from(*count) - expected).abs() > 5.0 * expected.sqrt();
        assert!(!seen.iter().any(far), "{seen:?}");
        assert_eq!(prg.below(1), 0);
        assert!(prg.below(u64::MAX) < u64::MAX);
    }

    #[test]
    fn os_seeds_and_starts_differ() {
        let draw = || Prg::from_os().map(|mut prg| (prg.counter, prg.block())).ok();
        let (Some(first), Some(second)) = (draw(), draw()) else {
            panic!("the operating system provides randomness");
        };
        assert_ne!(first.0, second.0);
        assert_ne!(first.1, second.1);
    }

    #[test]
    fn a_callers_generator_gives_seed_and_start() {
        let mut prg = Prg::from_rng(&mut Prg::new(Block::new(9)));
        let mut random = [Block::ZERO; 2];
        Prg::new(Block::new(9)).fill_blocks(&mut random);
        assert_eq!(prg.block(), Prg::starting_at(random[0], random[1]).block());
        // A generator also implements the traits of `rand_core`.
        let mut bytes = [0; 5];
        rand_core::Rng::fill_bytes(&mut Prg::new(Block::new(9)), &mut bytes);
        assert_eq!(bytes, random[0].to_bytes()[..5]);
    }

    #[test]
    fn debug_hides_the_state() {
        assert_eq!(format!("{:?}", Prg::new(Block::ONE)), "Prg(..)");
    }
}
