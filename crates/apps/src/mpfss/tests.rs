use volery_channel::{Stats, run_two_parties};
use volery_field::{F2, Fp61, Gf128, Z64};

use super::*;
use crate::testing::{ots, over_ots, random_pair, rng};

type Shares<R> = Result<Vec<R>, Failure>;

/// Runs both parties with bins for `capacity` points; returns their results and the traffic of P2's
/// channel.
fn run<R: Ring>(
    capacity: usize,
    public: Public,
    points: &[Option<usize>],
    beta: &[Vec<R>; 2],
) -> (Shares<R>, Shares<R>, Stats) {
    over_ots(
        |ot, channel| {
            let rng = &mut rng(7);
            send_within(capacity, public, &beta[0], rng, ot, channel)
        },
        |ot, channel| {
            let rng = &mut rng(8);
            receive_within(capacity, public, points, &beta[1], rng, ot, channel)
        },
    )
}

/// `t` places over a domain of `n`; the seed selects those without a point.
fn places(n: usize, t: usize, seed: u128) -> Vec<Option<usize>> {
    let mut rng = rng(seed);
    let mut domain: Vec<_> = (0..n).collect();
    (0..t)
        .map(|_| {
            let none = domain.is_empty() || rng.below(5) == 0;
            (!none).then(|| domain.swap_remove(rng.below(domain.len() as u64) as usize))
        })
        .collect()
}

/// Compares Functionality 9 with a plain table.
fn check<R: Ring>(n: usize, points: &[Option<usize>], overflow: Overflow) {
    let t = points.len();
    let public = Public { n, t, overflow };
    let beta = random_pair::<R>(t);
    let (left, right, _) = run(t, public, points, &beta);
    let (left, right) = (left.unwrap(), right.unwrap());
    let mut table = vec![R::ZERO; n];
    for (place, point) in points.iter().enumerate() {
        if let Some(point) = point {
            table[*point] = beta[0][place] + beta[1][place];
        }
    }
    assert_eq!((left.len(), right.len()), (n, n));
    for point in 0..n {
        assert!(left[point] + right[point] == table[point], "point {point} of {n}, {t} places");
    }
}

fn check_rings(n: usize, points: &[Option<usize>]) {
    for overflow in [Overflow::Drop, Overflow::Abort] {
        check::<Fp61>(n, points, overflow);
        check::<Z64>(n, points, overflow);
        check::<Gf128>(n, points, overflow);
        check::<F2>(n, points, overflow);
    }
}

#[test]
fn shares_add_up_to_the_table() {
    for (n, t) in
        [(0, 0), (0, 3), (5, 0), (1, 3), (2, 2), (7, 3), (64, 63), (257, 65), (70_001, 100)]
    {
        check_rings(n, &places(n, t, n as u128));
    }
}

/// All points of the domain, and more places than points.
#[test]
fn a_full_domain() {
    for n in [1, 2, 3, 100] {
        let all: Vec<_> = (0..n).rev().map(Some).collect();
        check_rings(n, &all);
        let mut more = all;
        more.resize(3 * n, None);
        check_rings(n, &more);
    }
}

/// Three bins for ten points: the result has three of the values and is zero elsewhere.
#[test]
fn points_that_find_no_bin_are_dropped() {
    let (n, t) = (100, 10);
    let overflow = Overflow::Drop;
    let points: Vec<_> = (0..t).map(|j| Some(7 * j + 1)).collect();
    let beta = random_pair::<Fp61>(t);
    let (left, right, _) = run(3, Public { n, t, overflow }, &points, &beta);
    let (left, right) = (left.unwrap(), right.unwrap());
    let mut kept = 0;
    for point in 0..n {
        let value = left[point] + right[point];
        if value != Fp61::ZERO {
            let place = points.iter().position(|p| *p == Some(point)).unwrap();
            assert!(value == beta[0][place] + beta[1][place], "point {point}");
            kept += 1;
        }
    }
    assert_eq!(kept, 3);
}

#[test]
fn an_abort_is_an_error_of_both() {
    let (n, t) = (100, 10);
    let overflow = Overflow::Abort;
    let points: Vec<_> = (0..t).map(|j| Some(7 * j + 1)).collect();
    let (left, right, stats) = run(3, Public { n, t, overflow }, &points, &random_pair::<Z64>(t));
    assert!(matches!(left, Err(Failure::Overflow)));
    assert!(matches!(right, Err(Failure::Overflow)));
    assert_eq!((stats.bytes_sent, stats.bytes_received), (17, 0));
}

#[test]
fn a_verdict_is_yes_or_no() {
    let public = Public { n: 10, t: 2, overflow: Overflow::Abort };
    let (mut ot, _) = ots();
    let (failure, ()) = run_two_parties(
        |channel| {
            let rng = &mut rng(7);
            send(public, &[Z64::ONE; 2], rng, &mut ot, channel).unwrap_err()
        },
        |channel| {
            channel.send(&[2; 17]).unwrap();
            channel.flush().unwrap();
        },
    );
    assert!(matches!(failure, Failure::Channel(Error::PeerMisbehaved(_))), "{failure}");
}

/// The cost in the module's documentation.
fn cost<R: Ring>(n: usize, t: usize, overflow: Overflow) {
    let points = places(n, t, 1);
    let (left, _, stats) = run(t, Public { n, t, overflow }, &points, &random_pair::<R>(t));
    left.unwrap();
    let key = rng(8).block();
    let layout = Layout::cuckoo(n, t, ETA, key, Cells::Complete);
    let (bins, levels) = (layout.batch().trees(), layout.batch().levels());
    let forecast = expected(n, t);
    assert_eq!((bins, switching::switches(bins)), (forecast.bins, forecast.switches));
    let difference = levels.abs_diff(forecast.levels);
    assert!(4 * difference <= levels, "{levels} levels, forecast {forecast:?}");
    let verdict = usize::from(overflow == Overflow::Abort);
    let from_p2 = 16 + verdict + forecast.switches.div_ceil(8) + levels.div_ceil(8);
    let from_p1 =
        R::encoded_len(forecast.switches) + 16 * levels + 16 * bins + R::encoded_len(bins);
    assert_eq!(stats.bytes_sent as usize, from_p2, "from P2, n = {n}, t = {t}");
    assert_eq!(stats.bytes_received as usize, from_p1, "from P1, n = {n}, t = {t}");
    assert_eq!((stats.messages_sent, stats.messages_received), (2, 2));
}

#[test]
fn the_cost_is_the_documented_one() {
    for (n, t) in [(1, 1), (1000, 30), (20_000, 200)] {
        cost::<Z64>(n, t, Overflow::Drop);
        cost::<Fp61>(n, t, Overflow::Abort);
        cost::<Gf128>(n, t, Overflow::Drop);
    }
}

/// P2's first message is the key, drawn independently of its points; and P1's shares reveal nothing
/// about the values.
#[test]
fn the_view_of_p1_does_not_depend_on_the_points() {
    let (n, t) = (500, 20);
    let overflow = Overflow::Drop;
    let beta = random_pair::<Z64>(t);
    let shares = |seed| {
        let points = places(n, t, seed);
        run(t, Public { n, t, overflow }, &points, &beta).0.unwrap()
    };
    // With the dealer's OTs and the same randomness, P1 computes from the key, its own values and
    // the OTs.
    assert!(shares(1) == shares(2));
}

/// The party with the points draws the hash functions: from its randomness alone.
#[test]
fn hash_functions_are_drawn_anew() {
    let public = Public { n: 10, t: 2, overflow: Overflow::Drop };
    let key = |seed: u128| {
        let (_, mut ot) = ots();
        let (key, _) = volery_channel::run_two_unchecked(
            |channel| channel.recv_block().unwrap(),
            |channel| {
                let rng = &mut rng(seed);
                receive(public, &[None; 2], &[Z64::ONE; 2], rng, &mut ot, channel).map(|_| ())
            },
        );
        key
    };
    assert_eq!(key(1), key(1));
    assert_ne!(key(1), key(2));
}
