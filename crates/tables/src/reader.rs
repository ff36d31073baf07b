//! Reading the keys and the payload of the rows of a table.

use std::marker::PhantomData;

use crate::error::Error;
use crate::payload::PayloadSchema;
use crate::rule::Rule;
use crate::table::{Batch, Table};

/// The unit of matching: the first 16 bytes of BLAKE3, in `derive_key` mode with the context
/// `volery 2026 item`, of [the key](crate#keys) of a row by one rule.
pub type Item = [u8; 16];

/// How to read the keys of a table. The default has no rule, which is an error: set `rules`.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The rules, best first. With more than one, a row whose key is empty by a rule has no part in
    /// that rule, whatever `empty_keys` is.
    pub rules: Vec<Rule>,
    /// The columns of the payload, by their names.
    pub values: Vec<String>,
    /// The policy for a row whose key an earlier row has.
    pub duplicates: Duplicates,
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

/// What was found in the rows that were read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// All rows except headers.
    pub rows: u64,
    /// What was found by each rule.
    pub rules: Vec<RuleCounts>,
}

/// What one rule found in the rows that were read. Each row is in one of `keys`, `empty` and
/// `malformed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleCounts {
    /// The rows with a key.
    pub keys: u64,
    /// The rows in which a key column is empty or null, also after the normalisers.
    pub empty: u64,
    /// The rows with a malformed key column.
    pub malformed: u64,
    /// The rows with a key of which a normaliser changed a column.
    pub changed: u64,
}

/// A table with rules and payload columns found among its columns.
pub struct Reader<'a> {
    _table: PhantomData<&'a Table>,
}

impl<'a> Reader<'a> {
    /// Finds the columns that `reading` names.
    ///
    /// # Errors
    /// If there is no such column, or it cannot be a key or a payload.
    pub fn new(table: &'a Table, reading: &Reading) -> Result<Self, Error> {
        let _ = (table, reading);
        todo!()
    }

    /// Types, and normalisers with their versions, of every rule, without names of columns. The
    /// keys of two parties can only be equal if these are.
    pub fn key_description(&self) -> String {
        todo!()
    }

    /// The columns of keys and payload, ascending: those to give to [`Table::scan`].
    pub fn columns(&self) -> Vec<usize> {
        todo!()
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
        let _ = (batch, rule, out);
        todo!()
    }

    /// The schema of the payload, if payload columns were named.
    pub fn payload_schema(&self) -> Option<&PayloadSchema> {
        todo!()
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
        let _ = (batch, row, out);
        todo!()
    }

    /// What was found so far.
    pub fn counts(&self) -> &Counts {
        todo!()
    }
}
