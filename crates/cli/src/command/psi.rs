//! `volery psi`: finds the rows of this party's table whose key is also in the other party's table.

use volery_matching::What;

use super::matching::{self, Given};
use super::options::Reporter;
use super::shares;
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
/// group; or shares, to compute more with.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    totals: TotalsArguments,

    /// Shares in the order of the receiver's rows, one place for each of its keys; without it in
    /// that of a table with 1.3 places for each. Both sides must set this
    #[arg(long, help_heading = "Output")]
    row_order: bool,

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

    /// Refuses results that pods do not compute.
    ///
    /// # Errors
    /// If the result is shares.
    pub(super) fn check_pods(&self) -> Result<(), Failure> {
        match &self.totals.result {
            What::Shares(_) => Err(totals::no_shares()),
            _ => Ok(()),
        }
    }
}

/// Runs the subcommand.
pub(crate) fn run(
    arguments: &Arguments,
    given: Given<'_>,
    reporter: &Reporter,
) -> Result<Matched, Failure> {
    let Arguments {
        totals,
        row_order,
        matching,
        served,
    } = arguments;
    if *row_order && !matches!(totals.result, What::Shares(_)) {
        let hint = "remove it, or name the columns: --result shares=COL";
        return Err(Failure::usage("--row-order", "only with --result shares").with_hint(hint));
    }
    if totals.result != What::Rows {
        served.refuse()?;
    }
    match &totals.result {
        What::Rows => {
            totals.check_rows()?;
            let given = Given {
                served: Some(served),
                ..given
            };
            matching::run(matching, None, given, reporter)
        }
        What::Shares(columns) => {
            let options = totals.shares(matching, *row_order)?;
            shares::run(columns, options, matching, given, reporter)
        }
        _ => totals::run(totals, matching, given, reporter),
    }
}
