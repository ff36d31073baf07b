//! The items of a whole table in memory.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::error::{Error, Problem};
use crate::payload::PayloadSchema;
use crate::reader::{Counts, Duplicates, Item, Reader, Reading};
use crate::strings::ByteStrings;
use crate::table::Table;

/// The items of a table, and the item of each of its rows.
///
/// An item costs 16 bytes, and a row 4 bytes for each rule, unless every row has an item of its
/// own. While the table is read, a table of about 10 bytes an item is added.
#[derive(Debug)]
pub struct Records {
    rules: Vec<RuleItems>,
    counts: Counts,
    key_description: String,
    payload_schema: Option<PayloadSchema>,
    /// The payload of the rows that are the first of an item by any rule.
    payload: ByteStrings,
}

/// The items that a rule finds.
#[derive(Default)]
struct RuleItems {
    items: Vec<Item>,
    /// The item of each row, or [`NONE`], from the first time that it is not simply the next one.
    rows: Option<Vec<u32>>,
    duplicates: u64,
    /// The payload of each item, by its index, from the first time that it is not simply the next
    /// one.
    payload: Option<Vec<u32>>,
}

/// It shows no item.
impl std::fmt::Debug for RuleItems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RuleItems({}, ..)", self.items.len())
    }
}

/// Stands for no item.
const NONE: u32 = u32::MAX;

/// The maximum number of items.
const MOST: usize = NONE as usize;

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
        let rules = reading.rules.len();
        let mut found: Vec<RuleItems> = (0..rules).map(|_| RuleItems::default()).collect();
        let mut tables: Vec<HashTable<u32>> = (0..rules).map(|_| HashTable::new()).collect();
        let mut payload = ByteStrings::default();
        let mut items = vec![Vec::new(); rules];
        let mut scan = table.scan(&reader.columns())?;
        while let Some(batch) = scan.next()? {
            for (rule, items) in items.iter_mut().enumerate() {
                reader.items(&batch, rule, items)?;
            }
            for row in 0..batch.rows.num_rows() {
                let number = batch.first_row + row as u64;
                let mut is_kept = false;
                for ((found, hashes), items) in found.iter_mut().zip(&mut tables).zip(&items) {
                    let first = found.add(hashes, items[row], number, payload.len());
                    match first.map_err(|limit| {
                        let limit = limit as u64;
                        table.error_at(number, |_| Problem::TooManyKeys { limit })
                    })? {
                        Addition::New => is_kept = true,
                        Addition::Nothing => {}
                        Addition::Old(item) => match reading.duplicates {
                            Duplicates::Keep => found.map(number, item),
                            Duplicates::Dedup => found.map(number, NONE),
                            Duplicates::Error => {
                                let first = found.first_row(item, number);
                                return Err(duplicate(table, first, number));
                            }
                        },
                    }
                }
                if is_kept && reader.payload_schema().is_some() {
                    reader.payload(&batch, row, payload.open())?;
                    payload.commit();
                }
            }
            progress(batch.done_bytes, table.bytes());
        }
        for found in &mut found {
            found.items.shrink_to_fit();
        }
        payload.shrink();
        Ok(Self {
            rules: found,
            counts: reader.counts().clone(),
            key_description: reader.key_description(),
            payload_schema: reader.payload_schema().cloned(),
            payload,
        })
    }

    /// The number of rules.
    pub fn rules(&self) -> usize {
        self.rules.len()
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
        assert!(row < self.counts.rows, "there is no row {row}");
        let item = match &self.rules[rule].rows {
            Some(rows) => rows[row as usize],
            None => row as u32,
        };
        (item != NONE).then_some(item)
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.counts.rows
    }

    /// The findings in the rows.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The number of rows whose key by this rule an earlier row has.
    pub fn duplicates(&self, rule: usize) -> u64 {
        self.rules[rule].duplicates
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
        let found = &self.rules[rule];
        assert!((item as usize) < found.items.len(), "there is no item {item}");
        if self.payload_schema.is_none() {
            return &[];
        }
        let place = found.payload.as_ref().map_or(item, |places| places[item as usize]);
        self.payload.get(place as usize)
    }
}

enum Addition {
    New,
    Old(u32),
    Nothing,
}

impl RuleItems {
    /// Adds the item of `row`; `payload` is the index of its payload if it is new. The row of an
    /// old item is not mapped yet.
    fn add(
        &mut self,
        hashes: &mut HashTable<u32>,
        item: Option<Item>,
        row: u64,
        payload: usize,
    ) -> Result<Addition, usize> {
        let Some(item) = item else {
            self.map(row, NONE);
            return Ok(Addition::Nothing);
        };
        let items = &self.items;
        let same = |&other: &u32| items[other as usize] == item;
        match hashes.entry(hash(&item), same, |&other| hash(&items[other as usize])) {
            Entry::Occupied(entry) => {
                self.duplicates += 1;
                Ok(Addition::Old(*entry.get()))
            }
            Entry::Vacant(entry) => {
                let index = self.items.len();
                if index == MOST || payload > MOST {
                    return Err(MOST);
                }
                entry.insert(index as u32);
                self.items.push(item);
                self.map(row, index as u32);
                if payload != index && self.payload.is_none() {
                    self.payload = Some((0..index as u32).collect());
                }
                if let Some(places) = &mut self.payload {
                    places.push(payload as u32);
                }
                Ok(Addition::New)
            }
        }
    }

    /// Records the item of `row`, the next one.
    fn map(&mut self, row: u64, item: u32) {
        if u64::from(item) != row && self.rows.is_none() {
            self.rows = Some((0..row as u32).collect());
        }
        if let Some(rows) = &mut self.rows {
            rows.push(item);
        }
    }

    /// The first row of an item, which is before `row`.
    fn first_row(&self, item: u32, row: u64) -> u64 {
        let rows = self.rows.as_ref();
        let place = rows.and_then(|rows| rows.iter().position(|&found| found == item));
        place.map_or(u64::from(item), |place| place as u64).min(row)
    }
}

/// An item is a hash already.
fn hash(item: &Item) -> u64 {
    u64::from_le_bytes([item[0], item[1], item[2], item[3], item[4], item[5], item[6], item[7]])
}

fn duplicate(table: &Table, first: u64, second: u64) -> Error {
    let (file, first) = table.place(first);
    let (other, _) = table.place(second);
    let first_file = (file != other).then(|| file.to_owned());
    table.error_at(second, |second| Problem::DuplicateKey { first, first_file, second })
}
