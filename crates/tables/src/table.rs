//! Tables: the rows of one or more files, or of batches in memory, under one schema.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arrow_array::types::Date32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray,
    new_null_array,
};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;

use crate::cell;
use crate::columnar;
use crate::delimited::{Rows, Text};
use crate::encoding::Encoding;
use crate::error::{Error, Problem, Result, damaged, export, file_of, quoted, refuse};
use crate::format::{Format, Packing, by_content};
use crate::ipc;
use crate::key::check_names;
use crate::lake::Owners;
#[cfg(feature = "columnar")]
use crate::lake::{Lake, delta};
use crate::paths::{FolderColumns, STANDARD_INPUT, expand};
#[cfg(feature = "columnar")]
use crate::retype::has_shape;
use crate::retype::retyped;
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
    /// Whether a field of a text file may stand in quotes.
    pub quote: Quote,
    /// The encoding of a text file. Without it, fields are bytes and nothing is converted.
    pub encoding: Option<Encoding>,
    /// The format, whatever the names; required for standard input.
    pub format: Option<Format>,
    /// The version of a Delta table; the newest without it.
    pub as_of: Option<u64>,
    /// Reads the Parquet files in the folder of a Delta, Iceberg or Hudi table as what they are,
    /// with the rows that were deleted from that table.
    pub plain_files: bool,
}

/// Whether a field of a text file may stand in quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quote {
    /// A field that begins with `"` ends with one.
    #[default]
    Double,
    /// A quote is an ordinary character.
    None,
}

/// The name of batches in memory, in messages.
const IN_MEMORY: &str = "the table";

/// The most rows of a batch in memory that are read at one time.
const LONGEST_BATCH: usize = 1 << 16;

/// A table: opened, and no row read yet.
pub struct Table {
    schema: SchemaRef,
    format: Format,
    paths: Vec<PathBuf>,
    parts: Vec<Part>,
    bytes: u64,
    /// The version of a Delta table.
    version: Option<u64>,
}

/// A file, or batches in memory.
struct Part {
    path: PathBuf,
    source: Source,
    content: Content,
    /// The columns of the file.
    fields: Fields,
    /// Where each column of the table comes from.
    origins: Vec<Origin>,
    length: u64,
    /// The number of rows and of blank lines, and of the bytes of a text, once all were read.
    rows: OnceLock<u64>,
    blank_lines: AtomicU64,
    text_bytes: AtomicU64,
}

/// The source of a column of the table for the rows of one file.
#[derive(Debug, Clone)]
enum Origin {
    /// The column of the file with this index.
    File(usize),
    /// One value for all rows, of a folder's name or of a log; none is null.
    Value(Option<String>),
}

enum Content {
    Text { text: Text, marked: bool },
    Parquet(columnar::Table),
    Arrow { is_file: bool },
    Memory(Vec<RecordBatch>),
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
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({:?}, {:?}, ..)", self.paths, self.schema)
    }
}

impl Table {
    /// Opens all files of `inputs` and reads their schemas. Standard input is copied to an unnamed
    /// temporary file, because rows are read twice.
    ///
    /// # Errors
    /// If a file violates a rule of [the crate's documentation](crate#rules).
    pub fn open(inputs: &Inputs) -> Result<Self, Error> {
        #[cfg(feature = "columnar")]
        if let [root] = &inputs.paths[..]
            && Lake::at(root) == Some(Lake::Delta)
            && !inputs.plain_files
        {
            return Self::open_delta(root, inputs);
        }
        let found = expand(&inputs.paths)?;
        let mut parts: Vec<Part> = Vec::with_capacity(found.len());
        let mut folders: Vec<FolderColumns> = Vec::with_capacity(found.len());
        let (mut format, mut owners) = (None, Owners::default());
        for file in found {
            let path = file.path.clone();
            let failed = |problem| Error::new(&path, problem);
            if inputs.as_of.is_some() {
                return Err(failed(refuse(
                    "has no versions: only a Delta table that is named alone and read as one has",
                    "leave out --as-of, or --plain-files",
                )));
            }
            let kind = match inputs.format {
                Some(format) => format,
                None if path.as_os_str() == STANDARD_INPUT => {
                    return Err(failed(refuse(
                        "the format of standard input is not named",
                        "name it: csv, tsv, parquet or arrow",
                    )));
                }
                // A file may have the name of another kind.
                None => match (Format::of(&path), content_of(&path)) {
                    (_, Some((Some(format), _))) => format,
                    (Ok((format, _)), Some(_)) if !format.is_text() => {
                        return Err(failed(Problem::PackedTable));
                    }
                    (named, _) => named?.0,
                },
            };
            if let (Some(first), Some(format)) = (parts.first(), format)
                && format != kind
            {
                return Err(failed(refuse(
                    format_args!("has another format than {}", first.path.display()),
                    "the files of a table are of one format",
                )));
            }
            format = Some(kind);
            let may_be_of_lake = kind == Format::Parquet && !inputs.plain_files;
            if may_be_of_lake {
                owners.check(&path).map_err(failed)?;
            }
            let part = Part::open(file.path, inputs, kind).map_err(failed)?;
            if let Content::Parquet(table) = &part.content
                && let Some(lake) = table.lake().filter(|_| may_be_of_lake)
            {
                return Err(failed(refuse(
                    format_args!(
                        "was written for {lake}: it may have rows that were deleted from that"
                    ),
                    export(lake, "TABLE"),
                )));
            }
            let is_new = |(name, _): &(String, Option<String>)| part.fields.find(name).is_none();
            let names = file.partitions.into_iter().filter(is_new).collect();
            if let (Some(first), Some(before)) = (parts.first(), folders.first()) {
                check_same((first, before), (&part, &names)).map_err(failed)?;
            }
            parts.push(part);
            folders.push(names);
        }
        let schema = schema(&parts, &folders);
        for (part, names) in parts.iter_mut().zip(folders) {
            part.origins.extend(names.into_iter().map(|(_, value)| Origin::Value(value)));
        }
        Ok(Self {
            schema,
            version: None,
            format: format.unwrap_or(Format::Arrow),
            paths: parts.iter().map(|part| part.path.clone()).collect(),
            bytes: parts.iter().map(|part| part.length).sum(),
            parts,
        })
    }

    /// Opens the newest version of the Delta table in the folder `root`.
    #[cfg(feature = "columnar")]
    fn open_delta(root: &Path, inputs: &Inputs) -> Result<Self, Error> {
        let failed = |problem| Error::new(root, problem);
        let snapshot = delta::Snapshot::read(root, inputs.as_of).map_err(failed)?;
        let mut parts = Vec::with_capacity(snapshot.files.len());
        for file in &snapshot.files {
            let part = Part::open(file.path.clone(), inputs, Format::Parquet);
            parts.push(part.map_err(|problem| match problem {
                Problem::Open(error) if error.kind() == io::ErrorKind::NotFound => {
                    let name = file.path.display();
                    failed(delta::damaged(format_args!("names a file that is gone: {name}")))
                }
                problem => Error::new(&file.path, problem),
            })?);
        }
        parts.iter_mut().for_each(|part: &mut Part| part.origins.clear());
        let mut fields = Vec::with_capacity(snapshot.columns.len());
        for column in &snapshot.columns {
            let mut kind = column.kind.clone();
            for (part, file) in parts.iter_mut().zip(&snapshot.files) {
                let place = part.fields.find(&column.name).filter(|_| !column.is_partition);
                let is_same = |field: &Arc<Field>| field.name().eq_ignore_ascii_case(&column.name);
                if place.is_none()
                    && !column.is_partition
                    && let Some(other) = part.fields.iter().find(|field| is_same(field))
                {
                    let (column, found) = (quoted(&column.name), quoted(other.name()));
                    let what = format_args!("column {column} of the Delta table is {found} here");
                    let problem = refuse(what, export(Lake::Delta, "TABLE"));
                    return Err(Error::new(&part.path, problem));
                }
                let value = || file.values.get(&column.name).cloned().flatten();
                part.origins.push(match place {
                    None => Origin::Value(value().filter(|_| column.is_partition)),
                    Some((place, field)) => {
                        let expected = kind.get_or_insert_with(|| field.data_type().clone());
                        if !has_shape(expected, field.data_type()) {
                            let (column, found) = (quoted(&column.name), field.data_type());
                            let what = format_args!(
                                "column {column} is of type {found}; in the Delta table it is \
                                 {expected}"
                            );
                            let problem = refuse(what, export(Lake::Delta, "TABLE"));
                            return Err(Error::new(&part.path, problem));
                        }
                        Origin::File(place)
                    }
                });
            }
            fields.push(Field::new(&column.name, kind.unwrap_or(DataType::Null), true));
        }
        check_names(fields.iter().map(|field| field.name().as_str())).map_err(failed)?;
        Ok(Self {
            schema: Arc::new(Schema::new(fields)),
            format: Format::Parquet,
            paths: vec![root.to_owned()],
            bytes: parts.iter().map(|part| part.length).sum(),
            parts,
            version: Some(snapshot.version),
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
        let format = match inputs.format {
            Some(format) => format,
            None => Format::of(&path)?.0,
        };
        if !format.is_text() {
            return Err(failed(Problem::NotBuilt(file_of(format))));
        }
        let length = bytes.len() as u64;
        let packing = packing_of(&bytes);
        let (content, fields) =
            open_text(Cursor::new(Arc::clone(&bytes)), inputs, format, packing).map_err(failed)?;
        let part = Part::new(path.clone(), Source::Text(bytes), content, fields, length);
        let parts = vec![part];
        Ok(Self {
            schema: schema(&parts, &[]),
            version: None,
            format,
            paths: vec![path],
            parts,
            bytes: length,
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
            let batch = batch + 1;
            return Err(failed(refuse(
                format_args!("batch {batch} has other columns, or of other types, than the table"),
                "give all batches the same columns",
            )));
        }
        let bytes = batches.iter().map(RecordBatch::get_array_memory_size).sum::<usize>() as u64;
        // A run takes memory for the keys of a batch.
        let batches = batches.iter().flat_map(|batch| {
            let rows = batch.num_rows();
            let starts = (0..rows).step_by(LONGEST_BATCH);
            starts.map(move |start| batch.slice(start, LONGEST_BATCH.min(rows - start)))
        });
        let batches = batches.collect();
        let (content, fields) = (Content::Memory(batches), schema.fields().clone());
        let part = Part::new(IN_MEMORY.into(), Source::Memory, content, fields, bytes);
        Ok(Self {
            schema,
            format: Format::Arrow,
            paths: Vec::new(),
            parts: vec![part],
            bytes,
            version: None,
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

    /// The files, in the order of their rows: empty for batches in memory, `-` for standard input,
    /// the folder of a Delta table.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The total length of the files without their compression: that of text once it was read, that
    /// of Parquet as the files state it. Compressed parts of Arrow files count as they are.
    pub fn unpacked_bytes(&self) -> u64 {
        let bytes = self.parts.iter().map(|part| match &part.content {
            Content::Parquet(table) => table.unpacked_bytes(),
            _ => part.length.max(part.text_bytes.load(Ordering::Relaxed)),
        });
        bytes.fold(0, u64::saturating_add)
    }

    /// The total length of the files, for progress; of batches in memory, their size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Notices for the user about removed or skipped parts of the files, and about the version of a
    /// Delta table, each a sentence without a full stop; complete after all rows were read once.
    pub fn notices(&self) -> Vec<String> {
        let is_marked = |part: &&Part| matches!(part.content, Content::Text { marked: true, .. });
        let marked = self.parts.iter().filter(is_marked).count();
        let mut notices = Vec::new();
        if let Some(version) = self.version {
            notices.push(format!("version {version} of the Delta table was read"));
        }
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

    /// Checks that all columns of all files can be read, as [`select`](Self::select) reads them.
    ///
    /// # Errors
    /// If a column is encrypted.
    pub fn check_columns(&self) -> Result<(), Error> {
        for part in &self.parts {
            if let Content::Parquet(table) = &part.content {
                let columns = part.origins.iter().filter_map(|origin| match origin {
                    Origin::File(place) => Some(*place),
                    Origin::Value(_) => None,
                });
                let checked = table.check_columns(&columns.collect::<Vec<_>>());
                checked.map_err(|problem| Error::new(&part.path, problem))?;
            }
        }
        Ok(())
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
            Content::Parquet(table) if self.version.is_none() => table.note(name),
            _ => None,
        }
    }

    /// The form of the first file, if it is text.
    pub(crate) fn text(&self) -> Option<&Text> {
        match &self.parts.first()?.content {
            Content::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The first file, if the files are Parquet and all have the columns of the table.
    #[cfg(feature = "columnar")]
    pub(crate) fn parquet(&self) -> Option<&columnar::Table> {
        match &self.parts.first()?.content {
            Content::Parquet(table) if self.version.is_none() => Some(table),
            _ => None,
        }
    }
}

/// The columns of a file, and none of its folders.
fn all(fields: &Fields) -> Vec<Origin> {
    (0..fields.len()).map(Origin::File).collect()
}

/// Checks that a further file has the columns of the first one.
fn check_same(
    (first, first_folders): (&Part, &FolderColumns),
    (part, folders): (&Part, &FolderColumns),
) -> Result<()> {
    let columns = |part: &Part, folders: &FolderColumns| -> Vec<(String, String)> {
        let fields = part.fields.iter().map(|field| {
            let kind = match cell::is_field(field) {
                true => String::new(),
                false => format!(" of type {}", field.data_type()),
            };
            (field.name().clone(), kind)
        });
        let folders = folders.iter().map(|(name, _)| (name.clone(), " of the folders".to_owned()));
        fields.chain(folders).collect()
    };
    let (expected, found) = (columns(first, first_folders), columns(part, folders));
    let longest = expected.len().max(found.len());
    let Some(column) = (0..longest).find(|&i| expected.get(i) != found.get(i)) else {
        return Ok(());
    };
    let shown = |columns: &[(String, String)]| match columns.get(column) {
        Some((name, kind)) => format!("{}{kind}", quoted(name)),
        None => "missing".to_owned(),
    };
    let (found, expected) = (shown(&found), shown(&expected));
    let (column, first) = (column + 1, first.path.display());
    Err(refuse(
        format_args!("column {column} is {found}; in {first} it is {expected}"),
        "the files of a table have the same columns, in the same order",
    ))
}

/// The columns of all files, which are the same but for nulls, and those of the folders.
fn schema(parts: &[Part], folders: &[FolderColumns]) -> SchemaRef {
    let mut fields: Vec<Field> = Vec::new();
    if let Some(first) = parts.first() {
        for (i, field) in first.fields.iter().enumerate() {
            let nullable = parts.iter().any(|part| part.fields[i].is_nullable());
            fields.push(field.as_ref().clone().with_nullable(nullable));
        }
        for (i, (name, _)) in folders.first().into_iter().flatten().enumerate() {
            let mut values = folders.iter().filter_map(|folders| folders[i].1.as_ref());
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
    fn open(path: PathBuf, inputs: &Inputs, format: Format) -> Result<Self> {
        if !format.is_text() {
            let options = [
                ("delimiter", inputs.delimiter.is_some()),
                ("encoding", inputs.encoding.is_some()),
                ("quote", inputs.quote != Quote::Double),
            ];
            if let Some((option, _)) = options.into_iter().find(|(_, named)| *named) {
                let what = format_args!("{} has no {option}", file_of(format));
                return Err(refuse(what, format_args!("leave out --{option}")));
            }
        }
        let (mut file, source) = match path.as_os_str() == STANDARD_INPUT {
            true => {
                let mut copy = tempfile::tempfile().map_err(Problem::Spool)?;
                io::copy(&mut io::stdin().lock(), &mut copy).map_err(Problem::Spool)?;
                let source = Source::Copy(Arc::new(copy.try_clone().map_err(Problem::Spool)?));
                (copy, source)
            }
            false => {
                let (file, stamp) = open(&path)?;
                (file, Source::File(stamp))
            }
        };
        let length = file.metadata().map_err(Problem::Read)?.len();
        let (content, fields) = match format {
            Format::Csv | Format::Tsv => {
                file.seek(SeekFrom::Start(0)).map_err(Problem::Read)?;
                let packing = packing_of(&first_bytes(&mut file).map_err(Problem::Read)?);
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
        Ok(Self::new(path, source, content, fields, length))
    }

    fn new(path: PathBuf, source: Source, content: Content, fields: Fields, length: u64) -> Self {
        Self {
            path,
            source,
            content,
            origins: all(&fields),
            fields,
            length,
            rows: OnceLock::new(),
            blank_lines: AtomicU64::new(0),
            text_bytes: AtomicU64::new(0),
        }
    }

    /// Checks that the file is the one that was opened.
    fn check(&self) -> Result<()> {
        let Source::File(stamp) = &self.source else {
            return Ok(());
        };
        match fs::metadata(&self.path) {
            Ok(metadata) if Stamp::of(&metadata) == *stamp => Ok(()),
            _ => Err(Problem::Changed),
        }
    }

    /// Opens the file again, from its start.
    fn reopen(&self) -> Result<Place> {
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
    fn reader(&self, columns: &[usize]) -> Result<PartReader> {
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
    fn finish(&self, rows: u64) -> Result<()> {
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
) -> Result<(Content, Fields)> {
    let text = Text {
        delimiter: inputs.delimiter.unwrap_or(format.delimiter()),
        is_named: inputs.delimiter.is_some(),
        utf8_for: None,
        has_quotes: inputs.quote == Quote::Double,
        encoding: inputs.encoding,
        packing,
    };
    let rows = Rows::open(file, text.check()?)?;
    let text = Text { delimiter: rows.delimiter(), ..text };
    let fields = rows.columns()?.into_iter().map(cell::field).collect();
    let marked = rows.marked();
    Ok((Content::Text { text, marked }, fields))
}

/// The format and the compression of a regular file by its bytes, where they are those of no text;
/// none of another file.
fn content_of(path: &Path) -> Option<(Option<Format>, Packing)> {
    let (mut file, stamp) = open(path).ok()?;
    let start = first_bytes(&mut file).ok()?;
    let found = by_content(&start)?;
    // A column may be called so; a file of these formats also ends so.
    let mut end = [0; 4];
    file.seek(SeekFrom::Start(stamp.length.saturating_sub(4))).ok()?;
    file.read_exact(&mut end).ok()?;
    let ends = match found.0 {
        Some(Format::Parquet) => end[..3] == *b"PAR",
        Some(_) if start.starts_with(b"ARROW1") => end == *b"ROW1",
        _ => true,
    };
    ends.then_some(found)
}

/// As many bytes of a file as say what it is.
fn first_bytes(file: &mut File) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.by_ref().take(6).read_to_end(&mut start)?;
    Ok(start)
}

/// The compression of a text file, by its first bytes: its name may be another one's.
fn packing_of(start: &[u8]) -> Packing {
    by_content(start).map_or(Packing::None, |(_, packing)| packing)
}

/// Opens a regular file. The kind of the file is checked first: opening a pipe would wait for its
/// other end.
fn open(path: &Path) -> Result<(File, Stamp)> {
    let metadata = fs::metadata(path).map_err(Problem::Open)?;
    if metadata.is_dir() {
        return Err(Problem::Refused { what: "is a folder, not a file".to_owned(), remedy: None });
    }
    if !metadata.is_file() {
        // It cannot be read a second time, for the matching rows.
        let remedy = "write it to a file first: it is read twice";
        return Err(refuse("is not a regular file", remedy));
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
    fn read(&mut self, part: &Part) -> Result<Option<Batch>> {
        let of_file = |&column: &usize| match part.origins[column] {
            Origin::File(place) => Some(place),
            Origin::Value(_) => None,
        };
        let mut chosen: Vec<usize> = self.columns.iter().filter_map(of_file).collect();
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
                        part.text_bytes.store(rows.bytes(), Ordering::Relaxed);
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
    ) -> Result<RecordBatch> {
        let columns = self.columns.iter().zip(self.schema.fields());
        let columns = columns.map(|(&column, field)| match &part.origins[column] {
            Origin::File(place) => {
                let array = &arrays[chosen.partition_point(|chosen| chosen < place)];
                let array = retyped(array, field.data_type()).map_err(unexpected)?;
                array.ok_or_else(|| damaged(Format::Parquet, self.rows, "a time is out of range"))
            }
            Origin::Value(value) => Ok(constant(value.as_deref(), field.data_type(), count)),
        });
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(count));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(unexpected)
    }
}

/// The wanted rows of a batch, which are asked for by their place in it.
fn filtered(
    batch: RecordBatch,
    filter: bool,
    mut wanted: impl FnMut(u64) -> bool,
) -> Result<Vec<ArrayRef>> {
    if !filter {
        return Ok(batch.columns().to_vec());
    }
    let mask: BooleanArray = (0..batch.num_rows()).map(|i| Some(wanted(i as u64))).collect();
    let batch = filter_record_batch(&batch, &mask).map_err(unexpected)?;
    Ok(batch.columns().to_vec())
}

/// A column of one value, of a type that the columns of folders and of logs have.
fn constant(value: Option<&str>, kind: &DataType, count: usize) -> ArrayRef {
    match (value, kind) {
        (Some(value), DataType::Utf8) => {
            Arc::new(StringArray::from_iter_values(std::iter::repeat_n(value, count)))
        }
        (Some(value), DataType::Boolean) => {
            Arc::new(BooleanArray::from(vec![value == "true"; count]))
        }
        (Some(value), DataType::Date32) => {
            let days = value.parse().map(Date32Type::from_naive_date);
            Arc::new(Date32Array::from(vec![days.unwrap_or_default(); count]))
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
