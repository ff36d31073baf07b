//! Correlated OTs: writes one party's part of n correlated OTs `w = v + u*delta` to files.

use std::path::{Path, PathBuf};

use volery_channel::Role;
use volery_field::{Gf128, Ring as _};
use volery_options::parse;
use volery_pcg::Kind;
use volery_pcg::cot::{Receiver, Sender};
use zeroize::Zeroizing;

use crate::endpoint::Connection;
use crate::failure::{Failure, Result};
use crate::npy::{Form, Reader};
use crate::party::{RandomReceiver, RandomSender};
use crate::reporter::Reporter;
use crate::stream::{self, Destination, StreamArguments};

volery_options::options! {
    /// The options of correlated OTs alone.
    pub struct CotOptions {
        /// Sender: delta from an earlier run: uint64 of shape (1, 2), drawn at random, never zero.
        /// The receiver learns the position of one of its set bits [default: random]
        once delta: PathBuf ["Input", "FILE.npy", parse::path];
    }
}

/// Runs one side; `delta` is given in place of the file, `is_random` asks for random OTs. Returns
/// the report.
pub fn run(
    (options, stream): (&CotOptions, &StreamArguments),
    delta: Option<Gf128>,
    is_random: bool,
    connection: Option<&mut Connection>,
    destination: Destination<'_>,
    reporter: &Reporter,
) -> Result<String> {
    let delta = match (&options.delta, delta) {
        (None, None) => None,
        _ if stream.options.role == Role::Receiver => {
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
    let run = match is_random {
        true => stream::run::<RandomSender, RandomReceiver>,
        false => stream::run::<Sender, Receiver>,
    };
    run(Kind::Cot, stream, delta, connection, destination, reporter)
}

/// Reads the one value of a file. Error messages do not repeat it.
pub(crate) fn read_delta(path: &Path) -> Result<Zeroizing<Gf128>> {
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
