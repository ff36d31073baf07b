//! `volery params`: lists the program's parameter sets, with source and date, and estimates the
//! security of any parameters.

mod ask;
mod estimate;
mod list;

use std::fmt;
use std::io::Write as _;

use super::options::Common;
use crate::exit::{Failure, Status};

/// List LPN parameter sets and estimate the cost of the attacks on them
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// List the LPN sets: n samples, dimension k, noise weight t, the rings each may be used with
    /// (f2: correlated OT), the bits claimed against all known attacks, the bits computed, the
    /// strongest attack, and whether the set belongs to a paper, for reproduction
    List(Common),
    Estimate(estimate::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::List(common) => list::run(common),
        Action::Estimate(arguments) => estimate::run(arguments),
    }
}

/// Writes lines to standard output.
pub(super) fn print(text: impl fmt::Display) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{text}")
        .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))
}
