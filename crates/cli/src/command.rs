//! The command line: one verb a file.

mod bench;
mod choices;
mod cot;
mod demo;
mod endpoint;
mod files;
mod identity;
mod keygen;
mod lookup;
mod matching;
mod matvec;
mod numbers;
mod ope;
mod options;
mod params;
mod parts;
mod paths;
mod psi;
mod stream;
mod table;
mod verify;
mod vole;

pub(crate) use choices::Choices;

use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use crate::exit::{Failure, Status, usage_error};
use crate::output::clean_up_on_signal;

/// Correlated randomness between two parties who do not trust each other
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
    Params(params::Arguments),
    Bench(bench::Arguments),
    Keygen(keygen::Arguments),
}

/// Runs the command that the process was started with, and gives its exit status.
///
/// Exit status: 0 done; 2 wrong usage; 3 the peer broke the protocol or a check failed; 4 the peer or the network went
/// away or timed out; 5 the two sides' settings differ; 1 anything else. Errors go to standard error.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage_error(&error),
    };
    clean_up_on_signal();
    // The data of `bench` are its own, and it resets its peak memory by a file of /proc that would
    // be closed to it.
    if !matches!(arguments.verb, Verb::Bench(_)) {
        keep_memory_private();
    }
    // A panic has unwound through the guards that remove unfinished output by the time it is here.
    let result = catch_unwind(AssertUnwindSafe(|| match &arguments.verb {
        Verb::Demo(arguments) => demo::run(arguments),
        Verb::Vole(arguments) => vole::run(arguments),
        Verb::Cot(arguments) => cot::run(arguments),
        Verb::Psi(arguments) => psi::run(arguments),
        Verb::Lookup(arguments) => lookup::run(arguments),
        Verb::Ope(arguments) => ope::run(arguments),
        Verb::Matvec(arguments) => matvec::run(arguments),
        Verb::Verify(arguments) => verify::run(arguments),
        Verb::Params(arguments) => params::run(arguments),
        Verb::Bench(arguments) => bench::run(arguments),
        Verb::Keygen(arguments) => keygen::run(arguments),
    }));
    match result {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.tell(),
        Err(_) => Failure::new(Status::Other, "a defect in volery, described above")
            .hint("please report it with the command that led to it")
            .tell(),
    }
}

/// Keeps secrets out of core dumps, and other processes of the same user out of this one's memory,
/// where the system can: it fails on none that knows it.
fn keep_memory_private() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// What `volery verify SENDER RECEIVER --ring RING --quiet` finds: nothing, or the line that it would end with. No ring
/// where the folders hold correlated OT. For fuzzing.
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
        Ok(_) => Err("not a verification".to_owned()),
        Err(error) => Err(error.to_string()),
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
