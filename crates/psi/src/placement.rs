//! What the receiver computes: where its items lie, and which of the sender's outputs are its own. Nothing here talks.

use rayon::prelude::*;
use volery_primitives::Block;
use volery_primitives::cuckoo::{FUNCTIONS, Full, Hasher, Table};
use volery_primitives::pages::Buffer;
use zeroize::Zeroizing;

use crate::agree::Agreement;
use crate::error::{Error, Result};
use crate::index::{Index, LANES};
use crate::items::input;
use crate::params::Parameters;

/// Tables that are tried, each with new hash functions.
pub(crate) const ATTEMPTS: u8 = 8;

/// Outputs that one thread looks up at a time.
const TASK: usize = 1 << 10;

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

    /// The set of outputs in which to look for the item at an instance.
    fn set(&self, instance: usize) -> Option<usize> {
        self.item(instance).map(|(_, set)| set)
    }

    /// The inputs of the OPRF for the instances from `first` on: `y | z(y)` in a bin, `y` in the stash, zero in an empty
    /// place. (The sender never asks a bin for an input whose hash index is 0.)
    pub(crate) fn inputs(&self, digests: &[Block], first: usize, out: &mut [Block]) {
        out.par_chunks_mut(TASK)
            .enumerate()
            .for_each(|(task, out)| {
                let instances = first + task * TASK..;
                for (instances, out) in instances.step_by(LANES).zip(out.chunks_mut(LANES)) {
                    // Where the items lie is looked up for all before their digests are read: those reads do not wait for
                    // each other, nor for a branch.
                    let mut found = [None; LANES];
                    for (found, instance) in found[..out.len()].iter_mut().zip(instances..) {
                        *found = self.item(instance);
                    }
                    let mut gathered = [Block::ZERO; LANES];
                    for (gathered, found) in gathered.iter_mut().zip(&found[..out.len()]) {
                        *gathered = digests[found.map_or(0, |(item, _)| item)];
                    }
                    for ((out, found), digest) in out.iter_mut().zip(found).zip(gathered) {
                        *out = match found {
                            Some((_, set)) => input(digest, set),
                            None => Block::ZERO,
                        };
                    }
                }
            });
    }
}

/// The receiver's outputs of the OPRF, to be found among the sender's.
pub(crate) struct Own {
    /// What the sender sends of the output of each instance, if it has the same item.
    tags: Buffer<Block>,
    /// The instances by the first bits of their tags, for each of the sets.
    sets: Vec<Index>,
    tag_bytes: usize,
}

impl Own {
    pub(crate) fn new(placement: &Placement, parameters: &Parameters) -> Self {
        let mut sizes = vec![0; parameters.sets()];
        for (_, set) in (0..parameters.instances()).filter_map(|i| placement.item(i)) {
            sizes[set] += 1;
        }
        Self {
            tags: Buffer::zeroed(parameters.instances()),
            sets: sizes.into_iter().map(Index::for_items).collect(),
            tag_bytes: parameters.tag,
        }
    }

    /// Takes the tags of the instances from `first` on, given as the blocks they begin.
    pub(crate) fn take(&mut self, placement: &Placement, first: usize, outputs: &[Block]) {
        let tags = &mut self.tags[first..][..outputs.len()];
        for (tag, &output) in tags.iter_mut().zip(outputs) {
            *tag = cut(output, self.tag_bytes);
        }
        let tags = &*tags;
        // Every table is one thread's, which passes over the instances of the others.
        self.sets
            .par_iter_mut()
            .enumerate()
            .for_each(|(set, index)| {
                let mut waiting = Zeroizing::new(Vec::with_capacity(LANES));
                for (instance, tag) in (first..).zip(tags) {
                    if placement.set(instance) == Some(set) {
                        waiting.push((tag.low(), instance));
                    }
                    if waiting.len() == LANES {
                        insert_all(index, &mut waiting);
                    }
                }
                insert_all(index, &mut waiting);
            });
    }

    /// Step 5: the places of `tags`, `tag` bytes each, that are this party's in set `set`, with the instances they
    /// belong to.
    pub(crate) fn find(&self, set: usize, tags: &[u8]) -> Vec<(usize, usize)> {
        tags.par_chunks(TASK * self.tag_bytes)
            .enumerate()
            .flat_map_iter(|(task, tags)| {
                let mut found = Vec::new();
                for (lane, tags) in tags.chunks(LANES * self.tag_bytes).enumerate() {
                    self.find_some(&self.sets[set], tags, |place, instance| {
                        found.push((task * TASK + lane * LANES + place, instance));
                    });
                }
                found
            })
            .collect()
    }

    /// [`Own::find`] for at most [`LANES`] tags.
    fn find_some(&self, set: &Index, tags: &[u8], mut found: impl FnMut(usize, usize)) {
        let (mut blocks, mut hashes) = ([Block::ZERO; LANES], [0; LANES]);
        let n = tags.len() / self.tag_bytes;
        let lanes = blocks.iter_mut().zip(&mut hashes);
        for ((block, hash), tag) in lanes.zip(tags.chunks_exact(self.tag_bytes)) {
            let mut bytes = [0; 16];
            bytes[..tag.len()].copy_from_slice(tag);
            *block = Block::from_bytes(bytes);
            *hash = block.low();
        }
        set.load(&hashes[..n]);
        let (mut candidates, mut count) = ([(0, 0); LANES], 0);
        for (place, &hash) in hashes[..n].iter().enumerate() {
            if let Some(instance) = set.candidate(hash) {
                candidates[count] = (place, instance);
                count += 1;
            }
        }
        let candidates = &candidates[..count];
        let mut own = [Block::ZERO; LANES];
        for (own, &(_, instance)) in own.iter_mut().zip(candidates) {
            *own = self.tags[instance];
        }
        for (&(place, instance), own) in candidates.iter().zip(own) {
            let block = blocks[place];
            let instance = match own == block {
                true => Some(instance),
                // Another one with a similar hash may be meant.
                false => set.find(hashes[place], |other| self.tags[other] == block),
            };
            if let Some(instance) = instance {
                found(place, instance);
            }
        }
    }
}

/// Inserts instances by the first bits of their tags. Two whose tags are equal are both kept.
fn insert_all(index: &mut Index, waiting: &mut Vec<(u64, usize)>) {
    let mut hashes = [0; LANES];
    for (hash, (first_bits, _)) in hashes.iter_mut().zip(&*waiting) {
        *hash = *first_bits;
    }
    index.load(&hashes[..waiting.len()]);
    for (hash, instance) in waiting.drain(..) {
        index.insert(hash, instance, |_| false);
    }
}

/// The first bytes of a block, and zeros.
pub(crate) fn cut(block: Block, bytes: usize) -> Block {
    block & Block::new(u128::MAX >> (128 - 8 * bytes))
}
