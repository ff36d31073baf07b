//! `volery vole`: writes one party's part of n correlations `w = u*x + v` to files.

use volery_run::failure::Failure;
use volery_run::reporter::Reporter;
use volery_run::stream::Destination;
use volery_run::vole::{self, VoleOptions};

use super::stream::StreamArguments;
use crate::flat::Flat;

/// Make n correlations w = u*x + v with a peer and write this party's part as NumPy files
///
/// The sender gets random u and v (u.npy, v.npy); the receiver gets a random x and w (x.npy,
/// w.npy). Start both sides with the same --n, --ring, --security, --noise, --set, --link,
/// --parameters and --protocol.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    own: Flat<VoleOptions>,

    #[command(flatten)]
    stream: StreamArguments,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<(), Failure> {
    let options = (&*arguments.own, &arguments.stream.options());
    vole::run(options, None, Destination::Folder, reporter).map(drop)
}
