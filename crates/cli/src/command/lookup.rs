//! `volery lookup`: gives the receiver the sender's values for the keys that both have.

use volery_channel::Role;

use super::matching::{self, Verb};
use crate::exit::Failure;

/// Look up the keys of a file in the peer's file; the receiver gets its own matching rows, each
/// with the sender's value
///
/// The sender names a column of values, at most 1024 bytes each. The peer learns how many keys this
/// side has; the receiver learns which of its keys the sender has, their values, and the length of
/// the longest value of all, and nobody anything else. Security is malicious, except that a sender
/// may give any values. With --both on both sides, the sender gets its own matching rows too, and
/// security is semi-honest.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Sender: column of the values
    #[arg(long, value_name = "COL")]
    value: Option<String>,

    /// Receiver: name of the value column in the output
    #[arg(long, value_name = "NAME")]
    value_name: Option<String>,

    #[command(flatten)]
    matching: matching::MatchingArguments,
}

/// Default name of the value column in the output.
const VALUE_NAME: &str = "value";

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let matching = &arguments.matching;
    match (matching.role, &arguments.value, &arguments.value_name) {
        (Role::Sender, None, _) => {
            return Err(Failure::usage(
                "--value",
                "required at the sender: the column of its values",
            ));
        }
        (Role::Sender, _, Some(_)) => {
            return Err(Failure::usage(
                "--value-name",
                "only the receiver's output has a value column; remove --value-name at the sender",
            ));
        }
        (Role::Receiver, Some(_), _) => {
            return Err(Failure::usage(
                "--value",
                "only the sender has values; remove --value at the receiver",
            )
            .hint("--value-name NAME sets the name of the value column in the output"));
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
