//! The `volery` command; all of it is in the library, so that it can be tested.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    volery::command::main()
}
