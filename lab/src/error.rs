//! Errors of measurements.

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::measurement::Key;

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// A reason why something could not be measured, written or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The channel between the parties, or one of the parties, failed.
    #[error(transparent)]
    Channel(#[from] volery_channel::Error),
    /// The system provides no port on the loopback interface for the two parties.
    #[error(
        "cannot open a port on the loopback interface, which must be up and have a free one: {0}"
    )]
    NoPort(volery_channel::Error),
    /// A protocol failed or computed a wrong result: the protocol and the reason.
    #[error("{0}")]
    Protocol(String),
    /// A run of a cell failed.
    #[error("{key}: {error} (earlier runs are kept)")]
    Run { key: Box<Key>, error: Box<Self> },
    /// A file or a folder could not be read or written.
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: std::io::Error },
    /// A wrong option, as the user types it.
    #[error("{option}: {what}")]
    Usage { option: &'static str, what: String },
}

/// A failure of the channel stays one, as it may be the mere consequence of the other party's.
impl From<volery_psi::Error> for Error {
    fn from(error: volery_psi::Error) -> Self {
        match error {
            volery_psi::Error::Channel(error) => error.into(),
            other => Self::protocol(other),
        }
    }
}

impl Error {
    /// A protocol failed or computed a wrong result.
    pub(crate) fn protocol(what: impl fmt::Display) -> Self {
        Self::Protocol(what.to_string())
    }

    /// A file or a folder could not be read or written.
    pub(crate) fn file(path: &Path, error: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }

    /// A wrong option: what is wrong, and what to do.
    pub(crate) fn usage(option: &'static str, what: impl fmt::Display) -> Self {
        Self::Usage { option, what: what.to_string() }
    }

    pub(crate) fn output(error: std::io::Error) -> Self {
        Self::file(Path::new("standard output"), error)
    }

    /// Writes a line to standard error; returns the exit status.
    pub(crate) fn tell(&self) -> ExitCode {
        // Quoted text must not control the terminal.
        let line = self.to_string().replace(char::is_control, " ");
        // A closed standard error leaves nothing to do.
        let _ = writeln!(std::io::stderr().lock(), "error: {line}");
        ExitCode::from(if matches!(self, Self::Usage { .. }) { 2 } else { 1 })
    }
}
