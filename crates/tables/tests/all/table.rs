//! Parquet files for tests, written and read with the Parquet library alone. Tests of other crates
//! include this file.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Row;
use parquet::schema::parser::parse_message_type;

/// A column: its declaration, such as `optional int32 day (DATE)`, its values, and the levels of
/// its only leaf, if it has any.
#[derive(Clone)]
pub(crate) struct Column {
    declared: String,
    values: Values,
    definitions: Option<Vec<i16>>,
    repetitions: Option<Vec<i16>>,
}

/// Values of one physical type.
#[derive(Clone)]
pub(crate) enum Values {
    Boolean(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

macro_rules! values_of {
    ($($native:ty => $kind:ident),*) => {
        $(impl From<Vec<$native>> for Values {
            fn from(values: Vec<$native>) -> Self {
                Self::$kind(values)
            }
        })*
    };
}

values_of!(bool => Boolean, i32 => Int32, i64 => Int64, Int96 => Int96, f32 => Float, f64 => Double);
values_of!(ByteArray => Bytes, FixedLenByteArray => Fixed);

pub(crate) fn required(declared: &str, values: impl Into<Values>) -> Column {
    Column {
        declared: format!("required {declared}"),
        values: values.into(),
        definitions: None,
        repetitions: None,
    }
}

/// A column with nulls.
pub(crate) fn optional<T>(declared: &str, values: impl IntoIterator<Item = Option<T>>) -> Column
where
    Vec<T>: Into<Values>,
{
    let values: Vec<_> = values.into_iter().collect();
    Column {
        declared: format!("optional {declared}"),
        definitions: Some(values.iter().map(|v| v.is_some().into()).collect()),
        values: values.into_iter().flatten().collect::<Vec<T>>().into(),
        repetitions: None,
    }
}

/// A required column of strings.
pub(crate) fn strings<S: AsRef<str>>(name: &str, values: impl IntoIterator<Item = S>) -> Column {
    let values: Vec<ByteArray> = values.into_iter().map(|v| v.as_ref().into()).collect();
    required(&format!("binary {name} (STRING)"), values)
}

/// A column of lists of integers, which can be null, as can their elements.
pub(crate) fn lists(name: &str, lists: &[Option<&[Option<i32>]>]) -> Column {
    let mut levels = Vec::new();
    let mut values = Vec::new();
    for list in lists {
        match list {
            None => levels.push((0, 0)),
            Some([]) => levels.push((1, 0)),
            Some(list) => {
                for (i, element) in list.iter().enumerate() {
                    levels.push((2 + i16::from(element.is_some()), i16::from(i > 0)));
                    values.extend(*element);
                }
            }
        }
    }
    let (definitions, repetitions) = levels.into_iter().unzip();
    Column {
        declared: format!(
            "optional group {name} (LIST) {{ repeated group list {{ optional int32 element; }} }}"
        ),
        values: Values::Int32(values),
        definitions: Some(definitions),
        repetitions: Some(repetitions),
    }
}

/// A file of these columns, in row groups of `rows` rows at most; lists must all be in one.
pub(crate) fn table(columns: &[Column], rows: usize, properties: WriterProperties) -> Vec<u8> {
    let declared: String = columns
        .iter()
        .map(|column| column.declared.clone() + if column.repetitions.is_some() { "" } else { ";" })
        .collect();
    let schema = parse_message_type(&format!("message schema {{ {declared} }}")).unwrap();
    let mut file = Vec::new();
    let properties = Arc::new(properties);
    let mut writer = SerializedFileWriter::new(&mut file, Arc::new(schema), properties).unwrap();
    let all = columns.first().map_or(0, Column::len);
    assert!(columns.iter().all(|column| column.len() == all));
    for first in (0..all).step_by(rows) {
        let mut group = writer.next_row_group().unwrap();
        for column in columns {
            let mut chunk = group.next_column().unwrap().unwrap();
            column.write(first, all.min(first + rows), chunk.untyped());
            chunk.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    file
}

impl Column {
    fn len(&self) -> usize {
        match (&self.repetitions, &self.definitions, &self.values) {
            (Some(levels), _, _) => levels.iter().filter(|&&level| level == 0).count(),
            (_, Some(levels), _) => levels.len(),
            (_, _, Values::Boolean(values)) => values.len(),
            (_, _, Values::Int32(values)) => values.len(),
            (_, _, Values::Int64(values)) => values.len(),
            (_, _, Values::Int96(values)) => values.len(),
            (_, _, Values::Float(values)) => values.len(),
            (_, _, Values::Double(values)) => values.len(),
            (_, _, Values::Bytes(values)) => values.len(),
            (_, _, Values::Fixed(values)) => values.len(),
        }
    }

    fn write(&self, first: usize, end: usize, chunk: &mut ColumnWriter<'_>) {
        let mut values = first..end;
        let mut definitions = self.definitions.as_deref();
        if self.repetitions.is_some() {
            assert_eq!((first, end), (0, self.len()), "lists are in one row group");
            values.end = usize::MAX;
        } else if let Some(levels) = &mut definitions {
            let before = |row: usize| levels[..row].iter().filter(|&&level| level > 0).count();
            values = before(first)..before(end);
            *levels = &levels[first..end];
        }
        macro_rules! write {
            ($writer:expr, $all:expr) => {
                $writer.write_batch(
                    &$all[values.start..values.end.min($all.len())],
                    definitions,
                    self.repetitions.as_deref(),
                )
            };
        }
        let written = match (chunk, &self.values) {
            (ColumnWriter::BoolColumnWriter(writer), Values::Boolean(all)) => write!(writer, all),
            (ColumnWriter::Int32ColumnWriter(writer), Values::Int32(all)) => write!(writer, all),
            (ColumnWriter::Int64ColumnWriter(writer), Values::Int64(all)) => write!(writer, all),
            (ColumnWriter::Int96ColumnWriter(writer), Values::Int96(all)) => write!(writer, all),
            (ColumnWriter::FloatColumnWriter(writer), Values::Float(all)) => write!(writer, all),
            (ColumnWriter::DoubleColumnWriter(writer), Values::Double(all)) => write!(writer, all),
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Bytes(all)) => {
                write!(writer, all)
            }
            (ColumnWriter::FixedLenByteArrayColumnWriter(writer), Values::Fixed(all)) => {
                write!(writer, all)
            }
            _ => panic!("values are of the type declared"),
        };
        written.unwrap();
    }
}

/// The declarations of the columns of a file, and its rows.
pub(crate) fn load(path: &Path) -> (Vec<String>, Vec<Row>) {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let file = reader.metadata().file_metadata();
    let fields = file.schema_descr().root_schema().get_fields().iter();
    let mut declared = Vec::new();
    for field in fields {
        let mut text = Vec::new();
        parquet::schema::printer::print_schema(&mut text, field);
        declared.push(String::from_utf8(text).unwrap().trim().to_owned());
    }
    let rows = reader.get_row_iter(None).unwrap();
    (declared, rows.map(|row| row.unwrap()).collect())
}
