//! Comparison with plain evaluation; cost; invalid inputs of peers and callers.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use proptest::prelude::*;
use volery_channel::{Channel, Error as ChannelError, Stats, run_two_parties};
use volery_field::{Gf128, Ring, Z64};
use volery_primitives::{Block, prg::Prg};

use super::*;
use crate::testing::{difference, sources};

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

fn random<R: Ring>(seed: u128, n: usize) -> Vec<R> {
    let mut elements = vec![R::ZERO; n];
    R::random_slice(&mut Prg::new(Block::from(seed)), &mut elements);
    elements
}

fn check<R: VoleRing>(security: Security, degree: usize, given: usize, points: &[R]) {
    let p = random::<R>(degree as u128, given);
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
        let points = random::<Fp61>(5, 2);
        check(Security::Malicious, degree, degree + 1, &points);
    }
    for degree in [0, 1, 129, 4099] {
        check(Security::SemiHonest, degree, degree + 1, &random::<Z64>(5, 3));
        check(Security::Malicious, degree, degree + 1, &random::<Gf128>(5, 2));
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
    let p = random::<Fp61>(7, degree + 1);
    let (values, sent, _) = run(Security::Malicious, degree, &p, &points);
    assert_eq!(**values, [evaluate(&p, points[0])]);
    assert_eq!(sent.bytes_sent + sent.bytes_received, 8_388_616 + 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_polynomial(p in prop::collection::vec(0..Fp61::MODULUS, 1..200), more in 0..70_usize, z in 0..Fp61::MODULUS) {
        let p = coefficients(&p).unwrap();
        let z = Fp61::reduce(z);
        let degree = p.len() - 1 + more;
        let (values, _, _) = run(Security::Malicious, degree, &p, &[z]);
        prop_assert_eq!(values[0], p.iter().rev().fold(Fp61::ZERO, |sum, p| sum * z + *p));
    }
}

/// `d` and `W` agree with the polynomial at `z` and, as far as one run shows, nowhere else.
#[test]
fn the_correction_is_of_another_polynomial() {
    let degree = 1000;
    let p = random::<Fp61>(1, degree + 1);
    let z = Fp61::reduce(77);
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
    let elsewhere = random::<Fp61>(2, 50).into_iter().filter(|z| at(*z)).count();
    assert_eq!(elsewhere, 0);
    assert!(d.iter().zip(&p).all(|(d, p)| d != p));
}

#[test]
fn settings_that_differ_are_named_at_both_sides() {
    for (ours, theirs) in [((10, 2), (11, 2)), ((10, 2), (10, 3))] {
        let (a, b) = sources(
            Security::Malicious,
            |source, channel| Sender::<Fp61>::offline(ours.0, ours.1, source, channel).map(|_| ()),
            |source, channel| {
                Receiver::<Fp61>::offline(theirs.0, theirs.1, source, channel).map(|_| ())
            },
        );
        for error in [a.unwrap_err(), b.unwrap_err()] {
            let Error::Channel(ChannelError::Mismatch { ours, theirs, .. }) = error else {
                panic!("{error}");
            };
            assert_ne!(ours, theirs);
        }
    }
}

/// Agrees on a polynomial over the ring, and returns the traffic of each direction.
fn agreed<R: VoleRing>(security: Security, channel: &mut Channel) -> Result<Stats> {
    agree::<R>(10, 2, security, channel).map(|()| channel.stats())
}

#[test]
fn settings_take_32_bytes_and_name_the_ring() {
    let strong = Security::Malicious;
    let (left, right) = run_two_parties(
        |channel| agreed::<Fp61>(strong, channel).unwrap(),
        |channel| agreed::<Fp61>(strong, channel).unwrap(),
    );
    for stats in [left, right] {
        assert_eq!((stats.bytes_sent, stats.bytes_received), (32, 32));
    }
    let ring = run_two_parties(
        |channel| agreed::<Fp61>(strong, channel),
        |channel| agreed::<Gf128>(strong, channel),
    );
    let security = run_two_parties(
        |channel| agreed::<Fp61>(strong, channel),
        |channel| agreed::<Fp61>(Security::SemiHonest, channel),
    );
    for ((a, b), name) in [(ring, "bits of the ring"), (security, "security")] {
        for error in [a.unwrap_err(), b.unwrap_err()] {
            let named = matches!(
                error,
                Error::Channel(ChannelError::Mismatch { field, .. }) if field.starts_with(name)
            );
            assert!(named, "{name}");
        }
    }
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
    assert!(matches!(error, Err(Error::Degree { given: 7, degree: 5 })));
    assert!(matches!(peer, Err(Error::Entries { given: 2, wanted: 1, .. })));
    assert!(matches!(
        coefficients(&[0, Fp61::MODULUS - 1, Fp61::MODULUS]),
        Err(Error::NotReduced { position: 2, .. })
    ));
    let error = coefficients(&[0, u64::MAX]).unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(!text.contains(&u64::MAX.to_string()), "{text}");
}

/// Bytes that are no elements, from either side.
#[test]
fn elements_that_are_not_canonical_are_refused() {
    let misbehaved = |error: Error| {
        assert!(matches!(error, Error::Channel(ChannelError::PeerMisbehaved(_))));
    };
    let bad = |n: usize, channel: &mut Channel| {
        channel.send(&vec![0xff; 8 * n]).unwrap();
        channel.flush().unwrap();
    };
    sources(
        Security::Malicious,
        |source, channel| {
            let sender = Sender::<Fp61>::offline(9, 1, source, channel).unwrap();
            misbehaved(sender.online(&[Fp61::ONE], channel).unwrap_err());
        },
        |source, channel| {
            Receiver::<Fp61>::offline(9, 1, source, channel).unwrap();
            bad(1, channel);
        },
    );
    sources(
        Security::Malicious,
        |source, channel| {
            Sender::<Fp61>::offline(9, 1, source, channel).unwrap();
            channel.recv(&mut [0; 8]).unwrap();
            bad(10, channel);
        },
        |source, channel| {
            let receiver = Receiver::<Fp61>::offline(9, 1, source, channel).unwrap();
            misbehaved(receiver.online(&[Fp61::ONE], channel).unwrap_err());
        },
    );
}

#[test]
fn each_setting_is_compared() {
    let compare = |degree, points| {
        move |channel: &mut Channel| agree::<Gf128>(degree, points, Security::Malicious, channel)
    };
    let field = difference(compare(5, 2), compare(6, 2));
    assert!(field.contains("degree"), "{field}");
    let field = difference(compare(5, 2), compare(5, 3));
    assert!(field.contains("points"), "{field}");
}
