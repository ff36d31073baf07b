//! Noise over GF(2^128) with a code whose entries are zeros and ones.
//!
//! A map from GF(2^128) to GF(2) that is linear over GF(2) turns the sample `b = G s + e`, where
//! `G` is binary, into a sample of the same `G` over GF(2). No such map exists for entries from all
//! of GF(2^128), because a linear map does not preserve their products.
//!
//! **Projected.** One map makes about half of the noise values vanish. An attacker may try maps
//! until one leaves few: the weight is binomial, and the estimate is the least cost of an attack at
//! a weight, less `log2` of the chance of that weight.
//!
//! **Interleaved.** Taken together, the 128 coordinates are 128 code words of one binary code whose
//! noise sits in the same `t` places. The attacker takes `k` places and some more, in which `m`
//! noise values sit. These span at most `m` of 128 dimensions, so for `m < 128` a map to GF(2)
//! exists under which all of them vanish. Linear algebra finds such a map: only under the right
//! maps do the samples in those places satisfy the parity checks of the code. For larger `m` one
//! exists with chance `2^(128 - m)`. So an instance with `t k/n` below 128 costs only an
//! elimination. J. J. Metzner and E. J. Kapturowski, *A general decoding technique applicable to
//! replicated file disagreement location and concatenated code decoding*, IEEE Transactions on
//! Information Theory 36 (1990).
//!
//! **Interleaved ISD.** The code and the 128 noise vectors span a code of dimension `k + 128`, in
//! which each of the `2^128` sums of noise vectors is a word of weight about `t/2`: information-set
//! decoding finds any one of the light ones.

use std::f64::consts::LN_2;

use super::arithmetic::{first_where, log2_binomial, minimise_on};
use super::{Code, bjmm, linear, prange, stern};

/// Dimension of the field over GF(2).
const DIMENSION: f64 = 128.0;

/// Points per round of the search for a weight.
const COARSE: i64 = 6;

/// `log2` of the chance that a map leaves `weight` of `t` noise values.
fn chance(t: f64, weight: f64) -> f64 {
    log2_binomial(t, weight) - t
}

/// The least cost of information-set decoding less the value of `saved` at its weight, over the
/// weights for which a map exists. The weight is chosen for the simpler attack, which hardly moves
/// the minimum of the others.
fn lightest(code: Code, saved: impl Fn(f64) -> f64) -> f64 {
    let half = (code.t / 2.0) as i64;
    let first = first_where(0..=half, |weight| chance(code.t, weight as f64) >= -DIMENSION);
    let at = |weight: i64| Code { t: weight as f64, ..code };
    let simple = |weight| linear::pooled_gauss(at(weight)).min(stern::sd_isd(at(weight), 1.0));
    let cost = |weight| simple(weight) - saved(weight as f64);
    let found = minimise_on(COARSE, first.unwrap_or(half)..=half, cost);
    found.map_or(f64::INFINITY, |(weight, bits)| {
        let others = bjmm::bjmm(at(weight)).min(prange::exact(at(weight), true));
        bits.min(others - saved(weight as f64))
    })
}

/// Information-set decoding of the noise under one map, at the weight with the least total cost.
pub(super) fn projected(code: Code) -> f64 {
    lightest(code, |weight| chance(code.t, weight))
}

/// Interleaved Gauss. The chance is bounded from above, in favour of the attacker by some bits
/// where it is small: for `m` binomial and `x` from 0 to 1 the mean of `min(1, 2^(128 - m))` is at
/// most that of `2^(x (128 - m))`.
pub(super) fn gauss(code: Code) -> f64 {
    let Code { n, k, t } = code;
    let share = k / n;
    let bound = |x: f64| x * DIMENSION + t * (-share * (1.0 - (-x).exp2())).ln_1p() / LN_2;
    // Convex in `x`.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..64 {
        let (a, b) = ((2.0 * low + high) / 3.0, (low + 2.0 * high) / 3.0);
        if bound(a) < bound(b) {
            high = b;
        } else {
            low = a;
        }
    }
    linear::inversion(code) - bound(low).min(0.0)
}

/// Interleaved ISD; at least the cost of linear algebra.
pub(super) fn isd(code: Code) -> f64 {
    let wide = Code { k: code.k + DIMENSION, ..code };
    if wide.n - wide.k < 1.0 {
        return f64::INFINITY;
    }
    lightest(wide, |weight| DIMENSION + chance(code.t, weight)).max(linear::inversion(code))
}

#[cfg(test)]
mod tests {
    use super::super::arithmetic::log2_sum;
    use super::*;

    /// The mean of `min(1, 2^(128 - m))` itself.
    fn mean(Code { n, k, t }: Code) -> f64 {
        let share = k / n;
        let terms: Vec<_> = (0..=t as usize)
            .map(|m| {
                let m = m as f64;
                let chance = m * share.log2() + (t - m) * (1.0 - share).log2();
                log2_binomial(t, m) + chance + (DIMENSION - m).min(0.0)
            })
            .collect();
        log2_sum(&terms)
    }

    #[test]
    fn the_bound_is_close_to_the_mean() {
        for (n, k, t, most) in [
            (18_688.0, 4608.0, 292.0, 0.01),
            (870_400.0, 65_536.0, 1670.0, 1.0),
            (131_072.0, 83_456.0, 516.0, 5.0),
            (67_108_864.0, 42_729_472.0, 516.0, 5.0),
        ] {
            let code = Code { n, k, t };
            let (bound, mean) = (linear::inversion(code) - gauss(code), mean(code));
            assert!((mean - 1e-9..mean + most).contains(&bound), "{n}: {bound} {mean}");
        }
    }

    /// With a map under which nothing is noisy, only linear algebra remains.
    #[test]
    fn light_noise_hides_nothing() {
        let code = Code { n: 4096.0, k: 1024.0, t: 100.0 };
        assert_eq!(gauss(code), linear::inversion(code));
        assert_eq!(isd(code), linear::inversion(code));
    }

    /// The weight chosen for the simpler attacks is as good as the best.
    #[test]
    fn the_best_weight_for_all_attacks() {
        let code = Code { n: 18_688.0, k: 4608.0, t: 292.0 };
        let best = (60..=146)
            .map(|weight| {
                let weight = f64::from(weight);
                bjmm::bjmm(Code { t: weight, ..code }) - chance(code.t, weight)
            })
            .fold(f64::INFINITY, f64::min);
        let found = projected(code);
        assert!((best - 1e-9..best + 0.3).contains(&found), "{found} {best}");
    }
}
