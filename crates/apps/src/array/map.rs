//! The client of a Path ORAM, without its memory: the slot of each entry, and the permutation of
//! each access.
//!
//! Slots are numbered: the stash, then the buckets, level by level from the root, [`BUCKET`] slots
//! each.

use std::cmp::Reverse;

use volery_primitives::prg::Prg;
use zeroize::{DefaultIsZeroes, Zeroizing};

use super::{Error, Result};

/// `Z`, blocks of a bucket.
const BUCKET: usize = 4;
/// `S`, slots of the stash; the evidence for it is in [`super::stash`].
pub(super) const STASH: usize = 140;
/// Stands for no entry or no leaf.
const NONE: u32 = u32::MAX;

/// The public shape of an array.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// `n`.
    length: usize,
    /// `L`: the root has level 0, the leaves this one.
    depth: u32,
}

impl Shape {
    /// # Panics
    /// If `length` is 0 or above 2^30.
    pub(super) fn new(length: usize) -> Self {
        assert!((1..=1 << 30).contains(&length), "an array has 1 to 2^30 entries");
        let bits = length.next_power_of_two().ilog2();
        Self { length, depth: bits.saturating_sub(1).max(1) }
    }

    pub(super) fn length(self) -> usize {
        self.length
    }

    pub(super) fn leaves(self) -> u32 {
        1 << self.depth
    }

    pub(super) fn stash(self) -> usize {
        self.length.min(STASH)
    }

    pub(super) fn slots(self) -> usize {
        self.level(self.depth + 1)
    }

    /// The wires of an access: the stash, a path, and the zero.
    pub(super) fn wires(self) -> usize {
        self.stash() + BUCKET * (self.depth as usize + 1) + 1
    }

    /// The first slot of a level.
    fn level(self, level: u32) -> usize {
        self.stash() + BUCKET * ((1 << level) - 1)
    }

    /// The first slot of the bucket of a level that is on the path to `leaf`.
    fn bucket(self, level: u32, leaf: u32) -> usize {
        self.level(level) + BUCKET * (leaf >> (self.depth - level)) as usize
    }

    /// The deepest common level of the paths to both leaves.
    fn common(self, a: u32, b: u32) -> u32 {
        self.depth - (u32::BITS - (a ^ b).leading_zeros())
    }

    /// The slots of the wires of an access, except the zero.
    pub(super) fn on_path(self, leaf: u32) -> impl Iterator<Item = usize> {
        let path = (0..=self.depth).flat_map(move |level| {
            let first = self.bucket(level, leaf);
            first..first + BUCKET
        });
        (0..self.stash()).chain(path)
    }

    /// The slots into which an array is loaded: the stash and the lowest levels.
    pub(super) fn loaded(self) -> impl Iterator<Item = usize> {
        (0..self.stash()).chain(self.level(self.loaded_from())..self.slots())
    }

    /// The first level into which an array is loaded. Three levels leave 0.6 of 2^20 entries to the
    /// stash on average, and proportionally more of more entries; four levels left none in ten runs
    /// with 2^26.
    fn loaded_from(self) -> u32 {
        let levels = if self.length <= 1 << 22 { 3 } else { 4 };
        (self.depth + 1).saturating_sub(levels)
    }
}

/// P2's map of entries to leaves and slots.
pub(super) struct Map {
    shape: Shape,
    rng: Prg,
    /// The leaf of each entry; none for an entry that was never accessed and has no slot.
    leaves: Zeroizing<Vec<u32>>,
    /// The entry in each slot.
    entries: Zeroizing<Vec<u32>>,
    /// The blocks that an access moves.
    movable: Zeroizing<Vec<Block>>,
    /// The permutation of an access.
    sources: Zeroizing<Vec<usize>>,
}

/// A block that an access moves.
#[derive(Clone, Copy, Default)]
struct Block {
    /// The deepest level to which it may move.
    deepest: u32,
    wire: u32,
    entry: u32,
}

impl DefaultIsZeroes for Block {}

impl Map {
    /// A map in which no entry was accessed yet.
    pub(super) fn empty(shape: Shape, rng: Prg) -> Self {
        Self {
            shape,
            rng,
            leaves: Zeroizing::new(vec![NONE; shape.length]),
            entries: Zeroizing::new(vec![NONE; shape.slots()]),
            // Never grows: reallocation would leave a copy that is not wiped.
            movable: Zeroizing::new(Vec::with_capacity(shape.wires())),
            sources: Zeroizing::new(vec![0; shape.wires()]),
        }
    }

    /// Steps 1 and 3 of an access: `x`, and for each output wire its input wire.
    ///
    /// # Errors
    /// [`Error::StashFull`]; the map is unusable afterwards.
    pub(super) fn access(&mut self, index: usize) -> Result<(u32, &[usize])> {
        let shape = self.shape;
        let (fresh, other) = (self.random_leaf(), self.random_leaf());
        let leaf = match std::mem::replace(&mut self.leaves[index], fresh) {
            NONE => other,
            leaf => leaf,
        };
        let mut front = shape.wires() - 1;
        self.movable.clear();
        for (wire, slot) in (0..).zip(shape.on_path(leaf)) {
            match std::mem::replace(&mut self.entries[slot], NONE) {
                NONE => {}
                entry if entry as usize == index => front = wire as usize,
                entry => self.movable.push(Block {
                    deepest: shape.common(self.leaves[entry as usize], leaf),
                    wire,
                    entry,
                }),
            }
        }
        self.movable.sort_unstable_by_key(|block| Reverse(block.deepest));
        self.sources.fill(usize::MAX);
        self.entries[0] = index as u32;
        self.sources[0] = front;
        let mut blocks = self.movable.iter().copied().peekable();
        for level in (0..=shape.depth).rev() {
            let first_wire = shape.stash() + BUCKET * level as usize;
            let first_slot = shape.bucket(level, leaf);
            for place in 0..BUCKET {
                if let Some(block) = blocks.next_if(|block| block.deepest >= level) {
                    self.sources[first_wire + place] = block.wire as usize;
                    self.entries[first_slot + place] = block.entry;
                }
            }
        }
        let free = 1..shape.stash();
        if blocks.len() > free.len() {
            return Err(Error::StashFull);
        }
        for (slot, block) in free.zip(blocks) {
            self.sources[slot] = block.wire as usize;
            self.entries[slot] = block.entry;
        }
        complete(&mut self.sources);
        Ok((leaf, &self.sources))
    }

    /// Draws the leaves of all entries and places them, in an empty map: returns for each of the
    /// [`loaded`](Shape::loaded) slots its entry, or a distinct number from `n` up.
    ///
    /// # Errors
    /// [`Error::StashFull`].
    pub(super) fn place_all(&mut self) -> Result<Zeroizing<Vec<usize>>> {
        let shape = self.shape;
        let first = shape.level(shape.loaded_from());
        let mut sources = Zeroizing::new(vec![usize::MAX; shape.loaded().count()]);
        for index in 0..shape.length {
            let leaf = self.random_leaf();
            self.leaves[index] = leaf;
            let buckets = (shape.loaded_from()..=shape.depth)
                .rev()
                .map(|level| shape.bucket(level, leaf))
                .map(|bucket| bucket..bucket + BUCKET);
            let slot = buckets
                .chain(std::iter::once(0..shape.stash()))
                .flatten()
                .find(|slot| self.entries[*slot] == NONE)
                .ok_or(Error::StashFull)?;
            self.entries[slot] = index as u32;
            let place = slot.checked_sub(first).map_or(slot, |place| shape.stash() + place);
            sources[place] = index;
        }
        complete(&mut sources);
        Ok(sources)
    }

    /// Blocks in the stash.
    #[cfg(test)]
    pub(super) fn in_stash(&self) -> usize {
        let stash = &self.entries[..self.shape.stash()];
        stash.iter().filter(|entry| **entry != NONE).count()
    }

    /// Forces the worst case: the entry's leaf is the first.
    #[cfg(test)]
    pub(super) fn crowd(&mut self, index: usize) {
        self.leaves[index] = 0;
    }

    fn random_leaf(&mut self) -> u32 {
        self.rng.next_u64() as u32 & (self.shape.leaves() - 1)
    }
}

/// Assigns the unused inputs to the outputs that have no source.
fn complete(sources: &mut [usize]) {
    let mut taken = Zeroizing::new(vec![false; sources.len()]);
    for source in sources.iter() {
        if let Some(taken) = taken.get_mut(*source) {
            *taken = true;
        }
    }
    let mut free = (0..sources.len()).filter(|source| !taken[*source]);
    for source in sources.iter_mut().filter(|source| **source == usize::MAX) {
        *source = free.next().expect("a permutation has as many inputs as outputs");
    }
}

#[cfg(test)]
mod tests {
    use volery_primitives::Block as Seed;

    use super::*;

    const SIZES: [usize; 13] = [1, 2, 3, 4, 5, 7, 8, 9, 139, 140, 141, 1000, 1024];

    fn map(n: usize, seed: u128) -> Map {
        Map::empty(Shape::new(n), Prg::new(Seed::from(seed)))
    }

    fn is_permutation(sources: &[usize]) -> bool {
        let mut sorted = sources.to_vec();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..sources.len())
    }

    /// Checks that each entry with a leaf lies in one slot, in the stash or on the path to its
    /// leaf.
    fn check(map: &Map) {
        let mut found = vec![0; map.shape.length];
        for (slot, entry) in map.entries.iter().enumerate() {
            if *entry != NONE {
                found[*entry as usize] += 1;
                let leaf = map.leaves[*entry as usize];
                assert!(map.shape.on_path(leaf).any(|on_path| on_path == slot));
            }
        }
        for (leaf, found) in map.leaves.iter().zip(found) {
            assert_eq!(found, usize::from(*leaf != NONE));
        }
    }

    #[test]
    fn all_entries_find_a_place() {
        for n in SIZES.into_iter().chain([1 << 16, (1 << 16) + 1, 1 << 20]) {
            let mut map = map(n, 3);
            let sources = map.place_all().expect("the stash does not overflow");
            assert!(is_permutation(&sources));
            for (slot, source) in map.shape.loaded().zip(sources.iter()) {
                let entry = map.entries[slot];
                assert!(if *source < n { entry as usize == *source } else { entry == NONE });
            }
            if n <= 1024 {
                check(&map);
            }
            // The stash takes the entries that do not fit into the lowest levels: far fewer than
            // its capacity.
            assert!(n <= STASH || map.in_stash() < 10, "{} of {n}", map.in_stash());
            for index in 0..n.min(2000) {
                map.access(index).expect("the stash does not overflow");
            }
        }
    }
}
