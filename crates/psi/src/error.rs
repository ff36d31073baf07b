//! What can go wrong beside the channel.

/// The result of a protocol of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a protocol of this crate failed. No variant holds an item.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Talking to the peer failed, or the peer does not follow the protocol.
    #[error(transparent)]
    Channel(#[from] volery_channel::Error),

    /// Two of this party's items are equal; their numbers, counted from 0.
    #[error("items {first} and {second} are equal; the items of a set are different")]
    Duplicate {
        /// Number of the earlier item.
        first: usize,
        /// Number of the later one.
        second: usize,
    },

    /// A set is larger than [`MAX_ITEMS`](crate::params::MAX_ITEMS).
    #[error("a set of {items} items is larger than this version can take, {most}")]
    TooMany {
        /// Its items.
        items: u64,
        /// The most there can be.
        most: u64,
    },

    /// The items found no place in the cuckoo table, however often both parties drew new hash functions. Each time that has
    /// a probability of about 2^-40 with the parameters of this crate.
    #[error("the items found no place in {attempts} cuckoo tables")]
    Unplaced {
        /// How many tables were tried.
        attempts: u32,
    },

    /// A value of [`lookup`](crate::lookup) is longer than [`MAX_VALUE`](crate::lookup::MAX_VALUE) bytes.
    #[error("the value of item {item} has {bytes} bytes; {most} is the most")]
    LongValue {
        /// Number of the item, counted from 0.
        item: usize,
        /// Bytes of its value.
        bytes: usize,
        /// The most there can be.
        most: usize,
    },
}
