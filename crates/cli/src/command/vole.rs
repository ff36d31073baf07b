//! `volery vole`: one party's half of n correlations `w = u*x + v`, as files.

use super::options::{RingName, with_ring};
use super::stream;
use crate::ends::Vole;
use crate::exit::Failure;

/// Make this party's half of n correlations w = u*x + v with a peer, and write it as NumPy files
///
/// The sender gets random u and v (u.npy, v.npy), the receiver a random x and w (x.npy, w.npy). Both sides are started
/// with the same --n, --ring, --security, --noise, --set, --link, --parameters and --protocol.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The ring of the values
    #[arg(long, default_value = "fp61")]
    ring: RingName,

    #[command(flatten)]
    stream: stream::StreamArguments,
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    with_ring!(arguments.ring, R => stream::run::<Vole<R>>(&arguments.stream, None))
}
