//! The errors of a run.

use std::io;
use std::path::{Path, PathBuf};

use volery_channel::Error as ChannelError;

/// Why a run ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A protocol or the channel failed.
    #[error(transparent)]
    Protocol(#[from] volery_psi::Error),

    /// A table cannot be read or written.
    #[error(transparent)]
    Table(#[from] volery_tables::Error),

    /// Two rows have the same key, which the settings forbid.
    #[error("rows {first} and {second} (counted from 1) have the same key under rule {rule}")]
    DuplicateKey {
        /// The rule, counted from 1.
        rule: usize,
        /// Row of the first.
        first: u64,
        /// Row of the second.
        second: u64,
    },

    /// The types and normalisers of the keys are too long to be compared with the peer's.
    #[error("the keys have more columns, or more normalisers, than the two sides can compare")]
    LongKeys,

    /// A file of the work folder.
    #[error("{}: {error}", path.display())]
    Work {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },

    /// The work folder belongs to another run.
    #[error("{}: {what}", path.display())]
    OtherRun {
        /// The folder.
        path: PathBuf,
        /// The difference.
        what: &'static str,
    },

    /// The manifest is not one that the worker can use.
    #[error("the manifest {0}")]
    Manifest(String),

    /// A part of a resumed run was begun too often.
    #[error(
        "{}: part {part} was begun {ATTEMPTS} times without an end; each attempt lets a peer try another set",
        path.display()
    )]
    TooManyAttempts {
        /// The folder.
        path: PathBuf,
        /// The part, counted from 1.
        part: usize,
    },

    /// The run does not fit into the memory, whatever the number of buckets.
    #[error("the run takes more memory than {given} bytes: {least} at least")]
    LittleMemory {
        /// Bytes that it may take.
        given: u64,
        /// Bytes that it takes, predicted.
        least: u64,
    },

    /// A set did not fit into its padded buckets.
    #[error(
        "the keys do not fit into buckets of {capacity}, which happens with probability 2^-40: run again"
    )]
    Overflow {
        /// Keys that fit into a bucket.
        capacity: u64,
    },
}

/// The most times that a part of a resumed run is begun.
pub const ATTEMPTS: u32 = 3;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn work(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Work { path, error }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::DuplicateKey { .. } => Some(
                "--duplicates keep matches all rows of a key, --duplicates dedup the first of each",
            ),
            Self::LongKeys => Some("name fewer key columns"),
            Self::LittleMemory { .. } => Some("allow more memory, or split the table"),
            Self::OtherRun { .. } => Some(
                "run the command with which the folder was made, or name another folder on both sides to begin a new run",
            ),
            Self::TooManyAttempts { .. } => {
                Some("find out what breaks the run, then begin a new one with other folders")
            }
            Self::Manifest(_) => {
                Some("give the worker the manifest of its run, and a rule and number of it")
            }
            _ => None,
        }
    }
}

impl From<ChannelError> for Error {
    fn from(error: ChannelError) -> Self {
        Self::Protocol(error.into())
    }
}

pub(crate) fn misbehaved(what: &'static str) -> Error {
    ChannelError::PeerMisbehaved(what).into()
}
