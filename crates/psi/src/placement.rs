//! What the receiver computes: where its items lie, and which of the sender's outputs are its own. Nothing here talks.

use std::ops::Range;

use rayon::prelude::*;
use volery_primitives::Block;
use volery_primitives::cuckoo::{FUNCTIONS, Full, Hasher, Table};
use volery_primitives::pages::Buffer;
use volery_primitives::prefetch::prefetch;
use zeroize::Zeroizing;

use crate::agree::Agreement;
use crate::cut::{cut, read_cut};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::items::input;
use crate::params::Parameters;

/// Tables that are tried, each with new hash functions.
pub(crate) const ATTEMPTS: u8 = 8;

/// Outputs that one thread looks up at a time.
const TASK: usize = 1 << 10;

/// Items whose tags are parted at a time.
const PIECE: usize = 1 << 14;

/// Instances whose outputs are taken at a time.
const LANES: usize = 64;

/// The set of an instance without an item.
const NOTHING: usize = usize::MAX;

/// Step 2: every item in a bin or in the stash.
pub(crate) struct Placement {
    table: Table,
    /// Numbers of the items in the stash.
    stash: Vec<usize>,
    /// The hash functions that did it, by number.
    pub(crate) attempt: u8,
}

impl Placement {
    /// Places all items, with other hash functions if those before left too many over.
    ///
    /// # Errors
    /// [`Error::Unplaced`] if none of them would do.
    pub(crate) fn find(
        agreement: &Agreement,
        parameters: &Parameters,
        digests: &[Block],
    ) -> Result<Self> {
        for attempt in 0..ATTEMPTS {
            let hasher = Hasher::new(agreement.cuckoo(attempt), parameters.bins);
            let (table, stash) = match Table::build(&hasher, digests) {
                Ok(table) => (table, Vec::new()),
                Err(Full { unplaced, table }) => (table, unplaced),
            };
            if stash.len() <= parameters.stash {
                return Ok(Self {
                    table,
                    stash,
                    attempt,
                });
            }
        }
        Err(Error::Unplaced {
            attempts: ATTEMPTS.into(),
        })
    }

    /// The item at an instance of the OPRF, and the set of outputs in which to look for it.
    pub(crate) fn item(&self, instance: usize) -> Option<(usize, usize)> {
        let bins = self.table.bin_count();
        if instance >= bins {
            let place = instance - bins;
            let item = *self.stash.get(place)?;
            return Some((item, FUNCTIONS + place));
        }
        Some((self.table.bin(instance)?, self.table.function(instance)?))
    }

    /// The inputs of the OPRF for the instances from `first` on: `y | z(y)` in a bin, `y` in the stash, zero in an empty
    /// place. (The sender never asks a bin for an input whose hash index is 0.)
    pub(crate) fn inputs(&self, digests: &[Block], first: usize, out: &mut [Block]) {
        out.par_chunks_mut(TASK)
            .enumerate()
            .for_each(|(task, out)| {
                let first = first + task * TASK;
                // Where the items lie is looked up for all before their digests are read: those reads do not wait for each
                // other, nor for a branch.
                let mut found = [(0, NOTHING); TASK];
                for (found, instance) in found[..out.len()].iter_mut().zip(first..) {
                    if let Some((item, set)) = self.item(instance) {
                        *found = (item, set);
                    }
                    prefetch(digests, found.0);
                }
                for (out, (item, set)) in out.iter_mut().zip(found) {
                    let input = input(digests[item], set);
                    *out = input & Block::select_mask(set != NOTHING);
                }
            });
    }
}

/// The receiver's items on their way from blocks to tags.
pub(crate) struct Taking {
    /// The block of each item, until the output of its instance is there. Then its [`Tag`].
    items: Buffer<Block>,
    tag_bytes: usize,
}

/// The receiver's items as what the sender sends if it has the same item, to be found.
pub(crate) struct Own {
    /// The [`Tag`] of each item.
    items: Buffer<Block>,
    /// The items by the first bits of their tags, parted by the lowest of those.
    parts: [Index; PARTS],
    tag_bytes: usize,
}

/// Parts of the tags: each is one thread's.
const PARTS: usize = 4;

/// What is sent of an output, and beyond it the set it belongs to: outputs of different sets are not to be compared.
#[derive(Clone, Copy)]
struct Tag(Block);

impl Tag {
    /// A tag has at most 13 bytes.
    #[inline]
    fn new(cut: Block, set: usize) -> Self {
        Self(cut | Block::from_words(0, (set as u64) << 56))
    }

    #[inline]
    fn part(self) -> usize {
        self.0.low() as usize % PARTS
    }
}

impl Taking {
    /// With the blocks of the items.
    pub(crate) const fn new(digests: Buffer<Block>, parameters: &Parameters) -> Self {
        Self {
            items: digests,
            tag_bytes: parameters.tag,
        }
    }

    /// The inputs of the OPRF for instances whose outputs were not yet taken.
    pub(crate) fn inputs(&self, placement: &Placement, first: usize, out: &mut [Block]) {
        placement.inputs(&self.items, first, out);
    }

    /// Takes the tags of the instances from `first` on, given as the blocks they begin.
    pub(crate) fn take(&mut self, placement: &Placement, first: usize, outputs: &[Block]) {
        let mut taken = Zeroizing::new([(Block::ZERO, 0); LANES]);
        for (first, outputs) in (first..).step_by(LANES).zip(outputs.chunks(LANES)) {
            let mut count = 0;
            for (instance, &output) in (first..).zip(outputs) {
                let (item, set) = placement.item(instance).unwrap_or((0, NOTHING));
                taken[count] = (Tag::new(cut(output, self.tag_bytes), set).0, item);
                count += usize::from(set != NOTHING);
                prefetch(&self.items, item);
            }
            for &(tag, item) in &taken[..count] {
                self.items[item] = tag;
            }
        }
    }

    /// When all instances were taken.
    pub(crate) fn finish(self) -> Own {
        let n = self.items.len();
        // Where an item was not taken, its tag is no random number, and the parts are not of one size.
        let mut sizes = [0; PARTS];
        for &tag in self.items.iter() {
            sizes[Tag(tag).part()] += 1;
        }
        let mut parts = sizes.map(|size| Index::for_items(size, n));
        // Room for all, so that they never move.
        let mut waiting: [_; PARTS] =
            std::array::from_fn(|_| Zeroizing::new(Vec::with_capacity(PIECE.min(n))));
        for (first, tags) in (0..).step_by(PIECE).zip(self.items.chunks(PIECE)) {
            for (item, &tag) in (first..).zip(tags) {
                waiting[Tag(tag).part()].push((tag.low(), item));
            }
            parts
                .par_iter_mut()
                .zip(&mut waiting)
                .for_each(|(index, waiting)| {
                    index.insert_all(waiting);
                    waiting.clear();
                });
        }
        Own {
            items: self.items,
            parts,
            tag_bytes: self.tag_bytes,
        }
    }
}

impl Own {
    /// Step 5: the places of `tags` that are this party's in set `set`, with the items they belong to.
    pub(crate) fn find(&self, set: usize, tags: &[u8]) -> Vec<(usize, usize)> {
        let places = tags.len() / self.tag_bytes;
        let mut found: Vec<_> = (0..places.div_ceil(TASK))
            .into_par_iter()
            .map(|task| self.find_some(set, tags, task * TASK..places.min((task + 1) * TASK)))
            .collect();
        match &mut found[..] {
            [one] => std::mem::take(one),
            _ => found.concat(),
        }
    }

    /// [`Own::find`] for some of the places.
    fn find_some(&self, set: usize, tags: &[u8], places: Range<usize>) -> Vec<(usize, usize)> {
        // Each step is for all places before the next is for one: what a step asks for is there when the next wants it. What
        // the filter lets pass is kept without a branch.
        let mut passed = [(Tag(Block::ZERO), 0); TASK];
        let mut count = 0;
        for place in places {
            let tag = Tag::new(read_cut(tags, self.tag_bytes, place), set);
            passed[count] = (tag, place);
            count += usize::from(self.parts[tag.part()].may_have(tag.0.low()));
        }
        let passed = &passed[..count];
        for (tag, _) in passed {
            self.parts[tag.part()].ask(tag.0.low());
        }
        let mut candidates = [(Tag(Block::ZERO), 0, 0); TASK];
        let mut count = 0;
        for &(tag, place) in passed {
            if let Some(item) = self.parts[tag.part()].candidate(tag.0.low()) {
                prefetch(&self.items, item);
                candidates[count] = (tag, place, item);
                count += 1;
            }
        }
        let mut found = Vec::with_capacity(count);
        for &(tag, place, item) in &candidates[..count] {
            if self.items[item] == tag.0 {
                found.push((place, item));
                continue;
            }
            // Another one with a similar tag may be meant.
            let equal = |other: usize| self.items[other] == tag.0;
            if let Some(item) = self.parts[tag.part()].find(tag.0.low(), equal) {
                found.push((place, item));
            }
        }
        found
    }
}
