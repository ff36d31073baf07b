//! `volery bench`: what things cost on this machine, the papers' evaluation, and what changed between two measurements.

mod compare;
mod grid;
mod measure;
mod paper;
mod row;
mod run;
mod section;
mod setting;

use std::io::Write as _;

use volery_experiments::experiment;

use self::run::BENCHES;
use super::options::Voice;
use crate::exit::{Failure, Status};

/// Measure protocols on this machine
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// List what can be measured
    List,
    Run(run::Arguments),
    Grid(grid::Arguments),
    Paper(paper::Arguments),
    Compare(compare::Arguments),
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::List => print_list().map_err(standard_output),
        Action::Run(arguments) => run::run(arguments),
        Action::Grid(arguments) => grid::run(arguments),
        Action::Paper(arguments) => paper::run(arguments),
        Action::Compare(arguments) => compare::run(arguments),
    }
}

fn print_list() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "volery bench run:")?;
    for bench in &BENCHES {
        writeln!(out, "  {:16} {}", bench.name, bench.about)?;
    }
    writeln!(
        out,
        "volery bench paper; dvole, ferret and kkrt stand for all of a paper:"
    )?;
    for experiment in experiment::ALL {
        writeln!(out, "  {:16} {}", experiment.name(), experiment.about())?;
    }
    Ok(())
}

fn standard_output(error: std::io::Error) -> Failure {
    Failure::new(Status::Other, format_args!("standard output: {error}"))
}

/// What keeps figures from being compared with others, for who reads no page.
fn tell_remarks(voice: Voice, remarks: &[String]) {
    for remark in remarks {
        voice.announce(remark, true);
    }
}
