//! The work of a cluster on its own rows before and after the workers: items, digests, shards, and
//! matches.
//!
//! **Digest of a table.** A cluster has no order of rows, and one table may be in any partitions,
//! so the rows are hashed in the order of their own hashes:
//!
//! ```text
//! each row: h = BLAKE3(items, payload, value and group of the row)
//! slice s, of 256: the rows whose h begins with the byte s, ascending; equal rows stay
//!                  d_s = BLAKE3(h of each row)
//! the table:       RandomOracle(d_0, rows of slice 0, .., d_255, rows of slice 255)
//! ```
//!
//! A slice is sorted where the engine brings its rows together: 32 bytes of each row move. Every
//! step is a collision-resistant function of 256 bits of a list that the sorted rows determine, so
//! two multisets of rows with one digest give a collision of BLAKE3. A sum or XOR of the rows'
//! hashes would need no sorting and would bind nobody: linear algebra and generalised birthday
//! searches find collisions of those. A sum of points of an elliptic curve would bind, and each row
//! would cost far more than in the protocol.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder, Int32Builder, Int64Builder};
use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use volery_matching::steps::{Entry, FRAME, buckets, hex};
use volery_matching::totals::{self, LONGEST_KEYS, RowReader};
use volery_matching::{Error, Result};
use volery_primitives::ro::{RandomOracle, StreamHash};
use volery_psi::lookup::MAX_VALUE;
use volery_tables::{Counts, Item, PayloadSchema, Problem, Reader, Reading, Table};

use crate::error::misbehaved;
use crate::store::found_items;

/// Slices of a table's digest: the first byte of a row's hash is the number of one.
const SLICES: usize = 256;

/// Bytes of a row's hash.
const HASH: usize = 32;

/// Bytes of an item.
const ITEM: i32 = size_of::<Item>() as i32;

/// The items of the rows of a table that comes in pieces.
pub struct Items {
    reading: Reading,
    description: String,
    payload: Option<String>,
    counts: Option<Counts>,
    totals: Option<totals::Settings>,
}

impl Items {
    /// For tables with this schema.
    ///
    /// # Errors
    /// If `reading` does not go with the schema.
    pub fn new(schema: SchemaRef, reading: Reading) -> Result<Self> {
        let table = Table::from_batches(schema, Vec::new())?;
        let reader = Reader::new(&table, &reading)?;
        let (description, payload) = (reader.key_description(), reader.payload_schema());
        let payload = payload.map(PayloadSchema::line);
        Ok(Self { reading, description, payload, counts: None, totals: None })
    }

    /// For tables with this schema in a run for totals; `reading` has one rule.
    ///
    /// # Panics
    /// If there is another number of rules, or columns of a payload.
    ///
    /// # Errors
    /// If `reading` or the columns of `settings` do not go with the schema.
    pub fn for_totals(
        schema: SchemaRef,
        reading: Reading,
        settings: &totals::Settings,
    ) -> Result<Self> {
        assert!(reading.rules.len() == 1 && reading.values.is_empty(), "totals are by one key");
        let columns = [&settings.column, &settings.group_by];
        let texts = columns.into_iter().flatten().cloned().collect();
        let items = Self::new(schema, Reading { texts, ..reading })?;
        if items.description.len() > LONGEST_KEYS {
            return Err(Error::LongKeys);
        }
        Ok(Self { totals: Some(settings.clone()), ..items })
    }

    /// Types and normalisers of the keys, for people and for the comparison with the peer's.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The columns of the payload in a line, if there are any.
    #[must_use]
    pub fn payload(&self) -> Option<&str> {
        self.payload.as_deref()
    }

    /// Counts of empty, malformed and changed keys so far.
    #[must_use]
    pub fn counts(&self) -> Option<&Counts> {
        self.counts.as_ref()
    }

    /// For each row: `item_0`, `item_1`, .., 16 bytes by each rule or null; `payload`, if columns
    /// were named; for totals `value` in units of the last decimal place, and `group`, the number
    /// of one or -1, as far as this side has them, null without an item; and `digest`, a hash of
    /// all of them, for [`Slices`].
    ///
    /// # Errors
    /// If a row violates the rules for empty and malformed keys, its payload is too long, or its
    /// value is no number within the bound. Rows are counted from 1 in this table.
    pub fn batch(&mut self, table: &Table) -> Result<RecordBatch> {
        let mut reader = Reader::new(table, &self.reading)?;
        let rules = self.reading.rules.len();
        let new = || FixedSizeBinaryBuilder::new(ITEM);
        let mut columns: Vec<_> = (0..rules).map(|_| new()).collect();
        let mut payloads = BinaryBuilder::new();
        let mut hashes = FixedSizeBinaryBuilder::new(HASH as i32);
        let mut items = vec![Vec::new(); rules];
        let (mut payload, mut hashed) = (Vec::new(), Vec::new());
        let settings = self.totals.as_ref();
        let value_column = settings.and_then(|one| one.column.as_ref().map(|_| 0));
        let group_column =
            settings.and_then(|one| one.group_by.as_ref().map(|_| self.reading.texts.len() - 1));
        let mut of_row = settings.map(|settings| RowReader::new(table, settings));
        let (mut values, mut groups) = (Int64Builder::new(), Int32Builder::new());
        let mut scan = table.scan(&reader.columns())?;
        while let Some(batch) = scan.next()? {
            for (rule, items) in items.iter_mut().enumerate() {
                reader.items(&batch, rule, items)?;
            }
            let texts = |which: Option<usize>| which.map(|which| reader.texts(&batch, which));
            let of_values = texts(value_column).transpose()?;
            let of_groups = texts(group_column).transpose()?;
            for i in 0..batch.rows.num_rows() {
                hashed.clear();
                for (items, column) in items.iter().zip(&mut columns) {
                    hashed.push(u8::from(items[i].is_some()));
                    match &items[i] {
                        Some(item) => {
                            hashed.extend_from_slice(item);
                            column.append_value(item).expect("an item has 16 bytes");
                        }
                        None => column.append_null(),
                    }
                }
                if self.payload.is_some() {
                    payload.clear();
                    reader.payload(&batch, i, &mut payload)?;
                    if payload.len() + FRAME > MAX_VALUE {
                        let (path, row) = table.place(batch.row_number(i));
                        let limit = (MAX_VALUE - FRAME) as u64;
                        let problem = Problem::ValueTooLong { row, limit };
                        return Err(volery_tables::Error::new(path, problem).into());
                    }
                    // mutant(digest-payload): drop
                    hashed.extend_from_slice(&payload);
                    payloads.append_value(&payload);
                }
                if let Some(of_row) = &mut of_row {
                    let has_item = items[0][i].is_some();
                    if let Some(texts) = &of_values {
                        let number = batch.row_number(i);
                        let value = match has_item {
                            true => Some(of_row.value(texts, i, number)?),
                            false => None,
                        };
                        hashed.extend_from_slice(&value.unwrap_or(0).to_le_bytes());
                        values.append_option(value);
                    }
                    if let Some(texts) = &of_groups {
                        let group = has_item.then(|| of_row.group(texts, i));
                        hashed.extend_from_slice(&group.unwrap_or(-1).to_le_bytes());
                        groups.append_option(group);
                    }
                }
                let mut hash = StreamHash::default();
                hash.update(&hashed);
                let hash: [u8; HASH] = hash.finish32();
                hashes.append_value(hash).expect("a hash has 32 bytes");
            }
        }
        self.add(reader.counts());
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        let mut push = |name: String, array: ArrayRef, null| {
            fields.push(Field::new(name, array.data_type().clone(), null));
            arrays.push(array);
        };
        for (rule, mut column) in columns.into_iter().enumerate() {
            push(format!("item_{rule}"), Arc::new(column.finish()), true);
        }
        if self.payload.is_some() {
            push("payload".to_owned(), Arc::new(payloads.finish()), false);
        }
        if value_column.is_some() {
            push("value".to_owned(), Arc::new(values.finish()), true);
        }
        if group_column.is_some() {
            push("group".to_owned(), Arc::new(groups.finish()), true);
        }
        push("digest".to_owned(), Arc::new(hashes.finish()), false);
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        Ok(rows.expect("all columns have a value for each row"))
    }

    fn add(&mut self, more: &Counts) {
        let Some(counts) = &mut self.counts else {
            self.counts = Some(more.clone());
            return;
        };
        counts.rows += more.rows;
        for (all, more) in counts.rules.iter_mut().zip(&more.rules) {
            all.keys += more.keys;
            all.empty += more.empty;
            all.malformed += more.malformed;
            all.changed += more.changed;
        }
    }
}

/// Calls `each` on the values of a column of bytes; false if it is of another kind.
fn each_value(column: &dyn Array, mut each: impl FnMut(&[u8])) -> bool {
    let all = 0..column.len();
    match column.data_type() {
        DataType::FixedSizeBinary(_) => {
            let values = column.as_fixed_size_binary();
            all.for_each(|i| each(values.value(i)));
        }
        DataType::Binary => {
            let values = column.as_binary::<i32>();
            all.for_each(|i| each(values.value(i)));
        }
        DataType::LargeBinary => {
            let values = column.as_binary::<i64>();
            all.for_each(|i| each(values.value(i)));
        }
        _ => return false,
    }
    true
}

/// A slice of a table's digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its number: the first byte of its rows' hashes.
    pub number: u8,
    /// The hash of its rows' hashes.
    pub hash: [u8; HASH],
    /// Its rows.
    pub rows: u64,
}

/// Hashes whole slices of a table's digest, from the rows' hashes in ascending order.
#[derive(Default)]
pub struct Slices {
    done: Vec<Slice>,
    open: StreamHash,
    rows: u64,
    last: Option<[u8; HASH]>,
}

impl Slices {
    /// Adds the hashes of rows: a column `digest` that [`Items::batch`] made. False, and the object
    /// is of no use any more, if it is none, or not in ascending order.
    #[must_use]
    pub fn add(&mut self, hashes: &dyn Array) -> bool {
        let mut ascends = hashes.null_count() == 0;
        let is_of_bytes = each_value(hashes, |hash| {
            let Ok(hash) = <[u8; HASH]>::try_from(hash) else {
                ascends = false;
                return;
            };
            if let Some(last) = self.last {
                ascends &= last <= hash;
                if last[0] != hash[0] {
                    self.end();
                }
            }
            self.open.update(&hash);
            self.rows += 1;
            self.last = Some(hash);
        });
        // mutant(digest-order): `ascends` => `true`
        ascends && is_of_bytes
    }

    /// The slices. Each is whole only if all of its rows were added.
    #[must_use]
    pub fn finish(mut self) -> Vec<Slice> {
        self.end();
        self.done
    }

    fn end(&mut self) {
        let Some(last) = self.last.take() else {
            return;
        };
        self.done.push(Slice {
            number: last[0],
            hash: std::mem::take(&mut self.open).finish32(),
            rows: std::mem::take(&mut self.rows),
        });
    }
}

/// The digest of a table and its number of rows, from all slices in any order, without empty ones;
/// `None` if a slice comes twice: its rows were not together.
#[must_use]
pub fn digest(slices: &[Slice]) -> Option<(String, u64)> {
    let mut all = [None; SLICES];
    for slice in slices {
        // mutant(digest-twice): false
        if all[usize::from(slice.number)].replace(slice).is_some() {
            return None;
        }
    }
    let mut oracle = RandomOracle::new("volery matching: digest of a table");
    let mut rows = 0;
    for slice in all {
        let (hash, count) = slice.map_or(([0; HASH], 0), |slice| (slice.hash, slice.rows));
        // mutant(digest-rows): drop
        oracle.absorb(&hash).absorb_u64(count);
        rows += count;
    }
    Some((hex(&oracle.finish32()), rows))
}

/// The shards of items, under the key of a manifest; `None` if the column does not hold items.
#[must_use]
pub fn shards(key: &[u8; 32], count: u32, items: &dyn Array) -> Option<Vec<u32>> {
    let mut entries = Vec::with_capacity(items.len());
    let mut are_items = true;
    let is_of_bytes = each_value(items, |bytes| match bytes.try_into() {
        Ok(item) => entries.push(Entry { item, place: 0 }),
        Err(_) => are_items = false,
    });
    (is_of_bytes && are_items).then(|| buckets(key, &entries, count))
}

/// The matches that a store kept, as rows: `item`, and the columns of the payload, which has this
/// line of names and types; and the number of values that are none of their columns, and null.
///
/// # Errors
/// If the bytes are cut short.
pub fn found(bytes: &[u8], payload: Option<&str>) -> Result<(RecordBatch, u64)> {
    let all = found_items(bytes)?;
    let mut items = FixedSizeBinaryBuilder::with_capacity(all.len(), ITEM);
    for (item, _) in &all {
        items.append_value(item).expect("an item has 16 bytes");
    }
    let mut fields = vec![Arc::new(Field::new("item", DataType::FixedSizeBinary(ITEM), false))];
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(items.finish())];
    let mut refused = 0;
    if let Some(line) = payload {
        let schema = PayloadSchema::parse(line);
        let schema = schema.map_err(|_| misbehaved("its list of columns is malformed"))?;
        let values = all.iter().map(|(_, payload)| Some(*payload));
        arrays.extend(schema.decode(values, &mut |_, _, _| refused += 1));
        fields.extend(schema.fields().iter().cloned());
    }
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
    Ok((rows.expect("all columns have a value for each match"), refused))
}
