//! Uniformly random orders.

use rayon::prelude::*;
use volery_primitives::Block;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use crate::partition::{owners_of, part, several};

/// Approximate number of items in a part: a part is shuffled in the cache.
const PART: usize = 1 << 12;

/// The binary logarithm of the maximum number of parts.
const MOST_PARTS: u32 = 10;

/// A uniformly random shuffle of items that are given one after the other.
///
/// Rao, 1961, and Sandelius, *A simple randomization procedure*, 1962: each item goes to a
/// uniformly random part, and each part is shuffled uniformly. All orders are then equally likely,
/// and memory is read and written in sequence. The order indexes this party's own memory.
pub(crate) struct Shuffle {
    /// The part of each item.
    parts: Zeroizing<Vec<u16>>,
    /// The place of the next item of each part.
    next: Zeroizing<Vec<usize>>,
    taken: usize,
    order: Buffer<u32>,
    blocks: Buffer<Block>,
    /// The first place of each part.
    starts: Zeroizing<Vec<usize>>,
}

/// The parts owned by one thread.
struct Owner<'a> {
    first_part: usize,
    next: &'a mut [usize],
    first_place: usize,
    order: &'a mut [u32],
    blocks: &'a mut [Block],
}

/// Items whose parts one thread counts.
const COUNTED: usize = 1 << 16;

impl Shuffle {
    /// A shuffle of `items` items.
    pub(crate) fn new(items: usize, rng: &mut Prg) -> Self {
        let log = (items / PART).next_power_of_two().ilog2().min(MOST_PARTS);
        let mut parts = Zeroizing::new(vec![0_u16; items]);
        let mut draws = Zeroizing::new([0; 1 << 12]);
        for parts in parts.chunks_mut(draws.len() / 2) {
            rng.fill_bytes(&mut draws[..2 * parts.len()]);
            for (part, draw) in parts.iter_mut().zip(draws.as_chunks::<2>().0) {
                *part = u16::from_le_bytes(*draw) & ((1 << log) - 1);
            }
        }
        let counts = parts.par_chunks(COUNTED).map(|parts| {
            let mut counts = Zeroizing::new(vec![0; 1 << log]);
            for &part in parts {
                counts[usize::from(part)] += 1;
            }
            counts
        });
        let mut next = counts.reduce(
            || Zeroizing::new(vec![0; 1 << log]),
            |mut sums, counts| {
                for (sum, count) in sums.iter_mut().zip(counts.iter()) {
                    *sum += count;
                }
                sums
            },
        );
        let mut sum = 0;
        for next in next.iter_mut() {
            (*next, sum) = (sum, sum + *next);
        }
        Self {
            starts: next.clone(),
            parts,
            next,
            taken: 0,
            order: Buffer::zeroed(items),
            blocks: Buffer::zeroed(items),
        }
    }

    /// Takes the next items.
    ///
    /// # Panics
    /// If there are more than announced.
    pub(crate) fn take(&mut self, blocks: &[Block]) {
        if several() {
            return self.take_shared(blocks);
        }
        let parts = &self.parts[self.taken..][..blocks.len()];
        for ((item, &block), &part) in (self.taken..).zip(blocks).zip(parts) {
            let next = &mut self.next[usize::from(part)];
            self.order[*next] = item as u32;
            self.blocks[*next] = block;
            *next += 1;
        }
        self.taken += blocks.len();
    }

    /// Like [`Shuffle::take`], by several threads: each owns some parts.
    fn take_shared(&mut self, blocks: &[Block]) {
        let table = owners_of(self.next.len());
        let (mut next, mut order) = (&mut self.next[..], &mut self.order[..]);
        let mut places = &mut self.blocks[..];
        let mut owners = Vec::new();
        let (mut first_part, mut first_place) = (0, 0);
        for parts in table.chunk_by(|one, other| one == other) {
            let end_part = first_part + parts.len();
            let end = self.starts.get(end_part).copied();
            let count = end.unwrap_or(self.parts.len()) - first_place;
            owners.push(Owner {
                first_part,
                next: next.split_off_mut(..parts.len()).unwrap_or_default(),
                first_place,
                order: order.split_off_mut(..count).unwrap_or_default(),
                blocks: places.split_off_mut(..count).unwrap_or_default(),
            });
            (first_part, first_place) = (end_part, first_place + count);
        }
        let (taken, parts) = (self.taken, &self.parts[self.taken..]);
        let owner_of = |i: usize| table[usize::from(parts[i])];
        part(blocks.len(), owner_of, &mut owners, |owner, numbers| {
            for &i in numbers {
                let next = &mut owner.next[usize::from(parts[i]) - owner.first_part];
                owner.order[*next - owner.first_place] = (taken + i) as u32;
                owner.blocks[*next - owner.first_place] = blocks[i];
                *next += 1;
            }
        });
        self.taken += blocks.len();
    }

    /// The number of the item at each place, and its block, once all items have been taken.
    pub(crate) fn finish(mut self, rng: &mut Prg) -> (Buffer<u32>, Buffer<Block>) {
        let mut seeds = Zeroizing::new(vec![Block::ZERO; self.next.len()]);
        rng.fill_blocks(&mut seeds);
        let mut start = 0;
        let (mut order, mut blocks) = (&mut self.order[..], &mut self.blocks[..]);
        let mut parts = Vec::with_capacity(seeds.len());
        for (&end, &seed) in self.next.iter().zip(seeds.iter()) {
            let ours = order.split_off_mut(..end - start).unwrap_or_default();
            let theirs = blocks.split_off_mut(..end - start).unwrap_or_default();
            parts.push((ours, theirs, seed));
            start = end;
        }
        parts
            .into_par_iter()
            .for_each(|(order, blocks, seed)| shuffle(order, blocks, &mut Prg::new(seed)));
        (self.order, self.blocks)
    }
}

/// The Fisher-Yates shuffle, applied to both slices alike.
fn shuffle(order: &mut [u32], blocks: &mut [Block], rng: &mut Prg) {
    let mut draws = Zeroizing::new(vec![Block::ZERO; order.len().div_ceil(2)]);
    rng.fill_blocks(&mut draws);
    let draws = draws.iter().flat_map(|draw| [draw.low(), draw.high()]);
    for (last, draw) in (1..order.len()).rev().zip(draws) {
        let other = below(last as u64 + 1, draw, rng) as usize;
        order.swap(last, other);
        blocks.swap(last, other);
    }
}

/// A uniform number below `bound`, from a uniform word and, if rejection sampling rejects that
/// word, from others: as [`Prg::below`].
fn below(bound: u64, mut draw: u64, rng: &mut Prg) -> u64 {
    loop {
        let product = u128::from(draw) * u128::from(bound);
        if product as u64 >= bound || product as u64 >= bound.wrapping_neg() % bound {
            return (product >> 64) as u64;
        }
        draw = rng.next_u64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(n: usize, rng: &mut Prg) -> Vec<u32> {
        let blocks: Vec<_> = (0..n as u128).map(Block::new).collect();
        let mut all = Shuffle::new(n, rng);
        for blocks in blocks.chunks(999) {
            all.take(blocks);
        }
        let (order, shuffled) = all.finish(rng);
        let named = order.iter().map(|&item| blocks[item as usize]);
        assert!(named.eq(shuffled.iter().copied()), "{n}");
        order.to_vec()
    }

    #[test]
    fn orders_are_permutations_and_all_of_them() {
        let mut rng = Prg::new(Block::ONE);
        for n in [0, 1, 2, 3, 1000, PART, 9 * PART + 5] {
            let mut order = orders(n, &mut rng);
            order.sort_unstable();
            assert!(order.iter().copied().eq(0..n as u32));
        }
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            *counts.entry(orders(3, &mut rng)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        // A thousand each, within seven standard deviations.
        assert!(counts.values().all(|&count: &i32| (count - 1000).abs() < 200), "{counts:?}");
    }

    /// The place of an item is independent of its number and of its neighbour's place: in eighths
    /// of a set of many parts.
    #[test]
    fn places_are_uniform_among_parts() {
        const EIGHTHS: usize = 8;
        let n = 64 * PART;
        let order = orders(n, &mut Prg::new(Block::new(5)));
        let mut places = vec![0; n];
        for (place, &item) in order.iter().enumerate() {
            places[item as usize] = place;
        }
        let eighth = |number: usize| number * EIGHTHS / n;
        let (mut moved, mut beside) = ([0_i64; 64], [0_i64; 64]);
        for item in 0..n {
            let (place, next) = (places[item], places[(item + 1) % n]);
            moved[eighth(item) * EIGHTHS + eighth(place)] += 1;
            beside[eighth(place) * EIGHTHS + eighth(next)] += 1;
        }
        // 4096 each, within seven standard deviations.
        for count in moved.into_iter().chain(beside) {
            assert!((count - (n / 64) as i64).abs() < 7 * 64, "{count}");
        }
    }

    /// Bounds at which nearly half of all words are rejected.
    #[test]
    fn numbers_below_a_bound() {
        let mut rng = Prg::new(Block::ONE);
        let bound = (1 << 63) + 1;
        let mut high = 0;
        for _ in 0..4000 {
            let draw = rng.next_u64();
            let number = below(bound, draw, &mut rng);
            assert!(number < bound);
            high += i32::from(number >= bound / 2);
        }
        assert!((high - 2000).abs() < 220, "{high}");
        assert_eq!(below(1, 0, &mut rng), 0);
        assert!((0..100).all(|draw| below(3, draw << 57, &mut rng) < 3));
    }
}
