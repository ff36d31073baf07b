//! Starts the program and reads its output.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A command of this build.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volery-bench"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
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
    /// Fails unless it ended with `status`, with one `error:` line that has every one of the
    /// fragments.
    pub(crate) fn assert_refused(&self, status: i32, fragments: &[&str]) {
        assert_eq!(self.status, Some(status), "{self:?}");
        assert!(self.stdout.is_empty(), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        let errors: Vec<_> =
            self.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{self:?}");
        for fragment in fragments {
            assert!(errors[0].contains(fragment), "{fragment:?} is not in {self:?}");
        }
        for line in self.stderr.lines() {
            let known = ["error: ", "hint: ", "volery-bench: "];
            assert!(known.iter().any(|start| line.starts_with(start)), "{line:?}");
        }
    }
}

/// A process that runs beside the test.
pub(crate) struct Running {
    child: Child,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
    started: Instant,
}

impl Running {
    /// Starts the command.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child =
            program(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        fn read(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
            thread::spawn(move || {
                let mut text = String::new();
                from.read_to_string(&mut text).unwrap();
                text
            })
        }
        Self {
            stdout: read(child.stdout.take().unwrap()),
            stderr: read(child.stderr.take().unwrap()),
            child,
            started: Instant::now(),
        }
    }

    /// Sends it a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end, at most for `limit` from its start.
    pub(crate) fn finish_within(mut self, limit: Duration) -> Finished {
        while self.child.try_wait().unwrap().is_none() {
            if self.started.elapsed() > limit {
                self.child.kill().unwrap();
                panic!("still running after {limit:?}: {}", self.stderr.join().unwrap());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Finished {
            status: self.child.wait().unwrap().code(),
            stdout: self.stdout.join().unwrap(),
            stderr: self.stderr.join().unwrap(),
        }
    }
}

/// The text of a path.
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
