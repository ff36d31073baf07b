//! Writing rows to a file.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use csv::{ByteRecord, QuoteStyle};

use crate::cell::{self, append_hex, append_text, cell, is_field, plain, plain_type};
use crate::columnar;
use crate::encoding::is_marked;
use crate::error::Problem;
use crate::format::{Format, Packing};
use crate::ipc;
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
    Text(Box<csv::Writer<PackingWriter<W>>>),
    Parquet(Box<columnar::Writer<W>>),
    Arrow(Box<ipc::Writer<W>>),
}

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
                fields.iter().try_for_each(|field| cell::check_text(field))?;
                Writer::Text(Box::new(begin_text(out, output, schema)?))
            }
            _ if output.packing != Packing::None => return Err(Problem::PackedTable),
            Format::Parquet => {
                let writer = columnar::Writer::new(out, output.like, &written)?;
                Writer::Parquet(Box::new(writer))
            }
            Format::Arrow => Writer::Arrow(Box::new(ipc::Writer::new(out, &written)?)),
        };
        Ok(Self { writer, schema: Arc::clone(schema), format, written })
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
            Writer::Parquet(writer) => writer.write(&rows),
            Writer::Arrow(writer) => writer.write(&rows),
        }
    }

    /// Keeps a text under a name in a Parquet file, where [`Table::note`] finds it, and other
    /// programs in the key-value metadata of the file. Other formats have no place for it.
    pub fn note(&mut self, name: &str, text: &str) {
        if let Writer::Parquet(writer) = &mut self.writer {
            writer.note(name, text);
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
            Writer::Parquet(writer) => writer.finish()?,
            Writer::Arrow(writer) => writer.finish()?,
        };
        out.flush().map_err(Problem::Output)?;
        Ok(out)
    }
}

/// The columns of rows in memory: fields of text files are strings.
#[must_use]
pub fn text_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields: Vec<Field> = fields.map(|field| written(field, Format::Parquet)).collect();
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
    let columns = rows.columns().iter().zip(rows.schema_ref().fields()).enumerate();
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
    let wrong =
        fields.iter().position(|field| field.is_some_and(|f| std::str::from_utf8(f).is_err()));
    Err(Problem::NotUtf8 { row: wrong.unwrap_or(0) as u64 + 1, column: column + 1, format })
}

/// The text of each field of a column, as it is written to a text file; `None` is null.
///
/// # Errors
/// If the column is of a type that has no text.
pub fn column_texts(column: &Field, array: &ArrayRef) -> Result<Vec<Option<String>>, Problem> {
    let is_bytes = is_binary(column);
    let array = plain(array).map_err(refused)?;
    let mut bytes = Vec::new();
    let texts = (0..array.len()).map(|row| {
        bytes.clear();
        let found = append_cell((column, &array, is_bytes), row, &mut bytes)?;
        Ok(found.then(|| String::from_utf8_lossy(&bytes).into_owned()))
    });
    texts.collect()
}

/// Whether the bytes of a column are written in hexadecimal.
fn is_binary(column: &Field) -> bool {
    cell::type_name(column) == "binary" && !is_field(column)
}

/// Appends the text of a field; false for null.
fn append_cell(
    (column, array, is_binary): (&Field, &ArrayRef, bool),
    row: usize,
    out: &mut Vec<u8>,
) -> Result<bool, Problem> {
    match cell(column, array, row) {
        None => return Ok(false),
        Some(cell::Cell::Bytes(bytes)) if is_binary => append_hex(bytes, out),
        Some(cell::Cell::Bytes(bytes)) => out.extend_from_slice(bytes),
        Some(found) => append_text(found, out)
            .map_err(|_| cell::no_text(column.name(), cell::type_name(column)))?,
    }
    Ok(true)
}

fn begin_text<W: Write>(
    out: W,
    output: Output<'_>,
    schema: &Schema,
) -> Result<csv::Writer<PackingWriter<W>>, Problem> {
    let same = output.like.filter(|table| table.format() == output.format);
    let delimiter = same.and_then(Table::delimiter).unwrap_or(output.format.delimiter());
    let mut builder = csv::WriterBuilder::new();
    builder.delimiter(delimiter).buffer_capacity(1 << 16);
    let header: ByteRecord = schema.fields().iter().map(|field| field.name().as_bytes()).collect();
    // Behind a quote a byte-order mark is a part of the name, as it was in the file.
    let style = match header.get(0) {
        Some(name) if is_marked(name) => QuoteStyle::Always,
        _ => QuoteStyle::Necessary,
    };
    let out = PackingWriter::new(out, output.packing).map_err(Problem::Output)?;
    let mut writer = builder.quote_style(style).from_writer(out);
    writer.write_byte_record(&header).map_err(|error| Problem::Output(error.into()))?;
    let out = writer.into_inner().map_err(|error| Problem::Output(error.into_error()))?;
    Ok(builder.quote_style(QuoteStyle::Necessary).from_writer(out))
}

/// Null is empty, bytes are in hexadecimal, anything else has its text.
fn write_text<W: Write>(
    writer: &mut csv::Writer<PackingWriter<W>>,
    rows: &RecordBatch,
) -> Result<(), Problem> {
    let columns = rows.columns().iter().zip(rows.schema_ref().fields());
    let columns = columns.map(|(array, field)| Ok((field, plain(array)?, is_binary(field))));
    let columns: Vec<_> = columns.collect::<Result<_, ArrowError>>().map_err(refused)?;
    let (mut record, mut text) = (ByteRecord::new(), Vec::new());
    for row in 0..rows.num_rows() {
        record.clear();
        for (field, array, is_binary) in &columns {
            text.clear();
            append_cell((field, array, *is_binary), row, &mut text)?;
            record.push_field(&text);
        }
        writer.write_byte_record(&record).map_err(|error| Problem::Output(error.into()))?;
    }
    Ok(())
}

/// A writer that compresses.
enum PackingWriter<W: Write> {
    Plain(W),
    Gzip(flate2::write::GzEncoder<W>),
    #[cfg(feature = "columnar")]
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> PackingWriter<W> {
    fn new(out: W, packing: Packing) -> io::Result<Self> {
        Ok(match packing {
            Packing::None => Self::Plain(out),
            Packing::Gzip => {
                let level = flate2::Compression::default();
                Self::Gzip(flate2::write::GzEncoder::new(out, level))
            }
            #[cfg(feature = "columnar")]
            Packing::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(out, 0)?),
            #[cfg(not(feature = "columnar"))]
            Packing::Zstd => return Err(io::ErrorKind::Unsupported.into()),
        })
    }

    fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(out) => Ok(out),
            Self::Gzip(encoder) => encoder.finish(),
            #[cfg(feature = "columnar")]
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for PackingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
            #[cfg(feature = "columnar")]
            Self::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
            #[cfg(feature = "columnar")]
            Self::Zstd(out) => out.flush(),
        }
    }
}

pub(crate) fn refused(error: ArrowError) -> Problem {
    Problem::Output(match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    })
}
