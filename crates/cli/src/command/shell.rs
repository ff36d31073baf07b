//! `volery completions` and `volery man`: what shells and `man` know of the command line.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;
use volery_run::failure::{Failure, Result, Status};

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
pub(crate) fn completions(arguments: &Completions, program: &Command) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut program.clone(), "volery", &mut text);
    std::io::stdout()
        .write_all(&text)
        .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))
}

/// Runs `volery man`.
pub(crate) fn man(arguments: &Man, program: &Command) -> Result<()> {
    let out = &arguments.out;
    let write = || {
        std::fs::create_dir_all(out)?;
        clap_mangen::generate_to(program.clone(), out)?;
        for page in std::fs::read_dir(out)? {
            let path = page?.path();
            let is_page = path.file_name().and_then(|name| name.to_str());
            if is_page.is_some_and(|name| name.starts_with("volery") && name.ends_with(".1")) {
                // An option or a value that a hyphen divides cannot be copied.
                let text = std::fs::read_to_string(&path)?;
                std::fs::write(&path, format!(".nr HY 0\n.nh\n{text}"))?;
            }
        }
        Ok(())
    };
    write().map_err(|error: std::io::Error| Failure::file(out, error))
}
