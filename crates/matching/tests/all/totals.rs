//! Totals over the common keys: against a plain calculation, with minimum, groups and noise.

use std::collections::HashMap;

use proptest::prelude::*;
use volery_channel::{Channel, Role, Stats, run_two_parties, run_two_parties_with_stats};
use volery_matching::totals::{Outcome, PreparedTable, Recipient, Total};
use volery_matching::{Error, KeyError, ProtocolChoice, ValueError};
use volery_tables::Duplicates;

use crate::totals_common::*;

impl Run {
    fn sides(&self, tables: [&[Row]; 2]) -> [PreparedTable; 2] {
        [0, 1].map(|i| self.read(ROLES[i], &table(tables[i])).unwrap())
    }

    fn both(&self, tables: [&[Row]; 2]) -> [Result<Outcome, Error>; 2] {
        let go = |side: PreparedTable| move |channel: &mut Channel| side.run(channel, &mut ());
        let [sender, receiver] = self.sides(tables);
        let (sent, received) = run_two_parties(go(sender), go(receiver));
        [sent, received]
    }

    /// The totals of both sides.
    fn totals(&self, tables: [&[Row]; 2]) -> [Vec<Total>; 2] {
        self.both(tables).map(|outcome| outcome.unwrap().totals)
    }

    fn check(&self, tables: [&[Row]; 2]) -> [Vec<Total>; 2] {
        let got = self.totals(tables);
        for (role, got) in ROLES.into_iter().zip(&got) {
            assert_eq!(got, &self.expected(role, tables), "{role:?} {self:?}");
        }
        got
    }
}

#[test]
fn every_total_is_that_of_the_plain_calculation_at_every_side() {
    let (sender, receiver) = (rows(0..61), rows(40..75));
    for kind in KINDS {
        for holder in ROLES {
            for grouped in [None, Some(Role::Sender), Some(Role::Receiver)] {
                for to in [Recipient::Sender, Recipient::Receiver, Recipient::Both] {
                    let run = Run { kind, holder, grouped, to, minimum: 3, ..Run::default() };
                    run.check([&sender, &receiver]);
                }
            }
        }
    }
}

#[test]
fn values_at_their_bounds() {
    // The most keys for which totals fit into 64 bits, and one more.
    for (kind, bound, value) in [
        ("sum", "23058430092136939.51", 2_305_843_009_213_693_951_i64),
        ("sum-product", "15186494.08", 1_518_649_408),
    ] {
        let holder = Role::Receiver;
        let run = Run { kind, holder, bound, to: Recipient::Both, ..Run::default() };
        for sign in [1, -1] {
            let three: Vec<Row> = (0..3).map(|key| (key, sign * value, "x")).collect();
            let positive: Vec<Row> = (0..3).map(|key| (key, value, "x")).collect();
            run.check([&positive, &three]);
        }
        let five: Vec<Row> = (0..5).map(|key| (key, value, "x")).collect();
        for outcome in run.both([&five, &five]) {
            let error = outcome.err().unwrap();
            assert!(matches!(error, Error::LargeTotal { keys: 5, with_noise: false }), "{error}");
        }
    }
}

#[test]
fn a_count_below_the_minimum_opens_nothing_else() {
    let (sender, receiver) = (rows(0..50), rows(30..90));
    for (minimum, below) in [(19, false), (20, false), (21, true)] {
        for kind in KINDS {
            for to in [Recipient::Sender, Recipient::Receiver, Recipient::Both] {
                let run = Run { kind, to, minimum, ..Run::default() };
                for totals in run.check([&sender, &receiver]) {
                    assert_eq!(totals[0].below_minimum, below, "{run:?}");
                    if below {
                        assert_eq!((totals[0].count, totals[0].sum), (None, None));
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Several rows of a key, in any order, any sizes.
    #[test]
    fn random_tables(
        (sender, receiver) in (random_rows(), random_rows()),
        kind in 0..4_usize,
        roles in prop::array::uniform3(any::<bool>()),
        grouped in any::<bool>(),
        to in prop_oneof![Just(Recipient::Sender), Just(Recipient::Receiver), Just(Recipient::Both)],
        minimum in 0..6_u64,
        dedup in any::<bool>(),
    ) {
        let role = |receiver: bool| if receiver { Role::Receiver } else { Role::Sender };
        let run = Run {
            kind: KINDS[kind],
            holder: role(roles[0]),
            grouped: grouped.then(|| role(roles[1])),
            to,
            minimum,
            duplicates: if dedup { Duplicates::Dedup } else { Duplicates::Keep },
            ..Run::default()
        };
        run.check([&sender, &receiver]);
    }
}

/// At most three rows of a key, of one group.
fn random_rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (0..40_u32, -33_000..33_000_i64);
    let rows = prop::collection::vec(row, 0..60);
    rows.prop_map(|rows| {
        let mut seen = HashMap::new();
        let rows = rows.into_iter().filter(|(key, _)| {
            let count = seen.entry(*key).or_insert(0);
            *count += 1;
            *count <= 3
        });
        let groups = ["x", "y", "other", "z, w", ""];
        rows.map(|(key, value)| (key, value, groups[key as usize % groups.len()])).collect()
    })
}

/// Two runs with other rows of equal sizes have messages of equal number and length.
#[test]
fn messages_have_equal_lengths_for_other_rows_of_equal_sizes() {
    let others: Vec<Row> = (1000..1061).map(|key| (key, 99_999, "y")).collect();
    for kind in KINDS {
        for grouped in [None, Some(Role::Sender), Some(Role::Receiver)] {
            let run = Run { kind, grouped, minimum: 0, ..Run::default() };
            let traffic = |sender: &[Row], receiver: &[Row]| -> [Stats; 2] {
                let go = |side: PreparedTable| {
                    move |channel: &mut Channel| drop(side.run(channel, &mut ()).unwrap())
                };
                let [sender, receiver] = run.sides([sender, receiver]);
                let (((), sent), ((), received)) =
                    run_two_parties_with_stats(go(sender), go(receiver));
                [sent, received]
            };
            let all = traffic(&rows(0..61), &rows(40..90));
            assert_eq!(all, traffic(&others, &rows(40..90)), "{run:?}");
            assert_eq!(all, traffic(&rows(0..61), &rows(0..50)), "{run:?}");
        }
    }
}

/// Checks mean and variance of the noise of each number of a total, in samples of many groups.
fn assert_noise(run: &Run, variances: [Option<f64>; 2]) {
    const RUNS: usize = 25;
    let (sender, receiver) = (rows(0..30), rows(10..60));
    let tables: [&[Row]; 2] = [&sender, &receiver];
    let others = (GROUPS.len()..60).map(|i| format!("g{i}"));
    let run = Run {
        grouped: Some(Role::Receiver),
        groups: GROUPS.map(str::to_owned).into_iter().chain(others).collect(),
        ..run.clone()
    };
    let (side, role) = match run.to {
        Recipient::Sender => (0, Role::Sender),
        _ => (1, Role::Receiver),
    };
    let truth = run.expected(role, tables);
    let totals: Vec<Total> = (0..RUNS).flat_map(|_| run.totals(tables)[side].clone()).collect();
    let numbers: [fn(&Total) -> Option<i64>; 2] = [|total| total.count, |total| total.sum];
    for (number, variance) in numbers.into_iter().zip(variances) {
        let Some(variance) = variance else { continue };
        let pairs = totals.iter().zip(truth.iter().cycle());
        let errors = pairs
            .map(|(noisy, true_one)| (number(noisy).unwrap() - number(true_one).unwrap()) as f64);
        let errors: Vec<f64> = errors.collect();
        let samples = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / samples;
        let found = errors.iter().map(|error| error * error).sum::<f64>() / samples;
        // Five standard deviations; the kurtosis of a Laplace distribution is 6. A scale that is
        // wrong by half, or the noise of one side in place of two, is off by more.
        assert!(mean.abs() < 5.0 * (variance / samples).sqrt(), "{mean} {run:?}");
        let (ratio, off) = (found / variance, 5.0 * (5.0 / samples).sqrt());
        assert!((1.0 - off..1.0 + off).contains(&ratio), "{ratio} {run:?}");
    }
}

/// The variance of the discrete Laplace distribution of this scale.
fn laplace(scale: f64) -> f64 {
    let p = (-1.0 / scale).exp();
    2.0 * p / ((1.0 - p) * (1.0 - p))
}

#[test]
fn noise_has_its_scale_and_comes_from_whom_it_has_to() {
    let run = Run { epsilon: Some("0.1"), ..Run::default() };
    // To one side only the other adds noise.
    assert_noise(&run, [Some(laplace(10.0)), None]);
    let to_both = Run { to: Recipient::Both, ..run.clone() };
    assert_noise(&to_both, [Some(2.0 * laplace(10.0)), None]);
    let sums = Run { kind: "sum", to: Recipient::Sender, epsilon: Some("2"), ..run.clone() };
    assert_noise(&sums, [None, Some(laplace(50_000.0))]);
    let products = Run { kind: "sum-product", bound: "2000", ..sums.clone() };
    assert_noise(&products, [None, Some(laplace(2e10))]);
    // The sigma of Gaussian noise, from the formula of `noise`.
    let gaussian = Run { epsilon: Some("0.5"), delta: Some("1e-6"), ..Run::default() };
    let (epsilon, log) = (0.5_f64, 1e6_f64.ln());
    let sigma = ((log + epsilon).sqrt() + log.sqrt()) / (2_f64.sqrt() * epsilon);
    assert_noise(&gaussian, [Some(sigma * sigma), None]);
    // Half for each of two totals.
    let mean = Run { kind: "mean", epsilon: Some("0.2"), ..run };
    assert_noise(&mean, [Some(laplace(10.0)), Some(laplace(1_000_000.0))]);
}

/// With a minimum both sides' noise is in a count, as both learn whether it is below.
#[test]
fn with_a_minimum_both_add_noise_to_the_count() {
    let minimum = 1;
    let run = Run { kind: "sum", epsilon: Some("0.2"), minimum, ..Run::default() };
    let adds = [Role::Sender, Role::Receiver].map(|role| run.settings(role).adds(role));
    assert_eq!(adds, [[true, true], [true, false]]);
    let settings = run.settings(Role::Sender);
    let scales = settings.privacy.map(|privacy| [privacy.count, privacy.sum]);
    let scales = scales.unwrap().map(|mechanism| mechanism.unwrap().scale());
    assert_eq!(scales, [10.0, 1_000_000.0], "half of epsilon each");
    // Half of the groups without keys are below 1 by their noise.
    let others = (0..60).map(|i| format!("g{i}"));
    let run = Run { grouped: Some(Role::Sender), groups: others.collect(), ..run };
    let totals = run.totals([&rows(0..30), &rows(10..60)]);
    let below = totals[0].iter().filter(|total| total.below_minimum).count();
    assert!((10..55).contains(&below), "{below}");
}

fn unread(run: &Run, role: Role, texts: &[[&str; 3]]) -> Error {
    let rows: Vec<_> = texts.iter().map(|row| row.map(str::to_owned)).collect();
    run.read(role, &of_texts(&rows)).err().unwrap()
}

#[test]
fn values_that_are_no_numbers_within_the_bound_name_their_row() {
    let run = Run { kind: "sum", ..Run::default() };
    for (value, why, text) in [
        ("", ValueError::Missing, "has no value"),
        ("secret", ValueError::NotANumber, "is not a decimal number"),
        ("1e2", ValueError::NotANumber, "is not a decimal number"),
        ("0.001", ValueError::Places(2), "has more than 2 decimal places"),
        ("1000.01", ValueError::Bound, "is beyond --bound"),
        ("-1000.01", ValueError::Bound, "is beyond --bound"),
        ("99999999999999999999", ValueError::Bound, "is beyond --bound"),
    ] {
        let error = unread(
            &run,
            Role::Sender,
            &[["a", "1000", "x"], ["b", "-1000.000", "x"], ["c", value, "x"]],
        );
        assert!(error.hint().is_some());
        let told = error.to_string();
        assert!(told.contains("column \"v\" of row 3") && told.contains(text), "{told}");
        assert!(!told.contains("secret") && !told.contains("99999"), "{told}");
        match error {
            Error::Value { why: found, row, .. } => assert_eq!((found, row), (why, 3)),
            other => panic!("{other}"),
        }
    }
    // The other side does not read the column.
    let texts = [["a".to_owned(), "secret".to_owned(), String::new()]];
    run.read(Role::Receiver, &of_texts(&texts)).unwrap();
}

#[test]
fn rows_of_a_key_that_do_not_fit_together() {
    let run = Run { kind: "sum", grouped: Some(Role::Sender), ..Run::default() };
    let error = unread(&run, Role::Sender, &[["b", "0", "x"], ["a", "999", "x"], ["a", "2", "x"]]);
    let key_of_rows = |error: &Error, wanted: KeyError| match error {
        Error::KeyOfRows { why, row, .. } => (*why, *row) == (wanted, 2),
        _ => false,
    };
    assert!(key_of_rows(&error, KeyError::Bound), "{error}");
    for other in ["y", "elsewhere"] {
        let rows = [["b", "0", "x"], ["a", "1", "x"], ["a", "2", other]];
        let error = unread(&run, Role::Sender, &rows);
        assert!(key_of_rows(&error, KeyError::Groups), "{error}");
        let dedup = Run { duplicates: Duplicates::Dedup, ..run.clone() };
        let rows = rows.map(|row| row.map(str::to_owned));
        let side = dedup.read(Role::Sender, &of_texts(&rows)).unwrap();
        assert_eq!((side.summary().keys, side.summary().duplicates), (2, 1));
    }
    let error = unread(
        &Run { duplicates: Duplicates::Error, ..run.clone() },
        Role::Sender,
        &[["a", "1", "x"], ["b", "1", "x"], ["a", "1", "x"]],
    );
    assert!(error.to_string().contains("rows 1 and 3 have the same key"), "{error}");
    let rows = [["a", "1", "x"], ["b", "2", "no group"], ["c", "3", ""]];
    let rows = rows.map(|row| row.map(str::to_owned));
    let side = run.read(Role::Sender, &of_texts(&rows)).unwrap();
    assert_eq!(side.rows_in_no_group(), Some(2));
}

/// Settings that differ end the run at both sides, and name the option.
#[test]
fn settings_that_differ() {
    let base = Run {
        kind: "sum",
        minimum: 5,
        epsilon: Some("1"),
        delta: Some("1e-9"),
        grouped: Some(Role::Sender),
        ..Run::default()
    };
    let changed = |change: fn(&mut Run)| {
        let mut run = base.clone();
        change(&mut run);
        run
    };
    for (other, field) in [
        (changed(|run| run.kind = "mean"), "--result"),
        (changed(|run| run.holder = Role::Receiver), "the side with the column of --result"),
        (changed(|run| run.to = Recipient::Both), "--to"),
        (changed(|run| run.name = ProtocolChoice::CircuitLow), "--protocol"),
        (changed(|run| run.bound = "999"), "--bound"),
        (changed(|run| run.minimum = 6), "--minimum"),
        (changed(|run| run.epsilon = Some("0.99")), "--epsilon"),
        (changed(|run| run.delta = Some("1e-8")), "--delta"),
        (changed(|run| run.delta = None), "--delta"),
        (changed(|run| run.grouped = None), "--groups"),
        (changed(|run| run.grouped = Some(Role::Receiver)), "the side with --group-by"),
    ] {
        let go = |side: PreparedTable| move |channel: &mut Channel| side.run(channel, &mut ());
        let sender = base.read(Role::Sender, &table(&rows(0..3))).unwrap();
        let receiver = other.read(Role::Receiver, &table(&rows(0..3))).unwrap();
        let (sent, received) = run_two_parties(go(sender), go(receiver));
        for error in [sent.err().unwrap(), received.err().unwrap()] {
            let told = error.to_string();
            assert!(told.contains(field), "{field}: {told}");
        }
    }
}
