//! Sorting by uniform keys, for a caller that takes the blocks one after the other: each chunk is
//! divided by the highest bits in the cache, and of each part the pieces of all chunks are sorted
//! when its turn comes. So no memory is needed for all blocks once more, nothing waits for the last
//! of them, and threads share all of the work.
//!
//! The keys are outputs of the OPRF that are about to be sent in this order, or to be compared with
//! such; where the items of these keys were before determines the time, as it does for any order.

use std::ops::Range;

use rayon::prelude::*;
use volery_primitives::Block;
use volery_primitives::pages::Buffer;

/// Blocks of a chunk, at most: with a copy they stay in the level-2 cache.
pub(super) const CHUNK: usize = 1 << 14;

/// Blocks of a part, approximately: with a copy they stay in the level-1 cache.
const PART: usize = 1 << 10;

/// The binary logarithm of the maximum number of parts: pieces are not shorter than a cache line.
const MOST_PARTS: u32 = 11;

/// The binary logarithm of the most values by which a part is divided before the rest is sorted.
const MOST_VALUES: u32 = 13;

/// Blocks that a thread sorts before the first of them is taken, approximately.
const TASK: usize = 1 << 14;

/// A chunk: its blocks, and their places if they are wanted.
pub(super) type Chunk<'a> = (&'a mut [Block], &'a mut [u32]);

/// A chunk part by part, and the end of each part.
type Divided<'a> = (&'a [Block], &'a [u32], Vec<u32>);

/// Blocks in ascending order, with their places if they are wanted.
pub(crate) struct Sorted<'a> {
    chunks: Vec<Divided<'a>>,
    /// The binary logarithm of the number of parts.
    log: u32,
    /// The first part that is not yet sorted, and the number of blocks from it on.
    part: usize,
    left: usize,
    /// The parts that were sorted last, with their places, and those that are not yet taken.
    sorted: Buffer<Block>,
    places: Buffer<u32>,
    next: Range<usize>,
}

impl<'a> Sorted<'a> {
    /// Of `blocks` in chunks of at most [`CHUNK`].
    pub(super) fn new(chunks: Vec<Chunk<'a>>, blocks: usize) -> Self {
        let log = (blocks / PART).max(1).ilog2().min(MOST_PARTS);
        // Memory of one thread.
        let copies = || (Buffer::zeroed(CHUNK.min(blocks)), Buffer::zeroed(CHUNK.min(blocks)));
        let divided = chunks.into_par_iter().map_init(copies, |(copy, copied), chunk| {
            let (blocks, places) = chunk;
            let (copy, copied) = (&mut copy[..blocks.len()], &mut copied[..places.len()]);
            copy.copy_from_slice(blocks);
            copied.copy_from_slice(places);
            let mut ends = vec![0; 1 << log];
            divide([(&*copy, &*copied)].into_iter(), (blocks, places), (0, log), &mut ends);
            (&*blocks, &*places, ends)
        });
        let chunks = divided.collect();
        let (sorted, places) = Default::default();
        Self { chunks, log, part: 0, left: blocks, sorted, places, next: 0..0 }
    }

    /// The blocks that are not yet taken of the parts that were sorted last, with their places, or
    /// those of the next parts; none after the last.
    pub(super) fn peek(&mut self) -> (&[Block], &[u32]) {
        if self.next.is_empty() {
            self.sort_parts();
        }
        let places = self.next.start.min(self.places.len())..self.next.end.min(self.places.len());
        (&self.sorted[self.next.clone()], &self.places[places])
    }

    /// Takes blocks that [`peek`](Self::peek) returned.
    pub(super) fn take_next(&mut self, blocks: usize) {
        self.next.start += blocks;
    }

    fn sort_parts(&mut self) {
        let pieces = |part: usize| {
            self.chunks.iter().map(move |(blocks, places, ends)| {
                let start = part.checked_sub(1).map_or(0, |before| ends[before]);
                let piece = start as usize..ends[part] as usize;
                (&blocks[piece.clone()], places.get(piece).unwrap_or_default())
            })
        };
        let (mut parts, mut sum) = (Vec::new(), 0);
        while self.part < 1 << self.log && sum < TASK * rayon::current_num_threads() {
            let count = pieces(self.part).map(|(blocks, _)| blocks.len()).sum::<usize>();
            parts.push((self.part, count));
            (self.part, sum) = (self.part + 1, sum + count);
        }
        let placed = self.chunks.iter().any(|(_, places, _)| !places.is_empty());
        if sum > self.sorted.len() {
            let length = self.left.min(sum + sum / 8);
            self.sorted = Buffer::zeroed(length);
            self.places = Buffer::zeroed(if placed { length } else { 0 });
        }
        let (mut rest, mut rest_of_places) = (&mut self.sorted[..sum], &mut self.places[..]);
        let out = |(part, count): (usize, usize)| {
            let places = rest_of_places.split_off_mut(..count).unwrap_or_default();
            (part, rest.split_off_mut(..count).unwrap_or_default(), places)
        };
        let parts: Vec<_> = parts.into_iter().map(out).collect();
        let parts = parts.into_par_iter().with_min_len(4);
        parts.for_each(|(part, out, places)| sort(pieces(part), (out, places), self.log));
        self.left -= sum;
        self.next = 0..sum;
    }
}

impl Iterator for Sorted<'_> {
    type Item = (Block, u32);

    /// The place is 0 if places are not wanted.
    fn next(&mut self) -> Option<(Block, u32)> {
        if self.next.is_empty() {
            self.sort_parts();
        }
        let next = self.next.next()?;
        Some((self.sorted[next], self.places.get(next).copied().unwrap_or_default()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.next.len() + self.left;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Sorted<'_> {}

/// Writes the blocks and places of these pieces to `out` in the order of the `log` bits of the
/// blocks behind the first `known`, otherwise in their own, and for each value of these bits the
/// end of its blocks to `ends`, which are zero.
fn divide<'a>(
    pieces: impl Iterator<Item = (&'a [Block], &'a [u32])> + Clone,
    (out, out_places): (&mut [Block], &mut [u32]),
    (known, log): (u32, u32),
    ends: &mut [u32],
) {
    // In two steps, because a shift by the full width is an overflow.
    let value = |block: Block| ((u128::from(block) << known) >> (127 - log) >> 1) as usize;
    for (blocks, _) in pieces.clone() {
        for &block in blocks {
            ends[value(block)] += 1;
        }
    }
    let mut sum = 0;
    for end in ends.iter_mut() {
        (*end, sum) = (sum, sum + *end);
    }
    for (blocks, places) in pieces {
        for (number, &block) in blocks.iter().enumerate() {
            let end = &mut ends[value(block)];
            out[*end as usize] = block;
            if let Some(&place) = places.get(number) {
                out_places[*end as usize] = place;
            }
            *end += 1;
        }
    }
}

/// Sorts blocks that agree in the highest `known` bits: by as many bits as leave half a block each,
/// and then by insertion.
fn sort<'a>(
    pieces: impl Iterator<Item = (&'a [Block], &'a [u32])> + Clone,
    (out, places): (&mut [Block], &mut [u32]),
    known: u32,
) {
    let log = (out.len().max(1).ilog2() + 1).min(MOST_VALUES);
    let mut ends = [0; 1 << MOST_VALUES];
    divide(pieces, (&mut *out, &mut *places), (known, log), &mut ends[..1 << log]);
    for sorted in 1..out.len() {
        let mut at = sorted;
        while at > 0 && u128::from(out[at - 1]) > u128::from(out[at]) {
            out.swap(at - 1, at);
            if !places.is_empty() {
                places.swap(at - 1, at);
            }
            at -= 1;
        }
    }
}
