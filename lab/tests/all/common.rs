//! Starts the program and reads its output.

#[path = "../../../crates/cli/tests/all/common/process.rs"]
mod process;

use std::process::{Command, Stdio};

pub(crate) use process::{ProcessResult, names, text};

pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volery-bench"));
    command.args(arguments).stdin(Stdio::null());
    command
}

pub(crate) fn run(arguments: &[&str]) -> ProcessResult {
    let output = program(arguments).output().unwrap();
    ProcessResult::from(output)
}

impl ProcessResult {
    /// Fails unless it ended with `status` and an error; all of what it says has the fragments.
    pub(crate) fn assert_refused(&self, status: i32, fragments: &[&str]) {
        self.refusal(status);
        for fragment in fragments {
            assert!(self.stderr.contains(fragment), "{fragment:?} is not in {self:?}");
        }
    }
}
