//! The costs of the attacks at a series of weights: the data of a plot of bits against `t`.

use rayon::prelude::*;

use super::{Estimate, Instance, estimate};

/// The cost of each attack at one weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The weight.
    pub t: usize,
    /// The result of [`estimate`].
    pub attacks: Vec<Estimate>,
}

impl Sample {
    /// The cost of the attack with this name; `None` if it does not apply, or does not succeed.
    #[must_use]
    pub fn bits(&self, attack: &str) -> Option<f64> {
        let found = self.attacks.iter().find(|found| found.attack == attack);
        found.map(|found| found.bits).filter(|bits| bits.is_finite())
    }

    /// The cost of the cheapest attack.
    #[must_use]
    pub fn least(&self) -> f64 {
        let bits = self.attacks.iter().map(|attack| attack.bits);
        bits.fold(f64::INFINITY, f64::min)
    }
}

/// At most `count` weights from `low` to `high` inclusive, in equal ratios.
///
/// # Panics
/// If `low` is 0 or above `high`, or `count` is below 2.
#[must_use]
pub fn weights(low: usize, high: usize, count: usize) -> Vec<usize> {
    assert!(0 < low && low <= high, "weights from low to high");
    assert!(count >= 2, "the weights include both ends");
    let ratio = high as f64 / low as f64;
    let at = |step: usize| {
        let share = step as f64 / (count - 1) as f64;
        (low as f64 * ratio.powf(share)).round() as usize
    };
    let mut weights: Vec<_> = (0..count).map(at).collect();
    weights[0] = low;
    weights[count - 1] = high;
    weights.dedup();
    weights
}

/// The costs at each of the weights, which replace that of the instance; on all threads of the
/// pool.
///
/// # Panics
/// If the instance does not [fit](Instance::fits) with one of the weights.
#[must_use]
pub fn sweep(instance: &Instance, weights: &[usize]) -> Vec<Sample> {
    let at = |&t: &usize| Sample { t, attacks: estimate(&Instance { t, ..*instance }) };
    weights.par_iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Field, NoiseShape, security_bits};
    use super::*;

    #[test]
    fn weights_stand_in_equal_ratios() {
        assert_eq!(weights(1, 16, 5), [1, 2, 4, 8, 16]);
        assert_eq!(weights(1, 2, 100), [1, 2]);
        assert_eq!(weights(7, 7, 3), [7]);
        let row = weights(100, 10_000, 60);
        assert_eq!((row[0], row[59], row.len()), (100, 10_000, 60));
        assert!(row.is_sorted());
    }

    #[test]
    fn a_sweep_is_the_estimate_at_each_weight() {
        let instance = Instance {
            n: 18_688,
            k: 4608,
            t: 292,
            field: Field::F2,
            noise: NoiseShape::Regular,
            local: false,
        };
        let samples = sweep(&instance, &[146, 292, 584]);
        for (sample, t) in samples.iter().zip([146, 292, 584]) {
            let least = security_bits(&Instance { t, ..instance });
            assert_eq!((sample.t, sample.least()), (t, least.bits));
            assert_eq!(sample.bits(least.attack), Some(least.bits));
            assert_eq!(sample.bits("none"), None);
        }
    }
}
