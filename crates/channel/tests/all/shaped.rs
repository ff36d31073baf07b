//! A shaped link keeps the bytes and costs at least the time that it should.

use std::time::{Duration, Instant};

use volery_channel::{Channel, Error, Transport, memory, run_two_channels, shaped};

use crate::{LONG, SHORT, pattern, tcp_streams};

fn end(transport: impl Transport + 'static, rate: u64, round_trip: Duration) -> Channel {
    Channel::with_timeout(shaped(transport, rate, round_trip), Some(LONG))
}

pub(crate) fn shaped_tcp(rate: u64, round_trip: Duration) -> (Channel, Channel) {
    let (right, left) = tcp_streams();
    (end(left, rate, round_trip), end(right, rate, round_trip))
}

fn shaped_pairs(rate: u64, round_trip: Duration) -> [(Channel, Channel); 2] {
    let (a, b) = memory::pair();
    [(end(a, rate, round_trip), end(b, rate, round_trip)), shaped_tcp(rate, round_trip)]
}

#[test]
fn rate_and_latency_are_lower_bounds_and_bytes_keep_their_order() {
    const RATE: u64 = 40_000_000;
    const BYTES: usize = 2_000_003;
    let round_trip = Duration::from_millis(40);
    for (left, right) in shaped_pairs(RATE, round_trip) {
        let ((elapsed, _), _) = run_two_channels(
            left,
            right,
            |channel| {
                let started = Instant::now();
                for piece in pattern(BYTES, 1).chunks(10_007) {
                    channel.send(piece).unwrap();
                    channel.flush().unwrap();
                }
                let mut bytes = [0; 3];
                channel.recv(&mut bytes).unwrap();
                assert_eq!(bytes, [1, 2, 3]);
                started.elapsed()
            },
            |channel| {
                let mut bytes = vec![0; BYTES];
                channel.recv(&mut bytes).unwrap();
                assert!(bytes == pattern(BYTES, 1));
                channel.send(&[1, 2, 3]).unwrap();
                channel.flush().unwrap();
            },
        );
        let sending = Duration::from_nanos((BYTES as u64 + 3) * 8 * 1_000_000_000 / RATE);
        assert!(elapsed >= sending + round_trip, "{elapsed:?}");
    }
}

#[test]
fn dropping_delivers_what_is_on_its_way() {
    for (mut left, mut right) in shaped_pairs(100_000_000, SHORT * 2) {
        left.send(&pattern(100_000, 0)).unwrap();
        left.flush().unwrap();
        drop(left);
        let mut bytes = vec![0; 100_000];
        right.recv(&mut bytes).unwrap();
        assert!(bytes == pattern(100_000, 0));
        assert!(matches!(right.recv(&mut [0]), Err(Error::Disconnected)));
    }
}

#[test]
fn a_lost_peer_shows_through_a_shaped_link() {
    for (mut left, right) in shaped_pairs(1_000_000_000, Duration::from_millis(2)) {
        drop(right);
        assert!(matches!(left.recv(&mut [0]), Err(Error::Disconnected)));
    }
}
