//! What the receiver computes: where its items lie, and which of the sender's outputs are its own. Nothing here talks.

use std::ops::Range;

use rayon::prelude::*;
use volery_primitives::Block;
use volery_primitives::cuckoo::{FUNCTIONS, Full, Hasher, Table};
use volery_primitives::pages::Buffer;
use volery_primitives::prefetch::prefetch;
use zeroize::{Zeroize, Zeroizing};

use crate::agree::Agreement;
use crate::cut::{cut, read_cut};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::items::input;
use crate::params::Parameters;
use crate::parting::{self, owners_of, part, several};

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
            let (table, stash) = match build(&hasher, digests, parameters.bins) {
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
                // An item and its set each, as a block that is wiped at once.
                let mut found = Zeroizing::new([Block::from_words(0, NOTHING as u64); TASK]);
                for (found, instance) in found[..out.len()].iter_mut().zip(first..) {
                    if let Some((item, set)) = self.item(instance) {
                        *found = Block::from_words(item as u64, set as u64);
                    }
                    prefetch(digests, found.low() as usize);
                }
                for (out, found) in out.iter_mut().zip(found.iter()) {
                    let (item, set) = (found.low() as usize, found.high() as usize);
                    let input = input(digests[item], set);
                    *out = input & Block::select_mask(set != NOTHING);
                }
            });
    }
}

/// The table of the items: only their hashing is shared by several threads.
fn build(hasher: &Hasher, digests: &[Block], bin_count: usize) -> std::result::Result<Table, Full> {
    if !several() {
        return Table::build(hasher, digests);
    }
    let mut bins = Buffer::zeroed(digests.len());
    bins.par_chunks_mut(PIECE)
        .zip(digests.par_chunks(PIECE))
        .for_each(|(bins, digests)| hasher.bins_slice(digests, bins));
    Table::build_from(&bins, bin_count)
}

/// The receiver's items on their way from blocks to tags.
pub(crate) struct Taking {
    /// The block of each item, until the output of its instance is there. Then its [`Tag`].
    items: Buffer<Block>,
    tag_bytes: usize,
    /// With several threads: tags on their way to their items.
    tags: Buffer<(Block, u64)>,
}

/// The receiver's items as what the sender sends if it has the same item, to be found.
pub(crate) struct Own {
    /// The [`Tag`] of each item.
    items: Buffer<Block>,
    /// The items by the first bits of their tags, parted by the lowest of those.
    parts: [Index; PARTS],
    tag_bytes: usize,
}

/// Parts of the tags, a power of two: each is one thread's.
pub(crate) const PARTS: usize = 16;

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
    fn low(self) -> u64 {
        self.0.low()
    }

    #[inline]
    fn part(self) -> usize {
        self.0.low() as usize % PARTS
    }
}

impl Taking {
    /// With the blocks of the items.
    pub(crate) fn new(digests: Buffer<Block>, parameters: &Parameters) -> Self {
        Self {
            items: digests,
            tag_bytes: parameters.tag,
            tags: Buffer::default(),
        }
    }

    /// The inputs of the OPRF for instances whose outputs were not yet taken.
    pub(crate) fn inputs(&self, placement: &Placement, first: usize, out: &mut [Block]) {
        placement.inputs(&self.items, first, out);
    }

    /// Takes the tags of the instances from `first` on, given as the blocks they begin.
    pub(crate) fn take(&mut self, placement: &Placement, first: usize, outputs: &[Block]) {
        if several() {
            return self.take_shared(placement, first, outputs);
        }
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

    /// As [`Taking::take`], by several threads: each owns some items.
    fn take_shared(&mut self, placement: &Placement, first: usize, outputs: &[Block]) {
        if self.tags.len() < outputs.len() {
            self.tags = Buffer::zeroed(outputs.len());
        }
        let tags = &mut self.tags[..outputs.len()];
        let tag_bytes = self.tag_bytes;
        tags.par_chunks_mut(TASK)
            .zip(outputs.par_chunks(TASK))
            .enumerate()
            .for_each(|(task, (tags, outputs))| {
                let instances = first + task * TASK..;
                for ((place, &output), instance) in tags.iter_mut().zip(outputs).zip(instances) {
                    let (item, set) = placement.item(instance).unwrap_or((0, NOTHING));
                    let is = u64::from(set != NOTHING);
                    *place = (
                        Tag::new(cut(output, tag_bytes), set).0,
                        item as u64 | is << 63,
                    );
                }
            });
        // The items in runs of a power of two, of which each owner has some.
        let shift = (self.items.len() / 256).max(1).next_power_of_two().ilog2();
        let table = owners_of(self.items.len().div_ceil(1 << shift).max(1));
        let mut rest = &mut self.items[..];
        let mut owners = Vec::new();
        let mut begin = 0;
        for runs in table.chunk_by(|one, other| one == other) {
            let count = rest.len().min(runs.len() << shift);
            owners.push((begin, rest.split_off_mut(..count).unwrap_or_default()));
            begin += count;
        }
        let tags = &*tags;
        let item = |i: usize| (tags[i].1 & !(1 << 63)) as usize;
        let owner_of = |i: usize| match tags[i].1 >> 63 {
            0 => parting::NOBODY,
            _ => table[item(i) >> shift],
        };
        part(
            outputs.len(),
            owner_of,
            &mut owners,
            |(begin, items), numbers| {
                for numbers in numbers.chunks(LANES) {
                    for &i in numbers {
                        prefetch(items, item(i) - *begin);
                    }
                    for &i in numbers {
                        items[item(i) - *begin] = tags[i].0;
                    }
                }
            },
        );
    }

    /// When all instances were taken.
    pub(crate) fn finish(self) -> Own {
        let n = self.items.len();
        // Where an item was not taken, its tag is no random number, and the parts are not of one size.
        let counts = self.items.par_chunks(PIECE).map(|tags| {
            let mut counts = [0; PARTS];
            for &tag in tags {
                counts[Tag(tag).part()] += 1;
            }
            counts
        });
        let add = |sums: [usize; PARTS], counts: [usize; PARTS]| {
            std::array::from_fn(|part| sums[part] + counts[part])
        };
        let sizes = counts.reduce(|| [0; PARTS], add);
        let mut parts = sizes.map(|size| Index::for_items(size, n));
        let items = &self.items;
        let table = owners_of(PARTS);
        let mut rest = &mut parts[..];
        let mut owners = Vec::new();
        for mine in table.chunk_by(|one, other| one == other) {
            let first = PARTS - rest.len();
            let indices = rest.split_off_mut(..mine.len()).unwrap_or_default();
            // Room for all, so that they never move.
            let waiting = || Zeroizing::new(Vec::with_capacity(parting::RUN.min(n)));
            let waiting: Vec<_> = mine.iter().map(|_| waiting()).collect();
            owners.push((first, indices, waiting));
        }
        let owner_of = |item: usize| table[Tag(items[item]).part()];
        part(
            n,
            owner_of,
            &mut owners,
            |(first, indices, waiting), mine| {
                for &item in mine {
                    let tag = Tag(items[item]);
                    waiting[tag.part() - *first].push((tag.low(), item as u32));
                }
                for (index, waiting) in indices.iter_mut().zip(waiting) {
                    index.insert_all(waiting);
                    waiting.clear();
                }
            },
        );
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
        let found = self.find_all(&[(set, tags)]).into_iter();
        found.flat_map(|(_, found)| found).collect()
    }

    /// [`Own::find`] for many tags at once: runs of what is found, each with the number of its tags among `all`.
    pub(crate) fn find_all(&self, all: &[(usize, &[u8])]) -> Vec<(usize, Vec<(usize, usize)>)> {
        let runs = all.iter().enumerate().flat_map(|(number, (_, tags))| {
            let places = tags.len() / self.tag_bytes;
            let runs = (0..places).step_by(TASK);
            runs.map(move |from| (number, from..places.min(from + TASK)))
        });
        let runs: Vec<_> = runs.collect();
        runs.into_par_iter()
            .map(|(number, places)| {
                let (set, tags) = all[number];
                (number, self.find_some(set, tags, places))
            })
            .collect()
    }

    /// [`Own::find`] for some of the places.
    fn find_some(&self, set: usize, tags: &[u8], places: Range<usize>) -> Vec<(usize, usize)> {
        // Each step is for all places before the next is for one: what a step asks for is there when the next wants it. What
        // the filter lets pass is kept without a branch.
        let mut passed = [(Block::ZERO, 0, 0); TASK];
        let mut count = 0;
        for place in places {
            let tag = Tag::new(read_cut(tags, self.tag_bytes, place), set);
            passed[count] = (tag.0, place, 0);
            count += usize::from(self.parts[tag.part()].may_have(tag.low()));
        }
        let used = count;
        for &(tag, ..) in &passed[..used] {
            self.parts[Tag(tag).part()].ask(tag.low());
        }
        let mut candidates = [(Block::ZERO, 0, 0); TASK];
        let mut count = 0;
        for &(tag, place, _) in &passed[..used] {
            let tag = Tag(tag);
            if let Some(item) = self.parts[tag.part()].candidate(tag.low()) {
                prefetch(&self.items, item);
                candidates[count] = (tag.0, place, item);
                count += 1;
            }
        }
        let mut found = Vec::with_capacity(count);
        for &(tag, place, item) in &candidates[..count] {
            let tag = Tag(tag);
            if self.items[item] == tag.0 {
                found.push((place, item));
                continue;
            }
            // Another one with a similar tag may be meant.
            let equal = |other: usize| self.items[other] == tag.0;
            if let Some(item) = self.parts[tag.part()].find(tag.low(), equal) {
                found.push((place, item));
            }
        }
        // What was used, and what was written last and not kept.
        passed[..TASK.min(used + 1)].iter_mut().zeroize();
        candidates[..count].iter_mut().zeroize();
        found
    }
}
