//! `volery psi`: finds the rows of this party's table whose keys are also in the peer's table.

use super::matching::{Psi, Words};

/// Find the rows of a table whose keys are also in the peer's table; the receiver gets its own
/// matching rows
///
/// Each side names its files and key columns; both sides must give the same number of key columns,
/// with the same types and normalisers. The receiver learns which of its keys match. Each side
/// learns how many distinct keys the other has, and the number and types of its key columns. The
/// run is secure against a malicious peer, except that a malicious receiver can test somewhat more
/// keys than it states. With --both on both sides, the sender gets its own matching rows too, and
/// the run is secure against a semi-honest peer. With any --result but rows, neither side gets
/// rows: the result is one number about the keys that both sides have, one number for each group,
/// or shares for further computation.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) matching: Words<Psi>,
}
