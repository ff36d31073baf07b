//! Parquet files: their schema, and batches of their rows.

mod pages;
mod thrift;
mod writer;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, RowGroups, RowSelection, RowSelector,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema};
use parquet::basic::{Compression, ConvertedType, LogicalType, Type as Physical};
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::cell::{interval, uuid};
use crate::error::{Problem, Result, cut_short, damaged, not_a, quoted, refuse};
use crate::format::Format;
use crate::guard::guarded;
use crate::key::check_names;
use crate::lake::Lake;
use pages::Pages;
pub(crate) use writer::Writer;

/// How much of a file to hold in memory at a time, in decoded bytes, and the most rows.
const BATCH_BYTES: u64 = 8 << 20;
const BATCH_ROWS: u64 = 8192;

/// The most bytes of one column that the values of a batch may take which are longer than they are
/// in the file.
const BATCH_LONGEST: u64 = 64 << 20;

/// The rows of a row group that are selected at a time.
const WINDOW: usize = 1 << 20;

/// A Parquet file whose description has been read and whose every column can be.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    metadata: Arc<ParquetMetaData>,
    /// The schema as it is read: intervals are plain bytes.
    read_as: Arc<SchemaDescriptor>,
    fields: Fields,
    /// The encrypted columns, those in nested ones each.
    encrypted: Arc<BTreeSet<usize>>,
}

impl Table {
    /// Reads the description of `file`, which has `length` bytes.
    pub(crate) fn open(file: &mut File, length: u64) -> Result<Self> {
        check_magic(file, length)?;
        let footer = thrift::footer(file, length).map_err(Problem::Read)?;
        let footer = footer.ok_or_else(|| wrong(0, "its footer is malformed"))?;
        let mut table = guarded(Format::Parquet, 0, || {
            let metadata = ParquetMetaDataReader::new().parse_and_finish(file);
            Self::new(metadata.map_err(|e| wrong(0, e))?).map_err(|e| wrong(0, e))
        })?;
        table.encrypted = footer.encrypted.into();
        check_names(table.fields.iter().map(|field| field.name().as_str()))?;
        table.check_compression()?;
        Ok(table)
    }

    fn new(metadata: ParquetMetaData) -> ParquetResult<Self> {
        let root = metadata.file_metadata().schema_descr().root_schema();
        let read_as = Arc::new(SchemaDescriptor::new(without_intervals(root)?));
        let schema = parquet_to_arrow_schema(&read_as, None)?;
        let field = |(field, column): (&Arc<Field>, &TypePtr)| match column
            .get_basic_info()
            .logical_type_ref()
        {
            _ if is_interval(column) => interval(field),
            Some(LogicalType::Uuid) => uuid(field),
            _ => field.as_ref().clone(),
        };
        let fields = schema.fields().iter().zip(root.get_fields()).map(field);
        let fields = fields.map(|field| micros(field, &read_as)).collect();
        Ok(Self { metadata: Arc::new(metadata), read_as, fields, encrypted: Arc::default() })
    }

    /// The columns.
    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    pub(crate) fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }

    /// The bytes of all columns without compression, by the description.
    pub(crate) fn unpacked_bytes(&self) -> u64 {
        let groups = self.metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
        let bytes = groups.map(|column| column.uncompressed_size().max(0) as u64);
        bytes.fold(0, u64::saturating_add)
    }

    /// The text under a name in the metadata of the file.
    pub(crate) fn note(&self, name: &str) -> Option<&str> {
        let notes = self.metadata().file_metadata().key_value_metadata()?;
        let note = notes.iter().find(|note| note.key == name)?;
        note.value.as_deref()
    }

    /// The format whose writers left a note in the file, if it is the file of such a table.
    pub(crate) fn lake(&self) -> Option<Lake> {
        let notes = self.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find_map(|note| Lake::of_note(&note.key))
    }

    /// The number of rows, by the description.
    pub(crate) fn rows(&self) -> u64 {
        self.metadata.file_metadata().num_rows().max(0) as u64
    }

    /// The compression of the first column.
    pub(crate) fn compression(&self) -> Compression {
        let groups = self.metadata.row_groups();
        let first = groups.first().and_then(|group| group.columns().first());
        first.map_or(Compression::SNAPPY, |column| column.compression())
    }

    /// The rows of `file`, with these columns, which are ascending.
    pub(crate) fn batches(&self, file: File, length: u64, columns: &[usize]) -> Result<Batches> {
        self.check_columns(columns)?;
        let mask = ProjectionMask::roots(&self.read_as, columns.iter().copied());
        let leaves = (0..self.read_as.num_columns()).filter(|&leaf| mask.leaf_included(leaf));
        Ok(Batches {
            leaves: leaves.collect(),
            table: self.clone(),
            pages: Pages::new(file, length, Arc::clone(&self.metadata)),
            mask,
            group: 0,
            reading: 0,
            size: 1,
            window: 0,
            reader: None,
            expected: 0,
            found: 0,
            begun: 0,
            done: 0,
        })
    }

    /// Refuses encrypted columns among `columns`.
    pub(crate) fn check_columns(&self, columns: &[usize]) -> Result<()> {
        let mut roots = self.encrypted.iter().map(|&leaf| self.read_as.get_column_root_idx(leaf));
        match roots.find(|root| columns.contains(root)) {
            Some(root) => {
                let column = quoted(self.fields[root].name());
                Err(refuse(format_args!("column {column} is encrypted"), DECRYPT))
            }
            None => Ok(()),
        }
    }

    fn check_compression(&self) -> Result<()> {
        for group in self.metadata.row_groups() {
            for column in group.columns() {
                let codec = match column.compression() {
                    Compression::BROTLI(_) => "brotli",
                    Compression::LZO => "lzo",
                    _ => continue,
                };
                let column = quoted(&column.column_path().string());
                let what = format_args!(
                    "column {column} is compressed with {codec}, which is not supported"
                );
                let remedy =
                    "write it again with snappy, zstd, gzip or lz4, or without compression";
                return Err(refuse(what, remedy));
            }
        }
        Ok(())
    }
}

/// The remedy for an encrypted file or column.
const DECRYPT: &str = "write it again without encryption";

/// A Parquet file begins and ends with four letters.
fn check_magic(file: &mut File, length: u64) -> Result<()> {
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
        return Err(not_a(Format::Parquet));
    }
    match &read(SeekFrom::Start(0)).map_err(Problem::Read)? {
        b"PAR1" => {}
        b"PARE" => return Err(refuse("is an encrypted Parquet file", DECRYPT)),
        _ => return Err(not_a(Format::Parquet)),
    }
    if length < 12 || &read(SeekFrom::End(-4)).map_err(Problem::Read)? != b"PAR1" {
        return Err(cut_short(Format::Parquet));
    }
    Ok(())
}

fn is_interval(column: &Type) -> bool {
    column.is_primitive() && column.get_basic_info().converted_type() == ConvertedType::INTERVAL
}

/// The same columns with intervals as plain bytes: the types of Arrow have no such interval, and
/// the library would lose its months.
fn without_intervals(column: &Type) -> ParquetResult<TypePtr> {
    let info = column.get_basic_info();
    Ok(Arc::new(match column {
        Type::GroupType { fields, .. } => {
            let fields = fields.iter().map(|field| without_intervals(field));
            let mut group = Type::group_type_builder(column.name())
                .with_fields(fields.collect::<ParquetResult<_>>()?)
                .with_converted_type(info.converted_type())
                .with_logical_type(info.logical_type_ref().cloned())
                .with_id(info.has_id().then(|| info.id()));
            if info.has_repetition() {
                group = group.with_repetition(info.repetition());
            }
            group.build()?
        }
        Type::PrimitiveType { type_length, .. } if is_interval(column) => {
            Type::primitive_type_builder(column.name(), Physical::FIXED_LEN_BYTE_ARRAY)
                .with_length(*type_length)
                .with_repetition(info.repetition())
                .build()?
        }
        Type::PrimitiveType { .. } => column.clone(),
    }))
}

/// Timestamps of 96 bits are read in microseconds: nanoseconds in 64 bits end in 2262, and days
/// far in the future are common in such columns.
fn micros(field: Field, schema: &SchemaDescriptor) -> Field {
    let is_old = schema.root_schema().get_fields().iter().any(|column| {
        column.name() == field.name()
            && column.is_primitive()
            && column.get_physical_type() == Physical::INT96
    });
    match is_old {
        true => field.with_data_type(DataType::Timestamp(TimeUnit::Microsecond, None)),
        false => field,
    }
}

fn wrong(after: u64, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Problem {
    damaged(Format::Parquet, after, source)
}

/// The rows of a Parquet file, some thousands at a time.
pub(crate) struct Batches {
    table: Table,
    pages: Pages,
    mask: ProjectionMask,
    /// The columns of the file in `mask`, those in nested ones each.
    leaves: Vec<usize>,
    /// The row group being read, and its first row that no reader has been made for.
    group: usize,
    window: usize,
    /// The row group of the reader, and the rows of its batches.
    reading: usize,
    size: usize,
    reader: Option<ParquetRecordBatchReader>,
    /// The number of rows the reader must give, and has given.
    expected: usize,
    found: usize,
    /// The number of rows of the file before those of the reader, and before `window`.
    begun: u64,
    done: u64,
}

impl Batches {
    /// The next rows; with `select` those that are wanted, by their numbers counted from 0 in the
    /// file; none at the end.
    pub(crate) fn next(
        &mut self,
        select: bool,
        wanted: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<RecordBatch>> {
        self.read(select, wanted).map_err(|problem| self.located(problem))
    }

    /// The damage with the row group where it is, and the column: the first that cannot be read
    /// alone.
    fn located(&self, mut problem: Problem) -> Problem {
        if let Problem::Damaged { column, part, .. } = &mut problem {
            *part = Some(self.reading + 1);
            let is_damaged = |root: &usize| {
                let mask = ProjectionMask::roots(&self.table.read_as, [*root]);
                let read = guarded(Format::Parquet, 0, || {
                    let mut reader = self.reader(mask, self.size, None).map_err(|e| wrong(0, e))?;
                    reader.try_for_each(|batch| batch.map(drop).map_err(|e| wrong(0, e)))
                });
                read.is_err()
            };
            let roots =
                self.leaves.iter().map(|&leaf| self.table.read_as.get_column_root_idx(leaf));
            let found = roots.collect::<BTreeSet<_>>().into_iter().find(is_damaged);
            *column = found.map(|root| self.table.fields[root].name().clone());
        }
        problem
    }

    fn read(
        &mut self,
        select: bool,
        wanted: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<RecordBatch>> {
        loop {
            let after = self.begun + self.found as u64;
            if let Some(reader) = &mut self.reader {
                let batch = guarded(Format::Parquet, after, || {
                    reader.next().transpose().map_err(|e| wrong(after, e))
                })?;
                let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
                self.found += rows;
                if self.found > self.expected {
                    return Err(wrong(after, "more rows than the footer states"));
                }
                if let Some(batch) = batch.filter(|_| rows > 0) {
                    return Ok(Some(batch));
                }
                if self.found != self.expected {
                    return Err(wrong(after, "rows are missing"));
                }
                self.reader = None;
            }
            if self.group == self.table.metadata.num_row_groups() {
                return match self.done == self.table.rows() {
                    true => Ok(None),
                    false => Err(wrong(after, "rows are missing")),
                };
            }
            (self.begun, self.found) = (self.done, 0);
            let after = self.begun;
            guarded(Format::Parquet, after, || {
                self.open(select.then_some(&mut *wanted)).map_err(|e| wrong(after, e))
            })?;
        }
    }

    /// The number of rows of the file that were read or passed by.
    pub(crate) fn rows(&self) -> u64 {
        self.done
    }

    /// The number of rows of the file, by the description.
    pub(crate) fn total(&self) -> u64 {
        self.table.rows()
    }

    /// A reader of columns of the row group `reading`.
    fn reader(
        &self,
        mask: ProjectionMask,
        size: usize,
        selection: Option<RowSelection>,
    ) -> ParquetResult<ParquetRecordBatchReader> {
        let group = Group { pages: self.pages.clone(), index: self.reading };
        let hint = Some(&self.table.fields);
        let levels = parquet_to_arrow_field_levels(&self.table.read_as, mask, hint)?;
        ParquetRecordBatchReader::try_new_with_row_groups(&levels, &group, size, selection)
    }

    /// Makes a reader for the next window or row group, if rows of it are wanted.
    fn open(&mut self, wanted: Option<&mut dyn FnMut(u64) -> bool>) -> ParquetResult<()> {
        let rows = self.pages.rows(self.group);
        let start = self.window;
        let (count, selection) = match wanted {
            None => (rows, None),
            Some(wanted) => {
                let count = WINDOW.min(rows - start);
                let first = self.done;
                let selected = (0..count).map(|i| wanted(first + i as u64));
                (count, Some(select(start, selected)))
            }
        };
        self.expected = selection.as_ref().map_or(count, RowSelection::row_count);
        self.reading = self.group;
        if self.expected > 0 {
            let columns = self.table.metadata.row_group(self.group).columns();
            let bytes = self.leaves.iter().filter_map(|&leaf| columns.get(leaf));
            let bytes = bytes.map(|column| column.uncompressed_size().max(0) as u64);
            let row = (bytes.fold(0, u64::saturating_add) / rows as u64).max(1);
            let longest = self.pages.longest_value(self.group, &self.leaves)?;
            let size = (BATCH_BYTES / row).clamp(1, BATCH_ROWS);
            self.size = size.min(BATCH_LONGEST / longest.max(1)).max(1) as usize;
            self.reader = Some(self.reader(self.mask.clone(), self.size, selection)?);
        }
        self.done += count as u64;
        self.window += count;
        if self.window == rows {
            self.window = 0;
            self.group += 1;
        }
        Ok(())
    }
}

/// The selection of rows behind the first `before` ones.
fn select(before: usize, selected: impl Iterator<Item = bool>) -> RowSelection {
    let mut runs = vec![RowSelector::skip(before)];
    for selected in selected {
        match runs.last_mut() {
            Some(run) if run.skip != selected => run.row_count += 1,
            _ if selected => runs.push(RowSelector::select(1)),
            _ => runs.push(RowSelector::skip(1)),
        }
    }
    runs.into()
}

/// A row group, whose pages are checked before they are decoded.
struct Group {
    pages: Pages,
    index: usize,
}

impl RowGroups for Group {
    fn num_rows(&self) -> usize {
        self.pages.rows(self.index)
    }

    fn column_chunks(&self, leaf: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let pages = self.pages.open(self.index, leaf)?;
        Ok(Box::new(Chunk(Some(pages))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.metadata().row_group(self.index)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.pages.metadata
    }
}

/// The pages of one column of a row group.
struct Chunk(Option<Box<dyn PageReader>>);

impl Iterator for Chunk {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for Chunk {}
