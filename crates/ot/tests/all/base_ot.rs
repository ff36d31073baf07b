//! Base OT between honest parties, and against encodings that are no elements.

use crate::common::*;
use volery_channel::{Channel, Error, run_two_parties};
use volery_ot::base;

#[test]
fn the_receiver_gets_the_key_it_asks_for_and_no_other() {
    for n in [0, 1, 2, 7, 8, 9, 63, 64, 65, 128, 131] {
        let choices = random_bits(n, 4);
        let (pairs, keys) = run_two_parties(
            |channel| base::send(n, SESSION, &mut rng(1), channel).unwrap(),
            |channel| base::receive(&choices, n, SESSION, &mut rng(2), channel).unwrap(),
        );
        assert_eq!((pairs.len(), keys.len()), (n, n));
        let mut seen = std::collections::HashSet::new();
        for (i, (pair, &key)) in pairs.iter().zip(keys.iter()).enumerate() {
            assert_eq!(pair[usize::from(bit(&choices, i))], key, "OT {i} of {n}");
            assert!(pair.iter().all(|&key| seen.insert(u128::from(key))), "no key twice");
        }
    }
}

/// A peer that only sends `bytes`.
fn against(
    bytes: &[u8],
    honest: impl FnOnce(&mut Channel) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut channel, mut peer) = Channel::memory_pair();
    peer.send(bytes).unwrap();
    peer.flush().unwrap();
    honest(&mut channel)
}

/// Encodings that are not group elements, and the error names.
fn bad_encodings() -> Vec<([u8; 32], &'static str)> {
    let form = "a base OT element is not in canonical form";
    let group = "a base OT element is not in the group";
    let small = |number: u8| {
        let mut bytes = [0; 32];
        bytes[0] = number;
        bytes
    };
    // The prime plus a number.
    let prime_and = |number: u8| {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (0xed + number, 0x7f);
        bytes
    };
    let valid = curve25519_dalek::constants::RISTRETTO_BASEPOINT_COMPRESSED.to_bytes();
    let mut high_bit = valid;
    high_bit[31] |= 0x80;
    let mut negative = valid;
    negative[0] ^= 1;
    // The smallest even numbers that are not encodings of elements.
    let outside = (2..=u8::MAX).step_by(2).map(small);
    let outside = outside.filter(|bytes| {
        let point = curve25519_dalek::ristretto::CompressedRistretto(*bytes);
        point.decompress().is_none()
    });
    let mut bad = vec![
        ([0; 32], "a base OT element is the identity"),
        (prime_and(0), form),
        (prime_and(1), form),
        (prime_and(0x12), form),
        ([0xff; 32], form),
        (high_bit, form),
        (negative, form),
        (small(1), form),
        // The greatest even number below the prime: minus one, a point of order two or four on the
        // curve.
        (prime_and(0).map(|byte| if byte == 0xed { 0xec } else { byte }), group),
    ];
    bad.extend(outside.take(3).map(|bytes| (bytes, group)));
    assert_eq!(bad.len(), 12, "the list has all twelve encodings");
    bad
}

#[test]
fn bad_encodings_are_refused_by_name() {
    let valid = curve25519_dalek::constants::RISTRETTO_BASEPOINT_COMPRESSED.to_bytes();
    let refused = |result: Result<(), Error>, name: &str, place: &str| {
        let Err(Error::PeerMisbehaved(text)) = result else { panic!("{place}: {result:?}") };
        assert_eq!(text, name, "{place}");
    };
    let send = |channel: &mut Channel| base::send(3, SESSION, &mut rng(1), channel).map(|_| ());
    for (bad, name) in bad_encodings() {
        // Fewer and more elements than justify a table of multiples, where there is one.
        for n in [3, 64] {
            let choices = random_bits(n, 5);
            let receive = |channel: &mut Channel| {
                base::receive(&choices, n, SESSION, &mut rng(1), channel).map(|_| ())
            };
            refused(against(&bad, receive), name, "the sender's element");
        }
        for place in 0..6 {
            let mut pairs = [valid; 6];
            pairs[place] = bad;
            let result = against(pairs.as_flattened(), send);
            refused(result, name, &format!("the receiver's element {place}"));
        }
    }
    assert!(
        against([valid; 6].as_flattened(), send).is_ok(),
        "the changed element is the refused one"
    );
}
