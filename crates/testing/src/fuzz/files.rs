//! Files for the readers, in a folder of each thread, overwritten for each input.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use volery_tables::{Error, Format, Output, Reading, Records};

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

/// Reads the file; checks the message of an error.
pub(super) fn read(path: &Path, reading: &Reading) -> Result<Records, Error> {
    let result = volery_tables::read(path, reading, &mut |_, _| {});
    if let Err(error) = &result {
        check_message(error);
    }
    result
}

/// Writes the rows of these items in this format.
pub(super) fn written(records: &Records, items: &[u32], format: Format) -> Result<Vec<u8>, Error> {
    let mut file = Vec::new();
    let output = Output {
        file: &mut file,
        format,
        extra: None,
    };
    match records.write_matches(items, output, &mut |_, _| {}) {
        Ok(written) => assert_eq!(written.rows, items.len() as u64),
        Err(error) => {
            check_message(&error);
            return Err(error);
        }
    }
    Ok(file)
}

/// Messages are single lines.
fn check_message(error: &Error) {
    let message = error.problem().to_string();
    let hint = error.hint().unwrap_or_default();
    for text in [&message, &hint] {
        assert!(
            !text.chars().any(char::is_control),
            "the message has no control characters"
        );
        assert!(text.len() < 1 << 12, "a message of {} bytes", text.len());
    }
}

/// The names of the columns of a file, as its reader reports them.
pub(super) fn columns(path: &Path, reading: &Reading) -> Vec<String> {
    let nowhere = Reading {
        keys: vec!["\u{1}there is no such column".to_owned()],
        ..reading.clone()
    };
    match read(path, &nowhere) {
        Err(error) => match error.problem() {
            volery_tables::Problem::MissingColumn { columns, .. } => columns.clone(),
            _ => Vec::new(),
        },
        Ok(_) => Vec::new(),
    }
}

/// Checks that two readings of the same file are equal.
pub(super) fn assert_same(a: &Records, b: &Records) {
    assert_eq!(a.counts(), b.counts());
    assert_eq!(a.key_types(), b.key_types());
    assert!(a.keys() == b.keys(), "both readings have the same keys");
    assert!(
        a.values() == b.values(),
        "both readings have the same values"
    );
    assert_eq!(a.notices(), b.notices());
    assert!((0..a.keys().len()).all(|i| a.row_of(i) == b.row_of(i)));
}

/// Checks that `again` holds the keys and the values of these items of `records`, in this order.
pub(super) fn assert_items(again: &Records, records: &Records, items: &[u32]) {
    assert_eq!(again.keys().len(), items.len());
    for (i, &item) in items.iter().enumerate() {
        assert!(again.keys().get(i) == records.keys().get(item as usize));
    }
}

/// Items selected by the bits of `mask`, repeated.
pub(super) fn picked(count: usize, mask: u8) -> Vec<u32> {
    (0..count as u32)
        .filter(|i| mask >> (i % 8) & 1 == 1)
        .collect()
}
