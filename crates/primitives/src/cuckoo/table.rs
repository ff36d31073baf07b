//! Placing items in a cuckoo table.

use std::fmt;

use super::{FUNCTIONS, Hasher};
use crate::Block;

/// Marks an empty bin, an unplaced item.
const NONE: u32 = u32::MAX;

/// Marks a bin from which no empty bin can be reached.
const CLOSED: u32 = u32::MAX - 1;

/// A cuckoo table: at most one item in each bin, each item in one of its three bins.
#[derive(Clone)]
pub struct Table {
    /// Item number in each bin, or `NONE`.
    items: Vec<u32>,
    /// Hash function by which the item is in its bin.
    functions: Vec<u8>,
}

/// Some items could not be placed: no placement of all items exists.
///
/// The number of items left over is the smallest possible.
#[derive(Clone)]
pub struct Full {
    /// Numbers of the items that are in no bin, ascending.
    pub unplaced: Vec<usize>,
    /// The table of the other items.
    pub table: Table,
}

impl Table {
    /// Places the items, all different, each in one of its bins.
    ///
    /// Each item in turn takes the end of a shortest chain of moves to an empty bin, found by breadth-first search: an
    /// augmenting path in the sense of Berge's theorem, so that nothing is left over that could have been placed. If
    /// the search finds no empty bin, the bins it has seen are full of items that have nowhere else to go; they are
    /// never looked at again, so all failing searches together look at each bin once.
    ///
    /// # Errors
    ///
    /// [`Full`] if not all items can be placed. With [`bins_for`](super::bins_for)`(items, eta)` bins the probability
    /// is at most 2^-`eta`, over the key of the hasher.
    ///
    /// # Panics
    ///
    /// If there are 2^32 - 2 items or more.
    pub fn build(hasher: &Hasher, items: &[Block]) -> Result<Self, Full> {
        assert_fits(items.len());
        let mut bins = vec![[0; FUNCTIONS]; items.len()];
        hasher.bins_slice(items, &mut bins);
        Self::place_all(&bins, hasher.bin_count())
    }

    /// As [`Table::build`], for items whose bins come from elsewhere than a [`Hasher`]: `bins[i]` are those of item `i`
    /// among `bin_count`, in the order of the hash functions. They need not be distinct; then the item has fewer places.
    ///
    /// # Errors
    ///
    /// [`Full`] if not all items can be placed. What [`bins_for`](super::bins_for) says holds for distinct bins only.
    ///
    /// # Panics
    ///
    /// If there are 2^32 - 2 items or more, or an item has a bin that is not below `bin_count`.
    pub fn build_from(bins: &[[u32; FUNCTIONS]], bin_count: usize) -> Result<Self, Full> {
        assert_fits(bins.len());
        let inside = |bin: &u32| (*bin as usize) < bin_count;
        assert!(
            bins.as_flattened().iter().all(inside),
            "every bin is one of the table's"
        );
        Self::place_all(bins, bin_count)
    }

    fn place_all(bins: &[[u32; FUNCTIONS]], bin_count: usize) -> Result<Self, Full> {
        let empty = Slot {
            item: NONE,
            seen: NONE,
        };
        let mut builder = Builder {
            bins,
            slots: vec![empty; bin_count],
            functions: vec![0; bin_count],
            queue: Vec::new(),
        };
        let unplaced: Vec<usize> = (0..bins.len())
            .filter(|&item| !builder.place(item as u32))
            .collect();
        let table = Self {
            items: builder.slots.iter().map(|slot| slot.item).collect(),
            functions: builder.functions,
        };
        if unplaced.is_empty() {
            Ok(table)
        } else {
            Err(Full { unplaced, table })
        }
    }

    /// Number of bins.
    #[must_use]
    pub fn bin_count(&self) -> usize {
        self.items.len()
    }

    /// Number of the item in a bin, if there is one.
    ///
    /// # Panics
    ///
    /// If there is no such bin.
    #[inline]
    #[must_use]
    pub fn bin(&self, bin: usize) -> Option<usize> {
        let item = self.items[bin];
        (item != NONE).then_some(item as usize)
    }

    /// The hash function, 0 to 2, that puts the item of a bin there, if there is one.
    ///
    /// # Panics
    ///
    /// If there is no such bin.
    #[inline]
    #[must_use]
    pub fn function(&self, bin: usize) -> Option<usize> {
        self.bin(bin).map(|_| usize::from(self.functions[bin]))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({} bins, ..)", self.items.len())
    }
}

impl fmt::Debug for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Full({} items unplaced, ..)", self.unplaced.len())
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cuckoo table: {} items fit in none of their bins",
            self.unplaced.len()
        )
    }
}

impl std::error::Error for Full {}

/// Item numbers and marks are told apart.
fn assert_fits(items: usize) {
    assert!(items < CLOSED as usize, "too many items for a table");
}

/// One step of a search: `function` of `item`, reached from the bin of an earlier step.
#[derive(Clone, Copy)]
struct Step {
    item: u32,
    function: u8,
    /// Index of the earlier step in the queue, or `NONE`.
    from: u32,
}

/// What a search looks at in a bin, side by side in memory.
#[derive(Clone, Copy)]
struct Slot {
    /// The item in the bin, or `NONE`.
    item: u32,
    /// The item whose search saw the bin last, or `CLOSED` after a failed search.
    seen: u32,
}

struct Builder<'a> {
    bins: &'a [[u32; FUNCTIONS]],
    slots: Vec<Slot>,
    functions: Vec<u8>,
    /// The bins a search has reached and not yet looked behind, and all it came through.
    queue: Vec<Step>,
}

impl Builder<'_> {
    /// Finds a bin for an item; false if there is none.
    fn place(&mut self, item: u32) -> bool {
        self.queue.clear();
        let mut next = 0;
        let mut found = self.reach(item, item, NONE);
        while found.is_none() {
            let Some(step) = self.queue.get(next) else {
                break;
            };
            let occupant = self.slots[self.bin(*step)].item;
            found = self.reach(item, occupant, next as u32);
            next += 1;
        }
        if let Some(last) = found {
            self.shift(last);
            return true;
        }
        for i in 0..self.queue.len() {
            let bin = self.bin(self.queue[i]);
            self.slots[bin].seen = CLOSED;
        }
        false
    }

    /// Queues the bins of `occupant` that the search for `item` has not seen; an empty one ends the search.
    fn reach(&mut self, item: u32, occupant: u32, from: u32) -> Option<Step> {
        let bins = self.bins[occupant as usize].map(|bin| bin as usize);
        let slots = bins.map(|bin| self.slots[bin]);
        let step = |function: usize| Step {
            item: occupant,
            function: function as u8,
            from,
        };
        if let Some(function) = slots.iter().position(|slot| slot.item == NONE) {
            return Some(step(function));
        }
        for (function, &bin) in bins.iter().enumerate() {
            // Looked up again: an item may have the same bin twice.
            let seen = &mut self.slots[bin].seen;
            if *seen != item && *seen != CLOSED {
                *seen = item;
                self.queue.push(step(function));
            }
        }
        None
    }

    /// The bin a step leads to.
    fn bin(&self, step: Step) -> usize {
        self.bins[step.item as usize][usize::from(step.function)] as usize
    }

    /// Moves every item on the way to an empty bin one bin on.
    fn shift(&mut self, last: Step) {
        let mut step = last;
        loop {
            let bin = self.bin(step);
            self.slots[bin].item = step.item;
            self.functions[bin] = step.function;
            if step.from == NONE {
                return;
            }
            step = self.queue[step.from as usize];
        }
    }
}
