//! What a round of an instance takes and gives, and the search for the instance with the least traffic.

use std::{collections::HashMap, sync::LazyLock};

use rayon::prelude::*;
use volery_field::{Fp61, Gf128};
use volery_primitives::cuckoo;

use super::{
    cost,
    plan::{ETA, Kind, Plan},
};
use crate::{
    Noise, Security,
    correlation::{Correlation, Cot, Vole},
    lpn::{
        LpnSet,
        estimate::{Field, LONGEST, NoiseShape, smallest_weight},
        sets,
    },
};

/// The base correlations that a kind spends on a tree, on each of its levels, and on the check.
#[derive(Clone, Copy)]
pub(super) struct Spending {
    values: usize,
    levels: usize,
    mask: usize,
}

impl Spending {
    pub(super) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Cot => Self::by::<Cot>(),
            Kind::Vole(Field::Gf128 | Field::Gf128Binary) => Self::by::<Vole<Gf128>>(),
            Kind::Vole(_) => Self::by::<Vole<Fp61>>(),
        }
    }

    const fn by<K: Correlation>() -> Self {
        Self {
            values: K::VALUES,
            levels: K::LEVELS,
            mask: K::MASK,
        }
    }

    /// The base correlations of a round: the secret, and what its trees and its check spend.
    pub(super) fn need(self, security: Security, k: usize, trees: usize, levels: usize) -> usize {
        let mask = match security {
            Security::SemiHonest => 0,
            Security::Malicious => self.mask,
        };
        k + self.values * trees + self.levels * levels + mask
    }
}

/// Trees of a whole round with `t` noise values.
pub(super) fn trees(noise: Noise, t: usize) -> usize {
    match noise {
        Noise::Regular => t,
        Noise::Uniform => cuckoo::bins_for(t, ETA),
    }
}

/// [`trees`] of a whole round of a set. Bins are counted once: the search for a plan asks for them again and again.
pub(super) fn trees_of(set: &LpnSet) -> usize {
    static BINS: LazyLock<HashMap<usize, usize>> = LazyLock::new(|| {
        let uniform = sets().iter().filter(|set| set.noise == Noise::Uniform);
        uniform
            .map(|set| (set.t, trees(set.noise, set.t)))
            .collect()
    });
    match set.noise {
        Noise::Regular => set.t,
        Noise::Uniform => BINS[&set.t],
    }
}

/// Levels of each of the trees of a round with `n` samples, at most.
pub(super) fn depth(noise: Noise, n: usize, trees: usize) -> usize {
    let levels = match noise {
        Noise::Regular => (n / trees).next_power_of_two().ilog2(),
        Noise::Uniform => {
            // The next depth would do but for the few bins that are much fuller than the others.
            let mean = (3 * n).div_ceil(trees) + 1;
            mean.next_power_of_two().ilog2() + 1
        }
    };
    levels as usize
}

/// What a whole round takes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RoundSize {
    /// Outputs made.
    pub n: usize,
    /// Trees: one for each noise value, or a bin of cuckoo hashing.
    pub trees: usize,
    /// OTs that the trees take together, at most.
    pub levels: usize,
    /// Base correlations that the round spends.
    pub base: usize,
    /// Bits sent by the round and by all that leads to its base, by the model that [`Plan`] chooses by: the base comes from
    /// rounds of the sets of [`crate::lpn::sets`], or from OT extension, whichever sends less.
    pub bits: f64,
}

impl RoundSize {
    /// The size of a round with `n` samples, a secret of `k` symbols and `t` noise values. With regular noise a tree has as
    /// many levels as `n / t` leaves, rounded down, take.
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

/// The length of the secret and the noise weight at which `n` outputs, made by one round, take the fewest
/// [bits](RoundSize::bits) on the wire, among those that resist all attacks for `bits` bits. A longer secret takes more base
/// correlations and fewer trees.
///
/// Lengths are tried on a grid that becomes finer around the best, each with its [`smallest_weight`]. `None` if there is no
/// such instance whose base is smaller than what it makes. Runs on all threads of the pool.
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
        let found: Vec<_> = lengths(low, high, ratio)
            .into_par_iter()
            .filter_map(at)
            .collect();
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
    std::iter::successors(Some(low), next)
        .take_while(|k| *k <= high)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lpn::estimate::{Instance, resists};
    use crate::lpn::set_named;

    /// The sizes of a whole round, by hand: Ferret's own count for its main set is `k + t log2(n/t) + 128`.
    #[test]
    fn a_round_of_ferret() {
        let set = set_named("ferret-reg").expect("there is one");
        let sizes = [set.n, set.k, set.t];
        let size = RoundSize::new(Kind::Cot, Security::Malicious, Noise::Regular, sizes);
        assert_eq!((size.trees, size.levels), (1319, 1319 * 13));
        assert_eq!(size.base, 607_035);
        // The base is made by rounds, which send a few bits for each, and not by OT extension, which sends 15.
        let trees = 128.0 * 1319.0 * 13.0;
        assert!(
            (1.0..5.0).contains(&((size.bits - trees) / 607_035.0)),
            "{size:?}"
        );
    }

    /// A base that no round makes comes from OT extension: 15 bits each, and a batch.
    #[test]
    fn a_base_without_rounds() {
        let sizes = [1000, 900, 100];
        let size = RoundSize::new(Kind::Cot, Security::SemiHonest, Noise::Regular, sizes);
        assert_eq!((size.levels, size.base), (400, 1300));
        let bits = 128.0 * 400.0 + 15.0 * (1300.0 + 128.0);
        assert!((size.bits - bits).abs() < 1.0, "{size:?}");
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
            let LeastTraffic { k, t, size } = found.expect("there is one");
            let shape = match noise {
                Noise::Regular => NoiseShape::Regular,
                Noise::Uniform => NoiseShape::Exact,
            };
            let instance = Instance {
                n,
                k,
                t,
                field,
                noise: shape,
            };
            assert!(resists(&instance, 128.0), "{instance:?}");
            for other in [k / 2, k * 3 / 2] {
                let t = smallest_weight(|_| n, other, field, shape, 128.0);
                let sizes = [n, other, t.expect("there is one")];
                let other = RoundSize::new(kind, Security::Malicious, noise, sizes);
                assert!(other.bits >= size.bits, "{other:?} {size:?}");
            }
        }
    }

    #[test]
    fn no_instance_where_there_is_none() {
        for n in [0, 1, 2, 3, 100, LONGEST + 1, usize::MAX] {
            let none = least_traffic(Kind::Cot, Security::Malicious, Noise::Regular, n, 128.0);
            assert_eq!(none, None);
        }
    }

    #[test]
    fn lengths_cover_their_range() {
        assert_eq!(lengths(1, 5, 1.25), [1, 2, 3, 4, 5]);
        assert_eq!(lengths(100, 160, 1.25), [100, 125, 156]);
        assert!(lengths(3, 2, 1.01).is_empty());
    }
}
