//! Two processes that match files of records, and the files.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Date32Type, Int32Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{Finished, Running, names, text};

/// Stands in fields of the tests' files, and must not be in any message.
pub(crate) const PLANTED: &str = "zq7Planted";

/// A folder that goes away with its files.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> String {
        text(&self.0.path().join(name)).to_owned()
    }

    /// Writes a file; gives its path.
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

    /// Names of the files in it, hidden ones too.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.0.path())
    }
}

/// Runs both sides of a verb; the sender listens.
pub(crate) fn pair(verb: &str, left: &[&str], right: &[&str]) -> [Finished; 2] {
    pair_of([verb, verb], left, right)
}

/// Runs a sender of one verb and a receiver of another.
pub(crate) fn pair_of(verbs: [&str; 2], left: &[&str], right: &[&str]) -> [Finished; 2] {
    let listen = [verbs[0], "--role", "sender", "--listen", "127.0.0.1:0"];
    let sender = Running::start(&[&listen[..], left].concat());
    let address = format!("127.0.0.1:{}", sender.port());
    let connect = [verbs[1], "--role", "receiver", "--connect", &address];
    let receiver = Running::start(&[&connect[..], right].concat());
    [sender.finish(), receiver.finish()]
}

/// Fails unless both ended well and said that they trusted each other to follow the protocol.
pub(crate) fn assert_matched(both: &[Finished; 2]) {
    super::assert_done(both, "semi-honest");
}

/// A row of text as it must be written: fields are quoted where they must be.
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

/// Writes a Parquet file of one row group after the other, of at most 1,000 rows.
pub(crate) fn store(path: &str, columns: Vec<(&str, ArrayRef)>) {
    let fields = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), schema, None).unwrap();
    for first in (0..batch.num_rows()).step_by(1000) {
        let rows = (batch.num_rows() - first).min(1000);
        writer.write(&batch.slice(first, rows)).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
}

/// A Parquet file: names and types of its columns, and its rows as text.
pub(crate) fn load(path: &str) -> (Vec<(String, DataType)>, Vec<Vec<String>>) {
    let file = File::open(Path::new(path)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let fields = reader.schema().fields().iter();
    let columns = fields.map(|field| (field.name().clone(), field.data_type().clone()));
    let columns = columns.collect();
    let mut rows = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            rows.push(batch.columns().iter().map(|c| shown(c, row)).collect());
        }
    }
    (columns, rows)
}

fn shown(column: &ArrayRef, row: usize) -> String {
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Date32 => iso(column.as_primitive::<Date32Type>().value(row)),
        DataType::Binary => format!("{:?}", column.as_binary::<i32>().value(row)),
        other => panic!("the tests' files have no {other}"),
    }
}

/// A day since 1970-01-01 as it is written.
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
