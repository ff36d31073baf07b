//! The errors between the two parties.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::agree::DRAWN;

/// The result of an operation with the peer.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a call on the channel, or a protocol on top of it, failed.
///
/// No variant holds secrets. Text from the peer is shortened and escaped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation of the operating system failed.
    #[error("input or output failed: {0}")]
    Io(#[source] io::Error),

    /// The peer closed the connection, or vanished, before it had sent everything that the protocol
    /// expects.
    #[error(
        "the peer closed the connection before the protocol finished; see the peer's own error message"
    )]
    Disconnected,

    /// No byte moved within the timeout. Holds the operation that was waiting.
    #[error("timed out: {0}")]
    TimedOut(String),

    /// The proxy on the way to the peer did not connect this party to it. Holds the proxy, the
    /// peer and the answer, and what to do.
    #[error("the proxy {0}")]
    Proxy(String, &'static str),

    /// This party waited at a gateway until its time was over, and the peer did not come. Holds
    /// that time.
    #[error("the peer did not come to the gateway within {0:?}")]
    Absent(Duration),

    /// The peer sent something that an honest party never sends. Holds a description.
    ///
    /// The caller must not go on with the state it holds: the peer may be trying to learn something
    /// from it.
    #[error("the peer does not follow the protocol: {0}")]
    PeerMisbehaved(&'static str),

    /// The two parties were started with different settings. Holds the first difference.
    #[error("{}", describe_mismatch(field, ours, theirs))]
    Mismatch {
        /// The name of the setting.
        field: String,
        /// Its value on this side.
        ours: String,
        /// Its value on the peer's side, shortened and escaped.
        theirs: String,
    },

    /// The address is not on the loopback interface, where the connection would be neither
    /// authenticated nor encrypted: use `tls`.
    #[error(
        "{0} is not a loopback address: off the machine both parties must be authenticated, each with an identity and the \
         fingerprint of the other's"
    )]
    NotLoopback(SocketAddr),

    /// This party's own identity cannot be used. Holds the reason.
    #[error("this identity cannot be used: {0}")]
    Identity(String),

    /// The other side does not have the pinned fingerprint, or its identity is not valid. Holds the
    /// reason.
    #[error("the other side is not authenticated: {0}")]
    Unauthenticated(String),

    /// The other side does not accept this party's identity. Holds the reason, as far as the other
    /// side reports it.
    #[error("the other side does not accept this identity: {0}")]
    Refused(String),

    /// A server of many clients, or the gateway, does not serve this one now: it is full, or
    /// another attempt of this worker has come before. A later attempt may succeed.
    #[error("not served now: {0}")]
    Unavailable(String),

    /// The card that this party computes on cannot be used, or failed. Holds what is wrong.
    #[error("{0}")]
    Card(String),

    /// The caller made a call that the object does not have. Nothing was sent, and the object is as
    /// before. Holds what is wrong with the call.
    #[error("{0}")]
    Usage(String),

    /// This party cancelled: see [`Cancel`](crate::Cancel).
    #[error("cancelled")]
    Cancelled,

    /// An earlier call on this channel, or on this protocol object, failed: the two parties may
    /// disagree on their positions, and the object's state has been wiped.
    #[error(
        "this channel or protocol object is unusable because an earlier call failed; see the first error"
    )]
    Broken,
}

impl Error {
    /// Classifies an error of the operating system; `doing` and `timeout` describe a timeout.
    pub(crate) fn from_io(error: io::Error, doing: &str, timeout: Option<Duration>) -> Self {
        use io::ErrorKind as Kind;
        // A transport of this crate has already classified the error.
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

/// Equal are the same variants of the same values; of [`Error::Io`] kind and text count.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Io(one), Self::Io(two)) => {
                one.kind() == two.kind() && one.to_string() == two.to_string()
            }
            // Numbers, addresses and quoted texts, which differ where their values do.
            _ => format!("{self:?}") == format!("{other:?}"),
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
    let what = match field == DRAWN {
        true => "both must make the same draws",
        false => "start both with the same settings",
    };
    format!("the parties disagree on {field}: {ours} here, {theirs} at the peer; {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_sorted() {
        let sort = |kind: io::ErrorKind| Error::from(io::Error::from(kind));
        assert!(matches!(sort(io::ErrorKind::BrokenPipe), Error::Disconnected));
        assert!(matches!(sort(io::ErrorKind::UnexpectedEof), Error::Disconnected));
        assert!(matches!(sort(io::ErrorKind::ConnectionReset), Error::Disconnected));
        assert!(matches!(sort(io::ErrorKind::WouldBlock), Error::TimedOut(_)));
        assert!(matches!(sort(io::ErrorKind::PermissionDenied), Error::Io(_)));
    }

    #[test]
    fn equal_errors() {
        let io = |text: &'static str| Error::from(io::Error::other(text));
        assert_eq!(io("a"), io("a"));
        assert_ne!(io("a"), io("b"));
        assert_ne!(Error::PeerMisbehaved("a"), Error::PeerMisbehaved("b"));
        assert_ne!(Error::Broken, Error::Disconnected);
    }
}
