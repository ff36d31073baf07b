//! `volery lookup`: the sender's values for those of the receiver's keys that the sender has.

use super::matching::{self, Role, Verb};
use crate::exit::Failure;

/// Look up the keys of a file in the peer's: the receiver gets its own matching rows, each with the sender's value
///
/// The sender names a column of values, at most 1024 bytes each. The peer learns how many keys this side has; the receiver
/// learns which of its keys the sender has, their values, and the length of the longest value of all; nothing else is
/// learned by a peer that follows the protocol (semi-honest security). With --both, on both sides, the sender gets those
/// of its rows that were found.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Sender: the column of the values
    #[arg(long, value_name = "COL")]
    value: Option<String>,

    /// Receiver: the name of the column of values in the output
    #[arg(long, value_name = "NAME")]
    value_name: Option<String>,

    #[command(flatten)]
    matching: matching::MatchingArguments,
}

/// What the column of values is called in the output.
const VALUE_NAME: &str = "value";

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let matching = &arguments.matching;
    match (matching.role, &arguments.value, &arguments.value_name) {
        (Role::Sender, None, _) => {
            return Err(Failure::usage(
                "--value",
                "the sender names the column of its values",
            ));
        }
        (Role::Sender, _, Some(_)) => {
            return Err(Failure::usage(
                "--value-name",
                "only the receiver has a column of values in its output",
            ));
        }
        (Role::Receiver, Some(_), _) => {
            return Err(Failure::usage(
                "--value",
                "the values are the sender's; the receiver names no column",
            )
            .hint("--value-name NAME names the column of values in the output"));
        }
        _ => {}
    }
    let name = arguments.value_name.as_deref().unwrap_or(VALUE_NAME);
    matching::run(
        matching,
        Verb::Lookup {
            value: arguments.value.as_deref(),
            name,
        },
    )
}
