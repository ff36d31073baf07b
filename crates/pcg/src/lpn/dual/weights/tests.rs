use volery_primitives::{Block, prg::Prg};

use super::*;
use crate::lpn::dual::{
    params::{DISTANCE, Shape},
    plain,
};
use crate::lpn::estimate::Field;

/// Gleason: the weight enumerator is a polynomial in `1 + 14 y + y^2` and `y (1 - y)^4`, where `y` stands for weight 4. All
/// numbers are below 2^64, so that sums modulo 2^128 are exact.
#[test]
fn the_outer_weights_follow_from_gleasons_theorem() {
    type Polynomial = Vec<u128>;
    fn times(a: &[u128], b: &[u128]) -> Polynomial {
        let mut product = vec![0u128; a.len() + b.len() - 1];
        for (i, a) in a.iter().enumerate() {
            for (j, b) in b.iter().enumerate() {
                product[i + j] = product[i + j].wrapping_add(a.wrapping_mul(*b));
            }
        }
        product
    }
    let power = |a: &[u128], n: usize| (0..n).fold(vec![1], |product, _| times(&product, a));
    let first = [1, 14, 1];
    let minus = |x: u128| x.wrapping_neg();
    let second = [0, 1, minus(4), 6, minus(4), 1];
    let mut enumerator = vec![0u128; 33];
    // 94488 words of weight 16, by the formula of MacWilliams and Sloane, chapter 13
    let least = 8 * (127 * 63 * 31 * 15) / (15 * 7 * 3);
    for (i, wanted) in [1, 0, 0, 0, least, 0].into_iter().enumerate() {
        let basis = times(&power(&first, 16 - 3 * i), &power(&second, i));
        let coefficient = wanted - enumerator[i] as i128;
        for (sum, basis) in enumerator.iter_mut().zip(&basis) {
            *sum = sum.wrapping_add(basis.wrapping_mul(coefficient as u128));
        }
    }
    let mut stated = vec![0u128; 33];
    for (weight, words) in OUTER {
        stated[weight as usize / 4] = u128::from(words);
        stated[32 - weight as usize / 4] = u128::from(words);
    }
    assert_eq!(enumerator, stated);
    assert_eq!(stated.iter().sum::<u128>(), 1 << 64);
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

/// The table of the documentation, and the shortest instances.
#[test]
fn light_words_are_as_unlikely_as_stated() {
    for (log, stated) in [
        (14, -55),
        (15, -62),
        (17, -76),
        (19, -90),
        (21, -104),
        (25, -132),
    ] {
        let bits = failure_bits(1 << log, DISTANCE);
        assert!((bits - f64::from(stated)).abs() < 1.0, "2^{log}: {bits:.2}");
    }
    for field in [Field::F2, Field::Fp61] {
        let shortest = Shape::for_outputs(field, 1).expect("an instance");
        assert!(failure_bits(shortest.leaves(), DISTANCE) < -60.0);
    }
    // At the Gilbert-Varshamov bound there are many.
    assert!(failure_bits(1 << 17, 0.111) > 0.0);
}

/// A word of the block code on its way through random codes: the weights come out as often as the enumerator says.
#[test]
fn weights_of_random_codes_are_those_of_the_ensemble() {
    let (n, runs) = (256usize, 3000);
    let mut message = vec![false; n / 2];
    // The product of three variables: weight 16
    message[(0..128u32)
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
            let first = ln_becomes(n as f64, 16.0, between as f64);
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

/// Light words of small codes, searched for as Lee and Brickell do: sums of one or two rows of the generator matrix, reduced to
/// the identity in random places.
#[test]
fn no_light_words_are_found_in_small_codes() {
    const N: usize = 512;
    const K: usize = N / 2;
    type Word = [u64; N / 64];
    let weight = |word: &Word| word.iter().map(|bits| bits.count_ones()).sum::<u32>();
    let sum = |a: &Word, b: &Word| -> Word { std::array::from_fn(|i| a[i] ^ b[i]) };
    // Below this weight a word is expected in one code out of 2^6 at most, and found in none of these.
    let bound = 0.07;
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
    assert!(least < 0.2, "the search finds light words: {lightest}");
}
