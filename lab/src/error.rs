//! Errors of measurements.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::measurement::Key;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A reason why something could not be measured, written or read.
#[derive(Debug)]
pub enum Error {
    /// The channel between the parties, or one of the parties, failed.
    Channel(volery_channel::Error),
    /// The system provides no port on the loopback interface for the two parties.
    NoPort(volery_channel::Error),
    /// A protocol failed or computed a wrong result: the protocol and the reason.
    Protocol(String),
    /// A run of a cell failed.
    Run {
        /// The cell.
        key: Box<Key>,
        /// The cause.
        error: Box<Self>,
    },
    /// A file or a folder could not be read or written.
    File {
        /// The path.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// The file is not one that [`crate::results`] writes, or has another version.
    NotResults {
        /// The path.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// Existing results were measured with other settings, and cannot be continued.
    Different {
        /// The path.
        path: PathBuf,
        /// The difference: the name of the setting, its value there, its value now.
        what: String,
    },
}

impl Error {
    /// A protocol failed or computed a wrong result.
    pub fn protocol(what: impl fmt::Display) -> Self {
        Self::Protocol(what.to_string())
    }

    /// A file or a folder could not be read or written.
    pub fn file(path: &Path, error: std::io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            error,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel(error) => error.fmt(f),
            Self::NoPort(error) => write!(
                f,
                "cannot open a port on the loopback interface for the two parties: {error}"
            ),
            Self::Protocol(what) => f.write_str(what),
            Self::Run { key, error } => write!(f, "{key}: {error}"),
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::NotResults { path, why } => {
                write!(
                    f,
                    "{}: not a results file of this program: {why}",
                    path.display()
                )
            }
            Self::Different { path, what } => {
                write!(
                    f,
                    "{}: measured with other settings: {what}",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Channel(error) | Self::NoPort(error) => Some(error),
            Self::File { error, .. } => Some(error),
            Self::Run { error, .. } => Some(error),
            Self::Protocol(_) | Self::NotResults { .. } | Self::Different { .. } => None,
        }
    }
}

impl From<volery_channel::Error> for Error {
    fn from(error: volery_channel::Error) -> Self {
        Self::Channel(error)
    }
}
