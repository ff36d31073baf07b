//! Bins of items, so that one large encoding becomes several that are independent of each other.

use rayon::prelude::*;
use volery_primitives::Block;
use volery_primitives::pages::Buffer;

/// Items that one task sorts into bins.
const CHUNK: usize = 1 << 16;

/// A number of bins of one capacity.
///
/// The bin of an item depends on its digest alone, so two parties with the same digests agree. The
/// digests must be uniform, drawn after the items are fixed: the capacity is enough for random ones
/// only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bins {
    /// Number of bins.
    pub count: usize,
    /// Largest number of items in a bin.
    pub capacity: usize,
}

impl Bins {
    /// `count` bins of `capacity` items.
    ///
    /// # Panics
    ///
    /// If there is no bin.
    #[must_use]
    pub fn new(count: usize, capacity: usize) -> Self {
        assert!(count > 0, "there is a bin");
        Self { count, capacity }
    }

    /// The bin of an item: the high part of the product of the high 64 bits of its digest and the
    /// number of bins.
    #[inline]
    #[must_use]
    pub fn bin(&self, digest: Block) -> usize {
        ((u128::from(digest.high()) * self.count as u128) >> 64) as usize
    }

    /// Sorts items by their bins: the numbers of all items, those of each bin in their order, and
    /// the offset at which each bin begins, with that of the end.
    ///
    /// Bin `b` is `order[offsets[b]..offsets[b + 1]]`. It may exceed the capacity; the caller
    /// checks.
    ///
    /// # Panics
    ///
    /// If there are 2^32 items or more.
    #[must_use]
    pub fn partition(&self, digests: &[Block]) -> (Buffer<u32>, Vec<usize>) {
        assert!(u32::try_from(digests.len()).is_ok(), "fewer than 2^32 items");
        // The number of items of each chunk in each bin.
        let counts: Vec<Vec<usize>> = digests
            .par_chunks(CHUNK)
            .map(|digests| {
                let mut counts = vec![0; self.count];
                for &digest in digests {
                    counts[self.bin(digest)] += 1;
                }
                counts
            })
            .collect();
        // Each chunk has its own part of each bin, and writes there while the others write theirs.
        let mut order = Buffer::zeroed(digests.len());
        let mut offsets = vec![0];
        let mut parts: Vec<Vec<_>> = counts.iter().map(|_| Vec::new()).collect();
        let mut rest = &mut order[..];
        for bin in 0..self.count {
            for (parts, counts) in parts.iter_mut().zip(&counts) {
                let part;
                (part, rest) = rest.split_at_mut(counts[bin]);
                parts.push(part.iter_mut());
            }
            offsets.push(digests.len() - rest.len());
        }
        let chunks = digests.par_chunks(CHUNK).zip(&mut parts).enumerate();
        chunks.for_each(|(chunk, (digests, parts))| {
            for (item, &digest) in (chunk * CHUNK..).zip(digests) {
                let place = parts[self.bin(digest)].next();
                *place.expect("the items of each bin were counted") = item as u32;
            }
        });
        (order, offsets)
    }
}

#[cfg(test)]
mod tests {
    use volery_primitives::prg::Prg;

    use super::*;

    #[test]
    fn bins_keep_all_items_in_their_order() {
        for (count, items) in [(1, 0), (1, 5), (7, 1000), (64, 2 * CHUNK + 3)] {
            let bins = Bins::new(count, items);
            let mut digests = vec![Block::ZERO; items];
            Prg::new(Block::new(3)).fill_blocks(&mut digests);
            let (order, offsets) = bins.partition(&digests);
            let mut expected = vec![Vec::new(); count];
            for (item, digest) in (0..).zip(&digests) {
                expected[bins.bin(*digest)].push(item);
            }
            assert_eq!(offsets.len(), count + 1);
            for (expected, ends) in expected.iter().zip(offsets.windows(2)) {
                assert_eq!(order[ends[0]..ends[1]], expected[..]);
            }
        }
    }

    #[test]
    fn the_high_half_of_a_digest_is_scaled() {
        let bins = Bins::new(10, 1);
        for (high, bin) in [(0, 0), (u64::MAX / 2, 4), (u64::MAX / 2 + 1, 5), (u64::MAX, 9)] {
            assert_eq!(bins.bin(Block::from_words(u64::MAX, high)), bin);
            assert_eq!(bins.bin(Block::from_words(0, high)), bin);
        }
    }
}
