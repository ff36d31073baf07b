//! `volery psi`: finds the rows of this party's table whose key is also in the other party's table.

use super::matching::{self, Given};
use super::options::Reporter;
use crate::embed::Matched;
use crate::exit::Failure;

/// Find the rows of a table whose key is also in the peer's table; the receiver gets its own
/// matching rows
///
/// Each side names its files and key columns; both give as many key columns, of the same types and
/// normalisers. The peer learns how many different keys this side has; the receiver learns which of
/// its own keys the sender has, and nobody anything else. Security is malicious. With --both on
/// both sides, the sender gets its own matching rows too, and security is semi-honest.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    matching: matching::MatchingArguments,

    #[command(flatten)]
    served: matching::ServedArguments,
}

impl Arguments {
    /// The options that all matching has.
    pub(super) fn matching(&self) -> &matching::MatchingArguments {
        &self.matching
    }
}

/// Runs the subcommand.
pub(crate) fn run(
    arguments: &Arguments,
    given: Given<'_>,
    reporter: &Reporter,
) -> Result<Matched, Failure> {
    let given = Given {
        served: Some(&arguments.served),
        ..given
    };
    matching::run(&arguments.matching, None, given, reporter)
}
