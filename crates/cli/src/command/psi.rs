//! `volery psi`: which rows of this party's file have a key that the other party's file has too.

use super::matching::{self, Verb};
use crate::exit::Failure;

/// Find the rows of a file whose key is in the peer's file as well; the receiver gets its own matching rows
///
/// Each side names its file and key columns; both give the same number of key columns, of the same types. The peer learns
/// how many keys this side has; the receiver learns which of its own the sender has; nothing else is learned by a peer that
/// follows the protocol (semi-honest security). With --both, on both sides, the sender gets its own matching rows too.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    matching: matching::MatchingArguments,
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    matching::run(&arguments.matching, Verb::Psi)
}
