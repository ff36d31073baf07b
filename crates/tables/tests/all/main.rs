//! Files of records, read and written through the public interface.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bad_text;
mod damaged;
mod parquet;
mod properties;
mod samples;
mod table;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use volery_tables::{Error, Extra, Format, Output, Reading, Records, Written};

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
        fs::write(&path, bytes).unwrap();
        path
    }
}

fn by(keys: &[&str]) -> Reading {
    Reading {
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
        ..Reading::default()
    }
}

fn read(path: &Path, reading: &Reading) -> Result<Records, Error> {
    volery_tables::read(path, reading, &mut |_, _| {})
}

/// Reads `bytes` as a file of this name.
fn read_as(name: &str, bytes: impl AsRef<[u8]>, reading: &Reading) -> Result<Records, Error> {
    let folder = Folder::new();
    read(&folder.write(name, bytes), reading)
}

/// The output for `items`, in memory.
fn matches(
    records: &Records,
    items: &[u32],
    format: Format,
    extra: Option<Extra<'_>>,
) -> Result<Vec<u8>, Error> {
    let mut file = Vec::new();
    let output = Output {
        file: &mut file,
        format,
        extra,
    };
    let Written { rows } = records.write_matches(items, output, &mut |_, _| {})?;
    assert_eq!(rows, items.len() as u64);
    Ok(file)
}

/// The contents of the keys with one text column: the bytes after the tag and the length.
fn texts(records: &Records) -> Vec<String> {
    let content = |key: &[u8]| String::from_utf8(key[9..].to_vec()).unwrap();
    records.keys().iter().map(content).collect()
}

/// The message and the hint; neither may contain the text `secret`, which is in the fields of the
/// tests' files.
fn complaint(result: Result<Records, Error>) -> (String, String) {
    let error = result.unwrap_err();
    let file = error.file().display().to_string();
    let message = error.to_string();
    let message = message
        .strip_prefix(&format!("{file}: "))
        .unwrap()
        .to_owned();
    let hint = error.hint().unwrap_or_default();
    assert!(
        !message.contains("secret") && !hint.contains("secret"),
        "{message} {hint}"
    );
    assert!(!message.contains('\n') && !hint.contains('\n'));
    (message, hint)
}
