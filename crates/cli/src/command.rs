//! The command line: one subcommand per file.

mod cot;
mod demo;
mod gateway;
mod help;
mod k8s;
mod keygen;
mod lint;
mod lookup;
mod matching;
mod matvec;
mod numbers;
mod ope;
mod options;
mod page;
mod params;
mod psi;
mod run_local;
#[cfg(unix)]
mod serve;
mod shell;
mod stream;
mod table;
mod verify;
mod vole;
mod worker;
mod workers;

use std::ffi::OsString;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use volery_run::failure::Failure;
use volery_run::guard::guarded;
use volery_run::matching::arguments::MatchingArguments;
use volery_run::matching::job::MatchInputs;
use volery_run::report::report_failure;
use volery_run::reporter::Reporter;
use volery_run::system::keep_memory_private;

use crate::config::{self, Configuration};
use crate::exit::{print, tell_usage};
#[cfg(unix)]
use crate::signal::end_on_second_signal;
use crate::signal::{clean_up_on_signal, end_on_signal};
use crate::terminal::Terminal;

/// Private matching and correlated randomness between two parties who do not trust each other
#[derive(Debug, clap::Parser)]
#[command(name = "volery", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Demo(demo::Arguments),
    Vole(vole::Arguments),
    Cot(cot::Arguments),
    Psi(psi::Arguments),
    Lookup(lookup::Arguments),
    RunLocal(run_local::Arguments),
    Worker(worker::Arguments),
    K8s(k8s::Arguments),
    Ope(ope::Arguments),
    Matvec(matvec::Arguments),
    Verify(verify::Arguments),
    Lint(lint::Arguments),
    Params(params::Arguments),
    #[command(hide = true, disable_help_flag = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    Keygen(keygen::Arguments),
    Gateway(gateway::Arguments),
    #[cfg(unix)]
    Serve(serve::Arguments),
    Report(page::Arguments),
    Completions(shell::Completions),
    Man(shell::Man),
}

/// Where the remedy for wrong words is.
const HELP: &str = "'volery --help' and 'volery VERB --help' list the options";

/// Runs the subcommand that `words` name, the first of them the subcommand, for the whole process,
/// and returns its exit status.
///
/// Exit status: 0 success; 2 usage error; 3 the peer broke the protocol or a check failed; 4 the
/// peer or the network disconnected or timed out; 5 the settings of the two sides differ; 1 any
/// other error. Errors go to standard error.
///
/// `own` are the words that start this program again, where it is not the process's own file: an
/// interpreter runs it.
#[must_use]
pub fn main(own: Vec<OsString>, words: impl IntoIterator<Item = OsString>) -> u8 {
    let words = std::iter::once("volery".into()).chain(words).collect();
    let configured = config::configure(&program(), words, &|name| std::env::var_os(name));
    let configured = match configured {
        Ok(configured) => configured,
        Err(failure) => {
            print(&failure);
            return failure.status() as u8;
        }
    };
    let (matches, verb) = match parsed(program(), &configured.words) {
        Ok(parsed) => parsed,
        Err(error) => return tell_usage(&with_origin(error, &configured), HELP),
    };
    let (terminal, reporter) = Terminal::of(&matches);
    match verb {
        // A service ends well by a signal.
        Verb::Gateway(_) => end_on_signal(reporter.cancel().clone()),
        #[cfg(unix)]
        Verb::Serve(_) => {
            serve::keep_hangup();
            end_on_second_signal(reporter.cancel().clone());
        }
        _ => clean_up_on_signal(terminal.clone(), reporter.clone()),
    }
    keep_memory_private();
    let Err(failure) = guarded(&reporter, || run(&verb, &own, &reporter)) else {
        return 0;
    };
    let origin = configured.origin(failure.to_string().trim_start_matches("error: "));
    let failure = match origin {
        Some(origin) => failure.within(origin),
        None => failure,
    };
    terminal.fail(&failure, &reporter);
    report_failure(&failure, &reporter);
    failure.status() as u8
}

/// Runs the subcommand of the program.
fn run(verb: &Verb, own: &[OsString], reporter: &Reporter) -> Result<(), Failure> {
    match verb {
        Verb::Demo(arguments) => demo::run(arguments, reporter),
        Verb::Vole(arguments) => vole::run(arguments, reporter),
        Verb::Cot(arguments) => cot::run(arguments, reporter),
        Verb::Psi(arguments) => matching(&arguments.matching, reporter),
        Verb::Lookup(arguments) => matching(&arguments.matching, reporter),
        Verb::RunLocal(arguments) => run_local::run(arguments, own, reporter),
        Verb::Worker(arguments) => worker::run(arguments, reporter),
        Verb::K8s(arguments) => k8s::run(arguments, reporter),
        Verb::Ope(arguments) => ope::run(arguments, reporter),
        Verb::Matvec(arguments) => matvec::run(arguments, reporter),
        Verb::Verify(arguments) => verify::run(arguments, reporter),
        Verb::Lint(arguments) => lint::run(arguments, reporter),
        Verb::Params(arguments) => params::run(arguments, reporter),
        Verb::Bench { .. } => Err(bench_moved()),
        Verb::Keygen(arguments) => keygen::run(arguments, reporter),
        Verb::Gateway(arguments) => gateway::run(arguments, reporter),
        #[cfg(unix)]
        Verb::Serve(arguments) => serve::run(arguments, reporter),
        Verb::Report(arguments) => page::run(arguments),
        Verb::Completions(arguments) => shell::completions(arguments, &program()),
        Verb::Man(arguments) => shell::man(arguments, &program()),
    }
}

fn matching(arguments: &MatchingArguments, reporter: &Reporter) -> Result<(), Failure> {
    volery_run::matching::run(arguments, MatchInputs::default(), reporter).map(drop)
}

/// Parses the words, the first of which is the name of the program.
fn parsed(
    program: clap::Command,
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<(ArgMatches, Verb), clap::Error> {
    let matches = program.try_get_matches_from(words)?;
    let verb = Arguments::from_arg_matches(&matches)?.verb;
    Ok((matches, verb))
}

/// The definition of the whole command line.
fn program() -> clap::Command {
    help::complete(config::add_option(Arguments::command()))
}

/// Puts in front of an error of the parser where the value came from, if not from the command line.
fn with_origin(error: clap::Error, configured: &Configuration) -> clap::Error {
    let text = error.render().to_string();
    let text = text.trim_start_matches("error: ");
    let first = text.split("\n\n").next().unwrap_or_default();
    match configured.origin(first) {
        Some(origin) => clap::Error::raw(error.kind(), format_args!("{origin}: {text}")),
        None => error,
    }
}

/// `bench` is now a separate program.
fn bench_moved() -> Failure {
    let what = "moved to the program volery-bench, in the folder lab, with the same subcommands";
    Failure::usage("bench", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_of_the_options_are_consistent() {
        program().debug_assert();
    }
}
