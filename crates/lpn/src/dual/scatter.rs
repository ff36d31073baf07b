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
//! The places are public; the elements may be secret.

use volery_primitives::{Block, aes::Aes128, pages::Buffer};

use super::{
    Term,
    draws::{Draws, Purpose, below},
};

/// Elements of a chunk.
const CHUNK: usize = 256;
const IN_CHUNK: u32 = CHUNK as u32 - 1;

/// Elements that are drawn, or put into buckets, at a time.
const RUN: usize = 512;

/// Memory in chunks.
pub(super) struct Store<T: Term> {
    memory: Buffer<T>,
    free: Vec<u32>,
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
        }
    }

    /// Puts the running sums of the first `n` elements of the memory into buckets, and frees their
    /// places.
    pub(super) fn put_first(&mut self, to: &mut Buckets<T>, n: usize, aes: &Aes128) {
        let mut run = Buffer::zeroed(RUN);
        for first in (0..n).step_by(RUN) {
            let run = &mut run[..RUN.min(n - first)];
            run.copy_from_slice(&self.memory[first..first + run.len()]);
            let places = first as u32..(first + run.len()) as u32;
            self.free.extend(places.step_by(CHUNK));
            self.put(to, run, aes);
        }
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
