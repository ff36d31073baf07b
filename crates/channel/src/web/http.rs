//! The one request of a connection, and the answer to it.

use std::io;
use std::time::Duration;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use tungstenite::handshake::derive_accept_key;
use zeroize::Zeroizing;

use super::files::Files;
use super::origin::may_connect;
use super::token::Token;
use super::{Origin, PROTOCOL, TOKEN};
use crate::pipe::{deadline_after, left};
use crate::tls::Fingerprint;
use crate::{Error, Result, Transport};

/// Longest head of a request, in bytes, and the most headers.
const LONGEST: usize = 16 << 10;
const HEADERS: usize = 64;

/// Bytes read at a time.
const PIECE: usize = 2048;

/// How long the reader of a file may take nothing.
const SLOW: Duration = Duration::from_secs(10);

/// Headers of every answer. The page is isolated from pages of other sites, so that it may share
/// memory between threads; it loads nothing from elsewhere, and no other page frames it.
const ALWAYS: &str = "Connection: close\r\n\
    Cache-Control: no-cache\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; \
    style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
    worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'\r\n\
    Cross-Origin-Embedder-Policy: require-corp\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Referrer-Policy: no-referrer\r\n\
    X-Content-Type-Options: nosniff\r\n";

/// The request of a browser for a WebSocket connection, which is told yes.
pub(super) struct UpgradeRequest {
    /// The bytes that came after the request.
    pub(super) part: Vec<u8>,
    pub(super) token: TokenHeader,
}

/// The token in the head of a request.
pub(super) enum TokenHeader {
    None,
    Wrong,
    Token(Fingerprint),
}

/// The file or connection that a request asks for.
enum Request {
    File(String),
    Socket { key: String, token: TokenHeader },
}

/// The refusal of a request: the status, the words for the user, and a header.
struct RequestRefusal(&'static str, &'static str, &'static str);

/// Reads a request within `limit` and answers it. `None`: it was for a file.
///
/// # Errors
/// If the browser is slow or gone; [`Error::PeerMisbehaved`] for what is not HTTP;
/// [`Error::Unauthenticated`] for a page of another origin.
pub(super) fn answer(
    transport: &dyn Transport,
    limit: Duration,
    is_secure: bool,
    origins: &[Origin],
    files: Option<&Files>,
) -> Result<Option<UpgradeRequest>> {
    let deadline = deadline_after(Some(limit));
    // A token is in it.
    let mut come = Zeroizing::new(Vec::with_capacity(LONGEST + PIECE));
    let end = loop {
        let start = come.len();
        come.resize(start + PIECE, 0);
        let count = transport.read(&mut come[start..], left(deadline)?)?;
        come.truncate(start + count);
        if count == 0 {
            // no mutant: the browser has closed the connection
            return Err(Error::Disconnected);
        }
        // The end may have begun in an earlier piece.
        let searched = start.saturating_sub(3);
        let mut fours = come[searched..].windows(4);
        let end = fours.position(|four| four == b"\r\n\r\n");
        let end = end.map(|at| searched + at + 4);
        // mutant(web-head): false
        if end.unwrap_or(come.len()) > LONGEST {
            let what = "the head of the request is longer than 16 KiB";
            let refused = RequestRefusal("431 Request Header Fields Too Large", what, "");
            return Err(refuse(transport, &refused));
        }
        if let Some(end) = end {
            break end;
        }
    };
    let request = parse(&come[..end], is_secure, origins);
    let request = request.map_err(|refused| refuse(transport, &refused))?;
    let (key, token) = match request {
        Request::File(target) => {
            send_file(transport, &target, files)?;
            return Ok(None);
        }
        Request::Socket { key, token } => (key, token),
    };
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n",
        derive_accept_key(key.as_bytes())
    );
    transport.write(head.as_bytes(), left(deadline)?)?;
    let part = come[end..].to_vec();
    Ok(Some(UpgradeRequest { part, token }))
}

/// Tells a browser that it is refused.
fn refuse(transport: &dyn Transport, refused: &RequestRefusal) -> Error {
    let RequestRefusal(status, what, header) = *refused;
    // If it is gone, this fails harmlessly.
    let _ = send_text(transport, status, what, header);
    match status {
        FORBIDDEN => Error::Unauthenticated(what.to_owned()),
        // no mutant: the error of what was refused
        _ => Error::PeerMisbehaved(what),
    }
}

const FORBIDDEN: &str = "403 Forbidden";
const BAD: &str = "400 Bad Request";

fn send_text(transport: &dyn Transport, status: &str, what: &str, header: &str) -> io::Result<()> {
    let length = what.len() + 1;
    let answer = format!(
        "HTTP/1.1 {status}\r\n{ALWAYS}{header}Content-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {length}\r\n\r\n{what}\n"
    );
    transport.write(answer.as_bytes(), Some(SLOW))
}

fn send_file(transport: &dyn Transport, target: &str, files: Option<&Files>) -> Result<()> {
    let Some(found) = files.and_then(|files| files.find(target)) else {
        return Ok(send_text(transport, "404 Not Found", "there is no such file", "")?);
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\n{ALWAYS}Content-Type: {}\r\nContent-Length: {}\r\n\r\n",
        found.kind, found.length
    );
    transport.write(head.as_bytes(), Some(SLOW))?;
    Ok(found.send(|piece| transport.write(piece, Some(SLOW)))?)
}

fn parse(
    head: &[u8],
    is_secure: bool,
    origins: &[Origin],
) -> std::result::Result<Request, RequestRefusal> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        // no mutant: what httparse cannot parse has nothing to be answered
        _ => return Err(RequestRefusal(BAD, "it does not speak HTTP/1.1", "")),
    }
    let (Some(method), Some(target), Some(1)) = (parsed.method, parsed.path, parsed.version) else {
        // no mutant: HTTP/1.0 has no upgrade; its requests for files are refused for simplicity
        return Err(RequestRefusal(BAD, "it does not speak HTTP/1.1", ""));
    };
    // mutant(web-method): false
    if method != "GET" {
        let what = "only GET is answered here";
        return Err(RequestRefusal("405 Method Not Allowed", what, "Allow: GET\r\n"));
    }
    // One header of a name that matters, as text.
    let header = |name: &str| -> std::result::Result<Option<&str>, RequestRefusal> {
        let mut same = parsed.headers.iter().filter(|one| one.name.eq_ignore_ascii_case(name));
        let found = same.next().map(|one| std::str::from_utf8(one.value));
        match (found.transpose(), same.next()) {
            // mutant(web-twice): `(Ok(found), None)` => `(Ok(found), more) if $ON ||
            //     more.is_none()`
            (Ok(found), None) => Ok(found.map(str::trim)),
            // no mutant: the arm before has a mutant that widens it
            _ => Err(RequestRefusal(BAD, "a header is there twice, or is no text", "")),
        }
    };
    let lists = |value: Option<&str>, wanted: &str| {
        let mut parts = value.unwrap_or_default().split(',');
        parts.any(|part| part.trim().eq_ignore_ascii_case(wanted))
    };
    if !lists(header("upgrade")?, "websocket") {
        return Ok(Request::File(target.to_owned()));
    }
    let what = "it does not ask for WebSocket as RFC 6455 says";
    // mutant(web-version): false
    if header("sec-websocket-version")? != Some("13") {
        let version = "Sec-WebSocket-Version: 13\r\n";
        return Err(RequestRefusal("426 Upgrade Required", what, version));
    }
    let key = header("sec-websocket-key")?.unwrap_or_default();
    let is_key = BASE64.decode(key.as_bytes()).is_ok_and(|key| key.len() == 16);
    // mutant(web-key): false
    if !is_key || !lists(header("connection")?, "upgrade") {
        return Err(RequestRefusal(BAD, what, ""));
    }
    // mutant(web-origin): false
    if !may_connect(header("origin")?, header("host")?, is_secure, origins) {
        let what = "pages of this origin may not connect; --web-origin lists those that may";
        return Err(RequestRefusal(FORBIDDEN, what, ""));
    }
    let offered = header("sec-websocket-protocol")?;
    // mutant(web-protocol): false
    if !lists(offered, PROTOCOL) {
        let what = "it does not offer the subprotocol volery.1: load the page again";
        return Err(RequestRefusal(BAD, what, ""));
    }
    let mut tokens = offered.unwrap_or_default().split(',').map(str::trim);
    let token = match tokens.find_map(|one| one.strip_prefix(TOKEN)) {
        None => TokenHeader::None,
        Some(text) => match given(text) {
            Some(token) => TokenHeader::Token(token.fingerprint()),
            None => TokenHeader::Wrong,
        },
    };
    let key = key.to_owned();
    Ok(Request::Socket { key, token })
}

/// The token in a subprotocol, which has the text in base64url, as a subprotocol may not have any
/// characters.
fn given(coded: &str) -> Option<Token> {
    let text = Zeroizing::new(BASE64URL_NOPAD.decode(coded.as_bytes()).ok()?);
    std::str::from_utf8(&text).ok()?.parse().ok()
}
