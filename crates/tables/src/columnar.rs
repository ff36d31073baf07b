//! Parquet files: batches of rows, and cells of their columns.

mod footer;
mod guard;
mod kind;
mod leaf;
mod pages;
mod varint;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::schema::types::Type;

use crate::error::Problem;
use crate::key::{Cell, KeyColumn, KeyType, check_names};
pub(crate) use guard::guarded;
use kind::Kind;
pub(crate) use leaf::Leaf;
use pages::Pages;

/// How much of a file to hold in memory at a time, in decoded bytes, and the most rows.
const BATCH_BYTES: u64 = 8 << 20;
const BATCH_ROWS: u64 = 1024;

/// The most bytes of one column that the values of a batch may take which are longer than they are
/// in the file.
const BATCH_LONGEST: u64 = 64 << 20;

/// A Parquet file whose description has been read and whose every column can be.
pub(crate) struct Table {
    file: File,
    length: u64,
    metadata: Arc<ParquetMetaData>,
}

impl Table {
    /// Reads the description of `file`, which has `length` bytes.
    pub(crate) fn open(mut file: File, length: u64) -> Result<Self, Problem> {
        check_magic(&mut file, length)?;
        if !footer::is_credible(&mut file, length).map_err(Problem::Read)? {
            return Err(damaged(0, "its footer is malformed"));
        }
        let metadata = guarded(0, || {
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&file);
            metadata.map_err(|e| damaged(0, e))
        })?;
        let table = Self {
            file,
            length,
            metadata: Arc::new(metadata),
        };
        check_names(&table.columns())?;
        table.check_compression()?;
        Ok(table)
    }

    /// The names of the columns.
    pub(crate) fn columns(&self) -> Vec<Vec<u8>> {
        let fields = self.schema().get_fields().iter();
        fields
            .map(|field| field.name().as_bytes().to_vec())
            .collect()
    }

    /// The root of the schema: its fields are the columns.
    pub(crate) fn schema(&self) -> &Type {
        self.metadata.file_metadata().schema_descr().root_schema()
    }

    /// What the file says of itself beside its schema.
    pub(crate) fn notes(&self) -> Vec<KeyValue> {
        let file = self.metadata.file_metadata();
        file.key_value_metadata().cloned().unwrap_or_default()
    }

    /// How many rows there are, by the description.
    pub(crate) fn rows(&self) -> u64 {
        self.metadata.file_metadata().num_rows().max(0) as u64
    }

    /// How the first column is compressed.
    pub(crate) fn compression(&self) -> Compression {
        let groups = self.metadata.row_groups();
        let first = groups.first().and_then(|group| group.columns().first());
        first.map_or(Compression::SNAPPY, |column| column.compression())
    }

    /// As what a key column is read.
    pub(crate) fn key_type(&self, key: KeyColumn) -> Result<KeyType, Problem> {
        let field = &self.schema().get_fields()[key.column];
        let kind = Kind::of(field);
        let Some(found) = kind.native() else {
            return Err(Problem::UnsupportedKey {
                column: field.name().to_owned(),
                found: kind.name().to_owned(),
            });
        };
        let wanted = key.wanted.unwrap_or(found);
        if !found.reads_as(wanted) {
            return Err(Problem::Conversion {
                column: field.name().to_owned(),
                found,
                wanted,
            });
        }
        Ok(wanted)
    }

    /// Whether the cells of this column have a form as text.
    pub(crate) fn check_text(&self, column: usize) -> Result<(), Problem> {
        let field = &self.schema().get_fields()[column];
        match Kind::of(field) {
            Kind::Nested(found) => Err(no_text(field.name(), found)),
            _ => Ok(()),
        }
    }

    /// All rows, of these columns or of all.
    pub(crate) fn batches(self, columns: Option<&[usize]>) -> Result<Batches, Problem> {
        let fields = self.schema().get_fields().iter();
        let mut chosen: Vec<Column> = fields
            .map(|field| Column {
                name: field.name().to_owned(),
                kind: Kind::of(field),
                leaves: 0..0,
            })
            .collect();
        let schema = self.metadata.file_metadata().schema_descr();
        let mut leaves = Vec::new();
        for leaf in 0..schema.num_columns() {
            let root = schema.get_column_root_idx(leaf);
            if columns.is_none_or(|columns| columns.contains(&root)) {
                if chosen[root].leaves.is_empty() {
                    chosen[root].leaves = leaves.len()..leaves.len();
                }
                chosen[root].leaves.end += 1;
                leaves.push((leaf, Leaf::new(schema.column(leaf))));
            }
        }
        let groups = self.metadata.row_groups();
        let bytes = groups
            .iter()
            .map(|group| group.total_byte_size().max(0))
            .fold(0, i64::saturating_add);
        let expected = self.rows();
        let row = (bytes as u64 / expected.max(1)).max(1);
        let metadata = Arc::clone(&self.metadata);
        let pages = Pages::new(self.file, self.length, self.metadata);
        let indices: Vec<usize> = leaves.iter().map(|&(leaf, _)| leaf).collect();
        let longest = guarded(0, || {
            pages.longest_value(&indices).map_err(|e| damaged(0, e))
        })?;
        let size = (BATCH_BYTES / row).clamp(1, BATCH_ROWS);
        Ok(Batches {
            size: size.min(BATCH_LONGEST / longest.max(1)).max(1),
            pages,
            metadata,
            leaves,
            columns: chosen,
            group: 0,
            rows: 0,
            begun: 0,
            done: 0,
            count: 0,
            row: 0,
            expected,
        })
    }

    fn check_compression(&self) -> Result<(), Problem> {
        for group in self.metadata.row_groups() {
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

fn no_text(column: &str, found: &str) -> Problem {
    Problem::NoText {
        column: column.to_owned(),
        found: found.to_owned(),
    }
}

fn check_count(found: usize, rows: usize) -> ParquetResult<()> {
    match found == rows {
        true => Ok(()),
        false => Err(ParquetError::General("rows are missing".to_owned())),
    }
}

/// A column of the file.
struct Column {
    name: String,
    kind: Kind,
    /// Its place among the leaves that are read: one leaf, unless it is nested or was not asked
    /// for.
    leaves: Range<usize>,
}

/// The rows of a Parquet file, some thousands at a time.
pub(crate) struct Batches {
    pages: Pages,
    metadata: Arc<ParquetMetaData>,
    columns: Vec<Column>,
    /// The leaves of the columns that were asked for, each with its place among those of the file.
    leaves: Vec<(usize, Leaf)>,
    /// The most rows of a batch.
    size: u64,
    /// The row group that comes next.
    group: usize,
    /// How many rows the row group before it has, how many of them are in batches up to this one,
    /// and how many have been read or passed by.
    rows: u64,
    begun: u64,
    done: u64,
    /// How many rows of this batch there are, and how many of the file up to it.
    count: u64,
    row: u64,
    expected: u64,
}

impl Batches {
    /// Goes on to the next rows, which are not read yet; returns how many there were before them,
    /// and how many they are.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, usize)>, Problem> {
        let first = self.row;
        guarded(first, || self.find().map_err(|e| damaged(first, e)))?;
        if self.count == 0 && self.row != self.expected {
            return Err(damaged(first, "rows are missing"));
        }
        self.row += self.count;
        Ok((self.count > 0).then_some((first, self.count as usize)))
    }

    fn find(&mut self) -> ParquetResult<()> {
        while self.begun == self.rows {
            self.pass(self.rows)?;
            if self
                .leaves
                .iter_mut()
                .any(|(_, leaf)| !matches!(leaf.skip(1), Ok(0)))
            {
                return Err(ParquetError::General(
                    "more rows than the footer states".to_owned(),
                ));
            }
            (self.rows, self.begun, self.done, self.count) = (0, 0, 0, 0);
            let Some(group) = self.metadata.row_groups().get(self.group) else {
                return Ok(());
            };
            // A negative number is none: the rows that are then missing are noticed at the end.
            self.rows = u64::try_from(group.num_rows()).unwrap_or(0);
            for (place, leaf) in &mut self.leaves {
                leaf.open(self.pages.open(self.group, *place)?);
            }
            self.group += 1;
        }
        self.count = self.size.min(self.rows - self.begun);
        self.begun += self.count;
        Ok(())
    }

    /// Passes by the rows of the row group that come before `row`.
    fn pass(&mut self, row: u64) -> ParquetResult<()> {
        let rows = (row - self.done) as usize;
        self.done = row;
        for (_, leaf) in &mut self.leaves {
            check_count(leaf.skip(rows)?, rows)?;
        }
        Ok(())
    }

    /// Reads these rows of the batch, which are in ascending order; once a batch.
    pub(crate) fn read(&mut self, rows: &[u32]) -> Result<(), Problem> {
        let after = self.row - self.count;
        guarded(after, || {
            self.read_runs(rows).map_err(|e| damaged(after, e))?;
            match self.leaves.iter_mut().all(|(_, leaf)| leaf.finish()) {
                true => Ok(()),
                false => Err(damaged(after, "text that is not UTF-8")),
            }
        })
    }

    fn read_runs(&mut self, rows: &[u32]) -> ParquetResult<()> {
        let first = self.begun - self.count;
        let mut end = self.done;
        for (_, leaf) in &mut self.leaves {
            leaf.clear();
            end = self.done;
            for run in rows.chunk_by(|a, b| a + 1 == *b) {
                let start = first + u64::from(run[0]);
                let rows = (start - end) as usize;
                check_count(leaf.skip(rows)?, rows)?;
                check_count(leaf.read(run.len())?, run.len())?;
                end = start + run.len() as u64;
            }
        }
        self.done = end;
        Ok(())
    }

    /// The cells of a key column, whose type was accepted by [`Table::key_type`].
    pub(crate) fn cells(&self, column: usize) -> Cells<'_> {
        let Column { kind, leaves, .. } = &self.columns[column];
        let leaf = &self.leaves[leaves.start].1;
        Cells { kind: *kind, leaf }
    }

    /// Appends a cell of a value column: strings as they are, anything else as text.
    pub(crate) fn append_value(
        &self,
        column: usize,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        match self.columns[column].kind {
            Kind::Text | Kind::Binary => {
                if let Some(Cell::Bytes(bytes)) = self.cells(column).get(row) {
                    out.extend_from_slice(bytes);
                }
                Ok(())
            }
            _ => self.append_text(column, row, out),
        }
    }

    /// Appends a cell as text: null is empty, binary is in hexadecimal, times with a time zone are
    /// in UTC.
    pub(crate) fn append_text(
        &self,
        column: usize,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        let Column { name, kind, leaves } = &self.columns[column];
        let Some(value) = self.leaves[leaves.start].1.get(row) else {
            return Ok(());
        };
        kind.append_text(value, out)
            .map_err(|_| no_text(name, kind.name()))
    }

    /// The rows of the batch, leaf by leaf.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        self.leaves.iter().map(|(_, leaf)| leaf)
    }
}

/// The cells of a key column.
pub(crate) struct Cells<'a> {
    kind: Kind,
    leaf: &'a Leaf,
}

impl<'a> Cells<'a> {
    /// The cell of this row of the batch, none if it is null.
    pub(crate) fn get(&self, row: usize) -> Option<Cell<'a>> {
        self.leaf.get(row).map(|value| self.kind.cell(value))
    }
}
