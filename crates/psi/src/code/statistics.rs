//! Statistical tests of the properties that the security of the OPRF rests on.

use volery_primitives::prg::Prg;

use super::*;

/// The rank of blocks as rows of bits.
fn rank(mut rows: Vec<u128>) -> usize {
    let mut rank = 0;
    for bit in 0..128 {
        let Some(pivot) = (rank..rows.len()).find(|&row| rows[row] >> bit & 1 == 1) else {
            continue;
        };
        rows.swap(rank, pivot);
        let (done, rest) = rows.split_at_mut(rank + 1);
        for row in rest.iter_mut().filter(|row| **row >> bit & 1 == 1) {
            *row ^= done[rank];
        }
        rank += 1;
    }
    rank
}

/// `L` at the unit vectors of some places.
fn images(code: &Code, places: &[usize]) -> Vec<u128> {
    let columns: [Vec<Block>; BLOCKS] = std::array::from_fn(|block| {
        let unit = |&place: &usize| {
            let here = place / 128 == block;
            Block::new(u128::from(here) << (place % 128))
        };
        places.iter().map(unit).collect()
    });
    let mut out = vec![Block::ZERO; places.len()];
    code.fold(columns.each_ref().map(Vec::as_slice), &mut out);
    out.into_iter().map(u128::from).collect()
}

/// An attacker that does not know `s` at 150 places or more does not know a bit of `L(b*s)`: on
/// each of 2000 random supports, each with its own weights, `L` has full rank. (It is deficient
/// with probability below `2^(128 - weight)`.)
#[test]
fn folding_loses_nothing() {
    let mut rng = Prg::new(Block::new(1));
    for draw in 0_u32..2000 {
        let mut seed = [0; 32];
        seed[..4].copy_from_slice(&draw.to_le_bytes());
        let width = [424, 432, 440, 448, 512][draw as usize % 5];
        let code = Code::new(&seed, width);
        let weight = 150 + rng.below(75) as usize;
        let mut places: Vec<_> = (0..width).collect();
        for i in 0..weight {
            let other = i + rng.below((width - i) as u64) as usize;
            places.swap(i, other);
        }
        assert_eq!(rank(images(&code, &places[..weight])), 128, "draw {draw}");
    }
}

/// At the least distance a matrix of as many rows as columns is regular as often as random ones
/// are: 0.2888 of them.
#[test]
fn folding_at_the_least_distance_is_a_random_matrix() {
    let mut lost = [0; 5];
    let draws = 2000;
    for draw in 0_u32..draws {
        let mut seed = [1; 32];
        seed[..4].copy_from_slice(&draw.to_le_bytes());
        let code = Code::new(&seed, 448);
        // Words with ones in all of the blocks.
        let places: Vec<_> = (0..128).map(|i| (i * 3 + draw as usize) % 448).collect();
        let rank = rank(images(&code, &places));
        lost[(128 - rank).min(4)] += 1;
    }
    // Of random square matrices over GF(2) a share of 0.2888 is regular, 0.5776 has a rank deficit
    // of one, 0.1284 of two, 0.0052 of three.
    for (lost, share) in lost.into_iter().zip([0.2888, 0.5776, 0.1284, 0.0052]) {
        let expected = f64::from(draws) * share;
        assert!((f64::from(lost) - expected).abs() < 6.0 * expected.sqrt(), "{lost} {expected}");
    }
    // The mean over the weights of 2^-rank, against which the module documentation measures a
    // guess.
    let guess: f64 =
        lost.iter().zip(0..).map(|(&n, lost)| f64::from(n) * f64::exp2(lost.into())).sum();
    assert!((guess / f64::from(draws) - 2.0).abs() < 0.2, "{guess}");
    // The best of N has a rank deficit of about the square root of log2 N, here of 11.
    let most = lost.iter().rposition(|&n| n > 0);
    assert!((2..=4).contains(&most.unwrap_or(0)), "{lost:?}");
}

/// The gain of an attacker that knows all inputs and guesses at the output with the least rank, as
/// in the module documentation of `oprf`: `N 2^128 (3/4)^k` at most, in the mean.
#[test]
fn the_best_of_all_outputs_is_as_good_as_any() {
    // The mean of 2^-weight over all words, summed up.
    let mean = |width: usize| -> f64 {
        let mut term = (-(width as f64)).exp2();
        let mut sum = 0.0;
        for weight in 0..=width {
            sum += term * (-(weight as f64)).exp2();
            term *= (width - weight) as f64 / (weight + 1) as f64;
        }
        sum
    };
    let gain = |outputs: f64, width| (outputs.log2() + 128.0 + mean(width).log2()).floor();
    assert!((mean(448).log2() - 448.0 * 0.75_f64.log2()).abs() < 1e-6);
    assert_eq!(gain(1.0, 448), -58.0);
    // The largest number of outputs for which 448 bits are enough.
    let most = (closeness(448) - f64::from(STATISTICAL)).exp2();
    assert_eq!(width(most as u64), 448);
    assert!((most.log2() - 26.5).abs() < 0.1);
    assert_eq!(gain(most, 448), -32.0);
    for variant in crate::params::Variant::ALL {
        for log in 0..=31 {
            let parameters = crate::params::Parameters::new(variant, 1 << log, 1 << log);
            let gain = gain(parameters.evaluations() as f64, parameters.width);
            assert!(gain < -29.0, "{variant}, 2^{log}: {gain}");
        }
    }
    // A share of 3.4 2^-25 of square matrices has a rank deficit of five: a few of 2^24.
    let regular: f64 = (1..60).map(|i| 1.0 - (-f64::from(i)).exp2()).product();
    let lacks = |rank: i32| {
        let up_to: f64 = (1..=rank).map(|i| 1.0 - (-f64::from(i)).exp2()).product();
        regular * (-f64::from(rank * rank)).exp2() / (up_to * up_to)
    };
    assert!((lacks(1) - 0.5776).abs() < 1e-4 && (lacks(2) - 0.1284).abs() < 1e-4);
    let expected = |rank| 24_f64.exp2() * lacks(rank);
    assert!(expected(5) > 1.0 && expected(6) < 0.01);
}
