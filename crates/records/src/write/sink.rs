//! The two kinds of output: text, and Parquet.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use csv::{ByteRecord, QuoteStyle};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::{Extra, Output};
use crate::columnar::{Table, take, texts};
use crate::encoding::is_marked;
use crate::error::Problem;
use crate::key::lossy;

/// Text: fields are quoted where they must be, lines end in a line feed.
pub(super) struct TextSink<'a, W: Write> {
    writer: csv::Writer<W>,
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
            extra,
        };
        sink.write(&header)?;
        let file = sink.writer.into_inner();
        let file = file.map_err(|error| Problem::Output(error.into_error()))?;
        sink.writer = builder.quote_style(QuoteStyle::Necessary).from_writer(file);
        Ok(sink)
    }

    /// Writes `record`, a row of a text file, with the extra field for `position`, which is appended to it.
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

    /// Writes the `rows` of a batch of a Parquet file; the first of them is at `start` in the list of items.
    pub(super) fn batch(
        &mut self,
        batch: &RecordBatch,
        rows: Vec<u32>,
        start: usize,
    ) -> Result<(), Problem> {
        let taken = take(batch, rows)?;
        let columns = taken.columns().iter().zip(taken.schema_ref().fields());
        let columns: Vec<_> = columns
            .map(|(column, field)| texts(column, field.name()))
            .collect::<Result<_, _>>()?;
        let mut record = ByteRecord::new();
        for row in 0..taken.num_rows() {
            record.clear();
            columns
                .iter()
                .for_each(|column| record.push_field(column.get(row)));
            self.record(&mut record, start + row)?;
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

/// How much of the output to gather before it is written: of text in bytes and in rows, and of encoded columns in
/// bytes.
const GATHERED: (usize, usize, usize) = (8 << 20, 8192, 64 << 20);

/// Parquet.
pub(super) struct ParquetSink<'a, W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: SchemaRef,
    extra: Option<(Extra<'a>, DataType)>,
    /// What is gathered of text: a builder a column, how many bytes, and the places in the list of items.
    builders: Vec<StringBuilder>,
    bytes: usize,
    rows: std::ops::Range<usize>,
}

impl<'a, W: Write + Send> ParquetSink<'a, W> {
    /// For the rows of a text file with this header, `items` of them: every column is text.
    pub(super) fn for_text(
        output: Output<'a, W>,
        header: &ByteRecord,
        items: usize,
    ) -> Result<Self, Problem> {
        let fields = header
            .iter()
            .map(|name| Field::new(lossy(name), DataType::Utf8, false));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let mut sink = Self::new(output, schema, Compression::SNAPPY, items)?;
        sink.builders = header.iter().map(|_| StringBuilder::new()).collect();
        Ok(sink)
    }

    /// For the rows of a Parquet file, `items` of them: columns keep their types and their compression.
    pub(super) fn for_table(
        output: Output<'a, W>,
        table: &Table,
        items: usize,
    ) -> Result<Self, Problem> {
        let schema = table.schema().as_ref().clone();
        Self::new(output, schema, table.compression(), items)
    }

    fn new(
        output: Output<'a, W>,
        schema: Schema,
        compression: Compression,
        items: usize,
    ) -> Result<Self, Problem> {
        let extra = output.extra.map(|extra| {
            let all_text = (0..items).all(|i| std::str::from_utf8((extra.value)(i)).is_ok());
            let kind = if all_text {
                DataType::Utf8
            } else {
                DataType::Binary
            };
            (extra, kind)
        });
        let added = extra
            .iter()
            .map(|(extra, kind)| Arc::new(Field::new(extra.name, kind.clone(), false)));
        let fields = schema.fields().iter().cloned().chain(added);
        let schema = Arc::new(Schema::new_with_metadata(
            fields.collect::<Vec<_>>(),
            schema.metadata,
        ));
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_max_row_group_bytes(Some(GATHERED.2))
            .build();
        let writer = ArrowWriter::try_new(output.file, Arc::clone(&schema), Some(properties));
        Ok(Self {
            writer: writer.map_err(refused)?,
            schema,
            extra,
            builders: Vec::new(),
            bytes: 0,
            rows: 0..0,
        })
    }

    /// Writes `record`, a row of a text file whose fields are UTF-8, with the extra field for `position`.
    pub(super) fn record(&mut self, record: &ByteRecord, position: usize) -> Result<(), Problem> {
        for (builder, field) in self.builders.iter_mut().zip(record) {
            // Checked by the caller, who knows the row.
            builder.append_value(std::str::from_utf8(field).unwrap_or_default());
        }
        self.bytes += record.as_slice().len();
        self.rows.end = position + 1;
        if self.bytes >= GATHERED.0 || self.rows.len() >= GATHERED.1 {
            self.write_gathered()?;
        }
        Ok(())
    }

    /// Writes the `rows` of a batch of a Parquet file; the first of them is at `start` in the list of items.
    pub(super) fn batch(
        &mut self,
        batch: &RecordBatch,
        rows: Vec<u32>,
        start: usize,
    ) -> Result<(), Problem> {
        let places = start..start + rows.len();
        let columns = take(batch, rows)?.columns().to_vec();
        self.write(columns, places)
    }

    pub(super) fn finish(mut self) -> Result<(), Problem> {
        self.write_gathered()?;
        self.writer.close().map_err(refused)?;
        Ok(())
    }

    fn write_gathered(&mut self) -> Result<(), Problem> {
        let columns = self
            .builders
            .iter_mut()
            .map(|builder| Arc::new(builder.finish()) as ArrayRef)
            .collect();
        let places = self.rows.clone();
        self.rows.start = self.rows.end;
        self.bytes = 0;
        self.write(columns, places)
    }

    fn write(
        &mut self,
        mut columns: Vec<ArrayRef>,
        places: std::ops::Range<usize>,
    ) -> Result<(), Problem> {
        if places.is_empty() {
            return Ok(());
        }
        if let Some((extra, kind)) = &self.extra {
            let values = places.map(extra.value);
            columns.push(match kind {
                DataType::Utf8 => {
                    let texts = values.map(|value| std::str::from_utf8(value).unwrap_or_default());
                    Arc::new(StringArray::from_iter_values(texts))
                }
                _ => Arc::new(BinaryArray::from_iter_values(values)),
            });
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| refused(error.into()))?;
        self.writer.write(&batch).map_err(refused)
    }
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
