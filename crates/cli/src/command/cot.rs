//! `volery cot`: writes one party's part of n correlated OTs `w = v + u*delta` to files.

use std::path::{Path, PathBuf};

use volery_channel::Role;
use volery_field::{Gf128, Ring as _};
use zeroize::Zeroizing;

use super::endpoint::Connection;
use super::options::Reporter;
use super::stream::{self, Destination};
use crate::exit::Failure;
use crate::npy::{Form, Reader};
use crate::party::Cot;

/// Make n correlated OTs w = v + u*delta with a peer and write this party's part as NumPy files
///
/// The sender gets delta and random v (delta.npy, v.npy); the receiver gets random bits u, and w
/// (u.npy, w.npy). Start both sides with the same --n, --security, --noise, --set, --link,
/// --parameters and --protocol.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Sender: delta from an earlier run: uint64 of shape (1, 2), drawn at random, never zero. The
    /// receiver learns the position of one of its set bits [default: random]
    #[arg(long, value_name = "FILE.npy")]
    delta: Option<PathBuf>,

    #[command(flatten)]
    stream: stream::StreamArguments,
}

/// Runs the subcommand; `delta` is given in place of the file. Returns the report.
pub(crate) fn run(
    arguments: &Arguments,
    delta: Option<Gf128>,
    connection: Option<&mut Connection>,
    destination: Destination<'_>,
    reporter: &Reporter,
) -> Result<String, Failure> {
    let delta = match (&arguments.delta, delta) {
        (None, None) => None,
        _ if arguments.stream.role == Role::Receiver => {
            return Err(Failure::usage(
                "--delta",
                "only the sender takes a delta; remove --delta at the receiver",
            ));
        }
        (_, Some(Gf128::ZERO)) => {
            return Err(Failure::usage("--delta", "it is zero, which hides nothing")
                .with_hint("draw it at random; without one, the run does so"));
        }
        (_, Some(delta)) => Some(Zeroizing::new(delta)),
        (Some(path), None) => Some(read_delta(path)?),
    };
    let delta = delta.map(|delta| *delta);
    stream::run::<Cot>(&arguments.stream, delta, connection, destination, reporter)
}

/// Reads the one value of a file. Error messages do not repeat it.
pub(super) fn read_delta(path: &Path) -> Result<Zeroizing<Gf128>, Failure> {
    let failed = |error| Failure::file(path, error);
    let mut file = Reader::open(path).map_err(failed)?;
    let header = file.header();
    if header.form != Form::Pair || header.n != 1 {
        let what = format_args!("holds {header}, but a delta is uint64 of shape (1, 2)");
        return Err(Failure::file(path, what));
    }
    let mut delta = Zeroizing::new([Gf128::ZERO]);
    file.read(&mut delta[..]).map_err(failed)?;
    if delta[0] == Gf128::ZERO {
        return Err(Failure::file(path, "delta is zero, which hides nothing")
            .with_hint("draw delta at random; 'volery cot' without --delta does so"));
    }
    Ok(Zeroizing::new(delta[0]))
}
