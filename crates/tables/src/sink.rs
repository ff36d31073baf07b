//! Writing rows to a file.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt64Array, new_null_array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::dictionary::garbage_collect_any_dictionary;
use arrow_select::{concat::concat, take::take};
use csv::{ByteRecord, QuoteStyle};

use crate::cell::{self, append_hex, append_text, cell, is_field, plain, plain_type};
use crate::columnar;
use crate::encoding::is_marked;
use crate::error::{Problem, Result};
use crate::format::{Format, Packing};
use crate::ipc;
use crate::key::check_names;
use crate::retype::{retyped, without_seconds};
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

type TextWriter<W> = csv::Writer<PackingWriter<W>>;

enum Writer<W: Write + Send> {
    /// A writer, and the bytes that no field may have where quotes are ordinary.
    Text(Box<TextWriter<W>>, Option<[u8; 3]>),
    Parquet(Box<columnar::Writer<W>>),
    Arrow(Box<ipc::Writer<W>>),
}

impl<W: Write + Send> Sink<W> {
    /// Begins a file of these columns.
    ///
    /// # Errors
    /// If a column has no form in that format, or two columns have the same name, or writing fails.
    pub fn new(out: W, output: Output<'_>, schema: &SchemaRef) -> Result<Self> {
        let format = output.format;
        let fields = schema.fields();
        check_names(fields.iter().map(|field| field.name().as_str()))?;
        let written = fields.iter().map(|field| as_written(field, Some(format)));
        let written = Arc::new(Schema::new(written.collect::<Vec<Field>>()));
        let writer = match format {
            Format::Csv | Format::Tsv => {
                fields.iter().try_for_each(|field| cell::check_text(field))?;
                let (writer, refused) = begin_text(out, output, schema)?;
                Writer::Text(Box::new(writer), refused)
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

    /// Appends rows. A value that the format does not have, such as a time of day beyond the day's
    /// end, or a delimiter where quotes are ordinary, is left empty: returns the row and the column
    /// of each, counted from 0.
    ///
    /// # Errors
    /// If writing fails, or a field of a text file is not UTF-8 and the format requires it:
    /// [`Table::error`] says where this field is.
    ///
    /// # Panics
    /// If the rows have another schema.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<Vec<(usize, usize)>> {
        assert!(
            rows.schema_ref().fields() == self.schema.fields(),
            "the rows have the schema of the sink"
        );
        if let Writer::Text(writer, refused) = &mut self.writer {
            return write_text(writer, *refused, rows);
        }
        let (rows, empty) = with_text(rows, &self.written, self.format)?;
        match &mut self.writer {
            Writer::Text(..) => {}
            Writer::Parquet(writer) => writer.write(&rows)?,
            Writer::Arrow(writer) => writer.write(&rows)?,
        }
        Ok(empty)
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
    pub fn finish(self) -> Result<W> {
        let mut out = match self.writer {
            Writer::Text(writer, _) => {
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
pub fn text_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields: Vec<Field> = fields.map(|field| as_written(field, None)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The rows with the columns of [`text_schema`], which is `schema`, and the row and the column of
/// each value that is left empty, as in [`Sink::write`].
///
/// # Errors
/// A field of a text file that is not UTF-8: [`Table::error`] says where it is.
pub fn text_rows(
    rows: &RecordBatch,
    schema: &SchemaRef,
) -> Result<(RecordBatch, Vec<(usize, usize)>)> {
    with_text(rows, schema, Format::Parquet)
}

/// The rows as they are written to this format, and what is left empty.
fn with_text(
    rows: &RecordBatch,
    written: &SchemaRef,
    format: Format,
) -> Result<(RecordBatch, Vec<(usize, usize)>)> {
    let mut empty = Vec::new();
    let columns = rows.columns().iter().zip(rows.schema_ref().fields()).enumerate();
    let columns = columns.map(|(i, (column, field))| {
        if is_field(field) {
            return strings(column, i, format);
        }
        match format {
            Format::Arrow => plain(column),
            _ => as_kind(column, written.field(i).data_type(), |row| empty.push((row, i))),
        }
        .map_err(refused)
    });
    let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
    let rows = RecordBatch::try_new(Arc::clone(written), columns).map_err(refused)?;
    Ok((rows, empty))
}

/// The column with its seconds as milliseconds, null in the rows that have a time beyond them, each
/// of which `empty` gets.
fn as_kind(
    column: &ArrayRef,
    kind: &DataType,
    mut empty: impl FnMut(usize),
) -> Result<ArrayRef, ArrowError> {
    if column.data_type() == kind {
        return Ok(Arc::clone(column));
    }
    if let Some(column) = retyped(column, kind)? {
        return Ok(column);
    }
    let rows = (0..column.len()).map(|row| {
        // A slice of a list has the values of all rows.
        let mut one = take(column, &UInt64Array::from(vec![row as u64]), None)?;
        // As has a dictionary.
        if let Some(dictionary) = one.as_any_dictionary_opt() {
            one = garbage_collect_any_dictionary(dictionary)?;
        }
        Ok(retyped(&one, kind)?.unwrap_or_else(|| {
            empty(row);
            new_null_array(kind, 1)
        }))
    });
    let rows: Vec<ArrayRef> = rows.collect::<Result<_, ArrowError>>()?;
    concat(&rows.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}

/// A column as it is in a file, or in memory: fields of text files are strings, an Arrow file has
/// no dictionaries, and Parquet has neither seconds nor dates in milliseconds.
fn as_written(field: &FieldRef, format: Option<Format>) -> Field {
    let column = cell::without_note(field);
    let column = if cell::is_uuid(field) { cell::as_extension(column) } else { column };
    let kind = match format {
        _ if is_field(field) => DataType::Utf8,
        None => field.data_type().clone(),
        Some(Format::Arrow) => plain_type(field.data_type()).clone(),
        Some(_) => without_seconds(field.data_type()),
    };
    // Not every number of seconds is one of milliseconds.
    let is_lossy = format != Some(Format::Arrow) && !is_field(field) && kind != *field.data_type();
    let nullable = field.is_nullable() || is_lossy;
    column.with_data_type(kind).with_nullable(nullable)
}

/// The fields of a text file as strings; `column` is their column, counted from 0.
fn strings(array: &ArrayRef, column: usize, format: Format) -> Result<ArrayRef> {
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
pub fn column_texts(column: &Field, array: &ArrayRef) -> Result<Vec<Option<String>>> {
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
) -> Result<bool> {
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
) -> Result<(TextWriter<W>, Option<[u8; 3]>)> {
    let same = output.like.filter(|table| table.format() == output.format).and_then(Table::text);
    let delimiter = same.map_or(output.format.delimiter(), |text| text.delimiter);
    let refused = [delimiter, b'\r', b'\n'];
    let refused = same.filter(|text| !text.has_quotes).map(|_| refused);
    let has_refused =
        |name: &[u8]| name.iter().any(|byte| refused.is_some_and(|all| all.contains(byte)));
    let mut builder = csv::WriterBuilder::new();
    builder.delimiter(delimiter).buffer_capacity(1 << 16);
    let header: ByteRecord = schema.fields().iter().map(|field| field.name().as_bytes()).collect();
    // Behind a quote a byte-order mark is a part of the name, as it was in the file.
    let style = match header.get(0) {
        Some(name) if is_marked(name) => QuoteStyle::Always,
        // A name of the sender's can be of any characters; a result without it would be lost.
        _ if refused.is_none() || header.iter().any(has_refused) => QuoteStyle::Necessary,
        _ => QuoteStyle::Never,
    };
    let out = PackingWriter::new(out, output.packing).map_err(Problem::Output)?;
    let mut writer = builder.quote_style(style).from_writer(out);
    writer.write_byte_record(&header).map_err(|error| Problem::Output(error.into()))?;
    let out = writer.into_inner().map_err(|error| Problem::Output(error.into_error()))?;
    let style = refused.map_or(QuoteStyle::Necessary, |_| QuoteStyle::Never);
    Ok((builder.quote_style(style).from_writer(out), refused))
}

/// Null is empty, bytes are in hexadecimal, anything else has its text. Returns the places without.
fn write_text<W: Write>(
    writer: &mut TextWriter<W>,
    refused_bytes: Option<[u8; 3]>,
    rows: &RecordBatch,
) -> Result<Vec<(usize, usize)>> {
    let columns = rows.columns().iter().zip(rows.schema_ref().fields());
    let columns = columns.map(|(array, field)| Ok((field, plain(array)?, is_binary(field))));
    let columns: Vec<_> = columns.collect::<Result<_, ArrowError>>().map_err(refused)?;
    let is_refused = |byte: &u8| refused_bytes.is_some_and(|all| all.contains(byte));
    let (mut record, mut text, mut empty) = (ByteRecord::new(), Vec::new(), Vec::new());
    for row in 0..rows.num_rows() {
        record.clear();
        for (i, (field, array, is_binary)) in columns.iter().enumerate() {
            text.clear();
            let has_form = append_cell((field, array, *is_binary), row, &mut text).is_ok();
            if !has_form || text.iter().any(is_refused) {
                text.clear();
                empty.push((row, i));
            }
            record.push_field(&text);
        }
        writer.write_byte_record(&record).map_err(|error| Problem::Output(error.into()))?;
    }
    Ok(empty)
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
