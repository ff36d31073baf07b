//! `volery completions` and `volery man`: what shells and `man` know of the command line.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;
use volery_run::failure::{Failure, Status};

/// Print the completions of a shell
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Write the manual pages
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Man {
    /// Output folder, made where it does not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Runs `volery completions`.
pub(crate) fn completions(arguments: &Completions, program: &Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut program.clone(), "volery", &mut text);
    std::io::stdout()
        .write_all(&text)
        .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))
}

/// Runs `volery man`.
pub(crate) fn man(arguments: &Man, program: &Command) -> Result<(), Failure> {
    let out = &arguments.out;
    std::fs::create_dir_all(out)
        .and_then(|()| clap_mangen::generate_to(program.clone(), out))
        .map_err(|error| Failure::file(out, error))
}
