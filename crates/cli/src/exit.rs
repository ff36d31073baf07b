//! How a command ends: the exit status, and what it says on standard error.
//!
//! Every error is one line `error: ..` that names what and where, then, where there is something to do, one line
//! `hint: ..`. The status tells scripts whose fault it was without reading either.

use std::fmt;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// The exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Anything without a status of its own: files, data, a failed verification.
    Other = 1,
    /// The command was called wrongly.
    Usage = 2,
    /// The peer broke the protocol, or a check on its messages failed.
    Peer = 3,
    /// The peer or the network went away, or a timeout passed.
    Network = 4,
    /// The two sides were started with different settings.
    Mismatch = 5,
}

/// Why a command failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure with a status and a message; the message names what failed and where, without a final full stop.
    pub(crate) fn new(status: Status, message: impl fmt::Display) -> Self {
        Self {
            status,
            message: one_line(&message.to_string()),
            hint: None,
        }
    }

    /// A wrong call: `option` is the flag or argument at fault, as the user types it.
    pub(crate) fn usage(option: &str, message: impl fmt::Display) -> Self {
        Self::new(Status::Usage, format_args!("{option}: {message}"))
    }

    /// A file that could not be read or written.
    pub(crate) fn file(path: &Path, error: impl fmt::Display) -> Self {
        Self::new(Status::Other, format_args!("{}: {error}", path.display()))
    }

    /// Says what the user can do.
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(one_line(&hint.to_string()));
        self
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// Writes the `error:` and `hint:` lines to standard error and gives the status.
    pub(crate) fn tell(&self) -> ExitCode {
        // Nothing can be done about a standard error that is closed.
        let _ = write!(std::io::stderr().lock(), "{self}");
        ExitCode::from(self.status as u8)
    }
}

impl From<volery_channel::Error> for Failure {
    fn from(error: volery_channel::Error) -> Self {
        use volery_channel::Error;
        match &error {
            Error::PeerMisbehaved(_) => Self::new(Status::Peer, error)
                .hint("nothing was written; find out what the peer runs before trying again"),
            Error::Disconnected => Self::new(
                Status::Network,
                "the peer closed the connection before the end",
            )
            .hint("its own error message says why"),
            Error::TimedOut(_) => Self::new(Status::Network, error)
                .hint("is the peer running, with the same address? --timeout SECONDS waits longer"),
            Error::Io(error) => Self::new(Status::Network, format_args!("the network: {error}")),
            Error::NotLoopback(_) => Self::new(Status::Usage, error)
                .hint("volery keygen --out DIR makes an identity; both sides then take --identity DIR --peer FINGERPRINT"),
            Error::Identity(why) => Self::new(Status::Other, format_args!("--identity: {why}"))
                .hint("volery keygen --out DIR makes a new one; the other party must be given its fingerprint"),
            Error::Unauthenticated(_) => Self::new(Status::Peer, error)
                .hint("if it is the right machine, ask the other party for its fingerprint again, by a way that cannot be forged"),
            Error::Refused(_) => Self::new(Status::Peer, error)
                .hint("give the other party the fingerprint of --identity, and let it check the clock"),
            Error::Mismatch { field, .. } if field == "role" => Self::new(Status::Mismatch, error),
            Error::Mismatch {
                field,
                ours,
                theirs,
            } => Self::new(
                Status::Mismatch,
                format_args!("the two sides differ in {field}: {ours} here, {theirs} at the peer"),
            )
            .hint("start both with the same settings, and the same version of volery"),
            _ => Self::new(Status::Other, error),
        }
    }
}

impl From<volery_bench::Error> for Failure {
    fn from(error: volery_bench::Error) -> Self {
        use volery_bench::Error;
        match error {
            Error::Channel(error) => error.into(),
            Error::NoPort(_) => Self::new(Status::Network, error).hint(
                "the loopback interface must be up and have a free port: 'ip link set lo up', or end programs that hold many connections",
            ),
            Error::Run { key, error } => {
                let other = !matches!(*error, Error::NoPort(_));
                let mut failure = Self::from(*error);
                failure.message = one_line(&format!("{key}: {}", failure.message));
                if other {
                    failure = failure.hint(
                        "what was measured before is kept; leave this experiment out by naming the others, or raise --timeout",
                    );
                }
                failure
            }
            Error::NotResults { .. } => Self::new(Status::Other, error)
                .hint("give another file or folder, or remove this one"),
            Error::Different { .. } => Self::new(Status::Usage, error)
                .hint("ask for the same as there, or give another folder"),
            error => Self::new(Status::Other, error),
        }
    }
}

impl volery_bench::parties::Failed for Failure {
    /// Whether the other side going away is what is reported; its own error then says more.
    fn is_network(&self) -> bool {
        self.status == Status::Network
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        if let Some(hint) = &self.hint {
            writeln!(f, "hint: {hint}")?;
        }
        Ok(())
    }
}

/// Joins the lines of a message: scripts count on one line an error. Control characters, which a message that quotes a
/// path or the peer could hold, are shown escaped so that they cannot drive the terminal.
fn one_line(message: &str) -> String {
    let joined = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut safe = String::with_capacity(joined.len());
    for character in joined.chars() {
        if character.is_control() {
            safe.extend(character.escape_default());
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Turns what the argument parser says into our form; help and version go to standard output with status 0.
pub(crate) fn usage_error(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Calling without a verb is asking what there is, but it is not a run that did its work.
        let _ = error.print();
        return ExitCode::from(Status::Usage as u8);
    }
    let text = error.render().to_string();
    // The parser's text is `error: what`, perhaps several lines of it, an empty line, then tips and the usage.
    let mut paragraphs = text.split("\n\n");
    let what = paragraphs.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what);
    let tip = paragraphs
        .find_map(|paragraph| paragraph.trim().strip_prefix("tip: ").map(str::to_owned))
        .unwrap_or_else(|| "'volery --help' and 'volery VERB --help' list the options".to_owned());
    Failure::new(Status::Usage, what).hint(tip).tell()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_fails_has_the_status_of_its_error() {
        let run = |error| {
            let key = Box::new(volery_bench::measurement::Key {
                protocol: "cot".to_owned(),
                n: 7,
                link: volery_bench::Link::Loopback,
                threads: 1,
            });
            let error = Box::new(error);
            Failure::from(volery_bench::Error::Run { key, error })
        };
        let failure = run(volery_channel::Error::Disconnected.into());
        assert_eq!(failure.status(), Status::Network);
        let text = failure.to_string();
        assert!(text.starts_with("error: cot, n = 7, loopback, 1 thread a party: the peer closed"));
        assert!(text.contains("hint: what was measured before is kept"));
        let failure = run(volery_bench::Error::protocol("a wrong sum"));
        assert_eq!(failure.status(), Status::Other);
        let no_port = run(volery_bench::Error::NoPort(
            volery_channel::Error::Disconnected,
        ));
        assert!(no_port.to_string().contains("hint: the loopback"));
    }

    #[test]
    fn an_error_is_one_line_and_a_hint_another() {
        let failure =
            Failure::usage("--out", "the folder\nis\u{1b}[2J not empty").hint("give\nanother");
        assert_eq!(
            failure.to_string(),
            "error: --out: the folder is\\u{1b}[2J not empty\nhint: give another\n"
        );
        assert_eq!(failure.status(), Status::Usage);
        assert_eq!(failure.status() as u8, 2);
    }
}
