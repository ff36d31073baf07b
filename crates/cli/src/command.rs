//! The command line: one subcommand per file.

mod cot;
mod demo;
mod endpoint;
mod files;
mod help;
mod identity;
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
mod paths;
mod psi;
mod shell;
mod stream;
mod table;
mod verify;
mod vole;

use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser as _};

use crate::config::{self, Configured};
use crate::exit::{Failure, Status, usage_error};
use crate::output::clean_up_on_signal;

/// Private matching and correlated randomness between two parties who do not trust each other
#[derive(Debug, clap::Parser)]
#[command(name = "volery", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Demo(demo::Arguments),
    Vole(vole::Arguments),
    Cot(cot::Arguments),
    Psi(psi::Arguments),
    Lookup(lookup::Arguments),
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
    Report(page::Arguments),
    Completions(shell::Completions),
    Man(shell::Man),
}

/// Runs the subcommand given to this process and returns its exit status.
///
/// Exit status: 0 success; 2 usage error; 3 the peer broke the protocol or a check failed; 4 the
/// peer or the network disconnected or timed out; 5 the settings of the two sides differ; 1 any
/// other error. Errors go to standard error.
#[must_use]
pub fn main() -> ExitCode {
    let configured = config::configure(&program(), std::env::args_os().collect(), &|name| {
        std::env::var_os(name)
    });
    let configured = match configured {
        Ok(configured) => configured,
        Err(failure) => return failure.tell(),
    };
    let parsed = program().try_get_matches_from(&configured.words);
    let arguments = match parsed.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => {
            let hint = "'volery --help' and 'volery VERB --help' list the options";
            return usage_error(&with_origin(error, &configured), hint);
        }
    };
    clean_up_on_signal();
    keep_memory_private();
    // The panic has already unwound through the guards that remove unfinished output.
    let result = catch_unwind(AssertUnwindSafe(|| match &arguments.verb {
        Verb::Demo(arguments) => demo::run(arguments),
        Verb::Vole(arguments) => vole::run(arguments),
        Verb::Cot(arguments) => cot::run(arguments),
        Verb::Psi(arguments) => psi::run(arguments),
        Verb::Lookup(arguments) => lookup::run(arguments),
        Verb::Ope(arguments) => ope::run(arguments),
        Verb::Matvec(arguments) => matvec::run(arguments),
        Verb::Verify(arguments) => verify::run(arguments),
        Verb::Lint(arguments) => lint::run(arguments),
        Verb::Params(arguments) => params::run(arguments),
        Verb::Bench { .. } => Err(bench_moved()),
        Verb::Keygen(arguments) => keygen::run(arguments),
        Verb::Report(arguments) => page::run(arguments),
        Verb::Completions(arguments) => shell::completions(arguments),
        Verb::Man(arguments) => shell::man(arguments),
    }));
    match result {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            match configured.origin(failure.to_string().trim_start_matches("error: ")) {
                Some(origin) => failure.within(origin).tell(),
                None => failure.tell(),
            }
        }
        Err(_) => Failure::new(Status::Other, "internal error in volery, described above")
            .hint("report it together with the command line")
            .tell(),
    }
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

/// Keeps secrets out of core dumps and stops other processes of the same user from reading this
/// process's memory. The call fails on no system that supports it.
fn keep_memory_private() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// The result of `volery verify SENDER RECEIVER --ring RING --quiet`: nothing, or its final error
/// line. `ring` is `None` where the folders hold correlated OT. For fuzzing.
#[doc(hidden)]
pub fn verify_folders(sender: &Path, receiver: &Path, ring: Option<&str>) -> Result<(), String> {
    let fixed = ["volery", "verify", "--quiet"].map(OsStr::new);
    let ring = ring.into_iter().flat_map(|ring| ["--ring", ring]);
    let folders = [sender, receiver].map(Path::as_os_str);
    let words = fixed.into_iter().chain(ring.map(OsStr::new)).chain(folders);
    match Arguments::try_parse_from(words).map(|arguments| arguments.verb) {
        Ok(Verb::Verify(arguments)) => {
            verify::run(&arguments).map_err(|failure| failure.to_string())
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
