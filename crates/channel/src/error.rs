//! What can go wrong between the two parties.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// The result of talking to the peer.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call on the channel, or a protocol on top of it, failed.
///
/// No variant holds anything secret. Text that came from the peer is shortened and escaped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("input or output failed: {0}")]
    Io(#[source] io::Error),

    /// The peer closed the connection, or went away, before it had sent all that the protocol expects.
    #[error(
        "the peer closed the connection before the protocol was over; its own error message says why"
    )]
    Disconnected,

    /// Nothing moved for as long as the timeout allows. Holds what this party was waiting for.
    #[error("timed out: {0}")]
    TimedOut(String),

    /// The peer sent something that an honest party never sends. Holds what it was.
    ///
    /// Whoever gets this must not go on with the state it holds: the peer may be trying to learn something from it.
    #[error("the peer does not follow the protocol: {0}")]
    PeerMisbehaved(&'static str),

    /// The two parties were started with different settings; the first one that differs.
    #[error("{}", describe_mismatch(field, ours, theirs))]
    Mismatch {
        /// The name of the setting.
        field: String,
        /// Its value on this side.
        ours: String,
        /// Its value on the peer's side, shortened and escaped.
        theirs: String,
    },

    /// The address is not on the loopback interface, and the connection would be neither authenticated nor encrypted:
    /// `tls` makes one that is.
    #[error(
        "{0} is not a loopback address: off the machine both parties must be authenticated, each with an identity and the \
         fingerprint of the other's"
    )]
    NotLoopback(SocketAddr),

    /// This party's own identity cannot be used. Holds why.
    #[error("this identity cannot be used: {0}")]
    Identity(String),

    /// The other side is not the one whose fingerprint is pinned, or its identity is not valid. Holds why.
    #[error("the other side is not authenticated: {0}")]
    Unauthenticated(String),

    /// The other side does not accept this party's identity. Holds why, as far as it says.
    #[error("the other side does not accept this identity: {0}")]
    Refused(String),

    /// An earlier call on this channel, or on this object of a protocol, failed: the two parties no longer agree on where they
    /// are, and what the object held has been given up.
    #[error(
        "nothing more can be done here because an earlier call failed; the first error says why"
    )]
    Broken,
}

impl Error {
    /// Sorts an error of the operating system; `doing` and `timeout` describe a timeout.
    pub(crate) fn from_io(error: io::Error, doing: &str, timeout: Option<Duration>) -> Self {
        use io::ErrorKind as Kind;
        // What a transport of this crate has sorted already.
        let error = match error.downcast::<Self>() {
            Ok(sorted) => return sorted,
            Err(error) => error,
        };
        match error.kind() {
            Kind::UnexpectedEof
            | Kind::BrokenPipe
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::NotConnected => Self::Disconnected,
            Kind::TimedOut | Kind::WouldBlock => Self::TimedOut(match timeout {
                Some(timeout) => format!("no progress for {timeout:?} while {doing}"),
                None => format!("no progress while {doing}"),
            }),
            _ => Self::Io(error),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::from_io(error, "waiting for the peer", None)
    }
}

fn describe_mismatch(field: &str, ours: &str, theirs: &str) -> String {
    if field == "role" && ours == theirs {
        return format!("both parties have the role {ours:?}: start one of them in the other role");
    }
    format!(
        "the parties disagree on {field}: {ours} here, {theirs} at the peer; start both with the same settings"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_sorted() {
        let sort = |kind: io::ErrorKind| Error::from(io::Error::from(kind));
        assert!(matches!(
            sort(io::ErrorKind::BrokenPipe),
            Error::Disconnected
        ));
        assert!(matches!(
            sort(io::ErrorKind::UnexpectedEof),
            Error::Disconnected
        ));
        assert!(matches!(
            sort(io::ErrorKind::ConnectionReset),
            Error::Disconnected
        ));
        assert!(matches!(
            sort(io::ErrorKind::WouldBlock),
            Error::TimedOut(_)
        ));
        assert!(matches!(
            sort(io::ErrorKind::PermissionDenied),
            Error::Io(_)
        ));
    }

    #[test]
    fn mismatch_names_both_values() {
        let error = Error::Mismatch {
            field: "n".into(),
            ours: "10".into(),
            theirs: "20".into(),
        };
        let text = error.to_string();
        assert!(
            text.contains("disagree on n")
                && text.contains("10 here")
                && text.contains("20 at the peer")
        );
    }
}
