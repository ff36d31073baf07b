//! Comparison with plain products; cost; mismatched shapes; peers that send invalid elements.

use volery_channel::{SessionId, Stats, run_two_parties};
use volery_field::{Fp61, Gf128, Z64};

use super::*;
use crate::testing::{
    self, assert_differ, assert_misbehaved, assert_offline_differ, rng, send_no_elements, sources,
};

const OUTPUTS: [Output; 3] = [Output::Shared, Output::Left, Output::Right];

fn security<R: Ring>() -> Security {
    if R::NAME == "z64" { Security::SemiHonest } else { Security::default() }
}

fn random<R: Ring>(seed: u128, rows: usize, columns: usize) -> Matrix<R> {
    Matrix::from_columns(rows, columns, testing::random(rows * columns, seed)).unwrap()
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
            Left::offline(shape, output, security::<R>(), session, rng(1), channel)
                .unwrap()
                .online(&a, channel)
                .unwrap()
        },
        |channel| {
            let shape = Shape::agree(Side::Right, (m, p), channel).unwrap();
            assert_eq!((shape.rows(), shape.inner(), shape.columns()), (n, m, p));
            Right::offline(shape, output, security::<R>(), session, rng(2), channel)
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
    for (error, wanted) in
        [(a.unwrap_err(), "agreed on 4 x 3"), (b.unwrap_err(), "agreed on 3 x 2")]
    {
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[test]
fn elements_that_are_not_canonical_are_refused() {
    let shape = Shape::new(4, 1, 1).unwrap();
    // The masked scalar; the share.
    for (output, good, bad) in [(Output::Shared, 0, 1), (Output::Left, 1, 4)] {
        sources(
            Security::Malicious,
            |source, channel| {
                let sender = Sender::<Fp61>::offline(shape, output, source, channel).unwrap();
                assert_misbehaved(sender.online(&random(1, 4, 1), channel));
            },
            |source, channel| {
                Receiver::<Fp61>::offline(shape, output, source, channel).unwrap();
                send_no_elements(good, bad, channel);
                channel.recv(&mut vec![0; 32 * good]).unwrap();
            },
        );
    }
    // The masked column; the share.
    for (output, good, bad) in [(Output::Shared, 0, 4), (Output::Right, 4, 4)] {
        sources(
            Security::Malicious,
            |source, channel| {
                Sender::<Fp61>::offline(shape, output, source, channel).unwrap();
                channel.recv(&mut [0; 8]).unwrap();
                send_no_elements(good, bad, channel);
            },
            |source, channel| {
                let receiver = Receiver::<Fp61>::offline(shape, output, source, channel).unwrap();
                assert_misbehaved(receiver.online(&random(1, 1, 1), channel));
            },
        );
    }
}

#[test]
fn each_setting_is_compared() {
    type Setting = (usize, usize, usize, Output);
    let differ = |name: &str, ours: Setting, theirs: Setting| {
        let shape = |(rows, inner, columns, _): Setting| Shape::new(rows, inner, columns).unwrap();
        assert_offline_differ(
            name,
            |source, channel| {
                Sender::<Fp61>::offline(shape(ours), ours.3, source, channel).map(drop)
            },
            |source, channel| {
                Receiver::<Fp61>::offline(shape(theirs), theirs.3, source, channel).map(drop)
            },
        );
    };
    let ours = (4, 3, 2, Output::Shared);
    for (theirs, name) in [
        ((5, 3, 2, Output::Shared), "rows of the left"),
        ((4, 5, 2, Output::Shared), "columns of the left"),
        ((4, 3, 5, Output::Shared), "columns of the right"),
        ((4, 3, 2, Output::Left), "output"),
        ((4, 3, 2, Output::Right), "output"),
    ] {
        differ(name, ours, theirs);
    }
    differ("output", (4, 3, 2, Output::Left), (4, 3, 2, Output::Right));
}

/// Shapes that would give both parties the same role.
#[test]
fn a_product_compares_its_shape_before_the_roles() {
    let (session, security) = (SessionId::from_bytes([3; 32]), Security::SemiHonest);
    let [wide, tall] = [(3, 2, 9), (9, 2, 3)].map(|(n, m, p)| Shape::new(n, m, p).unwrap());
    for (ours, theirs) in [(wide, tall), (tall, wide)] {
        let output = Output::Shared;
        assert_differ(
            "rows of the left",
            |channel| {
                Left::<Fp61>::offline(ours, output, security, session, rng(1), channel).map(drop)
            },
            |channel| {
                Right::<Fp61>::offline(theirs, output, security, session, rng(2), channel).map(drop)
            },
        );
    }
}
