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

/// Runs both sides of a subcommand; the sender listens.
pub(crate) fn pair(verb: &str, left: &[&str], right: &[&str]) -> [ProcessResult; 2] {
    pair_of([verb, verb], left, right)
}

/// Runs the sender of one subcommand and the receiver of another.
pub(crate) fn pair_of(verbs: [&str; 2], left: &[&str], right: &[&str]) -> [ProcessResult; 2] {
    let listen = [verbs[0], "--role", "sender", "--listen", "127.0.0.1:0"];
    let sender = RunningProcess::start(&[&listen[..], left].concat());
    let address = format!("127.0.0.1:{}", sender.port());
    let connect = [verbs[1], "--role", "receiver", "--connect", &address];
    let receiver = RunningProcess::start(&[&connect[..], right].concat());
    [sender.finish(), receiver.finish()]
}

/// Fails unless both succeeded and reported their security model.
pub(crate) fn assert_matched(both: &[ProcessResult; 2]) {
    super::assert_done(both, "volery: secure against a ");
}

/// A row of text in canonical form: fields are quoted only where necessary.
pub(crate) fn line(fields: &[impl AsRef<str>], delimiter: char) -> String {
    let mut line = String::new();
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            line.push(delimiter);
        }
        let field = field.as_ref();
        if field.contains([delimiter, '"', '\n', '\r']) {
            line.push('"');
            line += &field.replace('"', "\"\"");
            line.push('"');
        } else {
            line += field;
        }
    }
    line.push('\n');
    line
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
        Field::Int(number) => number.to_string(),
        Field::UByte(number) => number.to_string(),
        Field::ULong(number) => number.to_string(),
        Field::Date(day) => iso(*day),
        Field::Bytes(bytes) => format!("{:?}", bytes.data()),
        Field::Null | Field::Long(_) | Field::Double(_) | Field::Decimal(_) => field.to_string(),
        other => panic!("the tests' files have no {other:?}"),
    }
}

/// The declaration of a column of strings.
pub(crate) fn string(name: &str) -> String {
    format!("REQUIRED BYTE_ARRAY {name} (STRING);")
}

/// A day, given as days since 1970-01-01, as text.
pub(crate) fn iso(day: i32) -> String {
    let (mut year, mut rest) = (1970, day);
    let leap = |year: i32| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    while rest >= 365 + i32::from(leap(year)) {
        rest -= 365 + i32::from(leap(year));
        year += 1;
    }
    let february = 28 + i32::from(leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if rest < days {
            break;
        }
        rest -= days;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", rest + 1)
}
