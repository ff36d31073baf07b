//! Information-set decoding with one collision step ("SD-ISD", after Stern and Dumer).
//!
//! Formulas of ePrint 2022/712.

use super::Code;
use super::arithmetic::{log2_binomial, log2_sum, minimise};

/// Longest collision window tried. A list that needs more is larger than any attack considered.
const WINDOW: i64 = 1200;

/// Largest weight `p` tried; only instances of many hundred bits need more.
const HEAVIEST: f64 = 256.0;

/// The search over the weight `p` stops after a loss of this many bits.
const GIVE_UP: f64 = 30.0;

/// `log2` of one Gaussian elimination down to `n - k - l` columns, with the four-Russians saving.
pub(super) fn elimination(n: f64, left: f64) -> f64 {
    if left <= 1.0 {
        return f64::INFINITY;
    }
    (left * n / left.log2()).log2()
}

/// The least window of at least `l` that makes `k + l` even.
pub(super) fn even_window(k: f64, l: i64) -> f64 {
    let l = l as f64;
    if (k + l) % 2.0 == 0.0 { l } else { l + 1.0 }
}

/// SD-ISD over a field of `2^log2_order` elements (1 for GF(2)).
pub(super) fn sd_isd(code: Code, log2_order: f64) -> f64 {
    let last = ((code.n - code.k - 8.0) as i64).min(WINDOW);
    let mut best = f64::INFINITY;
    let mut p = 0.0;
    while p <= HEAVIEST.min(code.t / 2.0) {
        let Some((_, bits)) =
            minimise(1..=last, |l| one_choice(code, log2_order, p, even_window(code.k, l)))
        else {
            break;
        };
        best = best.min(bits);
        if bits > best + GIVE_UP {
            break;
        }
        p += 2.0;
    }
    best
}

/// The cost with `p` errors in the information set and a window of `l` symbols.
fn one_choice(code: Code, log2_order: f64, p: f64, l: f64) -> f64 {
    let Code { n, k, t } = code;
    // The number of non-zero error values: q - 1, one over GF(2).
    let values = if log2_order > 1.0 { (log2_order.exp2() - 1.0).log2() } else { 0.0 };
    let list = log2_binomial((k + l) / 2.0, p / 2.0) + p / 2.0 * values;
    let window = l * log2_order;
    let collisions = 2.0 * list - window;
    let success =
        log2_binomial(n - k - l, t - p) - log2_binomial(n, t) + window - p * values + collisions;
    if success >= 0.0 || success.is_nan() {
        return f64::INFINITY;
    }
    let iteration = log2_sum(&[elimination(n, n - k - l), 1.0 + list, 1.0 + collisions]);
    n.log2() + iteration - success
}
