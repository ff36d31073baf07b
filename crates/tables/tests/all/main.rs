//! Files of records, read and written through the public interface.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bad_text;
mod damaged;
mod in_memory;
mod inputs;
mod lake;
mod parquet;
mod payload;
mod properties;
mod rules;
mod samples;
mod table;
mod text;
mod texts;

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use volery_tables::{
    EmptyKeys, Encoding, Error, Format, Inputs, Item, Output, Packing, Records, Rule, Sink, Table,
};

/// A temporary folder, removed with its files.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// How to read one file by one rule.
#[derive(Clone, Default)]
struct Reading {
    keys: Vec<String>,
    value: Option<String>,
    delimiter: Option<u8>,
    encoding: Option<Encoding>,
    empty_keys: EmptyKeys,
}

impl Reading {
    fn reading(&self) -> volery_tables::Reading {
        let rule = Rule::parse(&self.keys.join(","));
        volery_tables::Reading {
            rules: rule.into_iter().collect(),
            values: self.value.iter().cloned().collect(),
            empty_keys: self.empty_keys,
            ..Default::default()
        }
    }
}

/// By this rule.
fn by(keys: &[&str]) -> Reading {
    Reading { keys: keys.iter().map(|&key| key.to_owned()).collect(), ..Reading::default() }
}

/// A table and its records.
#[derive(Debug)]
struct ReadTable {
    table: Table,
    records: Records,
}

impl Deref for ReadTable {
    type Target = Records;

    fn deref(&self) -> &Records {
        &self.records
    }
}

impl ReadTable {
    fn keys(&self) -> &[Item] {
        &self.records.items[0]
    }

    /// The first row of an item, counted from 1.
    fn row_of(&self, item: u32) -> u64 {
        self.records.rows[0].iter().position(|&row| row == Some(item)).unwrap() as u64 + 1
    }

    fn notices(&self) -> Vec<String> {
        self.table.notices()
    }

    fn columns(&self) -> Vec<String> {
        let fields = self.table.schema().fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }
}

fn read(path: &Path, reading: &Reading) -> Result<ReadTable, Error> {
    let inputs = Inputs {
        paths: vec![path.to_owned()],
        delimiter: reading.delimiter,
        encoding: reading.encoding,
        ..Inputs::default()
    };
    let table = Table::open(&inputs)?;
    let records = Records::read(&table, &reading.reading())?;
    Ok(ReadTable { table, records })
}

/// Reads `bytes` as a file of this name.
fn read_as(name: &str, bytes: impl AsRef<[u8]>, reading: &Reading) -> Result<ReadTable, Error> {
    let folder = Folder::new();
    read(&folder.write(name, bytes), reading)
}

/// The output of the rows of `items`, in memory.
fn matches(read: &ReadTable, items: &[u32], format: Format) -> Result<Vec<u8>, Error> {
    let wanted = |row: u64| {
        let item = read.records.rows[0][row as usize];
        item.is_some_and(|item| items.contains(&item))
    };
    write(&read.table, &wanted, format, Packing::None)
}

/// The output of the wanted rows, in memory.
fn write(
    table: &Table,
    wanted: &dyn Fn(u64) -> bool,
    format: Format,
    packing: Packing,
) -> Result<Vec<u8>, Error> {
    table.check_unchanged()?;
    let like = Some(table);
    let output = Output { format, packing, like };
    let failed = |problem| Error::new(&table.paths()[0], problem);
    let mut sink = Sink::new(Vec::new(), output, table.schema()).map_err(failed)?;
    let mut scan = table.select(wanted)?;
    while let Some(batch) = scan.next()? {
        let numbers = batch.row_numbers.as_ref().unwrap();
        assert!(batch.rows.num_rows() > 0 && batch.rows.num_rows() == numbers.len());
        assert!(numbers[0] == batch.first_row && numbers.is_sorted());
        sink.write(&batch.rows).map_err(|problem| table.error(&batch, problem))?;
    }
    sink.finish().map_err(failed)
}

/// The item of a key of one column, by the documentation.
fn item(tag: u8, content: &[u8]) -> Item {
    let length = content.len() as u64;
    let key = [&[tag][..], &length.to_le_bytes(), content].concat();
    let mut hasher = blake3::Hasher::new_derive_key("volery 2026 item");
    hasher.update(&key).finalize().as_bytes()[..16].try_into().unwrap()
}

fn texts<S: AsRef<[u8]>>(texts: impl IntoIterator<Item = S>) -> Vec<Item> {
    texts.into_iter().map(|text| item(1, text.as_ref())).collect()
}

fn integers<S: AsRef<[u8]>>(integers: impl IntoIterator<Item = S>) -> Vec<Item> {
    integers.into_iter().map(|text| item(3, text.as_ref())).collect()
}

/// The message and the hint; neither may contain the text `secret`, which is in the fields of the
/// tests' files.
fn complaint<T: std::fmt::Debug>(result: Result<T, Error>) -> (String, String) {
    let error = result.unwrap_err();
    let file = error.file().display().to_string();
    let message = error.to_string();
    let message = message.strip_prefix(&file).unwrap();
    let message = message.strip_prefix(':').unwrap_or(message).trim_start().to_owned();
    let hint = error.hint().unwrap_or_default();
    assert!(!message.contains("secret") && !hint.contains("secret"), "{message} {hint}");
    assert!(!message.contains('\n') && !hint.contains('\n'));
    (message, hint)
}
