//! Errors other than those of the channel.

use volery_pcg::PlanError;

use crate::mpfss;

/// The result of a protocol of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a protocol of this crate failed. Variants hold public values, and sizes of a
/// party's own input and positions in it, counted from 0; none holds an entry of the input, neither
/// a value nor an index. They are for the party that gave the input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Communication with the peer failed, or the peer does not follow the protocol, or was started
    /// with other settings.
    #[error(transparent)]
    Channel(#[from] volery_channel::Error),

    /// The library has no vector-OLE of this kind.
    #[error(transparent)]
    Plan(#[from] PlanError),

    /// Two matrices that cannot be multiplied: rows and columns of each.
    #[error(
        "a matrix of {} x {} times one of {} x {}: the first must have as many columns as the second has rows",
        left.0, left.1, right.0, right.1
    )]
    Shape {
        /// Rows and columns of the left matrix.
        left: (u64, u64),
        /// Rows and columns of the right matrix.
        right: (u64, u64),
    },

    /// An input has no entries. Holds a description of the input.
    #[error("{0}")]
    Empty(&'static str),

    /// A list of entries whose length does not match its shape.
    #[error("{what}: {given} entries given, but the shape requires {wanted}")]
    Entries {
        /// The object that the entries belong to.
        what: &'static str,
        /// Number of given entries.
        given: usize,
        /// Number of required entries.
        wanted: usize,
    },

    /// A size above what this version supports.
    #[error("{what}: more than 2^{bits}, the maximum that this version supports")]
    TooLarge {
        /// The counted objects.
        what: &'static str,
        /// The binary logarithm of the maximum.
        bits: u32,
    },

    /// A matrix where a vector is required
    /// ([`Shape::agree_vector`](crate::linear::Shape::agree_vector)).
    #[error(
        "the right factor has {columns} columns, but only a vector, of one column, is accepted"
    )]
    NotVector {
        /// The columns of the right factor.
        columns: u64,
    },

    /// Indices do not fit into the bins of this run's hash functions.
    #[error(
        "the indices do not fit into the bins of this run's hash functions, which happens about once in 2^40 runs: run again"
    )]
    Hashing,

    /// An input that this party cannot use: which part of it, why, and what to do.
    #[error("{0}")]
    Input(String),
}

impl From<mpfss::Failure> for Error {
    fn from(failure: mpfss::Failure) -> Self {
        match failure {
            mpfss::Failure::Channel(error) => Self::Channel(error),
            _ => Self::Hashing,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Channel(error.into())
    }
}
