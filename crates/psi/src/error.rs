//! Errors other than those of the channel.

/// The result of a protocol of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a protocol of this crate failed. No variant holds an item.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Communication with the peer failed, or the peer does not follow the protocol.
    #[error(transparent)]
    Channel(#[from] volery_channel::Error),

    /// Two of this party's items are equal. Item numbers count from 0.
    #[error(
        "items {first} and {second} (counted from 0) are equal: remove one, \
         the items of a set must be distinct"
    )]
    Duplicate {
        /// Number of the earlier item.
        first: usize,
        /// Number of the later item.
        second: usize,
    },

    /// A set is larger than [`MAX_ITEMS`](crate::params::MAX_ITEMS), or than
    /// [`dh::MAX_ITEMS`](crate::dh::MAX_ITEMS) in the protocols of that module.
    #[error(
        "the set has {items} items, more than the {most} that this version supports: use a smaller set"
    )]
    TooMany {
        /// Number of items in the set.
        items: u64,
        /// The maximum.
        most: u64,
    },

    /// The items did not fit into the table, bins or encoding with any of the hash functions
    /// tried. Each attempt fails with probability about 2^-40 with the parameters of this crate.
    #[error(
        "the items did not fit with any of {attempts} sets of hash functions: run again in a new \
         session"
    )]
    Unplaced {
        /// Number of sets of hash functions tried.
        attempts: u32,
    },

    /// A value of [`lookup`](crate::lookup) is longer than [`MAX_VALUE`](crate::lookup::MAX_VALUE)
    /// bytes.
    #[error(
        "the value of item {item} (counted from 0) has {bytes} bytes, \
         but at most {most} are supported: shorten it"
    )]
    LongValue {
        /// Number of the item, counted from 0.
        item: usize,
        /// Bytes of its value.
        bytes: usize,
        /// The maximum.
        most: usize,
    },
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Channel(error.into())
    }
}
