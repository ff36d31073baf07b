//! What can go wrong where things are measured.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::measurement::Key;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be measured, written or read.
#[derive(Debug)]
pub enum Error {
    /// The channel between the parties, or one of them.
    Channel(volery_channel::Error),
    /// The system gives no port on the loopback interface for the parties to meet at.
    NoPort(volery_channel::Error),
    /// A protocol failed, or made something wrong: what, and what of it.
    Protocol(String),
    /// A run of a cell failed.
    Run {
        /// Which.
        key: Box<Key>,
        /// How.
        error: Box<Self>,
    },
    /// A file or a folder could not be read or written.
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file is not what [`crate::results`] writes, or of another version.
    NotResults {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Results that are there were measured otherwise, and cannot be gone on from.
    Different {
        /// Which.
        path: PathBuf,
        /// In what they differ: the name of the setting, what it is there, what it is now.
        what: String,
    },
}

impl Error {
    /// A protocol failed, or made something wrong.
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
                "no port on the loopback interface for the two parties to meet at: {error}"
            ),
            Self::Protocol(what) => f.write_str(what),
            Self::Run { key, error } => write!(f, "{key}: {error}"),
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::NotResults { path, why } => {
                write!(f, "{}: not results of this program: {why}", path.display())
            }
            Self::Different { path, what } => {
                write!(f, "{}: measured otherwise: {what}", path.display())
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
