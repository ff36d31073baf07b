//! Selection of the rows that become items: every row with a key, once.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use crate::error::Problem;
use crate::key::{self, Cell, KeyType, Outcome};
use crate::records::{Counts, Duplicates, EmptyKeys, Reading};
use crate::strings::ByteStrings;

/// The maximum number of rows of a file: items are counted in 32 bits.
const MOST_ROWS: u64 = u32::MAX as u64;

/// Takes the rows of a file one by one and keeps the keys.
///
/// A key is built at the end of the arena of kept keys and removed if its row is left out, so there
/// is no second copy. The table of keys holds indices into the arena, hashed with a key drawn for
/// this run. Each index is stored with half of its hash: without it, growing the table would hash
/// every key again, and every comparison would read a key.
pub(crate) struct Collector {
    duplicates: Duplicates,
    empty_keys: EmptyKeys,
    /// The names of the key columns, for messages, and their types.
    names: Vec<String>,
    types: Vec<KeyType>,
    keys: ByteStrings,
    values: Option<ByteStrings>,
    /// The row of each item, from the first time that it is not simply the next row.
    rows: Option<Vec<u32>>,
    counts: Counts,
    /// Half of the hash of a key, and its item.
    table: HashTable<(u32, u32)>,
    hasher: RandomState,
}

/// The rows collected from a file.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) keys: ByteStrings,
    pub(crate) values: Option<ByteStrings>,
    /// The row of each item, counted from 1, unless item `i` comes from row `i + 1` throughout.
    pub(crate) rows: Option<Vec<u32>>,
    pub(crate) counts: Counts,
}

impl Collector {
    pub(crate) fn new(reading: &Reading, names: Vec<String>, types: Vec<KeyType>) -> Self {
        Self {
            duplicates: reading.duplicates,
            empty_keys: reading.empty_keys,
            names,
            types,
            keys: ByteStrings::default(),
            values: reading.value.is_some().then(ByteStrings::default),
            rows: None,
            counts: Counts::default(),
            table: HashTable::new(),
            hasher: RandomState::new(),
        }
    }

    /// Takes the next row: the cells of its key columns, which may be null. Returns whether the row
    /// was kept; then, if there is a value column, [`value`](Self::value) must follow.
    pub(crate) fn row<'a>(
        &mut self,
        cells: impl Iterator<Item = Option<Cell<'a>>>,
    ) -> Result<bool, Problem> {
        self.counts.rows += 1;
        let row = self.counts.rows;
        if row > MOST_ROWS {
            return Err(Problem::TooManyRows { limit: MOST_ROWS });
        }
        match (
            key::append_all(cells, &self.types, self.keys.open()),
            self.empty_keys,
        ) {
            (Outcome::Whole, _) => {}
            (Outcome::Empty(_), EmptyKeys::Skip) => {
                self.counts.empty += 1;
                self.leave_out();
                return Ok(false);
            }
            (Outcome::Empty(column), EmptyKeys::Error) => {
                let column = self.names[column].clone();
                return Err(Problem::EmptyKey { row, column });
            }
            (Outcome::Unreadable(column), _) => {
                return Err(Problem::Unreadable {
                    row,
                    column: self.names[column].clone(),
                    wanted: self.types[column],
                });
            }
        }
        let (keys, key) = (&self.keys, self.keys.opened());
        let short = self.hasher.hash_one(key) as u32;
        let hash = spread(short);
        let same = |&(h, i): &(u32, u32)| h == short && keys.get(i as usize) == key;
        if let Some(&(_, first)) = self.table.find(hash, same) {
            return match self.duplicates {
                Duplicates::Error => Err(Problem::DuplicateKey {
                    first: self.row_of(first as usize),
                    second: row,
                }),
                Duplicates::Dedup => {
                    self.counts.duplicates += 1;
                    self.leave_out();
                    Ok(false)
                }
            };
        }
        let item = self.keys.len() as u32;
        self.table
            .insert_unique(hash, (short, item), |&(h, _)| spread(h));
        self.keys.commit();
        if let Some(rows) = &mut self.rows {
            rows.push(row as u32);
        }
        self.counts.kept += 1;
        Ok(true)
    }

    /// Takes the value of the row that was just kept.
    ///
    /// # Panics
    /// If there is no value column.
    pub(crate) fn value(&mut self, value: &[u8], limit: u64) -> Result<(), Problem> {
        let found = value.len() as u64;
        if found > limit {
            let row = self.counts.rows;
            return Err(Problem::ValueTooLong { row, found, limit });
        }
        let values = self.values.as_mut();
        values
            .expect("value is called only if there is a value column")
            .push(value);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Collected {
        // The table is dropped first, so that its memory is free while the arena shrinks.
        drop(self.table);
        self.keys.shrink();
        if let Some(values) = &mut self.values {
            values.shrink();
        }
        Collected {
            keys: self.keys,
            values: self.values,
            rows: self.rows,
            counts: self.counts,
        }
    }

    fn leave_out(&mut self) {
        self.keys.roll_back();
        let kept = self.counts.kept as u32;
        self.rows.get_or_insert_with(|| (1..=kept).collect());
    }

    fn row_of(&self, item: usize) -> u64 {
        self.rows
            .as_ref()
            .map_or(item as u64 + 1, |rows| rows[item].into())
    }
}

/// Extends a hash of 32 bits to 64 bits: the table uses both ends of it.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use std::collections::HashMap;

    use super::*;

    fn collector(duplicates: Duplicates) -> Collector {
        let reading = Reading {
            duplicates,
            ..Reading::default()
        };
        Collector::new(&reading, vec!["key".to_owned()], vec![KeyType::Integer])
    }

    fn row(collector: &mut Collector, key: u64) -> Result<bool, Problem> {
        collector.row(std::iter::once(Some(Cell::Integer(key.into()))))
    }

    #[test]
    fn the_first_row_of_each_key_is_kept_at_every_size() {
        for n in [0u64, 1, 2, 127, 128, 129, 6_789, 100_003] {
            let mut collector = collector(Duplicates::Dedup);
            let mut first_rows = HashMap::new();
            let mut kept = Vec::new();
            for i in 1..=n {
                // Some keys occurred before.
                let key = (i * i).wrapping_mul(2_654_435_761) % n.max(3);
                let new = !first_rows.contains_key(&key);
                first_rows.entry(key).or_insert(i);
                assert_eq!(row(&mut collector, key).unwrap(), new);
                if new {
                    kept.push((i as u32, key.to_string()));
                }
            }
            let found = collector.finish();
            let rows = found.rows.unwrap_or_else(|| (1..=n as u32).collect());
            let keys = found.keys.iter().map(|key| key[9..].to_vec());
            let keys = keys.map(|key| String::from_utf8(key).unwrap());
            assert_eq!(rows.into_iter().zip(keys).collect::<Vec<_>>(), kept);
            assert_eq!(
                found.counts.rows,
                found.counts.kept + found.counts.duplicates
            );
        }
    }

    #[test]
    fn rows_are_counted_in_32_bits() {
        let mut collector = collector(Duplicates::Error);
        collector.counts.rows = MOST_ROWS - 1;
        assert!(row(&mut collector, 1).unwrap());
        let result = row(&mut collector, 2);
        assert!(matches!(
            result,
            Err(Problem::TooManyRows { limit: MOST_ROWS })
        ));
    }
}
