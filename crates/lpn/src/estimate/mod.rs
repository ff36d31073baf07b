//! Estimates of the work, in bits, of the best known attack on an LPN instance.
//!
//! The security of a set of LPN parameters depends on the attacks evaluated, so this module
//! evaluates all of them, and the tests of the parameter sets call it. The attacks and their
//! sources:
//!
//! | attack | noise | source |
//! |---|---|---|
//! | pooled Gauss, statistical decoding, the same 2.0, SD-ISD, BJMM | any | ePrint 2022/712 |
//! | regular permutation, enumeration, representation | regular | ePrint 2023/1568 |
//! | algebraic (AGB) | regular | ePrint 2023/176 |
//! | AGB 2.0 | regular | ePrint 2025/1476 |
//! | hybrid | regular | ePrint 2025/1284 |
//! | double RLPN (dual attack 3.0), over GF(2) | any | ePrint 2023/1852 |
//! | domain reduction, low-weight dual words, of the local code | any | COLT 2025 (arXiv 2407.19215) |
//! | Reduce and Prange, and in pools (a heuristic) | any | <https://github.com/ChangminLee-kr/Reduce-and-Prange> |
//! | interleaved Gauss, interleaved ISD, projected ISD | any, with a binary code over GF(2^128) | after Metzner and Kapturowski, 1990 |
//!
//! The tests of each module, or the tables of this one, compare the attack with figures of its
//! authors or of their programs.
//!
//! Over GF(2) each block of regular noise sums to one, which gives a parity equation for free, so
//! the attacks on unstructured noise run on `(n - t, k - t, t)`.
//!
//! Over GF(2^128) the code matters. The code of [`Field::Gf128`] has entries from all of the field,
//! and the attacks are those over any large field. With entries 0 and 1 ([`Field::Gf128Binary`])
//! the 128 coordinates of the samples are 128 instances over GF(2) with the same code and their
//! noise in the same places.
//!
//! [`smallest_weight`] searches, [`sweep`] evaluates all attacks at a series of weights.
//!
//! Every call returns, in bounded time, for every instance with `n` up to [`LONGEST`]. The searches
//! inside an attack are bounded for this purpose: a cost above some hundred bits may be stated a
//! little too high.
//!
//! Double RLPN and the two attacks on the local code ([`Instance::local`]) are lower bounds.
//!
//! Limits: the formulas of all other attacks assume a *random* code. They state the cost of the
//! known attacks, in operations, without memory access costs; they are not a proof.

mod algebraic;
mod arithmetic;
mod bjmm;
mod dual_attack;
mod hybrid;
mod interleaved;
mod linear;
mod local;
mod prange;
mod regular;
mod search;
mod stern;
mod sweep;
#[cfg(test)]
mod tables;
#[cfg(test)]
mod tests;

pub use search::{HEAVIEST, smallest_weight};
pub use sweep::{Sample, sweep, weights};

use std::fmt;

/// The most samples of an instance: 2^40. Above it the logarithms of factorials lose tenths of a
/// bit.
pub const LONGEST: usize = match 1usize.checked_shl(40) {
    Some(longest) => longest,
    None => usize::MAX,
};

/// The ring of the noise, and the distribution of its non-zero values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// GF(2).
    F2,
    /// The prime field of order `2^61 - 1`.
    Fp61,
    /// Integers modulo `2^64`, with odd noise: modulo 2 it keeps its weight.
    Z64Odd,
    /// Integers modulo `2^64`, with noise values uniform: modulo 2 it loses half of its weight.
    Z64Uniform,
    /// GF(2^128), with noise values uniform and not zero, and a code with entries from all of it.
    Gf128,
    /// The same noise with a code of zeros and ones, which hardly hides anything: no set may be
    /// used this way.
    Gf128Binary,
}

impl Field {
    /// All rings.
    pub const ALL: [Self; 6] =
        [Self::F2, Self::Fp61, Self::Z64Odd, Self::Z64Uniform, Self::Gf128, Self::Gf128Binary];

    /// The name of the ring on the command line; `z64` is the one with odd noise.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F2 => "f2",
            Self::Fp61 => "fp61",
            Self::Z64Odd => "z64",
            Self::Z64Uniform => "z64-uniform",
            Self::Gf128 => "gf128",
            Self::Gf128Binary => "gf128-binary",
        }
    }

    /// `log2` of the order of the field that the attack works in.
    fn log2_order(self) -> f64 {
        match self {
            Self::F2 | Self::Z64Odd | Self::Z64Uniform => 1.0,
            Self::Fp61 => 61.0,
            Self::Gf128 | Self::Gf128Binary => 128.0,
        }
    }

    fn is_large(self) -> bool {
        self.log2_order() > 1.0
    }
}

impl fmt::Display for Field {
    /// [`name`](Self::name).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The distribution of the noisy positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoiseShape {
    /// A uniform set of exactly `t` positions.
    Exact,
    /// One position in each of `t` blocks of equal size.
    Regular,
}

/// One LPN problem: `n` samples of a secret of `k` symbols, `t` of them noisy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instance {
    /// Number of samples.
    pub n: usize,
    /// Length of the secret.
    pub k: usize,
    /// Number of noisy samples.
    pub t: usize,
    /// Field and noise values.
    pub field: Field,
    /// Noise positions.
    pub noise: NoiseShape,
    /// Whether the code is that of [`crate::LocalCode`]. Otherwise it is taken for a random one.
    pub local: bool,
}

/// The number that does not make an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfit {
    /// `n` is not from 2 to [`LONGEST`].
    Length,
    /// `k` is not from 1 to `n - 1`.
    Secret,
    /// `t` is not from 1 to `n`.
    Weight,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "an LPN instance needs 2 <= n <= 2^40",
            Self::Secret => "an LPN instance needs 0 < k < n",
            Self::Weight => "an LPN instance needs 0 < t <= n",
        })
    }
}

impl std::error::Error for Unfit {}

/// The cost of one attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Name of the attack.
    pub attack: &'static str,
    /// `log2` of the number of operations; infinite if the attack does not apply.
    pub bits: f64,
}

/// Parameters of an instance with unstructured noise, as real numbers.
#[derive(Clone, Copy)]
struct Code {
    n: f64,
    k: f64,
    t: f64,
}

/// Parameters of an instance with regular noise: `t` blocks of equal size.
#[derive(Clone, Copy)]
struct Blocks {
    size: f64,
    /// Length of the secret, less the samples that do not fill a block.
    k: f64,
    t: f64,
}

impl Blocks {
    fn n(&self) -> f64 {
        self.size * self.t
    }
}

/// The attacks, in the order of how fast they rule out most instances.
const ATTACKS: [(&str, Attack); 19] = [
    ("interleaved Gauss", Attack::InterleavedGauss),
    ("pooled Gauss", Attack::PooledGauss),
    ("statistical decoding", Attack::Statistical),
    ("statistical decoding 2.0", Attack::Statistical2),
    ("SD-ISD", Attack::SdIsd),
    ("low-weight dual words", Attack::DualWords),
    ("domain reduction", Attack::DomainReduction),
    ("double RLPN", Attack::DoubleRlpn),
    ("regular permutation", Attack::Permutation),
    ("Reduce and Prange", Attack::Prange { pooled: false }),
    ("pooled Reduce and Prange (heuristic)", Attack::Prange { pooled: true }),
    ("hybrid", Attack::Hybrid),
    ("algebraic", Attack::Algebraic),
    ("regular enumeration", Attack::Enumeration),
    ("AGB 2.0", Attack::Algebraic2),
    ("BJMM", Attack::Bjmm),
    ("regular representation", Attack::Representation),
    ("interleaved ISD", Attack::InterleavedIsd),
    ("projected ISD", Attack::ProjectedIsd),
];

#[derive(Clone, Copy)]
enum Attack {
    PooledGauss,
    Statistical,
    Statistical2,
    SdIsd,
    Bjmm,
    Prange { pooled: bool },
    Permutation,
    Enumeration,
    Representation,
    Algebraic,
    Algebraic2,
    Hybrid,
    InterleavedGauss,
    InterleavedIsd,
    ProjectedIsd,
    DoubleRlpn,
    DomainReduction,
    DualWords,
}

impl Instance {
    /// Checks that the numbers make an instance.
    ///
    /// Regular noise need not divide the samples evenly: blocks have `n / t` samples, rounded down,
    /// and the remainder gives the attacks on blocks as many equations without noise.
    ///
    /// # Errors
    /// The first number out of range.
    pub fn fits(&self) -> Result<(), Unfit> {
        if !(2..=LONGEST).contains(&self.n) {
            return Err(Unfit::Length);
        }
        if !(1..self.n).contains(&self.k) {
            return Err(Unfit::Secret);
        }
        if !(1..=self.n).contains(&self.t) {
            return Err(Unfit::Weight);
        }
        Ok(())
    }

    fn check(&self) {
        if let Err(unfit) = self.fits() {
            panic!("{unfit}");
        }
    }

    /// The instance as an attack on unstructured noise sees it.
    fn code(&self) -> Code {
        let Self { n, k, t, .. } = *self;
        let free = match (self.noise, self.field) {
            (NoiseShape::Regular, Field::F2 | Field::Z64Odd) => t,
            _ => 0,
        };
        Code { n: (n - free) as f64, k: k as f64 - free as f64, t: self.weight() as f64 }
    }

    /// The weight of the noise in the field in which the attack works.
    fn weight(&self) -> usize {
        let weight = match self.field {
            // Each value is even with chance one half, up to 2^-64.
            Field::Z64Uniform => (self.t / 2 + 1).min(self.t),
            _ => self.t,
        };
        if self.field.is_large() {
            weight
        } else {
            // The attacker may add one to every sample.
            weight.min(self.n - weight)
        }
    }

    /// The problem that domain reduction leaves.
    fn reduced(&self, regular: bool) -> Code {
        let code = Code { n: self.n as f64, k: self.k as f64, t: self.weight() as f64 };
        local::reduced(code, regular.then_some(self.t as f64))
    }

    fn blocks(&self) -> Blocks {
        let size = self.n / self.t;
        Blocks {
            size: size as f64,
            k: self.k as f64 - (self.n - size * self.t) as f64,
            t: self.t as f64,
        }
    }

    /// The cost of one attack; `None` if it does not apply to this kind of instance.
    fn cost(&self, attack: Attack) -> Option<f64> {
        // Uniform values modulo 2^64 leave about half of the blocks empty modulo 2; the attacks
        // treat the remainder as unstructured.
        let regular = self.noise == NoiseShape::Regular && self.field != Field::Z64Uniform;
        let large = self.field.is_large();
        let log2_order = self.field.log2_order();
        let binary_code = self.field == Field::Gf128Binary;
        let (code, blocks) = (self.code(), self.blocks());
        if code.k < 1.0 || code.t < 1.0 || (regular && (blocks.k < 1.0 || blocks.size < 2.0)) {
            // The parity equations of the blocks, or the samples that fill no block, give the
            // secret; or all are noisy.
            return matches!(attack, Attack::PooledGauss).then(|| 3.0 * (self.k as f64).log2());
        }
        let checks = if large { 0.0 } else { blocks.t };
        Some(match attack {
            Attack::PooledGauss => linear::pooled_gauss(code),
            Attack::Statistical if large => linear::statistical_large(code),
            Attack::Statistical => linear::statistical_binary(code),
            Attack::Statistical2 => linear::statistical_2(code, log2_order),
            Attack::SdIsd => stern::sd_isd(code, log2_order),
            Attack::Bjmm if !large => bjmm::bjmm(code),
            Attack::Permutation if regular => regular::permutation(blocks, checks),
            Attack::Enumeration if regular && !large => regular::enumeration(blocks),
            Attack::Representation if regular && !large => regular::representation(blocks),
            Attack::Algebraic if regular => algebraic::algebraic(blocks, large),
            Attack::Algebraic2 if regular => algebraic::algebraic_2(blocks, large),
            Attack::Hybrid if regular => hybrid::hybrid(blocks, large),
            Attack::Prange { pooled } if regular => prange::regular(blocks, checks, pooled),
            Attack::Prange { pooled } => prange::exact(code, pooled),
            Attack::InterleavedGauss if binary_code => interleaved::gauss(code),
            Attack::InterleavedIsd if binary_code => interleaved::isd(code),
            Attack::ProjectedIsd if binary_code => interleaved::projected(code),
            Attack::DoubleRlpn if !large => dual_attack::double_rlpn(code),
            Attack::DomainReduction if self.local => {
                local::domain_reduction(self.reduced(regular), log2_order)
            }
            Attack::DualWords if self.local => local::dual_words(self.reduced(regular), large),
            _ => return None,
        })
    }
}

/// The cost of every attack that applies to `instance`.
///
/// # Panics
/// If the instance does not [fit](Instance::fits).
pub fn estimate(instance: &Instance) -> Vec<Estimate> {
    instance.check();
    ATTACKS
        .iter()
        .filter_map(|&(name, attack)| {
            let bits = instance.cost(attack)?;
            Some(Estimate { attack: name, bits })
        })
        .collect()
}

/// The cheapest attack on `instance`.
///
/// # Panics
/// The panics of [`estimate`].
pub fn security_bits(instance: &Instance) -> Estimate {
    estimate(instance)
        .into_iter()
        .min_by(|a, b| a.bits.total_cmp(&b.bits))
        .expect("pooled Gauss applies to every instance")
}

/// The bits of each of `instances` with one code, independent secrets and independent noise, of
/// which each alone has `bits`: a hybrid argument loses `log2` of their number, for any ring and
/// noise, and attacks that work on the code first gain as much.
///
/// # Panics
/// If there are no instances.
#[must_use]
pub fn in_lockstep(bits: f64, instances: usize) -> f64 {
    assert!(instances > 0, "one instance at least");
    bits - (instances as f64).log2()
}

/// Whether every attack on `instance` costs at least `bits`; faster than [`security_bits`] where
/// one does not.
///
/// # Panics
/// The panics of [`estimate`].
pub fn resists(instance: &Instance, bits: f64) -> bool {
    instance.check();
    ATTACKS.iter().all(|&(_, attack)| instance.cost(attack).is_none_or(|cost| cost >= bits))
}
