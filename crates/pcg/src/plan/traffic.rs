//! The traffic of a whole round, including its base, and the search for the instance with the least
//! traffic.

use rayon::prelude::*;

use super::{
    Plan, cost,
    kind::Kind,
    size::{Spending, depth, trees},
};
use crate::{
    Noise, Security,
    lpn::estimate::{LONGEST, NoiseShape, smallest_weight},
};

/// The size of a whole round.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RoundSize {
    /// Outputs made.
    pub n: usize,
    /// Trees: one for each noise value, or a bin of cuckoo hashing.
    pub trees: usize,
    /// The most OTs of all trees together.
    pub levels: usize,
    /// Base correlations that the round consumes.
    pub base: usize,
    /// Bits sent by the round and by all steps that lead to its base, by the model that [`Plan`]
    /// uses: the base comes from rounds of the sets of [`crate::lpn::sets`], or from OT extension,
    /// whichever sends less.
    pub bits: f64,
}

impl RoundSize {
    /// The size of a round with `n` samples, a secret of `k` symbols and `t` noise values. With
    /// regular noise a tree has the levels for `n / t` leaves, rounded down.
    ///
    /// # Panics
    /// If `t` is 0 or above `n`, or `n` is above 2^40.
    #[must_use]
    pub fn new(kind: Kind, security: Security, noise: Noise, [n, k, t]: [usize; 3]) -> Self {
        assert!((1..=n).contains(&t) && n <= LONGEST, "0 < t <= n <= 2^40");
        let trees = trees(noise, t);
        let levels = trees * depth(noise, n, trees);
        let base = Spending::of(kind).need(security, k, trees, levels);
        Self {
            n,
            trees,
            levels,
            base,
            bits: cost::sent(levels) + Plan::bits_to(kind, security, noise, base as u64),
        }
    }

    /// Bits sent for each output.
    #[must_use]
    pub fn bits_each(&self) -> f64 {
        self.bits / self.n as f64
    }
}

/// An instance that [`least_traffic`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LeastTraffic {
    /// Length of the secret.
    pub k: usize,
    /// Noise weight.
    pub t: usize,
    /// Its round.
    pub size: RoundSize,
}

/// The length of the secret and the noise weight at which `n` outputs, made by one round, need the
/// fewest [bits](RoundSize::bits) of traffic, among those that resist all attacks at `bits` bits. A
/// longer secret needs more base correlations and fewer trees.
///
/// Lengths are tried on a grid that becomes finer around the best, each with its
/// [`smallest_weight`]. `None` if no such instance has a base smaller than its output. Runs on all
/// threads of the pool.
#[must_use]
pub fn least_traffic(
    kind: Kind,
    security: Security,
    noise: Noise,
    n: usize,
    bits: f64,
) -> Option<LeastTraffic> {
    let shape = match noise {
        Noise::Regular => NoiseShape::Regular,
        Noise::Uniform => NoiseShape::Exact,
    };
    let at = |k: usize| {
        let t = smallest_weight(|_| n, k, kind.field(), shape, bits)?;
        let size = RoundSize::new(kind, security, noise, [n, k, t]);
        (size.base < n).then_some(LeastTraffic { k, t, size })
    };
    if !(2..=LONGEST).contains(&n) {
        return None;
    }
    let mut best: Option<LeastTraffic> = None;
    let (mut low, mut high) = (1, n - 1);
    for ratio in [1.25, 1.04, 1.01] {
        let found: Vec<_> = lengths(low, high, ratio).into_par_iter().filter_map(at).collect();
        let all = best.into_iter().chain(found);
        best = all.min_by(|a, b| a.size.bits.total_cmp(&b.size.bits));
        let around = best?.k as f64;
        low = ((around / ratio) as usize).max(1);
        high = ((around * ratio) as usize).min(n - 1);
    }
    best
}

/// Lengths from `low` to `high`, each about `ratio` times the one before.
fn lengths(low: usize, high: usize, ratio: f64) -> Vec<usize> {
    let next = |k: &usize| Some(((*k as f64 * ratio) as usize).max(k + 1));
    std::iter::successors(Some(low), next).take_while(|k| *k <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lpn::estimate::{Field, Instance, resists};
    use crate::lpn::set_named;

    /// The sizes of a whole round, by hand: Ferret's own count for its main set is `k + t log2(n/t)
    /// + 128`.
    #[test]
    fn a_round_of_ferret() {
        let set = set_named("ferret-reg").expect("`ferret-reg` is a set");
        let sizes = [set.n, set.k, set.t];
        let size = RoundSize::new(Kind::Cot, Security::Malicious, Noise::Regular, sizes);
        assert_eq!((size.trees, size.levels), (1319, 1319 * 13));
        assert_eq!(size.base, 607_035);
        // Rounds, which send a few bits for each correlation, make the base; OT extension sends 15.
        let trees = 128.0 * 1319.0 * 13.0;
        assert!((1.0..5.0).contains(&((size.bits - trees) / 607_035.0)), "{size:?}");
    }

    #[test]
    fn least_traffic_resists_and_its_neighbours_send_no_less() {
        for (field, noise) in [(Field::F2, Noise::Regular), (Field::Fp61, Noise::Uniform)] {
            let kind = match field {
                Field::F2 => Kind::Cot,
                field => Kind::Vole(field),
            };
            let n = 1 << 18;
            let found = least_traffic(kind, Security::Malicious, noise, n, 128.0);
            let LeastTraffic { k, t, size } =
                found.expect("some instance makes more than its base");
            let shape = match noise {
                Noise::Regular => NoiseShape::Regular,
                Noise::Uniform => NoiseShape::Exact,
            };
            let instance = Instance { n, k, t, field, noise: shape, local: true };
            assert!(resists(&instance, 128.0), "{instance:?}");
            for other in [k / 2, k * 3 / 2] {
                let t = smallest_weight(|_| n, other, field, shape, 128.0);
                let sizes = [n, other, t.expect("some weight resists")];
                let other = RoundSize::new(kind, Security::Malicious, noise, sizes);
                assert!(other.bits >= size.bits, "{other:?} {size:?}");
            }
        }
    }
}
