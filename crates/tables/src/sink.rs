//! Writing rows to a file.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use csv::{ByteRecord, QuoteStyle};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{Compression, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::cell::{self, append_hex, append_text, cell, is_field, plain, plain_type};
use crate::columnar;
use crate::encoding::is_marked;
use crate::error::Problem;
use crate::format::{Format, Packing};
use crate::key::check_names;
use crate::table::Table;

/// How to write a file.
#[derive(Debug, Clone, Copy)]
pub struct Output<'t> {
    /// The format.
    pub format: Format,
    /// The compression of the whole file, for text.
    pub packing: Packing,
    /// The table the rows come from: the output takes over its delimiter if both have the same
    /// text format, and from Parquet to Parquet its compression, its metadata and the exact types
    /// of its columns.
    pub like: Option<&'t Table>,
}

/// Writes rows to a file.
pub struct Sink<W: Write + Send> {
    writer: Writer<W>,
    schema: SchemaRef,
    format: Format,
    /// The columns as they are written.
    written: SchemaRef,
}

enum Writer<W: Write + Send> {
    Text(Box<csv::Writer<Packed<W>>>),
    Parquet(Box<ArrowWriter<W>>),
    Arrow(Box<FileWriter<W>>),
}

/// How much of an encoded row group to gather before it is written: in rows, and in bytes.
const GROUP: (usize, usize) = (1 << 20, 64 << 20);

impl<W: Write + Send> Sink<W> {
    /// Begins a file of these columns.
    ///
    /// # Errors
    /// If a column has no form in that format, or two columns have the same name, or writing fails.
    pub fn new(out: W, output: Output<'_>, schema: &SchemaRef) -> Result<Self, Problem> {
        let format = output.format;
        let fields = schema.fields();
        check_names(fields.iter().map(|field| field.name().as_str()))?;
        let written = fields.iter().map(|field| written(field, format));
        let written = Arc::new(Schema::new(written.collect::<Vec<Field>>()));
        let writer = match format {
            Format::Csv | Format::Tsv => {
                fields
                    .iter()
                    .try_for_each(|field| cell::check_text(field))?;
                Writer::Text(Box::new(begin_text(out, output, schema)?))
            }
            _ if output.packing != Packing::None => return Err(Problem::PackedTable),
            Format::Parquet => Writer::Parquet(Box::new(begin_parquet(out, output, &written)?)),
            Format::Arrow => {
                let writer = FileWriter::try_new(out, &written).map_err(refused)?;
                Writer::Arrow(Box::new(writer))
            }
        };
        Ok(Self {
            writer,
            schema: Arc::clone(schema),
            format,
            written,
        })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// If writing fails, or a field of a text file is not UTF-8 and the format requires it:
    /// [`Table::error`] says where this field is.
    ///
    /// # Panics
    /// If the rows have another schema.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), Problem> {
        assert!(
            rows.schema_ref().fields() == self.schema.fields(),
            "the rows have the schema of the sink"
        );
        if let Writer::Text(writer) = &mut self.writer {
            return write_text(writer, rows);
        }
        let rows = with_text(rows, &self.written, self.format)?;
        match &mut self.writer {
            Writer::Text(_) => Ok(()),
            Writer::Parquet(writer) => columnar::guarded(Format::Parquet, 0, || {
                writer.write(&rows).map_err(not_written)
            }),
            Writer::Arrow(writer) => writer.write(&rows).map_err(refused),
        }
    }

    /// Keeps a text under a name in a Parquet file, where [`Table::note`] finds it, and other
    /// programs in the key-value metadata of the file. Other formats have no place for it.
    pub fn note(&mut self, name: &str, text: &str) {
        if let Writer::Parquet(writer) = &mut self.writer {
            writer.append_key_value_metadata(KeyValue::new(name.to_owned(), text.to_owned()));
        }
    }

    /// Ends the file and returns the writer, flushed.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(self) -> Result<W, Problem> {
        let mut out = match self.writer {
            Writer::Text(writer) => {
                let packed = writer.into_inner();
                let packed = packed.map_err(|error| Problem::Output(error.into_error()))?;
                packed.finish().map_err(Problem::Output)?
            }
            Writer::Parquet(mut writer) => {
                writer.flush().map_err(not_written)?;
                // The library says only in words what goes wrong after this.
                writer.sync().map_err(Problem::Output)?;
                writer.into_inner().map_err(not_written)?
            }
            Writer::Arrow(mut writer) => {
                writer.finish().map_err(refused)?;
                writer.into_inner().map_err(refused)?
            }
        };
        out.flush().map_err(Problem::Output)?;
        Ok(out)
    }
}

/// The columns of rows in memory: fields of text files are strings.
#[must_use]
pub fn text_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields: Vec<Field> = fields
        .map(|field| written(field, Format::Parquet))
        .collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The rows with the columns of [`text_schema`], which is `schema`.
///
/// # Errors
/// A field of a text file that is not UTF-8: [`Table::error`] says where it is.
pub fn text_rows(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Problem> {
    with_text(rows, schema, Format::Parquet)
}

/// The rows as they are written to this format.
fn with_text(
    rows: &RecordBatch,
    written: &SchemaRef,
    format: Format,
) -> Result<RecordBatch, Problem> {
    let columns = rows
        .columns()
        .iter()
        .zip(rows.schema_ref().fields())
        .enumerate();
    let columns = columns.map(|(i, (column, field))| {
        if is_field(field) {
            return strings(column, i, format);
        }
        match format {
            Format::Arrow => plain(column).map_err(refused),
            _ => Ok(Arc::clone(column)),
        }
    });
    let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
    RecordBatch::try_new(Arc::clone(written), columns).map_err(refused)
}

/// A column as it is written: fields of text files are strings, and only Parquet has dictionaries.
fn written(field: &FieldRef, format: Format) -> Field {
    let column = cell::without_note(field);
    match format {
        _ if is_field(field) => column.with_data_type(DataType::Utf8),
        Format::Arrow => {
            let kind = plain_type(field.data_type()).clone();
            column.with_data_type(kind)
        }
        _ => column,
    }
}

/// The fields of a text file as strings; `column` is their column, counted from 0.
fn strings(array: &ArrayRef, column: usize, format: Format) -> Result<ArrayRef, Problem> {
    let fields = array.as_binary::<i32>();
    if let Ok(strings) = StringArray::try_from_binary(fields.clone()) {
        return Ok(Arc::new(strings));
    }
    // The bytes together may be valid although a border between fields splits a character.
    let wrong = fields
        .iter()
        .position(|field| field.is_some_and(|f| std::str::from_utf8(f).is_err()));
    Err(Problem::NotUtf8 {
        row: wrong.unwrap_or(0) as u64 + 1,
        column: column + 1,
        format,
    })
}

fn begin_text<W: Write>(
    out: W,
    output: Output<'_>,
    schema: &Schema,
) -> Result<csv::Writer<Packed<W>>, Problem> {
    let same = output.like.filter(|table| table.format() == output.format);
    let delimiter = same
        .and_then(Table::delimiter)
        .unwrap_or(output.format.delimiter());
    let mut builder = csv::WriterBuilder::new();
    builder.delimiter(delimiter).buffer_capacity(1 << 16);
    let header: ByteRecord = schema
        .fields()
        .iter()
        .map(|field| field.name().as_bytes())
        .collect();
    // Behind a quote a byte-order mark is a part of the name, as it was in the file.
    let style = match header.get(0) {
        Some(name) if is_marked(name) => QuoteStyle::Always,
        _ => QuoteStyle::Necessary,
    };
    let out = Packed::new(out, output.packing).map_err(Problem::Output)?;
    let mut writer = builder.quote_style(style).from_writer(out);
    writer
        .write_byte_record(&header)
        .map_err(|error| Problem::Output(error.into()))?;
    let out = writer
        .into_inner()
        .map_err(|error| Problem::Output(error.into_error()))?;
    Ok(builder.quote_style(QuoteStyle::Necessary).from_writer(out))
}

/// Null is empty, bytes are in hexadecimal, anything else has its text.
fn write_text<W: Write>(
    writer: &mut csv::Writer<Packed<W>>,
    rows: &RecordBatch,
) -> Result<(), Problem> {
    let columns = rows.columns().iter().zip(rows.schema_ref().fields());
    let columns = columns.map(|(array, field)| {
        let is_bytes = cell::type_name(field) == "binary" && !is_field(field);
        Ok((field, plain(array)?, is_bytes))
    });
    let columns: Vec<_> = columns
        .collect::<Result<_, ArrowError>>()
        .map_err(refused)?;
    let (mut record, mut text) = (ByteRecord::new(), Vec::new());
    for row in 0..rows.num_rows() {
        record.clear();
        for (field, array, is_bytes) in &columns {
            match cell(field, array, row) {
                None => record.push_field(b""),
                Some(cell::Cell::Bytes(bytes)) if !is_bytes => record.push_field(bytes),
                Some(found) => {
                    text.clear();
                    match found {
                        cell::Cell::Bytes(bytes) => append_hex(bytes, &mut text),
                        found => append_text(found, &mut text)
                            .map_err(|_| cell::no_text(field.name(), cell::type_name(field)))?,
                    }
                    record.push_field(&text);
                }
            }
        }
        writer
            .write_byte_record(&record)
            .map_err(|error| Problem::Output(error.into()))?;
    }
    Ok(())
}

fn begin_parquet<W: Write + Send>(
    out: W,
    output: Output<'_>,
    schema: &SchemaRef,
) -> Result<ArrowWriter<W>, Problem> {
    let converter = ArrowSchemaConverter::new().schema_root("schema");
    let table = output.like.and_then(Table::parquet);
    let mut columns = Vec::new();
    for field in schema.fields() {
        let one = Schema::new(vec![Arc::clone(field)]);
        let converted = columnar::guarded(Format::Parquet, 0, || {
            converter.convert(&one).map_err(not_written)
        });
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
    let root = Type::group_type_builder(name)
        .with_fields(columns)
        .build()
        .map_err(not_written)?;
    // The types of Arrow are noted where they are those of the source.
    let is_arrow = output
        .like
        .is_some_and(|table| table.format() == Format::Arrow);
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(!is_arrow)
        .with_parquet_schema(SchemaDescriptor::new(Arc::new(root)));
    ArrowWriter::try_new_with_options(out, Arc::clone(schema), options).map_err(not_written)
}

/// The column of the table that is called so and has this type.
fn original<'t>(table: &'t columnar::Table, field: &Field) -> Option<&'t TypePtr> {
    let (place, found) = table.fields().find(field.name())?;
    let root = table
        .metadata()
        .file_metadata()
        .schema_descr()
        .root_schema();
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
            Type::PrimitiveType {
                physical_type: a,
                type_length: m,
                ..
            },
            Type::PrimitiveType {
                physical_type: b,
                type_length: n,
                ..
            },
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
            physical_type: Physical::FIXED_LEN_BYTE_ARRAY,
            type_length,
            ..
        } => f64::from(*type_length) == bytes.ceil(),
        Type::PrimitiveType { physical_type, .. } => {
            matches!(physical_type, Physical::INT32 | Physical::INT64)
        }
        Type::GroupType { .. } => false,
    };
    count > 0 && count == digits(converted) && is_stored
}

/// A writer that compresses.
enum Packed<W: Write> {
    Plain(W),
    Gzip(flate2::write::GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Packed<W> {
    fn new(out: W, packing: Packing) -> io::Result<Self> {
        Ok(match packing {
            Packing::None => Self::Plain(out),
            Packing::Gzip => {
                let level = flate2::Compression::default();
                Self::Gzip(flate2::write::GzEncoder::new(out, level))
            }
            Packing::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(out, 0)?),
        })
    }

    fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(out) => Ok(out),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Packed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
            Self::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
            Self::Zstd(out) => out.flush(),
        }
    }
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

fn refused(error: ArrowError) -> Problem {
    Problem::Output(match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    })
}
