//! Failures as the package tells them: their kind, one line, and what to do.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use volery_channel::Error as ChannelError;
use volery_matching::{Error, SettingsError, WriteError};
use volery_psi::Error as ProtocolError;

/// The result of a step.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The kind of a failure, as the exit status of the program tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The table cannot be used; or whatever has no kind of its own.
    Data,
    /// An option is wrong or missing.
    Usage,
    /// The peer broke the protocol, or refused this side.
    Peer,
    /// The connection broke, or a time limit passed.
    Network,
    /// The sides have different settings.
    Settings,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The kind of the failure.
    pub kind: Kind,
    /// One line: what happened, and where.
    pub message: String,
    /// One line: what to do.
    pub hint: Option<String>,
    /// The filter that is kept is another one than the server's.
    #[serde(rename = "otherFilter")]
    pub other_filter: bool,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self { kind, message: one_line(&message.to_string()), hint: None, other_filter: false }
    }

    /// A wrong option, which has this name in JavaScript.
    pub fn usage(option: &str, message: impl fmt::Display) -> Self {
        Self::new(Kind::Usage, format_args!("{option}: {message}"))
    }

    /// The same, with what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(one_line(&hint.to_string()));
        self
    }
}

/// Messages are shown, and may quote a name of the user or a text of the peer.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let shown = |character: char| match character.is_control() {
        true => '\u{fffd}',
        false => character,
    };
    words.join(" ").chars().map(shown).collect()
}

impl From<ChannelError> for Failure {
    fn from(error: ChannelError) -> Self {
        match &error {
            ChannelError::PeerMisbehaved(_) => Self::new(Kind::Peer, error).with_hint(
                "check which program the address belongs to, and that both sides have the same version of volery",
            ),
            ChannelError::Disconnected => {
                Self::new(Kind::Network, "the peer closed the connection before the end")
                    .with_hint("see the peer's own error message for the cause")
            }
            ChannelError::TimedOut(_) => Self::new(Kind::Network, error)
                .with_hint("check that the peer is running; a longer timeout waits longer for data or a heartbeat"),
            ChannelError::Io(error) => {
                Self::new(Kind::Network, format_args!("network error: {error}"))
            }
            ChannelError::Mismatch { field, .. } if field == "role" => {
                Self::new(Kind::Settings, error)
            }
            ChannelError::Mismatch {
                field,
                ours,
                theirs,
            } => {
                let what = format_args!(
                    "the two sides differ in {field}: {ours} here, {theirs} at the peer"
                );
                let hint = match field.as_str() {
                    volery_matching::KEYS => {
                        "both sides give as many keys in the same order, with the same types and normalisers; the names of the columns may differ"
                    }
                    volery_matching::BOTH => {
                        "the sender gets the result only if both sides set 'both'"
                    }
                    volery_matching::NAMES => {
                        "give a name in 'valueNames' for each of the sender's columns, in their order, or none"
                    }
                    _ => "start both sides with the same settings and the same version of volery",
                };
                Self::new(Kind::Settings, what).with_hint(hint)
            }
            ChannelError::Unavailable(_) => {
                Self::new(Kind::Network, error).with_hint("start it again later")
            }
            ChannelError::Refused(_) | ChannelError::Unauthenticated(_) => {
                Self::new(Kind::Peer, error)
            }
            _ => Self::new(Kind::Data, error),
        }
    }
}

impl From<ProtocolError> for Failure {
    fn from(error: ProtocolError) -> Self {
        let seconds = |wait: &Duration| wait.as_secs();
        match &error {
            ProtocolError::OtherKey { .. } | ProtocolError::OtherVersion => {
                let hint = match &error {
                    ProtocolError::OtherVersion => "'refresh' fetches the filter again",
                    _ => {
                        "if the operator of the server confirms its new key, 'refresh' fetches the filter again"
                    }
                };
                Self { other_filter: true, ..Self::new(Kind::Settings, error).with_hint(hint) }
            }
            ProtocolError::Budget { wait: Some(wait), .. } => {
                let wait = seconds(wait);
                let hint = format_args!("ask for fewer keys, or come again in {wait} s");
                Self::new(Kind::Usage, &error).with_hint(hint)
            }
            ProtocolError::Budget { wait: None, .. } => Self::new(Kind::Usage, error)
                .with_hint("ask for fewer keys, or ask the operator of the server for more"),
            ProtocolError::Later { wait, .. } => {
                let wait = seconds(wait);
                Self::new(Kind::Network, &error).with_hint(format_args!("come again in {wait} s"))
            }
            ProtocolError::Channel(_) => match error {
                ProtocolError::Channel(error) => error.into(),
                other => Self::new(Kind::Data, other),
            },
            _ => Self::new(Kind::Data, error),
        }
    }
}

impl From<volery_tables::Error> for Failure {
    fn from(error: volery_tables::Error) -> Self {
        let failure = Self::new(Kind::Data, &error);
        match error.hint() {
            Some(hint) => failure.with_hint(in_javascript(&hint)),
            None => failure,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let hint = error.hint();
        let failure = match error {
            Error::Protocol(error) => return error.into(),
            Error::Table(error) => return error.into(),
            Error::LongKeys => Self::usage("key", Error::LongKeys),
            other => Self::new(Kind::Data, other),
        };
        match hint {
            Some(hint) => failure.with_hint(in_javascript(hint)),
            None => failure,
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Run(error) => error.into(),
            WriteError::Names(what) => Self::usage("valueNames", what),
            other => Self::new(Kind::Data, other),
        }
    }
}

impl From<SettingsError> for Failure {
    fn from(wrong: SettingsError) -> Self {
        let option = in_javascript(wrong.option);
        let failure = Self::usage(&option, in_javascript(&wrong.what));
        match &*wrong.hint {
            "" => failure,
            hint => failure.with_hint(in_javascript(hint)),
        }
    }
}

/// The program's options in a text as those of the package: `--empty-keys` is `emptyKeys`.
fn in_javascript(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(place) = rest.find("--") {
        let (before, after) = rest.split_at(place);
        out += before;
        let after = &after[2..];
        let end = after.find(|c: char| !(c.is_ascii_lowercase() || c == '-'));
        let (name, left) = after.split_at(end.unwrap_or(after.len()));
        let mut words = name.split('-');
        out += words.next().unwrap_or_default();
        for word in words {
            let (first, others) = word.split_at(word.len().min(1));
            out += &first.to_ascii_uppercase();
            out += others;
        }
        rest = left;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_names_of_javascript() {
        assert_eq!(
            in_javascript("--empty-keys skip leaves them out; remove --both"),
            "emptyKeys skip leaves them out; remove both"
        );
        assert_eq!(in_javascript("--key"), "key");
        assert_eq!(in_javascript("a -- b"), "a  b");
    }

    #[test]
    fn messages_are_one_line() {
        let failure = Failure::usage("key", "a\nb\u{1b}[2J").with_hint("c\td");
        assert_eq!(failure.message, "key: a b\u{fffd}[2J");
        assert_eq!(failure.hint.as_deref(), Some("c d"));
    }

    #[test]
    fn kinds_are_those_of_the_program() {
        let kind = |error: ChannelError| Failure::from(Error::from(error)).kind;
        assert_eq!(kind(ChannelError::PeerMisbehaved("x")), Kind::Peer);
        assert_eq!(kind(ChannelError::Disconnected), Kind::Network);
        let mismatch = ChannelError::Mismatch {
            field: volery_matching::KEYS.to_owned(),
            ours: "text".to_owned(),
            theirs: "email".to_owned(),
        };
        assert_eq!(kind(mismatch), Kind::Settings);
        assert!(Failure::from(ProtocolError::OtherVersion).other_filter);
    }
}
