//! Text files with a header: their rows, in batches, and their errors.

mod scan;

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, BinaryArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use csv::{ByteRecord, ErrorKind};

use crate::encoding::{self, Encoding};
use crate::error::{NAME_ENCODING, Problem, Result, counted, refuse};
use crate::format::{Format, Packing};
use crate::key::check_names;
use scan::Scan;

/// The parameters for reading a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) delimiter: u8,
    /// Whether the delimiter was named. If not, a first line `sep=;` names it, as Excel does.
    pub(crate) is_named: bool,
    /// Whether a field may stand in quotes.
    pub(crate) has_quotes: bool,
    pub(crate) encoding: Option<Encoding>,
    pub(crate) packing: Packing,
    /// The format of an output that needs every field to be UTF-8.
    pub(crate) utf8_for: Option<Format>,
}

impl Text {
    /// Checks the delimiter.
    pub(crate) fn check(self) -> Result<Self> {
        match self.delimiter {
            byte @ (b'"' | b'\n' | b'\r' | 0 | 0x80..) => Err(refuse(
                format_args!("byte {byte} cannot be a delimiter"),
                "a delimiter is one ASCII character, such as , ; | or a tab",
            )),
            _ => Ok(self),
        }
    }
}

/// The rows of a text file, one after the other.
pub(crate) struct Rows {
    reader: csv::Reader<Scan>,
    delimiter: u8,
    header: ByteRecord,
    /// The number of fields of a row, and of those that have a name.
    fields: usize,
    named: usize,
    /// Number of returned rows.
    row: u64,
    record: ByteRecord,
    /// The problem behind the rows of the last batch: an earlier row may have one of another kind.
    failed: Option<Problem>,
    /// Number of bytes read from the file.
    done: Arc<AtomicU64>,
    marked: bool,
    utf8_for: Option<Format>,
}

impl Rows {
    /// Bytes of a file in memory at a time, besides one row.
    const BUFFER: usize = 1 << 18;

    /// Reads the header of `file`.
    pub(crate) fn open(file: impl Read + Send + 'static, text: Text) -> Result<Self> {
        let done = Arc::new(AtomicU64::new(0));
        let counted = CountingFile { file, done: Arc::clone(&done) };
        let unpacked: Box<dyn Read + Send> = match text.packing {
            Packing::None => Box::new(counted),
            Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(counted)),
            #[cfg(not(feature = "columnar"))]
            Packing::Zstd => return Err(Problem::NotBuilt("Zstandard")),
            #[cfg(feature = "columnar")]
            Packing::Zstd => {
                let decoder = zstd::stream::read::Decoder::new(counted);
                Box::new(decoder.map_err(Problem::Read)?)
            }
        };
        let (source, marked) = encoding::decode(unpacked, text.encoding)?;
        let (source, separator) = without_separator(source)?;
        let delimiter = separator.filter(|_| !text.is_named).unwrap_or(text.delimiter);
        Text { delimiter, ..text }.check()?;
        let encoding = text.encoding.map_or("", Encoding::name);
        let lines = u64::from(separator.is_some());
        let scan = Scan::new(source, delimiter, text.has_quotes, encoding, lines);
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .quoting(text.has_quotes)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(Self::BUFFER)
            .from_reader(scan);
        let mut rows = Self {
            reader,
            delimiter,
            header: ByteRecord::new(),
            fields: 0,
            named: 0,
            record: ByteRecord::new(),
            failed: None,
            row: 0,
            done,
            marked,
            utf8_for: text.utf8_for,
        };
        let mut header = ByteRecord::new();
        match rows.reader.read_byte_record(&mut header) {
            Ok(true) => rows.header = header,
            Ok(false) => return Err(Problem::Empty),
            Err(error) => return Err(rows.problem(error)),
        }
        rows.fields = rows.header.len();
        // Excel fills rows up with delimiters, and leaves them out again further down. One column
        // without a name may be meant.
        let unnamed = rows.header.iter().rev().take_while(|name| name.is_empty()).count();
        rows.named = rows.fields - if unnamed > 1 { unnamed } else { 0 };
        if rows.named > 0 {
            rows.header.truncate(rows.named);
        } else {
            rows.named = rows.fields;
        }
        check_names(rows.columns()?)?;
        Ok(rows)
    }

    /// The delimiter: that of the file's first line, if it names one.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// The problem of a row with other fields than the header has.
    fn ragged(&self, record: &ByteRecord) -> Option<Problem> {
        let found = record.len();
        if found != self.named && found != self.fields {
            let (row, found, expected) = (self.row + 1, counted(found, "field"), self.fields);
            return Some(refuse(
                format_args!("row {row} has {found}, the header has {expected}"),
                "quote fields that contain the delimiter, or set the right one with --delimiter",
            ));
        }
        let beyond = (self.named..found).find(|&column| !record[column].is_empty())?;
        let (row, column) = (self.row + 1, beyond + 1);
        Some(refuse(
            format_args!("row {row} has a value in column {column}, which has no name"),
            "give the column a name in the first line",
        ))
    }

    /// The names of the columns.
    pub(crate) fn columns(&self) -> Result<Vec<&str>> {
        let name = |(i, name)| {
            std::str::from_utf8(name).map_err(|_| {
                let what = format_args!("the name of column {} is not UTF-8", i + 1);
                refuse(what, NAME_ENCODING)
            })
        };
        self.header.iter().enumerate().map(name).collect()
    }

    /// Reads the next rows that are wanted, by their numbers counted from 0; returns the number of
    /// rows read and, of the wanted ones, these columns. No rows are read at the end.
    pub(crate) fn next(
        &mut self,
        columns: &[usize],
        mut wanted: impl FnMut(u64) -> bool,
    ) -> Result<(u64, Vec<ArrayRef>)> {
        if let Some(problem) = self.failed.take() {
            return Err(problem);
        }
        let mut fields = vec![(Vec::new(), vec![0_i32]); columns.len()];
        let (first, mut rows, mut bytes) = (self.row, 0, 0);
        let mut record = std::mem::take(&mut self.record);
        while rows < BATCH.0 && bytes < BATCH.1 && self.row - first < PASSED {
            match self.reader.read_byte_record(&mut record) {
                Ok(true) => match self.ragged(&record) {
                    None => self.row += 1,
                    failed => {
                        self.failed = failed;
                        break;
                    }
                },
                Ok(false) => break,
                Err(error) => {
                    self.failed = Some(self.problem(error));
                    break;
                }
            }
            if let Some(format) = self.utf8_for
                && let Some(column) = not_utf8(&record)
            {
                let row = self.row;
                return Err(Problem::NotUtf8 { row, column, format });
            }
            if !wanted(self.row - 1) {
                continue;
            }
            rows += 1;
            for ((field, ends), &column) in fields.iter_mut().zip(columns) {
                field.extend_from_slice(&record[column]);
                bytes += record[column].len();
                // A batch has at most the bytes of `BATCH` and of one row, which is limited, too.
                ends.push(field.len() as i32);
            }
        }
        self.record = record;
        if self.row == first
            && let Some(problem) = self.failed.take()
        {
            return Err(problem);
        }
        let array = |(field, ends): (Vec<u8>, Vec<i32>)| -> ArrayRef {
            let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
            Arc::new(BinaryArray::new(ends, field.into(), None))
        };
        Ok((self.row - first, fields.into_iter().map(array).collect()))
    }

    /// The number of bytes read from the file.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Whether a byte-order mark was removed.
    pub(crate) fn marked(&self) -> bool {
        self.marked
    }

    /// The bytes that were read, in UTF-8 if an encoding was named, without compression.
    pub(crate) fn bytes(&self) -> u64 {
        self.reader.position().byte()
    }

    /// The number of blank lines so far.
    pub(crate) fn blank_lines(&self) -> u64 {
        self.reader.get_ref().blank_lines()
    }

    fn problem(&mut self, error: csv::Error) -> Problem {
        if let Some(found) = self.reader.get_mut().take_problem() {
            return found;
        }
        match error.into_kind() {
            ErrorKind::Io(error) => Problem::Read(error),
            // The other kinds belong to parts of the library that are not used here.
            _ => Problem::Read(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// A text without a first line such as `sep=;` or `"sep=;"`, in any case of letters, and the
/// delimiter that this line names.
fn without_separator(mut text: Box<dyn Read + Send>) -> Result<(Box<dyn Read + Send>, Option<u8>)> {
    const LONGEST: u64 = b"\"sep=;\"\r\n".len() as u64;
    let mut start = Vec::with_capacity(LONGEST as usize);
    // A stream with malformed text repeats the error, so that a reader that knows the row gets it.
    match text.by_ref().take(LONGEST).read_to_end(&mut start) {
        Err(error) if !encoding::is_malformed(&error) => return Err(Problem::Read(error)),
        _ => {}
    }
    let found = match start[..] {
        [b'"', s, e, p, b'=', separator, b'"', ref end @ ..] => Some(([s, e, p], separator, end)),
        [s, e, p, b'=', separator, ref end @ ..] => Some(([s, e, p], separator, end)),
        _ => None,
    };
    let found = found.filter(|(name, ..)| name.eq_ignore_ascii_case(b"sep"));
    let found = found.and_then(|(_, separator, end)| match end {
        [b'\r', b'\n', rest @ ..] | [b'\r' | b'\n', rest @ ..] => Some((separator, rest.to_vec())),
        _ => None,
    });
    let separator = found.as_ref().map(|(separator, _)| *separator);
    let start = found.map_or(start, |(_, rest)| rest);
    Ok((Box::new(io::Cursor::new(start).chain(text)), separator))
}

/// The first field that is not UTF-8, counted from 1.
fn not_utf8(record: &ByteRecord) -> Option<usize> {
    if record.as_slice().is_ascii() {
        return None;
    }
    let mut fields = record.iter();
    let found = fields.position(|field| std::str::from_utf8(field).is_err());
    found.map(|column| column + 1)
}

/// The most rows and bytes of a batch, the last row not counted, and the most rows that are passed
/// by for one.
const BATCH: (usize, usize) = (8192, 4 << 20);
const PASSED: u64 = 1 << 20;

/// A file that counts the bytes read from it.
struct CountingFile<R> {
    file: R,
    done: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingFile<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.done.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
