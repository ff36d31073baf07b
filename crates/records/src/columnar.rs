//! Parquet files: batches of rows, and cells of their columns.

mod footer;
mod guard;
mod pages;
mod varint;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Int64Array, LargeBinaryArray, LargeStringArray,
    RecordBatch, UInt32Array, UInt64Array,
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use crate::error::Problem;
use crate::key::{Cell, KeyColumn, KeyType, check_names};
use crate::strings::ByteStrings;
use guard::guarded;
use pages::Pages;

/// How much of a file to hold in memory at a time, in decoded bytes, and the most rows.
const BATCH_BYTES: u64 = 8 << 20;
const BATCH_ROWS: u64 = 8192;

/// The most bytes of one column that the values of a batch may take which are longer than they are in the file.
const BATCH_LONGEST: u64 = 64 << 20;

/// A Parquet file whose description has been read and whose every column can be.
pub(crate) struct Table {
    file: File,
    length: u64,
    description: ArrowReaderMetadata,
}

impl Table {
    /// Reads the description of `file`, which has `length` bytes.
    pub(crate) fn open(mut file: File, length: u64) -> Result<Self, Problem> {
        check_magic(&mut file, length)?;
        if !footer::is_credible(&mut file, length).map_err(Problem::Read)? {
            return Err(damaged(0, "its description is malformed"));
        }
        let description = guarded(0, || {
            let description = ArrowReaderMetadata::load(&file, ArrowReaderOptions::default());
            description.map_err(|e| damaged(0, e))
        })?;
        let table = Self {
            file,
            length,
            description,
        };
        check_names(&table.columns())?;
        table.check_compression()?;
        Ok(table)
    }

    fn metadata(&self) -> &Arc<ParquetMetaData> {
        self.description.metadata()
    }

    /// The names of the columns.
    pub(crate) fn columns(&self) -> Vec<Vec<u8>> {
        let fields = self.description.schema().fields().iter();
        fields
            .map(|field| field.name().clone().into_bytes())
            .collect()
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(self.description.schema())
    }

    /// How many rows there are, by the description.
    pub(crate) fn rows(&self) -> u64 {
        self.metadata().file_metadata().num_rows().max(0) as u64
    }

    /// How the first column is compressed.
    pub(crate) fn compression(&self) -> Compression {
        let groups = self.metadata().row_groups();
        let first = groups.first().and_then(|group| group.columns().first());
        first.map_or(Compression::SNAPPY, |column| column.compression())
    }

    /// As what a key column is read.
    pub(crate) fn key_type(&self, key: KeyColumn) -> Result<KeyType, Problem> {
        let field = self.description.schema().field(key.column);
        let Some(found) = native(field.data_type()) else {
            return Err(Problem::UnsupportedKey {
                column: field.name().clone(),
                found: field.data_type().to_string(),
            });
        };
        let wanted = key.wanted.unwrap_or(found);
        if !found.reads_as(wanted) {
            return Err(Problem::Conversion {
                column: field.name().clone(),
                found,
                wanted,
            });
        }
        Ok(wanted)
    }

    /// Whether the cells of this column have a form as text.
    pub(crate) fn check_text(&self, column: usize) -> Result<(), Problem> {
        let field = self.description.schema().field(column);
        if field.data_type().is_nested() {
            return Err(no_text(field.name(), field.data_type()));
        }
        Ok(())
    }

    /// All rows, of these columns or of all.
    pub(crate) fn batches(self, columns: Option<&[usize]>) -> Result<Batches, Problem> {
        let count = self.description.schema().fields().len();
        let mut chosen = columns.map_or_else(|| (0..count).collect(), <[usize]>::to_vec);
        chosen.sort_unstable();
        chosen.dedup();
        let bytes: i64 = self
            .metadata()
            .row_groups()
            .iter()
            .map(|group| group.total_byte_size().max(0))
            .fold(0, i64::saturating_add);
        let expected = self.rows();
        let row = (bytes as u64 / expected.max(1)).max(1);
        let size = (BATCH_BYTES / row).clamp(1, BATCH_ROWS);
        let reader = guarded(0, || self.reader(&chosen, size).map_err(|e| damaged(0, e)))?;
        Ok(Batches {
            reader,
            chosen,
            row: 0,
            expected,
        })
    }

    /// Reads the rows of the `chosen` columns, at most `size` at a time.
    fn reader(self, chosen: &[usize], size: u64) -> Result<ParquetRecordBatchReader, ParquetError> {
        let schema = self.metadata().file_metadata().schema_descr();
        let mask = ProjectionMask::roots(schema, chosen.iter().copied());
        let leaves: Vec<usize> = (0..schema.num_columns())
            .filter(|&leaf| mask.leaf_included(leaf))
            .collect();
        let fields = self.description.schema().fields();
        let levels = parquet_to_arrow_field_levels(schema, mask, Some(fields))?;
        let metadata = Arc::clone(self.metadata());
        let pages = Pages::new(self.file, self.length, metadata);
        let longest = pages.longest_value(&leaves)?.max(1);
        let size = size.min(BATCH_LONGEST / longest).max(1);
        ParquetRecordBatchReader::try_new_with_row_groups(&levels, &pages, size as usize, None)
    }

    fn check_compression(&self) -> Result<(), Problem> {
        for group in self.metadata().row_groups() {
            for column in group.columns() {
                let codec = match column.compression() {
                    Compression::BROTLI(_) => "brotli",
                    Compression::LZO => "lzo",
                    _ => continue,
                };
                return Err(Problem::Compression {
                    column: column.column_path().string(),
                    codec: codec.to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// A Parquet file begins and ends with four letters.
fn check_magic(file: &mut File, length: u64) -> Result<(), Problem> {
    let mut read = |at| -> io::Result<[u8; 4]> {
        let mut letters = [0; 4];
        file.seek(at)?;
        file.read_exact(&mut letters)?;
        Ok(letters)
    };
    if length == 0 {
        return Err(Problem::Empty);
    }
    if length < 4 {
        return Err(Problem::NotParquet);
    }
    match &read(SeekFrom::Start(0)).map_err(Problem::Read)? {
        b"PAR1" => {}
        b"PARE" => return Err(Problem::Encrypted),
        _ => return Err(Problem::NotParquet),
    }
    if length < 12 || &read(SeekFrom::End(-4)).map_err(Problem::Read)? != b"PAR1" {
        return Err(Problem::CutShort);
    }
    Ok(())
}

fn damaged(after: u64, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Problem {
    let source = source.into();
    Problem::Damaged { after, source }
}

fn no_text(column: &str, found: &DataType) -> Problem {
    Problem::NoText {
        column: column.to_owned(),
        found: found.to_string(),
    }
}

/// The type a column is read as where nothing else is asked for; none if it cannot be a key.
fn native(found: &DataType) -> Option<KeyType> {
    use DataType as D;
    match found {
        D::Utf8 | D::LargeUtf8 | D::Utf8View => Some(KeyType::Text),
        D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => Some(KeyType::Binary),
        D::Int8 | D::Int16 | D::Int32 | D::Int64 => Some(KeyType::Integer),
        D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64 => Some(KeyType::Integer),
        D::Boolean => Some(KeyType::Boolean),
        D::Date32 => Some(KeyType::Date),
        D::Dictionary(_, values) => native(values),
        _ => None,
    }
}

/// The rows of a Parquet file, some thousands at a time.
pub(crate) struct Batches {
    reader: ParquetRecordBatchReader,
    chosen: Vec<usize>,
    row: u64,
    expected: u64,
}

impl Batches {
    /// The next rows, and how many there were before them.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, RecordBatch)>, Problem> {
        let next = guarded(self.row, || match self.reader.next() {
            Some(Err(ArrowError::ExternalError(error))) => Err(damaged(self.row, error)),
            Some(Err(error)) => Err(damaged(self.row, error)),
            Some(Ok(batch)) => Ok(Some(batch)),
            None if self.row != self.expected => Err(damaged(self.row, "rows are missing")),
            None => Ok(None),
        })?;
        Ok(next.map(|batch| {
            let first = self.row;
            self.row += batch.num_rows() as u64;
            (first, batch)
        }))
    }

    /// Where in a batch the column of the file is.
    ///
    /// # Panics
    /// If it was not asked for.
    pub(crate) fn position(&self, column: usize) -> usize {
        let position = self.chosen.binary_search(&column);
        position.expect("a column that was asked for")
    }
}

/// The cells of a key column.
pub(crate) enum Cells {
    Text(LargeStringArray),
    Binary(LargeBinaryArray),
    Signed(Int64Array),
    Unsigned(UInt64Array),
    Boolean(BooleanArray),
    Date(Date32Array),
}

impl Cells {
    /// Brings the column to one of a few forms; its type must have been accepted by [`Table::key_type`].
    pub(crate) fn of(column: &ArrayRef) -> Result<Self, Problem> {
        let mut inner = column.data_type();
        while let DataType::Dictionary(_, values) = inner {
            inner = values;
        }
        let form = match (native(inner), inner) {
            (Some(KeyType::Text), _) => DataType::LargeUtf8,
            (Some(KeyType::Integer), DataType::UInt64) => DataType::UInt64,
            (Some(KeyType::Integer), _) => DataType::Int64,
            (Some(KeyType::Boolean), _) => DataType::Boolean,
            (Some(KeyType::Date), _) => DataType::Date32,
            _ => DataType::LargeBinary,
        };
        let column = guarded(0, || {
            arrow_cast::cast(column, &form).map_err(|e| damaged(0, e))
        })?;
        Ok(match form {
            DataType::LargeUtf8 => Self::Text(column.as_string().clone()),
            DataType::UInt64 => Self::Unsigned(column.as_primitive::<UInt64Type>().clone()),
            DataType::Int64 => Self::Signed(column.as_primitive::<Int64Type>().clone()),
            DataType::Boolean => Self::Boolean(column.as_boolean().clone()),
            DataType::Date32 => Self::Date(column.as_primitive::<Date32Type>().clone()),
            _ => Self::Binary(column.as_binary().clone()),
        })
    }

    /// The cell of this row of the batch, none if it is null.
    pub(crate) fn get(&self, row: usize) -> Option<Cell<'_>> {
        let array: &dyn Array = match self {
            Self::Text(array) => array,
            Self::Binary(array) => array,
            Self::Signed(array) => array,
            Self::Unsigned(array) => array,
            Self::Boolean(array) => array,
            Self::Date(array) => array,
        };
        if array.is_null(row) {
            return None;
        }
        Some(match self {
            Self::Text(array) => Cell::Bytes(array.value(row).as_bytes()),
            Self::Binary(array) => Cell::Bytes(array.value(row)),
            Self::Signed(array) => Cell::Integer(array.value(row).into()),
            Self::Unsigned(array) => Cell::Integer(array.value(row).into()),
            Self::Boolean(array) => Cell::Boolean(array.value(row)),
            Self::Date(array) => Cell::Date(array.value(row).into()),
        })
    }
}

/// The cells of a value column as bytes: strings as they are, anything else as text, null as nothing.
pub(crate) enum Values {
    Cells(Cells),
    Texts(ByteStrings),
}

impl Values {
    pub(crate) fn of(column: &ArrayRef, name: &str) -> Result<Self, Problem> {
        if let Some(KeyType::Text | KeyType::Binary) = native(column.data_type()) {
            return Cells::of(column).map(Self::Cells);
        }
        texts(column, name).map(Self::Texts)
    }

    pub(crate) fn get(&self, row: usize) -> &[u8] {
        match self {
            Self::Cells(cells) => match cells.get(row) {
                Some(Cell::Bytes(bytes)) => bytes,
                _ => b"",
            },
            Self::Texts(texts) => texts.get(row),
        }
    }
}

/// The cells of a column as text: null is empty, binary is in hexadecimal, times with a time zone are in UTC.
pub(crate) fn texts(column: &ArrayRef, name: &str) -> Result<ByteStrings, Problem> {
    let refuse = || no_text(name, column.data_type());
    guarded(0, || {
        let column = match column.data_type() {
            // Names of time zones need a table of them; the moment is the same in any.
            DataType::Timestamp(unit, Some(_)) => {
                let utc = DataType::Timestamp(*unit, Some("+00:00".into()));
                arrow_cast::cast(column, &utc).map_err(|_| refuse())?
            }
            _ => Arc::clone(column),
        };
        let options = FormatOptions::default().with_display_error(false);
        let formatter = ArrayFormatter::try_new(&column, &options).map_err(|_| refuse())?;
        let mut texts = ByteStrings::default();
        for row in 0..column.len() {
            write!(texts.open(), "{}", formatter.value(row)).map_err(|_| refuse())?;
            texts.commit();
        }
        Ok(texts)
    })
}

/// These rows of a batch.
pub(crate) fn take(batch: &RecordBatch, rows: Vec<u32>) -> Result<RecordBatch, Problem> {
    let rows = UInt32Array::from(rows);
    guarded(0, || {
        arrow_select::take::take_record_batch(batch, &rows).map_err(|e| damaged(0, e))
    })
}
