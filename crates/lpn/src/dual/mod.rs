//! The code of dual LPN: compresses `N` values with sparse noise to `n = 93/256 N`.
//!
//! Dual LPN (syndrome decoding) multiplies a sparse vector `e` of length `N` by the transposed
//! generator matrix of a code of dimension `n`: `x = G*e`. Unlike primal LPN it has no secret of
//! length `k`, so the parties produce only the shares of `e`. The code is an outer block code and
//! two random accumulators, in the line of *repeat-accumulate-accumulate* and *block-accumulate*
//! codes:
//! codes:
//!
//! ```text
//! G = blocks of the Reed-Muller code [256, 93, 32]
//!     | random permutation | running sums | random permutation | running sums
//! x = blocks of its transposed matrix ( permute ( running sums ( permute ( running sums ( e )))))
//! ```
//!
//! The transposed matrix of a running sum is one from the other end, which is the same up to the
//! order of its values; the order is random before and after. So both sums here run forwards, and
//! the inverse of a uniformly random permutation is one. All matrices have entries 0 and 1: the
//! code adds, in any group. [`weights`] shows why its minimum distance is near that of a random
//! code except with a tiny probability over the seed, and the consequence in each ring; [`params`]
//! has the noise weights.
//!
//! A value is read and written twice (`scatter` has the details), in order or within a cache, and
//! once more to produce the outputs. Memory: `N` values and, at most, 512 for each of 512 buckets;
//! outputs are computed as they are drawn. The result does not depend on the number of threads.

mod draws;
mod encoder;
pub mod expand_convolute;
mod muller;
pub mod params;
#[cfg(test)]
mod plain;
mod scatter;
pub mod weights;

use bytemuck::Zeroable;
use rayon::prelude::*;
use volery_field::Ring;
use volery_primitives::{Block, aes::Aes128, pages::Buffer};

use super::Pair;
pub use encoder::Encoder;
use muller::{POINTS, SUMS};
use scatter::{Buckets, Scratch, Store};

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
        Self {
            u: self.u + other.u,
            v: self.v + other.v,
        }
    }
}

/// The state of the code for one instance: first all values are [absorbed](Self::absorb), then the
/// outputs are [drawn](Self::draw).
pub struct Compression<T: Term> {
    aes: Aes128,
    /// Input values: whole blocks.
    len: usize,
    absorbed: usize,
    store: Store<T>,
    /// The buckets being filled, or emptied.
    buckets: Buckets<T>,
    /// The next bucket to be emptied for the last time; none until all values are absorbed.
    bucket: Option<usize>,
    scratch: Vec<Scratch<T>>,
    /// Values of the last permutation without a whole block, then whole blocks of them, some
    /// buckets long.
    window: Buffer<T>,
    in_window: usize,
    /// Outputs that are ready, and the range of those drawn.
    outputs: Buffer<T>,
    ready: std::ops::Range<usize>,
}

/// Approximate number of values in a bucket.
const BUCKET: usize = 1 << 13;

/// The most buckets: more of them, with their ends, would not fit into the nearest cache.
const BUCKETS: usize = 512;

/// Blocks that one task sums up.
const TASK: usize = 32;

/// Buckets for `len` values.
fn buckets_for(len: usize) -> usize {
    (len / BUCKET).clamp(1, BUCKETS).next_power_of_two()
}

impl<T: Term> Compression<T> {
    /// The code with the public `seed`, for `len` values.
    ///
    /// # Panics
    /// If `len` is no positive multiple of 256, or above 2^31.
    #[must_use]
    pub fn new(seed: Block, len: usize) -> Self {
        Self::over(seed, len, Buffer::zeroed(Self::memory_len(len)), 0)
    }

    /// Memory for [`of_first`](Self::of_first): the `len` values, and more.
    ///
    /// # Panics
    /// If `len` is no positive multiple of 256, or above 2^31.
    #[must_use]
    pub fn memory_len(len: usize) -> usize {
        assert!(
            len > 0 && len.is_multiple_of(POINTS) && len <= 1 << 31,
            "whole blocks, up to 2^31 values"
        );
        Store::<T>::memory_len(len, buckets_for(len))
    }

    /// As [`new`](Self::new), with the values already at the start of the working memory. All of
    /// them then count as absorbed.
    ///
    /// # Panics
    /// If the memory does not have [`memory_len`](Self::memory_len) elements.
    #[must_use]
    pub fn of_first(seed: Block, len: usize, memory: Buffer<T>) -> Self {
        let mut code = Self::over(seed, len, memory, len);
        code.absorbed = len;
        code.store.put_first(&mut code.buckets, len, &code.aes);
        pooled(|| code.permute_again());
        code
    }

    fn over(seed: Block, len: usize, memory: Buffer<T>, taken: usize) -> Self {
        assert_eq!(
            memory.len(),
            Self::memory_len(len),
            "the memory has memory_len elements"
        );
        Self {
            aes: Aes128::new(seed),
            len,
            absorbed: 0,
            store: Store::new(memory, taken),
            buckets: Buckets::new(0, buckets_for(len)),
            bucket: None,
            scratch: Vec::new(),
            window: Buffer::default(),
            in_window: 0,
            outputs: Buffer::default(),
            ready: 0..0,
        }
    }

    /// Total number of outputs.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.len / POINTS * SUMS
    }

    /// Absorbs the next values, a multiple of 8 of them.
    ///
    /// # Panics
    /// If their number is not a multiple of 8, or exceeds the remaining length.
    pub fn absorb(&mut self, values: &[T]) {
        assert!(
            values.len().is_multiple_of(8),
            "the number of values is a multiple of 8"
        );
        self.absorbed += values.len();
        assert!(self.absorbed <= self.len, "more than all values");
        self.store.put(&mut self.buckets, values, &self.aes);
        if self.absorbed == self.len {
            pooled(|| self.permute_again());
        }
    }

    /// From the first buckets, with the second sums, to the second ones.
    fn permute_again(&mut self) {
        let Self {
            aes,
            store,
            scratch,
            ..
        } = self;
        let from = &mut self.buckets;
        let mut to = Buckets::new(1, from.count());
        *scratch = (0..batch(self.len / from.count()))
            .map(|_| Scratch::default())
            .collect();
        for first in (0..from.count()).step_by(scratch.len()) {
            let buckets = first..from.count().min(first + scratch.len());
            if scratch.len() == 1 {
                store.copy(from, first, &mut scratch[0]);
                let len = from.len(first);
                store.free(from, first);
                scratch[0].empty((0, first), len, aes, |run| store.put(&mut to, run, aes));
                continue;
            }
            let pairs = scratch.iter_mut().zip(buckets.clone()).collect();
            spread(pairs, |(scratch, bucket)| {
                store.copy(from, bucket, scratch);
                scratch.shuffle((0, bucket), from.len(bucket), aes);
            });
            for (scratch, bucket) in scratch.iter().zip(buckets) {
                let len = from.len(bucket);
                store.free(from, bucket);
                store.put(&mut to, scratch.shuffled(len), aes);
            }
        }
        self.buckets = to;
        self.bucket = Some(0);
    }

    /// The next outputs: at most `count`, and at least one.
    ///
    /// # Panics
    /// If not all values have been absorbed, `count` is zero, or all outputs have been drawn.
    pub fn draw(&mut self, count: usize) -> &[T] {
        assert!(count > 0, "at least one output");
        while self.ready.is_empty() {
            pooled(|| self.refill());
        }
        let first = self.ready.start;
        self.ready.start = self.ready.end.min(first.saturating_add(count));
        &self.outputs[first..self.ready.start]
    }

    /// Computes the outputs of the next buckets.
    fn refill(&mut self) {
        let first = self.bucket.expect("all values have been absorbed");
        let end = self.buckets.count().min(first + self.scratch.len());
        assert!(first < end, "more than all outputs");
        self.bucket = Some(end);
        let sizes: Vec<_> = (first..end)
            .map(|bucket| self.buckets.len(bucket))
            .collect();
        let len = self.in_window + sizes.iter().sum::<usize>();
        if self.window.len() < len {
            let mut window = Buffer::zeroed(len + len / 8);
            window[..self.in_window].copy_from_slice(&self.window[..self.in_window]);
            self.window = window;
            self.outputs = Buffer::zeroed(self.window.len() / POINTS * SUMS);
        }
        let (store, buckets, aes) = (&self.store, &self.buckets, &self.aes);
        let mut rest = &mut self.window[self.in_window..len];
        let mut parts = Vec::with_capacity(sizes.len());
        for (size, (bucket, scratch)) in sizes.iter().zip((first..).zip(&mut self.scratch)) {
            let part;
            (part, rest) = rest.split_at_mut(*size);
            parts.push((bucket, scratch, part));
        }
        spread(parts, |(bucket, scratch, mut part)| {
            store.copy(buckets, bucket, scratch);
            scratch.empty((1, bucket), part.len(), aes, |run| {
                let now;
                (now, part) = std::mem::take(&mut part).split_at_mut(run.len());
                now.copy_from_slice(run);
            });
        });
        let blocks = len / POINTS;
        let points = &mut self.window.as_chunks_mut::<POINTS>().0[..blocks];
        let sums = &mut self.outputs.as_chunks_mut::<SUMS>().0[..blocks];
        let tasks = points.chunks_mut(TASK).zip(sums.chunks_mut(TASK)).collect();
        spread(tasks, |(points, sums): (&mut [_], &mut [_])| {
            for (points, sums) in points.iter_mut().zip(sums) {
                muller::sums(points, sums);
            }
        });
        self.window.copy_within(blocks * POINTS..len, 0);
        self.in_window = len % POINTS;
        self.ready = 0..blocks * SUMS;
    }
}

/// Buckets of `len` elements emptied at once: one for one thread, otherwise enough to occupy each
/// thread.
fn batch(len: usize) -> usize {
    match rayon::current_num_threads() {
        1 => 1,
        threads => threads * (4 * BUCKET).div_ceil(len.max(1)),
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

/// Runs tasks on all threads, if there are several.
fn spread<I: Send>(tasks: Vec<I>, f: impl Fn(I) + Send + Sync) {
    if rayon::current_num_threads() == 1 {
        tasks.into_iter().for_each(f);
    } else {
        tasks.into_par_iter().for_each(f);
    }
}

#[cfg(test)]
mod tests;
