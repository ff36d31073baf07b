//! Peers that deviate from the protocol: the honest party ends with an error and its object is
//! poisoned.

use std::panic::{AssertUnwindSafe, catch_unwind};

use volery_channel::{Channel, Error, memory, run_two_channels};
use volery_ot::softspoken::{self, SmallField};
use volery_ot::{CotReceiver, CotSender, base, convert, ideal, iknp};
use volery_primitives::Block;
use volery_testing::fault::Tampered;

use super::{SESSION, random_bits, rng};

const N: usize = 200;

/// The outcomes of the two parties.
struct Ends {
    sender: Result<Vec<Block>, Error>,
    receiver: Result<(), Error>,
}

/// Setup and one extension; a failed `extend` is repeated, to check that the object is poisoned.
fn softspoken_run(sender: Channel, receiver: Channel, field: SmallField) -> Ends {
    let ((sender, _), (receiver, _)) = run_two_channels(
        sender,
        receiver,
        |channel| {
            let mut cot =
                softspoken::Sender::setup(Some(Block::ALL_ONES), field, SESSION, rng(1), channel)?;
            let mut v = vec![Block::ZERO; N];
            let result = cot.extend(&mut v, channel);
            if result.is_err() {
                assert!(v.iter().all(|&v| v == Block::ZERO), "nothing is given out");
                assert!(matches!(cot.extend(&mut v, channel), Err(Error::Broken)));
                assert!(matches!(cot.extend(&mut [], channel), Err(Error::Broken)));
                let delta = AssertUnwindSafe(|| cot.delta());
                assert!(catch_unwind(delta).is_err(), "delta is deleted");
            }
            result.map(|()| v)
        },
        |channel| {
            let mut cot = softspoken::Receiver::setup(field, SESSION, rng(2), channel)?;
            extend_or_broken(&mut cot, channel)
        },
    );
    Ends { sender, receiver }
}

/// One extension of a receiver; if it fails, the object is poisoned.
fn extend_or_broken(cot: &mut impl CotReceiver, channel: &mut Channel) -> Result<(), Error> {
    let (mut u, mut w) = (vec![0; N.div_ceil(8)], vec![Block::ZERO; N]);
    let result = cot.extend(&mut u, &mut w, channel);
    if result.is_err() {
        let again = cot.extend(&mut u, &mut w, channel);
        assert!(matches!(again, Err(Error::Broken)));
        assert!(matches!(
            cot.extend(&mut [], &mut [], channel),
            Err(Error::Broken)
        ));
    }
    result
}

/// Bytes of the receiver's messages: `A`, trees, tags, corrections, response.
fn parts(field: SmallField) -> [u64; 5] {
    let trees = field.trees() as u64;
    let columns = (N.div_ceil(128) * 128 + 128) as u64;
    [
        32,
        trees * (field.bits() as u64 - 1) * 32,
        (trees + 1) * 32,
        (trees - 1) * columns / 8,
        48,
    ]
}

#[test]
fn a_flipped_bit_from_the_receiver_is_caught() {
    for field in SmallField::ALL {
        let mut start = 0;
        for (part, len) in parts(field).into_iter().enumerate() {
            let places = [
                0,
                1,
                len / 3,
                len / 2,
                len.saturating_sub(17),
                len.saturating_sub(1),
            ];
            for (i, place) in places.into_iter().filter(|&place| place < len).enumerate() {
                let (sender, receiver) = memory::pair();
                let receiver = Tampered::flip(receiver, start + place, 1 << ((i + part) % 8));
                let ends = softspoken_run(Channel::new(sender), Channel::new(receiver), field);
                assert!(
                    matches!(ends.sender, Err(Error::PeerMisbehaved(_))),
                    "{field:?}, part {part}, byte {place}: {:?}",
                    ends.sender.err()
                );
            }
            start += len;
        }
    }
}

#[test]
fn a_flipped_bit_from_the_sender_is_caught() {
    let field = SmallField::Bits8;
    for place in [0, 31, 32, 63, 64, 1000, 5555, 64 * 127, 64 * 128 - 1] {
        let (sender, receiver) = memory::pair();
        let sender = Tampered::flip(sender, place, 1 << (place % 7));
        let ends = softspoken_run(Channel::new(sender), Channel::new(receiver), field);
        // The receiver refuses the element, or the sender finds that its keys differ from the
        // receiver's.
        assert!(ends.sender.is_err(), "byte {place}");
        if ends.receiver.is_ok() {
            assert!(matches!(ends.sender, Err(Error::PeerMisbehaved(_))));
        }
    }
}

#[test]
fn a_cut_connection_is_an_error_and_kills_the_object() {
    let field = SmallField::Bits2;
    let total: u64 = parts(field).iter().sum();
    for end in [0, 31, 32, 100, total - 49, total - 48, total - 1] {
        let (sender, receiver) = memory::pair();
        let receiver = Tampered::truncated(receiver, end);
        let ends = softspoken_run(Channel::new(sender), Channel::new(receiver), field);
        assert!(
            matches!(ends.sender, Err(Error::Disconnected)),
            "after {end} bytes"
        );
        assert!(ends.receiver.is_err(), "after {end} bytes");
    }
}

#[test]
fn an_iknp_object_is_dead_after_an_error_on_a_living_channel() {
    for end in [32, 1000, 32 + 16 * 256 - 1] {
        let (sender, receiver) = memory::pair();
        let receiver = Tampered::truncated(receiver, end);
        let ((sender, _), _) = run_two_channels(
            Channel::new(sender),
            Channel::new(receiver),
            |channel| {
                let mut cot = iknp::Sender::setup(None, SESSION, rng(1), channel)?;
                let result = cot.extend(&mut [Block::ZERO; N], channel);
                // The channel is not the cause: another one does not help.
                let (mut other, _peer) = Channel::memory_pair();
                assert!(matches!(
                    cot.extend(&mut [], &mut other),
                    Err(Error::Broken)
                ));
                let delta = AssertUnwindSafe(|| cot.delta());
                assert!(catch_unwind(delta).is_err(), "delta is deleted");
                result
            },
            |channel| {
                let mut cot = iknp::Receiver::setup(SESSION, rng(2), channel)?;
                extend_or_broken(&mut cot, channel)
            },
        );
        assert!(matches!(sender, Err(Error::Disconnected)), "after {end}");
    }
}

#[test]
fn unused_bits_of_the_corrected_choices_must_be_zero() {
    // 200 leaves no bit of the last byte unused; the others do.
    for (n, used) in [(1, 1), (7, 7), (N, 8), (65_535, 7), (65_537, 1)] {
        let bytes = u64::try_from(usize::div_ceil(n, 8)).unwrap();
        for bit in 0..8 {
            let (sender, receiver) = memory::pair();
            let receiver = Tampered::flip(receiver, bytes - 1, 1 << bit);
            let (cot_sender, cot_receiver) = ideal::pair(Block::from(7), Block::from(8));
            let ((result, _), _) = run_two_channels(
                Channel::new(sender),
                Channel::new(receiver),
                |channel| {
                    let mut ot = convert::Sender::new(cot_sender, SESSION);
                    let result = ot.correlated_chosen(&mut vec![Block::ZERO; n], channel);
                    if result.is_err() {
                        let again = ot.random(&mut [[Block::ZERO; 2]], channel);
                        assert!(matches!(again, Err(Error::Broken)));
                    }
                    result
                },
                |channel| {
                    let mut ot = convert::Receiver::new(cot_receiver, SESSION);
                    ot.correlated_chosen(&random_bits(n, 3), &mut vec![Block::ZERO; n], channel)
                },
            );
            if bit < used {
                assert!(result.is_ok(), "{n}: bit {bit} is the receiver's choice");
            } else {
                assert!(
                    matches!(result, Err(Error::PeerMisbehaved(_))),
                    "{n}: bit {bit}"
                );
            }
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
        (
            prime_and(0).map(|byte| if byte == 0xed { 0xec } else { byte }),
            group,
        ),
    ];
    bad.extend(outside.take(3).map(|bytes| (bytes, group)));
    assert_eq!(bad.len(), 12, "the list has all twelve encodings");
    bad
}

#[test]
fn bad_encodings_are_refused_by_name() {
    let valid = curve25519_dalek::constants::RISTRETTO_BASEPOINT_COMPRESSED.to_bytes();
    let refused = |result: Result<(), Error>, name: &str, place: &str| {
        let Err(Error::PeerMisbehaved(text)) = result else {
            panic!("{place}: {result:?}")
        };
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

/// Both extensions run base OTs: the first and the last element of each message, as the extension's
/// user receives it.
#[test]
fn every_user_of_group_elements_refuses_bad_ones() {
    let valid = curve25519_dalek::constants::RISTRETTO_BASEPOINT_COMPRESSED.to_bytes();
    for (bad, name) in bad_encodings() {
        let refused = |result: Result<(), Error>| {
            assert!(matches!(result, Err(Error::PeerMisbehaved(text)) if text == name));
        };
        // The holders of delta are the receivers of the base OTs, and receive one element.
        let field = SmallField::Bits8;
        refused(against(&bad, |channel| {
            softspoken::Sender::setup(None, field, SESSION, rng(1), channel).map(|_| ())
        }));
        refused(against(&bad, |channel| {
            iknp::Sender::setup(None, SESSION, rng(1), channel).map(|_| ())
        }));
        for place in [0, 255] {
            let mut pairs = [valid; 256];
            pairs[place] = bad;
            refused(against(pairs.as_flattened(), |channel| {
                softspoken::Receiver::setup(field, SESSION, rng(1), channel).map(|_| ())
            }));
            refused(against(pairs.as_flattened(), |channel| {
                iknp::Receiver::setup(SESSION, rng(1), channel).map(|_| ())
            }));
        }
    }
}
