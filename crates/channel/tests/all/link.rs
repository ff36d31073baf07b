//! The estimate of the link, and peers that report false values.

use std::time::Duration;

use volery_channel::link::{Link, Side, estimate, handshake_and_estimate};
use volery_channel::{
    Channel, Error, Hello, Result, SessionId, handshake, run_two_channels, run_two_unchecked,
};

use crate::pairs;
use crate::shaped::shaped_tcp;

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

/// With the handshake, and after it, as in a run whose work follows from later messages; the
/// channel remains usable.
#[test]
fn both_know_the_same() {
    let party = |role, side, work| {
        move |channel: &mut Channel| {
            let met = handshake_and_estimate(channel, &hello(role), [1; 32], side, work)?;
            let again = estimate(channel, side, work)?;
            channel.send(b"next")?;
            let mut next = [0; 4];
            channel.recv(&mut next)?;
            assert_eq!(&next, b"next");
            Ok::<_, Error>((met, again))
        }
    };
    for work in WORKS {
        for (left, right) in pairs() {
            let ((a, stats), (b, _)) = run_two_channels(
                left,
                right,
                party("sender", Side::Measures, work),
                party("receiver", Side::IsMeasured, work),
            );
            assert_eq!(a.unwrap(), b.unwrap());
            assert!(stats.bytes_received < (1 << 19) + 10_000);
        }
    }
}

/// The order of magnitude: the machine may be busy. The round trip is that of the shaped link.
#[test]
fn slow_links_are_told_from_fast_ones() {
    let round_trip = Duration::from_millis(4);
    for work in [20, 200, 1000].map(Duration::from_micros) {
        let measured = [500_000, 8_000_000].map(|rate| {
            let (a, b) = met(shaped_tcp(rate, round_trip), work);
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

/// The error of an honest side after an honest hello and then the bytes `said`.
fn error_after(side: Side, work: Duration, said: Vec<u8>) -> Error {
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
            channel.send(&said)?;
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
    let message = |length: usize, known: u32, tail: &[u8]| {
        let mut said = vec![0; length];
        said[..4].copy_from_slice(&known.to_le_bytes());
        said[length - tail.len()..].copy_from_slice(tail);
        said
    };
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
    is_refused(error_after(Side::Measures, Duration::ZERO, message(516, 60_000_001, &[])));
    // A train of 2^19 bytes, of 2^13, of 2^255.
    for train in [19, 13, 255] {
        let said = message(4101, UNKNOWN, &[train]);
        is_refused(error_after(Side::Measures, Duration::from_secs(5), said));
    }
    // A rate of zero; one above the bound; a round trip above the bound, and one other than the
    // known one: none.
    for (rate, round_trip) in
        [(0_u64, 0_u32), (999, 0), (1_000_000_000_001, 0), (1_000_000, 60_000_001), (1_000_000, 5)]
    {
        let tail = [&rate.to_le_bytes()[..], &round_trip.to_le_bytes()].concat();
        is_refused(error_after(Side::IsMeasured, Duration::ZERO, message(528, UNKNOWN, &tail)));
    }
}
