//! A hash table from uniform tags to item numbers, with a filter in front of it.

use volery_primitives::pages::Buffer;
use volery_primitives::prefetch::{AHEAD, prefetch};

/// Open addressing with linear probing, about half full. Wiped when dropped.
pub(crate) struct Index {
    /// Zero, or the item's number plus one in the low bits and above them as many bits of the tag,
    /// from bit [`SAME`] on, as fit.
    slots: Buffer<u32>,
    /// Bits of a slot that hold the number.
    number_bits: u32,
    /// For each value of a hash of tags, a bit that tells whether some tag has that hash.
    filter: Buffer<u64>,
}

/// Number of parts of the tags, a power of two: each part belongs to one thread.
pub(crate) const PARTS: usize = 16;

/// Low bits of a tag that select its part ([`PARTS`]): they may be the same for all tags of an
/// index and then distinguish nothing.
const SAME: u32 = PARTS.ilog2();

/// Bits of the filter for each item: one eighth of the absent tags pass.
const FILTER: usize = 8;

/// Spreads the entropy of the few low bits of a tag over all bits.
#[inline]
fn spread(tag: u64) -> u64 {
    tag.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Maps 32 bits to a number below `range`, in proportion.
#[inline]
fn scaled(bits: u64, range: usize) -> usize {
    (((bits & u64::from(u32::MAX)) * range as u64) >> 32) as usize
}

impl Index {
    /// An index for at most `items` items with numbers below `numbers`, which is below 2^32.
    pub(crate) fn for_items(items: usize, numbers: usize) -> Self {
        Self {
            // At least one more slot than items, so that every search ends.
            slots: Buffer::zeroed(2 * items + 1),
            number_bits: numbers.max(1).ilog2() + 1,
            filter: Buffer::zeroed((FILTER * items).div_ceil(64) + 1),
        }
    }

    /// The slot at which the search for a tag begins.
    #[inline]
    fn start(&self, tag: u64) -> usize {
        scaled(spread(tag) >> 32, self.slots.len())
    }

    /// The bit of a tag in the filter: its word, and its position in the word.
    #[inline]
    fn bit(&self, tag: u64) -> (usize, u32) {
        let spread = spread(tag);
        (scaled(spread >> 24, self.filter.len()), (spread >> 18) as u32 & 63)
    }

    /// The slot of a tag and the item number `number`, less one.
    #[inline]
    fn slot(&self, tag: u64, number: u32) -> u32 {
        // Numbers of 32 bits leave no bits for the tag.
        (u64::from((tag >> SAME) as u32) << self.number_bits) as u32 | number
    }

    /// Prefetches the memory in which the search for a tag begins.
    #[inline]
    pub(crate) fn ask(&self, tag: u64) {
        prefetch(&self.slots, self.start(tag));
    }

    /// Prefetches the memory of the filter for a tag.
    #[inline]
    pub(crate) fn ask_filter(&self, tag: u64) {
        prefetch(&self.filter, self.bit(tag).0);
    }

    /// Adds items by their tags. Two items with equal tags are both kept.
    pub(crate) fn insert_all(&mut self, tags: &[(u64, u32)]) {
        for &(tag, _) in tags {
            let (word, bit) = self.bit(tag);
            self.filter[word] |= 1 << bit;
        }
        let mut ahead = tags.iter().skip(AHEAD);
        for &(tag, item) in tags {
            if let Some(&(tag, _)) = ahead.next() {
                self.ask(tag);
            }
            self.insert(tag, item);
        }
    }

    #[inline]
    fn insert(&mut self, tag: u64, item: u32) {
        let mut place = self.start(tag);
        while self.slots[place] != 0 {
            place = self.after(place);
        }
        self.slots[place] = self.slot(tag, item + 1);
    }

    /// Whether an item may have this tag. False means that no item has it.
    #[inline]
    pub(crate) fn may_have(&self, tag: u64) -> bool {
        let (word, bit) = self.bit(tag);
        self.filter[word] >> bit & 1 == 1
    }

    /// The first item with a similar tag, most likely the wanted one.
    #[inline]
    pub(crate) fn candidate(&self, tag: u64) -> Option<usize> {
        self.find(tag, |_| true)
    }

    /// The item with a similar tag for which `equal` holds.
    #[inline]
    pub(crate) fn find(&self, tag: u64, equal: impl Fn(usize) -> bool) -> Option<usize> {
        let mut place = self.start(tag);
        loop {
            let slot = self.slots[place];
            if slot == 0 {
                return None;
            }
            // The bits beside the number are zero if the bits of the tag are the same.
            let number = slot ^ self.slot(tag, 0);
            if u64::from(number) >> self.number_bits == 0 && equal(number as usize - 1) {
                return Some(number as usize - 1);
            }
            place = self.after(place);
        }
    }

    /// The next slot.
    #[inline]
    fn after(&self, place: usize) -> usize {
        match place + 1 {
            next if next < self.slots.len() => next,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use volery_primitives::Block;
    use volery_primitives::prg::Prg;

    use super::*;

    /// The tag bits in a slot distinguish tags of one part: few absent tags look present.
    #[test]
    fn few_tags_of_one_part_are_similar() {
        let n = 4000;
        // Numbers of 25 bits, so seven are left for the tag.
        let mut index = Index::for_items(n, 1 << 24);
        let mut rng = Prg::new(Block::new(1));
        let mut tag = || rng.next_u64() >> 24 << SAME | 5;
        let items: Vec<_> = (0..n).map(|i| (tag(), i as u32)).collect();
        index.insert_all(&items);
        let similar = (0..n).filter(|_| index.candidate(tag()).is_some()).count();
        // A search inspects about one and a half slots.
        assert!(similar < n / 32, "{similar}");
    }

    /// Tags that differ in few bits only, as those of items without an instance do.
    #[test]
    fn tags_need_not_be_random() {
        for n in [0, 1, 2, 9000] {
            let mut index = Index::for_items(n, n);
            let tag = |i: usize| (i as u64) << 40;
            let items: Vec<_> = (0..n).map(|i| (tag(i), i as u32)).collect();
            index.insert_all(&items);
            assert!((0..n).all(|i| index.find(tag(i), |j| j == i) == Some(i)));
            assert_eq!(index.find(tag(n), |_| false), None);
        }
    }
}
