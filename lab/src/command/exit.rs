//! Failures, in the form of `volery`: one line `error: ..`, one line `hint: ..` if there is a
//! remedy, an exit status.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use crate::Error;

/// The reason of a failure, and its remedy.
#[derive(Debug)]
pub(crate) struct Failure {
    is_usage: bool,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A message says what failed and where, without a final full stop.
    fn new(message: impl fmt::Display) -> Self {
        Self { is_usage: false, message: one_line(&message.to_string()), hint: None }
    }

    /// A usage error: `option` is the wrong flag or argument, as the user types it.
    pub(crate) fn usage(option: &str, message: impl fmt::Display) -> Self {
        Self { is_usage: true, ..Self::new(format_args!("{option}: {message}")) }
    }

    pub(crate) fn output(error: std::io::Error) -> Self {
        Self::new(format_args!("standard output: {error}"))
    }

    pub(crate) fn with_hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(one_line(&hint.to_string()));
        self
    }

    /// Writes the lines to standard error; returns the status.
    pub(crate) fn tell(&self) -> ExitCode {
        // A closed standard error leaves nothing to do.
        let _ = write!(std::io::stderr().lock(), "{self}");
        ExitCode::from(if self.is_usage { 2 } else { 1 })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        self.hint.iter().try_for_each(|hint| writeln!(f, "hint: {hint}"))
    }
}

/// Joins the lines of a message. Control characters, which a quoted path could contain, are
/// escaped so that they cannot control the terminal.
fn one_line(message: &str) -> String {
    let escaped = |c: char| -> String {
        if c.is_control() { c.escape_default().collect() } else { c.into() }
    };
    let words: Vec<_> = message.split_whitespace().collect();
    words.join(" ").chars().map(escaped).collect()
}

const NO_PORT: &str = "the loopback interface must be up and have a free port: run 'ip link set \
    lo up', or end programs that hold many connections";

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let hint = match &error {
            Error::NoPort(_) => NO_PORT,
            Error::Run { error, .. } if matches!(**error, Error::NoPort(_)) => NO_PORT,
            Error::Run { .. } => {
                "earlier measurements are kept; leave this one out, or raise --timeout"
            }
            Error::NotResults { .. } => "choose another file, or remove this one",
            Error::Different { .. } => {
                "use the settings of the existing results, or choose another file"
            }
            _ => return Self::new(error),
        };
        let is_usage = matches!(error, Error::Different { .. });
        Self { is_usage, ..Self::new(&error) }.with_hint(hint)
    }
}

impl From<volery_channel::Error> for Failure {
    fn from(error: volery_channel::Error) -> Self {
        Error::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_fails_says_which_and_why() {
        let run = |error| {
            let key = crate::measurement::Key::example("cot", 7);
            Failure::from(Error::Run { key: Box::new(key), error: Box::new(error) })
        };
        let failure = run(volery_channel::Error::Disconnected.into());
        let text = failure.to_string();
        assert!(text.starts_with("error: cot, n = 7, loopback, 1 thread a party: "));
        assert!(text.contains("hint: earlier measurements are kept"));
        let failure = run(Error::protocol("a wrong\n\u{1b}[2Jsum"));
        assert!(failure.to_string().contains("a wrong \\u{1b}[2Jsum"));
        let failure = run(Error::NoPort(volery_channel::Error::Disconnected));
        assert!(failure.to_string().contains("hint: the loopback"));
    }
}
