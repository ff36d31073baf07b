//! A uniformly random permutation of more elements than fit into a cache (Rao 1961, Sandelius
//! 1962), and the running sums before it.
//!
//! Each element is appended to a bucket drawn for it; then the buckets are emptied one after the
//! other, each by drawing from its remaining elements. Both together are a uniformly random
//! permutation, for any number of buckets: given the number of elements in each bucket, all ways to
//! fill them are equally likely, and so are all orders within them. Memory is written at the ends
//! of the buckets, and read within one bucket.
//!
//! Buckets are chains of chunks from one store, so that the chunks of an emptied bucket are filled
//! again: two successive permutations take the memory of one.
//!
//! **Several threads** take [`PARTS`] parts of the sequence at a time. First each part gives its
//! sum and its running sums, sorted by bucket; then each bucket gets what the parts have for it, in
//! order and with the sum of all elements before the part. So the result is that of one thread,
//! except for where in memory a chunk lies. The memory for it depends on the number of elements
//! only.
//!
//! The places are public; the elements may be secret.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use volery_primitives::{Block, aes::Aes128, chunks::Chunks, pages::Buffer};

use super::{
    Term,
    draws::{Draws, Purpose, below},
    free,
};

/// Elements of a chunk.
const CHUNK: usize = 256;
const IN_CHUNK: u32 = CHUNK as u32 - 1;

/// Elements that are drawn, or put into buckets, at a time.
const RUN: usize = 512;

/// Parts of the sequence that several threads put into buckets at a time.
pub(super) const PARTS: usize = 24;

/// Elements of a part, on average, for each bucket.
const OF_BUCKET: usize = 16;

/// The most elements of a part, which is to fit into the second-level cache; a multiple of 8, as
/// all lengths of parts.
const LONGEST: usize = 1 << 13;

/// Memory in chunks.
pub(super) struct Store<T: Term> {
    memory: Buffer<T>,
    free: Vec<u32>,
}

/// Elements in buckets, and the sum of all of them so far.
pub(super) struct Buckets<T: Term> {
    all: Vec<Bucket>,
    draws: Draws,
    /// One element, in memory that is wiped.
    sum: Buffer<T>,
}

#[derive(Clone, Default)]
struct Bucket {
    /// The first place of each chunk.
    chunks: Vec<u32>,
    /// The place of the next element; at the start of a chunk, the next element opens a new chunk.
    next: u32,
}

/// Elements of the sequence, and the numbers of their buckets.
pub(super) type Part<'a, T> = (Draws, &'a [T]);

/// Memory of parts that are put into buckets by several threads.
pub(super) struct Sorter<T: Term> {
    /// Elements of a part.
    part: usize,
    /// The running sums of each part, sorted by bucket.
    sorted: Buffer<T>,
    /// Where those of each bucket end, for each part.
    ends: Vec<u16>,
    /// The numbers of the buckets of each part.
    numbers: Vec<Block>,
    /// The sum of each part; then that of all elements before it.
    sums: Buffer<T>,
}

impl<T: Term> Store<T> {
    /// Elements that a store holds, when `n` of them move from `buckets` buckets to as many others.
    pub(super) fn memory_len(n: usize, buckets: usize) -> usize {
        // Each of the buckets may have one partial chunk.
        (n.div_ceil(CHUNK) + 2 * buckets) * CHUNK
    }

    /// A store in this memory, whose first `taken` elements are in use.
    ///
    /// # Panics
    /// If that is 2^32 elements or more.
    pub(super) fn new(memory: Buffer<T>, taken: usize) -> Self {
        let places = u32::try_from(memory.len()).expect("fewer than 2^32 elements");
        let first = taken.next_multiple_of(CHUNK) as u32;
        Self {
            memory,
            free: (first..places).step_by(CHUNK).rev().collect(),
        }
    }

    /// Puts the running sums of the first `n` elements of the memory into buckets, and frees their
    /// places.
    pub(super) fn put_first(&mut self, to: &mut Buckets<T>, n: usize, aes: &Aes128) {
        let mut run = Buffer::zeroed(RUN);
        for first in (0..n).step_by(RUN) {
            let run = &mut run[..RUN.min(n - first)];
            run.copy_from_slice(&self.memory[first..first + run.len()]);
            self.free_first(first, run.len());
            self.put(to, run, aes);
        }
    }

    /// As [`put_first`](Self::put_first), on all threads.
    pub(super) fn put_first_in_parts(
        &mut self,
        to: &mut Buckets<T>,
        n: usize,
        sorter: &mut Sorter<T>,
        aes: &Aes128,
    ) {
        let batch = PARTS * sorter.part;
        for first in (0..n).step_by(batch) {
            let len = batch.min(n - first);
            let parts = to.parts(&self.memory[first..first + len], sorter.part);
            let parts: Vec<_> = parts.collect();
            sorter.sort(&parts, to, aes);
            let count = parts.len();
            self.free_first(first, len);
            self.append(to, sorter, count);
        }
    }

    /// Frees the places of elements that no bucket has.
    fn free_first(&mut self, first: usize, len: usize) {
        let places = first as u32..(first + len) as u32;
        self.free.extend(places.step_by(CHUNK));
    }

    /// Puts running sums into buckets: the sums of all elements so far and the next ones, in order.
    /// Each call begins a new block of eight numbers.
    pub(super) fn put(&mut self, to: &mut Buckets<T>, elements: &[T], aes: &Aes128) {
        let mut blocks = [Block::ZERO; RUN / 8];
        let mask = to.count() - 1;
        for elements in elements.chunks(RUN) {
            // The rest of a block of numbers is not used.
            let blocks = &mut blocks[..elements.len().div_ceil(8)];
            let words: &[u16] = to.draws.fill(aes, blocks);
            let mut sum = to.sum[0];
            for (element, word) in elements.iter().zip(words) {
                sum = sum.plus(*element);
                let bucket = &mut to.all[usize::from(*word) & mask];
                if bucket.next & IN_CHUNK == 0 {
                    new_chunk(&mut self.free, bucket);
                }
                self.memory[bucket.next as usize] = sum;
                bucket.next += 1;
            }
            to.sum[0] = sum;
        }
    }

    /// As [`put`](Self::put), on all threads, with [`Buckets::parts`] of one call after the other.
    pub(super) fn put_parts(
        &mut self,
        to: &mut Buckets<T>,
        parts: &[Part<'_, T>],
        sorter: &mut Sorter<T>,
        aes: &Aes128,
    ) {
        for parts in parts.chunks(PARTS) {
            sorter.sort(parts, to, aes);
            self.append(to, sorter, parts.len());
        }
    }

    /// Appends what the first parts have for each bucket to it.
    fn append(&mut self, to: &mut Buckets<T>, sorter: &mut Sorter<T>, parts: usize) {
        for sum in &mut sorter.sums[..parts] {
            let after = to.sum[0].plus(*sum);
            (*sum, to.sum[0]) = (to.sum[0], after);
        }
        let (count, sorter) = (to.count(), &*sorter);
        let memory = Chunks::new(&mut self.memory, CHUNK);
        let (free, left) = (&self.free, AtomicUsize::new(self.free.len()));
        let append = |(number, bucket): (usize, &mut Bucket)| {
            let mut chunk = match bucket.next & IN_CHUNK {
                0 => &mut [],
                _ => memory.take(bucket.next as usize / CHUNK),
            };
            for part in 0..parts {
                let mut elements = sorter.elements(part, number, count);
                let before = sorter.sums[part];
                while !elements.is_empty() {
                    if bucket.next & IN_CHUNK == 0 {
                        let left = left.fetch_sub(1, Ordering::Relaxed);
                        bucket.next = free[left.checked_sub(1).expect(PLACE)];
                        bucket.chunks.push(bucket.next);
                        chunk = memory.take(bucket.next as usize / CHUNK);
                    }
                    let places = &mut chunk[(bucket.next & IN_CHUNK) as usize..];
                    let now;
                    (now, elements) = elements.split_at(elements.len().min(places.len()));
                    for (place, element) in places.iter_mut().zip(now) {
                        *place = before.plus(*element);
                    }
                    bucket.next += now.len() as u32;
                }
            }
        };
        to.all.par_iter_mut().enumerate().for_each(append);
        self.free.truncate(left.into_inner());
    }

    /// Copies a bucket, which the caller then frees.
    pub(super) fn copy(&self, from: &Buckets<T>, bucket: usize, elements: &mut [T]) {
        let chunks = &from.all[bucket].chunks;
        for (part, chunk) in elements.chunks_mut(CHUNK).zip(chunks) {
            part.copy_from_slice(&self.memory[*chunk as usize..][..part.len()]);
        }
    }

    /// Frees a bucket.
    pub(super) fn free(&mut self, from: &mut Buckets<T>, bucket: usize) {
        self.free.append(&mut from.all[bucket].chunks);
    }
}

impl<T: Term> Drop for Store<T> {
    fn drop(&mut self) {
        free(std::mem::take(&mut self.memory));
    }
}

const PLACE: &str = "the memory has a place for every element";

#[inline(never)]
fn new_chunk(free: &mut Vec<u32>, bucket: &mut Bucket) {
    bucket.next = free.pop().expect(PLACE);
    bucket.chunks.push(bucket.next);
}

impl<T: Term> Buckets<T> {
    /// Empty buckets, a power of two of them and at most 2^16.
    pub(super) fn new(stage: u8, count: usize) -> Self {
        assert!(count.is_power_of_two() && count <= 1 << 16);
        Self {
            all: vec![Bucket::default(); count],
            draws: Draws::new(Purpose::Buckets, stage, 0),
            sum: Buffer::zeroed(1),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Elements in a bucket that is not freed.
    pub(super) fn len(&self, bucket: usize) -> usize {
        let Bucket { chunks, next } = &self.all[bucket];
        let free = next.wrapping_neg() & IN_CHUNK;
        chunks.len() * CHUNK - free as usize
    }

    /// The parts of the next elements, of `len` elements each, a multiple of 8. Each call begins a
    /// new block of eight numbers.
    pub(super) fn parts<'a>(
        &mut self,
        elements: &'a [T],
        len: usize,
    ) -> impl Iterator<Item = Part<'a, T>> {
        let draws = &mut self.draws;
        elements
            .chunks(len)
            .map(move |part| (draws.skip(part.len().div_ceil(8)), part))
    }
}

impl<T: Term> Sorter<T> {
    /// For so many buckets.
    pub(super) fn new(buckets: usize) -> Self {
        let part = (OF_BUCKET * buckets).clamp(RUN, LONGEST);
        Self {
            part,
            sorted: Buffer::zeroed(PARTS * part),
            ends: vec![0; PARTS * buckets],
            numbers: vec![Block::ZERO; PARTS * part / 8],
            sums: Buffer::zeroed(PARTS),
        }
    }

    /// Elements of a part.
    pub(super) fn part(&self) -> usize {
        self.part
    }

    /// Sorts parts by their bucket.
    fn sort(&mut self, parts: &[Part<'_, T>], to: &Buckets<T>, aes: &Aes128) {
        let sorted = self.sorted.par_chunks_mut(self.part);
        let ends = self.ends.par_chunks_mut(to.count());
        let numbers = self.numbers.par_chunks_mut(self.part / 8);
        let places = sorted.zip(ends).zip(numbers).zip(&mut self.sums[..]);
        let tasks = parts.par_iter().zip(places);
        tasks.for_each(|(part, (((sorted, ends), numbers), sum))| {
            *sum = sort(part, sorted, ends, numbers, aes);
        });
    }

    /// What a part has for one of `count` buckets.
    fn elements(&self, part: usize, bucket: usize, count: usize) -> &[T] {
        let ends = &self.ends[part * count..][..count];
        let start = bucket.checked_sub(1).map_or(0, |bucket| ends[bucket]);
        let sorted = &self.sorted[part * self.part..][..self.part];
        &sorted[usize::from(start)..usize::from(ends[bucket])]
    }
}

/// The sum of a part; its running sums go to `sorted`, in the order of their buckets, and the ends
/// of these to `ends`.
fn sort<T: Term>(
    (draws, elements): &Part<'_, T>,
    sorted: &mut [T],
    ends: &mut [u16],
    numbers: &mut [Block],
    aes: &Aes128,
) -> T {
    let numbers = &mut numbers[..elements.len().div_ceil(8)];
    let words: &[u16] = draws.clone().fill(aes, numbers);
    let words = &words[..elements.len()];
    let mask = ends.len() - 1;
    ends.fill(0);
    for word in words {
        ends[usize::from(*word) & mask] += 1;
    }
    let mut start = 0;
    for end in &mut *ends {
        (*end, start) = (start, start + *end);
    }
    let mut sum = T::zeroed();
    for (element, word) in elements.iter().zip(words) {
        sum = sum.plus(*element);
        let place = &mut ends[usize::from(*word) & mask];
        sorted[usize::from(*place)] = sum;
        *place += 1;
    }
    sum
}

/// Puts the elements of a bucket, a slice of a copy of it, in a random order.
pub(super) fn shuffle<T: Term>(elements: &mut [T], from: (u8, usize), aes: &Aes128) {
    let mut draws = Draws::new(Purpose::Order, from.0, from.1);
    let mut again = Draws::new(Purpose::Again, from.0, from.1);
    let mut blocks = [Block::ZERO; RUN / 4];
    let mut left = elements.len();
    while left > 0 {
        let words: &[u32] = draws.fill(aes, &mut blocks);
        for word in &words[..left.min(RUN)] {
            let drawn = below(*word, left as u32, aes, &mut again) as usize;
            left -= 1;
            // The first one drawn is the last of them now.
            elements.swap(drawn, left);
        }
    }
    elements.reverse();
}
