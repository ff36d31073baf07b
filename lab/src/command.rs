//! The program `volery-bench`: the cost of protocols on this machine, the papers' evaluation, and
//! changes between two measurements.

mod grid;
mod options;
mod paper;
mod patterns;
mod run;
mod stream;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use self::options::Reporter;
use self::run::BENCHES;
use crate::{Error, memory, papers};

/// Measure the protocols of volery on this machine
///
/// The program restarts itself once with glibc set to keep memory in the process, so that no run
/// pays for memory that another run released; VOLERY_BENCH_ALLOCATOR=system turns this off.
#[derive(Debug, clap::Parser)]
#[command(name = "volery-bench", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// List the benchmarks and experiments
    List,
    Run(run::Arguments),
    Grid(grid::Arguments),
    Paper(paper::Arguments),
    #[command(subcommand, hide = true)]
    Patterns(patterns::Arguments),
}

/// Runs the subcommand given to this process and returns its exit status.
///
/// Exit status: 0 success; 1 an error; 2 a usage error.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if matches!(arguments.action, Action::Run(_) | Action::Grid(_) | Action::Paper(_)) {
        memory::keep();
    }
    let done = match &arguments.action {
        Action::List => print_list().map_err(Error::output),
        Action::Run(arguments) => run::run(arguments),
        Action::Grid(arguments) => grid::run(arguments),
        Action::Paper(arguments) => paper::run(arguments),
        Action::Patterns(arguments) => patterns::run(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.tell(),
    }
}

fn print_list() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "volery-bench run:")?;
    for bench in &BENCHES {
        writeln!(out, "  {:16} {}", bench.name, bench.about)?;
    }
    writeln!(out, "volery-bench paper; dvole, ferret and kkrt stand for all of a paper:")?;
    for experiment in &papers::ALL {
        writeln!(out, "  {:16} {}", experiment.name, experiment.about())?;
    }
    Ok(())
}

/// Prints the reasons why figures of this machine may not be comparable.
fn tell_remarks(reporter: Reporter, remarks: &[String]) {
    for remark in remarks {
        reporter.announce(remark, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_of_the_options_are_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
