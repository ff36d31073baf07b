//! What can go wrong beside the channel.

use volery_pcg::{PlanError, mpfss::general};

/// The result of a protocol of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a protocol of this crate failed. Variants hold what both parties know, and sizes of a party's own input and places in it,
/// counted from 0; none holds an entry of it, be it a value or an index. They are for the party that gave the input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Talking to the peer failed, or the peer does not follow the protocol, or was started with other settings.
    #[error(transparent)]
    Channel(#[from] volery_channel::Error),

    /// There is no vector-OLE of this kind.
    #[error("{0}")]
    Plan(PlanError),

    /// Two matrices that cannot be multiplied: rows and columns of each.
    #[error(
        "a matrix of {} x {} times one of {} x {}: the columns of the first must be as many as the rows of the second",
        left.0, left.1, right.0, right.1
    )]
    Shape {
        /// Rows and columns of the left matrix.
        left: (u64, u64),
        /// Rows and columns of the right matrix.
        right: (u64, u64),
    },

    /// A matrix of another shape than the agreed one.
    #[error("{what} has {} x {} entries where {} x {} were agreed on", given.0, given.1, wanted.0, wanted.1)]
    Factor {
        /// Which matrix.
        what: &'static str,
        /// Its rows and columns.
        given: (usize, usize),
        /// The agreed ones.
        wanted: (usize, usize),
    },

    /// Something has no entries. Holds what.
    #[error("{0}")]
    Empty(&'static str),

    /// A list of entries has not the length that its shape asks for.
    #[error("{what}: {given} entries where the shape takes {wanted}")]
    Entries {
        /// What the entries are of.
        what: &'static str,
        /// How many were given.
        given: usize,
        /// How many there must be.
        wanted: usize,
    },

    /// More of something than this version can count.
    #[error("{what}: more than 2^{bits}, which is the most that can be counted")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The logarithm of the most that there may be.
        bits: u32,
    },

    /// Not a vector, where one was asked for ([`Shape::agree_vector`](crate::linear::Shape::agree_vector)).
    #[error(
        "the right factor has {columns} columns, where only a vector, of one column, is accepted"
    )]
    NotVector {
        /// The columns of the right factor.
        columns: u64,
    },

    /// A kernel that is larger than the image, so that there is no place to put it.
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

    /// A number that is no canonical element of the field.
    #[error("entry {position} (counted from 0) is not below {modulus}: reduce it first")]
    NotReduced {
        /// Its place, counted from 0.
        position: usize,
        /// The modulus of the field.
        modulus: u64,
    },

    /// A real number that is none.
    #[error("{what}: entry {position} (counted from 0) is NaN or infinite")]
    NotFinite {
        /// What the entry belongs to.
        what: &'static str,
        /// Its place, counted from 0.
        position: usize,
    },

    /// A real number beyond its declared bound.
    #[error("{what}: entry {position} (counted from 0) is beyond the declared bound {bound}")]
    Beyond {
        /// What the entry belongs to.
        what: &'static str,
        /// Its place, counted from 0.
        position: usize,
        /// The declared bound of the absolute value.
        bound: f64,
    },

    /// A fixed-point factor for sums of another number of terms than the format is made for.
    #[error(
        "{what}: sums of {given} terms, but the format is made for {terms}: the terms are the columns of the left factor, \
         the rows of the right one"
    )]
    Terms {
        /// Which factor.
        what: &'static str,
        /// The terms that it gives.
        given: usize,
        /// The terms of the format.
        terms: usize,
    },

    /// Fixed-point products that could leave the 64 bits of the ring.
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

    /// A declared bound that is no positive number.
    #[error("{what}: the declared bound {bound} is not a positive finite number")]
    Bound {
        /// What the bound is of.
        what: &'static str,
        /// The bound.
        bound: f64,
    },

    /// An index past the vector.
    #[error(
        "index number {place} (counted from 0) is not below {length}, the entries of the vector: the first is number 0"
    )]
    Index {
        /// Which of the indices, counted from 0: with scatter the number of the pair.
        place: usize,
        /// Entries of the vector.
        length: usize,
    },

    /// Two pairs have the same index, which is [refused](crate::scatter::Repeats::Refuse).
    #[error(
        "pairs {first} and {second} (counted from 0) have the same index: leave one out, or let equal indices add up on both sides"
    )]
    Repeated {
        /// The first of them, counted from 0.
        first: usize,
        /// The second.
        second: usize,
    },

    /// Equal indices do not stand next to each other, as was promised.
    #[error(
        "index number {place} (counted from 0) is one of an earlier run, but equal indices must stand next to each other: sort them"
    )]
    Runs {
        /// Which of the indices, counted from 0.
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
        /// How many were declared.
        declared: usize,
    },

    /// Indices do not fit into the bins of this run's hash functions.
    #[error(
        "the indices do not fit into the bins of this run's hash functions, which happens once in 2^40 runs: run again"
    )]
    Hashing,
}

impl From<general::Failure> for Error {
    fn from(failure: general::Failure) -> Self {
        match failure {
            general::Failure::Channel(error) => Self::Channel(error),
            _ => Self::Hashing,
        }
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}
