//! Files for the readers, in a folder of each thread, overwritten for each input.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use volery_tables::{
    Error, Format, Inputs, Output, Packing, Problem, Reading, Records, Rule, Sink, Table,
};

thread_local! {
    static FOLDER: TempDir = tempfile::tempdir().expect("the system provides a temporary folder");
}

/// The path of a file of this name.
pub(super) fn path(name: &str) -> PathBuf {
    FOLDER.with(|folder| folder.path().join(name))
}

/// A file of this name that holds `bytes`.
pub(super) fn stored(name: &str, bytes: &[u8]) -> PathBuf {
    let path = path(name);
    fs::write(&path, bytes).expect("a temporary file can be written");
    path
}

/// Opens the file; checks the message of an error.
pub(super) fn open(inputs: &Inputs) -> Result<Table, Error> {
    Table::open(inputs).inspect_err(check_message)
}

/// Reads the table; checks the message of an error.
pub(super) fn read(table: &Table, reading: &Reading) -> Result<Records, Error> {
    Records::read(table, reading).inspect_err(check_message)
}

/// A rule of these columns, each with what follows its colon.
pub(super) fn rule(columns: &[(&str, &str)]) -> Result<Rule, Problem> {
    let columns = columns.iter().map(|(name, spec)| {
        let colon = if spec.is_empty() { "" } else { ":" };
        format!("\"{}\"{colon}{spec}", name.replace('"', "\"\""))
    });
    Rule::parse(&columns.collect::<Vec<_>>().join(","))
}

/// Writes the first rows of these items, ascending, in this format.
pub(super) fn written(
    table: &Table,
    records: &Records,
    items: &[u32],
    format: Format,
) -> Result<Vec<u8>, Error> {
    let result = write(table, &first_rows(records), items, format);
    result.inspect_err(check_message)
}

fn write(table: &Table, rows: &[u64], items: &[u32], format: Format) -> Result<Vec<u8>, Error> {
    let output = Output { format, packing: Packing::None, like: Some(table) };
    let failed = |problem| Error::new(Path::new("out"), problem);
    let mut sink = Sink::new(Vec::new(), output, table.schema()).map_err(failed)?;
    let rows: HashSet<u64> = items.iter().map(|&item| rows[item as usize]).collect();
    let wanted = |row| rows.contains(&row);
    let mut scan = table.select(&wanted)?;
    let mut count = 0;
    while let Some(batch) = scan.next()? {
        count += batch.rows.num_rows();
        let written = sink.write(&batch.rows);
        written.map_err(|problem| table.error(&batch, problem))?;
    }
    assert_eq!(count, items.len(), "a row for each item");
    sink.finish().map_err(failed)
}

/// The first row of each item, counted from 0.
pub(super) fn first_rows(records: &Records) -> Vec<u64> {
    let mut rows = Vec::new();
    for (row, item) in (0..).zip(&records.rows[0]) {
        if *item == Some(rows.len() as u32) {
            rows.push(row);
        }
    }
    assert_eq!(rows.len(), records.items[0].len(), "each item has a row");
    rows
}

/// Messages are single lines.
fn check_message(error: &Error) {
    let message = error.problem().to_string();
    let hint = error.hint().unwrap_or_default();
    for text in [&message, &hint] {
        assert!(!text.chars().any(char::is_control), "the message has no control characters");
        assert!(text.len() < 1 << 12, "a message of {} bytes", text.len());
    }
}

/// The names of the columns of a table.
pub(super) fn columns(table: &Table) -> Vec<String> {
    let fields = table.schema().fields().iter();
    fields.map(|field| field.name().clone()).collect()
}

/// Checks that two readings of the same file are equal.
pub(super) fn assert_same(a: &Records, b: &Records) {
    assert_eq!(a.counts, b.counts);
    assert_eq!(a.key_description, b.key_description);
    assert!(a.items == b.items && a.rows == b.rows, "both readings have the same keys");
    assert!(a.payload == b.payload, "both readings have the same values");
}

/// Checks that `again` holds the keys of these items of `records`, in this order.
pub(super) fn assert_items(again: &Records, records: &Records, items: &[u32]) {
    let wanted = items.iter().map(|&item| &records.items[0][item as usize]);
    assert!(again.items[0].iter().eq(wanted), "the keys that were written");
}

/// Items selected by the bits of `mask`, repeated.
pub(super) fn picked(count: usize, mask: u8) -> Vec<u32> {
    (0..count as u32).filter(|i| mask >> (i % 8) & 1 == 1).collect()
}
