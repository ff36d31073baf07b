//! The items of a whole table in memory, for checks: a run has its own, which it can divide.

use std::collections::HashMap;

use crate::error::{Error, Problem, refuse};
use crate::payload::PayloadSchema;
use crate::reader::{Counts, Duplicates, Item, Reader, Reading};
use crate::table::Table;

/// The items of a table, and the item and the payload of each of its rows.
#[derive(Debug)]
pub struct Records {
    rules: Vec<RuleItems>,
    /// Of each row with a new item, in their order.
    payload: Vec<Vec<u8>>,
    counts: Counts,
    key_description: String,
    payload_schema: Option<PayloadSchema>,
}

/// The items that a rule finds.
#[derive(Default)]
struct RuleItems {
    items: Vec<Item>,
    places: HashMap<Item, u32>,
    /// The item of each row.
    rows: Vec<Option<u32>>,
    /// The row and the payload of each item: that of its first row.
    first: Vec<(u64, usize)>,
}

/// It shows no item.
impl std::fmt::Debug for RuleItems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RuleItems({}, ..)", self.items.len())
    }
}

impl Records {
    /// Reads the keys of `table`, and its payload if payload columns are named. `progress` is
    /// called from time to time with the number of bytes read and the total.
    ///
    /// # Errors
    /// If the table violates a rule of [the crate's documentation](crate#rules), or has more than
    /// 2^32 - 1 distinct keys by one rule.
    pub fn read(
        table: &Table,
        reading: &Reading,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, Error> {
        let mut reader = Reader::new(table, reading)?;
        let mut rules: Vec<_> = reading.rules.iter().map(|_| RuleItems::default()).collect();
        let mut items = vec![Vec::new(); rules.len()];
        let mut payload = Vec::new();
        let mut scan = table.scan(&reader.columns())?;
        while let Some(batch) = scan.next()? {
            for (rule, items) in items.iter_mut().enumerate() {
                reader.items(&batch, rule, items)?;
            }
            for row in 0..batch.rows.num_rows() {
                let number = batch.first_row + row as u64;
                let mut is_new = false;
                for (rule, items) in rules.iter_mut().zip(&items) {
                    let place = items[row].map(|item| (item, rule.places.get(&item)));
                    let place = match place {
                        None => None,
                        Some((item, None)) => {
                            let limit = u64::from(u32::MAX);
                            let what = format!("has more than {limit} distinct keys");
                            let many =
                                |_| table.error_at(number, |_| refuse(what, "split the input"));
                            let place = u32::try_from(rule.items.len()).map_err(many)?;
                            rule.places.insert(item, place);
                            rule.items.push(item);
                            rule.first.push((number, payload.len()));
                            is_new = true;
                            Some(place)
                        }
                        Some((_, Some(&place))) => match reading.duplicates {
                            Duplicates::Keep => Some(place),
                            Duplicates::Dedup => None,
                            Duplicates::Error => {
                                let first = rule.first[place as usize].0;
                                return Err(duplicate(table, first, number));
                            }
                        },
                    };
                    rule.rows.push(place);
                }
                if is_new {
                    let mut one = Vec::new();
                    reader.payload(&batch, row, &mut one)?;
                    payload.push(one);
                }
            }
            progress(batch.done_bytes, table.bytes());
        }
        Ok(Self {
            rules,
            payload,
            counts: reader.counts().clone(),
            key_description: reader.key_description(),
            payload_schema: reader.payload_schema().cloned(),
        })
    }

    /// The distinct items of a rule, counted from 0, in the order of their first rows.
    ///
    /// # Panics
    /// If there is no such rule; so do the other methods with a rule.
    pub fn items(&self, rule: usize) -> &[Item] {
        &self.rules[rule].items
    }

    /// The item of `row`, counted from 0, as an index into [`items`](Self::items); none if the row
    /// has no key by this rule, or was left out as a duplicate.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn item_of_row(&self, rule: usize, row: u64) -> Option<u32> {
        self.rules[rule].rows[row as usize]
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.counts.rows
    }

    /// The findings in the rows.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The description of [`Reader::key_description`](crate::Reader::key_description).
    pub fn key_description(&self) -> &str {
        &self.key_description
    }

    /// The schema of the payload, if payload columns were named.
    pub fn payload_schema(&self) -> Option<&PayloadSchema> {
        self.payload_schema.as_ref()
    }

    /// The payload of an item, which is that of its first row; empty if no payload columns were
    /// named.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn payload(&self, rule: usize, item: u32) -> &[u8] {
        &self.payload[self.rules[rule].first[item as usize].1]
    }
}

fn duplicate(table: &Table, first: u64, second: u64) -> Error {
    let (file, first) = table.place(first);
    let (other, _) = table.place(second);
    let first_file = (file != other).then(|| file.to_owned());
    table.error_at(second, |second| Problem::DuplicateKey { first, first_file, second })
}
