//! Public random numbers: AES in counter mode under the seed of the code, a stream for each
//! purpose.

use volery_primitives::{Block, aes::Aes128};

/// The purpose of a stream of numbers.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// The bucket of the next element.
    Buckets = 0,
    /// The next element of a bucket.
    Order = 1,
    /// A replacement where a number of [`Order`](Self::Order) would not be evenly distributed.
    Again = 2,
}

/// A stream of blocks.
#[derive(Clone)]
pub(super) struct Draws {
    counter: u128,
}

impl Draws {
    /// The stream for permutation number `stage`, and for one of its buckets.
    pub(super) fn new(purpose: Purpose, stage: u8, bucket: usize) -> Self {
        let stream = (bucket as u64) << 16 | u64::from(stage) << 8 | purpose as u64;
        Self {
            counter: u128::from(stream) << 64,
        }
    }

    /// The stream from here on, and this one without the next `blocks` of it.
    pub(super) fn skip(&mut self, blocks: usize) -> Self {
        let here = self.clone();
        self.counter += blocks as u128;
        here
    }

    /// The next blocks as numbers, low part first.
    pub(super) fn fill<'a, W: bytemuck::Pod>(
        &mut self,
        aes: &Aes128,
        blocks: &'a mut [Block],
    ) -> &'a [W] {
        aes.ctr(self.counter, blocks);
        self.counter += blocks.len() as u128;
        bytemuck::cast_slice(blocks)
    }

    #[cold]
    fn next(&mut self, aes: &Aes128) -> u32 {
        self.fill(aes, &mut [Block::ZERO])[0]
    }
}

/// A uniformly random number below `bound`, from a random `word` or, with probability below `bound
/// / 2^32`, from `again` (Lemire, *Fast random integer generation in an interval*, 2019). The
/// numbers are public, so the number of tries may be too.
#[inline(always)]
pub(super) fn below(word: u32, bound: u32, aes: &Aes128, again: &mut Draws) -> u32 {
    let mut product = u64::from(word) * u64::from(bound);
    if (product as u32) < bound {
        let refused = bound.wrapping_neg() % bound;
        while (product as u32) < refused {
            product = u64::from(again.next(aes)) * u64::from(bound);
        }
    }
    (product >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_below_the_bound_is_as_likely() {
        let aes = Aes128::new(Block::from(3));
        // A bound that rejects almost half of the words, in three parts.
        let bound = (1 << 31) + 3;
        let mut blocks = vec![Block::ZERO; 7_500];
        let words: &[u32] = Draws::new(Purpose::Order, 0, 0).fill(&aes, &mut blocks);
        let mut again = Draws::new(Purpose::Again, 0, 0);
        let mut hits = [0u32; 3];
        for word in words {
            let number = below(*word, bound, &aes, &mut again);
            assert!(number < bound);
            hits[(u64::from(number) * 3 / u64::from(bound)) as usize] += 1;
        }
        assert!(again.counter & 0xffff_ffff > 10_000, "many are refused");
        for hits in hits {
            // The standard deviation is 82.
            assert!(hits.abs_diff(10_000) < 500, "{hits}");
        }
    }

    #[test]
    fn streams_do_not_meet() {
        let mut starts = Vec::new();
        for purpose in [Purpose::Buckets, Purpose::Order, Purpose::Again] {
            for (stage, bucket) in [(0, 0), (1, 0), (0, 1), (1, 511)] {
                starts.push(Draws::new(purpose, stage, bucket).counter >> 64);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), 12);
    }
}
