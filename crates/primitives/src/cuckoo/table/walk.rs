//! Random walks that place the items without a one-move placement, many at a time, in a large
//! table.

use super::{Builder, NONE};
use crate::cuckoo::FUNCTIONS;
use crate::prefetch::prefetch;

/// Minimum number of items: a smaller table lies in a cache, where a search does not wait for
/// memory.
pub(super) const LARGE: usize = 1 << 15;

/// Walks at a time. The next reads of all of them are prefetched before the first one reads.
const WALKS: usize = 32;

/// Maximum steps of a walk; few walks come near.
const STEPS: u32 = 128;

/// An item that has no bin.
#[derive(Clone, Copy)]
struct Walk {
    item: u32,
    /// The bin it had to leave, or `NONE`.
    from: u32,
    steps: u32,
}

impl Walk {
    const fn of(item: usize) -> Self {
        Self { item: item as u32, from: NONE, steps: 0 }
    }
}

impl Builder<'_> {
    /// Puts each item into an empty bin of its own, or into the bin of another item, which then
    /// does the same. Returns the items without a bin when all walks have ended, ascending.
    pub(super) fn walk(&mut self, items: &[usize]) -> Vec<usize> {
        let mut waiting = items.iter().map(|&item| Walk::of(item));
        let mut left = Vec::new();
        let mut walks: Vec<_> = waiting.by_ref().take(WALKS).collect();
        while !walks.is_empty() {
            for walk in &walks {
                prefetch(self.bins, walk.item as usize);
            }
            for walk in &walks {
                for bin in self.bins[walk.item as usize] {
                    prefetch(&self.items, bin as usize);
                }
            }
            walks.retain_mut(|walk| {
                let next = match self.step(walk) {
                    true => waiting.next(),
                    false if walk.steps == STEPS => {
                        left.push(walk.item as usize);
                        waiting.next()
                    }
                    false => return true,
                };
                next.map(|next| *walk = next).is_some()
            });
        }
        left.sort_unstable();
        left
    }

    /// Makes one step; returns whether it was the last.
    fn step(&mut self, walk: &mut Walk) -> bool {
        let bins = self.bins[walk.item as usize];
        let empty = |function: &usize| self.items[bins[*function] as usize] == NONE;
        if let Some(function) = (0..FUNCTIONS).find(empty) {
            self.put(walk.item, bins[function] as usize, function);
            return true;
        }
        // A pseudorandom bin, other than the one the item comes from: that would undo the last
        // step.
        let draw = (walk.item ^ walk.steps.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
        let mut function = (draw >> 16) as usize % FUNCTIONS;
        if bins[function] == walk.from {
            function = (function + 1 + (draw >> 8) as usize % (FUNCTIONS - 1)) % FUNCTIONS;
        }
        let bin = bins[function];
        let evicted = self.items[bin as usize];
        self.put(walk.item, bin as usize, function);
        *walk = Walk { item: evicted, from: bin, steps: walk.steps + 1 };
        false
    }
}
