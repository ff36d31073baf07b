//! Counts of every probability that a report states.
//!
//! A row runs the code of the protocols, with its hash functions, at sizes and parameters where
//! the probability is between 2^-5 and 2^-12, and compares the number of events with the prediction
//! of the formula by which a run chooses its parameters. Both the trials and their outcome are
//! fixed: a row passes or fails for ever. `VOLERY_COUNTS` multiplies the numbers of trials.
//!
//! [`every_probability_has_a_row`] takes the names of all probabilities from the parameters of all
//! protocols of [`PROTOCOLS`].

use std::collections::BTreeSet;

use rayon::prelude::*;
use volery_channel::Role;
use volery_okvs::{Band, Shape};
use volery_primitives::Block;

use crate::agree::Agreement;
use crate::failure::Failure;
use crate::items::{self, digests};
use crate::matching::{Output, PROTOCOLS, Task, Totals};
use crate::noise::{Mechanism, Rational};
use crate::{circuit, count, dh, served, session, vole};

/// Events in a number of trials, and their prediction.
pub(crate) struct Count {
    trials: u64,
    seen: u64,
    /// The negative logarithm of the probability of an event in one trial.
    bits: f64,
    /// Bits by which the probability may be smaller, because the formula is a bound.
    slack: f64,
}

/// The error of an interval is 2 to the minus this, or one in a million.
const ERROR: f64 = 19.93;

/// The number of trials, multiplied as the environment asks.
pub(crate) fn trials(number: u64) -> u64 {
    let times = std::env::var("VOLERY_COUNTS").map(|times| times.parse());
    number * times.map_or(1, |times| times.expect("VOLERY_COUNTS is a number"))
}

/// The 8-byte items with these numbers.
pub(crate) fn numbered(numbers: std::ops::Range<u64>) -> Vec<[u8; 8]> {
    numbers.map(u64::to_le_bytes).collect()
}

/// The bits of the failure with this name.
pub(crate) fn bits_of(failures: &[Failure], what: &str) -> f64 {
    let mut found = failures.iter().filter(|one| one.what == what);
    let bits = found.next().expect("a failure with this name").bits;
    assert!(found.next().is_none(), "{what} is there once");
    bits
}

impl Count {
    /// Sums up the events of some runs, each of which has so many trials.
    pub(crate) fn of(
        runs: u64,
        each: u64,
        [bits, slack]: [f64; 2],
        events: impl Fn(u64) -> u64 + Send + Sync,
    ) -> Self {
        let runs = trials(runs);
        Self { trials: runs * each, seen: (0..runs).into_par_iter().map(events).sum(), bits, slack }
    }

    /// Like [`of`](Self::of), one run after the other: for parties that wait for each other, which
    /// threads of a pool must not do.
    pub(crate) fn in_turn(
        runs: u64,
        each: u64,
        [bits, slack]: [f64; 2],
        events: impl Fn(u64) -> u64,
    ) -> Self {
        let runs = trials(runs);
        Self { trials: runs * each, seen: (0..runs).map(events).sum(), bits, slack }
    }

    /// Events, where a trial has one at most.
    pub(crate) fn whether(
        runs: u64,
        prediction: [f64; 2],
        event: impl Fn(u64) -> bool + Send + Sync,
    ) -> Self {
        Self::of(runs, 1, prediction, |trial| event(trial).into())
    }

    /// Whether the count is possible with a probability from 2^-`slack` times the predicted one up
    /// to that one.
    #[expect(clippy::print_stdout, reason = "a count that passes is of interest, too")]
    fn check(&self, row: &str) {
        let Self { trials, seen, bits, slack } = *self;
        let (n, share) = (trials as f64, seen as f64 / trials as f64);
        let [most, least] = [bits, bits + slack].map(|bits| (-bits).exp2());
        println!(
            "{row}: {seen} in {trials}, {:.1} to {:.1} predicted (2^-{bits:.2} and {slack} bits)",
            n * least,
            n * most
        );
        assert!((5.0..=12.0).contains(&bits), "{row}: 2^-{bits:.2}");
        assert!(n * least >= 20.0, "{row}: too few trials to see anything");
        // Chernoff's bound for the binomial law, on either side.
        let bits_off = |claim: f64| n * divergence(share, claim);
        assert!(
            share <= most || bits_off(most) < ERROR + 1.0,
            "{row}: {seen} events in {trials}, {:.1} predicted at most",
            n * most
        );
        assert!(
            share >= least || bits_off(least) < ERROR + 1.0,
            "{row}: {seen} events in {trials}, {:.1} predicted at least",
            n * least
        );
    }
}

/// The divergence of a coin of probability `a` from one of probability `p`, in bits.
fn divergence(a: f64, p: f64) -> f64 {
    let term = |a: f64, p: f64| if a == 0.0 { 0.0 } else { a * (a / p).log2() };
    term(a, p) + term(1.0 - a, 1.0 - p)
}

/// A test for each row, and the table of the probabilities that they are about: protocol and name.
macro_rules! rows {
    ($($row:ident: [$($names:expr),*] => $count:expr;)*) => {
        $(
            #[test]
            fn $row() {
                $count.check(stringify!($row));
            }
        )*

        const ROWS: &[&[(&str, &str)]] = &[$(&[$($names),*]),*];
    };
}

const DIGEST: &str = "two different items have the same digest of 126 bits";
const BIN: &str = "a bin overflows";
const ENCODED: &str = "a bin cannot be encoded";
const VALUE: &str = "two different items have the same hash value";
const TAG: &str = "two different items have the same tag";
const HINTS: &str = "the hints of a slice cannot be encoded";

rows! {
    high_bits_of_digests: [("vole", DIGEST), ("circuit", DIGEST)] => digest_bits(108);
    low_bits_of_digests: [("vole", DIGEST), ("circuit", DIGEST)] => digest_bits(2);
    bins: [("vole", BIN)] => vole::counting::bins();
    bins_of_hints: [("circuit", BIN)] => circuit::counting::bins();
    narrow_band: [("vole", ENCODED), ("circuit", ENCODED), ("circuit", HINTS)]
        => band(256, Shape::of(110, 54, 1 << 12), 10_000);
    wide_band: [("vole", ENCODED), ("circuit", ENCODED), ("circuit", HINTS)]
        => band(512, Shape::of(120, 32, 1 << 11), 10_000);
    hash_values: [("vole", VALUE), ("circuit", VALUE)] => vole::counting::values();
    tags: [("vole", TAG)] => vole::counting::tags();
    table: [("circuit", "the receiver's items do not fit into the cuckoo table")]
        => circuit::counting::table(8, 20_000);
    large_table: [("circuit", "the receiver's items do not fit into the cuckoo table")]
        => circuit::counting::table(512, 6000);
    slices: [("circuit", "a slice has too many hints")] => circuit::counting::slices();
    compared_values: [("circuit", "the values of a bin are equal and its items are not")]
        => circuit::counting::values();
    kkrt_tags: [("kkrt", "a false match")] => session::counting::tags();
    kkrt_table: [("kkrt", "the items do not fit into a cuckoo table")]
        => session::counting::table();
    kkrt_code: [("kkrt", "outputs of the code are not pseudorandom")]
        => session::counting::code();
    dh_tags: [("dh", TAG)] => dh::counting::tags();
    count_tags: [("count", TAG)] => count::counting::tags();
    filter: [("served", "a query is answered with a false yes")]
        => served::counting::false_yes();
    laplace: [("noise", "a sample is beyond its bound")]
        => noise(&Mechanism::laplace(1000, Rational::new(1, 2).expect("a half")), 1.1);
    gaussian: [("noise", "a sample is beyond its bound")]
        => noise(&Mechanism::gaussian(
            1000,
            Rational::new(1, 2).expect("a half"),
            Rational::new(1, 1000).expect("small"),
        ), 4.0);
}

/// Digests with the same 20 bits from bit `low` on.
fn digest_bits(low: u32) -> Count {
    const ITEMS: u64 = 64;
    let bits = items::equal_bits(20, ITEMS as f64);
    Count::whether(40_000, [bits, 0.1], |trial| {
        let agreement = Agreement::numbered(trial, [ITEMS, 0]);
        let digests = digests(&agreement.salt(), &numbered(0..ITEMS), &mut |_| ());
        let parts = digests.iter().map(|digest| u128::from(*digest) >> low & 0xf_ffff);
        parts.collect::<BTreeSet<_>>().len() < ITEMS as usize
    })
}

/// Rows of a band of `of` columns, cut to narrower ones, that are dependent: those of a whole band
/// never are. That [`Band::encode`] fails just where they are is tested beside it.
fn band(of: usize, cut: Shape, runs: u64) -> Count {
    let width = cut.width;
    let shape = Shape { columns: cut.columns - width + of, width: of, ..cut };
    Count::whether(runs, [cut.failure_bits(), 3.5], |trial| {
        let sizes = [0, shape.items as u64];
        let salt = Agreement::numbered(trial, sizes).salt();
        let keys = digests(&salt, &numbered(0..sizes[1]), &mut |_| ());
        let rows = Band::new(shape, Block::new(trial.into())).rows(&keys);
        let mut pivots = vec![0_u64; shape.columns];
        rows.iter().any(|(start, words)| {
            let word = |number: usize| u128::from(words[number % words.len()]);
            let two = word(start / 64) | word(start / 64 + 1) << 64;
            let mut row = (two >> (start % 64)) as u64 & (u64::MAX >> (64 - width));
            let mut column = start;
            while row != 0 && pivots[column] != 0 {
                row ^= pivots[column];
                // A shift by 64 bits is an overflow.
                let zeros = row.trailing_zeros() % 64;
                row >>= zeros;
                column += zeros as usize;
            }
            if row != 0 {
                pivots[column] = row;
            }
            row == 0
        })
    })
}

fn noise(mechanism: &Result<Mechanism, crate::noise::Error>, slack: f64) -> Count {
    const SAMPLES: u64 = 256;
    let mechanism = mechanism.as_ref().expect("such noise exists");
    let bound = mechanism.tail(8);
    Count::of(500, SAMPLES, [8.0, slack], |trial| {
        let mut rng = volery_primitives::prg::Prg::new(Block::new(trial.into()));
        let samples = (0..SAMPLES).map(|_| mechanism.sample(&mut rng).unsigned_abs());
        samples.filter(|sample| *sample > bound).count() as u64
    })
}

/// The results for which a protocol may have parameters of its own.
fn outputs() -> [Output; 2] {
    let settings = circuit::Settings::default();
    let counts = Some(Role::Receiver);
    [
        Output::Items { both: false, search: false },
        Output::Totals(Totals { settings, comparisons: 0, in_bins: Role::Receiver, counts }),
    ]
}

/// The failures that the parameters of all protocols name, by the type of the protocol.
fn names() -> BTreeSet<(String, &'static str)> {
    let mut names = BTreeSet::from([("noise".to_owned(), "a sample is beyond its bound")]);
    let mut add = |protocol: &str, failures: Vec<Failure>| {
        assert!(!failures.is_empty(), "{protocol}");
        names.extend(failures.iter().map(|one| (protocol.to_lowercase(), one.what)));
    };
    for protocol in PROTOCOLS {
        let debug = format!("{protocol:?}");
        let (name, _) = debug.split_once('(').unwrap_or((&debug, ""));
        let outputs = outputs().into_iter().filter(|output| protocol.gives(output));
        let outputs: Vec<_> = outputs.collect();
        assert!(!outputs.is_empty(), "{debug} gives one of the results");
        for output in outputs {
            for items in [2, 1000, 1 << 24] {
                let items = protocol.most_items().min(items);
                let task = Task {
                    sender_items: items,
                    receiver_items: items,
                    security: protocol.security(),
                    output,
                    with_workers: false,
                };
                add(name, protocol.parameters(&task, 1).failures());
            }
        }
    }
    add("served", served::counting::failures());
    names
}

#[test]
fn every_probability_has_a_row() {
    let rows = ROWS.iter().flat_map(|row| row.iter());
    let rows: BTreeSet<_> = rows.map(|(name, what)| ((*name).to_owned(), *what)).collect();
    assert_eq!(rows, names());
}

/// A probability that is twice the predicted one, or a tenth of the least, does not pass.
#[test]
fn a_count_that_is_off_does_not_pass() {
    let count = |seen| Count { trials: 12_800, seen, bits: 7.0, slack: 1.0 };
    for good in [100, 50, 130] {
        count(good).check("good");
    }
    for bad in [200, 10, 0] {
        let checked = std::panic::catch_unwind(|| count(bad).check("bad"));
        assert!(checked.is_err(), "{bad}");
    }
}
