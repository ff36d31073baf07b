//! In place of [`columnar`] and [`ipc`] without the feature `columnar`: no file has these formats.

/// Parquet.
pub(crate) mod columnar {
    use std::convert::Infallible;
    use std::fs::File;
    use std::io::Write;
    use std::marker::PhantomData;

    use arrow_array::RecordBatch;
    use arrow_schema::{Fields, SchemaRef};

    use crate::error::{Problem, Result};

    const PARQUET: Problem = Problem::NotBuilt("a Parquet file");

    pub(crate) struct Table(Infallible);

    impl Table {
        pub(crate) fn open(_: &mut File, _: u64) -> Result<Self> {
            Err(PARQUET)
        }

        pub(crate) fn fields(&self) -> &Fields {
            match self.0 {}
        }

        pub(crate) fn rows(&self) -> u64 {
            match self.0 {}
        }

        pub(crate) fn unpacked_bytes(&self) -> u64 {
            match self.0 {}
        }

        pub(crate) fn note(&self, _: &str) -> Option<&str> {
            match self.0 {}
        }

        pub(crate) fn check_columns(&self, _: &[usize]) -> Result<()> {
            match self.0 {}
        }

        pub(crate) fn lake(&self) -> Option<crate::Lake> {
            match self.0 {}
        }

        pub(crate) fn batches(&self, _: File, _: u64, _: &[usize]) -> Result<Batches> {
            match self.0 {}
        }
    }

    pub(crate) struct Batches(Infallible);

    impl Batches {
        pub(crate) fn next(
            &mut self,
            _: bool,
            _: &mut dyn FnMut(u64) -> bool,
        ) -> Result<Option<RecordBatch>> {
            match self.0 {}
        }

        pub(crate) fn rows(&self) -> u64 {
            match self.0 {}
        }

        pub(crate) fn total(&self) -> u64 {
            match self.0 {}
        }
    }

    pub(crate) struct Writer<W>(Infallible, PhantomData<W>);

    impl<W: Write> Writer<W> {
        pub(crate) fn new(_: W, _: Option<&crate::Table>, _: &SchemaRef) -> Result<Self> {
            Err(PARQUET)
        }

        pub(crate) fn write(&mut self, _: &RecordBatch) -> Result<()> {
            match self.0 {}
        }

        pub(crate) fn note(&mut self, _: &str, _: &str) {
            match self.0 {}
        }

        pub(crate) fn finish(self) -> Result<W> {
            match self.0 {}
        }
    }
}

/// Arrow files and streams.
pub(crate) mod ipc {
    use std::convert::Infallible;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::marker::PhantomData;

    use arrow_array::RecordBatch;
    use arrow_schema::{Fields, SchemaRef};

    use crate::error::{Problem, Result};

    const ARROW: Problem = Problem::NotBuilt("an Arrow file");

    pub(crate) fn is_file(_: &mut File, _: u64) -> Result<bool> {
        Err(ARROW)
    }

    pub(crate) struct Batches(Infallible);

    impl Batches {
        pub(crate) fn open(
            _: impl Read + Send + 'static,
            _: bool,
            _: Option<&[usize]>,
        ) -> Result<Self> {
            Err(ARROW)
        }

        pub(crate) fn fields(&self) -> Fields {
            match self.0 {}
        }

        pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
            match self.0 {}
        }

        pub(crate) fn done(&self) -> u64 {
            match self.0 {}
        }
    }

    pub(crate) struct Writer<W>(Infallible, PhantomData<W>);

    impl<W: Write> Writer<W> {
        pub(crate) fn new(_: W, _: &SchemaRef) -> Result<Self> {
            Err(ARROW)
        }

        pub(crate) fn write(&mut self, _: &RecordBatch) -> Result<()> {
            match self.0 {}
        }

        pub(crate) fn finish(self) -> Result<W> {
            match self.0 {}
        }
    }
}
