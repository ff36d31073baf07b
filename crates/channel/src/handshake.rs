//! The first message of a session: are both parties about to run the same thing?
//!
//! ```text
//! both at once      ----  hello  ---->   <----  hello  ----     then both compare
//!
//! hello = magic (8 bytes) | version (u16) | length of the body (u16, at most 4096) | body
//! body  = release | protocol | role | number of fields (u16) | (name | value)*  | nonce (32 bytes)
//! ```
//!
//! Numbers are little endian; a string is its length in bytes (u16) and its UTF-8 bytes. Both send before either
//! compares, so both learn of a difference. Nothing is negotiated.
//!
//! The handshake does not authenticate anyone: it protects against mistakes, and gives both parties the same
//! [`SessionId`], which is fresh if either nonce is.
//!
//! Cost: 1 message in each direction, at most 4,108 bytes.

use std::io;

use crate::pipe::deadline_after;
use crate::{Channel, Error, Result};

/// The first bytes of every session. The first one is not ASCII, so that no text protocol begins with it.
const MAGIC: [u8; 8] = *b"\x89volery\n";

/// Version of the layout above.
const VERSION: u16 = 1;

/// Longest body, in bytes.
const BODY_BOUND: usize = 4096;

/// Longest text of the peer that an error repeats, in characters before escaping.
const SHOWN: usize = 60;

const NOT_VOLERY: Error =
    Error::PeerMisbehaved("it does not speak volery: is another program using this address?");
const MALFORMED: Error = Error::PeerMisbehaved("its hello is malformed");

/// What a party is about to run.
///
/// The order of the fields counts: the parties compare them from first to last, and the first difference is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The protocol, for instance `vole`.
    pub protocol: &'static str,
    /// This party's role in it, for instance `sender`. The two parties must have different roles.
    pub role: &'static str,
    /// Names and values of all that must be the same on both sides: ring, sizes, parameters, security, noise. Not what
    /// each side may choose for itself, such as the number of threads, and nothing secret.
    pub fields: Vec<(&'static str, String)>,
}

/// A name for the session that both parties know and neither could choose alone; it keys the hashes of the session.
///
/// Not a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId([u8; 32]);

impl SessionId {
    /// A session id from its bytes. The same bytes in two sessions void the separation between them.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Compares `hello` with the peer's and derives the session id; `nonce` is 32 fresh random bytes.
///
/// The whole exchange is bounded by [`Channel::timeout`], however the peer's bytes trickle in.
///
/// # Errors
/// [`Error::Mismatch`] with the first difference, at both parties; [`Error::PeerMisbehaved`] if the peer does not speak
/// volery; [`Error::Io`] if `hello` does not fit into 4,096 bytes; and if the channel fails. The channel is unusable after
/// any error.
pub fn handshake(channel: &mut Channel, hello: &Hello, nonce: [u8; 32]) -> Result<SessionId> {
    exchange(channel, hello, nonce).map_err(|error| channel.fail(error))
}

fn exchange(channel: &mut Channel, hello: &Hello, nonce: [u8; 32]) -> Result<SessionId> {
    let deadline = deadline_after(channel.timeout());
    let ours = encode(hello, &nonce)?;
    channel.send(&ours)?;

    let mut theirs = [0; HEADER].to_vec();
    // Byte by byte: a peer that speaks something else may have sent less than this and be waiting for an answer.
    for (place, expected) in MAGIC.iter().enumerate() {
        channel.recv_until(&mut theirs[place..=place], deadline)?;
        if theirs[place] != *expected {
            return Err(NOT_VOLERY);
        }
    }
    channel.recv_until(&mut theirs[MAGIC.len()..], deadline)?;
    let length = check_header(&theirs)?;
    theirs.resize(HEADER + length, 0);
    channel.recv_until(&mut theirs[HEADER..], deadline)?;
    let body = decode(&theirs[HEADER..]).ok_or(MALFORMED)?;
    compare(hello, &body)?;

    let mut hellos = [(hello.role, &ours), (body.role.as_str(), &theirs)];
    hellos.sort();
    let mut hasher = blake3::Hasher::new_derive_key("volery session id, version 1");
    // Each hello states its own length.
    hellos.iter().for_each(|(_, hello)| {
        hasher.update(hello);
    });
    Ok(SessionId(hasher.finalize().into()))
}

const HEADER: usize = MAGIC.len() + 4;

/// The release of volery: two releases may differ in what they send.
const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// A decoded body.
#[derive(Debug, PartialEq, Eq)]
struct Body {
    release: String,
    protocol: String,
    role: String,
    fields: Vec<(String, String)>,
}

fn encode(hello: &Hello, nonce: &[u8; 32]) -> Result<Vec<u8>> {
    let too_long = || {
        Error::Io(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the settings do not fit into a hello",
        ))
    };
    let mut body = Vec::new();
    for text in [RELEASE, hello.protocol, hello.role] {
        put(text, &mut body).ok_or_else(too_long)?;
    }
    body.extend(
        u16::try_from(hello.fields.len())
            .map_err(|_| too_long())?
            .to_le_bytes(),
    );
    for (name, value) in &hello.fields {
        put(name, &mut body).ok_or_else(too_long)?;
        put(value, &mut body).ok_or_else(too_long)?;
    }
    body.extend(nonce);
    let length = u16::try_from(body.len())
        .ok()
        .filter(|_| body.len() <= BODY_BOUND)
        .ok_or_else(too_long)?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(body);
    Ok(bytes)
}

fn put(text: &str, out: &mut Vec<u8>) -> Option<()> {
    out.extend(u16::try_from(text.len()).ok()?.to_le_bytes());
    out.extend(text.as_bytes());
    Some(())
}

/// Checks version and length; returns the length of the body.
fn check_header(header: &[u8]) -> Result<usize> {
    let mut rest = header.strip_prefix(&MAGIC).ok_or(NOT_VOLERY)?;
    let version = take_u16(&mut rest).ok_or(MALFORMED)?;
    if version != VERSION {
        return Err(mismatch(
            "handshake version",
            &VERSION.to_string(),
            &version.to_string(),
        ));
    }
    let length = usize::from(take_u16(&mut rest).ok_or(MALFORMED)?);
    if length > BODY_BOUND {
        Err(MALFORMED)
    } else {
        Ok(length)
    }
}

/// Decodes any bytes; `None` if they are not exactly one body.
fn decode(mut bytes: &[u8]) -> Option<Body> {
    let rest = &mut bytes;
    let (release, protocol, role) = (take_text(rest)?, take_text(rest)?, take_text(rest)?);
    let count = take_u16(rest)?;
    // Each field takes bytes, so the bound on the body bounds this too.
    let fields = (0..count)
        .map(|_| Some((take_text(rest)?, take_text(rest)?)))
        .collect::<Option<_>>()?;
    take(rest, 32)?;
    rest.is_empty().then_some(Body {
        release,
        protocol,
        role,
        fields,
    })
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn take_u16(rest: &mut &[u8]) -> Option<u16> {
    Some(u16::from_le_bytes(take(rest, 2)?.try_into().ok()?))
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let length = take_u16(rest)?;
    String::from_utf8(take(rest, usize::from(length))?.to_vec()).ok()
}

/// Finds the first difference.
fn compare(ours: &Hello, theirs: &Body) -> Result<()> {
    let same = |field: &str, ours: &str, theirs: &str| {
        if ours == theirs {
            Ok(())
        } else {
            Err(mismatch(field, ours, theirs))
        }
    };
    same("volery version", RELEASE, &theirs.release)?;
    same("protocol", ours.protocol, &theirs.protocol)?;
    if ours.role == theirs.role {
        return Err(mismatch("role", ours.role, &theirs.role));
    }
    let absent = "(not stated)";
    for (number, (name, value)) in ours.fields.iter().enumerate() {
        match theirs.fields.get(number) {
            Some((their_name, their_value)) if their_name == name => {
                same(name, value, their_value)?
            }
            _ => return Err(mismatch(name, value, absent)),
        }
    }
    match theirs.fields.get(ours.fields.len()) {
        Some((name, value)) => Err(mismatch(name, absent, value)),
        None => Ok(()),
    }
}

fn mismatch(field: &str, ours: &str, theirs: &str) -> Error {
    Error::Mismatch {
        field: shown(field),
        ours: shown(ours),
        theirs: shown(theirs),
    }
}

/// `text`, shortened, and without anything that a terminal could obey.
fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
