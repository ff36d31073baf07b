//! Lanes of one connection.

mod ends;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use volery_channel::{Channel, Error, Lane, QUEUE_BOUND, Result, SessionId, lanes};

use super::{LONG, SHORT, pairs, pattern, tcp_pair};

const SESSION: SessionId = SessionId::from_bytes([3; 32]);

fn both<const N: usize>((left, right): (Channel, Channel)) -> ([Lane; N], [Lane; N]) {
    thread::scope(|scope| {
        let left = scope.spawn(|| lanes::split(left, SESSION).unwrap());
        let right = lanes::split(right, SESSION).unwrap();
        (left.join().unwrap(), right)
    })
}

/// What `work` gives, and the lane: if its timeout is not kept, the test fails instead of waiting with it.
fn in_time<T: Send + 'static>(
    mut lane: Lane,
    work: impl FnOnce(&mut Channel) -> T + Send + 'static,
) -> (Lane, T) {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let made = work(lane.channel());
        // Nobody waits any more if the time is up.
        let _ = tell.send((lane, made));
    });
    told.recv_timeout(LONG).unwrap()
}

/// Sends and receives in turn, in pieces of all sizes; each lane its own bytes.
fn talk(lane: &mut Lane, party: u8) -> Result<()> {
    let number = lane.number() as u8;
    let channel = lane.channel();
    for (round, length) in [1, 7, 65_535, 65_536, 65_537, 3, 1_000_000, 200_000, 1]
        .into_iter()
        .enumerate()
    {
        let seed = |party: u8| (number << 5) ^ (party << 4) ^ round as u8;
        channel.send(&pattern(length, seed(party)))?;
        let mut theirs = vec![0; length];
        channel.recv(&mut theirs)?;
        assert!(theirs == pattern(length, seed(1 - party)), "lane {number}");
    }
    Ok(())
}

#[test]
fn lanes_do_not_mix() {
    for pair in pairs() {
        let (mut left, mut right) = both::<4>(pair);
        thread::scope(|scope| {
            for lane in &mut left {
                scope.spawn(|| talk(lane, 0).unwrap());
            }
            for lane in &mut right {
                scope.spawn(|| talk(lane, 1).unwrap());
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

/// One lane's protocol stands still, the other's goes on; then the first too.
#[test]
fn a_lane_that_waits_keeps_no_other_back() {
    for pair in pairs() {
        let ([mut slow, mut quick], [mut peer_slow, mut peer_quick]) = both::<2>(pair);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut byte = [0];
                slow.channel().recv(&mut byte).unwrap();
                assert_eq!(byte, [9]);
            });
            let answering = scope.spawn(move || talk(&mut peer_quick, 1).unwrap());
            talk(&mut quick, 0).unwrap();
            answering.join().unwrap();
            peer_slow.channel().send(&[9]).unwrap();
            peer_slow.channel().flush().unwrap();
        });
    }
}

/// What one lane's user does not read fills that lane only.
#[test]
fn an_unread_lane_is_bounded_and_alone() {
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
    // All that was sent is there.
    let mut theirs = vec![0; sent];
    unread.channel().recv(&mut theirs).unwrap();
    assert!(theirs.iter().all(|&byte| byte == 1));
}

/// More than a queue, both ways at once, read at last.
#[test]
fn both_may_send_first() {
    let ([mut a, _b], [mut c, _d]) = both::<2>(tcp_pair());
    let length = QUEUE_BOUND / 4;
    let talk = |lane: &mut Lane| {
        let mut theirs = vec![0; length];
        lane.channel().send(&vec![5; length]).unwrap();
        lane.channel().recv(&mut theirs).unwrap();
        // Room was given back: once more.
        lane.channel().send(&vec![6; length]).unwrap();
        lane.channel().recv(&mut theirs).unwrap();
        assert!(theirs.iter().all(|&byte| byte == 6));
    };
    thread::scope(|scope| {
        scope.spawn(|| talk(&mut a));
        talk(&mut c);
    });
}

#[test]
fn a_lane_ends_alone_and_with_the_connection() {
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
fn a_lane_times_out_alone() {
    let ([mut first, mut second], [_third, mut fourth]) = both::<2>(tcp_pair());
    first.channel().set_timeout(Some(SHORT));
    // Not in a scope, which would wait for it where this test has failed.
    let waiting = thread::spawn(move || {
        let mut byte = [0];
        second.channel().recv(&mut byte).unwrap();
        byte[0]
    });
    let (_first, error) = in_time(first, |channel| channel.recv(&mut [0]).unwrap_err());
    assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
    thread::sleep(Duration::from_millis(20));
    fourth.channel().send(&[4]).unwrap();
    fourth.channel().flush().unwrap();
    assert_eq!(waiting.join().unwrap(), 4);
}

#[test]
fn the_peer_must_split_alike() {
    let (left, right) = tcp_pair();
    thread::scope(|scope| {
        let left = scope.spawn(|| lanes::split::<2>(left, SESSION).map(|_| ()));
        let right = lanes::split::<3>(right, SESSION).map(|_| ());
        for result in [left.join().unwrap(), right] {
            assert!(matches!(result, Err(Error::Mismatch { .. })), "{result:?}");
        }
    });
    let (left, mut right) = tcp_pair();
    right.send(&[7; 16]).unwrap();
    right.flush().unwrap();
    let error = lanes::split::<2>(left, SESSION).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::PeerMisbehaved(_)), "{error:?}");
}

/// The header of a frame.
fn frame(lane: u16, kind: u16, length: u32) -> Vec<u8> {
    let mut bytes = lane.to_le_bytes().to_vec();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes
}

/// What a party of two lanes says first.
fn greeting() -> Vec<u8> {
    [&b"volery lanes"[..], &2_u32.to_le_bytes()].concat()
}

/// Frames that no honest party sends end all lanes, with the reason.
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
            let left = scope.spawn(|| lanes::split::<2>(left, SESSION).unwrap());
            right.send(&greeting()).unwrap();
            // The bad frame comes with the greeting, or after it.
            right.send(&bad).unwrap();
            right.flush().unwrap();
            left.join().unwrap()
        });
        for lane in [&mut other, &mut one] {
            lane.channel().set_timeout(Some(LONG / 6));
            let error = lane.channel().recv(&mut [0]).unwrap_err();
            // A lane that was ended properly first says just that.
            let ended = bad.len() > 8 && matches!(error, Error::Disconnected);
            assert!(
                ended || matches!(error, Error::PeerMisbehaved(_)),
                "{bad:?} {error:?}"
            );
        }
    }
}
