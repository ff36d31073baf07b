//! The two kinds of output: text, and Parquet.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use csv::{ByteRecord, QuoteStyle};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::get_typed_column_writer_mut;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, Type, TypePtr};

use super::chunk::Chunk;
use super::{Extra, Output};
use crate::columnar::{Batches, Table, guarded};
use crate::encoding::is_marked;
use crate::error::Problem;
use crate::key::lossy;

/// Text: fields are quoted where they must be, lines end in a line feed.
pub(super) struct TextSink<'a, W: Write> {
    writer: csv::Writer<W>,
    columns: usize,
    extra: Option<Extra<'a>>,
}

impl<'a, W: Write> TextSink<'a, W> {
    /// Writes the header.
    pub(super) fn new(
        output: Output<'a, W>,
        delimiter: u8,
        columns: &[Vec<u8>],
    ) -> Result<Self, Problem> {
        let mut builder = csv::WriterBuilder::new();
        builder.delimiter(delimiter).buffer_capacity(1 << 16);
        let extra = output.extra;
        let names = columns.iter().map(Vec::as_slice);
        let added = extra.iter().map(|extra| extra.name.as_bytes());
        let header = ByteRecord::from_iter(names.chain(added));
        // Behind a quote a byte-order mark is a part of the name, as it was in the file.
        let style = match header.get(0) {
            Some(name) if is_marked(name) => QuoteStyle::Always,
            _ => QuoteStyle::Necessary,
        };
        let mut sink = Self {
            writer: builder.quote_style(style).from_writer(output.file),
            columns: columns.len(),
            extra,
        };
        sink.write(&header)?;
        let file = sink.writer.into_inner();
        let file = file.map_err(|error| Problem::Output(error.into_error()))?;
        sink.writer = builder.quote_style(QuoteStyle::Necessary).from_writer(file);
        Ok(sink)
    }

    /// Writes `record`, a row of a text file, with the extra field for `position`, which is
    /// appended to it.
    pub(super) fn record(
        &mut self,
        record: &mut ByteRecord,
        position: usize,
    ) -> Result<(), Problem> {
        if let Some(extra) = self.extra {
            record.push_field((extra.value)(position));
        }
        self.write(record)
    }

    /// Writes a batch of a Parquet file, whose rows are at these places in the list of items.
    pub(super) fn batch(&mut self, batch: &Batches, places: Range<usize>) -> Result<(), Problem> {
        let mut record = ByteRecord::new();
        let mut field = Vec::new();
        for (row, place) in places.enumerate() {
            record.clear();
            for column in 0..self.columns {
                field.clear();
                batch.append_text(column, row, &mut field)?;
                record.push_field(&field);
            }
            self.record(&mut record, place)?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), Problem> {
        self.writer.flush().map_err(Problem::Output)
    }

    fn write(&mut self, record: &ByteRecord) -> Result<(), Problem> {
        let written = self.writer.write_byte_record(record);
        written.map_err(|error| Problem::Output(error.into()))
    }
}

/// How much of the output to gather before it is written: of text in bytes and in rows, and of
/// encoded columns in bytes and in rows.
const GATHERED: (usize, usize, usize, usize) = (8 << 20, 1024, 64 << 20, 1 << 20);

/// The note by which a Parquet file says of which types of Arrow its columns were made.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// Parquet.
pub(super) struct ParquetSink<'a, W: Write + Send> {
    writer: SerializedFileWriter<W>,
    extra: Option<Extra<'a>>,
    /// The row group at hand: a chunk a leaf, and how many rows.
    chunks: Vec<Chunk>,
    rows: usize,
    /// What is gathered of text: the fields of each column, how many bytes, and the places in the
    /// list of items.
    fields: Vec<Vec<ByteArray>>,
    bytes: usize,
    places: Range<usize>,
}

impl<'a, W: Write + Send> ParquetSink<'a, W> {
    /// For the rows of a text file with this header, `items` of them: every column is text.
    pub(super) fn for_text(
        output: Output<'a, W>,
        header: &ByteRecord,
        items: usize,
    ) -> Result<Self, Problem> {
        let columns = header.iter().map(|name| strings(&lossy(name), true));
        let columns = columns.collect::<ParquetResult<_>>().map_err(refused)?;
        let mut sink = Self::new(
            output,
            "schema",
            columns,
            Compression::SNAPPY,
            vec![],
            items,
        )?;
        sink.fields = header.iter().map(|_| Vec::new()).collect();
        Ok(sink)
    }

    /// For the rows of a Parquet file, `items` of them: columns keep their types and their
    /// compression.
    pub(super) fn for_table(
        output: Output<'a, W>,
        table: &Table,
        items: usize,
    ) -> Result<Self, Problem> {
        let schema = table.schema();
        let mut notes = table.notes();
        if output.extra.is_some() {
            // It would lack a column.
            notes.retain(|note| note.key != ARROW_SCHEMA);
        }
        let columns = schema.get_fields().to_vec();
        Self::new(
            output,
            schema.name(),
            columns,
            table.compression(),
            notes,
            items,
        )
    }

    fn new(
        output: Output<'a, W>,
        name: &str,
        mut columns: Vec<TypePtr>,
        compression: Compression,
        notes: Vec<KeyValue>,
        items: usize,
    ) -> Result<Self, Problem> {
        if let Some(extra) = output.extra {
            let is_text = (0..items).all(|i| std::str::from_utf8((extra.value)(i)).is_ok());
            columns.push(strings(extra.name, is_text).map_err(refused)?);
        }
        let schema = Type::group_type_builder(name).with_fields(columns).build();
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_key_value_metadata(Some(notes).filter(|notes| !notes.is_empty()))
            .build();
        let schema = Arc::new(schema.map_err(refused)?);
        let writer = SerializedFileWriter::new(output.file, schema, Arc::new(properties));
        Ok(Self {
            writer: writer.map_err(refused)?,
            extra: output.extra,
            chunks: Vec::new(),
            rows: 0,
            fields: Vec::new(),
            bytes: 0,
            places: 0..0,
        })
    }

    /// Writes `record`, a row of a text file whose fields are UTF-8, with the extra field for
    /// `position`.
    pub(super) fn record(&mut self, record: &ByteRecord, position: usize) -> Result<(), Problem> {
        // One piece of memory for the fields of a row.
        let row = Bytes::copy_from_slice(record.as_slice());
        let mut start = 0;
        for (column, field) in self.fields.iter_mut().zip(record) {
            let end = start + field.len();
            column.push(row.slice(start..end).into());
            start = end;
        }
        self.bytes += row.len();
        self.places.end = position + 1;
        if self.bytes >= GATHERED.0 || self.places.len() >= GATHERED.1 {
            self.write_gathered()?;
        }
        Ok(())
    }

    /// Writes a batch of a Parquet file, whose rows are at these places in the list of items.
    pub(super) fn batch(&mut self, batch: &Batches, places: Range<usize>) -> Result<(), Problem> {
        self.begin();
        guarded(0, || {
            for (chunk, leaf) in self.chunks.iter_mut().zip(batch.leaves()) {
                chunk.append(|writer| leaf.write(writer)).map_err(refused)?;
            }
            Ok(())
        })?;
        self.end(places)
    }

    pub(super) fn finish(mut self) -> Result<(), Problem> {
        self.write_gathered()?;
        self.write_group().map_err(refused)?;
        self.writer.close().map_err(refused)?;
        Ok(())
    }

    fn write_gathered(&mut self) -> Result<(), Problem> {
        let places = self.places.clone();
        self.places.start = self.places.end;
        self.bytes = 0;
        if places.is_empty() {
            return Ok(());
        }
        self.begin();
        for (chunk, fields) in self.chunks.iter_mut().zip(&mut self.fields) {
            append_strings(chunk, fields).map_err(refused)?;
            fields.clear();
        }
        self.end(places)
    }

    /// Makes the chunks, if rows are the first of a group.
    fn begin(&mut self) {
        if self.chunks.is_empty() {
            let columns = self.writer.schema_descr().columns().iter();
            let chunk = |column: &ColumnDescPtr| {
                Chunk::new(Arc::clone(column), Arc::clone(self.writer.properties()))
            };
            self.chunks = columns.map(chunk).collect();
        }
    }

    /// Appends the extra column to the rows at these places, and writes the group if it is large
    /// enough.
    fn end(&mut self, places: Range<usize>) -> Result<(), Problem> {
        self.rows += places.len();
        if let (Some(extra), Some(chunk)) = (&self.extra, self.chunks.last_mut()) {
            let values: Vec<ByteArray> = places.map(|i| (extra.value)(i).into()).collect();
            append_strings(chunk, &values).map_err(refused)?;
        }
        let size: usize = self.chunks.iter().map(Chunk::size).sum();
        match size >= GATHERED.2 || self.rows >= GATHERED.3 {
            true => self.write_group().map_err(refused),
            false => Ok(()),
        }
    }

    fn write_group(&mut self) -> ParquetResult<()> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for chunk in self.chunks.drain(..) {
            chunk.finish(&mut group)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

/// A column of strings, or of bytes, that are there in every row.
fn strings(name: &str, is_text: bool) -> ParquetResult<TypePtr> {
    let column = Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(is_text.then_some(LogicalType::String));
    Ok(Arc::new(column.build()?))
}

fn append_strings(chunk: &mut Chunk, strings: &[ByteArray]) -> ParquetResult<()> {
    chunk.append(|writer| {
        let writer = get_typed_column_writer_mut::<ByteArrayType>(writer);
        writer.write_batch(strings, None, None)
    })
}

fn refused(error: ParquetError) -> Problem {
    Problem::Output(match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    })
}
