//! Substreams of one connection.

mod beside;
mod closing;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use volery_channel::{Channel, Error, QUEUE_BOUND, Result, SessionId, Substream, mux};

use super::{LONG, SHORT, pairs, pattern, tcp_pair};

const SESSION: SessionId = SessionId::from_bytes([3; 32]);

fn both<const N: usize>((left, right): (Channel, Channel)) -> ([Substream; N], [Substream; N]) {
    thread::scope(|scope| {
        let left = scope.spawn(|| mux::split(left, SESSION).unwrap());
        let right = mux::split(right, SESSION).unwrap();
        (left.join().unwrap(), right)
    })
}

/// The result of `work`, and the substream: if its timeout is not kept, the test fails instead of
/// waiting with it.
fn in_time<T: Send + 'static>(
    mut substream: Substream,
    work: impl FnOnce(&mut Channel) -> T + Send + 'static,
) -> (Substream, T) {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let made = work(substream.channel());
        // The receiver is gone if the time is up.
        let _ = tell.send((substream, made));
    });
    told.recv_timeout(LONG).unwrap()
}

/// Sends and receives in turn, in pieces of all sizes; each substream its own bytes.
fn talk(substream: &mut Substream, party: u8) -> Result<()> {
    let number = substream.number() as u8;
    let channel = substream.channel();
    for (round, length) in
        [1, 7, 65_535, 65_536, 65_537, 3, 1_000_000, 200_000, 1].into_iter().enumerate()
    {
        let seed = |party: u8| (number << 5) ^ (party << 4) ^ round as u8;
        channel.send(&pattern(length, seed(party)))?;
        let mut theirs = vec![0; length];
        channel.recv(&mut theirs)?;
        assert!(theirs == pattern(length, seed(1 - party)), "substream {number}");
    }
    Ok(())
}

#[test]
fn substreams_do_not_mix() {
    for pair in pairs() {
        let (mut left, mut right) = both::<4>(pair);
        thread::scope(|scope| {
            for substream in &mut left {
                scope.spawn(|| talk(substream, 0).unwrap());
            }
            for substream in &mut right {
                scope.spawn(|| talk(substream, 1).unwrap());
            }
        });
        for (left, right) in left.iter_mut().zip(&mut right) {
            let sent = left.channel().stats();
            assert_eq!(sent.bytes_sent, right.channel().stats().bytes_received);
        }
    }
}

#[test]
fn numbers_and_sessions_are_unique_and_common() {
    let (left, right) = both::<5>(tcp_pair());
    let mut seen = vec![*SESSION.as_bytes()];
    for (place, (left, right)) in left.iter().zip(&right).enumerate() {
        assert_eq!((left.number(), right.number()), (place, place));
        assert_eq!(left.session(), right.session());
        assert!(!seen.contains(left.session().as_bytes()));
        seen.push(*left.session().as_bytes());
    }
}

/// Unread bytes of one substream fill only that substream.
#[test]
fn an_unread_substream_is_bounded_and_alone() {
    let ([mut full, mut free], [mut unread, mut peer]) = both::<2>(tcp_pair());
    full.channel().set_timeout(Some(SHORT));
    let piece = 1 << 20;
    let bound = QUEUE_BOUND / 3;
    let (_full, (sent, error)) = in_time(full, move |channel| {
        let mut sent = 0;
        loop {
            match channel.send(&vec![1; piece]) {
                Ok(()) => sent += piece,
                Err(error) => return (sent, error),
            }
        }
    });
    assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
    assert!(sent <= bound && sent + piece > bound, "{sent}");
    thread::scope(|scope| {
        scope.spawn(|| talk(&mut free, 0).unwrap());
        talk(&mut peer, 1).unwrap();
    });
    // All sent bytes have arrived.
    let mut theirs = vec![0; sent];
    unread.channel().recv(&mut theirs).unwrap();
    assert!(theirs.iter().all(|&byte| byte == 1));
}

/// More than a queue in both directions, read at the end.
#[test]
fn both_may_send_first() {
    let ([mut a, _b], [mut c, _d]) = both::<2>(tcp_pair());
    let length = QUEUE_BOUND / 4;
    let talk = |substream: &mut Substream| {
        let mut theirs = vec![0; length];
        substream.channel().send(&vec![5; length]).unwrap();
        substream.channel().recv(&mut theirs).unwrap();
        // The window was restored: once more.
        substream.channel().send(&vec![6; length]).unwrap();
        substream.channel().recv(&mut theirs).unwrap();
        assert!(theirs.iter().all(|&byte| byte == 6));
    };
    thread::scope(|scope| {
        scope.spawn(|| talk(&mut a));
        talk(&mut c);
    });
}

#[test]
fn a_substream_ends_alone_and_with_the_connection() {
    for pair in pairs() {
        let ([gone, mut stays], [mut left_alone, peer]) = both::<2>(pair);
        drop(gone);
        let error = left_alone.channel().recv(&mut [0]).unwrap_err();
        assert!(matches!(error, Error::Disconnected), "{error:?}");
        let mut peer = peer;
        thread::scope(|scope| {
            scope.spawn(|| talk(&mut stays, 0).unwrap());
            talk(&mut peer, 1).unwrap();
        });
        drop((peer, left_alone));
        let error = stays.channel().recv(&mut [0]).unwrap_err();
        assert!(matches!(error, Error::Disconnected), "{error:?}");
    }
}

#[test]
fn the_peer_must_split_alike() {
    let (left, right) = tcp_pair();
    thread::scope(|scope| {
        let left = scope.spawn(|| mux::split::<2>(left, SESSION).map(|_| ()));
        let right = mux::split::<3>(right, SESSION).map(|_| ());
        for result in [left.join().unwrap(), right] {
            assert!(matches!(result, Err(Error::Mismatch { .. })), "{result:?}");
        }
    });
    let (left, mut right) = tcp_pair();
    right.send(&[7; 16]).unwrap();
    right.flush().unwrap();
    let error = mux::split::<2>(left, SESSION).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::PeerMisbehaved(_)), "{error:?}");
}

/// The header of a frame.
fn frame(substream: u16, kind: u16, length: u32) -> Vec<u8> {
    let mut bytes = substream.to_le_bytes().to_vec();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes
}

/// The first bytes of a party of two substreams.
fn greeting() -> Vec<u8> {
    [&b"volery lanes"[..], &2_u32.to_le_bytes()].concat()
}

/// Frames that no honest party sends end all substreams, with the reason.
#[test]
fn bad_frames_are_refused() {
    let too_much = (QUEUE_BOUND / 3 + 1) as u32;
    let twice = [frame(0, 2, 0), frame(0, 0, 1)].concat();
    for bad in [
        frame(2, 0, 1),
        frame(u16::MAX, 2, 0),
        frame(0, 3, 0),
        frame(1, 2, 1),
        frame(0, 0, too_much),
        frame(0, 1, 1),
        frame(1, 1, u32::MAX),
        frame(0, 0, 0),
        frame(1, 1, 0),
        twice,
    ] {
        let (left, mut right) = tcp_pair();
        let [mut one, mut other] = thread::scope(|scope| {
            let left = scope.spawn(|| mux::split::<2>(left, SESSION).unwrap());
            right.send(&greeting()).unwrap();
            // The bad frame comes with the greeting, or after it.
            right.send(&bad).unwrap();
            right.flush().unwrap();
            left.join().unwrap()
        });
        for substream in [&mut other, &mut one] {
            substream.channel().set_timeout(Some(LONG / 6));
            let error = substream.channel().recv(&mut [0]).unwrap_err();
            // A substream that was ended properly first reports only that.
            let ended = bad.len() > 8 && matches!(error, Error::Disconnected);
            assert!(ended || matches!(error, Error::PeerMisbehaved(_)), "{bad:?} {error:?}");
        }
    }
}
