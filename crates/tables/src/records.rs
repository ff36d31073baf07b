//! The items of a whole table in memory, for checks: a run has its own, which it can divide.

use std::collections::HashMap;
use std::fmt;

use crate::error::Error;
use crate::payload::PayloadSchema;
use crate::reader::{Counts, Item, Reader, Reading};
use crate::table::Table;

/// The items of a table, and the item and the payload of each of its rows. `Debug` shows none.
pub struct Records {
    /// For each rule the distinct items, in the order of their first rows.
    pub items: Vec<Vec<Item>>,
    /// For each rule the item of each row, as an index into `items`; none if the row has no key by
    /// the rule.
    pub rows: Vec<Vec<Option<u32>>>,
    /// The payload of each row that is the first one of an item, and nothing for the others.
    pub payload: Vec<Vec<u8>>,
    /// The findings in the rows.
    pub counts: Counts,
    /// The description of [`Reader::key_description`](crate::Reader::key_description).
    pub key_description: String,
    /// The schema of the payload, if payload columns were named.
    pub payload_schema: Option<PayloadSchema>,
}

impl Records {
    /// Reads the keys of `table`, and its payload if payload columns are named. Rows with the same
    /// key are kept.
    ///
    /// # Errors
    /// If the table violates a rule of [the crate's documentation](crate#rules).
    pub fn read(table: &Table, reading: &Reading) -> Result<Self, Error> {
        let mut reader = Reader::new(table, reading)?;
        let rules = reading.rules.len();
        let (mut items, mut rows) = (vec![Vec::new(); rules], vec![Vec::new(); rules]);
        let mut places = vec![HashMap::new(); rules];
        let (mut payload, mut in_batch) = (Vec::new(), Vec::new());
        let mut scan = table.scan(&reader.columns())?;
        while let Some(batch) = scan.next()? {
            let mut is_first = vec![false; batch.rows.num_rows()];
            for rule in 0..rules {
                reader.items(&batch, rule, &mut in_batch)?;
                for (item, is_first) in in_batch.iter().zip(&mut is_first) {
                    rows[rule].push(item.map(|item| {
                        let next = items[rule].len() as u32;
                        let place = *places[rule].entry(item).or_insert(next);
                        if place == next {
                            items[rule].push(item);
                            *is_first = true;
                        }
                        place
                    }));
                }
            }
            for (row, is_first) in is_first.into_iter().enumerate() {
                let mut one = Vec::new();
                if is_first {
                    reader.payload(&batch, row, &mut one)?;
                }
                payload.push(one);
            }
        }
        Ok(Self {
            items,
            rows,
            payload,
            counts: reader.counts().clone(),
            key_description: reader.key_description(),
            payload_schema: reader.payload_schema().cloned(),
        })
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Records({} rows, ..)", self.counts.rows)
    }
}
