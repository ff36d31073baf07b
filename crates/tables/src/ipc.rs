//! Arrow IPC files and streams.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, Fields};

use crate::columnar::{damaged, guarded};
use crate::error::Problem;
use crate::format::Format;

/// A file has these letters at both ends, two zeros behind those at the front, and then a stream.
const MAGIC: &[u8; 6] = b"ARROW1";

/// The batches of a file or a stream.
pub(crate) struct Batches {
    reader: StreamReader<Counted>,
    done: Arc<AtomicU64>,
    rows: u64,
}

impl Batches {
    /// Reads the schema of `file`, which has `length` bytes and is at its start; of the batches
    /// these columns are decoded, which are ascending, or all.
    pub(crate) fn open(
        file: impl Read + Send + 'static,
        is_file: bool,
        columns: Option<&[usize]>,
    ) -> Result<Self, Problem> {
        let done = Arc::new(AtomicU64::new(0));
        let mut file: Box<dyn Read + Send> = Box::new(file);
        if is_file {
            io::copy(&mut file.by_ref().take(8), &mut io::sink()).map_err(Problem::Read)?;
        }
        let counted = Counted {
            file: BufReader::with_capacity(1 << 18, file),
            done: Arc::clone(&done),
        };
        let reader = guarded(Format::Arrow, 0, || {
            StreamReader::try_new(counted, columns.map(<[usize]>::to_vec)).map_err(|e| wrong(0, e))
        })?;
        Ok(Self {
            reader,
            done,
            rows: 0,
        })
    }

    /// The columns.
    pub(crate) fn fields(&self) -> Fields {
        self.reader.schema().fields().clone()
    }

    /// The next batch, which may be empty; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>, Problem> {
        let after = self.rows;
        let batch = guarded(Format::Arrow, after, || {
            self.reader.next().transpose().map_err(|e| wrong(after, e))
        })?;
        self.rows += batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        Ok(batch)
    }

    /// The number of bytes read from the file.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// Whether `file`, which has `length` bytes, has the file format and not the stream format.
pub(crate) fn is_file(file: &mut File, length: u64) -> Result<bool, Problem> {
    if length == 0 {
        return Err(Problem::Empty);
    }
    let mut letters = [0; 6];
    let mut read = |at| -> io::Result<[u8; 6]> {
        file.seek(at)?;
        file.read_exact(&mut letters)?;
        Ok(letters)
    };
    // A stream begins with four bytes of ones, or, in old ones, with the length of its schema.
    if length < 8 {
        return Err(Problem::NotA(Format::Arrow));
    }
    if &read(SeekFrom::Start(0)).map_err(Problem::Read)? != MAGIC {
        return Ok(false);
    }
    match length >= 20 && &read(SeekFrom::End(-6)).map_err(Problem::Read)? == MAGIC {
        true => Ok(true),
        false => Err(Problem::CutShort(Format::Arrow)),
    }
}

fn wrong(after: u64, error: ArrowError) -> Problem {
    match error {
        ArrowError::IoError(_, error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            Problem::Read(error)
        }
        other => damaged(Format::Arrow, after, other),
    }
}

struct Counted {
    file: BufReader<Box<dyn Read + Send>>,
    done: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.done.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
