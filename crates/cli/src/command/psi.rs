//! `volery psi`: finds the rows of this party's file whose key is also in the other party's file.

use super::matching::{self, Verb};
use crate::exit::Failure;

/// Find the rows of a file whose key is also in the peer's file; the receiver gets its own matching
/// rows
///
/// Each side names its file and key columns; both give the same number of key columns, of the same
/// types. The peer learns how many keys this side has; the receiver learns which of its own keys
/// the sender has, and nobody anything else. Security is malicious. With --both on both sides, the
/// sender gets its own matching rows too, and security is semi-honest.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    matching: matching::MatchingArguments,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    matching::run(&arguments.matching, Verb::Psi)
}
