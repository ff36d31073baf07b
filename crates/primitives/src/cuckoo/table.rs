//! Placing items in a cuckoo table.

use std::fmt;

use zeroize::ZeroizeOnDrop;

use super::{FUNCTIONS, Hasher};
use crate::Block;
use crate::pages::Buffer;
use crate::prefetch::prefetch;

mod walk;

/// Marks an empty bin, an unplaced item.
const NONE: u32 = u32::MAX;

/// Marks a bin from which no empty bin can be reached.
const CLOSED: u32 = u32::MAX - 1;

/// A cuckoo table: at most one item in each bin, each item in one of its three bins.
pub struct Table {
    /// Item number in each bin, or `NONE`.
    items: Buffer<u32>,
    /// Hash function by which the item is in its bin.
    functions: Buffer<u8>,
}

/// Some items could not be placed: no placement of all items exists.
///
/// The number of items left over is the smallest possible.
pub struct Full {
    /// Numbers of the items that are in no bin, ascending.
    pub unplaced: Vec<usize>,
    /// The table of the other items.
    pub table: Table,
}

impl Table {
    /// Places the items, which must be distinct, each in one of its bins.
    ///
    /// First, each item in turn takes an empty bin of its own; failing that, a bin whose item can
    /// move to an empty bin. In a large table, some of the remaining items then evict others, for a
    /// bounded number of moves. For each item still unplaced, a breadth-first search finds the end
    /// of a shortest chain of moves to an empty bin: an augmenting path in the sense of Berge's
    /// theorem, so an item stays unplaced only if no placement includes it. If the search finds no
    /// empty bin, all bins it has seen are full of items that cannot move elsewhere; later searches
    /// skip them, so all failing searches together visit each bin once.
    ///
    /// # Errors
    /// [`Full`] if not all items can be placed. With [`bins_for`](super::bins_for)`(items, eta)`
    /// bins the probability is at most 2^-`eta`, over the key of the hasher.
    ///
    /// # Panics
    /// If there are 2^32 - 2 items or more.
    pub fn build(hasher: &Hasher, items: &[Block]) -> Result<Self, Full> {
        assert_fits(items.len());
        let mut bins = Buffer::zeroed(items.len());
        hasher.bins_slice(items, &mut bins);
        Self::place_all(&bins, hasher.bin_count())
    }

    /// Builds like [`Table::build`], with bins that do not come from a [`Hasher`]: `bins[i]` are
    /// those of item `i` among `bin_count`, in the order of the hash functions. They need not be
    /// distinct; an item with equal bins has fewer choices.
    ///
    /// # Errors
    /// [`Full`] if not all items can be placed. The bound of [`bins_for`](super::bins_for) holds
    /// for distinct bins only.
    ///
    /// # Panics
    /// If there are 2^32 - 2 items or more, or an item has a bin that is not below `bin_count`.
    pub fn build_from(bins: &[[u32; FUNCTIONS]], bin_count: usize) -> Result<Self, Full> {
        assert_fits(bins.len());
        let inside = |bin: &u32| (*bin as usize) < bin_count;
        assert!(bins.as_flattened().iter().all(inside), "a bin index is below the number of bins");
        Self::place_all(bins, bin_count)
    }

    fn place_all(bins: &[[u32; FUNCTIONS]], bin_count: usize) -> Result<Self, Full> {
        let filled = |value| {
            let mut numbers = Buffer::zeroed(bin_count);
            numbers.fill(value);
            numbers
        };
        let mut builder = Builder {
            bins,
            items: filled(NONE),
            seen: Buffer::default(),
            functions: Buffer::zeroed(bin_count),
            queue: Vec::new(),
        };
        let mut unplaced = builder.fill();
        unplaced = builder.push(&unplaced);
        if bins.len() >= walk::LARGE {
            unplaced = builder.walk(&unplaced);
        }
        if !unplaced.is_empty() {
            builder.seen = filled(NONE);
        }
        unplaced.retain(|&item| !builder.place(item as u32));
        let table = Self { items: builder.items, functions: builder.functions };
        if unplaced.is_empty() { Ok(table) } else { Err(Full { unplaced, table }) }
    }

    /// Number of bins.
    pub fn bin_count(&self) -> usize {
        self.items.len()
    }

    /// Number of the item in a bin, if there is one.
    ///
    /// # Panics
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
    /// If there is no such bin.
    #[inline]
    #[must_use]
    pub fn function(&self, bin: usize) -> Option<usize> {
        self.bin(bin).map(|_| usize::from(self.functions[bin]))
    }
}

// Both buffers are wiped on drop.
impl ZeroizeOnDrop for Table {}

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
        write!(f, "cuckoo table: {} items fit in none of their bins", self.unplaced.len())
    }
}

impl std::error::Error for Full {}

/// Item numbers must not collide with the marks.
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

/// Items whose bins are read together: independent reads.
const GROUP: usize = 32;

struct Builder<'a> {
    bins: &'a [[u32; FUNCTIONS]],
    /// The item in each bin, or `NONE`.
    items: Buffer<u32>,
    /// The item whose search saw the bin last, or `CLOSED` after a failed search. Empty until the
    /// first search.
    seen: Buffer<u32>,
    functions: Buffer<u8>,
    /// The bins a search has reached, visited or still to visit.
    queue: Vec<Step>,
}

/// The results of `read` for at most `GROUP` inputs.
fn gather<A, B: Default + Copy>(inputs: &[A], read: impl Fn(&A) -> B) -> [B; GROUP] {
    let mut out = [B::default(); GROUP];
    for (out, input) in out.iter_mut().zip(inputs) {
        *out = read(input);
    }
    out
}

impl Builder<'_> {
    /// Puts each item into the first empty bin of its three; returns the items without an empty
    /// bin.
    fn fill(&mut self) -> Vec<usize> {
        let mut left = Vec::new();
        for (group, bins) in self.bins.chunks(GROUP).enumerate() {
            let before = gather(bins, |bins| bins.map(|bin| self.items[bin as usize]));
            for (i, (before, bins)) in before.iter().zip(bins).enumerate() {
                let item = group * GROUP + i;
                for &bin in self.bins.get(item + GROUP).into_iter().flatten() {
                    prefetch(&self.items, bin as usize);
                }
                // An item of this group may have taken a bin that was empty.
                let empty = |function: &usize| {
                    before[*function] == NONE && self.items[bins[*function] as usize] == NONE
                };
                match (0..FUNCTIONS).find(empty) {
                    Some(function) => {
                        self.put(item as u32, bins[function] as usize, function);
                    }
                    None => left.push(item),
                }
            }
        }
        left
    }

    /// Puts each item into a bin whose item can move to an empty one; returns the items without
    /// such a bin.
    fn push(&mut self, items: &[usize]) -> Vec<usize> {
        let mut left = Vec::new();
        for group in items.chunks(GROUP) {
            // The reads of each line are independent of each other; the next line waits for them.
            let n = group.len();
            let bins = gather(group, |&item| self.bins[item]);
            let occupants = gather(&bins[..n], |bins| bins.map(|bin| self.items[bin as usize]));
            let others = gather(&occupants[..n], |occupants| {
                occupants.map(|occupant| self.bins[occupant as usize])
            });
            let behind = gather(&others[..n], |others| {
                others.map(|bins| bins.map(|bin| self.items[bin as usize]))
            });
            for (i, &item) in group.iter().enumerate() {
                let way = (0..FUNCTIONS * FUNCTIONS).find_map(|way| {
                    let (function, other) = (way / FUNCTIONS, way % FUNCTIONS);
                    let (from, to) = (bins[i][function], others[i][function][other]);
                    // An item of this group may have changed the entries read above.
                    (behind[i][function][other] == NONE
                        && self.items[to as usize] == NONE
                        && self.items[from as usize] == occupants[i][function])
                        .then_some([(from, function), (to, other)])
                });
                match way {
                    Some([(from, function), (to, other)]) => {
                        self.put(self.items[from as usize], to as usize, other);
                        self.put(item as u32, from as usize, function);
                    }
                    None => left.push(item),
                }
            }
        }
        left
    }

    /// Puts an item into a bin, by one of its hash functions.
    fn put(&mut self, item: u32, bin: usize, function: usize) {
        self.items[bin] = item;
        self.functions[bin] = function as u8;
    }

    /// Finds a bin for an item; false if there is none.
    fn place(&mut self, item: u32) -> bool {
        self.queue.clear();
        let mut next = 0;
        let mut found = self.reach(item, item, NONE);
        while found.is_none() {
            let Some(step) = self.queue.get(next) else {
                break;
            };
            let occupant = self.items[self.bin(*step)];
            found = self.reach(item, occupant, next as u32);
            next += 1;
        }
        if let Some(last) = found {
            self.shift(last);
            return true;
        }
        for i in 0..self.queue.len() {
            let bin = self.bin(self.queue[i]);
            self.seen[bin] = CLOSED;
        }
        false
    }

    /// Queues the bins of `occupant` that the search for `item` has not seen; an empty one ends the
    /// search.
    fn reach(&mut self, item: u32, occupant: u32, from: u32) -> Option<Step> {
        let bins = self.bins[occupant as usize].map(|bin| bin as usize);
        let items = bins.map(|bin| self.items[bin]);
        let step = |function: usize| Step { item: occupant, function: function as u8, from };
        if let Some(function) = items.iter().position(|&item| item == NONE) {
            return Some(step(function));
        }
        for (function, &bin) in bins.iter().enumerate() {
            // Looked up again: an item may have the same bin twice.
            let seen = &mut self.seen[bin];
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

    /// Moves every item on the path to an empty bin one bin on.
    fn shift(&mut self, last: Step) {
        let mut step = last;
        loop {
            self.put(step.item, self.bin(step), step.function.into());
            if step.from == NONE {
                return;
            }
            step = self.queue[step.from as usize];
        }
    }
}
