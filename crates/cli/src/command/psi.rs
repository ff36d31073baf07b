//! `volery psi`: finds the rows of this party's table whose key is also in the other party's table.

use volery_matching::What;

use super::matching::{self, Given};
use super::options::Reporter;
use super::totals::{self, TotalsArguments};
use crate::embed::Matched;
use crate::exit::Failure;

/// Find the rows of a table whose key is also in the peer's table; the receiver gets its own
/// matching rows
///
/// Each side names its files and key columns; both give as many key columns, of the same types and
/// normalisers. The peer learns how many different keys this side has; the receiver learns which of
/// its own keys the sender has, and nobody anything else. Security is malicious. With --both on
/// both sides, the sender gets its own matching rows too, and security is semi-honest. With
/// --result neither side gets rows, but one number about the keys that both have, or one for each
/// group.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    totals: TotalsArguments,

    #[command(flatten)]
    matching: matching::MatchingArguments,
}

impl Arguments {
    /// The options that all matching has.
    pub(super) fn matching(&self) -> &matching::MatchingArguments {
        &self.matching
    }

    /// Refuses results that pods do not compute.
    ///
    /// # Errors
    /// If the result is not the matching rows.
    pub(super) fn check_pods(&self) -> Result<(), Failure> {
        match &self.totals.result {
            What::Rows => Ok(()),
            other => Err(totals::no_pods(other.name())),
        }
    }
}

/// Runs the subcommand.
pub(crate) fn run(
    arguments: &Arguments,
    given: Given<'_>,
    reporter: &Reporter,
) -> Result<Matched, Failure> {
    let Arguments { totals, matching } = arguments;
    match &totals.result {
        What::Rows => {
            totals.check_rows()?;
            matching::run(matching, None, given, reporter)
        }
        What::Shares(_) => {
            let what = "shares are not part of this build";
            Err(Failure::usage("--result", what))
        }
        _ => totals::run(totals, matching, given, reporter),
    }
}
