//! What two parties find out of the link between them, and peers that tell stories of it.

use std::time::Duration;

use volery_channel::pace::{Pace, Side, meet};
use volery_channel::tcp::Stream;
use volery_channel::{
    Channel, Error, Hello, Result, SessionId, handshake, run_two_channels, shaped,
};

use crate::{LONG, pairs};

fn hello(role: &'static str) -> Hello {
    Hello {
        protocol: "cot",
        role,
        fields: vec![("n", "1000".to_owned())],
    }
}

const WORKS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_micros(100),
    Duration::from_millis(5),
    Duration::from_secs(5),
];

type Met = Result<(SessionId, Pace)>;

fn met((left, right): (Channel, Channel), work: Duration) -> (Met, Met) {
    let ((a, _), (b, _)) = run_two_channels(
        left,
        right,
        |channel| meet(channel, &hello("sender"), [1; 32], Side::Measures, work),
        |channel| meet(channel, &hello("receiver"), [2; 32], Side::IsMeasured, work),
    );
    (a, b)
}

fn shaped_pair(rate: u64, round_trip: Duration) -> (Channel, Channel) {
    let listener = volery_channel::tcp::Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connecting = std::thread::spawn(move || Stream::connect(address, LONG).unwrap());
    let left = listener.accept(LONG).unwrap();
    let right = connecting.join().unwrap();
    let end = |stream| Channel::with_timeout(shaped(stream, rate, round_trip), Some(LONG));
    (end(left), end(right))
}

#[test]
fn both_know_the_same() {
    for work in WORKS {
        for pair in pairs() {
            let (a, b) = met(pair, work);
            assert_eq!(a.unwrap(), b.unwrap());
        }
    }
}

/// Both have the same session, and the channel can be used on.
#[test]
fn what_follows_is_not_disturbed() {
    for work in WORKS {
        let (left, right) = Channel::memory_pair();
        let ((a, stats), (b, _)) = run_two_channels(
            left,
            right,
            |channel| {
                let (session, _) = meet(channel, &hello("sender"), [1; 32], Side::Measures, work)?;
                channel.send(b"next")?;
                channel.flush()?;
                Ok::<_, Error>(session)
            },
            |channel| {
                let (session, _) =
                    meet(channel, &hello("receiver"), [2; 32], Side::IsMeasured, work)?;
                let mut next = [0; 4];
                channel.recv(&mut next)?;
                assert_eq!(&next, b"next");
                Ok::<_, Error>(session)
            },
        );
        assert_eq!(a.unwrap(), b.unwrap());
        assert!(stats.bytes_received < (1 << 18) + 5_000);
    }
}

/// The order of magnitude: the machine may be busy. The round trip is what the link says it is.
#[test]
fn slow_links_are_told_from_fast_ones() {
    let round_trip = Duration::from_millis(4);
    for work in [20, 200, 1000].map(Duration::from_micros) {
        let measured = [500_000, 8_000_000].map(|rate| {
            let (a, b) = met(shaped_pair(rate, round_trip), work);
            let (pace, theirs) = (a.unwrap().1, b.unwrap().1);
            assert_eq!(pace, theirs);
            assert!(pace.round_trip >= round_trip);
            pace.bits_per_second
        });
        assert!((100_000..3_000_000).contains(&measured[0]), "{measured:?}");
        assert!(measured[1] > measured[0], "{measured:?}");
    }
}

/// Whoever takes the work for another would read past the probe.
#[test]
fn the_work_is_a_setting() {
    let (left, right) = Channel::memory_pair();
    let party = |role, side, work| {
        move |channel: &mut Channel| meet(channel, &hello(role), [1; 32], side, work)
    };
    let ((a, _), (b, _)) = run_two_channels(
        left,
        right,
        party("sender", Side::Measures, WORKS[1]),
        party("receiver", Side::IsMeasured, WORKS[2]),
    );
    for result in [a, b] {
        let Err(Error::Mismatch { field, .. }) = result else {
            panic!("{result:?}")
        };
        assert_eq!(field, "pace");
    }
}

/// What a peer said before it left is told from its having left.
#[test]
fn a_difference_is_found_after_the_peer_has_gone() {
    let (mut left, mut right) = Channel::memory_pair();
    right.set_timeout(Some(Duration::from_millis(1)));
    let other = Hello {
        protocol: "psi",
        ..hello("receiver")
    };
    let left_alone = handshake(&mut right, &other, [2; 32]);
    assert!(matches!(left_alone, Err(Error::TimedOut(_))));
    drop(right);
    let result = meet(
        &mut left,
        &hello("sender"),
        [1; 32],
        Side::Measures,
        WORKS[1],
    );
    assert!(matches!(result, Err(Error::Mismatch { field, .. }) if field == "protocol"));
}

#[test]
fn different_settings_are_found_first() {
    let (left, right) = Channel::memory_pair();
    let other = Hello {
        protocol: "psi",
        ..hello("receiver")
    };
    let work = WORKS[1];
    let ((a, _), (b, _)) = run_two_channels(
        left,
        right,
        |channel| meet(channel, &hello("sender"), [1; 32], Side::Measures, work),
        |channel| meet(channel, &other, [2; 32], Side::IsMeasured, work),
    );
    for result in [a.map(|_| ()), b.map(|_| ())] {
        assert!(matches!(result, Err(Error::Mismatch { .. })));
    }
}

/// What the peer says after an honest hello, and the side that hears it.
fn lies(side: Side, work: Duration, said: &'static [u8]) -> Error {
    let (left, right) = Channel::memory_pair();
    let ((result, _), _) = run_two_channels(
        left,
        right,
        move |channel| {
            let result = meet(channel, &hello("sender"), [1; 32], side, work);
            assert!(matches!(channel.send(&[0]), Err(Error::Broken)));
            result
        },
        move |channel| {
            let mut hello = hello("receiver");
            hello.fields.push(("pace", work.as_micros().to_string()));
            handshake(channel, &hello, [2; 32])?;
            channel.send(said)?;
            channel.flush()
        },
    );
    result.unwrap_err()
}

/// Round trips, rates and trains that cannot be, each where the honest side reads it.
#[test]
fn stories_are_refused() {
    const fn story<const N: usize, const M: usize>(known: u32, tail: [u8; M]) -> [u8; N] {
        let mut said = [0; N];
        let known = known.to_le_bytes();
        let (mut i, mut j) = (0, 0);
        while i < 4 {
            said[i] = known[i];
            i += 1;
        }
        while j < M {
            said[N - M + j] = tail[j];
            j += 1;
        }
        said
    }
    const UNKNOWN: u32 = u32::MAX;
    let is_refused = |error| {
        assert!(
            matches!(
                error,
                Error::PeerMisbehaved("it says of the link what no link is like")
            ),
            "{error}"
        );
    };
    // A round trip of more than a minute.
    static FAR: [u8; 516] = story(60_000_001, []);
    is_refused(lies(Side::Measures, Duration::ZERO, &FAR));
    // A train of 2^19 bytes, of 2^13, of 2^255.
    static TRAINS: [[u8; 4101]; 3] = [
        story(UNKNOWN, [19]),
        story(UNKNOWN, [13]),
        story(UNKNOWN, [255]),
    ];
    for train in &TRAINS {
        is_refused(lies(Side::Measures, Duration::from_secs(5), train));
    }
    // No bits in a second; too many; too long a round trip.
    const fn pace(rate: u64, round_trip: u32) -> [u8; 12] {
        let (rate, trip) = (rate.to_le_bytes(), round_trip.to_le_bytes());
        [
            rate[0], rate[1], rate[2], rate[3], rate[4], rate[5], rate[6], rate[7], trip[0],
            trip[1], trip[2], trip[3],
        ]
    }
    static PACES: [[u8; 528]; 4] = [
        story(UNKNOWN, pace(0, 0)),
        story(UNKNOWN, pace(999, 0)),
        story(UNKNOWN, pace(1_000_000_000_001, 0)),
        story(UNKNOWN, pace(1_000_000, 60_000_001)),
    ];
    for pace in &PACES {
        is_refused(lies(Side::IsMeasured, Duration::ZERO, pace));
    }
    // Another round trip than the one that both know of: none.
    static OTHER: [u8; 528] = story(UNKNOWN, pace(1_000_000, 5));
    is_refused(lies(Side::IsMeasured, Duration::ZERO, &OTHER));
}
