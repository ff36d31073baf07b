//! The search for the weight that a security level requires.

use super::{Field, Instance, NoiseShape, resists};

/// Largest weight that [`smallest_weight`] tries.
pub const HEAVIEST: usize = 1 << 24;

/// A small weight `t` at which `n_of_t(t)` samples of the local code, with a secret of `k` symbols,
/// resist all attacks at `bits` bits.
///
/// Security is *not* monotone in `t`: smaller blocks help the attacks on regular noise, and with
/// blocks of a fixed size more noise also means more samples. The search finds the first weight on
/// a grid of ratio 1.03 that resists, and bisects between it and the grid point before. The result
/// says nothing about larger weights. `None` if no weight up to [`HEAVIEST`], and no more than `n -
/// k`, resists, or `n` is above [`LONGEST`](super::LONGEST).
///
/// # Panics
/// If `k` is 0.
pub fn smallest_weight(
    n_of_t: impl Fn(usize) -> usize,
    k: usize,
    field: Field,
    noise: NoiseShape,
    bits: f64,
) -> Option<usize> {
    assert!(k > 0, "the secret has at least one symbol");
    let good = |t: usize| {
        let n = n_of_t(t);
        let instance = Instance { n, k, t, field, noise, local: true };
        instance.fits().is_ok() && t <= n - k && resists(&instance, bits)
    };
    let mut below = 0;
    let mut t = 1;
    while t <= HEAVIEST {
        if good(t) {
            let (mut low, mut high) = (below, t);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if good(middle) {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            return Some(high);
        }
        below = t;
        t += (t * 3 / 100).max(1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_weight_holds_and_one_less_does_not() {
        for (k, noise) in [(4096, NoiseShape::Exact), (5120, NoiseShape::Regular)] {
            let n = 1 << 14;
            let t =
                smallest_weight(|_| n, k, Field::F2, noise, 128.0).expect("some weight resists");
            let at = |t| Instance { n, k, t, field: Field::F2, noise, local: true };
            assert!(resists(&at(t), 128.0));
            assert!(!resists(&at(t - 1), 128.0));
        }
        // A secret of 64 bits can be guessed.
        let field = Field::F2;
        let none = smallest_weight(|_| 4096, 64, field, NoiseShape::Regular, 128.0);
        assert_eq!(none, None);
    }

    /// Every request has an answer, and the answer is correct.
    #[test]
    fn every_question_has_an_end() {
        for n in [2, 3, 1000, 1 << 20, 1 << 40, usize::MAX] {
            for k in [1, 2, n / 3 + 1, n - 1] {
                for field in Field::ALL {
                    for noise in [NoiseShape::Exact, NoiseShape::Regular] {
                        let t = smallest_weight(|_| n, k, field, noise, 128.0);
                        let Some(t) = t else { continue };
                        let instance = Instance { n, k, t, field, noise, local: true };
                        assert!(resists(&instance, 128.0), "{instance:?}");
                    }
                }
            }
        }
    }
}
