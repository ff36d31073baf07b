//! Two processes that match files of records, and the files.

use std::path::Path;

use parquet::file::properties::WriterProperties;
use parquet::record::Field;

use super::table::{self, Column};
use super::{ProcessResult, RunningProcess, names, text};

/// Occurs in fields of the tests' files, and must not occur in any message.
pub(crate) const PLANTED: &str = "zq7Planted";

/// A temporary folder, deleted with its files on drop.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> String {
        text(&self.0.path().join(name)).to_owned()
    }

    /// Writes a file; returns its path.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.0.path().join(name), bytes).unwrap();
        self.path(name)
    }

    /// The text of a file.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    /// A JSON file.
    pub(crate) fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// Names of the files in it, including hidden ones.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.0.path())
    }
}

/// Runs both sides of a subcommand, each with the words of a line; the sender listens.
pub(crate) fn pair(verb: &str, left: &str, right: &str) -> [ProcessResult; 2] {
    pair_of([verb, verb], left, right)
}

/// Runs the sender of one subcommand and the receiver of another.
pub(crate) fn pair_of(verbs: [&str; 2], left: &str, right: &str) -> [ProcessResult; 2] {
    let start = |verb, line: String| {
        let line = format!("{verb} {line}");
        RunningProcess::start(&line.split_whitespace().collect::<Vec<_>>())
    };
    let sender = start(verbs[0], format!("--role sender --listen 127.0.0.1:0 {left}"));
    let address = format!("127.0.0.1:{}", sender.port());
    let receiver = start(verbs[1], format!("--role receiver --connect {address} {right}"));
    [sender.finish(), receiver.finish()]
}

/// Fails unless both succeeded and reported their security model.
pub(crate) fn assert_matched(both: &[ProcessResult; 2]) {
    super::assert_done(both, "volery: secure against a ");
}

/// A table of the users with these numbers.
pub(crate) fn users(numbers: impl IntoIterator<Item = usize>) -> String {
    let rows = numbers.into_iter().map(|number| format!("{number},u{number}@x.org\n"));
    std::iter::once("id,email\n".to_owned()).chain(rows).collect()
}

/// Writes a Parquet file in row groups of at most 1,000 rows.
pub(crate) fn store(path: &str, columns: &[Column]) {
    let file = table::table(columns, 1000, WriterProperties::default());
    std::fs::write(path, file).unwrap();
}

/// A Parquet file: the declarations of its columns, and its rows as text.
pub(crate) fn load(path: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let (columns, rows) = table::load(Path::new(path));
    let rows = rows.iter().map(|row| {
        let fields = row.get_column_iter();
        fields.map(|(_, field)| shown(field)).collect()
    });
    (columns, rows.collect())
}

fn shown(field: &Field) -> String {
    match field {
        Field::Str(text) => text.clone(),
        other => other.to_string(),
    }
}
