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

const SEARCH: &str = "smallest t at this k for which every attack of lpn::estimate costs 2^128 in all rings";
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
    set("r14", 17_600, 4_096, 275, Noise::Regular),
    set("r17", 140_800, 16_384, 550, Noise::Regular),
    set("b10", 870_400, 1 << 16, 850, Noise::Regular),
    set("b11", 2_396_160, 1 << 17, 1_170, Noise::Regular),
    set("b12", 6_225_920, 1 << 18, 1_520, Noise::Regular),
    set("u14", 17_600, 4_096, 275, Noise::Uniform),
    set("u17", 140_800, 16_384, 550, Noise::Uniform),
    set("u21", 2_396_160, 1 << 17, 1_170, Noise::Uniform),
    set("u22", 6_225_920, 1 << 18, 1_520, Noise::Uniform),
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
