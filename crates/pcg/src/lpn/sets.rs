//! The parameter sets: dated data, each checked against the estimator by a test.

use crate::{
    Noise,
    lpn::estimate::{Field, Instance, NoiseShape},
};

/// One LPN instance: `n` samples of a secret of length `k` with `t` noise values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LpnSet {
    /// The name in reports and handshakes.
    pub name: &'static str,
    /// Samples `n`: the length of one round's output. With regular noise a multiple of `t`.
    pub n: usize,
    /// The dimension `k`: the base correlations that a round takes for the secret.
    pub k: usize,
    /// The noise weight `t`.
    pub t: usize,
    /// Where the noise sits.
    pub noise: Noise,
    /// The bits that the set claims, against all attacks of [`crate::lpn::estimate`], in every ring it is used with.
    pub claim: u32,
    /// Where the numbers come from.
    pub source: &'static str,
    /// When they were last looked at.
    pub date: &'static str,
}

impl LpnSet {
    /// Points of one block, regular noise.
    #[must_use]
    pub fn block(&self) -> usize {
        self.n / self.t
    }

    /// The estimator's instance over `field`.
    #[must_use]
    pub fn instance(&self, field: Field) -> Instance {
        Instance {
            n: self.n,
            k: self.k,
            t: self.t,
            field,
            noise: match self.noise {
                Noise::Regular => NoiseShape::Regular,
                Noise::Uniform => NoiseShape::Exact,
            },
        }
    }
}

const SEARCH: &str = "searched with lpn::estimate: every attack costs 2^128 or more in each ring";
const PAPER: &str = "Distributed Vector-OLE (CCS 2019), Table 1; claims 80 bits";

const fn set(name: &'static str, n: usize, k: usize, t: usize, noise: Noise) -> LpnSet {
    LpnSet {
        name,
        n,
        k,
        t,
        noise,
        claim: 128,
        source: SEARCH,
        date: "2026-11-21",
    }
}

const fn paper80(name: &'static str, log_n: u32, k: usize, t: usize) -> LpnSet {
    LpnSet {
        name,
        n: 1 << log_n,
        k,
        t,
        noise: Noise::Uniform,
        claim: 80,
        source: PAPER,
        date: "2019-11-11",
    }
}

static SETS: [LpnSet; 15] = [
    set("r14", 17_536, 4_608, 274, Noise::Regular),
    set("r17", 134_144, 11_008, 1_048, Noise::Regular),
    set("b10", 870_400, 1 << 16, 850, Noise::Regular),
    set("b11", 2_396_160, 1 << 17, 1_170, Noise::Regular),
    set("b12", 6_225_920, 1 << 18, 1_520, Noise::Regular),
    set("u14", 17_500, 4_000, 299, Noise::Uniform),
    set("u17", 134_000, 12_288, 751, Noise::Uniform),
    set("u20", 1_048_576, 1 << 16, 1_008, Noise::Uniform),
    set("u21", 2_396_160, 1 << 17, 1_100, Noise::Uniform),
    paper80("paper80-14", 14, 3_482, 192),
    paper80("paper80-16", 16, 7_391, 382),
    paper80("paper80-18", 18, 15_336, 741),
    paper80("paper80-20", 20, 32_771, 1_422),
    paper80("paper80-22", 22, 67_440, 2_735),
    paper80("paper80-24", 24, 139_959, 5_205),
];

/// All sets, each noise from the smallest to the largest.
#[must_use]
pub fn sets() -> &'static [LpnSet] {
    &SETS
}

/// The set of that name.
#[must_use]
pub fn set_named(name: &str) -> Option<&'static LpnSet> {
    SETS.iter().find(|set| set.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lpn::estimate::security_bits;

    /// The rings that a set is used with; `z64` draws odd noise.
    const FIELDS: [Field; 4] = [Field::F2, Field::Fp61, Field::Z64Odd, Field::Gf128];

    #[test]
    fn every_set_holds_what_it_claims() {
        for set in sets() {
            for field in FIELDS {
                let least = security_bits(&set.instance(field));
                assert!(
                    least.bits >= f64::from(set.claim),
                    "{} over {field:?}: {:.1} bits by {}",
                    set.name,
                    least.bits,
                    least.attack
                );
            }
        }
    }

    /// The reason why the noise of `z64` is odd: any values at all would cost a set about half of its weight.
    #[test]
    fn even_noise_would_not_hold() {
        for set in sets() {
            let least = security_bits(&set.instance(Field::Z64Uniform));
            assert!(
                least.bits < f64::from(set.claim),
                "{}: {:.1} bits",
                set.name,
                least.bits
            );
        }
    }

    #[test]
    fn sets_are_well_formed() {
        for set in sets() {
            assert_eq!(set_named(set.name), Some(set));
            assert!(set.k + set.t < set.n);
            if set.noise == Noise::Regular {
                assert_eq!(set.block() * set.t, set.n);
                assert!(set.block().is_power_of_two());
            }
        }
        for pair in sets()
            .windows(2)
            .filter(|pair| pair[0].claim == pair[1].claim && pair[0].noise == pair[1].noise)
        {
            assert!(pair[0].n < pair[1].n, "sorted by size");
        }
        assert_eq!(set_named("b1"), None);
    }
}
