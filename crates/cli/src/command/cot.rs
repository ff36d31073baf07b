//! `volery cot`: writes one party's part of n correlated OTs `w = v + u*delta` to files.

use volery_run::cot::{self, CotOptions};
use volery_run::failure::Failure;
use volery_run::reporter::Reporter;
use volery_run::stream::Destination;

use super::stream::StreamArguments;
use crate::flat::Flat;

/// Make n correlated OTs w = v + u*delta with a peer and write this party's part as NumPy files
///
/// The sender gets delta and random v (delta.npy, v.npy); the receiver gets random bits u, and w
/// (u.npy, w.npy). Start both sides with the same --n, --security, --noise, --set, --link,
/// --parameters and --protocol.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    own: Flat<CotOptions>,

    #[command(flatten)]
    stream: StreamArguments,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<(), Failure> {
    let options = (&*arguments.own, &arguments.stream.options());
    cot::run(options, None, None, Destination::Folder, reporter).map(drop)
}
