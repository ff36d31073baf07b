//! The estimate of the link, and peers that report false values.

use std::time::Duration;

use volery_channel::link::{Link, Side, estimate, handshake_and_estimate};
use volery_channel::tcp::Stream;
use volery_channel::{
    Channel, Error, Hello, Result, SessionId, handshake, run_two_channels, run_two_unchecked,
    shaped,
};

use crate::{LONG, pairs};

fn hello(role: &'static str) -> Hello {
    Hello { protocol: "cot", role, fields: vec![("n", "1000".to_owned())] }
}

const WORKS: [Duration; 4] =
    [Duration::ZERO, Duration::from_micros(100), Duration::from_millis(5), Duration::from_secs(5)];

type EstimateResult = Result<(SessionId, Link)>;

fn met((left, right): (Channel, Channel), work: Duration) -> (EstimateResult, EstimateResult) {
    let ((a, _), (b, _)) = run_two_channels(
        left,
        right,
        |channel| handshake_and_estimate(channel, &hello("sender"), [1; 32], Side::Measures, work),
        |channel| {
            handshake_and_estimate(channel, &hello("receiver"), [2; 32], Side::IsMeasured, work)
        },
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

/// A measurement after a handshake, as in a run whose work follows from later messages.
#[test]
fn both_know_the_same_after_a_handshake() {
    for work in WORKS {
        for (left, right) in pairs() {
            let party = |role, side| {
                move |channel: &mut Channel| {
                    handshake(channel, &hello(role), [3; 32])?;
                    estimate(channel, side, work)
                }
            };
            let ((a, _), (b, _)) = run_two_channels(
                left,
                right,
                party("sender", Side::Measures),
                party("receiver", Side::IsMeasured),
            );
            assert_eq!(a.unwrap(), b.unwrap());
        }
    }
}

#[test]
fn a_slow_link_is_measured_after_a_handshake() {
    let (rate, work) = (20_000_000, Duration::from_secs(5));
    let (left, right) = shaped_pair(rate, Duration::from_millis(4));
    let ((a, _), (b, _)) = run_two_channels(
        left,
        right,
        |channel| estimate(channel, Side::Measures, work),
        |channel| estimate(channel, Side::IsMeasured, work),
    );
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(a, b);
    assert!((0.5..2.0).contains(&(a.bits_per_second / rate as f64)), "{a:?}");
}

/// Both parties have the same session, and the channel remains usable.
#[test]
fn later_messages_are_unaffected() {
    for work in WORKS {
        let (left, right) = Channel::memory_pair();
        let ((a, stats), (b, _)) = run_two_channels(
            left,
            right,
            |channel| {
                let (session, _) = handshake_and_estimate(
                    channel,
                    &hello("sender"),
                    [1; 32],
                    Side::Measures,
                    work,
                )?;
                channel.send(b"next")?;
                channel.flush()?;
                Ok::<_, Error>(session)
            },
            |channel| {
                let (session, _) = handshake_and_estimate(
                    channel,
                    &hello("receiver"),
                    [2; 32],
                    Side::IsMeasured,
                    work,
                )?;
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

/// The order of magnitude: the machine may be busy. The round trip is that of the shaped link.
#[test]
fn slow_links_are_told_from_fast_ones() {
    let round_trip = Duration::from_millis(4);
    for work in [20, 200, 1000].map(Duration::from_micros) {
        let measured = [500_000, 8_000_000].map(|rate| {
            let (a, b) = met(shaped_pair(rate, round_trip), work);
            let (link, theirs) = (a.unwrap().1, b.unwrap().1);
            assert_eq!(link, theirs);
            assert!(link.round_trip >= round_trip.as_secs_f64());
            link.bits_per_second
        });
        assert!((1e5..3e6).contains(&measured[0]), "{measured:?}");
        assert!(measured[1] > measured[0], "{measured:?}");
    }
}

/// A party with another value of `work` would read past the probe.
#[test]
fn the_work_is_a_setting() {
    let party = |role, side, work| {
        move |channel: &mut Channel| {
            handshake_and_estimate(channel, &hello(role), [1; 32], side, work)
        }
    };
    let (a, b) = run_two_unchecked(
        party("sender", Side::Measures, WORKS[1]),
        party("receiver", Side::IsMeasured, WORKS[2]),
    );
    for result in [a, b] {
        let Err(Error::Mismatch { field, .. }) = result else { panic!("{result:?}") };
        assert_eq!(field, "pace");
    }
}

/// A difference in the peer's hello is reported, even after the peer has closed.
#[test]
fn a_difference_is_found_after_the_peer_has_gone() {
    let (mut left, mut right) = Channel::memory_pair();
    right.set_timeout(Some(Duration::from_millis(1)));
    let other = Hello { protocol: "psi", ..hello("receiver") };
    let left_alone = handshake(&mut right, &other, [2; 32]);
    assert!(matches!(left_alone, Err(Error::TimedOut(_))));
    drop(right);
    let result =
        handshake_and_estimate(&mut left, &hello("sender"), [1; 32], Side::Measures, WORKS[1]);
    assert!(matches!(result, Err(Error::Mismatch { field, .. }) if field == "protocol"));
}

#[test]
fn different_settings_are_found_first() {
    let other = Hello { protocol: "psi", ..hello("receiver") };
    let work = WORKS[1];
    let (a, b) = run_two_unchecked(
        |channel| handshake_and_estimate(channel, &hello("sender"), [1; 32], Side::Measures, work),
        |channel| handshake_and_estimate(channel, &other, [2; 32], Side::IsMeasured, work),
    );
    for result in [a.map(|_| ()), b.map(|_| ())] {
        assert!(matches!(result, Err(Error::Mismatch { .. })));
    }
}

/// The error of an honest side after an honest hello and then the bytes `said`.
fn error_after(side: Side, work: Duration, said: &'static [u8]) -> Error {
    let (result, _) = run_two_unchecked(
        move |channel| {
            let result = handshake_and_estimate(channel, &hello("sender"), [1; 32], side, work);
            assert!(matches!(channel.send(&[0]), Err(Error::Broken)));
            result
        },
        move |channel| {
            let mut hello = hello("receiver");
            hello.fields.push(("pace", work.as_micros().to_string()));
            handshake(channel, &hello, [2; 32])?;
            channel.send(said)?;
            channel.flush()?;
            // Stays until the other ends, which sends before it reads.
            channel.recv(&mut vec![0; 1 << 20])
        },
    );
    result.unwrap_err()
}

/// Impossible round trips, rates and trains, each where the honest side reads it.
#[test]
fn impossible_estimates_are_refused() {
    const fn message<const N: usize, const M: usize>(known: u32, tail: [u8; M]) -> [u8; N] {
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
                Error::PeerMisbehaved("it reported a bandwidth or round-trip time out of range")
            ),
            "{error}"
        );
    };
    // A round trip of more than a minute.
    static FAR: [u8; 516] = message(60_000_001, []);
    is_refused(error_after(Side::Measures, Duration::ZERO, &FAR));
    // A train of 2^19 bytes, of 2^13, of 2^255.
    static TRAINS: [[u8; 4101]; 3] =
        [message(UNKNOWN, [19]), message(UNKNOWN, [13]), message(UNKNOWN, [255])];
    for train in &TRAINS {
        is_refused(error_after(Side::Measures, Duration::from_secs(5), train));
    }
    // A rate of zero; one above the bound; a round trip above the bound.
    const fn estimate(rate: u64, round_trip: u32) -> [u8; 12] {
        let (rate, trip) = (rate.to_le_bytes(), round_trip.to_le_bytes());
        [
            rate[0], rate[1], rate[2], rate[3], rate[4], rate[5], rate[6], rate[7], trip[0],
            trip[1], trip[2], trip[3],
        ]
    }
    static PACES: [[u8; 528]; 4] = [
        message(UNKNOWN, estimate(0, 0)),
        message(UNKNOWN, estimate(999, 0)),
        message(UNKNOWN, estimate(1_000_000_000_001, 0)),
        message(UNKNOWN, estimate(1_000_000, 60_000_001)),
    ];
    for pace in &PACES {
        is_refused(error_after(Side::IsMeasured, Duration::ZERO, pace));
    }
    // A round trip other than the known one: none.
    static OTHER: [u8; 528] = message(UNKNOWN, estimate(1_000_000, 5));
    is_refused(error_after(Side::IsMeasured, Duration::ZERO, &OTHER));
}
