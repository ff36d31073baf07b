//! `volery lookup`: gives the receiver columns of the sender for the keys that both have.

use super::matching::arguments::{Lookup, Words};

/// Look up the keys of a table in the peer's table; the receiver gets its own matching rows, each
/// with columns of the sender
///
/// The sender names columns, together at most 16 KB a row. The peer learns how many different keys
/// this side has; the receiver learns which of its keys the sender has, the columns for these keys,
/// and the length of the longest payload of all, and nobody anything else. Of several rows of the
/// sender with the same key the first one counts. Security is malicious, except that a sender may
/// give any values. With --both on both sides, the sender gets its own matching rows too, and
/// security is semi-honest.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) matching: Words<Lookup>,
}
