//! The side of the server until a browser has shown who it is.

use std::time::Duration;

use super::http::{TokenHeader, UpgradeRequest, answer};
use super::{Settings, WebSocket, code};
use crate::tcp::Stream;
use crate::tls::Fingerprint;
use crate::{Error, Result, Transport};

/// A browser that is let in.
pub(crate) struct Visitor {
    pub(crate) socket: WebSocket,
    /// The fingerprint of its token, if it has shown one.
    pub(crate) token: Option<Fingerprint>,
}

/// Secures a connection and answers its request within `limit`, but for the time that a file takes;
/// `None` if it was for a file.
///
/// # Errors
/// The reason why the browser is refused, which it is told.
pub(crate) fn shake(
    stream: Stream,
    settings: &Settings,
    limit: Duration,
) -> Result<Option<Visitor>> {
    let is_secure = settings.certificate.is_some();
    let transport: Box<dyn Transport> = match &settings.certificate {
        Some(certificate) => Box::new(certificate.secure(stream, limit)?),
        None => Box::new(stream),
    };
    let (origins, files) = (&settings.origins, settings.files.as_ref());
    let asked = answer(&*transport, limit, is_secure, origins, files)?;
    let Some(UpgradeRequest { part, token }) = asked else {
        return Ok(None);
    };
    let socket = WebSocket::new(transport, part);
    let token = match token {
        TokenHeader::None => None,
        TokenHeader::Token(token) => Some(token),
        // no mutant: without it such a token is none, which is refused where one is required
        TokenHeader::Wrong => return Err(turn_away(&socket)),
    };
    // mutant(web-token): false
    if !(settings.admits)(token) {
        return Err(turn_away(&socket));
    }
    Ok(Some(Visitor { socket, token }))
}

fn turn_away(socket: &WebSocket) -> Error {
    let what = "the access token is missing or not known here: ask the other party for one";
    socket.close(code::TOKEN, what);
    Error::Unauthenticated("it has no access token that is known".to_owned())
}
