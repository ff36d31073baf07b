//! Pooled Gauss and statistical decoding.
//!
//! Formulas of Liu, Wang, Yang and Yu, *The Hardness of LPN over Any Integer Ring and Field for PCG
//! Applications*, ePrint 2022/712.

use super::Code;
use super::arithmetic::log2_binomial;

/// Exponent of the matrix inversion.
const INVERSION: f64 = 2.8;

/// `log2` of one inversion.
pub(super) fn inversion(code: Code) -> f64 {
    INVERSION * code.k.min(code.n - code.k).log2()
}

/// Pooled Gauss: draw `k` samples, assume that all are free of noise, invert.
pub(super) fn pooled_gauss(code: Code) -> f64 {
    let Code { n, k, t } = code;
    let miss = log2_binomial(n, t) - log2_binomial(n - k, t);
    inversion(code) + miss
}

/// Statistical decoding with one low-weight parity check, over GF(2).
pub(super) fn statistical_binary(code: Code) -> f64 {
    let Code { n, k, t } = code;
    if n - k - t <= 0.0 {
        return f64::INFINITY;
    }
    (k + 1.0).log2() + 2.0 * t * ((n - t + 1.0) / (n - k - t)).log2()
}

/// Statistical decoding over a large field.
pub(super) fn statistical_large(code: Code) -> f64 {
    let Code { n, k, t } = code;
    (k + 1.0).log2() + 2.0 * (log2_binomial(n, t) - log2_binomial(n - k - 1.0, t))
}

/// Statistical decoding 2.0: enumerate as many symbols of the secret as the cost of pooled Gauss
/// allows, and decode statistically on the rest. `log2_order` is 1 for GF(2).
///
/// The formula of the paper leaves out the enumeration, which is the whole cost for a secret short
/// enough to be enumerated completely.
pub(super) fn statistical_2(code: Code, log2_order: f64) -> f64 {
    let enumerated = (pooled_gauss(code) / log2_order).floor().min(code.k);
    let rest = Code { k: code.k - enumerated, ..code };
    let decoding =
        if log2_order > 1.0 { statistical_large(rest) } else { statistical_binary(rest) };
    decoding.max(enumerated * log2_order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_that_fills_the_redundancy_defeats_both() {
        let code = Code { n: 8.0, k: 5.0, t: 4.0 };
        assert_eq!(pooled_gauss(code), f64::INFINITY);
        assert_eq!(statistical_binary(code), f64::INFINITY);
        // The only attack left is to try every secret.
        assert!(statistical_2(code, 1.0) >= 5.0);
    }
}
