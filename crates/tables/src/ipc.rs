//! Arrow IPC files and streams.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::FileWriter;
use arrow_ipc::{Endianness, root_as_message};
use arrow_schema::{ArrowError, Fields, SchemaRef};

use crate::error::{Problem, Result, cut_short, damaged, not_a, refuse};
use crate::format::Format;
use crate::guard::guarded;
use crate::sink::refused;

/// A file has these letters at both ends, zeros behind those at the front, and then a stream.
const MAGIC: &[u8; 6] = b"ARROW1";

/// The batches of a file or a stream.
pub(crate) struct Batches {
    reader: StreamReader<Messages>,
    done: Arc<AtomicU64>,
    /// The number of batches and rows so far.
    batches: usize,
    rows: u64,
}

impl Batches {
    /// Reads the schema of `file`, which is at its start; of the batches these columns are decoded,
    /// which are ascending, or all.
    pub(crate) fn open(
        file: impl Read + Send + 'static,
        is_file: bool,
        columns: Option<&[usize]>,
    ) -> Result<Self> {
        let done = Arc::new(AtomicU64::new(0));
        let mut file: Box<dyn Read + Send> = Box::new(file);
        if is_file {
            // Zeros up to some border follow the letters.
            let mut word = [0; 8];
            file.read_exact(&mut word).map_err(Problem::Read)?;
            word.fill(0);
            while word == [0; 8] {
                file.read_exact(&mut word).map_err(Problem::Read)?;
            }
            file = Box::new(io::Cursor::new(word).chain(file));
        }
        let messages = Messages {
            file: BufReader::with_capacity(1 << 18, file),
            ready: Vec::new(),
            at: 0,
            body: 0,
            done: Arc::clone(&done),
        };
        let reader = guarded(Format::Arrow, 0, || {
            StreamReader::try_new(messages, columns.map(<[usize]>::to_vec)).map_err(|e| wrong(0, e))
        })?;
        Ok(Self { reader, done, batches: 0, rows: 0 })
    }

    /// The columns.
    pub(crate) fn fields(&self) -> Fields {
        self.reader.schema().fields().clone()
    }

    /// The next batch, which may be empty; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        let after = self.rows;
        let batch = guarded(Format::Arrow, after, || {
            self.reader.next().transpose().map_err(|e| wrong(after, e))
        });
        self.batches += 1;
        let batch = batch.map_err(|mut problem| {
            if let Problem::Damaged { part, .. } = &mut problem {
                *part = Some(self.batches);
            }
            problem
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
pub(crate) fn is_file(file: &mut File, length: u64) -> Result<bool> {
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
        return Err(not_a(Format::Arrow));
    }
    if &read(SeekFrom::Start(0)).map_err(Problem::Read)? != MAGIC {
        return Ok(false);
    }
    match length >= 20 && &read(SeekFrom::End(-6)).map_err(Problem::Read)? == MAGIC {
        true => Ok(true),
        false => Err(cut_short(Format::Arrow)),
    }
}

/// The schema of a file states that its numbers are big-endian. The library does not look at it.
#[derive(Debug, thiserror::Error)]
#[error("big-endian")]
struct BigEndian;

fn wrong(after: u64, error: ArrowError) -> Problem {
    match error {
        ArrowError::IoError(_, error) if error.get_ref().is_some_and(|e| e.is::<BigEndian>()) => {
            refuse(
                "is a big-endian Arrow file, which cannot be read",
                "write it again on a little-endian machine, as most are",
            )
        }
        ArrowError::IoError(_, error)
            if !matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
            ) =>
        {
            Problem::Read(error)
        }
        other => damaged(Format::Arrow, after, other),
    }
}

/// The most bytes a decompressed buffer may have; one that is large in the file may have [`RATIO`]
/// times what it has there. The library sets aside as much as a buffer claims.
const LARGE: u64 = 64 << 20;
const RATIO: u64 = 1024;

/// The messages of a stream, each looked at before it is passed on.
struct Messages {
    file: BufReader<Box<dyn Read + Send>>,
    /// The front of a message, and how much of it was passed on.
    ready: Vec<u8>,
    at: usize,
    /// The number of bytes of its body that are still in the file.
    body: u64,
    done: Arc<AtomicU64>,
}

impl Messages {
    /// Reads the front of the next message, and its body if it is compressed. A message that cannot
    /// be read is passed on: the library has the error for it.
    fn load(&mut self) -> io::Result<()> {
        self.ready.clear();
        self.at = 0;
        let mut length = self.pull(4)?;
        if length == [0xff; 4] {
            length = self.pull(4)?;
        }
        let Ok(length) = <[u8; 4]>::try_from(length) else {
            return Ok(());
        };
        let length = u64::try_from(i32::from_le_bytes(length)).unwrap_or(0);
        let front = self.pull(length)?;
        let Ok(message) = root_as_message(&front) else {
            return Ok(());
        };
        let schema = message.header_as_schema();
        if schema.is_some_and(|schema| schema.endianness() != Endianness::Little) {
            return Err(io::Error::other(BigEndian));
        }
        self.body = u64::try_from(message.bodyLength()).unwrap_or(0);
        let dictionary = message.header_as_dictionary_batch();
        let batch = message.header_as_record_batch();
        let batch = batch.or_else(|| dictionary.and_then(|dictionary| dictionary.data()));
        let Some(batch) = batch.filter(|batch| batch.compression().is_some()) else {
            return Ok(());
        };
        let length = std::mem::take(&mut self.body);
        let body = self.pull(length)?;
        for buffer in batch.buffers().into_iter().flatten() {
            let start = usize::try_from(buffer.offset()).unwrap_or(usize::MAX);
            let claimed = body.get(start..).and_then(<[u8]>::first_chunk);
            // Less than 0 is a buffer that is not compressed.
            let claimed = claimed.map_or(0, |bytes| i64::from_le_bytes(*bytes));
            let claimed = u64::try_from(claimed).unwrap_or(0);
            let stored = u64::try_from(buffer.length()).unwrap_or(0);
            if claimed > LARGE && claimed / RATIO > stored {
                let what = "a buffer that claims far more bytes than it has";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        Ok(())
    }

    /// Reads `count` bytes, or fewer at the end of the file; they are passed on, too.
    fn pull(&mut self, count: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.by_ref().take(count).read_to_end(&mut bytes)?;
        self.ready.extend_from_slice(&bytes);
        Ok(bytes)
    }
}

impl Read for Messages {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.ready.len() && self.body == 0 {
            self.load()?;
        }
        let n = match &self.ready[self.at..] {
            [] => {
                let most = buffer.len().min(usize::try_from(self.body).unwrap_or(usize::MAX));
                let n = self.file.read(&mut buffer[..most])?;
                // At the end of the file there is no more.
                self.body = if n == 0 { 0 } else { self.body - n as u64 };
                n
            }
            mut ready => {
                let n = ready.read(buffer)?;
                self.at += n;
                n
            }
        };
        self.done.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A file that is being written.
pub(crate) struct Writer<W: Write>(FileWriter<W>);

impl<W: Write> Writer<W> {
    /// Begins a file of the columns of `schema`.
    pub(crate) fn new(out: W, schema: &SchemaRef) -> Result<Self> {
        FileWriter::try_new(out, schema).map(Self).map_err(refused)
    }

    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.0.write(rows).map_err(refused)
    }

    pub(crate) fn finish(self) -> Result<W> {
        let mut writer = self.0;
        writer.finish().map_err(refused)?;
        writer.into_inner().map_err(refused)
    }
}
