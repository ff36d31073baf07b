use volery_channel::Stats;
use volery_field::{Fp61, Gf128, Z64};

use super::*;
use crate::testing::{assert_differ, ots, over_ots as run, random_pair, rng};

type Entries<R> = Vec<(usize, usize, R)>;

/// Entries with values of `bits` bits and a sign, or any values; positions may repeat.
fn entries<R: Ring>(shape: Shape, count: usize, seed: u128) -> Entries<R> {
    let mut rng = rng(seed);
    let small = (0..shape.bits.min(R::BITS - 1)).map(R::power_of_two);
    let small: Vec<_> = small.collect();
    (0..count)
        .map(|_| {
            let row = rng.below(shape.rows as u64) as usize;
            let column = rng.below(shape.columns as u64) as usize;
            let mut value = R::ZERO - offset_of::<R>(shape.bits) * bit(&mut rng);
            for power in &small {
                value += *power * bit(&mut rng);
            }
            (row, column, value)
        })
        .collect()
}

fn offset_of<R: Ring>(bits: u32) -> R {
    R::power_of_two(bits.min(R::BITS - 1))
}

fn bit<R: Ring>(rng: &mut Prg) -> R {
    [R::ZERO, R::ONE][rng.below(2) as usize]
}

fn check<R: Ring>(shape: Shape, entries: &[(usize, usize, R)]) -> [Stats; 2] {
    let matrix = Matrix::new(shape, entries).unwrap();
    [Factor::Plain, Factor::Transposed].map(|factor| {
        let (input, output) = shape.lengths(factor);
        let x = random_pair::<R>(input);
        let (left, right, stats) = run(
            |ot, channel| send(shape, factor, &x[0], &mut rng(1), ot, channel).unwrap(),
            |ot, channel| receive(&matrix, factor, &x[1], &mut rng(2), ot, channel).unwrap(),
        );
        let mut product = vec![R::ZERO; output];
        for (row, column, value) in entries {
            let (to, from) = match factor {
                Factor::Plain => (*row, *column),
                Factor::Transposed => (*column, *row),
            };
            product[to] += *value * (x[0][from] + x[1][from]);
        }
        assert_eq!((left.len(), right.len()), (output, output));
        for place in 0..output {
            assert!(
                left[place] + right[place] == product[place],
                "entry {place}, {shape:?}, {factor:?}"
            );
        }
        stats
    })
}

fn check_rings(rows: usize, columns: usize, given: usize, declared: usize) {
    for bits in [0, 7, 59, 60, 63, 127] {
        let shape = Shape { rows, columns, entries: declared, bits };
        check::<Fp61>(shape, &entries(shape, given, 1));
        check::<Z64>(shape, &entries(shape, given, 2));
        check::<Gf128>(shape, &entries(shape, given, 3));
    }
}

#[test]
fn products_are_those_of_the_dense_matrix() {
    for (rows, columns, given, declared) in [
        (1, 1, 0, 0),
        (1, 1, 1, 1),
        (1, 1, 5, 5),
        (3, 5, 0, 4),
        (7, 2, 6, 9),
        (1, 100, 30, 31),
        (100, 1, 32, 32),
        (1009, 64, 33, 33),
        (16, 17, 256, 257),
    ] {
        check_rings(rows, columns, given, declared);
    }
}

#[test]
fn the_smallest_and_the_largest_value() {
    let shape = Shape { rows: 2, columns: 2, entries: 2, bits: 5 };
    let small = Z64::ZERO - Z64::new(32);
    check(shape, &[(0, 1, small), (1, 0, Z64::new(31))]);
    for value in [Z64::new(32), small - Z64::ONE] {
        let refused = Matrix::new(shape, &[(0, 0, Z64::ONE), (0, 1, value)]).map(|_| ());
        let refused = refused.unwrap_err().to_string();
        assert!(refused.starts_with("the value of entry 1 (counted from 0)"), "{refused}");
    }
    let small = Fp61::ZERO - Fp61::reduce(32);
    check(shape, &[(0, 1, small), (1, 0, Fp61::reduce(31))]);
    let refused = Matrix::new(shape, &[(0, 0, small - Fp61::ONE)]).map(|_| ());
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("entry 0 (counted from 0) is not within the declared 5 bits"),
        "{refused}"
    );
}

#[test]
fn matrices_that_are_refused() {
    let shape = Shape { rows: 2, columns: 3, entries: 2, bits: 64 };
    let refused = |shape: Shape, entries: &[(usize, usize, Z64)]| {
        Matrix::new(shape, entries).map(|_| ()).unwrap_err().to_string()
    };
    let one = Z64::ONE;
    assert_eq!(
        refused(shape, &[(777, 0, one)]),
        "the row of entry 0 (counted from 0) is not below 2, the rows of the matrix: the first is number 0"
    );
    assert_eq!(
        refused(shape, &[(1, 2, one), (1, 777, one)]),
        "the column of entry 1 (counted from 0) is not below 3, the columns of the matrix: the first is number 0"
    );
    assert_eq!(
        refused(shape, &[(1, 2, one); 3]),
        "the matrix has more entries than the declared 2: declare more on both sides"
    );
    let large = Shape { entries: usize::MAX, ..shape };
    assert!(refused(large, &[]).contains("more than 2^28"));
    for (rows, columns) in [(0, 3), (2, 0)] {
        let shape = Shape { rows, columns, ..shape };
        assert_eq!(refused(shape, &[]), "a matrix without rows or columns");
    }
}

#[test]
fn the_cost_is_the_documented_one() {
    let shape = Shape { rows: 90, columns: 200, entries: 150, bits: 9 };
    let counted = check::<Z64>(shape, &entries(shape, 140, 5));
    let factors = [Factor::Plain, Factor::Transposed];
    for (stats, factor) in counted.iter().zip(factors) {
        let (input, output) = shape.lengths(factor);
        let switches = switching::switches;
        let t = shape.entries;
        let steps =
            [switches(input.max(t)), t - 1, t * 10, switches(t), t - 1, switches(output.max(t))];
        let sent: usize = 48 + steps.iter().map(|products| products.div_ceil(8)).sum::<usize>();
        let received: usize = 48 + steps.iter().map(|products| 8 * products).sum::<usize>();
        assert_eq!((stats.bytes_sent as usize, stats.bytes_received as usize), (sent, received));
    }
}

/// The holder's messages have the same length for every matrix.
#[test]
fn the_messages_do_not_depend_on_the_entries() {
    let shape = Shape { rows: 40, columns: 50, entries: 60, bits: 9 };
    let none = check::<Z64>(shape, &[]);
    let one_row: Vec<_> = (0..60).map(|i| (3, i % 50, Z64::ONE)).collect();
    assert_eq!(none, check::<Z64>(shape, &one_row));
    assert_eq!(none, check::<Z64>(shape, &entries(shape, 60, 9)));
}

#[test]
fn each_setting_is_compared() {
    let shape = Shape { rows: 3, columns: 3, entries: 4, bits: 10 };
    for (theirs, factor, name) in [
        (Shape { rows: 5, ..shape }, Factor::Plain, "rows"),
        (Shape { columns: 5, ..shape }, Factor::Plain, "columns"),
        (Shape { entries: 5, ..shape }, Factor::Plain, "entries"),
        (Shape { bits: 5, ..shape }, Factor::Plain, "bits of the entries"),
        (shape, Factor::Transposed, "transposed"),
    ] {
        let (mut ot, mut receiver_ot) = ots();
        let matrix = Matrix::new(theirs, &[]).unwrap();
        let x = [Z64::ONE; 5];
        let theirs = &x[..theirs.lengths(factor).0];
        assert_differ(
            name,
            |channel| send(shape, Factor::Plain, &x[..3], &mut rng(1), &mut ot, channel).map(drop),
            |channel| {
                receive(&matrix, factor, theirs, &mut rng(2), &mut receiver_ot, channel).map(drop)
            },
        );
    }
}
