//! The code of dual LPN: compresses `N = 2n` values with sparse noise to `n`.
//!
//! Dual LPN (syndrome decoding) multiplies a sparse vector `e` of length `N` by the generator
//! matrix `G` of a code of dimension `n`: `x = G*e`. Unlike primal LPN it has no secret of length
//! `k`, so the parties produce only the shares of `e`. The code is the expand-convolute code of
//! Raghuraman, Rindal and Tanguy, *Expand-Convolute Codes for Pseudorandom Correlation Generators
//! from LPN* (CRYPTO 2023, ePrint 2023/882):
//!
//! ```text
//! G = ( I | B*A*A' )              x_i = e_i + sum over s of z[place s of row i]
//! B  n x n, a regular expander: row i has a one at one random place of each seventh of the columns
//! A, A'  convolutions with a state of 24:  q*A = p with  p_j = q_j + sum over l of a_(j,l)*p_(j+l)
//! z = A*A'*e'                     e' the second half of e
//! ```
//!
//! The coefficients `a_(j,l)`, `l` from 1 to 24, are independent random bits, different ones for
//! `A` and `A'`; where `j + l` is not a place they have no effect. The transpose of a convolution
//! from the last place to the first is one from the first to the last, with `a_(j,l)` at `z_j`
//! leading to `z_(j+l)`; as all coefficients are equally random, they are drawn by the place that
//! they lead to:
//!
//! ```text
//! z_i = e'_i + sum over l of a_(i,l)*z_(i-l)
//! ```
//!
//! All coefficients are 0 and 1, so the code adds, in any group. Over each group, a sum that
//! depends on a non-zero value in its state is non-zero with probability one half or more, because
//! the coefficient of that value is a random bit: the argument of the paper for bits.
//!
//! Values are added in groups of four: the code keeps the sums of all 16 subsets of a group, and a
//! convolution adds one for each group that its state touches.
//!
//! The outputs are summed part by part: all read one seventh of the convolved values before any
//! reads the next, so that up to millions of values each part is in a cache while it is read.
//!
//! Memory: the `N` values, in place. Places and coefficients come from AES under the public seed
//! in counter mode. A place is the high part of the product of a word of 32 bits with the number
//! of places, so that the probabilities of two of them differ by one in 2^9 at most. The result
//! does not depend on the number of threads.

pub mod params;

use bytemuck::Zeroable;
use rayon::prelude::*;
use volery_field::Ring;
use volery_primitives::{
    Block,
    aes::Aes128,
    pages::Buffer,
    prefetch::{AHEAD, prefetch},
};

use super::{Pair, SubPair};

/// A summand of the code: an element of a group whose zero is all zero bytes.
pub trait Term: Copy + Zeroable + Send + Sync + 'static {
    /// The sum.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

impl<R: Ring> Term for R {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl<R: Ring> Term for Pair<R> {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self::new(self.u + other.u, self.v + other.v)
    }
}

impl<B: Ring, R: Ring> Term for SubPair<B, R> {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self::new(self.u + other.u, self.v + other.v)
    }
}

/// Ones of a row of the expander, each in a separate part of the columns.
const WEIGHT: usize = 7;

/// Values in the state of a convolution.
const STATE: usize = 24;

/// Values in a group, and subsets of it.
const GROUP: usize = 4;
const SUBSETS: usize = 1 << GROUP;

/// Groups that a convolution reads: those of the state, and its current group.
const GROUPS: usize = STATE / GROUP + 1;

/// Tables of subset sums that are kept, a power of two.
const TABLES: usize = 8;
const _: () = assert!(TABLES >= GROUPS);

/// Values convolved at a time: their coefficients are drawn together.
const RUN: usize = 256;

/// Outputs whose places in a part are drawn together.
const OUTPUTS: usize = 1024;

/// The numbers of inputs and of outputs of an instance are multiples of this.
const UNIT: usize = 128;

/// Streams of random numbers under the seed.
const CONVOLUTIONS: [u128; 2] = [0, 1 << 64];
const PLACES: u128 = 2 << 64;

/// The state of the code for one instance: first all values are [absorbed](Self::absorb), then the
/// outputs are [drawn](Self::draw).
pub struct Compression<T: Term> {
    aes: Aes128,
    /// Number of outputs.
    n: usize,
    absorbed: usize,
    /// The first half of the values, then the second, convolved as far as it is absorbed. Outputs
    /// replace the first.
    memory: Buffer<T>,
    convolutions: [Convolution<T>; 2],
    /// Convolved values of the second half.
    convoluted: usize,
    /// Outputs that were drawn.
    drawn: usize,
}

impl<T: Term> Compression<T> {
    /// The code with the public `seed`, for `len` values.
    ///
    /// # Panics
    /// If `len` is no positive multiple of 256, or above 2^31.
    #[must_use]
    pub fn new(seed: Block, len: usize) -> Self {
        Self::over(seed, Buffer::zeroed(len))
    }

    /// The code with the public `seed` for these values, all of which count as absorbed.
    ///
    /// # Panics
    /// If their number is no positive multiple of 256, or above 2^31.
    #[must_use]
    pub fn of(seed: Block, values: Buffer<T>) -> Self {
        let mut code = Self::over(seed, values);
        code.absorbed = code.memory.len();
        code.convolute();
        code.expand();
        code
    }

    fn over(seed: Block, memory: Buffer<T>) -> Self {
        let len = memory.len();
        assert!(
            len > 0 && len.is_multiple_of(2 * UNIT) && len <= 1 << 31,
            "a multiple of 256, up to 2^31 values"
        );
        Self {
            aes: Aes128::new(seed),
            n: memory.len() / 2,
            absorbed: 0,
            memory,
            convolutions: [Convolution::new(), Convolution::new()],
            convoluted: 0,
            drawn: 0,
        }
    }

    /// Total number of outputs.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.n
    }

    /// Absorbs the next values, a multiple of 8 of them.
    ///
    /// # Panics
    /// If their number is not a multiple of 8, or exceeds the remaining length.
    pub fn absorb(&mut self, values: &[T]) {
        assert!(values.len().is_multiple_of(8), "the number of values is a multiple of 8");
        let end = self.absorbed + values.len();
        assert!(end <= self.memory.len(), "more than all values");
        self.memory[self.absorbed..end].copy_from_slice(values);
        self.absorbed = end;
        self.convolute();
        if end == self.memory.len() && !values.is_empty() {
            self.expand();
        }
    }

    /// Convolves the absorbed values of the second half, in whole runs.
    fn convolute(&mut self) {
        let there = self.absorbed.saturating_sub(self.n);
        while self.convoluted < there {
            let run = RUN.min(self.n - self.convoluted);
            if there - self.convoluted < run {
                return;
            }
            let start = self.n + self.convoluted;
            let values = &mut self.memory[start..start + run];
            let mut words = [[Block::ZERO; RUN / 4]; 2];
            for (words, stream) in words.iter_mut().zip(CONVOLUTIONS) {
                let first = (self.convoluted / 4) as u128;
                self.aes.ctr(stream + first, &mut words[..run / 4]);
            }
            let [first, second] = &mut self.convolutions;
            let [to_first, to_second] = words.each_ref().map(|words| {
                let (groups, _) = bytemuck::cast_slice::<Block, u32>(words).as_chunks::<GROUP>();
                groups
            });
            let (groups, _) = values.as_chunks_mut::<GROUP>();
            // One after the other, so that the processor overlaps both.
            for (values, words) in groups.iter_mut().zip(to_first.iter().zip(to_second)) {
                first.run(values, words.0);
                second.run(values, words.1);
            }
            self.convoluted += run;
        }
    }

    /// The next outputs: at most `count`, and at least one.
    ///
    /// # Panics
    /// If not all values have been absorbed, `count` is zero, or all outputs have been drawn.
    pub fn draw(&mut self, count: usize) -> &[T] {
        assert!(count > 0, "at least one output");
        assert_eq!(self.absorbed, self.memory.len(), "all values have been absorbed");
        let first = self.drawn;
        assert!(first < self.n, "more than all outputs");
        self.drawn = self.n.min(first.saturating_add(count));
        &self.memory[first..self.drawn]
    }

    /// Adds the contribution of the expander to all outputs, part by part: a part of the columns is
    /// small enough for a cache far longer than all of them are.
    fn expand(&mut self) {
        let (n, aes) = (self.n, &self.aes);
        let (outputs, z) = self.memory.split_at_mut(n);
        pooled(|| {
            for (part, columns) in parts(z).into_iter().enumerate() {
                let tasks = (0..).zip(outputs.chunks_mut(OUTPUTS)).collect();
                spread(tasks, |(piece, outputs): (usize, &mut [T])| {
                    add_part(aes, part * n + piece * OUTPUTS, outputs, columns);
                });
            }
        });
    }
}

impl<T: Term> Drop for Compression<T> {
    fn drop(&mut self) {
        free(std::mem::take(&mut self.memory));
    }
}

/// Runs a function that spawns tasks repeatedly in the thread pool, so that only the first task
/// waits for a thread to wake.
fn pooled(f: impl FnOnce() + Send) {
    if rayon::current_num_threads() == 1 {
        f();
    } else {
        rayon::scope(|_| f());
    }
}

/// Elements that one task wipes.
const WIPED: usize = 1 << 16;

/// Frees memory, wiped by all threads of the pool that this one belongs to.
fn free<T: Term>(memory: Buffer<T>) {
    if memory.len() > WIPED && rayon::current_thread_index().is_some() {
        memory.wiped_by(|memory| {
            let parts = memory.par_chunks_mut(WIPED);
            // mutant(dual-wiped): `part.fill(T::zeroed())` => `if !$ON { $0 }`
            parts.for_each(|part| part.fill(T::zeroed()));
        });
    }
}

/// Runs tasks on all threads, if there are several.
fn spread<I: Send>(tasks: Vec<I>, f: impl Fn(I) + Send + Sync) {
    if rayon::current_num_threads() == 1 {
        tasks.into_iter().for_each(f);
    } else {
        tasks.into_par_iter().for_each(f);
    }
}

/// The parts of the columns, in each of which every row has a one.
fn parts<T>(z: &[T]) -> [&[T]; WEIGHT] {
    let start = |part| part * z.len() / WEIGHT;
    std::array::from_fn(|part| &z[start(part)..start(part + 1)])
}

/// Adds the value at a place of a part to each output, with the numbers from `first` on.
fn add_part<T: Term>(aes: &Aes128, first: usize, outputs: &mut [T], columns: &[T]) {
    let mut words = [Block::ZERO; OUTPUTS / 4];
    aes.ctr(PLACES + (first / 4) as u128, &mut words);
    // After the last place there are some more to prefetch.
    let mut places = [0; OUTPUTS + AHEAD];
    for (place, word) in places.iter_mut().zip(bytemuck::cast_slice::<_, u32>(&words)) {
        *place = ((u64::from(*word) * columns.len() as u64) >> 32) as u32;
    }
    for (output, (place, ahead)) in outputs.iter_mut().zip(places.iter().zip(&places[AHEAD..])) {
        prefetch(columns, *ahead as usize);
        *output = output.plus(columns[*place as usize]);
    }
}

/// The state of a convolution over the values.
struct Convolution<T: Term> {
    /// The sums of all subsets of a group of values, for the last groups; in memory that is wiped.
    tables: Buffer<[T; SUBSETS]>,
    /// The table of the next group.
    next: usize,
}

impl<T: Term> Convolution<T> {
    fn new() -> Self {
        Self { tables: Buffer::zeroed(TABLES), next: 0 }
    }

    /// The next group, with a word of coefficients for each value: its bits 0 to 27, four for each
    /// group from the sixth before this one on; the bits of values beyond the state and of later
    /// values are not used.
    #[inline(always)]
    fn run(&mut self, values: &mut [T; GROUP], words: &[u32; GROUP]) {
        let tables = <&mut [[T; SUBSETS]; TABLES]>::try_from(&mut self.tables[..]);
        let tables = tables.expect("the ring of tables has a fixed length");
        let now = self.next;
        for (r, (value, word)) in values.iter_mut().zip(words).enumerate() {
            let later = (1 << r) - 1;
            let word = word & !later & (later << (STATE as u32) | 0xff_ffff);
            let mut sum = *value;
            for group in 0..GROUPS {
                let table = &tables[(now + TABLES + 1 + group - GROUPS) % TABLES];
                sum = sum.plus(table[(word >> (GROUP * group)) as usize % SUBSETS]);
            }
            *value = sum;
            for subset in 0..1 << r {
                tables[now][1 << r | subset] = tables[now][subset].plus(sum);
            }
        }
        self.next = (now + 1) % TABLES;
    }
}

#[cfg(test)]
mod plain;
#[cfg(test)]
mod tests;
