//! The extension module `volery._volery`: the subcommands of the program as functions, for the
//! Python package in `python/volery`.
//!
//! Options come by name; names, defaults and errors are those of the program. Tables come and go
//! through Arrow's C stream interface, arrays of numbers as NumPy arrays. A run has a thread of its
//! own, which touches Python only by a [`transport`] of the caller; the calling thread serves
//! signals, progress and cancellation (module [`job`]).
#![forbid(unsafe_code)]

mod arrays;
#[cfg(feature = "gpu")]
mod card;
mod cluster;
mod job;
mod runs;
mod table;
mod transport;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the program with these words and returns its exit status; `program` are the words that
/// start it again.
#[pyfunction]
fn main(py: Python<'_>, program: Vec<OsString>, words: Vec<OsString>) -> u8 {
    py.detach(|| volery_cli::command::main(program, words))
}

#[pymodule]
mod _volery {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::main;
    #[cfg(feature = "gpu")]
    #[pymodule_export]
    use crate::card::CardArray;
    #[pymodule_export]
    use crate::cluster::{
        Items, Slices, agree, digest, found, items, open_totals, secrets, shards, tickets, totals,
    };
    #[pymodule_export]
    use crate::runs::{
        Connection, Stream, keygen, lint, matching, matvec, ope, open, options, over, pair, stream,
        verify,
    };
    #[pymodule_export]
    use crate::table::{Batches, Table, columns};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
