//! Text files with a header: their rows and their errors.

mod scan;

use std::cell::Cell as Shared;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

use csv::{ByteRecord, ErrorKind};

use crate::encoding::{self, Encoding};
use crate::error::Problem;
use crate::key::check_names;
use scan::Scan;

/// The parameters for reading a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text {
    delimiter: u8,
    pub(crate) encoding: Option<Encoding>,
}

impl Text {
    pub(crate) fn new(delimiter: u8, encoding: Option<Encoding>) -> Result<Self, Problem> {
        match delimiter {
            b'"' | b'\n' | b'\r' | 0 | 0x80.. => Err(Problem::Delimiter(delimiter)),
            _ => Ok(Self {
                delimiter,
                encoding,
            }),
        }
    }

    pub(crate) fn delimiter(self) -> u8 {
        self.delimiter
    }
}

/// The rows of a text file, one after the other.
pub(crate) struct Rows {
    reader: csv::Reader<Scan>,
    header: ByteRecord,
    /// Number of returned rows.
    row: u64,
    /// Number of bytes read from the file.
    done: Rc<Shared<u64>>,
    marked: bool,
}

impl Rows {
    /// Bytes of a file in memory at a time, besides one row.
    const BUFFER: usize = 1 << 18;

    /// Reads the header of `file`.
    pub(crate) fn open(file: File, text: Text) -> Result<Self, Problem> {
        let done = Rc::new(Shared::new(0));
        let counted = Counted {
            file,
            done: Rc::clone(&done),
        };
        let (source, marked) = encoding::decode(Box::new(counted), text.encoding)?;
        let scan = Scan::new(
            source,
            text.delimiter,
            text.encoding.map_or("", Encoding::name),
        );
        let reader = csv::ReaderBuilder::new()
            .delimiter(text.delimiter)
            .has_headers(false)
            .buffer_capacity(Self::BUFFER)
            .from_reader(scan);
        let mut rows = Self {
            reader,
            header: ByteRecord::new(),
            row: 0,
            done,
            marked,
        };
        let mut header = ByteRecord::new();
        match rows.reader.read_byte_record(&mut header) {
            Ok(true) => rows.header = header,
            Ok(false) => return Err(Problem::Empty),
            Err(error) => return Err(rows.problem(error)),
        }
        check_names(&rows.columns())?;
        Ok(rows)
    }

    /// The names of the columns.
    pub(crate) fn columns(&self) -> Vec<Vec<u8>> {
        self.header.iter().map(<[u8]>::to_vec).collect()
    }

    pub(crate) fn header(&self) -> &ByteRecord {
        &self.header
    }

    /// Reads the next row into `record`, or returns false at the end.
    pub(crate) fn next(&mut self, record: &mut ByteRecord) -> Result<bool, Problem> {
        match self.reader.read_byte_record(record) {
            Ok(more) => {
                self.row += u64::from(more);
                Ok(more)
            }
            Err(error) => Err(self.problem(error)),
        }
    }

    /// The number of the last returned row, counted from 1; this is also the number of rows so far.
    pub(crate) fn row(&self) -> u64 {
        self.row
    }

    /// The number of bytes read from the file.
    pub(crate) fn done(&self) -> u64 {
        self.done.get()
    }

    /// Whether a byte-order mark was removed.
    pub(crate) fn marked(&self) -> bool {
        self.marked
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
            ErrorKind::UnequalLengths {
                expected_len, len, ..
            } => Problem::Ragged {
                row: self.row + 1,
                found: len,
                expected: expected_len,
            },
            ErrorKind::Io(error) => Problem::Read(error),
            // The other kinds belong to parts of the library that are not used here.
            _ => Problem::Read(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// A file that counts the bytes read from it.
struct Counted {
    file: File,
    done: Rc<Shared<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.done.set(self.done.get() + n as u64);
        Ok(n)
    }
}
