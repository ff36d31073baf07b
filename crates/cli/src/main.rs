//! The `volery` command. All code is in the library, so that it can be tested.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(volery_cli::command::main(Vec::new(), std::env::args_os().skip(1)))
}
