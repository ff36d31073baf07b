//! The receiver's computation: the placement of its items, and the search for its outputs among the
//! sender's. No communication here.

use std::ops::Range;

use rayon::prelude::*;
use volery_primitives::Block;
use volery_primitives::cuckoo::{FUNCTIONS, Full, Hasher, Table};
use volery_primitives::pages::Buffer;
use volery_primitives::prefetch::{AHEAD, prefetch};
use zeroize::{Zeroize, Zeroizing};

use crate::agree::Agreement;
use crate::error::{Error, Result};
use crate::index::{Index, PARTS};
use crate::items::input;
use crate::params::Parameters;
use crate::partition::{self, owners_of, part, several};
use crate::truncate::{cut, read_cut};

/// Number of tables tried, each with new hash functions.
pub(crate) const ATTEMPTS: u8 = 8;

/// Outputs that one thread looks up at a time.
const TASK: usize = 1 << 10;

/// Items whose tags are partitioned at a time.
const PIECE: usize = 1 << 14;

/// Instances whose outputs are processed at a time.
const LANES: usize = 64;

/// The set of an instance without an item.
const NOTHING: usize = usize::MAX;

/// Step 2: every item in a bin or in the stash.
pub(crate) struct Placement {
    table: Table,
    /// Numbers of the items in the stash.
    stash: Vec<usize>,
    /// Number of the hash functions that placed all items.
    pub(crate) attempt: u8,
}

impl Placement {
    /// Places all items, with the next hash functions if the previous ones left too many over.
    ///
    /// # Errors
    /// [`Error::Unplaced`] if all attempts fail.
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
                return Ok(Self { table, stash, attempt });
            }
        }
        Err(Error::Unplaced { attempts: ATTEMPTS.into() })
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

    /// The inputs of the OPRF for the instances from `first` on: `y | z(y)` in a bin, `y` in the
    /// stash, zero in an empty place. (The sender never asks a bin for an input whose hash index is
    /// 0.)
    pub(crate) fn inputs(&self, digests: &[Block], first: usize, out: &mut [Block]) {
        out.par_chunks_mut(TASK).enumerate().for_each(|(task, out)| {
            let first = first + task * TASK;
            // All item numbers are looked up before the digests are read: those reads do not
            // wait for each other, nor for a branch. Each item with its set, as a block that is
            // wiped at once.
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

/// The table of the items: several threads share only the hashing.
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

/// The receiver's items during the conversion from blocks to tags.
pub(crate) struct ItemTags {
    /// The block of each item until the output of its instance arrives, then its [`Tag`].
    items: Buffer<Block>,
    tag_bytes: usize,
    /// With several threads: tags not yet stored at their items.
    tags: Buffer<(Block, u64)>,
}

/// The receiver's items in the form that the sender sends if it has the same item, indexed for the
/// search.
pub(crate) struct ReceiverTable {
    /// The [`Tag`] of each item.
    items: Buffer<Block>,
    /// The items by the first bits of their tags, partitioned by the lowest of those bits.
    parts: [Index; PARTS],
    tag_bytes: usize,
}

/// The sent part of an output, followed by its set: outputs of different sets must not be compared.
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

impl ItemTags {
    /// Starts with the blocks of the items.
    pub(crate) fn new(digests: Buffer<Block>, parameters: &Parameters) -> Self {
        Self { items: digests, tag_bytes: parameters.tag, tags: Buffer::default() }
    }

    /// The inputs of the OPRF for instances whose outputs were not yet processed.
    pub(crate) fn inputs(&self, placement: &Placement, first: usize, out: &mut [Block]) {
        placement.inputs(&self.items, first, out);
    }

    /// Processes the tags of the instances from `first` on, given as blocks that begin with them.
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

    /// Like [`ItemTags::take`], by several threads: each owns some items.
    fn take_shared(&mut self, placement: &Placement, first: usize, outputs: &[Block]) {
        if self.tags.len() < outputs.len() {
            self.tags = Buffer::zeroed(outputs.len());
        }
        let tags = &mut self.tags[..outputs.len()];
        let tag_bytes = self.tag_bytes;
        tags.par_chunks_mut(TASK).zip(outputs.par_chunks(TASK)).enumerate().for_each(
            |(task, (tags, outputs))| {
                let instances = first + task * TASK..;
                for ((place, &output), instance) in tags.iter_mut().zip(outputs).zip(instances) {
                    let (item, set) = placement.item(instance).unwrap_or((0, NOTHING));
                    let is = u64::from(set != NOTHING);
                    *place = (Tag::new(cut(output, tag_bytes), set).0, item as u64 | is << 63);
                }
            },
        );
        // The items in runs of a power of two; each owner has some of the runs.
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
            0 => partition::NOBODY,
            _ => table[item(i) >> shift],
        };
        part(outputs.len(), owner_of, &mut owners, |(begin, items), numbers| {
            for numbers in numbers.chunks(LANES) {
                for &i in numbers {
                    prefetch(items, item(i) - *begin);
                }
                for &i in numbers {
                    items[item(i) - *begin] = tags[i].0;
                }
            }
        });
    }

    /// The table, once all instances were processed.
    pub(crate) fn finish(self) -> ReceiverTable {
        let n = self.items.len();
        // If an item's output was not processed, its tag is not random, and the parts differ in
        // size.
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
            // Capacity for all, so that the vector never reallocates.
            let waiting = || Zeroizing::new(Vec::with_capacity(partition::RUN.min(n)));
            let waiting: Vec<_> = mine.iter().map(|_| waiting()).collect();
            owners.push((first, indices, waiting));
        }
        let owner_of = |item: usize| table[Tag(items[item]).part()];
        part(n, owner_of, &mut owners, |(first, indices, waiting), mine| {
            for &item in mine {
                let tag = Tag(items[item]);
                waiting[tag.part() - *first].push((tag.low(), item as u32));
            }
            for (index, waiting) in indices.iter_mut().zip(waiting) {
                index.insert_all(waiting);
                waiting.clear();
            }
        });
        ReceiverTable { items: self.items, parts, tag_bytes: self.tag_bytes }
    }
}

impl ReceiverTable {
    /// Step 5: the places of `tags` that match this party's items in set `set`, with these items.
    pub(crate) fn find(&self, set: usize, tags: &[u8]) -> Vec<(usize, usize)> {
        let found = self.find_all(&[(set, tags)]).into_iter();
        found.flat_map(|(_, found)| found).collect()
    }

    /// [`ReceiverTable::find`] for many tags at once: the matches, in runs, each with the index of
    /// its tags in `all`.
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

    /// [`ReceiverTable::find`] for some of the places.
    fn find_some(&self, set: usize, tags: &[u8], places: Range<usize>) -> Vec<(usize, usize)> {
        // Each step handles all places before the next step begins, so that its reads do not wait
        // for each other. Tags that pass the filter are kept without a branch.
        let mut passed = [(Block::ZERO, 0, 0); TASK];
        let mut count = 0;
        let tag_at = |place| Tag::new(read_cut(tags, self.tag_bytes, place), set);
        let mut ahead = places.clone().skip(AHEAD).map(tag_at);
        for place in places {
            if let Some(tag) = ahead.next() {
                self.parts[tag.part()].ask_filter(tag.low());
            }
            let tag = tag_at(place);
            passed[count] = (tag.0, place, 0);
            count += usize::from(self.parts[tag.part()].may_have(tag.low()));
        }
        let used = count;
        let mut ahead = passed[..used].iter().skip(AHEAD);
        let mut candidates = [(Block::ZERO, 0, 0); TASK];
        let mut count = 0;
        for &(tag, place, _) in &passed[..used] {
            if let Some(&(tag, ..)) = ahead.next() {
                self.parts[Tag(tag).part()].ask(tag.low());
            }
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
            // Another item with a similar tag may be the right one.
            let equal = |other: usize| self.items[other] == tag.0;
            if let Some(item) = self.parts[tag.part()].find(tag.low(), equal) {
                found.push((place, item));
            }
        }
        // The used entries, and the last one, which was written but not kept.
        passed[..TASK.min(used + 1)].iter_mut().zeroize();
        candidates[..count].iter_mut().zeroize();
        found
    }
}
