//! Tables: the rows of one or more files, or of batches in memory, under one schema.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::encoding::Encoding;
use crate::error::{Error, Problem};
use crate::format::Format;

/// The files of a table, and how to read them.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Files; folders of Parquet files, at any depth, where `name=value` in the name of a folder
    /// becomes a column; globs of either; `-` for standard input. All must have the same columns
    /// and types. The rows are in the order of this list, and within a folder or a glob in the
    /// order of the names.
    pub paths: Vec<PathBuf>,
    /// The delimiter between two fields of a text file. The default depends on the format.
    pub delimiter: Option<u8>,
    /// The encoding of a text file. Without it, fields are bytes and nothing is converted.
    pub encoding: Option<Encoding>,
    /// The format, whatever the names; required for standard input.
    pub format: Option<Format>,
}

/// A table: opened, and no row read yet.
#[derive(Debug)]
pub struct Table;

impl Table {
    /// Opens all files of `inputs` and reads their schemas. Standard input is copied to an unnamed
    /// temporary file, because rows are read twice.
    ///
    /// # Errors
    /// If a file violates a rule of [the crate's documentation](crate#rules).
    pub fn open(inputs: &Inputs) -> Result<Self, Error> {
        let _ = inputs;
        todo!()
    }

    /// The table of these batches.
    ///
    /// # Panics
    /// If a batch has another schema, or two columns have the same name.
    pub fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let _ = (schema, batches);
        todo!()
    }

    /// The columns. Those of text files are binary, with [`is_field`](crate::is_field) true.
    pub fn schema(&self) -> &SchemaRef {
        todo!()
    }

    /// The format of the files; that of batches in memory is [`Format::Arrow`].
    pub fn format(&self) -> Format {
        todo!()
    }

    /// The files, in the order of their rows: empty for batches in memory, `-` for standard input.
    pub fn paths(&self) -> &[PathBuf] {
        todo!()
    }

    /// The total length of the files, for progress; of batches in memory, their size.
    pub fn bytes(&self) -> u64 {
        todo!()
    }

    /// Notices for the user about removed or skipped parts of the files, each a sentence without a
    /// full stop; complete after all rows were read once.
    pub fn notices(&self) -> Vec<String> {
        todo!()
    }

    /// All rows, with these columns in this order.
    ///
    /// # Errors
    /// If a file cannot be opened again.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn scan(&self, columns: &[usize]) -> Result<Scan<'_>, Error> {
        let _ = columns;
        todo!()
    }

    /// The wanted rows, with all columns. `wanted` is asked once for each row, in ascending order
    /// from 0.
    ///
    /// # Errors
    /// If a file cannot be opened again.
    pub fn select<'a>(&'a self, wanted: &'a dyn Fn(u64) -> bool) -> Result<Scan<'a>, Error> {
        let _ = wanted;
        todo!()
    }

    /// Checks that length, time and inode of every file are those at [`open`](Self::open).
    ///
    /// # Errors
    /// If one differs.
    pub fn check_unchanged(&self) -> Result<(), Error> {
        todo!()
    }

    /// The file of `row`, and the number of the row in that file, counted from 1, as error messages
    /// name it. Known once the row was read.
    pub fn place(&self, row: u64) -> (&Path, u64) {
        let _ = row;
        todo!()
    }

    /// The error for a `problem` that [`Sink::write`](crate::Sink::write) had with rows of `batch`,
    /// which says where in the table they are.
    pub fn error(&self, batch: &Batch, problem: Problem) -> Error {
        let _ = (batch, problem);
        todo!()
    }
}

/// The batches of a table, one after the other.
pub struct Scan<'a> {
    _table: &'a Table,
}

impl Scan<'_> {
    /// The next batch, which has at least one row; none at the end.
    ///
    /// # Errors
    /// If a file violates a rule of [the crate's documentation](crate#rules), or has changed. The
    /// scan must not be used after an error.
    #[expect(
        clippy::should_implement_trait,
        reason = "the error comes first, for `?`"
    )]
    pub fn next(&mut self) -> Result<Option<Batch>, Error> {
        todo!()
    }
}

/// Some rows of a table, all of one file.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The number of the first row, counted from 0 over all files.
    pub first_row: u64,
    /// The rows.
    pub rows: RecordBatch,
    /// The columns of the table that `rows` has, in its order.
    pub columns: Arc<[usize]>,
    /// The number of each row, where these are not consecutive.
    pub row_numbers: Option<Vec<u64>>,
    /// The bytes of all files that were read up to here, for progress.
    pub done_bytes: u64,
}

impl Batch {
    /// The number of row `i` of the batch, counted from 0 over all files.
    ///
    /// # Panics
    /// If there is no row `i`.
    pub fn row_number(&self, i: usize) -> u64 {
        match &self.row_numbers {
            Some(numbers) => numbers[i],
            None => self.first_row + i as u64,
        }
    }
}
