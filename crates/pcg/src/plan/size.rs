//! The size of a round of an instance: trees, levels and base correlations.

use std::{collections::HashMap, sync::LazyLock};

use volery_field::{Fp61, Gf128};
use volery_primitives::cuckoo;

use super::kind::Kind;
use crate::{
    Noise, Security, check,
    correlation::{Correlation, Cot, Vole},
    lpn::{LpnSet, estimate::Field, sets},
};

/// Cuckoo hashing fails with probability at most `2^-ETA` (`eta` of section 8.2 of the 2019 paper).
pub const ETA: u32 = 40;

/// The base correlations that a kind consumes for a tree, for each of its levels, and for the
/// check.
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
            Kind::Vole(Field::Open(field)) => {
                let times = check::repetitions_of(field.bits);
                Self { values: 1, levels: 0, mask: times * field.degree }
            }
            Kind::Vole(_) => Self::by::<Vole<Fp61>>(),
        }
    }

    const fn by<K: Correlation>() -> Self {
        Self { values: K::VALUES, levels: K::LEVELS, mask: K::MASK }
    }

    /// The base correlations of a round: the secret, and those that its trees and its check
    /// consume.
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

/// [`trees`] of a whole round of a set. Bins are counted once: the search for a plan needs them
/// repeatedly.
pub(super) fn trees_of(set: &LpnSet) -> usize {
    static BINS: LazyLock<HashMap<usize, usize>> = LazyLock::new(|| {
        let uniform = sets().iter().filter(|set| set.noise == Noise::Uniform);
        uniform.map(|set| (set.t, trees(set.noise, set.t))).collect()
    });
    match set.noise {
        Noise::Regular => set.t,
        Noise::Uniform => BINS[&set.t],
    }
}

/// The most levels of any tree of a round with `n` samples.
pub(super) fn depth(noise: Noise, n: usize, trees: usize) -> usize {
    let levels = match noise {
        Noise::Regular => (n / trees).next_power_of_two().ilog2(),
        Noise::Uniform => {
            // The next depth would suffice except for the few bins that are much fuller than the
            // others.
            let mean = (3 * n).div_ceil(trees) + 1;
            mean.next_power_of_two().ilog2() + 1
        }
    };
    levels as usize
}
