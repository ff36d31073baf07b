//! Fingerprints, identity files, and the TLS handshake.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, SystemTime};

use volery_channel::tamper::Tampered;
use volery_channel::tls::{BadFingerprint, Fingerprint, Identity, Tls, initiate, respond};
use volery_channel::{Channel, Error, Result, Transport, memory};

use super::Script;
use super::edits::edited;
use super::replay::Replay;

/// Two fictitious identities, valid from 1970 to the end of 9999: with fixed keys an input always
/// has the same result.
const PEM: [&str; 2] = [include_str!("identity/left.pem"), include_str!("identity/right.pem")];

/// The time that a party waits for bytes lost by a change.
const PATIENCE: Duration = Duration::from_millis(100);

fn identities() -> &'static [Identity; 2] {
    static BOTH: OnceLock<[Identity; 2]> = OnceLock::new();
    BOTH.get_or_init(|| {
        PEM.map(|pem| Identity::from_pem(pem).expect("the constant identity file is valid"))
    })
}

/// A byte of options, then a fingerprint, an identity file, a peer's bytes, or changes in transit
/// on a connection.
///
/// # Panics
/// If a guarantee is broken: see [the module](super).
pub fn identity(data: &[u8]) {
    let mut script = Script(data);
    match script.byte() % 8 {
        0 => fingerprint(&String::from_utf8_lossy(script.rest())),
        1 => file(&String::from_utf8_lossy(script.rest())),
        2 => file(&String::from_utf8_lossy(&edited(PEM[0].as_bytes(), &mut script))),
        3 => impostor(&mut script, |transport, ours, pinned| {
            respond(transport, ours, pinned, PATIENCE)
        }),
        4 => impostor(&mut script, |transport, ours, pinned| {
            initiate(transport, ours, pinned, PATIENCE)
        }),
        _ => between(&mut script),
    }
}

fn fingerprint(text: &str) {
    match text.parse::<Fingerprint>() {
        Ok(fingerprint) => {
            let shown = fingerprint.to_string();
            assert_eq!(shown.parse(), Ok(fingerprint));
            let digits =
                |text: &str| text.chars().filter(|c| *c != '-' && !c.is_whitespace()).count();
            assert_eq!(digits(text), digits(&shown));
        }
        Err(
            BadFingerprint::Length(_) | BadFingerprint::Character(_) | BadFingerprint::Checksum,
        ) => {}
        Err(other) => panic!("{other}"),
    }
}

fn file(pem: &str) {
    match Identity::from_pem(pem) {
        Ok(identity) => {
            let again =
                Identity::from_pem(identity.to_pem()).expect("a written identity can be read");
            assert_eq!(again.fingerprint(), identity.fingerprint());
            assert_eq!(again.validity(), identity.validity());
            let fit = identity.check(SystemTime::now());
            assert_eq!(fit.is_ok(), again.check(SystemTime::now()).is_ok());
            assert!(identity.last_day().len() < 30);
        }
        Err(error) => check_message(&error),
    }
}

/// Messages are single lines and show nothing of a key.
fn check_message(error: &Error) {
    let text = error.to_string();
    assert!(!text.chars().any(char::is_control), "the message has no control characters");
    assert!(text.len() < 1 << 10, "a message of {} bytes", text.len());
}

/// A peer without the key of the pinned identity: it replays the messages of another connection of
/// that identity, or sends arbitrary bytes.
fn impostor(
    script: &mut Script<'_>,
    secure: impl Fn(Replay, &Identity, Fingerprint) -> Result<Tls<Replay>>,
) {
    let [ours, theirs] = identities();
    let bytes = edited(hello(), script);
    match secure(Replay::new(bytes, usize::MAX), ours, theirs.fingerprint()) {
        Ok(_) => panic!("a peer without the pinned key was accepted"),
        Err(error) => check_message(&error),
    }
}

/// The first message of a connecting party.
fn hello() -> &'static [u8] {
    static HELLO: OnceLock<Vec<u8>> = OnceLock::new();
    HELLO.get_or_init(|| {
        let nobody = Replay::new(Vec::new(), 1);
        let heard = nobody.heard();
        let [ours, theirs] = identities();
        // It sends first.
        let _ = initiate(nobody, ours, theirs.fingerprint(), PATIENCE);
        heard.bytes()
    })
}

/// Two honest parties with a man in the middle who changes bytes.
fn between(script: &mut Script<'_>) {
    let (left, right) = memory::pair();
    let [left, right] = [left, right].map(|end| changed(end, script));
    let [ours, theirs] = identities();
    let (a, b) = thread::scope(|scope| {
        let listening = scope.spawn(|| {
            let tls = respond(left, ours, theirs.fingerprint(), PATIENCE)?;
            talk(tls, *b"here ", *b"there")
        });
        let connecting = initiate(right, theirs, ours.fingerprint(), PATIENCE);
        let connecting = connecting.and_then(|tls| talk(tls, *b"there", *b"here "));
        (listening.join().expect("the listening thread does not panic"), connecting)
    });
    for error in [a, b].into_iter().filter_map(Result::err) {
        check_message(&error);
    }
}

/// Sends `ours` and receives `theirs`, or returns an error: nothing else.
fn talk(tls: impl Transport + 'static, ours: [u8; 5], theirs: [u8; 5]) -> Result<()> {
    let mut channel = Channel::with_timeout(tls, Some(PATIENCE));
    let mut heard = [0; 5];
    channel.send(&ours)?;
    channel.recv(&mut heard)?;
    assert_eq!(heard, theirs, "the received bytes are those sent");
    Ok(())
}

/// An endpoint whose outgoing bytes are changed at up to three positions, and possibly truncated.
fn changed(end: memory::Memory, script: &mut Script<'_>) -> Tampered<memory::Memory> {
    let flags = script.byte();
    let changes: Vec<(u64, u8)> =
        (0..flags & 3).map(|_| (script.word().into(), script.byte())).collect();
    let cut = (flags & 4 != 0).then(|| u64::from(script.word()));
    let tampered = Tampered::new(end, move |offset, bytes| {
        for &(at, mask) in &changes {
            let place = at.checked_sub(offset).and_then(|at| usize::try_from(at).ok());
            if let Some(byte) = place.and_then(|place| bytes.get_mut(place)) {
                *byte ^= mask;
            }
        }
    });
    match cut {
        Some(end) => tampered.and_truncated(end),
        None => tampered,
    }
}
