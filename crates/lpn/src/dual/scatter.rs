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
//! Several threads fill the buckets in two steps: each sorts parts of the elements by their buckets
//! ([`Sorted`]), then each appends all parts to some of the buckets. The order in a bucket is that
//! of the elements, as with one thread.
//!
//! The places are public; the elements may be secret.

use rayon::prelude::*;
use volery_primitives::{Block, aes::Aes128, lend::Parts, pages::Buffer};

use super::{
    Term,
    draws::{Draws, Purpose, below},
};

/// Elements of a chunk.
const CHUNK: usize = 256;
const IN_CHUNK: u32 = CHUNK as u32 - 1;

/// Elements that are drawn, or put into buckets, at a time.
const RUN: usize = 512;

/// Elements of a part that one thread sorts by buckets.
const PART: usize = 1 << 15;

/// Memory in chunks.
pub(super) struct Store<T: Term> {
    memory: Buffer<T>,
    free: Vec<u32>,
    /// Parts on their way into buckets.
    sorted: Vec<Sorted<T>>,
}

/// Elements in buckets, and the sum of all of them so far.
pub(super) struct Buckets<T: Term> {
    /// The first place of each chunk of each bucket.
    chunks: Vec<Vec<u32>>,
    /// The place of the next element of each bucket; at the start of a chunk, the next element
    /// opens a new chunk.
    next: Vec<u32>,
    draws: Draws,
    /// One element, in memory that is wiped.
    sum: Buffer<T>,
}

/// Memory for one bucket while it is emptied.
pub(super) struct Scratch<T: Term> {
    elements: Buffer<T>,
    run: Buffer<T>,
    order: Buffer<T>,
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
            sorted: Vec::new(),
        }
    }

    /// Puts the running sums of the first `n` elements of the memory into buckets, and frees their
    /// places.
    pub(super) fn put_first(&mut self, to: &mut Buckets<T>, n: usize, aes: &Aes128) {
        if by_parts(n) {
            let slice = slice();
            for first in (0..n).step_by(slice) {
                let places = first..n.min(first + slice);
                let parts: Vec<_> = self.memory[places.clone()].chunks(PART).collect();
                sort(&parts, to, &mut self.sorted, aes);
                let places = places.start as u32..places.end as u32;
                self.free.extend(places.step_by(CHUNK));
                self.append(to);
            }
            return;
        }
        let mut run = Buffer::zeroed(RUN);
        for first in (0..n).step_by(RUN) {
            let run = &mut run[..RUN.min(n - first)];
            run.copy_from_slice(&self.memory[first..first + run.len()]);
            let places = first as u32..(first + run.len()) as u32;
            self.free.extend(places.step_by(CHUNK));
            self.put_in_order(to, run, aes);
        }
    }

    /// Puts running sums into buckets: the sums of all elements so far and the next ones, in order.
    /// Each call begins a new block of eight numbers.
    pub(super) fn put(&mut self, to: &mut Buckets<T>, elements: &[T], aes: &Aes128) {
        if by_parts(elements.len()) {
            for elements in elements.chunks(slice()) {
                self.put_parts(to, &elements.chunks(PART).collect::<Vec<_>>(), aes);
            }
            return;
        }
        self.put_in_order(to, elements, aes);
    }

    /// [`put`](Self::put) by one thread.
    pub(super) fn put_in_order(&mut self, to: &mut Buckets<T>, elements: &[T], aes: &Aes128) {
        let mut blocks = [Block::ZERO; RUN / 8];
        let mask = to.count() - 1;
        for elements in elements.chunks(RUN) {
            // The rest of a block of numbers is not used.
            let blocks = &mut blocks[..elements.len().div_ceil(8)];
            let words: &[u16] = to.draws.fill(aes, blocks);
            let mut sum = to.sum[0];
            for (element, word) in elements.iter().zip(words) {
                sum = sum.plus(*element);
                let bucket = usize::from(*word) & mask;
                let place = &mut to.next[bucket];
                if *place & IN_CHUNK == 0 {
                    *place = new_chunk(&mut self.free, &mut to.chunks[bucket]);
                }
                self.memory[*place as usize] = sum;
                *place += 1;
            }
            to.sum[0] = sum;
        }
    }

    /// As [`put`](Self::put) of each part, by all threads.
    pub(super) fn put_parts(&mut self, to: &mut Buckets<T>, parts: &[&[T]], aes: &Aes128) {
        sort(parts, to, &mut self.sorted, aes);
        self.append(to);
    }

    /// Appends the sorted parts to their buckets, by all threads.
    fn append(&mut self, to: &mut Buckets<T>) {
        let sorted = &self.sorted;
        for (bucket, (chunks, next)) in to.chunks.iter_mut().zip(&to.next).enumerate() {
            let count: usize = sorted.iter().map(|part| part.of(bucket).len()).sum();
            let there = (next.wrapping_neg() & IN_CHUNK) as usize;
            for _ in 0..count.saturating_sub(there).div_ceil(CHUNK) {
                new_chunk(&mut self.free, chunks);
            }
        }
        let memory = Parts::new(&mut self.memory, CHUNK);
        let buckets = to.chunks.par_iter().zip(&mut to.next).enumerate();
        buckets
            .with_min_len(8)
            .for_each(|(bucket, (chunks, next))| {
                let lend = |chunk: u32| memory.lend(chunk as usize / CHUNK);
                let count: usize = sorted.iter().map(|part| part.of(bucket).len()).sum();
                let filled = (*next & IN_CHUNK) as usize;
                let there = (CHUNK - filled) % CHUNK;
                let new = count.saturating_sub(there).div_ceil(CHUNK);
                let (old, new) = chunks.split_at(chunks.len() - new);
                let mut new = new.iter();
                let mut end: &mut [T] = match old.last() {
                    Some(chunk) if filled > 0 && count > 0 => &mut lend(*chunk)[filled..],
                    _ => &mut [],
                };
                for part in sorted {
                    let mut rest = part.of(bucket);
                    while !rest.is_empty() {
                        if end.is_empty() {
                            *next = *new.next().expect("a chunk for every element");
                            end = lend(*next);
                        }
                        let now;
                        let count = rest.len().min(end.len());
                        (now, rest) = rest.split_at(count);
                        let to = end.split_off_mut(..count).expect("that many are left");
                        to.copy_from_slice(now);
                        *next += count as u32;
                    }
                }
            });
    }

    /// Copies a bucket, which the caller then frees.
    pub(super) fn copy(&self, from: &Buckets<T>, bucket: usize, scratch: &mut Scratch<T>) {
        let len = from.len(bucket);
        if scratch.elements.len() < len {
            scratch.elements = Buffer::zeroed(len + len / 8);
        }
        let parts = scratch.elements[..len].chunks_mut(CHUNK);
        for (part, chunk) in parts.zip(&from.chunks[bucket]) {
            part.copy_from_slice(&self.memory[*chunk as usize..][..part.len()]);
        }
    }

    /// Frees a bucket.
    pub(super) fn free(&mut self, from: &mut Buckets<T>, bucket: usize) {
        self.free.append(&mut from.chunks[bucket]);
    }
}

/// Whether `n` elements are put into buckets by several threads.
fn by_parts(n: usize) -> bool {
    rayon::current_num_threads() > 1 && n >= 2 * PART
}

/// Elements that all threads sort at once.
fn slice() -> usize {
    2 * PART * rayon::current_num_threads()
}

/// The running sums of a part of the elements, in the order of their buckets.
struct Sorted<T: Term> {
    elements: Buffer<T>,
    /// The end of each bucket in them.
    ends: Vec<u32>,
    /// The sum of the elements, in memory that is wiped.
    sum: Buffer<T>,
    /// Numbers for the buckets.
    blocks: Vec<Block>,
}

impl<T: Term> Sorted<T> {
    fn of(&self, bucket: usize) -> &[T] {
        let start = bucket.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.elements[start as usize..self.ends[bucket] as usize]
    }

    /// Sorts the running sums, which follow `sum`, by the buckets that `draws` has for them.
    fn fill(&mut self, elements: &[T], mut sum: T, mut draws: Draws, count: usize, aes: &Aes128) {
        if self.elements.len() < elements.len() {
            self.elements = Buffer::zeroed(elements.len());
        }
        let bucket = |word: &u16| usize::from(*word) & (count - 1);
        self.blocks.resize(elements.len().div_ceil(8), Block::ZERO);
        let words = &draws.fill::<u16>(aes, &mut self.blocks)[..elements.len()];
        let ends = &mut self.ends;
        ends.clear();
        ends.resize(count, 0);
        for word in words {
            ends[bucket(word)] += 1;
        }
        // The start of each bucket; putting its elements there makes it the end.
        let mut start = 0;
        for end in ends.iter_mut() {
            (start, *end) = (start + *end, start);
        }
        for (element, word) in elements.iter().zip(words) {
            sum = sum.plus(*element);
            let place = &mut ends[bucket(word)];
            self.elements[*place as usize] = sum;
            *place += 1;
        }
    }
}

/// Sorts parts of elements by the buckets that are drawn for them, by all threads; each part begins
/// a new block of eight numbers.
fn sort<T: Term>(parts: &[&[T]], to: &mut Buckets<T>, sorted: &mut Vec<Sorted<T>>, aes: &Aes128) {
    sorted.resize_with(parts.len(), || Sorted {
        elements: Buffer::default(),
        ends: Vec::new(),
        sum: Buffer::zeroed(1),
        blocks: Vec::new(),
    });
    let pairs = parts.par_iter().zip(&mut *sorted);
    pairs.for_each(|(part, sorted)| {
        sorted.sum[0] = part.iter().copied().fold(T::zeroed(), T::plus);
    });
    for sorted in &mut *sorted {
        let before = to.sum[0];
        to.sum[0] = before.plus(sorted.sum[0]);
        sorted.sum[0] = before;
    }
    let count = to.count();
    let draws: Vec<_> = parts
        .iter()
        .map(|part| to.draws.split(part.len().div_ceil(8)))
        .collect();
    let parts = parts.par_iter().zip(draws).zip(sorted);
    parts.for_each(|((part, draws), sorted)| {
        sorted.fill(part, sorted.sum[0], draws, count, aes);
    });
}

#[inline(never)]
fn new_chunk(free: &mut Vec<u32>, chunks: &mut Vec<u32>) -> u32 {
    let chunk = free
        .pop()
        .expect("the memory has a place for every element");
    chunks.push(chunk);
    chunk
}

impl<T: Term> Buckets<T> {
    /// Empty buckets, a power of two of them and at most 2^16.
    pub(super) fn new(stage: u8, count: usize) -> Self {
        assert!(count.is_power_of_two() && count <= 1 << 16);
        Self {
            chunks: vec![Vec::new(); count],
            next: vec![0; count],
            draws: Draws::new(Purpose::Buckets, stage, 0),
            sum: Buffer::zeroed(1),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.next.len()
    }

    /// Elements in a bucket that is not freed.
    pub(super) fn len(&self, bucket: usize) -> usize {
        let free = self.next[bucket].wrapping_neg() & IN_CHUNK;
        self.chunks[bucket].len() * CHUNK - free as usize
    }
}

impl<T: Term> Default for Scratch<T> {
    fn default() -> Self {
        Self {
            elements: Buffer::default(),
            run: Buffer::default(),
            order: Buffer::default(),
        }
    }
}

impl<T: Term> Scratch<T> {
    /// Calls `visit` with the `len` elements of the bucket copied here, in a random order, several
    /// at a time: a multiple of 8, except the last.
    #[inline(always)]
    pub(super) fn empty(
        &mut self,
        from: (u8, usize),
        len: usize,
        aes: &Aes128,
        mut visit: impl FnMut(&[T]),
    ) {
        if self.run.is_empty() {
            self.run = Buffer::zeroed(RUN);
        }
        let mut draws = Draws::new(Purpose::Order, from.0, from.1);
        let mut again = Draws::new(Purpose::Again, from.0, from.1);
        let mut blocks = [Block::ZERO; RUN / 4];
        let elements = &mut self.elements[..len];
        let mut left = len;
        while left > 0 {
            let words: &[u32] = draws.fill(aes, &mut blocks);
            let run = &mut self.run[..left.min(RUN)];
            for (out, word) in run.iter_mut().zip(words) {
                let drawn = below(*word, left as u32, aes, &mut again) as usize;
                left -= 1;
                *out = elements[drawn];
                elements[drawn] = elements[left];
            }
            visit(run);
        }
    }

    /// As [`empty`](Self::empty), keeping all elements: see [`shuffled`](Self::shuffled).
    pub(super) fn shuffle(&mut self, from: (u8, usize), len: usize, aes: &Aes128) {
        if self.order.len() < len {
            self.order = Buffer::zeroed(len + len / 8);
        }
        let mut order = std::mem::take(&mut self.order);
        let mut rest = &mut order[..len];
        self.empty(from, len, aes, |run| {
            let now;
            (now, rest) = std::mem::take(&mut rest).split_at_mut(run.len());
            now.copy_from_slice(run);
        });
        self.order = order;
    }

    /// The `len` elements of the bucket in their new order.
    pub(super) fn shuffled(&self, len: usize) -> &[T] {
        &self.order[..len]
    }
}
