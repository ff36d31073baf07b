//! `volery keygen`: makes an identity, or an access token for a browser, and prints its fingerprint
//! for the other party.

use volery_run::failure::Result;
use volery_run::keygen::{self, KeygenOptions};
use volery_run::reporter::Reporter;

use super::options::OutputArguments;
use crate::flat::Flat;

/// Make an identity, a key pair in a folder that only its owner can read, and print its
/// fingerprint, which the other party gives to --peer
///
/// Give the fingerprint to the other party over a channel that cannot be forged, such as a
/// telephone call, and ask for theirs.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_args(|argument| match argument.get_id().as_str() {
    "token" => argument.conflicts_with_all(keygen::TOKEN_HAS_NO),
    "renew" => argument.conflicts_with("name"),
    _ => argument,
}))]
pub(crate) struct Arguments {
    #[command(flatten)]
    own: Flat<KeygenOptions>,

    #[command(flatten)]
    output: OutputArguments,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<()> {
    let arguments = keygen::Arguments {
        options: arguments.own.0.clone(),
        report: arguments.output.report.0.clone(),
    };
    keygen::run(&arguments, reporter).map(drop)
}
