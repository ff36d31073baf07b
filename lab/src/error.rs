//! Errors of measurements.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::measurement::Key;

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// A reason why something could not be measured, written or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The channel between the parties, or one of the parties, failed.
    #[error(transparent)]
    Channel(#[from] volery_channel::Error),
    /// The system provides no port on the loopback interface for the two parties.
    #[error("cannot open a port on the loopback interface for the two parties: {0}")]
    NoPort(volery_channel::Error),
    /// A protocol failed or computed a wrong result: the protocol and the reason.
    #[error("{0}")]
    Protocol(String),
    /// A run of a cell failed.
    #[error("{key}: {error}")]
    Run { key: Box<Key>, error: Box<Self> },
    /// A file or a folder could not be read or written.
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: std::io::Error },
    /// The file is not one that [`crate::results`] writes, or has another version.
    #[error("{}: not a results file of this program: {why}", path.display())]
    NotResults { path: PathBuf, why: String },
    /// Existing results were measured with other settings, and cannot be continued.
    #[error("{}: measured with other settings: {what}", path.display())]
    Different {
        path: PathBuf,
        /// The difference: the name of the setting, its value there, its value now.
        what: String,
    },
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
}
