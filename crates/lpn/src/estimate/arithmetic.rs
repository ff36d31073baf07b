//! Binomial coefficients on a logarithmic scale and a search over integers.
//!
//! Everything is in bits (base 2). An impossible event has logarithm `-inf`, an impossible attack
//! costs `+inf` bits; both pass through the formulas without special cases.

use std::f64::consts::{LN_2, PI};
use std::ops::RangeInclusive;

/// Below this argument the series of [`ln_gamma`] is too short, and the argument is shifted up.
const SERIES_FROM: f64 = 16.0;

/// Points per round of [`minimise`].
const GRID: i64 = 48;

/// `ln Γ(x)` for `x > 0`, by Stirling's series.
pub(super) fn ln_gamma(x: f64) -> f64 {
    let mut x = x;
    let mut shift = 1.0;
    while x < SERIES_FROM {
        shift *= x;
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let square = inverse * inverse;
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0)));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + series - shift.ln()
}

/// `log2 C(n, m)`, extended to real arguments by the gamma function; `-inf` where no choice exists.
pub(super) fn log2_binomial(n: f64, m: f64) -> f64 {
    if m < 0.0 || m > n {
        return f64::NEG_INFINITY;
    }
    if m == 0.0 || m == n {
        return 0.0;
    }
    (ln_gamma(n + 1.0) - ln_gamma(m + 1.0) - ln_gamma(n - m + 1.0)) / LN_2
}

/// `log2` of the sum of the powers of two with the given exponents.
pub(super) fn log2_sum(exponents: &[f64]) -> f64 {
    let largest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        return largest;
    }
    let scaled: f64 = exponents.iter().map(|x| (x - largest).exp2()).sum();
    largest + scaled.log2()
}

/// The least value of `cost` that a repeatedly refined grid over `range` finds, and its argument.
///
/// Exact for a function with one valley; a narrower valley than the first grid's step may be
/// missed. `None` if the range is empty or every point tried costs `+inf`.
pub(super) fn minimise(
    range: RangeInclusive<i64>,
    cost: impl FnMut(i64) -> f64,
) -> Option<(i64, f64)> {
    minimise_on(GRID, range, cost)
}

/// Finds what [`minimise`] finds, with `grid` points per round.
pub(super) fn minimise_on(
    grid: i64,
    range: RangeInclusive<i64>,
    mut cost: impl FnMut(i64) -> f64,
) -> Option<(i64, f64)> {
    let (first, last) = range.into_inner();
    let (mut low, mut high) = (first, last);
    let mut best = (low, f64::INFINITY);
    while low <= high {
        let step = ((high - low) / grid).max(1);
        let mut x = low;
        while x <= high {
            let value = cost(x);
            if value < best.1 {
                best = (x, value);
            }
            if x == high {
                break;
            }
            x = (x + step).min(high);
        }
        if step == 1 {
            break;
        }
        low = (best.0 - step).max(first);
        high = (best.0 + step).min(last);
    }
    best.1.is_finite().then_some(best)
}

/// The least `x` in `range` with `holds(x)`, for a predicate that stays true once true.
pub(super) fn first_where(
    range: RangeInclusive<i64>,
    mut holds: impl FnMut(i64) -> bool,
) -> Option<i64> {
    let (mut low, mut high) = range.into_inner();
    if low > high || !holds(high) {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomials_of_large_arguments_keep_their_precision() {
        let n = 1.6e7_f64;
        let exact = (n * (n - 1.0) * (n - 2.0) / 6.0).log2();
        assert!((log2_binomial(n, 3.0) - exact).abs() < 1e-6);
        assert_eq!(log2_binomial(5.0, 6.0), f64::NEG_INFINITY);
        assert_eq!(log2_binomial(5.0, -1.0), f64::NEG_INFINITY);
        assert_eq!(log2_binomial(0.0, 0.0), 0.0);
    }

    #[test]
    fn sums_of_powers() {
        assert!((log2_sum(&[3.0, 3.0, 4.0]) - 5.0).abs() < 1e-12);
        assert!((log2_sum(&[2000.0, 2000.0]) - 2001.0).abs() < 1e-9);
        assert_eq!(log2_sum(&[1.0, f64::NEG_INFINITY]), 1.0);
        assert_eq!(log2_sum(&[f64::NEG_INFINITY]), f64::NEG_INFINITY);
        assert_eq!(log2_sum(&[1.0, f64::INFINITY]), f64::INFINITY);
    }
}
