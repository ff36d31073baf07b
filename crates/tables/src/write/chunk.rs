//! Column chunks of a row group, encoded in memory as rows arrive: the file stores them one after
//! the other.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::errors::Result;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// A column chunk.
pub(super) struct Chunk {
    writer: ColumnWriter<'static>,
    pages: Pages,
    levels: usize,
}

impl Chunk {
    pub(super) fn new(column: ColumnDescPtr, properties: WriterPropertiesPtr) -> Self {
        let pages = Pages::default();
        let sink = Box::new(PageSink(TrackedWrite::new(pages.clone())));
        Self {
            writer: get_column_writer(column, properties, sink),
            pages,
            levels: 0,
        }
    }

    /// Appends the output of `write`, which returns the number of levels.
    pub(super) fn append(
        &mut self,
        write: impl FnOnce(&mut ColumnWriter<'static>) -> Result<usize>,
    ) -> Result<()> {
        self.levels += write(&mut self.writer)?;
        Ok(())
    }

    /// An upper bound of its size in bytes, without the current page and dictionary: while there is
    /// a dictionary, pages of one number for each level wait for it.
    pub(super) fn size(&self) -> usize {
        self.pages.with(|pages| pages.len()) + 4 * self.levels
    }

    /// Appends the chunk to a row group.
    pub(super) fn finish<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        let closed = self.writer.close()?;
        let pages = self.pages.with(std::mem::take);
        group.append_column(&Bytes::from(pages), closed)
    }
}

/// The pages of a chunk, as in the file.
#[derive(Clone, Default)]
struct Pages(Arc<Mutex<Vec<u8>>>);

impl Pages {
    fn with<T>(&self, what: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Pages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|pages| pages.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The library's page writer borrows its target, so it is created for each page.
struct PageSink(TrackedWrite<Pages>);

impl PageWriter for PageSink {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        SerializedPageWriter::new(&mut self.0).write_page(page)
    }

    fn close(&mut self) -> Result<()> {
        SerializedPageWriter::new(&mut self.0).close()
    }
}
