use volery_channel::{Stats, run_two_unchecked};
use volery_field::{F2, Fp61, Gf128, Z64};

use super::*;
use crate::testing::{assert_differ, ots, over_ots as run, random_pair, rng};

type Shares<R> = Result<Zeroizing<Vec<R>>>;

fn scatter<R: Ring>(
    way: Way,
    public: Public,
    indices: &[usize],
    values: &[Vec<R>; 2],
) -> (Shares<R>, Shares<R>, Stats) {
    run(
        |ot, channel| send_by(way, public, &values[0], &mut rng(1), ot, channel),
        |ot, channel| receive_by(way, public, indices, &values[1], &mut rng(2), ot, channel),
    )
}

/// Indices derived from the seed, many of them equal if `count` is not far below `length`.
fn indices(length: usize, count: usize, seed: u128) -> Vec<usize> {
    let mut rng = rng(seed);
    (0..count).map(|_| rng.below(length as u64) as usize).collect()
}

fn check<R: Ring>(length: usize, repeats: Repeats, indices: &[usize]) {
    let public = Public { length, count: indices.len(), repeats, overflow: Overflow::Abort };
    let values = random_pair::<R>(indices.len());
    let mut table = vec![R::ZERO; length];
    for (pair, index) in indices.iter().enumerate() {
        table[*index] += values[0][pair] + values[1][pair];
    }
    for way in [Way::Trees, Way::Network] {
        let (left, right, _) = scatter(way, public, indices, &values);
        let (left, right) = (left.unwrap(), right.unwrap());
        assert_eq!((left.len(), right.len()), (length, length));
        for entry in 0..length {
            assert!(
                left[entry] + right[entry] == table[entry],
                "entry {entry} of {length}, {} pairs, {repeats:?}, {way:?}",
                indices.len()
            );
        }
    }
}

fn check_rings(length: usize, repeats: Repeats, indices: &[usize]) {
    check::<Fp61>(length, repeats, indices);
    check::<Z64>(length, repeats, indices);
    check::<Gf128>(length, repeats, indices);
    check::<F2>(length, repeats, indices);
}

#[test]
fn pairs_come_to_their_entries() {
    for (length, count) in
        [(0, 0), (5, 0), (1, 1), (2, 2), (31, 31), (64, 7), (257, 256), (1009, 65)]
    {
        let distinct: Vec<_> = (0..count).map(|i| (i * 5 + 3) % length).collect();
        check_rings(length, Repeats::Refuse, &distinct);
        check_rings(length, Repeats::Add, &distinct);
    }
}

#[test]
fn values_of_equal_indices_add_up() {
    for (length, count) in [(1, 1), (1, 9), (3, 2), (4, 100), (100, 33), (299, 255), (1009, 64)] {
        check_rings(length, Repeats::Add, &indices(length, count, 3));
    }
    // Runs in an order that is not ascending
    check_rings(9, Repeats::Add, &[7, 7, 7, 0, 8, 8, 1]);
}

/// The way changes where the counted bytes do.
#[test]
fn the_cheaper_way_is_taken() {
    for (length, count) in
        [(1 << 14, 10), (1000, 1000), (500, 3000), (10, 1), (4000, 400), (4000, 200)]
    {
        let public = Public { length, count, repeats: Repeats::Refuse, overflow: Overflow::Drop };
        let distinct: Vec<_> = (0..count.min(length)).collect();
        let public = Public { count: distinct.len(), ..public };
        let values = random_pair::<Z64>(distinct.len());
        let bytes = [Way::Trees, Way::Network].map(|way| {
            let stats = scatter(way, public, &distinct, &values).2;
            (stats.bytes_sent + stats.bytes_received) as f64
        });
        let [chosen, other] = match public.way::<Z64>() {
            Way::Trees => bytes,
            Way::Network => [bytes[1], bytes[0]],
        };
        assert!(chosen <= 1.05 * other, "{length} entries, {count} pairs: {bytes:?}");
    }
    let way = |length, count| {
        Public { length, count, repeats: Repeats::Add, overflow: Overflow::Drop }.way::<Z64>()
    };
    assert_eq!(way(1 << 20, 1000), Way::Trees);
    assert_eq!(way(1000, 1 << 20), Way::Network);
}

#[test]
fn the_cost_is_the_documented_one() {
    let (length, count) = (300, 200);
    let public = Public { length, count, repeats: Repeats::Add, overflow: Overflow::Drop };
    assert_eq!(public.way::<Fp61>(), Way::Network);
    let values = random_pair::<Fp61>(count);
    let indices = indices(length, count, 4);
    let (left, right, stats) = run(
        |ot, channel| send(public, &values[0], &mut rng(2), ot, channel),
        |ot, channel| receive(public, &indices, &values[1], &mut rng(2), ot, channel),
    );
    assert_eq!((left.unwrap().len(), right.unwrap().len()), (length, length));
    let steps = [switching::switches(count), count - 1, switching::switches(length)];
    let sent: usize = 40 + steps.iter().map(|products| products.div_ceil(8)).sum::<usize>();
    let received: usize = 40 + steps.iter().map(|products| 8 * products).sum::<usize>();
    assert_eq!((stats.bytes_sent as usize, stats.bytes_received as usize), (sent, received));
    assert_eq!((stats.messages_sent, stats.messages_received), (4, 4));
}

/// The errors of the holder and of the helper, when only the public numbers were exchanged.
fn refused(public: Public, indices: &[usize]) -> (Error, Error) {
    let (mut ot_sender, mut ot_receiver) = ots();
    let values = vec![Z64::ONE; public.count];
    let (left, right) = run_two_unchecked(
        |channel| send(public, &values, &mut rng(2), &mut ot_sender, channel).unwrap_err(),
        |channel| {
            let ot = &mut ot_receiver;
            receive(public, indices, &values, &mut rng(2), ot, channel).unwrap_err()
        },
    );
    (left, right)
}

#[test]
fn indices_that_are_refused() {
    let public = |repeats, count| Public { length: 7, count, repeats, overflow: Overflow::Drop };
    let (left, right) = refused(public(Repeats::Add, 3), &[4, 999, 2]);
    assert_eq!(
        right.to_string(),
        "index number 1 (counted from 0) is not below 7, the entries of the vector: the first is number 0"
    );
    let shown = format!("{right:?} {right}");
    assert!(!shown.contains("999"), "{shown}");
    assert!(matches!(left, Error::Channel(volery_channel::Error::Disconnected)));
    let (_, right) = refused(public(Repeats::Refuse, 4), &[5, 1, 2, 5]);
    assert_eq!(
        right.to_string(),
        "pairs 0 and 3 (counted from 0) have the same index: leave one out, or let equal indices add up on both sides"
    );
    let empty = Public { length: 0, ..public(Repeats::Add, 2) };
    let (left, right) = refused(empty, &[0, 0]);
    assert!(matches!((left, right), (Error::Empty(_), Error::Empty(_))));
}

/// Through the public functions, before any message or choice of the way.
#[test]
fn sizes_that_cannot_be_counted_are_no_panic() {
    for (length, count) in [(usize::MAX, 0), (LARGEST + 1, 2), (2, usize::MAX)] {
        let public = Public { length, count, repeats: Repeats::Add, overflow: Overflow::Drop };
        let (left, right, stats) = run(
            |ot, channel| send(public, &[Z64::ONE; 2], &mut rng(2), ot, channel).map(drop),
            |ot, channel| {
                let ones = [Z64::ONE; 2];
                receive(public, &[0, 1], &ones, &mut rng(2), ot, channel).map(drop)
            },
        );
        for refused in [left, right] {
            assert!(matches!(refused, Err(Error::TooLarge { bits: 28, .. })));
        }
        assert_eq!((stats.bytes_sent, stats.bytes_received), (0, 0));
    }
}

#[test]
fn each_setting_is_compared() {
    let public = Public { length: 10, count: 2, repeats: Repeats::Add, overflow: Overflow::Drop };
    let (repeats, overflow) = (Repeats::Refuse, Overflow::Abort);
    for (theirs, name) in [
        (Public { length: 11, ..public }, "entries of the vector"),
        (Public { count: 3, ..public }, "pairs"),
        (Public { repeats, ..public }, "repeated indices"),
        (Public { overflow, ..public }, "failed hashing"),
    ] {
        let (mut ot, mut receiver_ot) = ots();
        let (indices, ones) = (&[0, 1, 2][..theirs.count], &[Z64::ONE; 3][..theirs.count]);
        assert_differ(
            name,
            |channel| send(public, &ones[..2], &mut rng(1), &mut ot, channel).map(drop),
            |channel| {
                receive(theirs, indices, ones, &mut rng(2), &mut receiver_ot, channel).map(drop)
            },
        );
    }
}
