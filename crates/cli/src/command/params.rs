//! `volery params`: the parameters that the program uses, as dated data with a source, and what any parameters hold.

mod ask;
mod estimate;
mod list;
mod plot;

use std::fmt;
use std::io::Write as _;

use super::options::Common;
use crate::exit::{Failure, Status};

/// The parameter sets, and how hard the attacks on them are
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// List the LPN sets: n samples, dimension k, noise weight t, the rings that each may be used with (f2: correlated OT),
    /// the bits claimed against all known attacks and the bits computed, the attack that comes closest, and whether it is a
    /// paper's own, for reproduction
    List(Common),
    Estimate(estimate::Arguments),
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::List(common) => list::run(common),
        Action::Estimate(arguments) => estimate::run(arguments),
    }
}

/// Writes lines to standard output.
fn print(text: impl fmt::Display) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{text}")
        .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))
}
