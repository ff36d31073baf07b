//! Starts the program and reads its output.

use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volery-bench"));
    command.args(arguments).stdin(Stdio::null());
    command
}

pub(crate) fn run(arguments: &[&str]) -> Finished {
    let output = program(arguments).output().unwrap();
    Finished::from(output)
}

/// The result of a finished process.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Finished {
    /// Fails unless it ended with `status`, with one `error:` line and every one of the
    /// fragments.
    pub(crate) fn assert_refused(&self, status: i32, fragments: &[&str]) {
        assert_eq!(self.status, Some(status), "{self:?}");
        assert!(self.stdout.is_empty(), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        let errors: Vec<_> =
            self.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{self:?}");
        for fragment in fragments {
            assert!(self.stderr.contains(fragment), "{fragment:?} is not in {self:?}");
        }
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Names in a folder, hidden ones too.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
