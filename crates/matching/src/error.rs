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
    #[error("the run needs at least {least} bytes, but may use only {given}")]
    LittleMemory {
        /// Bytes that it may use.
        given: u64,
        /// Bytes that it takes, predicted.
        least: u64,
    },

    /// A value cannot be added up.
    #[error("{}: column {column:?} of row {row} {why}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Its row, counted from 1.
        row: u64,
        /// The column.
        column: String,
        /// The fault.
        why: ValueError,
    },

    /// The rows of a key do not fit together.
    #[error("{}: the rows with the key of row {row} {why}", path.display())]
    KeyOfRows {
        /// The file.
        path: PathBuf,
        /// The first row of the key, counted from 1.
        row: u64,
        /// The fault.
        why: KeyError,
    },

    /// A total could leave 64 bits.
    #[error(
        "{keys} common keys could have a total{} that does not fit into 64 bits",
        if *with_noise { " with its noise" } else { "" }
    )]
    LargeTotal {
        /// The most common keys that two sets of these sizes can have.
        keys: u64,
        /// Whether noise is added to it.
        with_noise: bool,
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

/// The reason why a field is no value that can be added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// There is none.
    #[error("has no value")]
    Missing,
    /// It is not a decimal number.
    #[error("is not a decimal number")]
    NotANumber,
    /// It has more decimal places than values have.
    #[error("has more than {0} decimal places")]
    Places(u32),
    /// It is beyond the bound.
    #[error("is beyond --bound")]
    Bound,
}

/// The reason why the rows of a key do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Their values add up to more than the bound.
    #[error("have values whose sum is beyond --bound")]
    Bound,
    /// They are in different groups.
    #[error("are in different groups of --group-by")]
    Groups,
}

/// The most times that a part of a resumed run is begun.
pub const ATTEMPTS: u32 = 3;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of a file of the work folder.
    pub fn work(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Work { path, error }
    }

    /// The remedy.
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
            Self::Value { why, .. } => Some(match why {
                ValueError::Missing => "give each row a value, or leave such rows out of the table",
                ValueError::NotANumber => {
                    "values are digits, with a point and digits or not, with a sign or not"
                }
                ValueError::Places(_) => {
                    "--decimals sets the decimal places on both sides; or round the values before the run"
                }
                ValueError::Bound => "correct the value, or raise --bound on both sides",
            }),
            Self::KeyOfRows { why, .. } => Some(match why {
                KeyError::Bound => {
                    "the bound holds for a key: correct the values, raise --bound on both sides, or take one row of each key with --duplicates dedup"
                }
                KeyError::Groups => {
                    "a key has one group: correct the rows, or take one row of each key with --duplicates dedup"
                }
            }),
            Self::LargeTotal { .. } => Some(
                "give a lower --bound, fewer --decimals, or with noise a higher --epsilon, on both sides",
            ),
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
