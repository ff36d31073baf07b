//! `volery lookup`: gives the receiver columns of the sender for the keys that both have.

use super::matching::{Lookup, Words};

/// Look up the keys of a table in the peer's table; the receiver gets its own matching rows, each
/// with columns of the sender
///
/// The sender names columns, together at most 16 KB a row. The receiver learns which of its keys
/// match, the columns for these keys, and the length of the longest payload of all. Each side
/// learns how many distinct keys the other has, and the number and types of its key columns. Of
/// several rows of the sender with the same key the first one counts. The run is secure against a
/// malicious peer, except that a malicious sender can give any values, and a malicious receiver can
/// test somewhat more keys than it states. With --both on both sides, the sender gets its own
/// matching rows too, and the run is secure against a semi-honest peer.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) matching: Words<Lookup>,
}
