//! A table from hashes to item numbers, for hashes that are uniform already.

use std::hint::black_box;

use volery_primitives::pages::Buffer;

/// Open addressing with linear probing, at most half full. Wiped when dropped.
pub(crate) struct Index {
    /// Zero, or the upper half of the hash and the item's number plus one.
    slots: Buffer<u64>,
    mask: usize,
}

/// Hashes that are worked on at a time.
pub(crate) const LANES: usize = 64;

impl Index {
    /// For at most `items` items.
    pub(crate) fn for_items(items: usize) -> Self {
        let slots = (2 * items).next_power_of_two();
        Self {
            slots: Buffer::zeroed(slots),
            mask: slots - 1,
        }
    }

    /// Adds an item, unless one is there for which `equal` holds: that is returned. `equal` is asked about items with a
    /// similar hash.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        item: usize,
        equal: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut place = hash as usize & self.mask;
        loop {
            let slot = self.slots[place];
            if slot == 0 {
                self.slots[place] = hash & (u64::from(u32::MAX) << 32) | (item as u64 + 1);
                return None;
            }
            if slot >> 32 == hash >> 32 && equal(number(slot)) {
                return Some(number(slot));
            }
            place = (place + 1) & self.mask;
        }
    }

    /// Brings the places where the searches for some hashes begin into the cache: in a large table it is the waiting for
    /// memory that takes time, and these reads do not wait for each other.
    #[inline]
    pub(crate) fn load(&self, hashes: &[u64]) {
        let slots = hashes
            .iter()
            .fold(0, |all, &hash| all ^ self.slots[hash as usize & self.mask]);
        black_box(slots);
    }

    /// The first item with a similar hash, which most likely is the one that is looked for.
    #[inline]
    pub(crate) fn candidate(&self, hash: u64) -> Option<usize> {
        self.find(hash, |_| true)
    }

    /// The item for which `equal` holds among those with a similar hash.
    #[inline]
    pub(crate) fn find(&self, hash: u64, equal: impl Fn(usize) -> bool) -> Option<usize> {
        let mut place = hash as usize & self.mask;
        loop {
            let slot = self.slots[place];
            if slot == 0 {
                return None;
            }
            if slot >> 32 == hash >> 32 && equal(number(slot)) {
                return Some(number(slot));
            }
            place = (place + 1) & self.mask;
        }
    }
}

/// The item in a slot.
fn number(slot: u64) -> usize {
    slot as u32 as usize - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_is_found_and_nothing_else() {
        for n in [0, 1, 2, 3, 1000, 1024, 1025] {
            let mut index = Index::for_items(n);
            // Few low bits, so that searches run into each other.
            let hash = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) & !0xf8;
            for i in 0..n {
                assert_eq!(index.insert(hash(i), i, |j| j == i), None);
            }
            for i in 0..2 * n {
                index.load(&[hash(i)]);
                assert_eq!(index.find(hash(i), |j| j == i), (i < n).then_some(i));
            }
            if n > 0 {
                assert_eq!(index.insert(hash(n - 1), n, |j| j == n - 1), Some(n - 1));
            }
        }
    }

    #[test]
    fn equal_hashes_of_different_items_are_kept_apart() {
        let mut index = Index::for_items(3);
        for i in 0..3 {
            assert_eq!(index.insert(5, i, |j| j == i), None);
        }
        assert_eq!(index.find(5, |j| j == 1), Some(1));
        assert_eq!(index.find(5, |_| false), None);
        assert_eq!(index.candidate(5), Some(0));
        assert_eq!(index.candidate(5 | 1 << 40), None);
    }
}
