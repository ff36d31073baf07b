//! Writing the matching rows: the file is read again, and only the wanted rows are kept.

mod chunk;
mod sink;

use std::io::Write;

use crate::columnar::{Cells, Table};
use crate::delimited::{Rows, Text};
use crate::error::{Error, Problem};
use crate::format::Format;
use crate::key::{self, Cell, Outcome};
use crate::records::{Input, Records, Source, check_utf8, share};
use sink::{ParquetSink, TextSink};

/// The destination and the format of matching rows.
pub struct Output<'a, W> {
    /// The open file or another writer. Writing starts at its current position; it is flushed, not
    /// synchronised.
    pub file: W,
    /// The format, by the extension of the final file name: [`Format::of`].
    pub format: Format,
    /// A column to append.
    pub extra: Option<Extra<'a>>,
}

/// A column that is appended to the matching rows.
#[derive(Clone, Copy)]
pub struct Extra<'a> {
    /// Its name, which no column of the file may have.
    pub name: &'a str,
    /// Its value for the matching row at this position in the list of items, counted from 0. Values
    /// should have at most about [`LONGEST_VALUE`](crate::LONGEST_VALUE) bytes: those of some
    /// thousand rows are in memory at a time.
    pub value: &'a dyn Fn(usize) -> &'a [u8],
}

/// The result of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The number of rows, without the header.
    pub rows: u64,
}

impl Records {
    /// Writes the complete rows of `items`, in the order of the file, under its header.
    ///
    /// [The crate's documentation](crate#output) describes the output formats. `progress` is called
    /// from time to time with the number of bytes read and the total.
    ///
    /// # Errors
    /// If the file is not the one that was read, if a row cannot be written in the output's format,
    /// or if reading or writing fails. The partial output is then useless.
    ///
    /// # Panics
    /// If `items` is not in strictly ascending order, or names an item that does not exist.
    pub fn write_matches<W: Write + Send>(
        &self,
        items: &[u32],
        output: Output<'_, W>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Written, Error> {
        assert!(
            items.is_sorted_by(|a, b| a < b),
            "items must be in ascending order"
        );
        assert!(
            items
                .last()
                .is_none_or(|&last| (last as usize) < self.keys().len()),
            "items must be of this file"
        );
        let written = match self.source {
            Source::Text(text, format) => self.write_text(text, format, items, output, progress),
            Source::Parquet => self.write_parquet(items, output, progress),
        };
        written.map_err(|problem| Error::new(&self.path, problem))
    }

    fn write_text<W: Write + Send>(
        &self,
        text: Text,
        format: Format,
        items: &[u32],
        output: Output<'_, W>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Written, Problem> {
        let Input { file, stamp, .. } = Input::open(&self.path)?;
        self.check_same(stamp == self.stamp)?;
        self.check_free(output.extra)?;
        let mut rows = Rows::open(file, text)?;
        self.check_same(rows.columns() == self.layout.columns)?;
        let mut sink = match output.format {
            Format::Parquet => {
                check_utf8(rows.header(), 0)?;
                TextTarget::Parquet(ParquetSink::for_text(output, rows.header(), items.len())?)
            }
            Format::Csv | Format::Tsv => {
                let delimiter = match output.format == format {
                    true => text.delimiter(),
                    false => output.format.delimiter(),
                };
                TextTarget::Text(TextSink::new(output, delimiter, &self.layout.columns)?)
            }
        };

        let mut wanted = Wanted::new(self, items);
        let mut record = csv::ByteRecord::new();
        let mut reported = 0;
        while rows.next(&mut record)? {
            if let Some(position) = wanted.take(rows.row()) {
                let cells = self.layout.keys.iter();
                wanted.check(position, cells.map(|&c| Some(Cell::Bytes(&record[c]))))?;
                match &mut sink {
                    TextTarget::Text(sink) => sink.record(&mut record, position)?,
                    TextTarget::Parquet(sink) => {
                        check_utf8(&record, rows.row())?;
                        sink.record(&record, position)?;
                    }
                }
            }
            if rows.done() != reported {
                reported = rows.done();
                progress(reported, stamp.length.max(reported));
            }
        }
        match sink {
            TextTarget::Text(sink) => sink.finish()?,
            TextTarget::Parquet(sink) => sink.finish()?,
        }
        wanted.finish(rows.row())
    }

    fn write_parquet<W: Write + Send>(
        &self,
        items: &[u32],
        output: Output<'_, W>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Written, Problem> {
        let Input { file, stamp, .. } = Input::open(&self.path)?;
        self.check_same(stamp == self.stamp)?;
        self.check_free(output.extra)?;
        let table = Table::open(file, stamp.length)?;
        self.check_same(table.columns() == self.layout.columns)?;
        let mut sink = match output.format {
            Format::Parquet => {
                TableTarget::Parquet(ParquetSink::for_table(output, &table, items.len())?)
            }
            Format::Csv | Format::Tsv => {
                (0..self.layout.columns.len()).try_for_each(|column| table.check_text(column))?;
                let delimiter = output.format.delimiter();
                TableTarget::Text(TextSink::new(output, delimiter, &self.layout.columns)?)
            }
        };

        let mut wanted = Wanted::new(self, items);
        let total = table.rows();
        let mut batches = table.batches(None)?;
        let mut rows = 0;
        while let Some((first, count)) = batches.next()? {
            rows = first + count as u64;
            let start = wanted.next;
            progress(share(stamp.length, rows, total), stamp.length);
            let taken: Vec<u32> = (0..count as u32)
                .filter(|&row| wanted.take(first + u64::from(row) + 1).is_some())
                .collect();
            if taken.is_empty() {
                continue;
            }
            batches.read(&taken)?;
            let keys = self.layout.keys.iter();
            let cells: Vec<Cells<'_>> = keys.map(|&c| batches.cells(c)).collect();
            for row in 0..taken.len() {
                wanted.check(start + row, cells.iter().map(|cells| cells.get(row)))?;
            }
            let places = start..wanted.next;
            match &mut sink {
                TableTarget::Text(sink) => sink.batch(&batches, places)?,
                TableTarget::Parquet(sink) => sink.batch(&batches, places)?,
            }
        }
        match sink {
            TableTarget::Text(sink) => sink.finish()?,
            TableTarget::Parquet(sink) => sink.finish()?,
        }
        wanted.finish(rows)
    }

    fn check_same(&self, same: bool) -> Result<(), Problem> {
        if same { Ok(()) } else { Err(Problem::Changed) }
    }

    fn check_free(&self, extra: Option<Extra<'_>>) -> Result<(), Problem> {
        match extra {
            Some(extra)
                if self
                    .layout
                    .columns
                    .iter()
                    .any(|name| name == extra.name.as_bytes()) =>
            {
                Err(Problem::ColumnTaken {
                    name: extra.name.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }
}

enum TextTarget<'a, W: Write + Send> {
    Text(TextSink<'a, W>),
    Parquet(ParquetSink<'a, W>),
}

enum TableTarget<'a, W: Write + Send> {
    Text(TextSink<'a, W>),
    Parquet(ParquetSink<'a, W>),
}

/// The wanted rows, during the pass over the file.
struct Wanted<'a> {
    records: &'a Records,
    items: &'a [u32],
    /// Number of rows found so far.
    next: usize,
    key: Vec<u8>,
}

impl<'a> Wanted<'a> {
    fn new(records: &'a Records, items: &'a [u32]) -> Self {
        Self {
            records,
            items,
            next: 0,
            key: Vec::new(),
        }
    }

    /// The position of `row` in the list of items, if it is wanted. Rows must come in order.
    fn take(&mut self, row: u64) -> Option<usize> {
        let item = *self.items.get(self.next)?;
        (self.records.row_of(item as usize) == row).then(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Checks that the row at this position still has the key that matched.
    fn check<'b>(
        &mut self,
        position: usize,
        cells: impl Iterator<Item = Option<Cell<'b>>>,
    ) -> Result<(), Problem> {
        self.key.clear();
        let outcome = key::append_all(cells, self.records.key_types(), &mut self.key);
        let item = self.items[position] as usize;
        if outcome == Outcome::Whole && self.key == self.records.keys().get(item) {
            Ok(())
        } else {
            Err(Problem::Changed)
        }
    }

    /// Checks at the end that the file has the same rows as before and is the same file.
    fn finish(self, rows: u64) -> Result<Written, Problem> {
        if rows != self.records.counts().rows || self.next != self.items.len() {
            return Err(Problem::Changed);
        }
        self.records.stamp.check(&self.records.path)?;
        Ok(Written {
            rows: self.next as u64,
        })
    }
}
