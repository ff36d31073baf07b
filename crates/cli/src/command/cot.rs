//! `volery cot`: one party's half of n correlated OTs `w = v + u*delta`, as files.

use std::path::{Path, PathBuf};

use volery_field::{Gf128, Ring as _};
use zeroize::Zeroizing;

use super::stream;
use crate::ends::{Cot, Role};
use crate::exit::Failure;
use crate::npy::{Form, Reader};

/// Make this party's half of n correlated OTs w = v + u*delta with a peer, and write it as NumPy files
///
/// The sender gets delta and random v (delta.npy, v.npy), the receiver random bits u, and w (u.npy, w.npy). Both sides are
/// started with the same --n, --security, --noise, --set, --link, --parameters and --protocol.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The sender's delta, as an earlier run wrote it: uint64 of shape (1, 2), drawn at random, never zero. The receiver
    /// learns the place of one of its set bits [default: random]
    #[arg(long, value_name = "FILE.npy")]
    delta: Option<PathBuf>,

    #[command(flatten)]
    stream: stream::StreamArguments,
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let delta = match &arguments.delta {
        None => None,
        Some(_) if arguments.stream.role == Role::Receiver => {
            return Err(Failure::usage("--delta", "only the sender has a delta"));
        }
        Some(path) => Some(read_delta(path)?),
    };
    stream::run::<Cot>(&arguments.stream, delta.map(|delta| *delta))
}

/// Reads the one value of a file; messages do not repeat it.
pub(super) fn read_delta(path: &Path) -> Result<Zeroizing<Gf128>, Failure> {
    let failed = |error| Failure::file(path, error);
    let mut file = Reader::open(path).map_err(failed)?;
    let header = file.header();
    if header.form != Form::Pair || header.n != 1 {
        let what = format_args!("holds {header}, where a delta is uint64 of shape (1, 2)");
        return Err(Failure::file(path, what));
    }
    let mut delta = Zeroizing::new([Gf128::ZERO]);
    file.read(&mut delta[..]).map_err(failed)?;
    if delta[0] == Gf128::ZERO {
        return Err(Failure::file(path, "a delta of zero hides nothing")
            .hint("draw it at random; a COT without --delta does"));
    }
    Ok(Zeroizing::new(delta[0]))
}
