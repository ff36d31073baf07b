//! Errors that blame the peer.

use volery_channel::Error as ChannelError;
use volery_matching::Error;

/// An error of a peer that does not follow the protocol.
pub(crate) fn misbehaved(what: &'static str) -> Error {
    ChannelError::PeerMisbehaved(what).into()
}
