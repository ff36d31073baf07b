//! The command line: one subcommand per file.

pub(crate) mod cluster;
pub(crate) mod cot;
mod demo;
pub(crate) mod endpoint;
mod files;
mod gateway;
mod help;
mod identity;
mod k8s;
pub(crate) mod keygen;
pub(crate) mod lint;
pub(crate) mod lookup;
pub(crate) mod matching;
pub(crate) mod matvec;
pub(crate) mod numbers;
pub(crate) mod ope;
pub(crate) mod options;
mod page;
mod params;
mod paths;
mod progress;
pub(crate) mod psi;
mod run_local;
#[cfg(unix)]
mod serve;
mod shares;
mod shell;
pub(crate) mod stream;
mod table;
pub(crate) mod totals;
pub(crate) mod verify;
pub(crate) mod vole;
mod web;
mod worker;
mod workers;

use std::ffi::{OsStr, OsString};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::OnceLock;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use volery_primitives::cpu::Cpu;

use crate::config::{self, Configured};
use crate::exit::{Failure, Status, tell_usage, wrong_words};
use crate::report::report_failure;
use crate::said::Reporter;
#[cfg(unix)]
use crate::signal::end_on_second_signal;
use crate::signal::{clean_up_on_signal, end_on_signal};

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

/// The words that start this program again, where it is not the process's own file.
static OWN_PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the words that start this program: an interpreter runs it.
pub(crate) fn set_own_program(words: Vec<OsString>) {
    // The first call counts: a process runs the program once.
    let _ = OWN_PROGRAM.set(words);
}

/// The words that start this program again.
fn own_program() -> std::io::Result<Vec<OsString>> {
    match OWN_PROGRAM.get() {
        Some(words) if !words.is_empty() => Ok(words.clone()),
        _ => Ok(vec![std::env::current_exe()?.into_os_string()]),
    }
}

/// Runs the subcommand that `words` name, the first of them the subcommand, for the whole process,
/// and returns its exit status.
///
/// Exit status: 0 success; 2 usage error; 3 the peer broke the protocol or a check failed; 4 the
/// peer or the network disconnected or timed out; 5 the settings of the two sides differ; 1 any
/// other error. Errors go to standard error.
#[must_use]
pub fn main(words: impl IntoIterator<Item = OsString>) -> u8 {
    let words = std::iter::once("volery".into()).chain(words).collect();
    let configured = config::configure(&program(), words, &|name| std::env::var_os(name));
    let configured = match configured {
        Ok(configured) => configured,
        Err(failure) => {
            failure.print();
            return failure.status() as u8;
        }
    };
    let (matches, verb) = match parsed(program(), &configured.words) {
        Ok(parsed) => parsed,
        Err(error) => return tell_usage(&with_origin(error, &configured), HELP),
    };
    let reporter = Reporter::of_program(&matches);
    match verb {
        // A service ends well by a signal.
        Verb::Gateway(_) => end_on_signal(reporter.cancel().clone()),
        #[cfg(unix)]
        Verb::Serve(_) => {
            serve::keep_hangup();
            end_on_second_signal(reporter.cancel().clone());
        }
        _ => clean_up_on_signal(reporter.clone()),
    }
    crate::system::keep_memory_private();
    let Err(failure) = guarded(&reporter, || run(&verb, &reporter)) else {
        return 0;
    };
    let origin = configured.origin(failure.to_string().trim_start_matches("error: "));
    let failure = match origin {
        Some(origin) => failure.within(origin),
        None => failure,
    };
    reporter.fail(&failure);
    report_failure(&failure, &reporter);
    failure.status() as u8
}

/// Runs the subcommand of the program.
fn run(verb: &Verb, reporter: &Reporter) -> Result<(), Failure> {
    let streams = stream::Destination::Folder;
    match verb {
        Verb::Demo(arguments) => demo::run(arguments, reporter),
        Verb::Vole(arguments) => vole::run(arguments, None, streams, reporter).map(drop),
        Verb::Cot(arguments) => cot::run(arguments, None, None, streams, reporter).map(drop),
        Verb::Psi(arguments) => matching(&arguments.matching, reporter),
        Verb::Lookup(arguments) => matching(&arguments.matching, reporter),
        Verb::RunLocal(arguments) => run_local::run(arguments, reporter),
        Verb::Worker(arguments) => worker::run(arguments, reporter),
        Verb::K8s(arguments) => k8s::run(arguments, reporter),
        Verb::Ope(arguments) => ope::run(arguments, numbers::Given::default(), reporter).map(drop),
        Verb::Matvec(arguments) => {
            matvec::run(arguments, numbers::Given::default(), reporter).map(drop)
        }
        Verb::Verify(arguments) => verify::run(arguments, reporter).map(drop),
        Verb::Lint(arguments) => lint::run(arguments, None, reporter).map(drop),
        Verb::Params(arguments) => params::run(arguments, reporter),
        Verb::Bench { .. } => Err(bench_moved()),
        Verb::Keygen(arguments) => keygen::run(arguments, reporter).map(drop),
        Verb::Gateway(arguments) => gateway::run(arguments, reporter),
        #[cfg(unix)]
        Verb::Serve(arguments) => serve::run(arguments, reporter),
        Verb::Report(arguments) => page::run(arguments),
        Verb::Completions(arguments) => shell::completions(arguments),
        Verb::Man(arguments) => shell::man(arguments),
    }
}

fn matching(
    arguments: &matching::arguments::MatchingArguments,
    reporter: &Reporter,
) -> Result<(), Failure> {
    matching::run(arguments, matching::job::MatchInputs::default(), reporter).map(drop)
}

/// Runs `body`; turns a panic, and the end of a cancelled run, into a failure. Either has unwound
/// through the guards that remove unfinished output and close the connection.
pub(crate) fn guarded<T>(
    reporter: &Reporter,
    body: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    check_level()?;
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(Status::Other, "internal error in volery, described above")
            .with_hint("report it together with the command line"),
    };
    Err(match reporter.cancel().is_cancelled() {
        true => Failure::new(Status::Other, "cancelled"),
        false => failure,
    })
}

/// Checks `VOLERY_CPU`, without which the first kernel would panic.
///
/// # Errors
/// A usage error with the levels of this processor.
pub(crate) fn check_level() -> Result<(), Failure> {
    Cpu::check().map_err(|error| {
        Failure::new(Status::Usage, error).with_hint("name one of them, or unset the variable")
    })
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

/// Parses the words of a subcommand for a caller that gives some of its arguments, named in
/// `given`, as values.
pub(crate) fn parse_for_caller(
    verb: &str,
    words: &[OsString],
    given: &[&'static str],
) -> Result<(ArgMatches, Verb), Failure> {
    let program = Arguments::command().mut_subcommand(verb, |command| {
        let free = |command: clap::Command, name: &&'static str| {
            command.mut_arg(*name, |argument| argument.required(false))
        };
        given.iter().fold(command, free)
    });
    let words = ["volery".into(), verb.into()]
        .into_iter()
        .chain(words.iter().cloned());
    parsed(program, words).map_err(|error| wrong_words(&error, HELP))
}

/// The definition of the whole command line.
fn program() -> clap::Command {
    help::complete(config::add_option(Arguments::command()))
}

/// Puts in front of an error of the parser where the value came from, if not from the command line.
fn with_origin(error: clap::Error, configured: &Configured) -> clap::Error {
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

/// The result of `volery verify SENDER RECEIVER --ring RING --quiet`: nothing, or its final error
/// line. `ring` is `None` where the folders hold correlated OT. For fuzzing.
#[doc(hidden)]
pub fn verify_folders(sender: &Path, receiver: &Path, ring: Option<&str>) -> Result<(), String> {
    let fixed = ["volery", "verify", "--quiet"].map(OsStr::new);
    let ring = ring.into_iter().flat_map(|ring| ["--ring", ring]);
    let folders = [sender, receiver].map(Path::as_os_str);
    let words = fixed.into_iter().chain(ring.map(OsStr::new)).chain(folders);
    let words = words.map(OsStr::to_owned);
    match parsed(Arguments::command(), words) {
        Ok((matches, Verb::Verify(arguments))) => {
            let verified = verify::run(&arguments, &Reporter::of_program(&matches));
            verified.map(drop).map_err(|failure| failure.to_string())
        }
        Ok(_) => Err("the arguments do not parse as 'verify'".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_of_the_options_are_consistent() {
        program().debug_assert();
    }
}
