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
    #[error("{0}")]
    Plan(PlanError),

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

    /// A matrix of another shape than the agreed one.
    #[error(
        "{what} has {} x {} entries, but the parties agreed on {} x {}: give a matrix of that shape",
        given.0, given.1, wanted.0, wanted.1
    )]
    Factor {
        /// The matrix, in words.
        what: &'static str,
        /// Its rows and columns.
        given: (usize, usize),
        /// The agreed rows and columns.
        wanted: (usize, usize),
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

    /// A kernel that is larger than the image.
    #[error(
        "a kernel of {} x {} does not fit into an image of {} x {}: pad the image, or choose the same-size output",
        kernel.0, kernel.1, image.0, image.1
    )]
    Kernel {
        /// Height and width of the image.
        image: (usize, usize),
        /// Height and width of the kernel.
        kernel: (usize, usize),
    },

    /// More coefficients than a polynomial of the agreed degree has.
    #[error("{given} coefficients are too many for the agreed degree {degree}")]
    Degree {
        /// Coefficients given.
        given: usize,
        /// The agreed degree.
        degree: usize,
    },

    /// A number that is not a canonical element of the field.
    #[error("entry {position} (counted from 0) is not below {modulus}: reduce it first")]
    NotReduced {
        /// Its place, counted from 0.
        position: usize,
        /// The modulus of the field.
        modulus: u64,
    },

    /// A number that is NaN or infinite.
    #[error("{what}: entry {position} (counted from 0) is NaN or infinite")]
    NotFinite {
        /// The table, vector or matrix that has the entry.
        what: &'static str,
        /// Its place, counted from 0.
        position: usize,
    },

    /// A real number beyond its declared bound.
    #[error("{what}: entry {position} (counted from 0) is beyond the declared bound {bound}")]
    Beyond {
        /// The table, vector or matrix that has the entry.
        what: &'static str,
        /// Its place, counted from 0.
        position: usize,
        /// The declared bound of the absolute value.
        bound: f64,
    },

    /// A fixed-point factor whose number of terms differs from that of the format.
    #[error(
        "{what}: sums of {given} terms, but the format is made for {terms}: the terms are the columns of the left factor, \
         the rows of the right one"
    )]
    Terms {
        /// The factor, in words.
        what: &'static str,
        /// Its number of terms.
        given: usize,
        /// The number of terms of the format.
        terms: usize,
    },

    /// Fixed-point products that could exceed the 64 bits of the ring.
    #[error(
        "{terms} products of numbers up to {left} and up to {right} with {fraction} fraction bits each could reach 2^63: \
         take fewer fraction bits or smaller bounds"
    )]
    Overflow {
        /// Terms of each sum.
        terms: usize,
        /// Declared bound of the left factors.
        left: f64,
        /// Declared bound of the right factors.
        right: f64,
        /// Fraction bits.
        fraction: u32,
    },

    /// A declared bound that is not a positive number.
    #[error("{what}: the declared bound {bound} is not a positive finite number")]
    Bound {
        /// The factor that the bound applies to.
        what: &'static str,
        /// The bound.
        bound: f64,
    },

    /// An index past the end of the vector.
    #[error(
        "index number {place} (counted from 0) is not below {length}, the entries of the vector: the first is number 0"
    )]
    Index {
        /// Position of the index in the list, counted from 0: with scatter the number of the pair.
        place: usize,
        /// Entries of the vector.
        length: usize,
    },

    /// Two pairs have the same index, which is [refused](crate::scatter::Repeats::Refuse).
    #[error(
        "pairs {first} and {second} (counted from 0) have the same index: leave one out, or let equal indices add up on both sides"
    )]
    Repeated {
        /// The first of the two pairs, counted from 0.
        first: usize,
        /// The second.
        second: usize,
    },

    /// Equal indices are not adjacent, as promised.
    #[error(
        "index number {place} (counted from 0) repeats an index of an earlier run, but equal indices must be adjacent: sort them"
    )]
    Runs {
        /// The number of the index, counted from 0.
        place: usize,
    },

    /// An entry in a row that the sparse matrix does not have.
    #[error(
        "the row of entry {entry} (counted from 0) is not below {rows}, the rows of the matrix: the first is number 0"
    )]
    Row {
        /// The entry, counted from 0.
        entry: usize,
        /// Rows of the matrix.
        rows: usize,
    },

    /// An entry in a column that the sparse matrix does not have.
    #[error(
        "the column of entry {entry} (counted from 0) is not below {columns}, the columns of the matrix: the first is number 0"
    )]
    Column {
        /// The entry, counted from 0.
        entry: usize,
        /// Columns of the matrix.
        columns: usize,
    },

    /// A value of a sparse matrix beyond its declared bits.
    #[error(
        "the value of entry {entry} (counted from 0) is not within the declared {bits} bits and a sign: declare more on both sides"
    )]
    Value {
        /// The entry, counted from 0.
        entry: usize,
        /// The declared bits.
        bits: u32,
    },

    /// A sparse matrix with more entries than declared.
    #[error("the matrix has more entries than the declared {declared}: declare more on both sides")]
    TooMany {
        /// The declared number of entries.
        declared: usize,
    },

    /// Indices do not fit into the bins of this run's hash functions.
    #[error(
        "the indices do not fit into the bins of this run's hash functions, which happens about once in 2^40 runs: run again"
    )]
    Hashing,
}

impl From<mpfss::Failure> for Error {
    fn from(failure: mpfss::Failure) -> Self {
        match failure {
            mpfss::Failure::Channel(error) => Self::Channel(error),
            _ => Self::Hashing,
        }
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Channel(error.into())
    }
}
