//! Reading a file: its keys, and what is remembered to find its rows again.

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::collect::{Collected, Collector};
use crate::columnar::{Cells, Table, Values};
use crate::delimited::{Rows, Text};
use crate::encoding::Encoding;
use crate::error::{Error, Problem};
use crate::format::Format;
use crate::key::{self, Cell, KeyColumn, KeyType};
use crate::strings::ByteStrings;

/// The most bytes a value of the value column may have.
pub const LONGEST_VALUE: u64 = 1024;

/// How to read a file of records. The default has no key column, which is an error: set `keys`.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The key columns, each `NAME` or `NAME:TYPE` with TYPE `text`, `binary`, `integer`, `boolean` or `date`. A
    /// column that is called exactly like the whole argument is the one that is meant. Without a type, fields of text
    /// files are text, and columns of Parquet files are what they are.
    pub keys: Vec<String>,
    /// The column whose values belong to the keys, at most [`LONGEST_VALUE`] bytes each.
    pub value: Option<String>,
    /// What stands between two fields of a text file; else the extension says.
    pub delimiter: Option<u8>,
    /// The encoding of a text file. Without it, fields are bytes and nothing is converted.
    pub encoding: Option<Encoding>,
    /// What to do with a row whose key an earlier row has.
    pub duplicates: Duplicates,
    /// What to do with a row that has no key.
    pub empty_keys: EmptyKeys,
    /// The format that matching rows will be written in, so that what cannot be written is an error now and not at
    /// the end.
    pub output: Option<Format>,
}

/// What to do with a row whose key an earlier row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duplicates {
    /// It is an error.
    #[default]
    Error,
    /// It is left out: the first row of each key is kept.
    Dedup,
}

/// What to do with a row in which a key column is empty or null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmptyKeys {
    /// It is an error.
    #[default]
    Error,
    /// It is left out, and matches nothing.
    Skip,
}

/// How many rows a file has, and what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All rows but the header.
    pub rows: u64,
    /// The rows that are items: each has a key, and no two the same.
    pub kept: u64,
    /// The rows left out because an earlier row has their key.
    pub duplicates: u64,
    /// The rows left out because a key column is empty or null.
    pub empty: u64,
}

/// The keys of a file, and what it takes to find their rows again.
///
/// Items are counted from 0, in the order of their rows. An item costs its key, 8 bytes, and 4 more if rows were left
/// out.
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
    /// The names of all of them.
    pub(crate) columns: Vec<Vec<u8>>,
    /// The key columns by their place in `columns`, and their types.
    pub(crate) keys: Vec<usize>,
    pub(crate) types: Vec<KeyType>,
    /// The value column by its place.
    value: Option<usize>,
}

impl Layout {
    /// Finds the columns that are named in `reading`; `type_of` gives the type of a key column.
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
    /// The key of each item, in the form that [the crate's documentation](crate#keys) gives.
    pub fn keys(&self) -> &ByteStrings {
        &self.collected.keys
    }

    /// The value of each item, if a value column was named.
    pub fn values(&self) -> Option<&ByteStrings> {
        self.collected.values.as_ref()
    }

    /// The row that item `i` comes from, counted from 1, the header not counted.
    ///
    /// # Panics
    /// If there is no item `i`.
    pub fn row_of(&self, i: usize) -> u64 {
        assert!(i < self.collected.keys.len(), "there is no item {i}");
        let rows = self.collected.rows.as_ref();
        rows.map_or(i as u64 + 1, |rows| rows[i].into())
    }

    /// The types of the key columns, in the order they were named. Two parties' keys can only be the same if these are.
    pub fn key_types(&self) -> &[KeyType] {
        &self.layout.types
    }

    /// The names of all columns, in the order of the file.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = String> {
        self.layout.columns.iter().map(|name| key::lossy(name))
    }

    /// How many rows there are, and what became of them.
    pub fn counts(&self) -> Counts {
        self.collected.counts
    }

    /// What the user should know, each a sentence without a full stop: what was removed or left out in silence.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }
}

/// How the rows of a file are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    Text(Text, Format),
    Parquet,
}

/// Reads the keys of the file `path`, and its values if a value column is named.
///
/// `progress` is told now and then how many bytes of how many have been read. The file is read once from end to end; in
/// memory are the keys, the values, and while reading a table of 10 to 30 bytes an item.
///
/// # Errors
/// If anything of the file is not as [the crate's documentation](crate#rules) says it must be.
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

/// What was passed over in a text file.
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
    while let Some((first, batch)) = batches.next()? {
        let column = |c: usize| batch.column(batches.position(c));
        let cells = layout.keys.iter().map(|&c| Cells::of(column(c)));
        let cells: Vec<Cells> = cells.collect::<Result<_, _>>()?;
        let values = layout
            .value
            .map(|c| Values::of(column(c), &key::lossy(&layout.columns[c])))
            .transpose()?;
        for row in 0..batch.num_rows() {
            if collector.row(cells.iter().map(|cells| cells.get(row)))?
                && let Some(values) = &values
            {
                collector.value(values.get(row), LONGEST_VALUE)?;
            }
        }
        progress(
            share(length, first + batch.num_rows() as u64, total),
            length,
        );
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

/// The part of `length` bytes that `done` of `total` rows stand for.
pub(crate) fn share(length: u64, done: u64, total: u64) -> u64 {
    (u128::from(length) * u128::from(done.min(total)) / u128::from(total.max(1))) as u64
}

/// Every field is UTF-8, as the text columns of a Parquet file must be.
pub(crate) fn check_utf8(record: &csv::ByteRecord, row: u64) -> Result<(), Problem> {
    // Borders between fields may cut a character in two where the fields together are valid.
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

/// By what a file is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) length: u64,
    modified: Option<SystemTime>,
    /// Device and number of the file, where there are such.
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

    /// Whether the file at `path` is still the one.
    pub(crate) fn check(&self, path: &Path) -> Result<(), Problem> {
        match fs::metadata(path) {
            Ok(metadata) if Self::of(&metadata) == *self => Ok(()),
            _ => Err(Problem::Changed),
        }
    }
}

/// A file that is open.
pub(crate) struct Input<'a> {
    path: &'a Path,
    pub(crate) file: File,
    pub(crate) stamp: Stamp,
}

impl<'a> Input<'a> {
    /// Opens a regular file. What it is, is asked first: opening a pipe would wait for its other end.
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
