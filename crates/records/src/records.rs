//! Reading a file: its keys, and what is remembered to find its rows again.

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::collect::{Collected, Collector};
use crate::columnar::{self, Table};
use crate::delimited::{Rows, Text};
use crate::encoding::Encoding;
use crate::error::{Error, Problem};
use crate::format::Format;
use crate::key::{self, Cell, KeyType};
use crate::strings::ByteStrings;

/// The most bytes a value of the value column may have.
pub const LONGEST_VALUE: u64 = 1024;

/// How to read a file of records. The default has no key column, which is an error: set `keys`.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The key columns, each `NAME` or `NAME:TYPE` with TYPE `text`, `binary`, `integer`, `boolean` or `date`. A column that
    /// is called exactly like the whole argument is the one that is meant. Without a type, fields of text files are text,
    /// and columns of Parquet files are what they are.
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
    /// The format that matching rows will be written in, so that what cannot be written is an error now and not at the end.
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
/// Items are counted from 0, in the order of their rows. An item costs its key, 8 bytes, and 4 more if rows were left out.
#[derive(Debug)]
pub struct Records {
    pub(crate) path: PathBuf,
    pub(crate) stamp: Stamp,
    pub(crate) source: Source,
    pub(crate) columns: Vec<Vec<u8>>,
    /// The key columns by their place in `columns`.
    pub(crate) key_columns: Vec<usize>,
    key_types: Vec<KeyType>,
    keys: ByteStrings,
    values: Option<ByteStrings>,
    rows: Option<Vec<u32>>,
    counts: Counts,
    notices: Vec<String>,
}

impl Records {
    /// The key of each item, in the form that [the crate's documentation](crate#keys) gives.
    pub fn keys(&self) -> &ByteStrings {
        &self.keys
    }

    /// The value of each item, if a value column was named.
    pub fn values(&self) -> Option<&ByteStrings> {
        self.values.as_ref()
    }

    /// The row that item `i` comes from, counted from 1, the header not counted.
    ///
    /// # Panics
    /// If there is no item `i`.
    pub fn row_of(&self, i: usize) -> u64 {
        assert!(i < self.keys.len(), "there is no item {i}");
        self.rows
            .as_ref()
            .map_or(i as u64 + 1, |rows| rows[i].into())
    }

    /// The types of the key columns, in the order they were named. Two parties' keys can only be the same if these are.
    pub fn key_types(&self) -> &[KeyType] {
        &self.key_types
    }

    /// The names of all columns, in the order of the file.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = String> {
        self.columns.iter().map(|name| key::lossy(name))
    }

    /// How many rows there are, and what became of them.
    pub fn counts(&self) -> Counts {
        self.counts
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
/// memory are the keys, the values, and while reading a table of 5 to 10 bytes an item.
///
/// # Errors
/// If anything of the file is not as [the crate's documentation](crate#rules) says it must be.
pub fn read(
    path: &Path,
    reading: &Reading,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Records, Error> {
    let format = Format::of(path)?;
    let records = open(path).and_then(|(file, stamp)| match format {
        Format::Parquet => read_parquet(path, file, stamp, reading, progress),
        Format::Csv | Format::Tsv => read_text(path, file, stamp, reading, progress),
    });
    records.map_err(|problem| Error::new(path, problem))
}

fn read_text(
    path: &Path,
    file: File,
    stamp: Stamp,
    reading: &Reading,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Records, Problem> {
    let format = Format::of(path).unwrap_or(Format::Csv);
    let delimiter = reading.delimiter.unwrap_or(format.delimiter());
    let text = Text::new(delimiter, reading.encoding)?;
    let mut rows = Rows::open(file, text)?;
    let columns = rows.columns();
    let found = key::resolve(&reading.keys, &columns)?;
    let key_columns: Vec<usize> = found.iter().map(|key| key.column).collect();
    let key_types: Vec<KeyType> = found
        .iter()
        .map(|key| key.wanted.unwrap_or(KeyType::Text))
        .collect();
    let value = reading.value.as_ref();
    let value = value.map(|name| key::find(name, &columns)).transpose()?;
    let only_utf8 = reading.output == Some(Format::Parquet);
    if only_utf8 {
        check_utf8(rows.header(), 0)?;
    }

    let names = key_columns.iter().map(|&c| key::lossy(&columns[c]));
    let mut collector = Collector::new(reading, names.collect(), key_types.clone());
    let mut record = csv::ByteRecord::new();
    let mut reported = 0;
    while rows.next(&mut record)? {
        if only_utf8 {
            check_utf8(&record, rows.row())?;
        }
        let cells = key_columns.iter().map(|&c| Some(Cell::Bytes(&record[c])));
        if collector.row(cells)?
            && let Some(column) = value
        {
            collector.value(&record[column], LONGEST_VALUE)?;
        }
        if rows.done() != reported {
            reported = rows.done();
            progress(reported, stamp.length.max(reported));
        }
    }
    stamp.check(path)?;

    let mut notices = Vec::new();
    if rows.marked() {
        notices.push("a byte-order mark was removed from the front of the file".to_owned());
    }
    if rows.blank_lines() > 0 {
        let lines = rows.blank_lines();
        let mut notice = format!(
            "{lines} blank line{} left out",
            if lines == 1 { "" } else { "s" }
        );
        if columns.len() == 1 {
            notice += " (an empty field is written \"\")";
        }
        notices.push(notice);
    }
    let source = Source::Text(text, format);
    let layout = (columns, key_columns, key_types);
    Ok(Records::new(
        path,
        stamp,
        source,
        layout,
        collector.finish(),
        notices,
    ))
}

fn read_parquet(
    path: &Path,
    file: File,
    stamp: Stamp,
    reading: &Reading,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Records, Problem> {
    if reading.delimiter.is_some() {
        return Err(Problem::TextOnly("delimiter"));
    }
    if reading.encoding.is_some() {
        return Err(Problem::TextOnly("encoding"));
    }
    let table = Table::open(file, stamp.length)?;
    let columns = table.columns();
    let found = key::resolve(&reading.keys, &columns)?;
    let key_columns: Vec<usize> = found.iter().map(|key| key.column).collect();
    let key_types = found
        .iter()
        .map(|&key| table.key_type(key))
        .collect::<Result<Vec<_>, _>>()?;
    let value = reading.value.as_ref();
    let value = value.map(|name| key::find(name, &columns)).transpose()?;
    value.map_or(Ok(()), |column| table.check_text(column))?;
    if matches!(reading.output, Some(Format::Csv | Format::Tsv)) {
        (0..columns.len()).try_for_each(|column| table.check_text(column))?;
    }

    let names = key_columns.iter().map(|&c| key::lossy(&columns[c]));
    let mut collector = Collector::new(reading, names.collect(), key_types.clone());
    let total = table.rows();
    let wanted: Vec<usize> = key_columns.iter().copied().chain(value).collect();
    let mut batches = table.batches(Some(&wanted))?;
    while let Some((first, batch)) = batches.next()? {
        let column = |c: usize| batch.column(batches.position(c));
        let cells = key_columns.iter().map(|&c| columnar::Cells::of(column(c)));
        let cells: Vec<columnar::Cells> = cells.collect::<Result<_, _>>()?;
        let values = value
            .map(|c| columnar::Values::of(column(c), &key::lossy(&columns[c])))
            .transpose()?;
        for row in 0..batch.num_rows() {
            if collector.row(cells.iter().map(|cells| cells.get(row)))?
                && let Some(values) = &values
            {
                collector.value(values.get(row), LONGEST_VALUE)?;
            }
        }
        let rows = first + batch.num_rows() as u64;
        let done = u128::from(stamp.length) * u128::from(rows) / u128::from(total.max(1));
        progress(done as u64, stamp.length);
    }
    stamp.check(path)?;
    let layout = (columns, key_columns, key_types);
    Ok(Records::new(
        path,
        stamp,
        Source::Parquet,
        layout,
        collector.finish(),
        Vec::new(),
    ))
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

impl Records {
    fn new(
        path: &Path,
        stamp: Stamp,
        source: Source,
        (columns, key_columns, key_types): (Vec<Vec<u8>>, Vec<usize>, Vec<KeyType>),
        collected: Collected,
        notices: Vec<String>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            stamp,
            source,
            columns,
            key_columns,
            key_types,
            keys: collected.keys,
            values: collected.values,
            rows: collected.rows,
            counts: collected.counts,
            notices,
        }
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

/// Opens a regular file. What it is, is asked first: opening a pipe would wait for its other end.
pub(crate) fn open(path: &Path) -> Result<(File, Stamp), Problem> {
    let metadata = fs::metadata(path).map_err(Problem::Open)?;
    if metadata.is_dir() {
        return Err(Problem::Folder);
    }
    if !metadata.is_file() {
        return Err(Problem::NotAFile);
    }
    let file = File::open(path).map_err(Problem::Open)?;
    let stamp = Stamp::of(&file.metadata().map_err(Problem::Read)?);
    Ok((file, stamp))
}
