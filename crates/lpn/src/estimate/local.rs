//! Attacks that use the sparse columns of the local code.
//!
//! A column of [`crate::LocalCode`] has [`WEIGHT`] entries. An attacker picks a set of the unknowns
//! and keeps the samples all of whose entries lie in it: with `v` of `k` unknowns about
//! `n (v/k)^10` of them. From `v = k (k/n)^(1/9)` on these are `v` or more, and the attacker has an
//! LPN problem with a shorter secret and the same noise rate. This is the domain reduction of Chen,
//! Shu and Zhou, *Algorithms for Sparse LPN and LSPN Against Low-noise*, COLT 2025. A chosen set
//! can be smaller than a random one: whoever drops the unknown with the fewest samples again and
//! again ends 12 to 16 % below, and a test of this module recovers a secret that way.
//!
//! The estimates count with the least that any choice can reach, [`fewest`]: below it, the expected
//! number of sets that keep enough samples is less than one. It is 5 to 7 % below what dropping
//! unknowns reaches. The rows of this module are therefore lower bounds, whatever an attacker does
//! to find the set:
//!
//! * *domain reduction*: the cheapest attack on a random code with that secret, with as many of
//!   the `n` samples as it likes. The set is found for free, a new one for each guess.
//! * *low-weight dual words*: statistical decoding on the reduced code. The dual words that linear
//!   algebra finds are uniform on its samples, which is about half of their number. Over GF(2) the
//!   best statistic needs `2^v / (1 + (1 - 2t/n)^2)^v` of them, and each counts as one operation.
//!
//! Lighter dual words exist: a test here compares their expected number with a count in small
//! codes, and b12 has words of weight 22,100. To find one is to find the samples that it joins.
//! Linear algebra on some samples finds the words within these, and a set of the size above
//! contains a word of 0.4 times its size with a chance below `2^-75` in the smallest set and
//! `2^-4000` in b12.
//!
//! Regular noise helps less than on the whole code. The attacker does not know whether the noisy
//! sample of a block is kept, so there are no parity equations. The products of two kept samples
//! of a block vanish, and `m` samples in `t` blocks determine `m / sqrt(t)` unknowns that way;
//! these count as solved for free. Products of more samples cost more than they save.

use super::arithmetic::{first_where, log2_binomial};
use super::{Code, bjmm, dual_attack, linear, prange, stern};
use crate::code::WEIGHT;

/// Numbers of samples for each unknown that information-set decoding tries, besides all.
const POOLS: [f64; 4] = [2.0, 4.0, 8.0, 16.0];

/// The most bits that BJMM saves over SD-ISD in instances of less than some hundred bits.
const REPRESENTATIONS: f64 = 10.0;

/// The chance that all entries of a column lie in a share `x` of `k` rows. In about one column of
/// `k/45` two entries meet; over GF(2) they vanish.
fn inside(k: f64, x: f64) -> f64 {
    let d = WEIGHT as f64;
    let meet = (d * (d - 1.0) / 2.0 / k).min(1.0);
    (meet + (1.0 - meet) * x * x) * x.powf(d - 2.0)
}

/// `log2` of a bound on the chance that `m` or more of `n` samples have a property of chance `p`.
fn tail(n: f64, p: f64, m: f64) -> f64 {
    let share = m / n;
    if p >= share || p >= 1.0 {
        return 0.0;
    }
    let rest = (1.0 - share) * ((1.0 - share) / (1.0 - p)).log2();
    -n * (share * (share / p).log2() + if share < 1.0 { rest } else { 0.0 })
}

/// The fewest unknowns in a set for which one is expected that keeps `ratio` samples for each.
fn fewest(n: f64, k: f64, ratio: f64) -> f64 {
    let exists = |v: i64| {
        let v = v as f64;
        log2_binomial(k, v) + tail(n, inside(k, v / k), v * ratio) >= 0.0
    };
    first_where(1..=k as i64, exists).map_or(k, |v| v as f64)
}

/// The problem that domain reduction leaves; `blocks` is the number of blocks of regular noise.
pub(super) fn reduced(code: Code, blocks: Option<f64>) -> Code {
    let products = blocks.map_or(0.0, |blocks| 1.0 / blocks.sqrt());
    let ratio = 1.0 / (1.0 + products);
    Code { k: (fewest(code.n, code.k, ratio) * ratio).max(1.0), ..code }
}

/// The cheapest attack on a reduced problem.
pub(super) fn domain_reduction(reduced: Code, log2_order: f64) -> f64 {
    let Code { n, k, t } = reduced;
    let pools = POOLS.map(|pool| pool * k).into_iter().filter(|&pool| pool < n);
    let least = |x: &(Code, f64), y: &(Code, f64)| x.1.total_cmp(&y.1);
    let lists = pools
        .chain([n])
        .map(|samples| Code { n: samples, k, t: (t * samples / n).floor().max(1.0) })
        .map(|pool| (pool, stern::sd_isd(pool, log2_order)))
        .min_by(least);
    let mut best = linear::pooled_gauss(reduced).min(prange::exact(reduced, true));
    if let Some((pool, bits)) = lists {
        best = best.min(bits);
        if log2_order <= 1.0 && bits < best + REPRESENTATIONS {
            best = best.min(bjmm::bjmm(pool));
        }
    }
    if log2_order > 1.0 {
        return best;
    }
    best.min(dual_attack::double_rlpn(reduced))
}

/// Statistical decoding with the dual words of a reduced problem.
pub(super) fn dual_words(reduced: Code, large: bool) -> f64 {
    if large {
        return linear::statistical_large(reduced);
    }
    let rate = reduced.t / reduced.n;
    -reduced.k * (-2.0 * rate * (1.0 - rate)).ln_1p() / std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use volery_primitives::{Block, prg::Prg};

    use super::*;
    use crate::code::tests::column;
    use crate::estimate::arithmetic::log2_sum;

    /// `log2` of the expected number of dual words of weight `w`: by a Fourier transform, a walk of
    /// `10 w` steps on the cube of dimension `k` ends where it began with the chance
    /// `2^-k * sum_j C(k, j) (1 - 2j/k)^(10 w)`.
    fn log2_words(n: usize, k: usize, w: usize) -> f64 {
        let (n, k, steps) = (n as f64, k as f64, (WEIGHT * w) as f64);
        let terms: Vec<_> = (0..=k as usize)
            .map(|j| {
                let j = j as f64;
                log2_binomial(k, j) + steps * (1.0 - 2.0 * j / k).abs().log2()
            })
            .collect();
        log2_binomial(n, w as f64) + log2_sum(&terms) - k
    }

    /// The number of dual words of weights 1 to 4 among `n` columns of the code.
    fn count_words(seed: Block, k: usize, n: usize) -> [usize; 4] {
        let columns: Vec<u64> = (0..n)
            .map(|i| column(seed, k, i).iter().fold(0, |bits, row| bits ^ (1 << row)))
            .collect();
        let mut found = [0; 4];
        for a in 0..n {
            let one = columns[a];
            found[0] += usize::from(one == 0);
            for b in a + 1..n {
                let two = one ^ columns[b];
                found[1] += usize::from(two == 0);
                for c in b + 1..n {
                    let three = two ^ columns[c];
                    found[2] += usize::from(three == 0);
                    found[3] += columns[c + 1..].iter().filter(|d| **d == three).count();
                }
            }
        }
        found
    }

    #[test]
    fn the_number_of_light_dual_words_is_the_expected_one() {
        const CODES: usize = 24;
        for (n, k) in [(90, 16), (70, 13)] {
            let mut found = [0; 4];
            for seed in 0..CODES {
                let more = count_words(Block::from(seed as u128), k, n);
                found.iter_mut().zip(more).for_each(|(sum, x)| *sum += x);
            }
            for (w, found) in (1..).zip(found) {
                let mean = CODES as f64 * log2_words(n, k, w).exp2();
                // Pairs of words that share columns add up to three times the variance of Poisson.
                let spread = 5.0 * (3.0 * mean).sqrt() + 3.0;
                assert!((found as f64 - mean).abs() < spread, "{n} {k} {w}: {found}, mean {mean}");
            }
        }
    }

    /// The lightest dual word of `b12` that is expected.
    #[test]
    fn the_lightest_dual_word_of_a_set() {
        let words = |w| log2_words(5_996_544, 1 << 18, w);
        assert!(words(2) < -100.0 && words(1000) < -10_000.0);
        assert!(words(22_000) < 0.0 && words(22_100) > 0.0);
    }

    /// The sets of Chen, Shu and Zhou: of `m = k^(1 + (d - 1)(1 - a)/2)` samples, `v` lie in
    /// `v = k^((1 + a)/2)` unknowns. No set is expected that is much smaller.
    #[test]
    fn random_sets_as_in_the_paper() {
        let (k, d) = (1e5_f64, WEIGHT as f64);
        for a in [0.8, 0.9, 0.95] {
            let m = k.powf(1.0 + (d - 1.0) * (1.0 - a) / 2.0);
            let v = k.powf(f64::midpoint(1.0, a));
            let kept = m * inside(k, v / k);
            assert!((kept / v - 1.0).abs() < 0.01, "{a}: {kept} {v}");
            let least = fewest(m, k, 1.0);
            assert!((0.6 * v..0.9 * v).contains(&least), "{a}: {least} {v}");
        }
    }

    /// Drops the unknown with the fewest samples until `spare` more samples than unknowns are left.
    /// Returns both.
    fn drop_unknowns(columns: &[[usize; WEIGHT]], k: usize, spare: usize) -> [Vec<usize>; 2] {
        let mut samples: Vec<_> = (0..columns.len()).collect();
        let mut unknowns: Vec<_> = (0..k).collect();
        loop {
            let mut degrees = vec![0u32; k];
            for row in samples.iter().flat_map(|&i| columns[i]) {
                degrees[row] += 1;
            }
            let place = (0..unknowns.len()).min_by_key(|&place| degrees[unknowns[place]]);
            let dropped = unknowns[place.expect("an unknown is left")];
            let left: Vec<_> =
                samples.iter().copied().filter(|&i| !columns[i].contains(&dropped)).collect();
            if left.len() < unknowns.len() - 1 + spare {
                return [samples, unknowns];
            }
            samples = left;
            unknowns.retain(|&unknown| unknown != dropped);
        }
    }

    /// Solves for the unknowns by elimination; `None` if the samples contradict each other.
    fn solve(rows: impl Iterator<Item = (u128, bool)>) -> Option<Vec<(u128, bool)>> {
        let mut pivots: Vec<(u128, bool)> = Vec::new();
        for (mut bits, mut sample) in rows {
            for &(other, value) in &pivots {
                if bits & (1 << other.ilog2()) != 0 {
                    bits ^= other;
                    sample ^= value;
                }
            }
            if bits == 0 {
                if sample {
                    return None;
                }
                continue;
            }
            let top = 1 << bits.ilog2();
            for (other, value) in &mut pivots {
                if *other & top != 0 {
                    *other ^= bits;
                    *value ^= sample;
                }
            }
            pivots.push((bits, sample));
        }
        Some(pivots)
    }

    /// The attack on the code itself: with few enough unknowns, and as often as predicted, it
    /// recovers their values, where all of the secret would take a guess of far more samples.
    #[test]
    fn domain_reduction_recovers_a_part_of_the_secret() {
        const SPARE: usize = 12;
        let (n, k, t) = (4_400, 190, 70);
        let seed = Block::from(9);
        let columns: Vec<_> = (0..n).map(|i| column(seed, k, i)).collect();
        let [samples, unknowns] = drop_unknowns(&columns, k, SPARE);
        let (v, m) = (unknowns.len() as f64, samples.len() as f64);
        let least = fewest(n as f64, k as f64, 1.0);
        let random = k as f64 * (k as f64 / n as f64).powf(1.0 / 9.0);
        assert!(least < v && v < 0.95 * random && v < 128.0, "{least} {v} {random}");

        let mut random = Prg::new(Block::from(1));
        let secret: Vec<bool> = (0..k).map(|_| random.below(2) == 1).collect();
        let (trials, mut solved) = (600, 0);
        for _ in 0..trials {
            let mut noisy = vec![false; n];
            let mut left = t;
            while left > 0 {
                let place = &mut noisy[random.below(n as u64) as usize];
                left -= usize::from(!*place);
                *place = true;
            }
            let rows = samples.iter().map(|&i| {
                let value = columns[i].iter().fold(noisy[i], |sum, &row| sum ^ secret[row]);
                let bits = columns[i].iter().fold(0, |bits, row| {
                    bits ^ (1 << unknowns.binary_search(row).expect("in the set"))
                });
                (bits, value)
            });
            let Some(pivots) = solve(rows) else {
                continue;
            };
            solved += 1;
            // Columns have an even weight, so the complement of a solution is one as well.
            assert_eq!(pivots.len(), unknowns.len() - 1);
            for (bits, value) in pivots {
                let rows = (0..unknowns.len()).filter(|row| bits >> row & 1 == 1);
                assert_eq!(rows.fold(false, |sum, row| sum ^ secret[unknowns[row]]), value);
            }
        }
        let (n, t) = (n as f64, t as f64);
        let chance = (log2_binomial(n - m, t) - log2_binomial(n, t)).exp2();
        let mean = f64::from(trials) * chance;
        let spread = 4.0 * (mean * (1.0 - chance)).sqrt();
        assert!((f64::from(solved) - mean).abs() < spread, "{solved} of {trials}, mean {mean}");
    }
}
