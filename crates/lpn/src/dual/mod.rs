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
//! outputs are computed as they are drawn. Several threads take more, whatever their number: an
//! eighth for 2^22 values, a smaller part for more, and less than as much again for few. The result
//! does not depend on the number of threads.

mod draws;
mod encoder;
pub mod expand_convolute;
mod muller;
pub mod params;
#[cfg(test)]
mod plain;
mod scatter;
pub mod weights;

use std::ops::Range;

use bytemuck::Zeroable;
use rayon::prelude::*;
use volery_field::Ring;
use volery_primitives::{Block, aes::Aes128, pages::Buffer};

use super::Pair;
pub use encoder::Encoder;
use muller::{POINTS, SUMS};
use scatter::{Buckets, Sorter, Store};

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
    /// With several threads.
    sorter: Option<Sorter<T>>,
    /// Values of the last permutation without a whole block, then those of the next buckets.
    window: Buffer<T>,
    in_window: usize,
    /// Outputs that are ready, and the range of those drawn.
    outputs: Buffer<T>,
    ready: Range<usize>,
}

/// Approximate number of values in a bucket.
const BUCKET: usize = 1 << 13;

/// The most buckets: more of them, with their ends, would not fit into the nearest cache.
const BUCKETS: usize = 512;

/// The fewest buckets that several threads fill together.
const FEWEST: usize = 16;

/// The most buckets that several threads empty at once: a number with many divisors.
const AT_ONCE: usize = 24;

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
        pooled(|| {
            code.with_sorter();
            let Self {
                store,
                buckets,
                sorter,
                aes,
                ..
            } = &mut code;
            match sorter {
                None => store.put_first(buckets, len, aes),
                Some(sorter) => store.put_first_in_parts(buckets, len, sorter, aes),
            }
            code.permute_again();
        });
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
            sorter: None,
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
        self.with_sorter();
        let Self {
            store,
            buckets,
            sorter,
            aes,
            ..
        } = self;
        match sorter {
            Some(sorter) if values.len() > sorter.part() => {
                let parts: Vec<_> = buckets.parts(values, sorter.part()).collect();
                pooled(|| store.put_parts(buckets, &parts, sorter, aes));
            }
            _ => store.put(buckets, values, aes),
        }
        if self.absorbed == self.len {
            pooled(|| self.permute_again());
        }
    }

    /// Makes the memory that several threads need, if there are several.
    fn with_sorter(&mut self) {
        let count = self.buckets.count();
        if self.sorter.is_none() && count >= FEWEST && rayon::current_num_threads() > 1 {
            self.sorter = Some(Sorter::new(count));
        }
    }

    /// From the first buckets, with the second sums, to the second ones.
    fn permute_again(&mut self) {
        let count = self.buckets.count();
        let mut to = Buckets::new(1, count);
        for first in (0..count).step_by(at_once(count)) {
            let shuffled = self.shuffle(0, first);
            let Self {
                store,
                window,
                sorter,
                aes,
                ..
            } = self;
            for bucket in first..first + shuffled.len() {
                store.free(&mut self.buckets, bucket);
            }
            let mut parts = Vec::new();
            for elements in shuffled {
                let elements = &window[elements];
                match sorter {
                    None => store.put(&mut to, elements, aes),
                    Some(sorter) => parts.extend(to.parts(elements, sorter.part())),
                }
            }
            if let Some(sorter) = sorter {
                store.put_parts(&mut to, &parts, sorter, aes);
            }
        }
        self.buckets = to;
        self.bucket = Some(0);
    }

    /// Copies the next buckets from `first` on to the window, after what it has, and brings each
    /// into its random order. Returns the part of the window of each.
    fn shuffle(&mut self, stage: u8, first: usize) -> Vec<Range<usize>> {
        let (count, mut end) = (self.buckets.count(), self.in_window);
        let buckets = first..count.min(first + at_once(count));
        let of = |bucket| {
            let start = end;
            end += self.buckets.len(bucket);
            start..end
        };
        let ranges: Vec<_> = buckets.clone().map(of).collect();
        if self.window.len() < end {
            let mut window = Buffer::zeroed(end + end / 8);
            window[..self.in_window].copy_from_slice(&self.window[..self.in_window]);
            self.window = window;
        }
        let Self {
            store,
            buckets: from,
            window,
            aes,
            ..
        } = self;
        let mut rest = &mut window[self.in_window..];
        let mut tasks = Vec::with_capacity(buckets.len());
        for (range, bucket) in ranges.iter().zip(buckets) {
            let elements;
            (elements, rest) = rest.split_at_mut(range.len());
            tasks.push((bucket, elements));
        }
        spread(tasks, |(bucket, elements)| {
            store.copy(from, bucket, elements);
            scatter::shuffle(elements, (stage, bucket), aes);
        });
        ranges
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
        assert!(first < self.buckets.count(), "more than all outputs");
        let shuffled = self.shuffle(1, first);
        self.bucket = Some(first + shuffled.len());
        let len = shuffled.last().map_or(self.in_window, |last| last.end);
        let blocks = len / POINTS;
        if self.outputs.len() < blocks * SUMS {
            self.outputs = Buffer::zeroed(self.window.len() / POINTS * SUMS);
        }
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

/// Buckets of `count` that are emptied at once. Several threads work on as many, whatever their
/// number, so that it does not determine the memory.
fn at_once(count: usize) -> usize {
    match rayon::current_num_threads() {
        1 => 1,
        _ => (count / 2).clamp(1, AT_ONCE),
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

#[cfg(test)]
mod tests;
