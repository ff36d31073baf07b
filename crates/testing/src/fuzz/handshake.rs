//! The first message of a session, from an arbitrary peer.

use volery_channel::{Channel, Error, Hello, handshake as shake};

use super::Script;
use super::edits::edited;
use super::replay::Replay;

/// Longest error message: the longest text of the peer that is repeated, escaped, twice, with the
/// surrounding words.
const LONGEST_MESSAGE: usize = 3 * 60 * 10 + 400;

fn hello(role: &'static str) -> Hello {
    let fields = [("ring", "fp61"), ("n", "1000"), ("set", ""), ("note", "é")];
    Hello {
        protocol: "vole",
        role,
        fields: fields.map(|(name, value)| (name, value.to_owned())).into(),
    }
}

const ROLES: [&str; 2] = ["sender", "receiver"];
const NONCES: [[u8; 32]; 2] = [[1; 32], [2; 32]];

/// The bytes that the party of this role sends.
fn said(role: usize) -> Vec<u8> {
    let nobody = Replay::new(Vec::new(), 1);
    let heard = nobody.heard();
    // It sends before it receives.
    let _ = shake(&mut Channel::new(nobody), &hello(ROLES[role]), NONCES[role]);
    heard.bytes()
}

/// A peer's bytes against the handshake of a sender.
///
/// Two bytes select the change of the honest hello and the piece size of the bytes; the rest are
/// the changes.
///
/// # Panics
/// If a guarantee is broken: see [the module](super).
pub fn handshake(data: &[u8]) {
    let mut script = Script(data);
    let piece = usize::from(script.byte()) + 1;
    let honest = said(1);
    let theirs = edited(&honest, &mut script);

    let replay = Replay::new(theirs.clone(), piece);
    let heard = replay.heard();
    let mut channel = Channel::new(replay);
    match shake(&mut channel, &hello(ROLES[0]), NONCES[0]) {
        Ok(session) => {
            // All fields except the role, which may differ, and the nonce.
            let used = channel.stats().bytes_received as usize;
            let again = accepted(&honest, &theirs[..used]);
            assert!(again, "other settings were accepted");
            if theirs.starts_with(&honest) {
                let mut peer = Channel::new(Replay::new(heard.bytes(), piece));
                let theirs = shake(&mut peer, &hello(ROLES[1]), NONCES[1]);
                assert_eq!(theirs.ok(), Some(session), "both sides compute the same session id");
            }
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.chars().any(char::is_control), "the message has no control characters");
            assert!(text.len() <= LONGEST_MESSAGE, "{} bytes", text.len());
            let later = channel.send(&[0]);
            assert!(matches!(later, Err(Error::Broken)), "the channel is broken after a failure");
        }
    }
}

/// Whether `theirs` equals `honest` except for the role and the nonce, compared without decoding.
fn accepted(honest: &[u8], theirs: &[u8]) -> bool {
    let role = ROLES[1].as_bytes();
    let Some(place) = honest.windows(role.len()).position(|part| part == role) else {
        return false;
    };
    // The length of the body and the length of the role before it depend on the role.
    let (length, role_length) = (10..12, place - 2..place);
    let grown = theirs.len() as isize - honest.len() as isize;
    let Some(end) = (place + role.len()).checked_add_signed(grown) else {
        return false;
    };
    let word = |bytes: &[u8], at: &std::ops::Range<usize>| {
        bytes.get(at.clone()).map(|b| i64::from(u16::from_le_bytes([b[0], b[1]])))
    };
    let differs = |at: &std::ops::Range<usize>| {
        word(theirs, at).zip(word(honest, at)).map(|(a, b)| (a - b) as isize)
    };
    let nonce = honest.len() - 32;
    theirs[..length.start] == honest[..length.start]
        && differs(&length) == Some(grown)
        && theirs[length.end..role_length.start] == honest[length.end..role_length.start]
        && differs(&role_length) == Some(grown)
        && theirs.get(place..end) != Some(ROLES[0].as_bytes())
        && theirs.get(end..theirs.len() - 32) == Some(&honest[place + role.len()..nonce])
}
