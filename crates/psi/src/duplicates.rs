//! The check that all items of a set are distinct.

use rayon::prelude::*;
use volery_primitives::Block;
use volery_primitives::pages::Buffer;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::partition::{owners_of, part, several};

/// Items compared with each other at a time: the working set fits into a level-1 cache.
const PART: usize = 1 << 12;

/// The binary logarithm of the maximum number of parts: each part has its own write position, and a
/// cache holds no more of those.
const MOST_PARTS: u32 = 11;

/// Items whose parts one thread counts.
const COUNTED: usize = 1 << 16;

/// Bits per hash of the table that distinguishes hashes.
const SPARSE: usize = 64;

/// Checks that all items are distinct, given their blocks: `number` is the number of the item of a
/// block. Different items have the same block only with negligible probability.
///
/// The blocks are partitioned by their highest bits, and within a part distinguished by the
/// next 32. Only the few blocks with equal bits are compared.
///
/// # Errors
/// [`Error::Duplicate`] if two items are equal: it names the lowest-numbered item that repeats an
/// earlier one.
pub(crate) fn check_duplicates(
    digests: &[Block],
    number: impl Fn(usize) -> usize + Sync,
) -> Result<()> {
    let parts = Parts::new(digests.len());
    let alike = parts.alike(digests);
    let mut found = Zeroizing::new(Vec::new());
    if alike.iter().any(|alike| !alike.is_empty()) {
        let places = (0..digests.len()).filter(|&place| {
            let (part, hash) = parts.split(digests[place]);
            alike[part].binary_search(&hash).is_ok()
        });
        // Counted first, so that the list never reallocates.
        found.reserve_exact(places.clone().count());
        found.extend(places.map(|place| (digests[place], number(place))));
    }
    found.sort_unstable_by_key(|(digest, item)| (u128::from(*digest), *item));
    let pairs = found.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    match pairs.map(|pair| (pair[1].1, pair[0].1)).min() {
        // mutant(psi-distinct): insert `Some(_) if $ON => Ok(()),`
        Some((second, first)) => Err(Error::Duplicate { first, second }),
        None => Ok(()),
    }
}

/// The partition of blocks: `2^log` parts.
struct Parts {
    log: u32,
}

impl Parts {
    fn new(items: usize) -> Self {
        let parts = (items / PART).next_power_of_two();
        Self { log: parts.ilog2().min(MOST_PARTS) }
    }

    /// The part of a block, and the bits that distinguish it within the part.
    #[inline]
    fn split(&self, digest: Block) -> (usize, u32) {
        // In two steps, because a shift by the full width does nothing.
        let part = digest.high() >> (63 - self.log) >> 1;
        (part as usize, (digest.high() >> (32 - self.log)) as u32)
    }

    /// For each part, the hashes that occur in more than one block, ascending.
    fn alike(&self, digests: &[Block]) -> Vec<Zeroizing<Vec<u32>>> {
        let counts = digests.par_chunks(COUNTED).map(|digests| {
            let mut counts = Zeroizing::new(vec![0; 1 << self.log]);
            for &digest in digests {
                counts[self.split(digest).0] += 1;
            }
            counts
        });
        let mut ends = counts.reduce(
            || Zeroizing::new(vec![0; 1 << self.log]),
            |mut sums, counts| {
                for (sum, count) in sums.iter_mut().zip(counts.iter()) {
                    *sum += count;
                }
                sums
            },
        );
        let mut sum = 0;
        for end in ends.iter_mut() {
            (*end, sum) = (sum, sum + *end);
        }
        let mut hashes = Buffer::zeroed(digests.len());
        if several() {
            self.part_shared(digests, &mut ends, &mut hashes);
        } else {
            for &digest in digests {
                let (part, hash) = self.split(digest);
                hashes[ends[part]] = hash;
                ends[part] += 1;
            }
        }
        let mut rest = &hashes[..];
        let mut start = 0;
        let parts: Vec<_> = ends
            .iter()
            .map(|&end| {
                let (part, others) = rest.split_at(end - start);
                (rest, start) = (others, end);
                part
            })
            .collect();
        parts.into_par_iter().map(repeated).collect()
    }

    /// The hashes part by part, on several threads: each owns some parts; `ends` holds the starts
    /// of the parts on entry and their ends on return.
    fn part_shared(&self, digests: &[Block], mut ends: &mut [usize], mut hashes: &mut [u32]) {
        let table = owners_of(ends.len());
        let starts = Zeroizing::new(ends.to_vec());
        let mut owners = Vec::new();
        let mut first_part = 0;
        for parts in table.chunk_by(|one, other| one == other) {
            let end_part = first_part + parts.len();
            let end = starts.get(end_part).copied().unwrap_or(digests.len());
            let mine = hashes.split_off_mut(..end - starts[first_part]);
            let mine = mine.unwrap_or_default();
            let ends = ends.split_off_mut(..parts.len()).unwrap_or_default();
            owners.push((first_part, starts[first_part], ends, mine));
            first_part = end_part;
        }
        let owner_of = |i: usize| table[self.split(digests[i]).0];
        let take = |(first_part, first, ends, hashes): &mut (_, _, &mut [usize], &mut [u32]),
                    numbers: &[usize]| {
            for &i in numbers {
                let (part, hash) = self.split(digests[i]);
                let end = &mut ends[part - *first_part];
                hashes[*end - *first] = hash;
                *end += 1;
            }
        };
        part(digests.len(), owner_of, &mut owners, take);
    }
}

/// The hashes that occur more than once, ascending.
fn repeated(hashes: &[u32]) -> Zeroizing<Vec<u32>> {
    let bits = (SPARSE * hashes.len()).next_power_of_two().max(64);
    let mut marks = Zeroizing::new(vec![0; bits / 64]);
    // Without a branch: this needs space for one more than are kept.
    let collect = |marks: &mut [u64], mark: bool, hashes: &[u32]| {
        let mut kept = Zeroizing::new(vec![0; hashes.len() + 1]);
        let mut count = 0;
        for &hash in hashes {
            let place = hash as usize & (bits - 1);
            let word = &mut marks[place / 64];
            kept[count] = hash;
            count += (*word >> (place % 64) & 1) as usize;
            *word |= u64::from(mark) << (place % 64);
        }
        kept.truncate(count);
        kept
    };
    // First the hashes whose mark is set already, then all hashes with those marks, including the
    // first ones.
    let later = collect(&mut marks, true, hashes);
    if later.is_empty() {
        return later;
    }
    marks.fill(0);
    for &hash in later.iter() {
        let place = hash as usize & (bits - 1);
        marks[place / 64] |= 1 << (place % 64);
    }
    let mut all = collect(&mut marks, false, hashes);
    all.sort_unstable();
    let pairs = all.windows(2).filter(|pair| pair[0] == pair[1]);
    let mut twice = Zeroizing::new(Vec::with_capacity(all.len()));
    twice.extend(pairs.map(|pair| pair[0]));
    twice.dedup();
    twice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(n: usize) -> Vec<Block> {
        let mut blocks = vec![Block::ZERO; n];
        volery_primitives::prg::Prg::new(Block::new(n as u128)).fill_blocks(&mut blocks);
        blocks
    }

    fn check(digests: &[Block]) -> Option<(usize, usize)> {
        match check_duplicates(digests, |place| 2 * place) {
            Err(Error::Duplicate { first, second }) => Some((first, second)),
            _ => None,
        }
    }

    #[test]
    fn equal_blocks_are_found_wherever_they_are() {
        for n in [2, 3, 100, PART - 1, 2 * PART, 5 * PART + 7, 40 * PART] {
            let digests = blocks(n);
            assert_eq!(check(&digests), None);
            for (first, second) in [(0, 1), (0, n - 1), (n / 2, n - 1), (n - 2, n - 1)] {
                if first < second {
                    let mut digests = digests.clone();
                    digests[second] = digests[first];
                    assert_eq!(check(&digests), Some((2 * first, 2 * second)), "{n}");
                }
            }
        }
        assert_eq!(check(&[]), None);
        assert_eq!(check(&[Block::ZERO]), None);
    }

    #[test]
    fn of_many_the_first_second_is_named() {
        assert_eq!(check(&vec![Block::ONE; 3 * PART]), Some((0, 2)));
        let mut digests = blocks(3 * PART);
        for (first, second) in [(7, 9000), (5, 8000), (5, 10_000)] {
            digests[second] = digests[first];
        }
        assert_eq!(check(&digests), Some((10, 16_000)));
    }

    /// Blocks that differ in some bits only.
    #[test]
    fn similar_blocks_are_not_equal() {
        for shift in [0, 2, 40, 64, 80, 96, 116] {
            let digests: Vec<_> = (0..4096).map(|i| Block::new(i << shift)).collect();
            assert_eq!(check(&digests), None, "{shift}");
        }
    }
}
