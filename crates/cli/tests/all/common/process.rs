//! Processes of tests: their words, their ends, and what they leave. Also for the tests of
//! `volery-bench`.

use std::path::Path;
use std::process::Output;

/// The result of a finished process.
#[derive(Debug)]
pub(crate) struct ProcessResult {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for ProcessResult {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl ProcessResult {
    /// Fails unless it ended with `status` and one `error:` line, which it returns.
    pub(crate) fn refusal(&self, status: i32) -> &str {
        assert_eq!(self.status, Some(status), "{self:?}");
        assert!(self.stdout.is_empty(), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        let errors: Vec<_> =
            self.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{self:?}");
        errors[0]
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Names in a folder, including hidden ones.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
