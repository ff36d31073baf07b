//! The first message of a session, which checks that both parties are about to run the same
//! protocol.
//!
//! ```text
//! both at once      ----  hello  ---->   <----  hello  ----     then both compare
//!
//! hello = magic (8 bytes) | version (u16) | length of the body (u16, at most 4096) | body
//! body  = release | protocol | role | number of fields (u16) | (name | value)*  | nonce (32 bytes)
//! ```
//!
//! Numbers are little endian; a string is its length in bytes (u16) and its UTF-8 bytes. Both send
//! before either compares, so both learn of a difference. Nothing is negotiated.
//!
//! The handshake does not authenticate the parties: it protects against mistakes, and gives both
//! the same [`SessionId`], which is fresh if either nonce is.
//!
//! Cost: 1 message in each direction, at most 4,108 bytes.

use std::io;

use volery_os::time::Instant;

use crate::pipe::deadline_after;
use crate::{Channel, Error, Result};

/// The first bytes of every session. The first one is not ASCII, so no text protocol begins with
/// it.
const MAGIC: [u8; 8] = *b"\x89volery\n";

/// Version of the layout above.
const VERSION: u16 = 1;

/// Longest body, in bytes.
const BODY_BOUND: usize = 4096;

/// Maximum characters of the peer's text that an error repeats, before escaping.
const SHOWN: usize = 60;

pub(crate) const NOT_VOLERY: Error = Error::PeerMisbehaved(
    "it does not speak volery: check that no other program uses this address",
);
pub(crate) const TLS: Error = Error::PeerMisbehaved(
    "it speaks TLS: give this side an identity and the peer's fingerprint, too",
);
const MALFORMED: Error = Error::PeerMisbehaved("its hello is malformed");

/// The settings of a party's run.
///
/// The order of the fields matters: the parties compare them from first to last, and the first
/// difference is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The protocol, for instance `vole`.
    pub protocol: &'static str,
    /// This party's role in it, for instance `sender`. The two parties must have different roles.
    pub role: &'static str,
    /// Names and values of all settings that must be the same on both sides: ring, sizes,
    /// parameters, security, noise. Not those that each side may choose for itself, such as the
    /// number of threads, and no secrets.
    pub fields: Vec<(&'static str, String)>,
}

/// A name for the session that both parties know and neither could choose alone; it keys the hashes
/// of the session.
///
/// Not a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId([u8; 32]);

impl SessionId {
    /// A session id from its bytes. The same bytes in two sessions void the separation between
    /// them.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Compares `hello` with the peer's and derives the session id; `nonce` is 32 fresh random bytes.
///
/// The whole exchange is bounded by [`Channel::timeout`], however the peer's bytes trickle in.
///
/// # Errors
/// [`Error::Mismatch`] with the first difference, at both parties; [`Error::PeerMisbehaved`] if the
/// peer does not speak volery; [`Error::Io`] if `hello` is longer than 4,096 bytes; and if the
/// channel fails. The channel is unusable after any error.
pub fn handshake(channel: &mut Channel, hello: &Hello, nonce: [u8; 32]) -> Result<SessionId> {
    handshake_then(channel, hello, nonce, |_| Ok(()))
}

/// Runs [`handshake`] with a first message: `send` sends its bytes right after the hello, before
/// this side has received anything.
pub(crate) fn handshake_then(
    channel: &mut Channel,
    hello: &Hello,
    nonce: [u8; 32],
    send: impl FnOnce(&mut Channel) -> Result<()>,
) -> Result<SessionId> {
    let error = match exchange(channel, hello, nonce, send) {
        Err(Error::TimedOut(_)) => Error::TimedOut(format!(
            "the peer did not complete its hello within {:?}",
            channel.timeout().unwrap_or_default()
        )),
        Err(error) => error,
        ok => return ok,
    };
    // mutant(hello-fails-channel): `channel.fail(error)` => `error`
    Err(channel.fail(error))
}

fn exchange(
    channel: &mut Channel,
    hello: &Hello,
    nonce: [u8; 32],
    send: impl FnOnce(&mut Channel) -> Result<()>,
) -> Result<SessionId> {
    let deadline = deadline_after(channel.timeout());
    let ours = encode(hello, &nonce)?;
    let said = channel.send(&ours).and_then(|()| send(channel)).and_then(|()| channel.flush());
    let gone = match said {
        Ok(()) => false,
        Err(Error::Disconnected) => true,
        Err(error) => return Err(error),
    };
    // A peer that has found a difference closes while this party is sending. Its hello can still be
    // read.
    let theirs = recv_hello(channel, hello, deadline)?;
    // mutant(hello-gone): false
    if gone {
        return Err(Error::Disconnected);
    }

    // mutant(session-ours): `&ours` => `&theirs.bytes`
    let mut hellos = [(hello.role, &ours), (theirs.role.as_str(), &theirs.bytes)];
    hellos.sort();
    let mut hasher = blake3::Hasher::new_derive_key("volery session id, version 1");
    // Each hello states its own length.
    hellos.iter().for_each(|(_, hello)| {
        // mutant(session-constant): `hello` => `&[]`
        hasher.update(hello);
    });
    Ok(SessionId(hasher.finalize().into()))
}

/// The peer's hello: its role and all its bytes, if the rest equals `ours`.
struct PeerHello {
    role: String,
    bytes: Vec<u8>,
}

fn recv_hello(channel: &mut Channel, ours: &Hello, deadline: Option<Instant>) -> Result<PeerHello> {
    let mut theirs = [0; HEADER].to_vec();
    // Byte by byte: a peer with another protocol may have sent fewer bytes and be waiting for an
    // answer.
    for (place, expected) in MAGIC.iter().enumerate() {
        channel.recv_only(&mut theirs[place..=place], deadline)?;
        // mutant(hello-magic): `theirs[place]` => `*expected`
        match theirs[place] {
            byte if byte == *expected => {}
            // The first byte of a TLS handshake or alert.
            0x15 | 0x16 if place == 0 => return Err(TLS),
            _ => return Err(NOT_VOLERY),
        }
    }
    channel.recv_only(&mut theirs[MAGIC.len()..], deadline)?;
    let length = check_header(&theirs)?;
    theirs.resize(HEADER + length, 0);
    channel.recv_only(&mut theirs[HEADER..], deadline)?;
    // mutant(hello-malformed): `(&theirs[HEADER..]).` => `$0or(if $ON { decode(&encode(&Hello {
    //     role: "other", ..ours.clone() }, &[0; 32])?[HEADER..]) } else { None }).`
    let body = decode(&theirs[HEADER..]).ok_or(MALFORMED)?;
    compare(ours, &body)?;
    Ok(PeerHello { role: body.role, bytes: theirs })
}

const HEADER: usize = MAGIC.len() + 4;

/// The release of volery: two releases may differ in their messages.
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
            "the settings are too long for a hello message",
        ))
    };
    let mut body = Vec::new();
    for text in [RELEASE, hello.protocol, hello.role] {
        put(text, &mut body).ok_or_else(too_long)?;
    }
    body.extend(u16::try_from(hello.fields.len()).map_err(|_| too_long())?.to_le_bytes());
    for (name, value) in &hello.fields {
        put(name, &mut body).ok_or_else(too_long)?;
        put(value, &mut body).ok_or_else(too_long)?;
    }
    body.extend(nonce);
    let length =
        u16::try_from(body.len()).ok().filter(|_| body.len() <= BODY_BOUND).ok_or_else(too_long)?;
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
    // mutant(hello-magic-again): `(&MAGIC).` => `$0or(if $ON { header.get(8..) } else { None }).`
    let mut rest = header.strip_prefix(&MAGIC).ok_or(NOT_VOLERY)?;
    // no mutant: as many bytes are read as a header has
    let version = take_u16(&mut rest).ok_or(MALFORMED)?;
    // mutant(hello-version): false
    if version != VERSION {
        return Err(mismatch("handshake version", &VERSION.to_string(), &version.to_string()));
    }
    // no mutant: as many bytes are read as a header has
    let length = usize::from(take_u16(&mut rest).ok_or(MALFORMED)?);
    // mutant(hello-length): false
    if length > BODY_BOUND { Err(MALFORMED) } else { Ok(length) }
}

/// Decodes any bytes; `None` if they are not exactly one body.
fn decode(mut bytes: &[u8]) -> Option<Body> {
    let rest = &mut bytes;
    let (release, protocol, role) = (take_text(rest)?, take_text(rest)?, take_text(rest)?);
    let count = take_u16(rest)?;
    // Each field takes bytes, so the bound on the body also bounds this.
    let fields =
        (0..count).map(|_| Some((take_text(rest)?, take_text(rest)?))).collect::<Option<_>>()?;
    // mutant(hello-nonce): `take(rest, 32)?;` => `if $ON { take(rest, rest.len().min(32)); } else {
    //     $0 }`
    take(rest, 32)?;
    // mutant(hello-rest): `rest.is_empty()` => `true`
    rest.is_empty().then_some(Body { release, protocol, role, fields })
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
        // mutant(hello-same): true
        if ours == theirs { Ok(()) } else { Err(mismatch(field, ours, theirs)) }
    };
    // mutant(hello-release): drop
    same("volery version", RELEASE, &theirs.release)?;
    // mutant(hello-protocol): drop
    same("protocol", ours.protocol, &theirs.protocol)?;
    // mutant(hello-role): false
    if ours.role == theirs.role {
        return Err(mismatch("role", ours.role, &theirs.role));
    }
    let absent = "(not stated)";
    for (number, (name, value)) in ours.fields.iter().enumerate() {
        match theirs.fields.get(number) {
            Some((their_name, their_value)) if their_name == name => {
                same(name, value, their_value)?
            }
            // mutant(hello-field): insert `_ if $ON => {}`
            _ => return Err(mismatch(name, value, absent)),
        }
    }
    match theirs.fields.get(ours.fields.len()) {
        // mutant(hello-more-fields): insert `Some(_) if $ON => Ok(()),`
        Some((name, value)) => Err(mismatch(name, absent, value)),
        None => Ok(()),
    }
}

fn mismatch(field: &str, ours: &str, theirs: &str) -> Error {
    // Long values often share a prefix.
    let alike = ours.chars().zip(theirs.chars()).take_while(|(a, b)| a == b).count();
    let start = if alike < SHOWN { 0 } else { alike - SHOWN / 2 };
    Error::Mismatch {
        field: shown(field, 0),
        ours: shown(ours, start),
        theirs: shown(theirs, start),
    }
}

/// At most [`SHOWN`] characters of `text` from character `start` on, without terminal control
/// characters.
fn shown(text: &str, start: usize) -> String {
    let mut rest = text.chars().skip(start);
    let part: String = rest.by_ref().take(SHOWN).flat_map(char::escape_debug).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if rest.next().is_some() { "…" } else { "" };
    format!("{before}{part}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(hello: &Hello) -> Vec<u8> {
        encode(hello, &[7; 32]).unwrap()[HEADER..].to_vec()
    }

    fn example() -> Hello {
        Hello {
            protocol: "vole",
            role: "sender",
            fields: vec![("ring", "fp61".into()), ("empty", String::new()), ("note", "é".into())],
        }
    }

    #[test]
    fn only_whole_bodies_are_accepted() {
        let bytes = body(&example());
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), None, "the first {end} bytes");
        }
        let mut longer = bytes;
        longer.push(0);
        assert_eq!(decode(&longer), None);
    }

    #[test]
    fn the_longest_hello_fits_and_a_longer_one_is_an_error() {
        let with = |length: usize| {
            encode(&Hello { fields: vec![("f", "x".repeat(length))], ..example() }, &[0; 32])
        };
        let room = BODY_BOUND - (with(0).unwrap().len() - HEADER);
        let longest = with(room).unwrap();
        assert_eq!(check_header(&longest[..HEADER]).unwrap(), BODY_BOUND);
        assert!(matches!(with(room + 1), Err(Error::Io(_))));
        assert!(matches!(with(1 << 16), Err(Error::Io(_))));
    }

    #[test]
    fn headers_are_checked() {
        let header = encode(&example(), &[0; 32]).unwrap()[..HEADER].to_vec();
        let changed = |place: usize, byte: u8| {
            let mut header = header.clone();
            header[place] = byte;
            check_header(&header)
        };
        assert!(matches!(changed(0, b'v'), Err(Error::PeerMisbehaved(_))));
        assert!(matches!(changed(8, 9), Err(Error::Mismatch { .. })));
        assert!(
            matches!(changed(11, 0x11), Err(Error::PeerMisbehaved(_))),
            "longer than the bound"
        );
        assert!(matches!(check_header(&[]), Err(Error::PeerMisbehaved(_))));
    }

    #[test]
    fn another_release_is_refused() {
        let ours = Hello { role: "receiver", ..example() };
        let mut theirs = decode(&body(&example())).unwrap();
        assert!(compare(&ours, &theirs).is_ok());
        theirs.release.push('1');
        let refused = compare(&ours, &theirs);
        assert!(matches!(refused, Err(Error::Mismatch { field, .. }) if field == "volery version"));
    }

    #[test]
    fn a_late_difference_is_shown() {
        let alike = "é".repeat(200);
        let error = mismatch("set", &format!("{alike}1{alike}"), &format!("{alike}2{alike}"));
        let Error::Mismatch { ours, theirs, .. } = error else { panic!("no mismatch") };
        assert_eq!(ours.replace('1', "2"), theirs);
        assert_ne!(ours, theirs);
    }
}
