//! Parquet files that are written.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{
    ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, ArrowWriter, encode_arrow_schema,
    parquet_to_arrow_schema,
};
use parquet::basic::{Compression, LogicalType, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use super::Table;
use crate::cell;
use crate::error::{Problem, Result, quoted, refuse};
use crate::format::Format;
use crate::guard::guarded;
use crate::retype::has_no_form;

/// How much of an encoded row group to gather before it is written: in rows, and in bytes.
const GROUP: (usize, usize) = (1 << 20, 64 << 20);

/// A file that is being written.
pub(crate) struct Writer<W: Write + Send>(ArrowWriter<W>);

impl<W: Write + Send> Writer<W> {
    /// Begins a file of the columns of `schema`, stored as those of `like` are.
    pub(crate) fn new(out: W, like: Option<&crate::Table>, schema: &SchemaRef) -> Result<Self> {
        begin(out, like, schema).map(Self)
    }

    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        guarded(Format::Parquet, 0, || self.0.write(rows).map_err(not_written))
    }

    /// Keeps a text under a name in the metadata of the file.
    pub(crate) fn note(&mut self, name: &str, text: &str) {
        let note = KeyValue::new(name.to_owned(), text.to_owned());
        self.0.append_key_value_metadata(note);
    }

    pub(crate) fn finish(self) -> Result<W> {
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
) -> Result<ArrowWriter<W>> {
    let converter = ArrowSchemaConverter::new().schema_root("schema");
    let table = like.and_then(crate::Table::parquet);
    let mut columns = Vec::new();
    for field in schema.fields() {
        let one = Schema::new(vec![Arc::clone(field)]);
        let converted =
            guarded(Format::Parquet, 0, || converter.convert(&one).map_err(not_written));
        let no_form = || {
            let (column, found) = (quoted(field.name()), cell::type_name(field));
            let what =
                format_args!("column {column} of type {found} cannot be written to a Parquet file");
            refuse(what, "write another format, or drop the column")
        };
        let converted = converted.ok().filter(|_| !has_no_form(field.data_type()));
        let converted = converted.ok_or_else(no_form)?;
        let mut converted = Arc::clone(&converted.root_schema().get_fields()[0]);
        if cell::is_uuid(field) {
            let uuid = Type::primitive_type_builder(field.name(), Physical::FIXED_LEN_BYTE_ARRAY)
                .with_length(16)
                .with_repetition(converted.get_basic_info().repetition())
                .with_logical_type(Some(LogicalType::Uuid));
            converted = Arc::new(uuid.build().map_err(not_written)?);
        }
        let original = table.and_then(|table| original(table, field));
        let same = original.filter(|column| has_shape(column, &converted) && is_known(column));
        columns.push(Arc::clone(same.unwrap_or(&converted)));
    }
    let is_whole = table.is_some_and(|table| table.fields().len() == columns.len());
    let (mut name, mut notes, mut compression) = ("schema", Vec::new(), Compression::SNAPPY);
    if let Some(table) = table {
        let file = table.metadata().file_metadata();
        name = file.schema_descr().name();
        notes = file.key_value_metadata().cloned().unwrap_or_default();
        compression = table.compression();
    }
    // The types of Arrow are noted, which say more than those of Parquet. Of the same columns the
    // note of the source stays; with others, it would be wrong.
    if like.is_some() && !is_whole {
        let noted = table.and_then(|table| {
            let of_file = table.metadata().file_metadata().schema_descr();
            let read = || parquet_to_arrow_schema(of_file, Some(&notes)).map_err(not_written);
            guarded(Format::Parquet, 0, read).ok()
        });
        // Timestamps of 96 bits are written in another unit than their note says.
        let unit = |field: &Field| match field.data_type() {
            DataType::Timestamp(unit, _) => Some(*unit),
            _ => None,
        };
        let fields = schema.fields().iter().map(|field| {
            let of_source =
                noted.as_ref().and_then(|noted| noted.field_with_name(field.name()).ok());
            let is_own = table.is_some_and(|table| original(table, field).is_some());
            of_source.filter(|found| is_own && unit(found) == unit(field)).unwrap_or(field).clone()
        });
        let schema = Schema::new(fields.collect::<Vec<Field>>());
        notes.retain(|note| note.key != ARROW_SCHEMA_META_KEY);
        let text = encode_arrow_schema(&schema);
        notes.push(KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), text));
    }
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(GROUP.0))
        .set_max_row_group_bytes(Some(GROUP.1))
        .set_key_value_metadata(Some(notes).filter(|notes| !notes.is_empty()))
        .build();
    let root = Type::group_type_builder(name).with_fields(columns).build().map_err(not_written)?;
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true)
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

/// Whether the library can write the logical type of a column, and of those in it.
fn is_known(column: &Type) -> bool {
    let kind = column.get_basic_info().logical_type_ref();
    let inner = match column {
        Type::GroupType { fields, .. } => &fields[..],
        Type::PrimitiveType { .. } => &[],
    };
    !matches!(kind, Some(LogicalType::_Unknown { .. }))
        && inner.iter().all(|column| is_known(column))
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
