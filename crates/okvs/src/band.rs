//! Random band matrices.
//!
//! The row of a key, for a band of `w` bits in `m` columns, is made of `1 + w/128` blocks: block
//! `i` is AES of the key under `AES_seed(i)`. The start is the high part of the product of the low
//! 64 bits of block 0 and `m - w + 1`. The other blocks are the pattern: its bit `c % w` is the
//! entry of column `c`, and that of the start is set.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use thiserror::Error;
use volery_primitives::Block;
use volery_primitives::aes::Aes128;
use volery_primitives::band;
use volery_primitives::cpu::Cpu;
use volery_primitives::pages::Buffer;
use volery_primitives::prefetch::prefetch;
use volery_primitives::prg::Prg;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::eliminate::eliminate;
use crate::{Shape, Value};

/// Keys encrypted at a time.
const CHUNK: usize = 256;

/// Rows decoded at a time.
const DECODED: usize = 1 << 12;

/// Bits of the largest digit by which starts are sorted.
const DIGIT: u32 = 11;

/// The random band matrices of one shape under a seed: a row for each key.
///
/// The two parties agree on shape and seed.
///
/// Memory for encoding, `shape.width / 8` bytes a column, and that of [rows](Self::recycle) stays
/// allocated until this is dropped and is wiped then; several times that where threads encode at
/// the same time.
pub struct Band {
    shape: Shape,
    cpu: Cpu,
    /// For the start, then for each block of a pattern.
    ciphers: Vec<Aes128>,
    /// Buffers for the next calls: to get them from the system takes a good part of the time of an
    /// encoding.
    spare: Mutex<Vec<Buffer<u64>>>,
}

/// The rows of some keys, sorted by their starts; wiped on drop.
pub struct Rows {
    shape: Shape,
    len: usize,
    /// Of each row the first column, ascending, in the high half, and in the low half the number of
    /// its key: [`start`] and [`number`]. This buffer and the next may be longer.
    pairs: Buffer<u64>,
    /// The bits of each row, `shape.width / 64` words.
    patterns: Buffer<u64>,
}

impl Rows {
    /// The first column of each row, ascending, and the bits of the row: column `c` has bit
    /// `c % 64` of word `c / 64`, modulo the number of words.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[u64])> {
        let patterns = self.patterns.chunks_exact(self.shape.width / 64);
        let pairs = self.pairs[..self.len].iter();
        pairs.zip(patterns).map(|(pair, bits)| (start(*pair), bits))
    }
}

/// The first column of a row.
#[inline]
pub(crate) const fn start(pair: u64) -> usize {
    (pair >> 32) as usize
}

/// The number of the key of a row.
#[inline]
pub(crate) const fn number(pair: u64) -> usize {
    pair as u32 as usize
}

/// No vector decodes to all values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum EncodeError {
    /// The rows of the keys are linearly dependent. With the shapes of [`Shape::new`] the
    /// probability is at most 2^-40, over the seed.
    #[error("the rows of the keys are linearly dependent: encode with another seed")]
    Singular,
    /// Two keys are equal; these are their numbers.
    #[error("keys {0} and {1} are equal: a key has one value")]
    Duplicate(usize, usize),
}

impl Band {
    /// The matrices of a shape under a seed, which has to be drawn after the keys are fixed.
    ///
    /// # Panics
    ///
    /// If the width is not 256 or 512, or there are fewer columns than items or than the width, or
    /// 2^32 or more.
    #[must_use]
    pub fn new(shape: Shape, seed: Block) -> Self {
        Self::with_cpu(shape, seed, Cpu::detect())
    }

    /// [`new`](Self::new) with the kernels of one level.
    ///
    /// # Panics
    ///
    /// The panics of [`new`](Self::new), and a panic if the processor cannot run the kernels.
    #[must_use]
    pub fn with_cpu(shape: Shape, seed: Block, cpu: Cpu) -> Self {
        assert!(matches!(shape.width, 256 | 512), "a row has 256 or 512 bits");
        assert!(
            shape.columns >= shape.width.max(shape.items),
            "a column for each item and for each bit of a row"
        );
        assert!(u32::try_from(shape.columns).is_ok(), "fewer than 2^32 columns");
        let mut keys = vec![Block::ZERO; 1 + shape.width / 128];
        Aes128::with_cpu(seed, cpu).ctr(0, &mut keys);
        let ciphers = keys.iter().map(|&key| Aes128::with_cpu(key, cpu)).collect();
        keys.zeroize();
        Self { shape, cpu, ciphers, spare: Mutex::default() }
    }

    /// The size of the matrices.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// The rows of any number of keys, for [encoding](Self::encode) or [decoding](Self::decode).
    ///
    /// # Panics
    ///
    /// If there are 2^32 keys or more.
    #[must_use]
    pub fn rows(&self, keys: &[Block]) -> Rows {
        assert!(u32::try_from(keys.len()).is_ok(), "fewer than 2^32 keys");
        let (of_start, of_pattern) = self.ciphers.split_first().expect("a cipher for the start");
        let range = (self.shape.columns - self.shape.width + 1) as u64;
        let [mut chosen, mut blocks] = [(); 2].map(|()| Buffer::zeroed(CHUNK));

        let mut pairs = self.scratch(keys.len());
        let chunks = keys.chunks(CHUNK).zip(pairs.chunks_mut(CHUNK));
        for (chunk, (keys, pairs)) in chunks.enumerate() {
            let blocks = &mut blocks[..keys.len()];
            blocks.copy_from_slice(keys);
            of_start.encrypt_blocks(blocks);
            for ((number, block), pair) in (chunk * CHUNK..).zip(blocks).zip(pairs) {
                // mutant(okvs-starts): `64` => `65`
                let start = (u128::from(block.low()) * u128::from(range)) >> 64;
                *pair = (start as u64) << 32 | number as u64;
            }
        }
        let mut scratch = self.scratch(keys.len());
        sort(&mut pairs[..keys.len()], &mut scratch[..keys.len()], range);
        self.put_back(scratch);

        let words = self.shape.width / 64;
        let mut rows = Rows {
            shape: self.shape,
            len: keys.len(),
            pairs,
            patterns: self.scratch(words * keys.len()),
        };
        let all = &rows.pairs[..keys.len()];
        let patterns = rows.patterns[..words * keys.len()].chunks_mut(words * CHUNK);
        for (chunk, (pairs, patterns)) in all.chunks(CHUNK).zip(patterns).enumerate() {
            for &pair in all.iter().skip((chunk + 1) * CHUNK).take(CHUNK) {
                prefetch(keys, number(pair));
            }
            let (chosen, blocks) = (&mut chosen[..pairs.len()], &mut blocks[..pairs.len()]);
            for (chosen, pair) in chosen.iter_mut().zip(pairs) {
                *chosen = keys[number(*pair)];
            }
            for (i, cipher) in of_pattern.iter().enumerate() {
                blocks.copy_from_slice(chosen);
                cipher.encrypt_blocks(blocks);
                for (pattern, block) in patterns.chunks_exact_mut(words).zip(&*blocks) {
                    // mutant(okvs-pattern): `block.low()` => `0`
                    pattern[2 * i] = block.low();
                    pattern[2 * i + 1] = block.high();
                }
            }
            for (pattern, &pair) in patterns.chunks_exact_mut(words).zip(pairs) {
                pattern[start(pair) / 64 % words] |= 1 << (start(pair) % 64);
            }
        }
        rows
    }

    /// Sets `columns` so that key `i` decodes to `values[i]`, those that are not determined to
    /// zero.
    ///
    /// `columns` shows something about the keys even where the values are random: mask it before it
    /// leaves the party, or take [`encode_random`](Self::encode_random).
    ///
    /// # Errors
    ///
    /// If two keys are equal, or the rows are linearly dependent. `columns` is then all zero.
    ///
    /// # Panics
    ///
    /// If the rows are of another shape or more than its items, there is not one value for each
    /// row, or `columns` does not have the length of the shape.
    pub fn encode<V: Value>(
        &self,
        rows: &Rows,
        values: &[V],
        columns: &mut [V],
    ) -> Result<(), EncodeError> {
        columns.fill(V::zeroed());
        self.solve(rows, values, columns)
    }

    /// Encodes like [`encode`](Self::encode), with uniform values where they are not determined:
    /// for an encoding that is sent in the clear.
    ///
    /// # Errors
    ///
    /// The errors of [`encode`](Self::encode).
    ///
    /// # Panics
    ///
    /// The panics of [`encode`](Self::encode).
    pub fn encode_random<V: Value>(
        &self,
        rows: &Rows,
        values: &[V],
        columns: &mut [V],
        rng: &mut Prg,
    ) -> Result<(), EncodeError> {
        rng.fill_bytes(bytemuck::cast_slice_mut(columns));
        self.solve(rows, values, columns)
    }

    /// Solves the system with the values that `columns` has where they are not determined.
    fn solve<V: Value>(
        &self,
        rows: &Rows,
        values: &[V],
        columns: &mut [V],
    ) -> Result<(), EncodeError> {
        assert_eq!(rows.shape, self.shape, "rows of the same shape");
        assert!(rows.len() <= self.shape.items, "the shape has all items");
        assert_eq!(rows.len(), values.len(), "a value for each row");
        assert_eq!(columns.len(), self.shape.columns, "columns of the shape");
        let solved = match self.shape.width {
            256 => self.solve_words::<V, 4>(rows, values, columns),
            _ => self.solve_words::<V, 8>(rows, values, columns),
        };
        solved.map_err(|row| {
            columns.fill(V::zeroed());
            rows.explain(row)
        })
    }

    fn solve_words<V: Value, const WORDS: usize>(
        &self,
        rows: &Rows,
        values: &[V],
        columns: &mut [V],
    ) -> Result<(), usize> {
        let mut scratch = self.scratch(WORDS * columns.len());
        let pivots = &mut scratch.as_chunks_mut::<WORDS>().0[..columns.len()];
        pivots.as_flattened_mut().fill(0);
        let patterns = rows.patterns.as_chunks().0;
        let solved = eliminate(rows.pairs(), patterns, values, pivots, columns);
        if solved.is_ok() {
            band::substitute(self.cpu, pivots, columns);
        }
        self.put_back(scratch);
        solved
    }

    /// `out[i]` = the value of key `i` in the encoding `columns`.
    ///
    /// A key that was not encoded gets a value that depends on all columns of its row.
    ///
    /// # Panics
    ///
    /// If the rows are of another shape, there is not one value for each row, or `columns` does not
    /// have the length of the shape.
    pub fn decode<V: Value>(&self, rows: &Rows, columns: &[V], out: &mut [V]) {
        assert_eq!(rows.shape, self.shape, "rows of the same shape");
        assert_eq!(rows.len(), out.len(), "a value for each row");
        assert_eq!(columns.len(), self.shape.columns, "columns of the shape");
        match self.shape.width {
            256 => self.decode_words::<V, 4>(rows, columns, out),
            _ => self.decode_words::<V, 8>(rows, columns, out),
        }
    }

    fn decode_words<V: Value, const WORDS: usize>(
        &self,
        rows: &Rows,
        columns: &[V],
        out: &mut [V],
    ) {
        let patterns = rows.patterns.as_chunks::<WORDS>().0;
        let chunk = rows.len().min(DECODED);
        let (mut starts, mut sums) = (Buffer::zeroed(chunk), Buffer::zeroed(chunk));
        let patterns = patterns[..rows.len()].chunks(DECODED);
        for (pairs, patterns) in rows.pairs().chunks(DECODED).zip(patterns) {
            let (starts, sums) = (&mut starts[..pairs.len()], &mut sums[..pairs.len()]);
            for (first, &pair) in starts.iter_mut().zip(pairs) {
                *first = start(pair) as u32;
            }
            band::sums(self.cpu, starts, patterns, columns, sums);
            for (&sum, &pair) in sums.iter().zip(pairs) {
                out[number(pair)] = sum;
            }
        }
    }

    /// Keeps the memory of rows for the next ones: to get it from the system takes as long as a
    /// good part of the work on them.
    pub fn recycle(&self, rows: Rows) {
        self.put_back(rows.pairs);
        self.put_back(rows.patterns);
    }

    /// Takes over the memory of other matrices that are no longer needed.
    pub fn take_memory(&self, other: &Self) {
        let spare = std::mem::take(&mut *other.lock_spare());
        self.lock_spare().extend(spare);
    }

    /// At least `len` words of any contents: of the spare buffers the smallest that has them.
    fn scratch(&self, len: usize) -> Buffer<u64> {
        let mut spare = self.lock_spare();
        let fits = (0..spare.len()).filter(|&at| spare[at].len() >= len);
        match fits.min_by_key(|&at| spare[at].len()) {
            Some(at) => spare.swap_remove(at),
            None => {
                drop(spare);
                Buffer::zeroed(len)
            }
        }
    }

    fn put_back(&self, scratch: Buffer<u64>) {
        self.lock_spare().push(scratch);
    }

    fn lock_spare(&self) -> MutexGuard<'_, Vec<Buffer<u64>>> {
        // Nothing panics while it is locked, and any list of buffers will do.
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Band").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Rows {
    /// Number of rows, one for each key.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn pairs(&self) -> &[u64] {
        &self.pairs[..self.len]
    }

    /// Why a row depends on those before it. Equal keys have equal rows, and by the number of their
    /// bits different keys do not.
    fn explain(&self, row: usize) -> EncodeError {
        let words = self.shape.width / 64;
        let bits = |row: usize| &self.patterns[words * row..][..words];
        let equal = (0..row)
            .rev()
            .take_while(|&other| start(self.pairs[other]) == start(self.pairs[row]))
            .find(|&other| bits(other) == bits(row));
        match equal {
            Some(other) => {
                let [a, b] = [other, row].map(|row| number(self.pairs[row]));
                EncodeError::Duplicate(a.min(b), a.max(b))
            }
            None => EncodeError::Singular,
        }
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("shape", &self.shape)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

// All buffers are wiped on drop.
impl ZeroizeOnDrop for Rows {}

/// Sorts pairs by their starts, which are below `range`: radix sort, from the lowest digit on.
/// `other` is as long as `pairs`.
fn sort<'a>(mut pairs: &'a mut [u64], mut other: &'a mut [u64], range: u64) {
    let bits = u64::BITS - (range - 1).leading_zeros();
    // An even number, so that the last one ends where the first one began.
    let passes = bits.div_ceil(DIGIT).next_multiple_of(2);
    let digit_bits = bits.div_ceil(passes.max(1));
    for pass in 0..passes {
        let digit = |pair: u64| (pair >> (32 + pass * digit_bits)) as usize % (1 << digit_bits);
        let mut places = Buffer::<usize>::zeroed(1 << digit_bits);
        for &pair in pairs.iter() {
            places[digit(pair)] += 1;
        }
        let mut total = 0;
        for place in places.iter_mut() {
            total += std::mem::replace(place, total);
        }
        for &pair in pairs.iter() {
            let place = &mut places[digit(pair)];
            other[*place] = pair;
            *place += 1;
        }
        std::mem::swap(&mut pairs, &mut other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preset;

    /// The rows are part of the wire format.
    #[test]
    fn rows_are_as_the_text_says() {
        let seed = Block::new(0x0123_4567_89ab_cdef);
        let keys: Vec<_> = (0..1000).map(Block::new).collect();
        for preset in [Preset::Band10, Preset::Band5] {
            let shape = Shape::new(preset, keys.len());
            let words = shape.width / 64;
            for cpu in Cpu::available() {
                let rows = Band::with_cpu(shape, seed, cpu).rows(&keys);
                assert!(rows.pairs.is_sorted());
                let mut numbers: Vec<_> = rows.pairs.iter().copied().map(number).collect();
                numbers.sort_unstable();
                assert!(numbers.into_iter().eq(0..1000));
                for (row, &pair) in rows.pairs.iter().enumerate() {
                    let block = |i| {
                        let key = Aes128::new(seed).encrypt(Block::new(i));
                        Aes128::new(key).encrypt(keys[number(pair)])
                    };
                    let range = (shape.columns - shape.width + 1) as u128;
                    let expected = (u128::from(block(0).low()) * range) >> 64;
                    assert_eq!(start(pair) as u128, expected);
                    let blocks = (1..=words / 2).map(|i| block(i as u128));
                    let mut bits: Vec<_> = blocks.flat_map(|b| [b.low(), b.high()]).collect();
                    bits[start(pair) / 64 % words] |= 1 << (start(pair) % 64);
                    assert_eq!(rows.patterns[words * row..][..words], bits);
                }
            }
        }
    }

    /// Computed with OpenSSL.
    #[test]
    fn known_rows() {
        let shape = Shape { items: 1 << 20, columns: 1_153_434, width: 256 };
        let rows = Band::new(shape, Block::new(1)).rows(&[2, 3, 5].map(Block::new));
        let pairs = [(1, 103_590), (2, 213_004), (0, 993_925)];
        assert!(rows.pairs.iter().map(|&pair| (number(pair), start(pair))).eq(pairs));
        let first = [
            0xd775_c807_6614_8ec7,
            0x5dc5_2258_4918_5a7c,
            0xd2ed_f5d9_b83c_f58a,
            0x8737_85bb_68df_6768,
        ];
        assert_eq!(rows.patterns[..4], first);
    }

    #[test]
    fn pairs_are_sorted_for_any_range() {
        let mut drawn = vec![0_u64; 3000];
        Prg::new(Block::ONE).fill_bytes(bytemuck::cast_slice_mut(&mut drawn));
        for range in [1, 2, 3, 2048, 2049, 1 << 20, 1 << 22, (1 << 22) + 1, 1 << 32] {
            let pairs = drawn.iter().zip(0..);
            let mut pairs: Vec<_> = pairs.map(|(word, i)| (word % range) << 32 | i).collect();
            let mut expected = pairs.clone();
            expected.sort_unstable();
            sort(&mut pairs, &mut vec![0; expected.len()], range);
            assert_eq!(pairs, expected, "range {range}");
        }
    }
}
