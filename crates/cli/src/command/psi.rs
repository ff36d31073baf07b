//! `volery psi`: finds the rows of this party's table whose key is also in the other party's table.

use super::matching::arguments::{Psi, Words};

/// Find the rows of a table whose key is also in the peer's table; the receiver gets its own
/// matching rows
///
/// Each side names its files and key columns; both give as many key columns, of the same types and
/// normalisers. The peer learns how many different keys this side has; the receiver learns which of
/// its own keys the sender has, and nobody anything else. Security is malicious. With --both on
/// both sides, the sender gets its own matching rows too, and security is semi-honest. With
/// --result neither side gets rows, but one number about the keys that both have, or one for each
/// group; or shares, to compute more with.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) matching: Words<Psi>,
}
