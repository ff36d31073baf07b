//! Writes the arrays of a party while the next ones are computed.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use volery_field::{Ring, Z64};
use volery_os::sync::mpsc;
use volery_os::thread;

use crate::driver::Step;
use crate::failure::{Failure, Result, Status};
use crate::npy::{Form, Writer};
use crate::output::Folder;
use crate::party::Party;

/// An array being written, with its path for error messages.
pub(crate) struct Array<R> {
    path: PathBuf,
    writer: Writer<R>,
}

impl<R: Ring> Array<R> {
    /// Creates the file of the array with this letter and `n` elements.
    pub(crate) fn create(folder: &Folder, letter: &str, n: u64) -> Result<Self> {
        Self::begin(folder, letter, |file| Writer::new(file, n))
    }

    fn begin(
        folder: &Folder,
        letter: &str,
        begin: impl FnOnce(File) -> io::Result<Writer<R>>,
    ) -> Result<Self> {
        let name = file_name(letter);
        // Error messages name the final path, not the temporary one.
        let path = folder.target().join(&name);
        let writer = begin(folder.create(&name)?).map_err(|error| Failure::file(&path, error))?;
        Ok(Self { path, writer })
    }

    pub(crate) fn write(&mut self, elements: &[R]) -> Result<()> {
        self.writer.write(elements).map_err(|error| Failure::file(&self.path, error))
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.writer.finish().map_err(|error| Failure::file(&self.path, error))
    }
}

impl Array<Z64> {
    /// Creates the file of an array of `n` numbers with a sign.
    pub(crate) fn signed(folder: &Folder, name: &str, n: u64) -> Result<Self> {
        Self::begin(folder, name, |file| Writer::signed(file, n))
    }
}

/// The long arrays of one party.
pub(crate) struct Columns<E: Party> {
    values: Option<Array<E::Base>>,
    column: Array<E::Ring>,
}

impl<E: Party> Columns<E> {
    pub(crate) fn create(folder: &Folder, n: u64) -> Result<Self> {
        let values = E::VALUES.map(|letter| Array::create(folder, letter, n));
        Ok(Self { values: values.transpose()?, column: Array::create(folder, E::COLUMN, n)? })
    }

    /// Total bytes of the arrays.
    pub(crate) fn bytes(n: u64) -> u64 {
        let values = E::VALUES.map_or(0, |_| Form::of::<E::Base>().bytes());
        n.saturating_mul((values + Form::of::<E::Ring>().bytes()) as u64)
    }

    fn write(&mut self, step: &Step<E>) -> Result<()> {
        if let Some(array) = &mut self.values {
            E::open(&step.u, step.count, |values| array.write(values))?;
        }
        self.column.write(&step.column)
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.values.map_or(Ok(()), Array::finish)?;
        self.column.finish()
    }
}

pub(crate) fn file_name(letter: &str) -> String {
    format!("{letter}.npy")
}

/// Runs `body` while another thread writes the steps that `body` hands over, so that the disk and
/// the computation overlap. At most three steps are in memory.
pub(crate) fn write_beside<E: Party, T>(
    n: u64,
    mut columns: Columns<E>,
    body: impl FnOnce(&mut dyn FnMut(Step<E>) -> Result<Step<E>>) -> Result<T>,
) -> Result<(T, Columns<E>)> {
    let (full, to_write) = mpsc::sync_channel::<Step<E>>(1);
    let (written, empty) = mpsc::channel::<Step<E>>();
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for step in to_write {
                columns.write(&step)?;
                // The receiving side is closed only after `body` has taken its last step.
                let _ = written.send(step);
            }
            Ok(columns)
        });
        // The writer stops early only on an error; joining it returns that error.
        let stopped = || Failure::new(Status::Other, "the output files could not be written");
        let mut in_flight = 0;
        let result = body(&mut |step| {
            full.send(step).map_err(|_| stopped())?;
            in_flight += 1;
            if in_flight < 3 {
                return Ok(Step::with_capacity(n));
            }
            empty.recv().map_err(|_| stopped())
        });
        drop(full);
        let columns = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (result, columns) {
            (Ok(result), Ok(columns)) => Ok((result, columns)),
            (_, Err(failure)) | (Err(failure), Ok(_)) => Err(failure),
        }
    })
}
