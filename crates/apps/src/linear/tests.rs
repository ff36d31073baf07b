//! Comparison with plain products; cost; mismatched shapes; peers that send invalid elements.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use proptest::prelude::*;
use volery_channel::{Error as ChannelError, SessionId, Stats, run_two_parties};
use volery_field::{Fp61, Gf128, Z64};
use volery_primitives::{Block, prg::Prg};

use super::*;
use crate::{
    error::Error,
    testing::{difference, sources},
};

const OUTPUTS: [Output; 3] = [Output::Shared, Output::Left, Output::Right];

fn security<R: Ring>() -> Security {
    if R::NAME == "z64" { Security::SemiHonest } else { Security::default() }
}

fn random<R: Ring>(seed: u128, rows: usize, columns: usize) -> Matrix<R> {
    let mut entries = vec![R::ZERO; rows * columns];
    R::random_slice(&mut Prg::new(Block::from(seed)), &mut entries);
    Matrix::from_columns(rows, columns, entries).unwrap()
}

/// Checks that the results of both parties give the product, depending on the output.
fn verify<R: Ring>(
    output: Output,
    product: &Matrix<R>,
    left: Option<Matrix<R>>,
    right: Option<Matrix<R>>,
) {
    match (output, left, right) {
        (Output::Shared, Some(left), Some(right)) => {
            assert!(left.plus(&right).unwrap() == *product);
            assert!(left != *product && right != *product);
        }
        (Output::Left, Some(result), None) | (Output::Right, None, Some(result)) => {
            assert!(result == *product);
        }
        (output, left, right) => panic!("{output:?}: {left:?}, {right:?}"),
    }
}

/// Runs sender and receiver; returns the online traffic of each channel.
fn check<R: VoleRing>(n: usize, m: usize, p: usize, output: Output) -> (Stats, Stats) {
    let (a, b) = (random::<R>(1, n, m), random::<R>(2, m, p));
    let shape = Shape::new(n, m, p).unwrap();
    let ((left, sent), (right, received)) = sources(
        security::<R>(),
        |source, channel| {
            let sender = Sender::offline(shape, output, source, channel).unwrap();
            let before = channel.stats();
            let result = sender.online(&a, channel).unwrap();
            (result, channel.stats() - before)
        },
        |source, channel| {
            let receiver = Receiver::offline(shape, output, source, channel).unwrap();
            let before = channel.stats();
            let result = receiver.online(&b, channel).unwrap();
            (result, channel.stats() - before)
        },
    );
    verify(output, &a.times(&b).unwrap(), left, right);
    (sent, received)
}

#[test]
fn products_of_every_shape_over_every_ring() {
    for output in OUTPUTS {
        for (n, m, p) in [(1, 1, 1), (7, 3, 2), (257, 2, 1), (16_385, 2, 1), (2, 5, 3)] {
            check::<Fp61>(n, m, p, output);
        }
        check::<Z64>(130, 3, 2, output);
        check::<Gf128>(33, 2, 2, output);
    }
    check::<Fp61>(65_537, 2, 1, Output::Shared);
}

#[test]
fn the_cost_is_that_of_the_doc() {
    let (n, m, p) = (1009, 3, 2);
    for output in OUTPUTS {
        let (sent, received) = check::<Fp61>(n, m, p, output);
        let revealed = |to| if output == to { n * p } else { 0 };
        let (scalars, all) = (m * p, n * m * p);
        let expected = Stats {
            bytes_sent: 8 * (all + revealed(Output::Right)) as u64,
            bytes_received: 8 * (scalars + revealed(Output::Left)) as u64,
            messages_sent: 1,
            messages_received: 1 + u64::from(output == Output::Left),
            ..sent
        };
        assert_eq!(sent, expected);
        assert_eq!(received.bytes_sent, sent.bytes_received);
    }
}

/// [`Left`] and [`Right`], in both orientations.
fn check_either<R: VoleRing>(n: usize, m: usize, p: usize, output: Output) {
    let (a, b) = (random::<R>(1, n, m), random::<R>(2, m, p));
    let session = SessionId::from_bytes([3; 32]);
    let (left, right) = run_two_parties(
        |channel| {
            let shape = Shape::agree(Side::Left, (n, m), channel).unwrap();
            let rng = Prg::new(Block::from(1));
            Left::offline(shape, output, security::<R>(), session, rng, channel)
                .unwrap()
                .online(&a, channel)
                .unwrap()
        },
        |channel| {
            let shape = Shape::agree(Side::Right, (m, p), channel).unwrap();
            assert_eq!((shape.rows(), shape.inner(), shape.columns()), (n, m, p));
            let rng = Prg::new(Block::from(2));
            Right::offline(shape, output, security::<R>(), session, rng, channel)
                .unwrap()
                .online(&b, channel)
                .unwrap()
        },
    );
    verify(output, &a.times(&b).unwrap(), left, right);
}

#[test]
fn the_orientation_with_fewer_vector_oles_is_taken() {
    assert_eq!(Shape::new(9, 2, 3).unwrap().vectors(), Side::Left);
    assert_eq!(Shape::new(3, 2, 9).unwrap().vectors(), Side::Right);
    for output in OUTPUTS {
        check_either::<Fp61>(19, 2, 3, output);
        check_either::<Fp61>(3, 2, 19, output);
        check_either::<Z64>(1, 2, 19, output);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn any_small_shape(n in 1..9_usize, m in 1..5_usize, p in 1..5_usize, output in 0..3_usize) {
        check_either::<Fp61>(n, m, p, OUTPUTS[output]);
    }
}

#[test]
fn factors_that_do_not_fit_are_named_at_both_sides() {
    let (left, right) = run_two_parties(
        |channel| Shape::agree(Side::Left, (4, 3), channel).unwrap_err(),
        |channel| Shape::agree(Side::Right, (5, 2), channel).unwrap_err(),
    );
    for error in [left, right] {
        assert!(matches!(error, Error::Shape { left: (4, 3), right: (5, 2) }));
    }
    // A factor that is empty or too large to be counted.
    for size in [(0, 3), (usize::MAX, 3)] {
        let (left, right) = run_two_parties(
            |channel| Shape::agree(Side::Left, size, channel).map(|_| ()),
            |channel| Shape::agree(Side::Right, (3, 2), channel).map(|_| ()),
        );
        assert!(left.is_err() && right.is_err());
    }
    for (n, m, p) in [(0, 1, 1), (1, 0, 1), (1, 1, 0)] {
        assert!(matches!(Shape::new(n, m, p), Err(Error::Empty(_))));
    }
    let huge = Shape::new(1 << 20, 1 << 20, 2);
    assert!(matches!(huge, Err(Error::TooLarge { .. })));
}

#[test]
fn a_vector_is_one_column() {
    let (left, right) = run_two_parties(
        |channel| Shape::agree_vector(Side::Left, (4, 3), channel),
        |channel| Shape::agree_vector(Side::Right, (3, 1), channel),
    );
    let shape = Shape::new(4, 3, 1).unwrap();
    assert_eq!((left.unwrap(), right.unwrap()), (shape, shape));
    // A peer that claims any rows and columns of its factor.
    let with_peer = |side, own, theirs: [u64; 2]| {
        let (ours, heard) = run_two_parties(
            |channel| Shape::agree_vector(side, own, channel),
            |channel| {
                channel.send(theirs.map(u64::to_le_bytes).as_flattened()).unwrap();
                channel.flush().unwrap();
                let mut heard = [0; 16];
                channel.recv(&mut heard).unwrap();
                heard
            },
        );
        let (rows, columns) = own;
        assert_eq!(heard[..], *[rows as u64, columns as u64].map(u64::to_le_bytes).as_flattened());
        ours
    };
    for columns in [2, 3, 4, 1 << 30] {
        let refused = with_peer(Side::Left, (4, 3), [3, columns]);
        assert!(
            matches!(refused, Err(Error::NotVector { columns: c }) if c == columns),
            "{columns} columns"
        );
    }
    assert!(matches!(with_peer(Side::Left, (4, 3), [3, 0]), Err(Error::Empty(_))));
    assert!(matches!(with_peer(Side::Left, (4, 3), [3, u64::MAX]), Err(Error::TooLarge { .. })));
    assert!(matches!(with_peer(Side::Left, (4, 3), [2, 1]), Err(Error::Shape { .. })));
    assert_eq!(with_peer(Side::Left, (4, 3), [3, 1]).unwrap(), shape);
    // The holder of the right factor: its own factor is not a vector.
    assert!(matches!(with_peer(Side::Right, (3, 2), [4, 3]), Err(Error::NotVector { columns: 2 })));
    assert_eq!(with_peer(Side::Right, (3, 1), [4, 3]).unwrap(), shape);
}

#[test]
fn settings_take_48_bytes() {
    let shape = Shape::new(4, 3, 1).unwrap();
    let party = |channel: &mut Channel| {
        agree::<Fp61>(shape, Output::Left, Security::Malicious, channel).unwrap();
        channel.stats()
    };
    let (left, right) = run_two_parties(party, party);
    for stats in [left, right] {
        assert_eq!((stats.bytes_sent, stats.bytes_received), (48, 48));
    }
}

/// A different ring and a different security are each reported under their own names.
#[test]
fn another_ring_or_security_is_named() {
    let shape = Shape::new(4, 3, 1).unwrap();
    let session = SessionId::from_bytes([3; 32]);
    let left = |security, channel: &mut Channel| {
        let rng = Prg::new(Block::from(1));
        Left::<Fp61>::offline(shape, Output::Left, security, session, rng, channel).map(|_| ())
    };
    fn right<R: VoleRing>(shape: Shape, security: Security, channel: &mut Channel) -> Result<()> {
        let (session, rng) = (SessionId::from_bytes([3; 32]), Prg::new(Block::from(2)));
        Right::<R>::offline(shape, Output::Left, security, session, rng, channel).map(|_| ())
    }
    let weak = Security::SemiHonest;
    let ring = run_two_parties(
        |channel| left(weak, channel),
        |channel| right::<Z64>(shape, weak, channel),
    );
    let security = run_two_parties(
        |channel| left(Security::Malicious, channel),
        |channel| right::<Fp61>(shape, weak, channel),
    );
    let name = "security (0: semi-honest, 1: malicious)";
    for ((a, b), name) in [(ring, "bits of the ring"), (security, name)] {
        for result in [a, b] {
            let named = matches!(
                result.unwrap_err(),
                Error::Channel(ChannelError::Mismatch { field, .. }) if field == name
            );
            assert!(named, "{name}");
        }
    }
}

#[test]
fn settings_that_differ_are_named_at_both_sides() {
    let shape = Shape::new(4, 3, 2).unwrap();
    let other = Shape::new(4, 3, 1).unwrap();
    for (theirs, output) in [(other, Output::Shared), (shape, Output::Left)] {
        let (a, b) = sources(
            Security::Malicious,
            |source, channel| {
                Sender::<Fp61>::offline(shape, Output::Shared, source, channel).map(|_| ())
            },
            |source, channel| {
                Receiver::<Fp61>::offline(theirs, output, source, channel).map(|_| ())
            },
        );
        for error in [a.unwrap_err(), b.unwrap_err()] {
            assert!(matches!(error, Error::Channel(ChannelError::Mismatch { .. })));
        }
    }
}

/// A party's own factor of another shape, before anything is sent.
#[test]
fn a_factor_of_another_shape_is_refused() {
    let shape = Shape::new(4, 3, 2).unwrap();
    let (a, b) = sources(
        Security::Malicious,
        |source, channel| {
            let sender = Sender::offline(shape, Output::Shared, source, channel).unwrap();
            sender.online(&random::<Fp61>(1, 3, 4), channel)
        },
        |source, channel| {
            let receiver = Receiver::offline(shape, Output::Shared, source, channel).unwrap();
            receiver.online(&random::<Fp61>(1, 2, 3), channel)
        },
    );
    for (error, wanted) in [(a.unwrap_err(), (4, 3)), (b.unwrap_err(), (3, 2))] {
        assert!(matches!(error, Error::Factor { wanted: w, .. } if w == wanted));
    }
}

#[test]
fn elements_that_are_not_canonical_are_refused() {
    let shape = Shape::new(4, 1, 1).unwrap();
    let misbehaved = |error: Error| {
        assert!(matches!(error, Error::Channel(ChannelError::PeerMisbehaved(_))));
    };
    // The masked scalar; the masked column; the share.
    for (output, from_sender, good, bad) in [
        (Output::Shared, false, 0, 1),
        (Output::Left, false, 1, 4),
        (Output::Shared, true, 0, 4),
        (Output::Right, true, 4, 4),
    ] {
        let cheat = |channel: &mut Channel| {
            channel.send(&vec![0; 8 * good]).unwrap();
            channel.send(&vec![0xff; 8 * bad]).unwrap();
            channel.flush().unwrap();
        };
        sources(
            Security::Malicious,
            |source, channel| {
                let sender = Sender::<Fp61>::offline(shape, output, source, channel).unwrap();
                if from_sender {
                    channel.recv(&mut [0; 8]).unwrap();
                    cheat(channel);
                } else {
                    misbehaved(sender.online(&random(1, 4, 1), channel).unwrap_err());
                }
            },
            |source, channel| {
                let receiver = Receiver::<Fp61>::offline(shape, output, source, channel).unwrap();
                if from_sender {
                    misbehaved(receiver.online(&random(1, 1, 1), channel).unwrap_err());
                } else {
                    cheat(channel);
                    if output == Output::Left {
                        channel.recv(&mut [0; 32]).unwrap();
                    }
                }
            },
        );
    }
}

#[test]
fn each_setting_is_compared() {
    type Setting = (usize, usize, usize, Output);
    let compare = |(rows, inner, columns, output): Setting| {
        move |channel: &mut Channel| {
            let shape = Shape::new(rows, inner, columns).unwrap();
            agree::<Fp61>(shape, output, Security::Malicious, channel)
        }
    };
    let ours = (4, 3, 2, Output::Shared);
    for (theirs, name) in [
        ((5, 3, 2, Output::Shared), "rows of the left"),
        ((4, 5, 2, Output::Shared), "columns of the left"),
        ((4, 3, 5, Output::Shared), "columns of the right"),
        ((4, 3, 2, Output::Left), "output"),
        ((4, 3, 2, Output::Right), "output"),
    ] {
        let field = difference(compare(ours), compare(theirs));
        assert!(field.contains(name), "{field}");
    }
    let [left, right] = [Output::Left, Output::Right].map(|output| compare((4, 3, 2, output)));
    assert!(difference(left, right).contains("output"));
}
