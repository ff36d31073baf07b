//! `volery lookup`: gives the receiver columns of the sender for the keys that both have.

use volery_channel::Role;

use super::matching::{self, Given, Lookup, names};
use super::options::Reporter;
use crate::embed::Matched;
use crate::exit::Failure;

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
    /// Sender: the columns that the receiver gets, with their types; a name with a comma stands in
    /// double quotes
    #[arg(long, value_name = "COL,..", help_heading = "Output")]
    value: Option<String>,

    /// Receiver: names for these columns in the output, in their order [default: the sender's, with
    /// '_sender' behind a name that is taken]
    #[arg(long, value_name = "NAME,..", help_heading = "Output")]
    value_name: Option<String>,

    /// Receiver: write the rows without a match too, with empty columns of the sender
    #[arg(long, help_heading = "Output")]
    left: bool,

    #[command(flatten)]
    matching: matching::MatchingArguments,
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
    let Arguments {
        value,
        value_name,
        left,
        matching,
    } = arguments;
    let refuse = |option, what| Err(Failure::usage(option, what));
    match (matching.role, value, value_name) {
        (Role::Sender, None, _) => {
            return refuse(
                "--value",
                "required at the sender: the columns that the receiver gets",
            );
        }
        (Role::Sender, _, Some(_)) => {
            return refuse(
                "--value-name",
                "only the receiver's output has columns of the sender; remove --value-name at the sender",
            );
        }
        (Role::Sender, ..) if *left => {
            return refuse(
                "--left",
                "only the receiver's output has columns of the sender; remove --left at the sender",
            );
        }
        (Role::Receiver, Some(_), _) => {
            let failure = Failure::usage(
                "--value",
                "only the sender names columns; remove --value at the receiver",
            );
            return Err(failure.with_hint("--value-name NAME,.. sets their names in the output"));
        }
        _ => {}
    }
    let list = |option, text: &Option<String>| match text {
        None => Ok(Vec::new()),
        Some(text) => names(text).map_err(|what| Failure::usage(option, what)),
    };
    let lookup = Lookup {
        values: list("--value", value)?,
        names: list("--value-name", value_name)?,
        left: *left,
    };
    matching::run(matching, Some(&lookup), given, reporter)
}
