//! Parquet files that are written.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{Compression, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use super::Table;
use crate::cell;
use crate::error::Problem;
use crate::format::Format;
use crate::guard::guarded;

/// How much of an encoded row group to gather before it is written: in rows, and in bytes.
const GROUP: (usize, usize) = (1 << 20, 64 << 20);

/// A file that is being written.
pub(crate) struct Writer<W: Write + Send>(ArrowWriter<W>);

impl<W: Write + Send> Writer<W> {
    /// Begins a file of the columns of `schema`, stored as those of `like` are.
    pub(crate) fn new(
        out: W,
        like: Option<&crate::Table>,
        schema: &SchemaRef,
    ) -> Result<Self, Problem> {
        begin(out, like, schema).map(Self)
    }

    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<(), Problem> {
        guarded(Format::Parquet, 0, || self.0.write(rows).map_err(not_written))
    }

    /// Keeps a text under a name in the metadata of the file.
    pub(crate) fn note(&mut self, name: &str, text: &str) {
        let note = KeyValue::new(name.to_owned(), text.to_owned());
        self.0.append_key_value_metadata(note);
    }

    pub(crate) fn finish(self) -> Result<W, Problem> {
        let mut writer = self.0;
        writer.flush().map_err(not_written)?;
        // The library says only in words what goes wrong after this.
        writer.sync().map_err(Problem::Output)?;
        writer.into_inner().map_err(not_written)
    }
}

fn begin<W: Write + Send>(
    out: W,
    like: Option<&crate::Table>,
    schema: &SchemaRef,
) -> Result<ArrowWriter<W>, Problem> {
    let converter = ArrowSchemaConverter::new().schema_root("schema");
    let table = like.and_then(crate::Table::parquet);
    let mut columns = Vec::new();
    for field in schema.fields() {
        let one = Schema::new(vec![Arc::clone(field)]);
        let converted =
            guarded(Format::Parquet, 0, || converter.convert(&one).map_err(not_written));
        let converted = converted.map_err(|_| Problem::NoForm {
            column: field.name().clone(),
            found: cell::type_name(field).to_owned(),
            format: Format::Parquet,
        })?;
        let converted = &converted.root_schema().get_fields()[0];
        let original = table.and_then(|table| original(table, field));
        let same = original.filter(|original| has_shape(original, converted));
        columns.push(Arc::clone(same.unwrap_or(converted)));
    }
    let is_whole = table.is_some_and(|table| table.fields().len() == columns.len());
    let (mut name, mut notes, mut compression) = ("schema", Vec::new(), Compression::SNAPPY);
    if let Some(table) = table {
        let file = table.metadata().file_metadata();
        name = file.schema_descr().name();
        notes = file.key_value_metadata().cloned().unwrap_or_default();
        // With other columns, it would be wrong.
        notes.retain(|note| is_whole || note.key != ARROW_SCHEMA_META_KEY);
        compression = table.compression();
    }
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(GROUP.0))
        .set_max_row_group_bytes(Some(GROUP.1))
        .set_key_value_metadata(Some(notes).filter(|notes| !notes.is_empty()))
        .build();
    let root = Type::group_type_builder(name).with_fields(columns).build().map_err(not_written)?;
    // The types of Arrow are noted where they are those of the source.
    let is_arrow = like.is_some_and(|table| table.format() == Format::Arrow);
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(!is_arrow)
        .with_parquet_schema(SchemaDescriptor::new(Arc::new(root)));
    ArrowWriter::try_new_with_options(out, Arc::clone(schema), options).map_err(not_written)
}

/// The column of the table that is called so and has this type.
fn original<'t>(table: &'t Table, field: &Field) -> Option<&'t TypePtr> {
    let (place, found) = table.fields().find(field.name())?;
    let root = table.metadata().file_metadata().schema_descr().root_schema();
    let column = root.get_fields().get(place)?;
    (found.data_type() == field.data_type()).then_some(column)
}

/// Whether two columns are stored in the same way, whatever their bytes mean.
fn has_shape(original: &Type, converted: &Type) -> bool {
    let (a, b) = (original.get_basic_info(), converted.get_basic_info());
    let same = a.has_repetition() == b.has_repetition()
        && (!a.has_repetition() || a.repetition() == b.repetition());
    same && match (original, converted) {
        (Type::GroupType { fields: a, .. }, Type::GroupType { fields: b, .. }) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| has_shape(a, b))
        }
        (
            Type::PrimitiveType { physical_type: a, type_length: m, .. },
            Type::PrimitiveType { physical_type: b, type_length: n, .. },
        ) => a == b && m == n || holds_decimals(original, converted),
        _ => false,
    }
}

/// Whether both columns are of decimals of the same number of digits, and the library writes them
/// as the original has them.
fn holds_decimals(original: &Type, converted: &Type) -> bool {
    let digits = |column: &Type| match column {
        Type::PrimitiveType { precision, .. } => *precision,
        Type::GroupType { .. } => 0,
    };
    let count = digits(original);
    // Of bytes the library takes the fewest that hold all numbers of so many digits.
    let bytes = (f64::from(count) * 10_f64.log2() + 1.0) / 8.0;
    let is_stored = match original {
        Type::PrimitiveType {
            physical_type: Physical::FIXED_LEN_BYTE_ARRAY, type_length, ..
        } => f64::from(*type_length) == bytes.ceil(),
        Type::PrimitiveType { physical_type, .. } => {
            matches!(physical_type, Physical::INT32 | Physical::INT64)
        }
        Type::GroupType { .. } => false,
    };
    count > 0 && count == digits(converted) && is_stored
}

fn not_written(error: ParquetError) -> Problem {
    Problem::Output(match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    })
}
