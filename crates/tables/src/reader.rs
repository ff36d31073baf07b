//! Reading the keys and the payload of the rows of a table.

mod lint;

use std::ops::AddAssign;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::FieldRef;
use rayon::prelude::*;

use crate::cell::{Cell, append_text, cell, check_text, key_type, plain};
use crate::error::{Error, Problem, Result};
use crate::key::{self, KeyType};
use crate::normal::{Normaliser, Outcome};
use crate::payload::PayloadSchema;
use crate::rule::{self, KeyColumn, Rule};
use crate::table::{Batch, Table};

pub use lint::{ColumnLint, Finding, Lint, NAMED_ROWS, RuleLint};

/// The unit of matching: the first 16 bytes of BLAKE3, in `derive_key` mode with the context
/// `volery 2026 item`, of [the key](crate#keys) of a row by one rule.
pub type Item = [u8; 16];

/// The context that BLAKE3 derives items in.
const CONTEXT: &str = "volery 2026 item";

/// The rows of a batch that one thread takes at a time.
const ROWS: usize = 1024;

/// How to read the keys of a table. The default has no rule, which is an error: set `rules`.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The rules, best first. With more than one, a row whose key is empty by a rule has no part in
    /// that rule, whatever `empty_keys` is.
    pub rules: Vec<Rule>,
    /// The columns of the payload, by their names.
    pub values: Vec<String>,
    /// Columns whose fields are read as text, by their names.
    pub texts: Vec<String>,
    /// The policy for a row whose key an earlier row has.
    pub duplicates: Duplicates,
    /// Leaves out the rows of each key that more rows than this have: placeholders.
    pub drop_repeated: Option<u64>,
    /// The policy for a row without a key.
    pub empty_keys: EmptyKeys,
    /// The policy for a row with a key column that cannot be read as its type, or that a normaliser
    /// refuses.
    pub malformed: Malformed,
}

/// The policy for a row whose key an earlier row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duplicates {
    /// It is a row of the same item.
    #[default]
    Keep,
    /// It is an error.
    Error,
    /// It has no item: the first row of each key is kept.
    Dedup,
}

/// The policy for a row in which a key column is empty or null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmptyKeys {
    /// It is an error.
    #[default]
    Error,
    /// It is left out, and matches nothing.
    Skip,
}

/// The policy for a row with a malformed key column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Malformed {
    /// It is an error.
    #[default]
    Error,
    /// It is left out, and matches nothing.
    Skip,
}

/// The findings in the rows that were read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// All rows except headers.
    pub rows: u64,
    /// The findings by each rule.
    pub rules: Vec<RuleCounts>,
}

/// The findings by one rule in the rows that were read. Each row is in one of `keys`, `empty`,
/// `malformed` and `repeated`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleCounts {
    /// The rows with a key.
    pub keys: u64,
    /// The rows in which a key column is empty or null, also after the normalisers.
    pub empty: u64,
    /// The rows with a malformed key column.
    pub malformed: u64,
    /// The rows that were left out because too many have their key.
    pub repeated: u64,
    /// The rows with a key of which a normaliser changed a column.
    pub changed: u64,
    /// The rows with a key of which a column is read as text, and is not UTF-8.
    pub not_utf8: u64,
}

/// Adds the findings in other rows.
impl AddAssign for RuleCounts {
    fn add_assign(&mut self, more: Self) {
        self.keys += more.keys;
        self.empty += more.empty;
        self.malformed += more.malformed;
        self.repeated += more.repeated;
        self.changed += more.changed;
        self.not_utf8 += more.not_utf8;
    }
}

/// A table with rules and payload columns found among its columns.
pub struct Reader<'a> {
    table: &'a Table,
    rules: Vec<Vec<KeyColumn>>,
    values: Vec<usize>,
    texts: Vec<usize>,
    payload: Option<PayloadSchema>,
    empty_keys: EmptyKeys,
    malformed: Malformed,
    /// By each rule the items of which too many rows have the key, ascending.
    dropped: Vec<Vec<Item>>,
    counts: Counts,
}

impl<'a> Reader<'a> {
    /// Finds the columns that `reading` names; with `drop_repeated` it also reads all keys, 24
    /// bytes of memory for each row and rule.
    ///
    /// # Errors
    /// If there is no such column, or it cannot be a key or a payload.
    pub fn new(table: &'a Table, reading: &Reading) -> Result<Self, Error> {
        let bound = Self::bind(table, reading).map_err(|problem| table.error_at(0, |_| problem));
        let mut reader = bound?;
        if let Some(most) = reading.drop_repeated {
            reader.dropped = lint::repeated(&reader, most)?;
        }
        Ok(reader)
    }

    fn bind(table: &'a Table, reading: &Reading) -> Result<Self> {
        let schema = table.schema();
        let rules = reading.rules.iter().map(|rule| rule.bind(schema));
        let rules: Vec<_> = rules.collect::<Result<_, _>>()?;
        if rules.is_empty() {
            return Err(Problem::NoKey);
        }
        let values = reading.values.iter().map(|name| rule::find(schema, name));
        let values: Vec<usize> = values.collect::<Result<_, _>>()?;
        let texts = reading.texts.iter().map(|name| rule::find(schema, name));
        let texts: Vec<usize> = texts.collect::<Result<_, _>>()?;
        for &column in &texts {
            check_text(schema.field(column))?;
        }
        let payload = match values.is_empty() {
            true => None,
            false => Some(PayloadSchema::of(values.iter().map(|&i| schema.field(i)))?),
        };
        Ok(Self {
            table,
            // With alternatives, a row without a key by one of them may have one by another.
            empty_keys: match rules.len() {
                1 => reading.empty_keys,
                _ => EmptyKeys::Skip,
            },
            counts: Counts { rows: 0, rules: vec![RuleCounts::default(); rules.len()] },
            dropped: vec![Vec::new(); rules.len()],
            rules,
            values,
            texts,
            payload,
            malformed: reading.malformed,
        })
    }

    /// Types, and normalisers with their versions, of every rule, without names of columns. The
    /// keys of two parties can only be equal if these are.
    pub fn key_description(&self) -> String {
        rule::describe(&self.rules)
    }

    /// The columns of keys, payload and texts, ascending: those to give to [`Table::scan`].
    pub fn columns(&self) -> Vec<usize> {
        let keys = self.rules.iter().flatten().map(|key| key.column);
        let others = self.values.iter().chain(&self.texts).copied();
        let mut columns: Vec<usize> = keys.chain(others).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Puts the items of a batch by rule `rule`, counted from 0, into `out`, one for each row: none
    /// where there is no key. Applies `empty_keys` and `malformed`, not `duplicates`. Rows are
    /// counted with rule 0.
    ///
    /// # Errors
    /// If a row violates `empty_keys` or `malformed`.
    ///
    /// # Panics
    /// If the batch lacks a column of the rule, or there is no such rule.
    pub fn items(
        &mut self,
        batch: &Batch,
        rule: usize,
        out: &mut Vec<Option<Item>>,
    ) -> Result<(), Error> {
        let keys = &self.rules[rule];
        let columns = keys.iter().map(|key| column(batch, key.column, None));
        let columns: Vec<(FieldRef, ArrayRef)> = columns
            .collect::<Result<_, _>>()
            .map_err(|problem| self.table.error(batch, problem))?;
        let rows = batch.rows.num_rows();
        out.clear();
        out.resize(rows, None);
        let found: Vec<Result<RuleCounts, (usize, KeyError)>> = out
            .par_chunks_mut(ROWS)
            .enumerate()
            .map(|(chunk, out)| self.chunk(rule, &columns, chunk * ROWS, out))
            .collect();
        let mut counts = self.counts.rules[rule];
        for found in found {
            let found = found.map_err(|(row, refused)| {
                let name = |key: usize| columns[key].0.name().clone();
                self.table.error_at(batch.row_number(row), |row| refused.problem(row, keys, name))
            })?;
            counts += found;
        }
        self.counts.rules[rule] = counts;
        if rule == 0 {
            self.counts.rows += rows as u64;
        }
        Ok(())
    }

    /// The items of the rows from `first` on.
    fn chunk(
        &self,
        rule: usize,
        columns: &[(FieldRef, ArrayRef)],
        first: usize,
        out: &mut [Option<Item>],
    ) -> Result<RuleCounts, (usize, KeyError)> {
        let (keys, dropped) = (&self.rules[rule], &self.dropped[rule]);
        let mut counts = RuleCounts::default();
        let mut scratch = Scratch::default();
        for (row, item) in (first..).zip(out) {
            match scratch.key(keys, columns, row) {
                Ok(()) => {
                    let found = scratch.item();
                    if dropped.binary_search(&found).is_ok() {
                        counts.repeated += 1;
                        continue;
                    }
                    *item = Some(found);
                    counts += scratch.counts();
                }
                Err(KeyError::Empty(_)) if self.empty_keys == EmptyKeys::Skip => counts.empty += 1,
                Err(KeyError::Unreadable(_) | KeyError::NotNormal(..))
                    if self.malformed == Malformed::Skip =>
                {
                    counts.malformed += 1;
                }
                Err(refused) => return Err((row, refused)),
            }
        }
        Ok(counts)
    }

    /// The schema of the payload, if payload columns were named.
    pub fn payload_schema(&self) -> Option<&PayloadSchema> {
        self.payload.as_ref()
    }

    /// Appends the payload of row `row` of the batch, counted from 0, to `out`; nothing if no
    /// payload columns were named.
    ///
    /// # Errors
    /// If a field is not UTF-8 or out of range, or the payload is longer than
    /// [`LONGEST_PAYLOAD`](crate::LONGEST_PAYLOAD).
    ///
    /// # Panics
    /// If the batch lacks a column of the payload, or a row `row`.
    pub fn payload(&self, batch: &Batch, row: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(payload) = &self.payload else {
            return Ok(());
        };
        // One row of each: a dictionary is not unpacked for every row.
        let columns = self.values.iter().map(|&value| column(batch, value, Some(row)));
        let columns: Vec<(FieldRef, ArrayRef)> = columns
            .collect::<Result<_, _>>()
            .map_err(|problem| self.table.error(batch, problem))?;
        let cells = columns.iter().map(|(field, array)| cell(field, array, 0));
        payload.encode(cells, out).map_err(|refused| {
            let name = |value: usize| columns[value].0.name().clone();
            self.table.error_at(batch.row_number(row), |row| refused.problem(row, name))
        })
    }

    /// Column `which` of those to be read as text, counted from 0, in a batch.
    ///
    /// # Errors
    /// If the column is damaged.
    ///
    /// # Panics
    /// If the batch lacks the column, or there is no such one.
    pub fn texts(&self, batch: &Batch, which: usize) -> Result<Texts, Error> {
        let found = column(batch, self.texts[which], None);
        let (field, array) = found.map_err(|problem| self.table.error(batch, problem))?;
        Ok(Texts { field, array })
    }

    /// The findings so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

/// A column of a batch, to be read as text.
pub struct Texts {
    field: FieldRef,
    array: ArrayRef,
}

impl Texts {
    /// The name of the column.
    pub fn name(&self) -> &str {
        self.field.name()
    }

    /// Puts the field of row `row` of the batch, counted from 0, into `out`, in the form that it
    /// has in a text file: a string as it is, a float with the fewest digits that stand for it.
    /// Returns whether there is one: not where it is null, or out of the range of its type.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn read(&self, row: usize, out: &mut Vec<u8>) -> bool {
        out.clear();
        let cell = cell(&self.field, &self.array, row);
        cell.is_some_and(|cell| append_text(cell, out).is_ok())
    }
}

/// A column of the table in a batch, or one row of it, without its dictionary.
fn column(batch: &Batch, column: usize, row: Option<usize>) -> Result<(FieldRef, ArrayRef)> {
    let place = batch.columns.iter().position(|&found| found == column);
    let place = place.expect("the batch has the columns of the reader");
    let field = &batch.rows.schema_ref().fields()[place];
    let array = batch.rows.column(place);
    let array = match row {
        Some(row) => plain(&array.slice(row, 1)),
        None => plain(array),
    };
    let array = array.map_err(|e| crate::error::damaged(crate::Format::Arrow, 0, e))?;
    Ok((Arc::clone(field), array))
}

/// The reason why a row has no key; columns are those of the key, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum KeyError {
    /// This column is empty or null.
    Empty(usize),
    /// This column cannot be read as its type.
    Unreadable(usize),
    /// This normaliser of this column refuses it, for this cause.
    NotNormal(usize, usize, &'static str),
}

impl KeyError {
    fn problem(self, row: u64, keys: &[KeyColumn], name: impl Fn(usize) -> String) -> Problem {
        match self {
            Self::Empty(key) => Problem::EmptyKey { row, column: name(key) },
            Self::Unreadable(key) => {
                Problem::Unreadable { row, column: name(key), wanted: keys[key].kind }
            }
            Self::NotNormal(key, normaliser, cause) => Problem::NotNormal {
                row,
                column: name(key),
                normaliser: keys[key].normalisers[normaliser].name(),
                cause,
            },
        }
    }
}

/// Memory for the keys of one thread.
struct Scratch {
    hasher: blake3::Hasher,
    key: Vec<u8>,
    field: Vec<u8>,
    text: String,
    normal: String,
    /// The key columns, and their normalisers, that changed the last row.
    changes: Vec<(usize, usize)>,
    /// A text of the last row is not UTF-8.
    not_utf8: bool,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            hasher: blake3::Hasher::new_derive_key(CONTEXT),
            key: Vec::new(),
            field: Vec::new(),
            text: String::new(),
            normal: String::new(),
            changes: Vec::new(),
            not_utf8: false,
        }
    }
}

impl Scratch {
    /// The item of `self.key`.
    fn item(&mut self) -> Item {
        let digest = self.hasher.reset().update(&self.key).finalize();
        let mut item = Item::default();
        item.copy_from_slice(&digest.as_bytes()[..16]);
        item
    }

    /// The counts of the last row, which has a key.
    fn counts(&self) -> RuleCounts {
        RuleCounts {
            keys: 1,
            changed: u64::from(!self.changes.is_empty()),
            not_utf8: u64::from(self.not_utf8),
            ..RuleCounts::default()
        }
    }

    /// Puts the key of a row into `self.key`.
    fn key(
        &mut self,
        keys: &[KeyColumn],
        columns: &[(FieldRef, ArrayRef)],
        row: usize,
    ) -> Result<(), KeyError> {
        self.key.clear();
        self.changes.clear();
        self.not_utf8 = false;
        for (i, (key, (field, array))) in keys.iter().zip(columns).enumerate() {
            let cell = match cell(field, array, row) {
                None | Some(Cell::Bytes(b"")) => return Err(KeyError::Empty(i)),
                Some(cell) => cell,
            };
            match (cell, key.kind) {
                (Cell::Bytes(bytes), KeyType::Text) => {
                    self.not_utf8 |= std::str::from_utf8(bytes).is_err();
                }
                // The 16 bytes of a UUID are not a text, and a text of that length is no UUID.
                (Cell::Bytes(bytes), KeyType::Uuid)
                    if bytes.len() == 16 && key_type(field) == Some(KeyType::Text) =>
                {
                    return Err(KeyError::Unreadable(i));
                }
                _ => {}
            }
            if key.normalisers.is_empty() {
                key::append(cell, key.kind, &mut self.key).map_err(|_| KeyError::Unreadable(i))?;
                continue;
            }
            self.field.clear();
            append_text(cell, &mut self.field).map_err(|_| KeyError::Unreadable(i))?;
            let text = std::str::from_utf8(&self.field);
            let text = text.map_err(|_| KeyError::NotNormal(i, 0, "not UTF-8"))?;
            self.text.clear();
            self.text.push_str(text);
            for (n, normaliser) in key.normalisers.iter().enumerate() {
                self.normal.clear();
                match normaliser.apply(&self.text, &mut self.normal) {
                    Outcome::Same => {}
                    Outcome::Changed => {
                        self.changes.push((i, n));
                        std::mem::swap(&mut self.text, &mut self.normal);
                    }
                    Outcome::Malformed => {
                        return Err(KeyError::NotNormal(i, n, normaliser.cause(&self.text)));
                    }
                    Outcome::Empty => return Err(KeyError::Empty(i)),
                }
            }
            let cell = Cell::Bytes(self.text.as_bytes());
            key::append(cell, key.kind, &mut self.key).map_err(|_| KeyError::Unreadable(i))?;
        }
        Ok(())
    }
}
