//! Writing rows to a file.

use std::io::Write;
use std::marker::PhantomData;

use arrow_array::RecordBatch;
use arrow_schema::{Field, SchemaRef};

use crate::error::Problem;
use crate::format::{Format, Packing};
use crate::table::Table;

/// How to write a file.
#[derive(Debug, Clone, Copy)]
pub struct Output<'t> {
    /// The format.
    pub format: Format,
    /// The compression of the whole file, for text.
    pub packing: Packing,
    /// The table the rows come from: the output takes over its delimiter if both have the same
    /// text format, and from Parquet to Parquet its compression, its metadata and the exact types
    /// of its columns.
    pub like: Option<&'t Table>,
}

/// Writes rows to a file.
pub struct Sink<W: Write + Send> {
    _out: PhantomData<W>,
}

impl<W: Write + Send> Sink<W> {
    /// Begins a file of these columns.
    ///
    /// # Errors
    /// If a column has no form in that format, or two columns have the same name, or writing fails.
    pub fn new(out: W, output: Output<'_>, schema: &SchemaRef) -> Result<Self, Problem> {
        let _ = (out, output, schema);
        todo!()
    }

    /// Appends rows.
    ///
    /// # Errors
    /// If writing fails, or a field of a text file is not UTF-8 and the format requires it:
    /// [`Table::error`] says where this field is.
    ///
    /// # Panics
    /// If the rows have another schema.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), Problem> {
        let _ = rows;
        todo!()
    }

    /// Ends the file and returns the writer, flushed.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(self) -> Result<W, Problem> {
        todo!()
    }
}

/// Whether this is a column of a text file: binary, and text if it is UTF-8.
pub fn is_field(column: &Field) -> bool {
    let _ = column;
    todo!()
}
