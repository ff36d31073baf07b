//! Two parties that fit, that do not, and peers that are something else.

use std::thread;
use std::time::{Duration, Instant};

use volery_channel::{
    Channel, Error, Hello, Result, SessionId, handshake, run_two_channels, run_two_unchecked,
};

use crate::{LONG, SHORT, pairs};

fn hello(role: &'static str) -> Hello {
    let fields = vec![("ring", "fp61".to_owned()), ("n", "1000".to_owned())];
    Hello { protocol: "vole", role, fields }
}

fn with(role: &'static str, fields: &[(&'static str, &str)]) -> Hello {
    let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Hello { fields, ..hello(role) }
}

fn shake(
    (left_channel, right_channel): (Channel, Channel),
    left: &Hello,
    right: &Hello,
) -> (Result<SessionId>, Result<SessionId>) {
    let ((a, _), (b, _)) = run_two_channels(
        left_channel,
        right_channel,
        |channel| handshake(channel, left, [1; 32]),
        |channel| handshake(channel, right, [2; 32]),
    );
    (a, b)
}

/// The difference that both parties must report: field, left's value, right's value.
fn assert_mismatch(left: &Hello, right: &Hello, field: &str, left_value: &str, right_value: &str) {
    for pair in pairs() {
        let (a, b) = shake(pair, left, right);
        for (result, here, there) in [(a, left_value, right_value), (b, right_value, left_value)] {
            match result {
                Err(Error::Mismatch { field: name, ours, theirs }) => {
                    assert_eq!(
                        (name.as_str(), ours.as_str(), theirs.as_str()),
                        (field, here, there)
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn the_session_id_depends_on_both_nonces_and_on_the_settings() {
    let id = |sender_nonce: u8, receiver_nonce: u8, fields: &[(&'static str, &str)]| {
        let (a, b) = run_two_unchecked(
            |channel| handshake(channel, &with("sender", fields), [sender_nonce; 32]).unwrap(),
            |channel| handshake(channel, &with("receiver", fields), [receiver_nonce; 32]).unwrap(),
        );
        assert_eq!(a, b);
        *a.as_bytes()
    };
    let ids = [id(1, 2, &[]), id(2, 1, &[]), id(1, 1, &[]), id(3, 2, &[]), id(1, 2, &[("n", "1")])];
    for (i, a) in ids.iter().enumerate() {
        assert!(ids[..i].iter().all(|b| a != b));
    }
    assert_eq!(ids[0], id(1, 2, &[]), "and on nothing else");
}

#[test]
fn both_parties_learn_the_first_difference() {
    let (sender, receiver) = (hello("sender"), hello("receiver"));
    assert_mismatch(&sender, &sender, "role", "sender", "sender");
    let other = Hello { protocol: "cot", ..hello("receiver") };
    assert_mismatch(&sender, &other, "protocol", "vole", "cot");
    let other = with("receiver", &[("ring", "z64"), ("n", "5")]);
    assert_mismatch(&sender, &other, "ring", "fp61", "z64");
    let other = with("receiver", &[("ring", "fp61"), ("n", "5")]);
    assert_mismatch(&sender, &other, "n", "1000", "5");
    let other = with("receiver", &[("ring", "fp61")]);
    assert_mismatch(&sender, &other, "n", "1000", "(not stated)");
    let other = with("receiver", &[("ring", "fp61"), ("n", "1000"), ("noise", "regular")]);
    assert_mismatch(&receiver, &other, "role", "receiver", "receiver");
    assert_mismatch(&sender, &other, "noise", "(not stated)", "regular");
}

#[test]
fn an_echo_is_not_a_peer() {
    for (mut left, mut right) in pairs() {
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut byte = [0];
                while right.recv(&mut byte).and_then(|()| right.send(&byte)).is_ok() {
                    if right.flush().is_err() {
                        break;
                    }
                }
            });
            let error = handshake(&mut left, &hello("sender"), [1; 32]).unwrap_err();
            assert!(matches!(error, Error::Mismatch { .. }), "{error:?}");
            drop(left);
        });
    }
}

#[test]
fn other_programs_are_recognised() {
    for greeting in
        [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], b"SSH-2.0-x\r\n", b"\x89PNG", b"v", &[0; 9]]
    {
        for (mut left, mut right) in pairs() {
            // The peer stays connected and waits.
            left.set_timeout(Some(LONG / 6));
            right.send(greeting).unwrap();
            right.flush().unwrap();
            let error = handshake(&mut left, &hello("sender"), [1; 32]).unwrap_err();
            assert!(matches!(error, Error::PeerMisbehaved(_)), "{error:?}");
            assert!(error.to_string().contains("does not speak volery"), "{error}");
            assert!(matches!(left.flush(), Err(Error::Broken)));
        }
    }
}

/// The first bytes and the length are right, but the body is malformed.
#[test]
fn a_hello_that_cannot_be_read_is_refused() {
    for (mut left, mut right) in pairs() {
        right.send(b"\x89volery\n\x01\0\x04\0\xff\xff\xff\xff").unwrap();
        right.flush().unwrap();
        let error = handshake(&mut left, &hello("sender"), [1; 32]).unwrap_err();
        assert!(error.to_string().contains("malformed"), "{error}");
    }
}

/// A peer that has sent a valid hello, and has closed before it could receive the other's.
#[test]
fn a_peer_that_has_gone_is_a_disconnection() {
    let (mut left, mut right) = Channel::memory_pair();
    right.set_timeout(Some(Duration::from_millis(1)));
    assert!(handshake(&mut right, &hello("receiver"), [2; 32]).is_err());
    drop(right);
    let error = handshake(&mut left, &hello("sender"), [1; 32]).unwrap_err();
    assert!(matches!(error, Error::Disconnected), "{error:?}");
}

#[test]
fn a_trickling_peer_does_not_extend_the_deadline() {
    for (mut left, mut right) in pairs() {
        let timeout = SHORT * 5;
        left.set_timeout(Some(timeout));
        thread::scope(|scope| {
            scope.spawn(move || {
                // Correct so far, and never late, as long as the other side reads.
                let bytes = [&b"\x89volery\n\x01\0\0\x10"[..], &[0; 4096]].concat();
                for byte in bytes {
                    thread::sleep(Duration::from_millis(50));
                    if right.send(&[byte]).and_then(|()| right.flush()).is_err() {
                        break;
                    }
                }
            });
            let started = Instant::now();
            let error = handshake(&mut left, &hello("sender"), [1; 32]).unwrap_err();
            assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
            assert!(started.elapsed() >= timeout && started.elapsed() < LONG);
            drop(left);
        });
    }
}
