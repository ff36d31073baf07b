//! What a cluster computes of its own rows before and after the workers: items, digests, shards,
//! and what was found.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder, Int32Builder, Int64Builder};
use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use volery_primitives::ro::StreamHash;
use volery_psi::lookup::MAX_VALUE;
use volery_tables::{Counts, Item, PayloadSchema, Problem, Reader, Reading, Table};

use crate::error::{Error, Result, misbehaved};
use crate::keys::{Entry, FRAME, buckets};
use crate::totals;
use crate::totals::side::{LONGEST_KEYS, RowReader};
use crate::worker::found_items;

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
        Ok(Self {
            reading,
            description,
            payload,
            counts: None,
            totals: None,
        })
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
        assert!(
            reading.rules.len() == 1 && reading.values.is_empty(),
            "totals are by one key"
        );
        let columns = [&settings.column, &settings.group_by];
        let texts = columns.into_iter().flatten().cloned().collect();
        let items = Self::new(schema, Reading { texts, ..reading })?;
        if items.description.len() > LONGEST_KEYS {
            return Err(Error::LongKeys);
        }
        Ok(Self {
            totals: Some(settings.clone()),
            ..items
        })
    }

    /// Types and normalisers of the keys, for people and for the comparison with the peer's.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The columns of the payload in a line, if there are any.
    #[must_use]
    pub fn payload(&self) -> Option<&str> {
        self.payload.as_deref()
    }

    /// What was found in the rows so far.
    #[must_use]
    pub fn counts(&self) -> Option<&Counts> {
        self.counts.as_ref()
    }

    /// For each row: `item_0`, `item_1`, .., 16 bytes by each rule or null; `payload`, if columns
    /// were named; for totals `value` in units of the last decimal place, and `group`, the number
    /// of one or -1, as far as this side has them, null without an item; and `digest_hi` and
    /// `digest_lo`, the first halves of a hash of all of them.
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
        let (mut high, mut low) = (Int64Builder::new(), Int64Builder::new());
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
                let hash = hash.finish32();
                let half = |at: usize| {
                    i64::from_le_bytes(*hash[at..].first_chunk().expect("it has 32 bytes"))
                };
                high.append_value(half(0));
                low.append_value(half(8));
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
        push("digest_hi".to_owned(), Arc::new(high.finish()), false);
        push("digest_lo".to_owned(), Arc::new(low.finish()), false);
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

/// The shards of items, under the key of a manifest; `None` if the column does not hold items.
#[must_use]
pub fn shards(key: &[u8; 32], count: u32, items: &dyn Array) -> Option<Vec<u32>> {
    let item = |bytes: &[u8]| {
        let item = bytes.try_into().ok()?;
        Some(Entry { item, place: 0 })
    };
    let all = 0..items.len();
    let entries: Option<Vec<_>> = match items.data_type() {
        DataType::FixedSizeBinary(ITEM) => {
            let items = items.as_fixed_size_binary();
            all.map(|i| item(items.value(i))).collect()
        }
        DataType::Binary => {
            let items = items.as_binary::<i32>();
            all.map(|i| item(items.value(i))).collect()
        }
        DataType::LargeBinary => {
            let items = items.as_binary::<i64>();
            all.map(|i| item(items.value(i))).collect()
        }
        _ => None,
    };
    Some(buckets(key, &entries?, count))
}

/// The matches that a store kept, as rows: `item`, and the columns of the payload, which has this
/// line of names and types.
///
/// # Errors
/// If the bytes are cut short, or a payload is not of these columns.
pub fn found(bytes: &[u8], payload: Option<&str>) -> Result<RecordBatch> {
    let all = found_items(bytes)?;
    let mut items = FixedSizeBinaryBuilder::with_capacity(all.len(), ITEM);
    for (item, _) in &all {
        items.append_value(item).expect("an item has 16 bytes");
    }
    let mut fields = vec![Arc::new(Field::new(
        "item",
        DataType::FixedSizeBinary(ITEM),
        false,
    ))];
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(items.finish())];
    if let Some(line) = payload {
        let other = |_| misbehaved("a value is not of the columns that it announced");
        let schema = PayloadSchema::parse(line).map_err(other)?;
        let values = all.iter().map(|(_, payload)| Some(*payload));
        arrays.extend(schema.decode(values).map_err(other)?);
        fields.extend(schema.fields().iter().cloned());
    }
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
    Ok(rows.expect("all columns have a value for each match"))
}
