use volery_primitives::{Block, prg::Prg};

use super::*;
use crate::dual::{
    params::{Code, DISTANCE, Shape, linear_test_bits},
    plain,
};
use crate::estimate::Field;

/// The identities of MacWilliams: the number of words of the dual code, RM(4, 8), agrees with its
/// least weight and with the theorem of Kasami and Tokura, up to weight 22. Modulo 2^128.
#[test]
fn the_outer_weights_have_the_dual_that_they_should() {
    let all = OUTER.iter().flat_map(|(weight, words)| {
        let above = (*weight < 128).then_some((256 - *weight, *words));
        [Some((*weight, *words)), above].into_iter().flatten()
    });
    let all: Vec<_> = all.collect();
    assert_eq!(all.iter().map(|(_, words)| words).sum::<u128>(), 1 << 93);
    // Sums of W(w) (1 - z)^w (1 + z)^(256 - w), cut after z^23
    let mut dual = [0u128; 24];
    for (weight, words) in all {
        let mut product = [0u128; 24];
        product[0] = words;
        for factor in 0..256 {
            for power in (1..24).rev() {
                let below = product[power - 1];
                product[power] = if factor < weight {
                    product[power].wrapping_sub(below)
                } else {
                    product[power].wrapping_add(below)
                };
            }
        }
        for (sum, coefficient) in dual.iter_mut().zip(product) {
            *sum = sum.wrapping_add(coefficient);
        }
    }
    // Flats of dimension d - r in the space of dimension d = 8: the words of least weight
    let least = |r: u32| {
        let flats = (0..8 - r).fold((1u128, 1), |(above, below), i| {
            (
                above * ((1 << (8 - i)) - 1),
                below * ((1 << (8 - r - i)) - 1),
            )
        });
        (flats.0 / flats.1) << r
    };
    assert_eq!(OUTER[1], (32, least(3)));
    let mut expected = [0; 24];
    (expected[0], expected[16]) = (1 << 93, least(4) << 93);
    assert_eq!(dual, expected);
}

#[test]
fn running_sums_turn_weights_as_stated() {
    // All words of length 10.
    let n = 10u32;
    let mut counts = [[0u32; 11]; 11];
    for word in 0..1u32 << n {
        let (mut sum, mut weight) = (0, 0);
        for place in 0..n {
            sum ^= word >> place & 1;
            weight += sum;
        }
        counts[word.count_ones() as usize][weight as usize] += 1;
    }
    for w in 1..=10 {
        let mut light = 0.0;
        for h in 1..=10 {
            let stated = ln_becomes(10.0, f64::from(w), f64::from(h)).exp();
            let words = ln_binomial(10.0, f64::from(w)).exp();
            let counted = f64::from(counts[w as usize][h as usize]);
            assert!((stated * words - counted).abs() < 1e-6, "{w} to {h}");
            light += counted / words;
            let bound = ln_becomes_light(10.0, f64::from(w), f64::from(h)).exp();
            assert!(bound > light - 1e-9, "{w} to {h} or less");
        }
    }
}

#[test]
fn logarithms_of_factorials() {
    let mut factorial = 1.0f64;
    for n in 1..60 {
        factorial *= f64::from(n);
        assert!((ln_factorial(f64::from(n)) - factorial.ln()).abs() < 1e-9);
    }
}

/// The table of the documentation.
#[test]
fn light_words_are_as_unlikely_as_stated() {
    for (log, stated) in [(16, -131), (18, -162), (20, -193), (22, -223), (26, -283)] {
        let bits = failure_bits(1 << log, DISTANCE);
        let stated = f64::from(stated);
        assert!(bits <= stated && bits > stated - 1.0, "2^{log}: {bits:.2}");
    }
    // At the Gilbert-Varshamov bound many exist.
    assert!(failure_bits(1 << 17, 0.1625) > 0.0);
}

/// Every size over large rings, whose blocks need not be equal: the weight at which a product of `1
/// - f` is above 2^-128.
#[test]
fn no_word_lets_too_much_of_large_rings_through() {
    for outputs in [1, 60_000, 90_000, 1 << 20, 20_000_000] {
        let shape = Shape::for_outputs(Code::ReedMullerAccumulate, Field::Fp61, outputs)
            .expect("an instance");
        assert!(linear_test_bits(Field::Fp61, shape) >= 128.0);
        assert!(failure_bits(shape.leaves(), DISTANCE) < -100.0);
    }
}

/// A word of the block code through random codes: the weights occur as often as the enumerator
/// predicts.
#[test]
fn weights_of_random_codes_are_those_of_the_ensemble() {
    let (n, runs) = (256usize, 3000);
    let mut message = vec![false; 93];
    // The product of three variables: weight 32
    message[(0..256u32)
        .filter(|set| set.count_ones() <= 3)
        .position(|set| set == 7)
        .expect("a set")] = true;
    let bounds = [70, 100, 128, 156];
    let mut counted = [0u32; 4];
    for run in 0..runs {
        let word = plain::encode(Block::from(run as u128), &message);
        let weight = word.iter().filter(|bit| **bit).count();
        for (count, bound) in counted.iter_mut().zip(bounds) {
            *count += u32::from(weight <= bound);
        }
    }
    for (count, bound) in counted.iter().zip(bounds) {
        let mut expected = 0.0;
        for between in 1..=n {
            let first = ln_becomes(n as f64, 32.0, between as f64);
            for weight in 1..=bound {
                expected += (first + ln_becomes(n as f64, between as f64, weight as f64)).exp();
            }
        }
        let mean = expected * f64::from(runs);
        let spread = (mean * (1.0 - expected)).sqrt().max(1.0);
        assert!(
            (f64::from(*count) - mean).abs() < 5.0 * spread,
            "weight {bound} or less: {count} of {runs}, expected {mean:.1}"
        );
    }
}

/// Light words of small codes, searched for as in Lee and Brickell: sums of one or two rows of the
/// generator matrix, reduced to the identity in random places.
#[test]
fn no_light_words_are_found_in_small_codes() {
    const N: usize = 512;
    const K: usize = N / 256 * 93;
    type Word = [u64; N / 64];
    let weight = |word: &Word| word.iter().map(|bits| bits.count_ones()).sum::<u32>();
    let sum = |a: &Word, b: &Word| -> Word { std::array::from_fn(|i| a[i] ^ b[i]) };
    // Below this weight a word is expected in at most one code out of 2^6, and none of these has
    // one.
    let bound = 0.12;
    assert!(failure_bits(N, bound) < -6.0, "{}", failure_bits(N, bound));
    let mut prg = Prg::new(Block::from(11));
    let mut lightest = N as u32;
    for seed in 0..3u128 {
        let mut rows: Vec<Word> = (0..K)
            .map(|i| {
                let message: Vec<_> = (0..K).map(|j| i == j).collect();
                let word = plain::encode(Block::from(seed), &message);
                let mut packed = [0u64; N / 64];
                for (place, bit) in word.iter().enumerate() {
                    packed[place / 64] |= u64::from(*bit) << (place % 64);
                }
                packed
            })
            .collect();
        for _ in 0..20 {
            // Elimination, column after column in a random order
            let mut done = 0;
            let mut columns: Vec<usize> = (0..N).collect();
            for i in (1..N).rev() {
                columns.swap(i, prg.below(i as u64 + 1) as usize);
            }
            for column in columns {
                let bit = |row: &Word| row[column / 64] >> (column % 64) & 1 == 1;
                let Some(pivot) = (done..K).find(|row| bit(&rows[*row])) else {
                    continue;
                };
                rows.swap(done, pivot);
                let row = rows[done];
                for (number, other) in rows.iter_mut().enumerate() {
                    if number != done && bit(other) {
                        *other = sum(other, &row);
                    }
                }
                done += 1;
                if done == K {
                    break;
                }
            }
            assert_eq!(done, K, "the code has its full dimension");
            for (i, row) in rows.iter().enumerate() {
                lightest = lightest.min(weight(row));
                for other in &rows[..i] {
                    lightest = lightest.min(weight(&sum(row, other)));
                }
            }
        }
    }
    let least = f64::from(lightest) / N as f64;
    assert!(least > bound, "a word of weight {lightest}");
    assert!(least < 0.24, "the search finds light words: {lightest}");
}
