//! The command line: a file for each subcommand, or for two that share their options.

mod demo;
mod gateway;
mod help;
mod k8s;
mod keygen;
mod lint;
mod matching;
mod numbers;
mod options;
mod page;
mod params;
mod run_local;
#[cfg(unix)]
mod serve;
mod shell;
mod stream;
mod table;
mod verify;
mod worker;
mod workers;

use std::ffi::OsString;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use volery_run::failure::Result;
use volery_run::guard::guarded;
use volery_run::matching::arguments::MatchingArguments;
use volery_run::matching::job::MatchInputs;
use volery_run::report::report_failure;
use volery_run::reporter::Reporter;
use volery_run::system::keep_memory_private;

use self::matching::{Lookup, Psi, Words};
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
    Vole(stream::Vole),
    Cot(stream::Cot),
    /// Find the rows of a table whose keys are also in the peer's table; the receiver gets its own
    /// matching rows
    ///
    /// Each side names its files and key columns; both sides must give the same number of key
    /// columns, with the same types and normalisers. The receiver learns which of its keys match.
    /// Each side learns how many distinct keys the other has, and the number and types of its key
    /// columns. The run is secure against a malicious peer, except that a malicious receiver can
    /// test somewhat more keys than it declares. With --both on both sides, the sender gets its own
    /// matching rows too, and the run is secure only against a semi-honest peer. With a --result
    /// other than rows, neither side gets rows: the result is one number computed from the common
    /// keys, one number for each group, or shares for further computation.
    Psi(Words<Psi>),
    /// Look up the keys of a table in the peer's table; the receiver gets its own matching rows,
    /// each with columns of the sender
    ///
    /// The sender names columns, together at most 16 KB a row. The receiver learns which of its
    /// keys match, the columns for these keys, and the length of the longest payload of all. Each
    /// side learns how many distinct keys the other has, and the number and types of its key
    /// columns. Of several rows of the sender with the same key the first one counts. The run is
    /// secure against a malicious peer, except that a malicious sender can give any values, and a
    /// malicious receiver can test somewhat more keys than it declares. With --both on both sides,
    /// the sender gets its own matching rows too, and the run is secure only against a semi-honest
    /// peer.
    Lookup(Words<Lookup>),
    RunLocal(run_local::Arguments),
    Worker(worker::Arguments),
    K8s(k8s::Arguments),
    Ope(numbers::Ope),
    Matvec(numbers::Matvec),
    Verify(verify::Arguments),
    Lint(lint::Arguments),
    Params(params::Arguments),
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
    let misspelt = config::misspelt(&program(), std::env::vars_os().map(|(name, _)| name));
    let (matches, verb) = match parsed(program(), &configured.words) {
        Ok(parsed) => parsed,
        Err(error) => {
            let hint = misspelt.first().map_or(HELP, String::as_str);
            return tell_usage(&with_origin(error, &configured), hint);
        }
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
    misspelt.iter().for_each(|note| reporter.caution(note));
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
fn run(verb: &Verb, own: &[OsString], reporter: &Reporter) -> Result<()> {
    match verb {
        Verb::Demo(arguments) => demo::run(arguments, reporter),
        Verb::Vole(arguments) => arguments.run(reporter),
        Verb::Cot(arguments) => arguments.run(reporter),
        Verb::Psi(arguments) => matching(arguments, reporter),
        Verb::Lookup(arguments) => matching(arguments, reporter),
        Verb::RunLocal(arguments) => run_local::run(arguments, own, reporter),
        Verb::Worker(arguments) => worker::run(arguments, reporter),
        Verb::K8s(arguments) => k8s::run(arguments, reporter),
        Verb::Ope(arguments) => arguments.run(reporter),
        Verb::Matvec(arguments) => arguments.run(reporter),
        Verb::Verify(arguments) => verify::run(arguments, reporter),
        Verb::Lint(arguments) => lint::run(arguments, reporter),
        Verb::Params(arguments) => params::run(arguments, reporter),
        Verb::Keygen(arguments) => keygen::run(arguments, reporter),
        Verb::Gateway(arguments) => gateway::run(arguments, reporter),
        #[cfg(unix)]
        Verb::Serve(arguments) => serve::run(arguments, reporter),
        Verb::Report(arguments) => page::run(arguments),
        Verb::Completions(arguments) => shell::completions(arguments, &program()),
        Verb::Man(arguments) => shell::man(arguments, &program()),
    }
}

fn matching(arguments: &MatchingArguments, reporter: &Reporter) -> Result<()> {
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
