//! The failure of a run: a status, one line that says what failed and where, and perhaps a remedy.
//!
//! The status tells a caller the cause without parsing either line; the program ends with it.

use std::fmt;
use std::path::Path;

/// The result of a step of a run.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// The cause of a failure, which is the exit status of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Any error without a status of its own: files, data, a failed verification.
    Other = 1,
    /// Usage error.
    Usage = 2,
    /// The peer broke the protocol, or a check on its messages failed.
    Peer = 3,
    /// The peer or the network disconnected, or a timeout passed.
    Network = 4,
    /// The two sides were started with different settings.
    Mismatch = 5,
}

/// The reason of a failure, and its remedy.
#[derive(Debug)]
pub struct Failure {
    status: Status,
    message: String,
    hint: Option<String>,
}

impl Status {
    /// The status of a process that is this program.
    pub fn of_code(code: Option<i32>) -> Self {
        let all = [Self::Usage, Self::Peer, Self::Network, Self::Mismatch];
        let found = all.into_iter().find(|status| code == Some(*status as i32));
        found.unwrap_or(Self::Other)
    }
}

impl Failure {
    /// A failure with a status and a message; the message says what failed and where, without a
    /// final full stop.
    pub fn new(status: Status, message: impl fmt::Display) -> Self {
        Self { status, message: one_line(&message.to_string()), hint: None }
    }

    /// A usage error: `option` is the wrong flag or argument, as the user types it.
    pub fn usage(option: &str, message: impl fmt::Display) -> Self {
        Self::new(Status::Usage, format_args!("{option}: {message}"))
    }

    /// A file that could not be read or written.
    pub fn file(path: &Path, error: impl fmt::Display) -> Self {
        Self::new(Status::Other, format_args!("{}: {error}", path.display()))
    }

    /// Adds the remedy.
    pub fn with_hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(one_line(&hint.to_string()));
        self
    }

    /// Puts the circumstance of the failure in front of its message.
    #[must_use]
    pub fn within(mut self, what: impl fmt::Display) -> Self {
        self.message = one_line(&format!("{what}: {}", self.message));
        self
    }

    /// Whether the failure is only that the peer disconnected; the peer's own error then says more.
    pub fn is_network(&self) -> bool {
        self.status == Status::Network
    }

    /// The exit status.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The error in words, on one line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The remedy, on one line.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl From<volery_channel::Error> for Failure {
    fn from(error: volery_channel::Error) -> Self {
        use volery_channel::Error;
        match &error {
            Error::PeerMisbehaved(_) => Self::new(Status::Peer, error)
                .with_hint("nothing was written; check which program the peer runs before retrying"),
            Error::Disconnected => Self::new(
                Status::Network,
                "the peer closed the connection before the end",
            )
            .with_hint("see the peer's own error message for the cause"),
            Error::TimedOut(_) | Error::Absent(_) => Self::new(Status::Network, error)
                .with_hint("check that the peer is running and can be reached at this address; --wait TIME gives it more time to become reachable, --timeout TIME more time for data or a heartbeat after that"),
            Error::Proxy(_, remedy) => Self::new(Status::Network, &error).with_hint(remedy),
            Error::Io(error) => Self::new(Status::Network, format_args!("network error: {error}")),
            Error::Unavailable(_) => Self::new(Status::Network, error)
                .with_hint("try again later (for a worker: and check this machine's clock)"),
            Error::Usage(_) => Self::new(Status::Usage, error),
            Error::NotLoopback(_) => Self::new(Status::Usage, error)
                .with_hint("make an identity with 'volery keygen --out DIR', then start both sides with --identity DIR --peer FINGERPRINT"),
            Error::Identity(why) => Self::new(Status::Other, format_args!("--identity: {why}"))
                .with_hint("make a new identity with 'volery keygen --out DIR' and give the other party its fingerprint"),
            Error::Unauthenticated(_) => Self::new(Status::Peer, error)
                .with_hint("if it is the right machine, ask the other party for its fingerprint again, over a channel that cannot be forged"),
            Error::Refused(why) if why.starts_with("at the gateway") => Self::new(Status::Peer, error)
                .with_hint("'volery gateway' logs each refusal; it lets in the organisations of its --allow, and a worker that is started again with a higher attempt"),
            Error::Refused(_) => Self::new(Status::Peer, error)
                .with_hint("give the other party the fingerprint of --identity, and ask it to check its clock"),
            Error::Mismatch { field, .. } if field == "role" => Self::new(Status::Mismatch, error),
            Error::Mismatch {
                field,
                ours,
                theirs,
            } => Self::new(
                Status::Mismatch,
                format_args!("the two sides differ in {field}: {ours} here, {theirs} at the peer"),
            )
            .with_hint("start both sides with the same settings and the same version of volery"),
            _ => Self::new(Status::Other, error),
        }
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

/// Joins the lines of a message: scripts rely on one line per error.
fn one_line(message: &str) -> String {
    visible(&message.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Writes characters that show nothing, or that control a terminal or the direction of a text, as
/// their code points, so that a file name cannot pretend to be another one. Line feeds stay.
pub fn visible(text: &str) -> String {
    let is_shown = |character: char| match character {
        '\n' | ' '..='~' => true,
        // Fillers and selectors, which show nothing either.
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' => false,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => false,
        // Behind another character, an accent that goes with it is shown.
        other => format!("a{other}").escape_debug().nth(1) == Some(other),
    };
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match is_shown(character) {
            true => out.push(character),
            false => out.extend(character.escape_unicode()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_and_a_hint_another() {
        let failure =
            Failure::usage("--out", "the folder\nis\u{1b}[2J not empty").with_hint("give\nanother");
        assert_eq!(
            failure.to_string(),
            "error: --out: the folder is\\u{1b}[2J not empty\nhint: give another\n"
        );
        assert_eq!(failure.status(), Status::Usage);
        assert_eq!(failure.status() as u8, 2);
    }

    #[test]
    fn characters_that_show_nothing_are_named() {
        for text in ["a\nb \"c\" 'd' \\", "Zoë", "Zoe\u{308}", "日本語", "\u{1f600}"] {
            assert_eq!(visible(text), text);
        }
        for (text, shown) in [
            ("a\u{202e}fdp.csv\r\t", "a\\u{202e}fdp.csv\\u{d}\\u{9}"),
            ("\u{61c}\u{ad}\u{200b}\u{2066}", "\\u{61c}\\u{ad}\\u{200b}\\u{2066}"),
            ("\u{9b}2J\u{7f}\u{e0041}", "\\u{9b}2J\\u{7f}\\u{e0041}"),
            ("a\u{3164}\u{fe0f}\u{2800}", "a\\u{3164}\\u{fe0f}\\u{2800}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }
}
