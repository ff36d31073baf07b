//! What can go wrong beside the channel.

use volery_pcg::PlanError;

/// The result of a protocol of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a protocol of this crate failed. No variant holds a secret, but for the values that [`Error::Beyond`] and
/// [`Error::NotReduced`] name to the party that gave them.
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

    /// A shape that takes more ring elements than this version can count.
    #[error("{what} takes more than 2^40 ring elements")]
    TooLarge {
        /// What is too large.
        what: &'static str,
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
    #[error(
        "entry {position} (counted from 0) is {value}, which is not below {modulus}: reduce it first"
    )]
    NotReduced {
        /// Its place, counted from 0.
        position: usize,
        /// The number.
        value: u64,
        /// The modulus of the field.
        modulus: u64,
    },

    /// A real number that is none.
    #[error("{what}: entry {position} (counted from 0) is {value}, not a finite number")]
    NotFinite {
        /// What the entry belongs to.
        what: &'static str,
        /// Its place, counted from 0.
        position: usize,
        /// The value.
        value: f64,
    },

    /// A real number beyond its declared bound.
    #[error(
        "{what}: entry {position} (counted from 0) is {value}, beyond the declared bound {bound}"
    )]
    Beyond {
        /// What the entry belongs to.
        what: &'static str,
        /// Its place, counted from 0.
        position: usize,
        /// The value.
        value: f64,
        /// The declared bound of the absolute value.
        bound: f64,
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
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}
