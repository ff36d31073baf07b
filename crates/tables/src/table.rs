//! Tables: the rows of one or more files, or of batches in memory, under one schema.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, new_null_array};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;

use crate::cell;
use crate::columnar;
use crate::delimited::{Rows, Text};
use crate::encoding::Encoding;
use crate::error::{Error, Problem, damaged};
use crate::format::{Format, Packing};
use crate::ipc;
use crate::key::check_names;
use crate::paths::{InputFile, STANDARD_INPUT, expand};
use crate::system;

/// The files of a table, and how to read them.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Files; folders of Parquet files, at any depth, where `name=value` in the name of a folder
    /// becomes a column; globs of either; `-` for standard input. All must have the same columns
    /// and types. The rows are in the order of this list, and within a folder or a glob in the
    /// order of the names.
    pub paths: Vec<PathBuf>,
    /// The delimiter between two fields of a text file. The default depends on the format.
    pub delimiter: Option<u8>,
    /// The encoding of a text file. Without it, fields are bytes and nothing is converted.
    pub encoding: Option<Encoding>,
    /// The format, whatever the names; required for standard input.
    pub format: Option<Format>,
}

/// The name of batches in memory, in messages.
const IN_MEMORY: &str = "the table";

/// The most rows of a batch in memory that are read at one time.
const LONGEST_BATCH: usize = 1 << 16;

/// A table: opened, and no row read yet.
#[derive(Debug)]
pub struct Table {
    schema: SchemaRef,
    format: Format,
    paths: Vec<PathBuf>,
    parts: Vec<Part>,
    bytes: u64,
    delimiter: Option<u8>,
}

/// A file, or batches in memory.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    source: Source,
    content: Content,
    /// The columns of the file, without those of folders.
    fields: Fields,
    /// The values of the columns of folders, by their index in the schema.
    partitions: Vec<(String, Option<String>)>,
    length: u64,
    /// The number of rows and of blank lines, once all were read.
    rows: OnceLock<u64>,
    blank_lines: AtomicU64,
}

enum Content {
    Text { text: Text, marked: bool },
    Parquet(columnar::Table),
    Arrow { is_file: bool },
    Memory(Vec<RecordBatch>),
}

/// It shows no field of a row.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { text, marked } => write!(f, "Text({text:?}, {marked})"),
            Self::Parquet(_) => f.write_str("Parquet(..)"),
            Self::Arrow { is_file } => write!(f, "Arrow({is_file})"),
            Self::Memory(batches) => write!(f, "Memory({} batches)", batches.len()),
        }
    }
}

enum Source {
    File(Stamp),
    /// A copy of standard input.
    Copy(Arc<File>),
    /// A text file in memory.
    Text(Arc<[u8]>),
    /// Batches.
    Memory,
}

/// It shows no field of a row.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(stamp) => write!(f, "File({stamp:?})"),
            Self::Copy(_) => f.write_str("Copy(..)"),
            Self::Text(bytes) => write!(f, "Text({} bytes)", bytes.len()),
            Self::Memory => f.write_str("Memory"),
        }
    }
}

impl Table {
    /// Opens all files of `inputs` and reads their schemas. Standard input is copied to an unnamed
    /// temporary file, because rows are read twice.
    ///
    /// # Errors
    /// If a file violates a rule of [the crate's documentation](crate#rules).
    pub fn open(inputs: &Inputs) -> Result<Self, Error> {
        let found = expand(&inputs.paths)?;
        let mut parts: Vec<Part> = Vec::with_capacity(found.len());
        let mut format = None;
        for file in found {
            let path = file.path.clone();
            let failed = |problem| Error::new(&path, problem);
            let (kind, packing) = match inputs.format {
                Some(format) => (format, Packing::of(&path)),
                None if path.as_os_str() == STANDARD_INPUT => {
                    return Err(failed(Problem::NoFormat));
                }
                None => Format::of(&path)?,
            };
            if let (Some(first), Some(format)) = (parts.first(), format)
                && format != kind
            {
                return Err(failed(Problem::OtherFormat(first.path.clone())));
            }
            format = Some(kind);
            let part = Part::open(file, inputs, kind, packing).map_err(failed)?;
            if let Some(first) = parts.first() {
                check_same(first, &part).map_err(failed)?;
            }
            parts.push(part);
        }
        Ok(Self {
            schema: schema(&parts),
            format: format.unwrap_or(Format::Arrow),
            paths: parts.iter().map(|part| part.path.clone()).collect(),
            bytes: parts.iter().map(|part| part.length).sum(),
            parts,
            delimiter: inputs.delimiter,
        })
    }

    /// The table of a text file in memory. `name` is that of the file, which says its format and
    /// compression unless `inputs` does; `inputs` names no path.
    ///
    /// # Errors
    /// If the file is no text file, or violates a rule of [the crate's
    /// documentation](crate#rules).
    pub fn from_text(name: &str, bytes: Arc<[u8]>, inputs: &Inputs) -> Result<Self, Error> {
        let path = PathBuf::from(name);
        let failed = |problem| Error::new(Path::new(name), problem);
        let (format, packing) = match inputs.format {
            Some(format) => (format, Packing::of(&path)),
            None => Format::of(&path)?,
        };
        let not_text = match format {
            Format::Csv | Format::Tsv => None,
            Format::Parquet => Some("a Parquet file"),
            Format::Arrow => Some("an Arrow file"),
        };
        if let Some(what) = not_text {
            return Err(failed(Problem::NotBuilt(what)));
        }
        let length = bytes.len() as u64;
        let (content, fields) =
            open_text(Cursor::new(Arc::clone(&bytes)), inputs, format, packing).map_err(failed)?;
        let part = Part {
            path: path.clone(),
            source: Source::Text(bytes),
            content,
            fields,
            partitions: Vec::new(),
            length,
            rows: OnceLock::new(),
            blank_lines: AtomicU64::new(0),
        };
        let parts = vec![part];
        Ok(Self {
            schema: schema(&parts),
            format,
            paths: vec![path],
            parts,
            bytes: length,
            delimiter: inputs.delimiter,
        })
    }

    /// The table of these batches, which are not copied.
    ///
    /// # Errors
    /// If a batch has another schema, or two columns have the same name.
    pub fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self, Error> {
        let failed = |problem| Error::new(Path::new(IN_MEMORY), problem);
        let names = schema.fields().iter().map(|field| field.name().as_str());
        check_names(names).map_err(failed)?;
        let other = |batch: &RecordBatch| batch.schema_ref().fields() != schema.fields();
        if let Some(batch) = batches.iter().position(other) {
            return Err(failed(Problem::OtherBatch { batch: batch + 1 }));
        }
        let bytes = batches.iter().map(RecordBatch::get_array_memory_size).sum::<usize>() as u64;
        // A run takes memory for the keys of a batch.
        let batches = batches.iter().flat_map(|batch| {
            let rows = batch.num_rows();
            let starts = (0..rows).step_by(LONGEST_BATCH);
            starts.map(move |start| batch.slice(start, LONGEST_BATCH.min(rows - start)))
        });
        let batches = batches.collect();
        let part = Part {
            path: IN_MEMORY.into(),
            source: Source::Memory,
            fields: schema.fields().clone(),
            content: Content::Memory(batches),
            partitions: Vec::new(),
            length: bytes,
            rows: OnceLock::new(),
            blank_lines: AtomicU64::new(0),
        };
        Ok(Self {
            schema,
            format: Format::Arrow,
            paths: Vec::new(),
            parts: vec![part],
            bytes,
            delimiter: None,
        })
    }

    /// The columns. Those of text files are binary, with [`is_field`](crate::is_field) true.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The format of the files; that of batches in memory is [`Format::Arrow`].
    pub fn format(&self) -> Format {
        self.format
    }

    /// The files, in the order of their rows: empty for batches in memory, `-` for standard input.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The total length of the files, for progress; of batches in memory, their size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Notices for the user about removed or skipped parts of the files, each a sentence without a
    /// full stop; complete after all rows were read once.
    pub fn notices(&self) -> Vec<String> {
        let is_marked = |part: &&Part| matches!(part.content, Content::Text { marked: true, .. });
        let marked = self.parts.iter().filter(is_marked).count();
        let mut notices = Vec::new();
        match (marked, self.parts.len()) {
            (0, _) => {}
            (_, 1) => {
                notices.push("a byte-order mark was removed from the front of the file".to_owned())
            }
            _ => notices.push(format!(
                "a byte-order mark was removed from the front of {marked} of the files"
            )),
        }
        let blank = self.parts.iter().map(|part| part.blank_lines.load(Ordering::Relaxed));
        let lines: u64 = blank.sum();
        if lines > 0 {
            let plural = if lines == 1 { "" } else { "s" };
            let mut notice = format!("{lines} blank line{plural} left out");
            if self.schema.fields().len() == 1 {
                notice += " (an empty field is written \"\")";
            }
            notices.push(notice);
        }
        notices
    }

    /// All rows, with these columns in this order.
    ///
    /// # Errors
    /// If a file cannot be opened again.
    ///
    /// # Panics
    /// If there is no such column, or one is named twice.
    pub fn scan(&self, columns: &[usize]) -> Result<Scan<'_>, Error> {
        Ok(Scan::new(self, columns, None))
    }

    /// The wanted rows, with all columns. `wanted` is asked once for each row, in ascending order
    /// from 0.
    ///
    /// # Errors
    /// If a file cannot be opened again.
    pub fn select<'a>(&'a self, wanted: &'a dyn Fn(u64) -> bool) -> Result<Scan<'a>, Error> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        Ok(Scan::new(self, &all, Some(wanted)))
    }

    /// Checks that length, time and inode of every file are those at [`open`](Self::open).
    ///
    /// # Errors
    /// If one differs.
    pub fn check_unchanged(&self) -> Result<(), Error> {
        let mut parts = self.parts.iter();
        parts.try_for_each(|part| part.check().map_err(|problem| Error::new(&part.path, problem)))
    }

    /// The file of `row`, and the number of the row in that file, counted from 1, as error messages
    /// name it. Known once the row was read.
    pub fn place(&self, row: u64) -> (&Path, u64) {
        let mut first = 0;
        for part in &self.parts {
            match part.rows.get() {
                Some(&rows) if row >= first + rows => first += rows,
                _ => return (&part.path, row - first + 1),
            }
        }
        (Path::new(""), row + 1)
    }

    /// The error for a `problem` that [`Sink::write`](crate::Sink::write) had with rows of `batch`,
    /// which says where in the table they are.
    pub fn error(&self, batch: &Batch, problem: Problem) -> Error {
        match problem {
            Problem::NotUtf8 { row: row @ 1.., column, format } => {
                let (path, row) = self.place(batch.row_number(row as usize - 1));
                Error::new(path, Problem::NotUtf8 { row, column, format })
            }
            problem => Error::new(self.place(batch.first_row).0, problem),
        }
    }

    /// The error for the problem that `problem` makes of the number of `row` in its file.
    pub(crate) fn error_at(&self, row: u64, problem: impl FnOnce(u64) -> Problem) -> Error {
        let (path, row) = self.place(row);
        Error::new(path, problem(row))
    }

    /// Refuses, from the first scan on, fields of text files that are not UTF-8: for an output in a
    /// format that has strings. Otherwise [`Sink`](crate::Sink) finds them when rows are written.
    pub fn require_utf8(&mut self, format: Format) {
        for part in &mut self.parts {
            if let Content::Text { text, .. } = &mut part.content {
                text.utf8_for = Some(format);
            }
        }
    }

    /// The text that the first file has under a name in its key-value metadata, if it is a Parquet
    /// file and has one.
    pub fn note(&self, name: &str) -> Option<&str> {
        match &self.parts.first()?.content {
            Content::Parquet(table) => table.note(name),
            _ => None,
        }
    }

    /// The delimiter that was named.
    pub(crate) fn delimiter(&self) -> Option<u8> {
        self.delimiter
    }

    /// The first file, if the files are Parquet.
    #[cfg(feature = "columnar")]
    pub(crate) fn parquet(&self) -> Option<&columnar::Table> {
        match &self.parts.first()?.content {
            Content::Parquet(table) => Some(table),
            _ => None,
        }
    }
}

/// Checks that a further file has the columns of the first one.
fn check_same(first: &Part, part: &Part) -> Result<(), Problem> {
    let columns = |part: &Part| -> Vec<(String, String)> {
        let fields = part.fields.iter().map(|field| {
            let kind = match cell::is_field(field) {
                true => String::new(),
                false => format!(" of type {}", field.data_type()),
            };
            (field.name().clone(), kind)
        });
        let folders = part.partitions.iter();
        let folders = folders.map(|(name, _)| (name.clone(), " of the folders".to_owned()));
        fields.chain(folders).collect()
    };
    let (expected, found) = (columns(first), columns(part));
    let longest = expected.len().max(found.len());
    let Some(column) = (0..longest).find(|&i| expected.get(i) != found.get(i)) else {
        return Ok(());
    };
    let shown = |columns: &[(String, String)]| match columns.get(column) {
        Some((name, kind)) => format!("{}{kind}", crate::error::quoted(name)),
        None => "missing".to_owned(),
    };
    Err(Problem::OtherColumn {
        column: column + 1,
        found: shown(&found),
        expected: shown(&expected),
        first: first.path.clone(),
    })
}

/// The columns of all files, which are the same but for nulls, and those of the folders.
fn schema(parts: &[Part]) -> SchemaRef {
    let mut fields: Vec<Field> = Vec::new();
    if let Some(first) = parts.first() {
        for (i, field) in first.fields.iter().enumerate() {
            let nullable = parts.iter().any(|part| part.fields[i].is_nullable());
            fields.push(field.as_ref().clone().with_nullable(nullable));
        }
        for (i, (name, _)) in first.partitions.iter().enumerate() {
            let mut values = parts.iter().filter_map(|part| part.partitions[i].1.as_ref());
            let kind = match values.all(|value| value.parse::<i64>().is_ok()) {
                true => DataType::Int64,
                false => DataType::Utf8,
            };
            fields.push(Field::new(name, kind, true));
        }
    }
    Arc::new(Schema::new(fields))
}

impl Part {
    fn open(
        found: InputFile,
        inputs: &Inputs,
        format: Format,
        packing: Packing,
    ) -> Result<Self, Problem> {
        if !format.is_text() {
            let options = [
                ("delimiter", inputs.delimiter.is_some()),
                ("encoding", inputs.encoding.is_some()),
            ];
            if let Some((option, _)) = options.into_iter().find(|(_, named)| *named) {
                return Err(Problem::TextOnly { format, option });
            }
        }
        let (mut file, source) = match found.path.as_os_str() == STANDARD_INPUT {
            true => {
                let mut copy = tempfile::tempfile().map_err(Problem::Spool)?;
                io::copy(&mut io::stdin().lock(), &mut copy).map_err(Problem::Spool)?;
                let source = Source::Copy(Arc::new(copy.try_clone().map_err(Problem::Spool)?));
                (copy, source)
            }
            false => {
                let (file, stamp) = open(&found.path)?;
                (file, Source::File(stamp))
            }
        };
        let length = file.metadata().map_err(Problem::Read)?.len();
        let (content, fields) = match format {
            Format::Csv | Format::Tsv => {
                file.seek(SeekFrom::Start(0)).map_err(Problem::Read)?;
                open_text(file, inputs, format, packing)?
            }
            Format::Parquet => {
                let table = columnar::Table::open(&mut file, length)?;
                let fields = table.fields().clone();
                (Content::Parquet(table), fields)
            }
            Format::Arrow => {
                let is_file = ipc::is_file(&mut file, length)?;
                file.seek(SeekFrom::Start(0)).map_err(Problem::Read)?;
                let fields = ipc::Batches::open(file, is_file, None)?.fields();
                check_names(fields.iter().map(|field| field.name().as_str()))?;
                (Content::Arrow { is_file }, fields)
            }
        };
        let is_new = |(name, _): &(String, Option<String>)| fields.find(name).is_none();
        Ok(Self {
            path: found.path,
            source,
            content,
            partitions: found.partitions.into_iter().filter(is_new).collect(),
            fields,
            length,
            rows: OnceLock::new(),
            blank_lines: AtomicU64::new(0),
        })
    }

    /// Checks that the file is the one that was opened.
    fn check(&self) -> Result<(), Problem> {
        let Source::File(stamp) = &self.source else {
            return Ok(());
        };
        match fs::metadata(&self.path) {
            Ok(metadata) if Stamp::of(&metadata) == *stamp => Ok(()),
            _ => Err(Problem::Changed),
        }
    }

    /// Opens the file again, from its start.
    fn reopen(&self) -> Result<Place, Problem> {
        match &self.source {
            Source::File(stamp) => match open(&self.path)? {
                (file, again) if again == *stamp => Ok(Place::new(Arc::new(file))),
                _ => Err(Problem::Changed),
            },
            Source::Copy(file) => Ok(Place::new(Arc::clone(file))),
            Source::Text(_) | Source::Memory => Err(Problem::Changed),
        }
    }

    /// A reader of the rows, with the columns of the file in `columns`, which are ascending.
    fn reader(&self, columns: &[usize]) -> Result<PartReader, Problem> {
        Ok(match &self.content {
            Content::Text { text, .. } => {
                let rows = match &self.source {
                    Source::Text(bytes) => Rows::open(Cursor::new(Arc::clone(bytes)), *text)?,
                    _ => Rows::open(self.reopen()?, *text)?,
                };
                // The same length and time do not mean the same bytes.
                let names = self.fields.iter().map(|field| field.name().as_str());
                if !rows.columns()?.into_iter().eq(names) {
                    return Err(Problem::Changed);
                }
                PartReader::Text(Box::new(rows))
            }
            Content::Parquet(table) => {
                let file = self.reopen()?.file.try_clone().map_err(Problem::Open)?;
                PartReader::Parquet(table.batches(file, self.length, columns)?)
            }
            Content::Arrow { is_file } => {
                PartReader::Arrow(ipc::Batches::open(self.reopen()?, *is_file, Some(columns))?)
            }
            Content::Memory(batches) => PartReader::Memory(batches.clone().into_iter()),
        })
    }

    /// Records the number of rows, which is always the same.
    fn finish(&self, rows: u64) -> Result<(), Problem> {
        match *self.rows.get_or_init(|| rows) == rows {
            true => self.check(),
            false => Err(Problem::Changed),
        }
    }
}

/// Reads the header of a text file.
fn open_text(
    file: impl Read + Send + 'static,
    inputs: &Inputs,
    format: Format,
    packing: Packing,
) -> Result<(Content, Fields), Problem> {
    let text = Text {
        delimiter: inputs.delimiter.unwrap_or(format.delimiter()),
        utf8_for: None,
        encoding: inputs.encoding,
        packing,
    };
    let rows = Rows::open(file, text.check()?)?;
    let fields = rows.columns()?.into_iter().map(cell::field).collect();
    let marked = rows.marked();
    Ok((Content::Text { text, marked }, fields))
}

/// Opens a regular file. The kind of the file is checked first: opening a pipe would wait for its
/// other end.
fn open(path: &Path) -> Result<(File, Stamp), Problem> {
    let metadata = fs::metadata(path).map_err(Problem::Open)?;
    if metadata.is_dir() {
        return Err(Problem::Folder);
    }
    if !metadata.is_file() {
        return Err(Problem::NotAFile);
    }
    let file = File::open(path).map_err(Problem::Open)?;
    let stamp = Stamp::of(&file.metadata().map_err(Problem::Read)?);
    Ok((file, stamp))
}

/// The properties by which a file is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Device and inode number of the file, on systems that have them.
    number: Option<(u64, u64)>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            number: system::number(metadata),
        }
    }
}

/// A reader with a place of its own in a file that others may read, too.
struct Place {
    file: Arc<File>,
    at: u64,
}

impl Place {
    fn new(file: Arc<File>) -> Self {
        Self { file, at: 0 }
    }
}

impl Read for Place {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = system::read_at(&self.file, buffer, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// The batches of a table, one after the other.
pub struct Scan<'a> {
    table: &'a Table,
    wanted: Option<&'a dyn Fn(u64) -> bool>,
    columns: Arc<[usize]>,
    schema: SchemaRef,
    /// The part at hand, and its reader.
    part: usize,
    reader: Option<PartReader>,
    /// The number of rows of the parts before, and of this part so far; and the bytes of those
    /// parts.
    before: u64,
    rows: u64,
    bytes: u64,
    /// The numbers of wanted rows that are not in batches yet.
    numbers: std::collections::VecDeque<u64>,
}

enum PartReader {
    Text(Box<Rows>),
    Parquet(columnar::Batches),
    Arrow(ipc::Batches),
    Memory(std::vec::IntoIter<RecordBatch>),
}

impl<'a> Scan<'a> {
    fn new(table: &'a Table, columns: &[usize], wanted: Option<&'a dyn Fn(u64) -> bool>) -> Self {
        let fields = table.schema.fields();
        let chosen = columns.iter().map(|&column| Arc::clone(&fields[column]));
        let schema = Schema::new(chosen.collect::<Fields>());
        Self {
            table,
            wanted,
            columns: columns.into(),
            schema: Arc::new(schema),
            part: 0,
            reader: None,
            before: 0,
            rows: 0,
            bytes: 0,
            numbers: Default::default(),
        }
    }

    /// The next batch, which has at least one row; none at the end.
    ///
    /// # Errors
    /// If a file violates a rule of [the crate's documentation](crate#rules), or has changed. The
    /// scan must not be used after an error.
    #[expect(clippy::should_implement_trait, reason = "the error comes first, for `?`")]
    pub fn next(&mut self) -> Result<Option<Batch>, Error> {
        let table = self.table;
        while let Some(part) = table.parts.get(self.part) {
            let failed = |problem| Error::new(&part.path, problem);
            if let Some(batch) = self.read(part).map_err(failed)? {
                return Ok(Some(batch));
            }
            part.finish(self.rows).map_err(failed)?;
            self.before += self.rows;
            self.rows = 0;
            self.bytes += part.length;
            self.part += 1;
            self.reader = None;
        }
        Ok(None)
    }

    /// The next batch of `part`, the part at hand.
    fn read(&mut self, part: &Part) -> Result<Option<Batch>, Problem> {
        let mut chosen: Vec<usize> = self.columns.to_vec();
        chosen.retain(|&column| column < part.fields.len());
        chosen.sort_unstable();
        if chosen.is_empty() && !part.fields.is_empty() {
            // It says how many rows there are.
            chosen.push(0);
        }
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(part.reader(&chosen)?),
        };
        let (before, wanted) = (self.before, self.wanted);
        loop {
            let first = before + self.rows;
            let mut done = None;
            let numbers = &mut self.numbers;
            let mut ask = |row: u64| {
                let is_wanted = wanted.is_none_or(|wanted| wanted(before + row));
                if is_wanted && wanted.is_some() {
                    numbers.push_back(before + row);
                }
                is_wanted
            };
            let (read, arrays) = match reader {
                PartReader::Text(rows) => {
                    let (read, arrays) = rows.next(&chosen, ask)?;
                    if read == 0 {
                        part.blank_lines.store(rows.blank_lines(), Ordering::Relaxed);
                        return Ok(None);
                    }
                    done = Some(rows.done());
                    (read, arrays)
                }
                PartReader::Parquet(batches) => {
                    let Some(batch) = batches.next(wanted.is_some(), &mut ask)? else {
                        self.rows = batches.rows();
                        return Ok(None);
                    };
                    if wanted.is_some() {
                        done = Some(share(part.length, batches.rows(), batches.total()));
                    }
                    (batch.num_rows() as u64, batch.columns().to_vec())
                }
                PartReader::Arrow(batches) => {
                    let Some(batch) = batches.next()? else {
                        return Ok(None);
                    };
                    done = Some(batches.done());
                    let rows = self.rows;
                    let read = batch.num_rows() as u64;
                    (read, filtered(batch, wanted.is_some(), |i| ask(rows + i))?)
                }
                PartReader::Memory(batches) => {
                    let Some(batch) = batches.next() else {
                        return Ok(None);
                    };
                    let columns: Vec<usize> = chosen.clone();
                    let rows = self.rows;
                    let read = batch.num_rows() as u64;
                    let batch = batch.project(&columns).map_err(unexpected)?;
                    (read, filtered(batch, wanted.is_some(), |i| ask(rows + i))?)
                }
            };
            self.rows += read;
            let count = arrays.first().map_or(0, |array| array.len());
            if count == 0 {
                continue;
            }
            let row_numbers = wanted.map(|_| self.numbers.drain(..count).collect::<Vec<_>>());
            let done = done.unwrap_or_else(|| match &part.content {
                Content::Parquet(table) => share(part.length, self.rows, table.rows()),
                Content::Memory(batches) => {
                    let rows = batches.iter().map(|batch| batch.num_rows() as u64);
                    share(part.length, self.rows, rows.sum())
                }
                _ => part.length,
            });
            let rows = self.assemble(part, &chosen, arrays, count)?;
            return Ok(Some(Batch {
                first_row: row_numbers.as_ref().map_or(first, |numbers| numbers[0]),
                rows,
                columns: Arc::clone(&self.columns),
                row_numbers,
                done_bytes: self.bytes + done.min(part.length),
            }));
        }
    }

    /// The columns that were asked for, from those that were read and those of the folders.
    fn assemble(
        &self,
        part: &Part,
        chosen: &[usize],
        arrays: Vec<ArrayRef>,
        count: usize,
    ) -> Result<RecordBatch, Problem> {
        let columns = self.columns.iter().zip(self.schema.fields());
        let columns = columns.map(|(&column, field)| match chosen.binary_search(&column) {
            Ok(place) => Arc::clone(&arrays[place]),
            Err(_) => {
                let value = &part.partitions[column - part.fields.len()].1;
                constant(value.as_deref(), field.data_type(), count)
            }
        });
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(count));
        let columns: Vec<ArrayRef> = columns.collect();
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(unexpected)
    }
}

/// The wanted rows of a batch, which are asked for by their place in it.
fn filtered(
    batch: RecordBatch,
    filter: bool,
    mut wanted: impl FnMut(u64) -> bool,
) -> Result<Vec<ArrayRef>, Problem> {
    if !filter {
        return Ok(batch.columns().to_vec());
    }
    let mask: BooleanArray = (0..batch.num_rows()).map(|i| Some(wanted(i as u64))).collect();
    let batch = filter_record_batch(&batch, &mask).map_err(unexpected)?;
    Ok(batch.columns().to_vec())
}

/// A column of one value.
fn constant(value: Option<&str>, kind: &DataType, count: usize) -> ArrayRef {
    match (value, kind) {
        (Some(value), DataType::Utf8) => {
            Arc::new(StringArray::from_iter_values(std::iter::repeat_n(value, count)))
        }
        (Some(value), _) => {
            Arc::new(Int64Array::from(vec![value.parse::<i64>().unwrap_or_default(); count]))
        }
        (None, kind) => new_null_array(kind, count),
    }
}

/// The library refuses what it has read itself.
fn unexpected(error: arrow_schema::ArrowError) -> Problem {
    damaged(Format::Arrow, 0, error)
}

/// The part of `length` bytes that corresponds to `done` of `total` rows.
fn share(length: u64, done: u64, total: u64) -> u64 {
    (u128::from(length) * u128::from(done.min(total)) / u128::from(total.max(1))) as u64
}

/// Some rows of a table, all of one file.
#[derive(Clone)]
pub struct Batch {
    /// The number of the first row, counted from 0 over all files.
    pub first_row: u64,
    /// The rows.
    pub rows: RecordBatch,
    /// The columns of the table that `rows` has, in its order.
    pub columns: Arc<[usize]>,
    /// The number of each row, where these are not consecutive.
    pub row_numbers: Option<Vec<u64>>,
    /// The bytes of all files that were read up to here, for progress.
    pub done_bytes: u64,
}

/// It shows no field of a row.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows.num_rows();
        write!(f, "Batch({rows} rows from {}, ..)", self.first_row)
    }
}

impl Batch {
    /// The number of row `i` of the batch, counted from 0 over all files.
    ///
    /// # Panics
    /// If there is no row `i`.
    pub fn row_number(&self, i: usize) -> u64 {
        match &self.row_numbers {
            Some(numbers) => numbers[i],
            None => self.first_row + i as u64,
        }
    }
}
