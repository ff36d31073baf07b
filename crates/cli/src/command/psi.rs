//! `volery psi`: finds the rows of this party's table whose key is also in the other party's table.

use volery_matching::What;

use super::matching::{self, Given, names};
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
    /// What the run gives: 'rows', the matching rows; or one number about the keys that both sides
    /// have: 'count', how many there are; 'sum' and 'mean' of a column, which its side names
    /// (sum=COL) and the other does not; 'sum-product=SENDER_COL,RECEIVER_COL'; or 'shares'
    #[arg(long, value_name = "WHAT", default_value = "rows", value_parser = what, help_heading = "Output")]
    result: What,

    #[command(flatten)]
    matching: matching::MatchingArguments,
}

impl Arguments {
    /// The options that all matching has.
    pub(super) fn matching(&self) -> &matching::MatchingArguments {
        &self.matching
    }
}

/// A result with its columns.
fn what(text: &str) -> Result<What, String> {
    let (name, columns) = match text.split_once('=') {
        None => (text, Vec::new()),
        Some((name, columns)) => (name, names(columns)?),
    };
    What::new(name, columns)
}

/// Runs the subcommand.
pub(crate) fn run(
    arguments: &Arguments,
    given: Given<'_>,
    reporter: &Reporter,
) -> Result<Matched, Failure> {
    match &arguments.result {
        What::Rows => {}
        other => {
            let what = format_args!("{} is not part of this build", other.name());
            return Err(Failure::usage("--result", what));
        }
    }
    matching::run(&arguments.matching, None, given, reporter)
}
