//! A byte stream of the caller's own: a Python object, of `volery._transport`, whose threads call
//! the caller's functions.

use std::io;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use volery_run::embed::{Cancel, ProtocolError, Transport};

/// Longest piece that is written at a time.
const PIECE: usize = 1 << 16;

/// The object, with `write(bytes)`, which returns whether there was space, and `read(most)`, which
/// returns `None` if nothing has come: neither waits for long. `close(seconds)` waits as long as
/// that for the caller to take something that was written.
pub(crate) struct CallerStream {
    pub(crate) object: Py<PyAny>,
    pub(crate) cancel: Cancel,
    pub(crate) timeout: Duration,
}

impl CallerStream {
    /// Calls until there is a value, for at most `timeout`.
    fn wait<T>(
        &self,
        timeout: Option<Duration>,
        call: impl Fn(&Bound<'_, PyAny>) -> PyResult<Option<T>>,
    ) -> io::Result<T> {
        let start = Instant::now();
        loop {
            if self.cancel.is_cancelled() {
                return Err(io::Error::other(ProtocolError::Cancelled));
            }
            // The interpreter may be gone.
            let called = Python::try_attach(|py| call(self.object.bind(py)));
            match called.ok_or(io::ErrorKind::BrokenPipe)?.map_err(io::Error::other)? {
                Some(value) => return Ok(value),
                None if timeout.is_some_and(|timeout| start.elapsed() >= timeout) => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                None => {}
            }
        }
    }
}

impl Transport for CallerStream {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        bytes.chunks(PIECE).try_for_each(|piece| {
            self.wait(timeout, |object| {
                let piece = PyBytes::new(object.py(), piece);
                let is_taken: bool = object.call_method1("write", (piece,))?.extract()?;
                Ok(is_taken.then_some(()))
            })
        })
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let most = bytes.len();
        let come: Vec<u8> =
            self.wait(timeout, |object| object.call_method1("read", (most,))?.extract())?;
        bytes[..come.len()].copy_from_slice(&come);
        Ok(come.len())
    }
}

impl Drop for CallerStream {
    fn drop(&mut self) {
        let timeout = if self.cancel.is_cancelled() { Duration::ZERO } else { self.timeout };
        let close = |object: &Bound<'_, PyAny>| {
            object.call_method1("close", (timeout.as_secs_f64(),)).map(drop)
        };
        // What it raises concerns a run that is over.
        let _ = Python::try_attach(|py| close(self.object.bind(py)));
    }
}
