//! The items of one rule, or of one bucket of it: sorted, so that the rows of a key are side by
//! side.

use std::mem;
use std::ops::Range;

use rayon::prelude::*;
use volery_primitives::keyed::keyed_hashes;
use volery_primitives::{Block, prg::Prg};
use volery_psi::Items;
use volery_tables::{Duplicates, Item};
use zeroize::Zeroize;

use crate::error::{Error, Result};

/// The item of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Entry {
    /// The item.
    pub item: Item,
    /// The row, counted from 0; with payload, the index into the payload.
    pub place: u64,
}

/// Reserves memory for `more` values, and wipes what is left behind.
pub(crate) fn reserve<T: bytemuck::Pod>(all: &mut Vec<T>, more: usize) {
    if all.capacity() - all.len() < more {
        let mut longer = Vec::with_capacity((all.len() + more).max(2 * all.capacity()));
        longer.extend_from_slice(all);
        let mut left = mem::replace(all, longer);
        bytemuck::cast_slice_mut::<T, u8>(&mut left).zeroize();
    }
}

/// Payload of rows.
#[derive(Default)]
pub(crate) struct Payload {
    pub(crate) rows: Vec<u64>,
    /// Where each ends in `bytes`.
    pub(crate) ends: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Payload {
    pub(crate) fn push(&mut self, row: u64, bytes: &[u8]) {
        self.rows.push(row);
        reserve(&mut self.bytes, bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

/// Entries in any order, with their payload.
#[derive(Default)]
pub struct Rows {
    pub(crate) entries: Vec<Entry>,
    pub(crate) payload: Option<Payload>,
}

impl Rows {
    /// No rows.
    pub fn new(with_payload: bool) -> Self {
        Self { entries: Vec::new(), payload: with_payload.then(Payload::default) }
    }

    /// Adds a row.
    pub fn push(&mut self, item: Item, row: u64, payload: &[u8]) {
        let place = match &mut self.payload {
            None => row,
            Some(all) => {
                all.push(row, payload);
                all.rows.len() as u64 - 1
            }
        };
        reserve(&mut self.entries, 1);
        self.entries.push(Entry { item, place });
    }

    /// The row of an entry.
    pub fn row(&self, entry: &Entry) -> u64 {
        match &self.payload {
            None => entry.place,
            Some(payload) => payload.rows[entry.place as usize],
        }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        bytemuck::cast_slice_mut::<Entry, u8>(&mut self.entries).zeroize();
    }
}

/// The distinct items of some rows, ascending, and the rows of each.
pub struct Keys {
    rows: Rows,
    /// Where the entries of each item begin, and the number of all.
    starts: Vec<u32>,
    /// Rows whose key an earlier row has.
    pub(crate) duplicates: u64,
}

impl Keys {
    /// Sorts the rows and applies the policy for duplicates.
    ///
    /// # Errors
    /// If two rows have one key, and the policy forbids it.
    ///
    /// # Panics
    /// If there are `2^32` rows.
    pub fn new(mut rows: Rows, rule: usize, policy: Duplicates) -> Result<Self> {
        assert!(rows.entries.len() < u32::MAX as usize, "rows are counted in 32 bits");
        // Rows of one item stay in their order.
        rows.entries
            .par_sort_unstable_by_key(|entry| (u128::from_be_bytes(entry.item), entry.place));
        let all = rows.entries.len();
        if policy == Duplicates::Dedup {
            rows.entries.dedup_by_key(|entry| entry.item);
        }
        let mut starts = Vec::with_capacity(rows.entries.len() + 1);
        let mut item = None;
        for (i, entry) in rows.entries.iter().enumerate() {
            if item != Some(entry.item) {
                item = Some(entry.item);
                starts.push(i as u32);
            } else if policy == Duplicates::Error {
                return Err(Error::DuplicateKey {
                    rule: rule + 1,
                    first: rows.row(&rows.entries[i - 1]) + 1,
                    second: rows.row(entry) + 1,
                });
            }
        }
        let duplicates = (all - starts.len()) as u64;
        starts.push(rows.entries.len() as u32);
        Ok(Self { rows, starts, duplicates })
    }

    /// Number of distinct items.
    #[allow(clippy::len_without_is_empty, reason = "no caller asks for it")]
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn entries(&self, item: usize) -> &[Entry] {
        &self.rows.entries[self.starts[item] as usize..self.starts[item + 1] as usize]
    }

    /// An item.
    pub fn item(&self, item: usize) -> &Item {
        &self.entries(item)[0].item
    }

    /// The rows of an item, ascending.
    pub fn rows_of(&self, item: usize) -> impl Iterator<Item = u64> {
        self.entries(item).iter().map(|entry| self.rows.row(entry))
    }

    /// The payload of the first row of an item.
    pub(crate) fn payload(&self, item: usize) -> &[u8] {
        let payload = self.rows.payload.as_ref();
        payload.map_or(&[], |all| all.get(self.entries(item)[0].place as usize))
    }

    /// Row and payload of each row of an item, ascending.
    pub(crate) fn payloads_of(&self, item: usize) -> impl Iterator<Item = (u64, &[u8])> {
        let payload = self.rows.payload.as_ref();
        self.entries(item).iter().map(move |entry| {
            let bytes = payload.map_or(&[][..], |all| all.get(entry.place as usize));
            (self.rows.row(entry), bytes)
        })
    }

    /// Divides the items into buckets.
    pub(crate) fn into_rows(self) -> Rows {
        self.rows
    }
}

/// The bucket of each entry, under a key that both parties tossed.
pub fn buckets(key: &[u8; 32], entries: &[Entry], buckets: u32) -> Vec<u32> {
    /// Entries hashed by one thread at a time.
    const TASK: usize = 1 << 10;
    let mut out = vec![0; entries.len()];
    out.par_chunks_mut(TASK).zip(entries.par_chunks(TASK)).for_each(|(out, entries)| {
        let items: Vec<&[u8]> = entries.iter().map(|entry| &entry.item[..]).collect();
        let mut hashes = vec![Block::ZERO; items.len()];
        keyed_hashes(key, &items, &mut hashes);
        for (out, hash) in out.iter_mut().zip(hashes) {
            let uniform = u128::from(hash) >> 64;
            *out = ((uniform * u128::from(buckets)) >> 64) as u32;
        }
    });
    out
}

/// Divides rows into buckets.
pub(crate) fn divide(rows: &Rows, key: &[u8; 32], count: u32) -> Vec<Rows> {
    let mut divided: Vec<_> = (0..count).map(|_| Rows::new(rows.payload.is_some())).collect();
    for (entry, bucket) in rows.entries.iter().zip(buckets(key, &rows.entries, count)) {
        let payload = rows.payload.as_ref();
        let payload = payload.map_or(&[][..], |all| all.get(entry.place as usize));
        divided[bucket as usize].push(entry.item, rows.row(entry), payload);
    }
    divided
}

/// The set of one part of a run: some items of the keys, and random ones up to a size that says
/// nothing.
pub(crate) struct Set<'a> {
    keys: &'a Keys,
    /// The items that take part.
    taken: Vec<u32>,
    random: Vec<Item>,
}

impl<'a> Set<'a> {
    /// The items with a row for which `takes_part` is true, filled up to `size`.
    pub(crate) fn new(
        keys: &'a Keys,
        takes_part: impl Fn(u64) -> bool,
        size: u64,
        rng: &mut Prg,
    ) -> Result<Self> {
        let taken: Vec<u32> = (0..keys.len())
            .filter(|&item| keys.rows_of(item).any(&takes_part))
            .map(|item| item as u32)
            .collect();
        let missing = size.checked_sub(taken.len() as u64);
        let missing = missing.ok_or(Error::Overflow { capacity: size })?;
        let mut random = vec![Item::default(); missing as usize];
        rng.fill_bytes(bytemuck::cast_slice_mut(&mut random));
        Ok(Self { keys, taken, random })
    }

    /// The item of the keys at this place of the set, unless it is random.
    pub(crate) fn item_at(&self, place: usize) -> Option<usize> {
        self.taken.get(place).map(|&item| item as usize)
    }
}

impl Items for Set<'_> {
    fn len(&self) -> usize {
        self.taken.len() + self.random.len()
    }

    fn item(&self, place: usize) -> &[u8] {
        match self.taken.get(place) {
            Some(&item) => self.keys.item(item as usize),
            None => &self.random[place - self.taken.len()],
        }
    }
}

/// The payload of a [`Set`]: each with its length in front; the first one padded to the longest of
/// the whole table, so that all parts of a run say the same length.
pub(crate) struct Values<'a> {
    set: &'a Set<'a>,
    framed: Vec<u8>,
    ranges: Vec<Range<usize>>,
}

/// Bytes of the length in front of a payload.
pub const FRAME: usize = 2;

impl<'a> Values<'a> {
    /// `longest`: bytes of the longest payload of the table.
    pub(crate) fn new(set: &'a Set<'a>, longest: usize) -> Self {
        let sizes = set.taken.iter().map(|&item| FRAME + set.keys.payload(item as usize).len());
        // In full at once: a buffer that grows leaves copies behind.
        let mut framed = Vec::with_capacity(FRAME + longest + sizes.sum::<usize>());
        let mut ranges = Vec::with_capacity(set.taken.len());
        for &item in &set.taken {
            let start = framed.len();
            let payload = set.keys.payload(item as usize);
            framed.extend_from_slice(&(payload.len() as u16).to_le_bytes());
            framed.extend_from_slice(payload);
            if start == 0 {
                framed.resize(FRAME + longest, 0);
            }
            ranges.push(start..framed.len());
        }
        if set.taken.is_empty() {
            // A random item has it.
            framed.resize(FRAME + longest, 0);
        }
        Self { set, framed, ranges }
    }
}

impl Items for Values<'_> {
    fn len(&self) -> usize {
        self.set.len()
    }

    fn item(&self, place: usize) -> &[u8] {
        match self.ranges.get(place) {
            Some(range) => &self.framed[range.clone()],
            None if place == 0 => &self.framed,
            None => &[],
        }
    }
}

impl Drop for Values<'_> {
    fn drop(&mut self) {
        self.framed.zeroize();
    }
}

/// The payload in a value of the peer; none if the length in front is wrong.
pub(crate) fn unframe(value: &[u8]) -> Option<&[u8]> {
    let (length, rest) = value.split_first_chunk::<FRAME>()?;
    rest.get(..usize::from(u16::from_le_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use volery_primitives::Block;

    use super::*;

    /// Three items in rows 0 to 5, item 2 in rows 2 and 5; payload of as many bytes as the row.
    fn keys(with_payload: bool) -> Keys {
        let mut rows = Rows::new(with_payload);
        for (row, item) in [(0, 1), (2, 2), (3, 3), (5, 2)] {
            rows.push([item; 16], row, &vec![row as u8; row as usize]);
        }
        Keys::new(rows, 0, Duplicates::Keep).unwrap()
    }

    fn rng() -> Prg {
        Prg::new(Block::new(7))
    }

    #[test]
    fn a_set_has_the_items_that_take_part_and_random_ones_up_to_its_size() {
        let keys = keys(false);
        assert_eq!((keys.len(), keys.duplicates), (3, 1));
        // An item takes part with any of its rows.
        for (left_out, items) in [
            (vec![], vec![1, 2, 3]),
            (vec![2], vec![1, 2, 3]),
            (vec![2, 5], vec![1, 3]),
            (vec![0, 2, 3, 5], vec![]),
        ] {
            let takes_part = |row| !left_out.contains(&row);
            let set = Set::new(&keys, takes_part, 5, &mut rng()).unwrap();
            assert_eq!(set.len(), 5);
            for (place, item) in items.iter().enumerate() {
                assert_eq!(set.item(place), [*item; 16]);
                assert_eq!(set.item_at(place), Some(usize::from(*item) - 1));
            }
            for place in items.len()..5 {
                assert_eq!(set.item_at(place), None);
                assert!(set.item(place)[0] != set.item(place)[1] || set.item(place)[2] > 3);
            }
            let all: std::collections::HashSet<_> = (0..5).map(|place| set.item(place)).collect();
            assert_eq!(all.len(), 5);
        }
        assert!(matches!(
            Set::new(&keys, |_| true, 2, &mut rng()),
            Err(Error::Overflow { capacity: 2 })
        ));
    }

    #[test]
    fn every_set_has_a_value_of_the_greatest_length() {
        let keys = keys(true);
        for left_out in [vec![], vec![0], vec![0, 2, 3, 5]] {
            let set = Set::new(&keys, |row| !left_out.contains(&row), 4, &mut rng()).unwrap();
            let values = Values::new(&set, 9);
            let lengths = (0..4).map(|place| values.item(place).len());
            assert_eq!(lengths.max(), Some(FRAME + 9));
            for place in 0..4 {
                let Some(item) = set.item_at(place) else {
                    continue;
                };
                // That of the first row.
                let row = keys.rows_of(item).next().unwrap();
                assert_eq!(unframe(values.item(place)), Some(&vec![row as u8; row as usize][..]));
            }
        }
    }

    #[test]
    fn a_frame_shorter_than_it_says_is_none() {
        assert_eq!(unframe(&[1, 0, 7, 0]), Some(&[7][..]));
        for value in [&[][..], &[1], &[1, 0], &[255, 255, 7]] {
            assert_eq!(unframe(value), None);
        }
    }
}
