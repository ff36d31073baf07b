//! A set divided into bins by the digests of its items.

use std::ops::Range;

use volery_okvs::Bins;
use volery_primitives::Block;
use volery_primitives::pages::Buffer;
use zeroize::Zeroizing;

use super::Parameters;
use super::sort::{CHUNK, Sorted};
use crate::duplicates::check_duplicates;
use crate::error::{Error, Result};
use crate::items::{self, Items};
use crate::watch::{Phase, Watch};

/// The items of one party: bin after bin, each with space for the most items of a bin.
pub(crate) struct BinnedSet {
    capacity: usize,
    /// Items of each bin.
    counts: Vec<usize>,
    /// The digest of each item; later its output.
    pub(crate) blocks: Buffer<Block>,
    /// The number of each item.
    numbers: Buffer<u32>,
}

impl BinnedSet {
    /// Hashes the items under a salt that was drawn after they were fixed, and checks that they are
    /// distinct.
    ///
    /// # Errors
    /// [`Error::Duplicate`]; [`Error::Unplaced`] if a bin overflows, which has probability 2^-44.
    pub(crate) fn new(
        salt: &[u8; 32],
        items: &(impl Items + ?Sized),
        parameters: &Parameters,
        watch: &mut dyn Watch,
    ) -> Result<Self> {
        watch.begin(Phase::Hash, items.len() as u64);
        let mut binned = Self::empty(items.len(), parameters);
        let piece = items::piece(items.len());
        let mut digests = Zeroizing::new(vec![Block::ZERO; piece.min(items.len())]);
        for first in (0..items.len()).step_by(piece) {
            let digests = &mut digests[..piece.min(items.len() - first)];
            items::hash(salt, items, first, digests);
            binned.insert(first, digests)?;
            watch.done((first + digests.len()) as u64);
        }
        watch.begin(Phase::Encode, 0);
        for bin in 0..parameters.bins {
            let places = binned.places(bin);
            let numbers = &binned.numbers[places.clone()];
            check_duplicates(&binned.blocks[places], |place| numbers[place] as usize)?;
        }
        Ok(binned)
    }

    /// The set of these digests, which are distinct.
    ///
    /// # Errors
    /// [`Error::Unplaced`] if a bin overflows, which has probability 2^-44.
    pub(crate) fn of(digests: &[Block], parameters: &Parameters) -> Result<Self> {
        let mut binned = Self::empty(digests.len(), parameters);
        binned.insert(0, digests)?;
        Ok(binned)
    }

    fn empty(items: usize, parameters: &Parameters) -> Self {
        let capacity = parameters.capacity(items as u64);
        Self {
            capacity,
            counts: vec![0; parameters.bins],
            blocks: Buffer::zeroed(parameters.bins * capacity),
            numbers: Buffer::zeroed(parameters.bins * capacity),
        }
    }

    /// Adds items, whose numbers count from `first`.
    fn insert(&mut self, first: usize, digests: &[Block]) -> Result<()> {
        let capacity = self.capacity;
        let bins = Bins::new(self.counts.len(), capacity);
        for (number, &digest) in (first..).zip(digests) {
            let bin = bins.bin(digest);
            let count = &mut self.counts[bin];
            if *count == capacity {
                return Err(Error::Unplaced { attempts: 1 });
            }
            self.blocks[bin * capacity + *count] = digest;
            self.numbers[bin * capacity + *count] = number as u32;
            *count += 1;
        }
        Ok(())
    }

    /// The places of the items of a bin.
    pub(crate) fn places(&self, bin: usize) -> Range<usize> {
        let first = bin * self.capacity;
        first..first + self.counts[bin]
    }

    /// The blocks of the items of a bin.
    pub(crate) fn bin(&self, bin: usize) -> &[Block] {
        &self.blocks[self.places(bin)]
    }

    /// Like [`bin`](Self::bin).
    pub(crate) fn bin_mut(&mut self, bin: usize) -> &mut [Block] {
        let places = self.places(bin);
        &mut self.blocks[places]
    }

    /// The number of the item at a place.
    pub(crate) fn number(&self, place: usize) -> usize {
        self.numbers[place] as usize
    }

    /// Numbers of items, which are distinct, in ascending order.
    pub(crate) fn ascending(&self, numbers: impl ExactSizeIterator<Item = usize>) -> Vec<usize> {
        let mut ascending = Vec::with_capacity(numbers.len());
        let items = self.counts.iter().sum::<usize>();
        let mut marks = Zeroizing::new(vec![0_u64; items.div_ceil(64)]);
        for number in numbers {
            marks[number / 64] |= 1 << (number % 64);
        }
        for (first, &word) in (0..).step_by(64).zip(marks.iter()) {
            let mut left = word;
            while left != 0 {
                ascending.push(first + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
        ascending
    }

    /// All places with an item, in ascending order.
    pub(crate) fn all_places(&self) -> impl Iterator<Item = usize> {
        (0..self.counts.len()).flat_map(|bin| self.places(bin))
    }

    /// The blocks of all items in ascending order, with their places if `places` is as long as
    /// [`blocks`](Self::blocks) and not empty. They get into another order in both.
    pub(crate) fn sorted<'a>(&'a mut self, mut places: &'a mut [u32]) -> Sorted<'a> {
        let (mut chunks, mut rest, mut items) = (Vec::new(), &mut self.blocks[..], 0);
        for (bin, &count) in self.counts.iter().enumerate() {
            let mut own = places.split_off_mut(..self.capacity).unwrap_or_default();
            for (place, number) in own.iter_mut().zip(bin * self.capacity..) {
                *place = number as u32;
            }
            let mut blocks = rest.split_off_mut(..self.capacity).unwrap_or_default();
            blocks = &mut blocks[..count];
            while !blocks.is_empty() {
                let length = blocks.len().min(CHUNK);
                let chunk = blocks.split_off_mut(..length).unwrap_or_default();
                chunks.push((chunk, own.split_off_mut(..length).unwrap_or_default()));
            }
            items += count;
        }
        Sorted::new(chunks, items)
    }
}
