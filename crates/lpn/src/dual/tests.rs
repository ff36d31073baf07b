use volery_field::{F2, Fp61, Gf128, Ring, Z64};
use volery_primitives::prg::Prg;

use super::*;

fn random<R: Ring>(seed: u128, n: usize) -> Vec<R> {
    let mut out = vec![R::ZERO; n];
    R::random_slice(&mut Prg::new(Block::from(seed)), &mut out);
    out
}

fn on_threads<T: Send>(threads: usize, f: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("threads").install(f)
}

fn drawn<T: Term>(mut code: Compression<T>, pieces: usize) -> Vec<T> {
    let mut out = Vec::new();
    while out.len() < code.outputs() {
        out.extend_from_slice(code.draw(pieces));
    }
    out
}

/// The code against its definition, with input and output in pieces, on one thread and on three.
fn check<R: Ring>(units: usize) {
    let n = UNIT * units;
    let seed = Block::from(n as u128 + 1);
    let e = random::<R>(2, 2 * n);
    let expected = plain::compress(seed, &e);
    for threads in [1, 3] {
        for pieces in [(2 * n, n), (264, 100), (1 << 10, 1), (8, 7)] {
            let out = on_threads(threads, || {
                let mut code = Compression::new(seed, 2 * n);
                for e in e.chunks(pieces.0) {
                    code.absorb(e);
                }
                code.absorb(&[]);
                drawn(code, pieces.1)
            });
            assert!(out == expected, "{} of {n}, {pieces:?}", R::NAME);
        }
    }
    let mut memory = Buffer::zeroed(2 * n);
    memory.copy_from_slice(&e);
    let code = Compression::of(seed, memory);
    assert!(drawn(code, n) == expected, "in place");
    let pairs: Vec<_> = e.iter().map(|v| Pair::new(-*v, *v)).collect();
    let mut code = Compression::new(seed, 2 * n);
    code.absorb(&pairs);
    for (pair, x) in drawn(code, n).iter().zip(expected) {
        assert!(pair.v == x && pair.u == -x);
    }
}

#[test]
fn the_code_is_that_of_the_paper() {
    // Less than a run, partial runs, and several pieces of outputs, of which the last is shorter.
    for units in [1, 2, 3, 7, 32, 101] {
        check::<Gf128>(units);
        check::<Fp61>(units);
        check::<Z64>(units);
    }
}

#[test]
fn the_transposed_code_is_the_code() {
    for units in [1, 3, 40] {
        let (seed, n) = (Block::from(5), UNIT * units);
        let (message, e) = (random::<F2>(3, n), random::<F2>(4, 2 * n));
        let bits = |values: &[F2]| -> Vec<bool> { values.iter().map(|v| *v == F2::ONE).collect() };
        let product =
            |a: &[bool], b: &[bool]| a.iter().zip(b).filter(|(a, b)| **a && **b).count() % 2;
        let mut code = Compression::new(seed, 2 * n);
        code.absorb(&e);
        let x = drawn(code, n);
        let word = plain::encode(seed, &bits(&message));
        assert_eq!(product(&word, &bits(&e)), product(&bits(&message), &bits(&x)));
    }
}

/// The output for one vector under one seed, which both parties of all versions compute.
#[test]
fn a_known_answer() {
    let mut code = Compression::new(Block::from(0x0123_4567), 2 * UNIT);
    let e: Vec<_> = (1..=2 * UNIT as u64).map(Z64::new).collect();
    code.absorb(&e);
    let x = drawn(code, UNIT);
    let some = [x[0], x[1], x[64], x[127]].map(|x| x.value());
    assert_eq!(some, KNOWN);
}

const KNOWN: [u64; 4] = [
    18_336_904_434_921_585_729,
    8_529_301_444_124_486_998,
    12_981_274_891_094_024_143,
    11_199_362_105_391_929_364,
];

/// The distance, as far as a test can examine it: no row, no sum of two rows with the same
/// beginning and no sum of three neighbours has less than a tenth of ones, the distance for which
/// the noise is chosen.
///
/// Two rows have the same beginning where their first two places are the same; about 24 such pairs
/// exist at each size, and lighter sums of two are not expected ([`rows_that_agree`]).
#[test]
fn no_light_words_of_few_rows() {
    use std::collections::HashMap;
    for (seed, n) in (1u128..=6).zip([1 << 11, 1 << 11, 1 << 12, 1 << 12, 1 << 13, 1 << 13]) {
        let seed = Block::from(seed);
        let rows = plain::expander(seed, n);
        let mut words: Vec<Vec<usize>> = (0..n).step_by(n / 64).map(|i| vec![i]).collect();
        // The rows whose places are the last, so that the word begins last.
        let mut late: Vec<_> = (0..n).collect();
        late.sort_by_key(|row| std::cmp::Reverse(rows[*row][6]));
        words.extend(late[..32].iter().map(|row| vec![*row]));
        words.extend((0..n - 2).step_by(n / 32).map(|i| vec![i, i + 1, i + 2]));
        let mut alike: HashMap<_, Vec<usize>> = HashMap::new();
        for (i, row) in rows.iter().enumerate() {
            // Seen from its end, a word of the code begins with the last part.
            alike.entry([row[5], row[6]]).or_default().push(i);
        }
        let pairs = alike.into_values().filter(|rows| rows.len() > 1);
        let pairs: Vec<_> = pairs.map(|rows| rows[..2].to_vec()).collect();
        assert!(pairs.len() > 4, "{} pairs", pairs.len());
        words.extend(pairs);
        for rows in words {
            let mut message = vec![false; n];
            rows.iter().for_each(|row| message[*row] = true);
            let word = plain::encode(seed, &message);
            let weight = word.iter().filter(|bit| **bit).count();
            assert!(10 * weight >= 2 * n, "{rows:?} of {n}: {weight} ones");
        }
    }
}

/// The expected number of pairs of rows that have the same places in the first `parts` parts of
/// their word, as a logarithm to base 2.
fn rows_that_agree(n: f64, parts: i32) -> f64 {
    (n * n / 2.0 * (7.0 / n).powi(parts)).log2()
}

/// The document states how rarely two rows agree in four parts and more.
#[test]
fn the_document_has_the_pairs_of_rows() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/low-communication.md");
    let page = std::fs::read_to_string(path).expect("the document");
    let smallest = 401.0 * 128.0;
    let mut expected = String::new();
    for (name, n) in [
        ("2^15.6, the fewest", smallest),
        ("2^18", f64::from(1 << 18)),
        ("2^20", f64::from(1 << 20)),
        ("2^24", f64::from(1 << 24)),
    ] {
        let cells = [4, 5, 6, 7].map(|parts| format!("2^{:.0}", rows_that_agree(n, parts)));
        expected += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    assert!(page.contains(&expected), "the table is now\n{expected}");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    // Over large rings, where each half-covered block leaves one bit: a word that begins between
    // 3/7 and 2/7 before the end of the second half covers this many.
    let (smallest, blocks) = (849.0 * 128.0, 849.0 / 2.0);
    let fewest = blocks * 2.0 / 7.0;
    assert!((121.0..122.0).contains(&fewest), "{fewest} blocks");
    let few_blocks: f64 = (128.0 - fewest) / (blocks / 7.0);
    let four = rows_that_agree(smallest, 4) + few_blocks.log2();
    let five = rows_that_agree(smallest, 5);
    assert!(
        page.contains(&format!("one seed in 2^{:.0} leaves fewer than 128 bits", -four)),
        "{four}"
    );
    assert!(page.contains(&format!("(fewer than 121: one in 2^{:.0})", -five)), "{five}");
}

#[test]
#[should_panic(expected = "all values have been absorbed")]
fn nothing_is_drawn_too_early() {
    let mut code = Compression::new(Block::ONE, 256);
    code.absorb(&[Z64::ONE; 248]);
    code.draw(1);
}

#[test]
#[should_panic(expected = "more than all outputs")]
fn no_more_than_all_is_drawn() {
    let mut code = Compression::new(Block::ONE, 256);
    code.absorb(&[Z64::ONE; 256]);
    assert_eq!(code.draw(1000).len(), 128);
    code.draw(1);
}

#[test]
#[should_panic(expected = "more than all values")]
fn no_more_than_all_values_are_absorbed() {
    let mut code = Compression::new(Block::ONE, 256);
    code.absorb(&[Z64::ONE; 264]);
}
