//! The items of a whole table in memory.

use crate::error::Error;
use crate::payload::PayloadSchema;
use crate::reader::{Counts, Item, Reading};
use crate::table::Table;

/// The items of a table, and the item of each of its rows.
///
/// An item costs 16 bytes, and a row 4 bytes for each rule, unless every row has an item of its own.
/// While the table is read, a table of about 10 bytes an item is added.
#[derive(Debug)]
pub struct Records;

impl Records {
    /// Reads the keys of `table`, and its payload if payload columns are named. `progress` is called
    /// from time to time with the number of bytes read and the total.
    ///
    /// # Errors
    /// If the table violates a rule of [the crate's documentation](crate#rules), or has 2^32 - 1
    /// different keys or more by one rule.
    pub fn read(
        table: &Table,
        reading: &Reading,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, Error> {
        let _ = (table, reading, progress);
        todo!()
    }

    /// The number of rules.
    pub fn rules(&self) -> usize {
        todo!()
    }

    /// The distinct items of a rule, counted from 0, in the order of their first rows.
    ///
    /// # Panics
    /// If there is no such rule; so do the other methods with a rule.
    pub fn items(&self, rule: usize) -> &[Item] {
        let _ = rule;
        todo!()
    }

    /// The item of `row`, counted from 0, as an index into [`items`](Self::items); none if the row
    /// has no key by this rule, or was left out as a duplicate.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn item_of_row(&self, rule: usize, row: u64) -> Option<u32> {
        let _ = (rule, row);
        todo!()
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        todo!()
    }

    /// What was found in the rows.
    pub fn counts(&self) -> &Counts {
        todo!()
    }

    /// The number of rows whose key by this rule an earlier row has.
    pub fn duplicates(&self, rule: usize) -> u64 {
        let _ = rule;
        todo!()
    }

    /// As [`Reader::key_description`](crate::Reader::key_description).
    pub fn key_description(&self) -> &str {
        todo!()
    }

    /// The schema of the payload, if payload columns were named.
    pub fn payload_schema(&self) -> Option<&PayloadSchema> {
        todo!()
    }

    /// The payload of an item, which is that of its first row; empty if no payload columns were
    /// named.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn payload(&self, rule: usize, item: u32) -> &[u8] {
        let _ = (rule, item);
        todo!()
    }
}
