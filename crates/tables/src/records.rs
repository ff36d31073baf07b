//! Reading a file: its keys, and the data to find its rows again.

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::collect::{Collected, Collector};
use crate::columnar::{Cells, Table};
use crate::delimited::{Rows, Text};
use crate::encoding::Encoding;
use crate::error::{Error, Problem};
use crate::format::Format;
use crate::key::{self, Cell, KeyColumn, KeyType};
use crate::strings::ByteStrings;

/// The maximum length in bytes of a value of the value column.
pub const LONGEST_VALUE: u64 = 1024;

/// How to read a file of records. The default has no key column, which is an error: set `keys`.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The key columns, each `NAME` or `NAME:TYPE` with TYPE `text`, `binary`, `integer`, `boolean`
    /// or `date`. A column whose name equals the whole argument takes precedence. Without a type,
    /// fields of text files are text, and columns of Parquet files have their own type.
    pub keys: Vec<String>,
    /// The column whose values belong to the keys, at most [`LONGEST_VALUE`] bytes each.
    pub value: Option<String>,
    /// The delimiter between two fields of a text file. The default depends on the extension.
    pub delimiter: Option<u8>,
    /// The encoding of a text file. Without it, fields are bytes and nothing is converted.
    pub encoding: Option<Encoding>,
    /// The policy for a row whose key an earlier row has.
    pub duplicates: Duplicates,
    /// The policy for a row without a key.
    pub empty_keys: EmptyKeys,
    /// The format in which matching rows will be written, so that columns that cannot be written
    /// are an error at once and not at the end.
    pub output: Option<Format>,
}

/// The policy for a row whose key an earlier row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duplicates {
    /// It is an error.
    #[default]
    Error,
    /// It is left out: the first row of each key is kept.
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

/// The row counts of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All rows except the header.
    pub rows: u64,
    /// The rows that are items: each has a key, and all keys are distinct.
    pub kept: u64,
    /// The rows left out because an earlier row has their key.
    pub duplicates: u64,
    /// The rows left out because a key column is empty or null.
    pub empty: u64,
}

/// The keys of a file, and the data to find their rows again.
///
/// Items are counted from 0, in the order of their rows. An item costs its key, 8 bytes, and 4 more
/// if rows were left out.
#[derive(Debug)]
pub struct Records {
    pub(crate) path: PathBuf,
    pub(crate) stamp: Stamp,
    pub(crate) source: Source,
    pub(crate) layout: Layout,
    collected: Collected,
    notices: Vec<String>,
}

/// The columns of a file.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The names of all columns.
    pub(crate) columns: Vec<Vec<u8>>,
    /// The key columns by their index in `columns`, and their types.
    pub(crate) keys: Vec<usize>,
    pub(crate) types: Vec<KeyType>,
    /// The value column by its index.
    value: Option<usize>,
}

impl Layout {
    /// Finds the columns named in `reading`; `type_of` returns the type of a key column.
    fn find(
        columns: Vec<Vec<u8>>,
        reading: &Reading,
        type_of: impl Fn(KeyColumn) -> Result<KeyType, Problem>,
    ) -> Result<Self, Problem> {
        let found = key::resolve(&reading.keys, &columns)?;
        let value = reading.value.as_ref();
        Ok(Self {
            keys: found.iter().map(|key| key.column).collect(),
            types: found.into_iter().map(type_of).collect::<Result<_, _>>()?,
            value: value.map(|name| key::find(name, &columns)).transpose()?,
            columns,
        })
    }

    fn collector(&self, reading: &Reading) -> Collector {
        let names = self.keys.iter().map(|&c| key::lossy(&self.columns[c]));
        Collector::new(reading, names.collect(), self.types.clone())
    }
}

impl Records {
    /// The key of each item, encoded as in [the crate's documentation](crate#keys).
    pub fn keys(&self) -> &ByteStrings {
        &self.collected.keys
    }

    /// The value of each item, if a value column was named.
    pub fn values(&self) -> Option<&ByteStrings> {
        self.collected.values.as_ref()
    }

    /// The row of item `i`, counted from 1 without the header.
    ///
    /// # Panics
    /// If there is no item `i`.
    pub fn row_of(&self, i: usize) -> u64 {
        assert!(i < self.collected.keys.len(), "there is no item {i}");
        let rows = self.collected.rows.as_ref();
        rows.map_or(i as u64 + 1, |rows| rows[i].into())
    }

    /// The types of the key columns, in the order they were named. The keys of two parties can only
    /// be equal if these types are.
    pub fn key_types(&self) -> &[KeyType] {
        &self.layout.types
    }

    /// The names of all columns, in the order of the file.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = String> {
        self.layout.columns.iter().map(|name| key::lossy(name))
    }

    /// The row counts of the file.
    pub fn counts(&self) -> Counts {
        self.collected.counts
    }

    /// Notices for the user about removed or skipped parts of the file, each a sentence without a
    /// full stop.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }
}

/// The reader of the rows of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    Text(Text, Format),
    Parquet,
}

/// Reads the keys of the file `path`, and its values if a value column is named.
///
/// `progress` is called from time to time with the number of bytes read and the total. The file is
/// read once from end to end; memory holds the keys, the values, and while reading a table of 10 to
/// 30 bytes an item.
///
/// # Errors
/// If the file violates a rule of [the crate's documentation](crate#rules).
pub fn read(
    path: &Path,
    reading: &Reading,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Records, Error> {
    let format = Format::of(path)?;
    let records = Input::open(path).and_then(|input| match format {
        Format::Parquet => read_parquet(input, reading, progress),
        Format::Csv | Format::Tsv => read_text(input, format, reading, progress),
    });
    records.map_err(|problem| Error::new(path, problem))
}

fn read_text(
    input: Input<'_>,
    format: Format,
    reading: &Reading,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Records, Problem> {
    let delimiter = reading.delimiter.unwrap_or(format.delimiter());
    let text = Text::new(delimiter, reading.encoding)?;
    let mut rows = Rows::open(input.file, text)?;
    let layout = Layout::find(rows.columns(), reading, |key| {
        Ok(key.wanted.unwrap_or(KeyType::Text))
    })?;
    let only_utf8 = reading.output == Some(Format::Parquet);
    if only_utf8 {
        check_utf8(rows.header(), 0)?;
    }

    let mut collector = layout.collector(reading);
    let mut record = csv::ByteRecord::new();
    let mut reported = 0;
    while rows.next(&mut record)? {
        if only_utf8 {
            check_utf8(&record, rows.row())?;
        }
        let cells = layout.keys.iter().map(|&c| Some(Cell::Bytes(&record[c])));
        if collector.row(cells)?
            && let Some(column) = layout.value
        {
            collector.value(&record[column], LONGEST_VALUE)?;
        }
        if rows.done() != reported {
            reported = rows.done();
            progress(reported, input.stamp.length.max(reported));
        }
    }
    input.stamp.check(input.path)?;
    Ok(Records {
        path: input.path.to_owned(),
        stamp: input.stamp,
        source: Source::Text(text, format),
        notices: notices(&rows, &layout),
        layout,
        collected: collector.finish(),
    })
}

/// The skipped parts of a text file.
fn notices(rows: &Rows, layout: &Layout) -> Vec<String> {
    let mut notices = Vec::new();
    if rows.marked() {
        notices.push("a byte-order mark was removed from the front of the file".to_owned());
    }
    let lines = rows.blank_lines();
    if lines > 0 {
        let plural = if lines == 1 { "" } else { "s" };
        let mut notice = format!("{lines} blank line{plural} left out");
        if layout.columns.len() == 1 {
            notice += " (an empty field is written \"\")";
        }
        notices.push(notice);
    }
    notices
}

fn read_parquet(
    input: Input<'_>,
    reading: &Reading,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Records, Problem> {
    if reading.delimiter.is_some() {
        return Err(Problem::TextOnly("delimiter"));
    }
    if reading.encoding.is_some() {
        return Err(Problem::TextOnly("encoding"));
    }
    let length = input.stamp.length;
    let table = Table::open(input.file, length)?;
    let layout = Layout::find(table.columns(), reading, |key| table.key_type(key))?;
    layout
        .value
        .map_or(Ok(()), |column| table.check_text(column))?;
    if matches!(reading.output, Some(Format::Csv | Format::Tsv)) {
        (0..layout.columns.len()).try_for_each(|column| table.check_text(column))?;
    }

    let mut collector = layout.collector(reading);
    let total = table.rows();
    let wanted: Vec<usize> = layout.keys.iter().copied().chain(layout.value).collect();
    let mut batches = table.batches(Some(&wanted))?;
    let mut value = Vec::new();
    while let Some((first, rows)) = batches.next()? {
        let all: Vec<u32> = (0..rows as u32).collect();
        batches.read(&all)?;
        let cells: Vec<Cells<'_>> = layout.keys.iter().map(|&c| batches.cells(c)).collect();
        for row in 0..rows {
            if collector.row(cells.iter().map(|cells| cells.get(row)))?
                && let Some(column) = layout.value
            {
                value.clear();
                batches.append_value(column, row, &mut value)?;
                collector.value(&value, LONGEST_VALUE)?;
            }
        }
        progress(share(length, first + rows as u64, total), length);
    }
    input.stamp.check(input.path)?;
    Ok(Records {
        path: input.path.to_owned(),
        stamp: input.stamp,
        source: Source::Parquet,
        layout,
        collected: collector.finish(),
        notices: Vec::new(),
    })
}

/// The part of `length` bytes that corresponds to `done` of `total` rows.
pub(crate) fn share(length: u64, done: u64, total: u64) -> u64 {
    (u128::from(length) * u128::from(done.min(total)) / u128::from(total.max(1))) as u64
}

/// Checks that every field is UTF-8, as text columns of a Parquet file require.
pub(crate) fn check_utf8(record: &csv::ByteRecord, row: u64) -> Result<(), Problem> {
    // The fields together may be valid although a border between them splits a character.
    match record
        .iter()
        .position(|field| std::str::from_utf8(field).is_err())
    {
        None => Ok(()),
        Some(column) => Err(Problem::NotUtf8 {
            row,
            column: column + 1,
        }),
    }
}

/// The properties by which a file is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) length: u64,
    modified: Option<SystemTime>,
    /// Device and inode number of the file, on systems that have them.
    number: (u64, u64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let number = {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let number = (0, 0);
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            number,
        }
    }

    /// Checks that the file at `path` is still the same.
    pub(crate) fn check(&self, path: &Path) -> Result<(), Problem> {
        match fs::metadata(path) {
            Ok(metadata) if Self::of(&metadata) == *self => Ok(()),
            _ => Err(Problem::Changed),
        }
    }
}

/// An open file.
pub(crate) struct Input<'a> {
    path: &'a Path,
    pub(crate) file: File,
    pub(crate) stamp: Stamp,
}

impl<'a> Input<'a> {
    /// Opens a regular file. The kind of the file is checked first: opening a pipe would wait for
    /// its other end.
    pub(crate) fn open(path: &'a Path) -> Result<Self, Problem> {
        let metadata = fs::metadata(path).map_err(Problem::Open)?;
        if metadata.is_dir() {
            return Err(Problem::Folder);
        }
        if !metadata.is_file() {
            return Err(Problem::NotAFile);
        }
        let file = File::open(path).map_err(Problem::Open)?;
        let stamp = Stamp::of(&file.metadata().map_err(Problem::Read)?);
        Ok(Self { path, file, stamp })
    }
}
