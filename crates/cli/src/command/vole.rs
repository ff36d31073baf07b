//! `volery vole`: writes one party's part of n correlations `w = u*x + v` to files.

use super::endpoint::Connection;
use super::options::{Reporter, RingName, with_ring};
use super::stream::{self, Destination};
use crate::exit::Failure;
use crate::party::Vole;

/// Make n correlations w = u*x + v with a peer and write this party's part as NumPy files
///
/// The sender gets random u and v (u.npy, v.npy); the receiver gets a random x and w (x.npy,
/// w.npy). Start both sides with the same --n, --ring, --security, --noise, --set, --link,
/// --parameters and --protocol.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Ring of the values
    #[arg(long, default_value = "fp61")]
    ring: RingName,

    #[command(flatten)]
    stream: stream::StreamArguments,
}

/// Runs the subcommand; returns the report.
pub(crate) fn run(
    arguments: &Arguments,
    connection: Option<&mut Connection>,
    destination: Destination<'_>,
    reporter: &Reporter,
) -> Result<String, Failure> {
    with_ring!(arguments.ring, R => {
        stream::run::<Vole<R>>(&arguments.stream, None, connection, destination, reporter)
    })
}
