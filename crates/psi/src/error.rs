//! Errors other than those of the channel.

use std::time::Duration;

use volery_channel::Error as ChannelError;

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

    /// An item of [`served`](crate::served) is longer than 65535 bytes.
    #[error(
        "item {item} (counted from 0) has {bytes} bytes, but at most 65535 are supported: shorten it"
    )]
    LongItem {
        /// Number of the item, counted from 0.
        item: usize,
        /// Bytes of the item.
        bytes: usize,
    },

    /// A file, or what a server sent, is not a [`Filter`](crate::served::Filter) that can be used.
    #[error("the filter of the server's items cannot be used, because {0}: fetch it again")]
    Filter(&'static str),

    /// The server answers queries for another version of its filter.
    #[error("the server has another version of its filter by now: fetch it again")]
    OtherVersion,

    /// The server has another key than the filter that the client has.
    #[error("the server has another key ({theirs}) than the filter that is here ({ours})")]
    OtherKey {
        /// The public key of the filter, in hexadecimal.
        ours: String,
        /// The key of the server.
        theirs: String,
    },

    /// A query has more items than its client may still ask for.
    #[error("the query has more items than the {left} that the client may still ask for")]
    Budget {
        /// Items that the client may still ask for.
        left: u64,
        /// When there will be more, if ever.
        wait: Option<Duration>,
    },

    /// The server does not answer now.
    #[error("the server does not answer now, because {why}")]
    Later {
        /// Its reason.
        why: Later,
        /// When it is worth while to come again.
        wait: Duration,
    },
}

/// The reason for which a [server](crate::served) turns a client away for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Later {
    /// The client asks for too many items in a time.
    #[error("this client asks for too many items in a time")]
    Rate,
    /// The client has too many connections.
    #[error("this client has too many connections")]
    Connections,
    /// The server has too many connections.
    #[error("there are too many connections")]
    Full,
    /// The server cannot record what it answers, or ends.
    #[error("the service has a problem, or ends")]
    Unavailable,
}

/// The error for a peer that deviated from the protocol.
pub(crate) fn misbehaved(what: &'static str) -> Error {
    // no mutant: an error by name, where it is made
    Error::Channel(ChannelError::PeerMisbehaved(what))
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Channel(error.into())
    }
}
