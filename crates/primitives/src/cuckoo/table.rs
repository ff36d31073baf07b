//! Placing items in a cuckoo table.

use std::fmt;

use super::{FUNCTIONS, Hasher};
use crate::Block;

/// Marks an empty bin, an unplaced item.
const NONE: u32 = u32::MAX;

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
        assert!(items.len() < CLOSED as usize, "too many items for a table");
        let mut bins = vec![[0; FUNCTIONS]; items.len()];
        hasher.bins_slice(items, &mut bins);
        let mut builder = Builder {
            bins: &bins,
            table: Self {
                items: vec![NONE; hasher.bin_count()],
                functions: vec![0; hasher.bin_count()],
            },
            seen: vec![NONE; hasher.bin_count()],
            queue: Vec::new(),
        };
        let unplaced: Vec<usize> = (0..items.len())
            .filter(|&item| !builder.place(item as u32))
            .collect();
        let table = builder.table;
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

/// One step of a search: `function` of `item`, reached from the bin of an earlier step.
#[derive(Clone, Copy)]
struct Step {
    item: u32,
    function: u8,
    /// Index of the earlier step in the queue, or `NONE`.
    from: u32,
}

struct Builder<'a> {
    bins: &'a [[u32; FUNCTIONS]],
    table: Table,
    /// The item whose search saw a bin last. `CLOSED` after a failed search.
    seen: Vec<u32>,
    queue: Vec<Step>,
}

impl Builder<'_> {
    fn place(&mut self, item: u32) -> bool {
        self.queue.clear();
        if let Some(step) = self.push_bins(item, item, NONE) {
            self.shift(step);
            return true;
        }
        let mut next = 0;
        while let Some(&step) = self.queue.get(next) {
            let bin = self.bins[step.item as usize][usize::from(step.function)];
            let occupant = self.table.items[bin as usize];
            if let Some(step) = self.push_bins(item, occupant, next as u32) {
                self.shift(step);
                return true;
            }
            next += 1;
        }
        // A failed search leaves its mark for good: no later item has this number.
        for step in &self.queue {
            let bin = self.bins[step.item as usize][usize::from(step.function)];
            self.seen[bin as usize] = CLOSED;
        }
        false
    }

    /// Queues the bins of `occupant` that the search for `item` has not seen; an empty one ends the search.
    fn push_bins(&mut self, item: u32, occupant: u32, from: u32) -> Option<Step> {
        for (function, &bin) in self.bins[occupant as usize].iter().enumerate() {
            let seen = &mut self.seen[bin as usize];
            if *seen == item || *seen == CLOSED {
                continue;
            }
            *seen = item;
            let step = Step {
                item: occupant,
                function: function as u8,
                from,
            };
            if self.table.items[bin as usize] == NONE {
                return Some(step);
            }
            self.queue.push(step);
        }
        None
    }

    /// Moves every item on the way to an empty bin one bin on.
    fn shift(&mut self, last: Step) {
        let mut step = last;
        loop {
            let bin = self.bins[step.item as usize][usize::from(step.function)] as usize;
            self.table.items[bin] = step.item;
            self.table.functions[bin] = step.function;
            if step.from == NONE {
                return;
            }
            step = self.queue[step.from as usize];
        }
    }
}

/// Marks a bin from which no empty bin can be reached.
const CLOSED: u32 = u32::MAX - 1;
