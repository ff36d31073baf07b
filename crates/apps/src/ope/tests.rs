//! Comparison with plain evaluation; cost; invalid inputs of peers and callers.

use volery_channel::Stats;
use volery_field::{Gf128, Ring, Z64};

use super::*;
use crate::testing::{assert_misbehaved, assert_offline_differ, random, send_no_elements, sources};

/// The values, and the online traffic of each channel (the sender's, then the receiver's).
fn run<R: VoleRing>(
    security: Security,
    degree: usize,
    p: &[R],
    points: &[R],
) -> (Zeroizing<Vec<R>>, Stats, Stats) {
    let (sent, (values, received)) = sources(
        security,
        |source, channel| {
            let sender = Sender::offline(degree, points.len(), source, channel).unwrap();
            let before = channel.stats();
            sender.online(p, channel).unwrap();
            channel.stats() - before
        },
        |source, channel| {
            let receiver = Receiver::offline(degree, points.len(), source, channel).unwrap();
            let before = channel.stats();
            let values = receiver.online(points, channel).unwrap();
            (values, channel.stats() - before)
        },
    );
    (values, sent, received)
}

fn check<R: VoleRing>(security: Security, degree: usize, given: usize, points: &[R]) {
    let p = random::<R>(given, degree as u128);
    let (values, sent, received) = run(security, degree, &p, points);
    for (z, value) in points.iter().zip(values.iter()) {
        assert!(*value == evaluate(&p, *z), "degree {degree} over {}", R::NAME);
    }
    // The cost in the documentation.
    let asked = if degree == 0 { 0 } else { points.len() };
    assert_eq!(sent.bytes_received, (asked * R::BYTES) as u64);
    assert_eq!(sent.bytes_sent, (points.len() * (degree + 1) * R::BYTES) as u64);
    assert_eq!(sent.bytes_sent, received.bytes_received);
    assert!(sent.messages_sent <= 1 && received.messages_sent <= 1);
}

#[test]
fn every_size_over_every_ring() {
    for degree in [0, 1, 2, 63, 64, 65, 16_383, 16_384, 16_385, 40_009] {
        let points = random::<Fp61>(2, 5);
        check(Security::Malicious, degree, degree + 1, &points);
    }
    for degree in [0, 1, 129, 4099] {
        check(Security::SemiHonest, degree, degree + 1, &random::<Z64>(3, 5));
        check(Security::Malicious, degree, degree + 1, &random::<Gf128>(2, 5));
    }
}

#[test]
fn special_points_and_short_polynomials() {
    let points = [Fp61::ZERO, Fp61::ONE, Fp61::ZERO - Fp61::ONE, Fp61::ZERO];
    check(Security::Malicious, 20_000, 20_001, &points);
    for given in [1, 2, 16_384, 16_385, 20_000] {
        check(Security::SemiHonest, 20_000, given, &points[1..3]);
    }
}

#[test]
fn a_large_degree_takes_the_documented_bytes() {
    let (degree, points) = (1 << 20, [Fp61::reduce(12_345)]);
    let p = random::<Fp61>(degree + 1, 7);
    let (values, sent, _) = run(Security::Malicious, degree, &p, &points);
    assert_eq!(**values, [evaluate(&p, points[0])]);
    assert_eq!(sent.bytes_sent + sent.bytes_received, 8_388_616 + 8);
}

#[test]
fn invalid_coefficients_are_refused() {
    let (error, peer) = sources(
        Security::Malicious,
        |source, channel| {
            let none = Sender::<Fp61>::offline(5, 0, source, channel).map(|_| ());
            assert!(matches!(none, Err(Error::Empty(_))));
            let large = Sender::<Fp61>::offline(usize::MAX, 1, source, channel).map(|_| ());
            assert!(matches!(large, Err(Error::TooLarge { .. })));
            let sender = |source: &mut _, channel: &mut _| {
                Sender::<Fp61>::offline(5, 1, source, channel).unwrap()
            };
            let empty = sender(source, channel).online(&[], channel);
            assert!(matches!(empty, Err(Error::Empty(_))));
            sender(source, channel).online(&[Fp61::ONE; 7], channel)
        },
        |source, channel| {
            let receiver = |source: &mut _, channel: &mut _| {
                Receiver::<Fp61>::offline(5, 1, source, channel).unwrap()
            };
            receiver(source, channel);
            receiver(source, channel).online(&[Fp61::ONE; 2], channel)
        },
    );
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "7 coefficients are too many for the agreed degree 5");
    assert!(matches!(peer, Err(Error::Entries { given: 2, wanted: 1, .. })));
    let error = coefficients(&[0, Fp61::MODULUS - 1, Fp61::MODULUS]).unwrap_err().to_string();
    assert!(
        error.starts_with("entry 2 (counted from 0) is not below 2305843009213693951"),
        "{error}"
    );
    let error = coefficients(&[0, u64::MAX]).unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(!text.contains(&u64::MAX.to_string()), "{text}");
}

/// Bytes that are no elements, from either side.
#[test]
fn elements_that_are_not_canonical_are_refused() {
    sources(
        Security::Malicious,
        |source, channel| {
            let sender = Sender::<Fp61>::offline(9, 1, source, channel).unwrap();
            assert_misbehaved(sender.online(&[Fp61::ONE], channel));
        },
        |source, channel| {
            Receiver::<Fp61>::offline(9, 1, source, channel).unwrap();
            send_no_elements(0, 1, channel);
        },
    );
    sources(
        Security::Malicious,
        |source, channel| {
            Sender::<Fp61>::offline(9, 1, source, channel).unwrap();
            channel.recv(&mut [0; 8]).unwrap();
            send_no_elements(0, 10, channel);
        },
        |source, channel| {
            let receiver = Receiver::<Fp61>::offline(9, 1, source, channel).unwrap();
            assert_misbehaved(receiver.online(&[Fp61::ONE], channel));
        },
    );
}

#[test]
fn each_setting_is_compared() {
    for (degree, points, name) in [(6, 2, "degree"), (5, 3, "points")] {
        assert_offline_differ(
            name,
            |source, channel| Sender::<Gf128>::offline(5, 2, source, channel).map(drop),
            |source, channel| Receiver::<Gf128>::offline(degree, points, source, channel).map(drop),
        );
    }
}

/// The corrected coefficients and `W` agree with the polynomial at `z` and, as far as one run
/// shows, nowhere else.
#[test]
fn the_correction_is_of_another_polynomial() {
    let (degree, z) = (1000, Fp61::reduce(77));
    let p = random::<Fp61>(degree + 1, 1);
    let ((), (d, w)) = sources(
        Security::Malicious,
        |source, channel| {
            Sender::offline(degree, 1, source, channel).unwrap().online(&p, channel).unwrap();
        },
        |source, channel| {
            let receiver = Receiver::<Fp61>::offline(degree, 1, source, channel).unwrap();
            let key = &receiver.keys[0];
            wire::send(&[z - *key.x], channel).unwrap();
            let mut d = vec![Fp61::ZERO; degree + 1];
            wire::recv(&mut d, "", channel).unwrap();
            (d, key.w.to_vec())
        },
    );
    let at = |z| evaluate(&d, z) + evaluate(&w, z) == evaluate(&p, z);
    assert!(at(z));
    assert!(!random::<Fp61>(50, 2).into_iter().any(at));
    assert!(d.iter().zip(&p).all(|(d, p)| d != p));
}
