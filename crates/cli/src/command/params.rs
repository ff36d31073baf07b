//! `volery params`: lists the program's parameter sets, with source and date, and estimates the
//! security of any parameters.

mod ask;
mod estimate;
mod list;

use volery_run::failure::Result;
use volery_run::reporter::Reporter;

use super::options::Common;

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
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<()> {
    match &arguments.action {
        Action::List(common) => list::run(common, reporter),
        Action::Estimate(arguments) => estimate::run(arguments, reporter),
    }
}
