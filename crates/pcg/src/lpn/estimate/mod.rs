//! How many bits of work the best known attack on an LPN instance needs.
//!
//! A set of LPN parameters is only as good as the attacks it was checked against, so this module
//! evaluates all of them, and the tests of the parameter sets call it. The attacks and their sources:
//!
//! | attack | noise | source |
//! |---|---|---|
//! | pooled Gauss, statistical decoding, the same 2.0, SD-ISD, BJMM | any | ePrint 2022/712 |
//! | regular permutation, enumeration, representation | regular | ePrint 2023/1568 |
//! | algebraic (AGB) | regular | ePrint 2023/176 |
//! | hybrid | regular | ePrint 2025/1284 |
//!
//! Over GF(2) each block of regular noise sums to one, which is a parity equation for nothing, so the
//! attacks on unstructured noise run on `(n - t, k - t, t)`.
//!
//! Limits. All formulas assume a *random* code; a local code must be sparse enough not to be worse.
//! They are the cost of the known attacks, in operations, without memory access costs; they are not a
//! proof. The refinement of the algebraic attack in ePrint 2025/1476 is not
//! evaluated.

mod algebraic;
mod arithmetic;
mod bjmm;
mod hybrid;
mod linear;
mod regular;
mod stern;
#[cfg(test)]
mod tables;

/// Where the noise lives, and how its non-zero values are drawn.
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
    /// GF(2^128), with noise values uniform and not zero.
    Gf128,
}

impl Field {
    /// `log2` of the order of the field that the attack works in.
    fn log2_order(self) -> f64 {
        match self {
            Self::F2 | Self::Z64Odd | Self::Z64Uniform => 1.0,
            Self::Fp61 => 61.0,
            Self::Gf128 => 128.0,
        }
    }

    fn is_large(self) -> bool {
        self.log2_order() > 1.0
    }
}

/// How the noisy positions are drawn.
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
}

/// What one attack costs.
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
    /// Length of the secret, less the samples that did not fill a block.
    k: f64,
    t: f64,
}

impl Blocks {
    fn n(&self) -> f64 {
        self.size * self.t
    }
}

/// Largest weight that [`smallest_weight`] tries.
const HEAVIEST: usize = 1 << 24;

/// The attacks, those that rule out most instances fastest first.
const ATTACKS: [(&str, Attack); 10] = [
    ("pooled Gauss", Attack::PooledGauss),
    ("statistical decoding", Attack::Statistical),
    ("statistical decoding 2.0", Attack::Statistical2),
    ("SD-ISD", Attack::SdIsd),
    ("regular permutation", Attack::Permutation),
    ("hybrid", Attack::Hybrid),
    ("algebraic", Attack::Algebraic),
    ("regular enumeration", Attack::Enumeration),
    ("BJMM", Attack::Bjmm),
    ("regular representation", Attack::Representation),
];

#[derive(Clone, Copy)]
enum Attack {
    PooledGauss,
    Statistical,
    Statistical2,
    SdIsd,
    Bjmm,
    Permutation,
    Enumeration,
    Representation,
    Algebraic,
    Hybrid,
}

impl Instance {
    fn check(&self) {
        assert!(
            self.k > 0 && self.k < self.n && self.t > 0 && self.t <= self.n,
            "an LPN instance needs 0 < k < n and 0 < t <= n"
        );
    }

    /// The instance as an attack on unstructured noise sees it.
    fn code(&self) -> Code {
        let Self { n, k, t, .. } = *self;
        let free = match (self.noise, self.field) {
            (NoiseShape::Regular, Field::F2 | Field::Z64Odd) => t,
            _ => 0,
        };
        Code {
            n: (n - free) as f64,
            k: k as f64 - free as f64,
            t: self.weight() as f64,
        }
    }

    /// The weight of the noise in the field that the attack works in.
    fn weight(&self) -> usize {
        match self.field {
            // Each value is even with chance one half, up to 2^-64.
            Field::Z64Uniform => (self.t / 2 + 1).min(self.t),
            _ => self.t,
        }
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
        // Uniform values modulo 2^64 leave about half of the blocks empty modulo 2, and what remains
        // is treated as unstructured.
        let regular = self.noise == NoiseShape::Regular && self.field != Field::Z64Uniform;
        let large = self.field.is_large();
        let log2_order = self.field.log2_order();
        let (code, blocks) = (self.code(), self.blocks());
        if code.k < 1.0 || (regular && (blocks.k < 1.0 || blocks.size < 2.0)) {
            // The parity equations of the blocks, or the samples that fill no block, give the secret.
            return matches!(attack, Attack::PooledGauss).then(|| 3.0 * (self.k as f64).log2());
        }
        Some(match attack {
            Attack::PooledGauss => linear::pooled_gauss(code),
            Attack::Statistical if large => linear::statistical_large(code),
            Attack::Statistical => linear::statistical_binary(code),
            Attack::Statistical2 => linear::statistical_2(code, log2_order),
            Attack::SdIsd => stern::sd_isd(code, log2_order),
            Attack::Bjmm if !large => bjmm::bjmm(code),
            Attack::Permutation if regular => {
                regular::permutation(blocks, if large { 0.0 } else { blocks.t })
            }
            Attack::Enumeration if regular && !large => regular::enumeration(blocks),
            Attack::Representation if regular && !large => regular::representation(blocks),
            Attack::Algebraic if regular => algebraic::algebraic(blocks, large),
            Attack::Hybrid if regular => hybrid::hybrid(blocks, large),
            _ => return None,
        })
    }
}

/// The cost of every attack that applies to `instance`.
///
/// # Panics
/// If the instance is none: `0 < k < n` and `0 < t <= n` must hold.
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
/// As [`estimate`].
pub fn security_bits(instance: &Instance) -> Estimate {
    estimate(instance)
        .into_iter()
        .min_by(|a, b| a.bits.total_cmp(&b.bits))
        .expect("pooled Gauss applies to every instance")
}

/// Whether every attack on `instance` costs at least `bits`; faster than [`security_bits`] where
/// one does not.
///
/// # Panics
/// As [`estimate`].
pub fn resists(instance: &Instance, bits: f64) -> bool {
    instance.check();
    ATTACKS
        .iter()
        .all(|&(_, attack)| instance.cost(attack).is_none_or(|cost| cost >= bits))
}

/// A small weight `t` at which `n_of_t(t)` samples of a secret of `k` symbols resist all attacks for
/// `bits` bits.
///
/// Security is *not* monotone in `t`: smaller blocks help the attacks on regular noise, and with
/// blocks of a fixed size more noise also means more samples. The search finds the first weight on a
/// grid of ratio 1.03 that resists, and bisects between it and the grid point before. Nothing is
/// said about larger weights. `None` if no weight up to 2^24, and no more than `n - k`, resists.
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
        let instance = Instance {
            n,
            k,
            t,
            field,
            noise,
        };
        n > k && t <= n - k && resists(&instance, bits)
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

    const CUCKOO: Instance = Instance {
        n: 1 << 14,
        k: 3482,
        t: 192,
        field: Field::F2,
        noise: NoiseShape::Exact,
    };

    #[test]
    fn the_binding_attack_is_the_least_of_all() {
        let all = estimate(&CUCKOO);
        let least = security_bits(&CUCKOO);
        assert!(all.iter().all(|other| other.bits >= least.bits));
        assert!(all.contains(&least));
        assert_eq!(least.attack, "BJMM");
    }

    #[test]
    fn only_regular_noise_meets_the_attacks_on_blocks() {
        let named = |noise, field| {
            let instance = Instance {
                noise,
                field,
                ..CUCKOO
            };
            estimate(&instance).len()
        };
        assert_eq!(named(NoiseShape::Exact, Field::F2), 5);
        assert_eq!(named(NoiseShape::Regular, Field::F2), 10);
        assert_eq!(named(NoiseShape::Exact, Field::Fp61), 4);
        assert_eq!(named(NoiseShape::Regular, Field::Gf128), 7);
    }

    #[test]
    fn odd_noise_modulo_two_to_the_64_is_noise_over_gf_2() {
        for noise in [NoiseShape::Exact, NoiseShape::Regular] {
            let binary = Instance { noise, ..CUCKOO };
            let odd = Instance {
                field: Field::Z64Odd,
                ..binary
            };
            assert_eq!(security_bits(&binary), security_bits(&odd));
        }
    }

    #[test]
    fn uniform_noise_modulo_two_to_the_64_loses_half_its_weight() {
        let uniform = Instance {
            field: Field::Z64Uniform,
            ..CUCKOO
        };
        let light = Instance { t: 97, ..CUCKOO };
        assert_eq!(security_bits(&uniform), security_bits(&light));
    }

    #[test]
    fn resisting_agrees_with_the_least_cost() {
        for noise in [NoiseShape::Exact, NoiseShape::Regular] {
            for field in [Field::F2, Field::Fp61, Field::Gf128, Field::Z64Uniform] {
                let instance = Instance {
                    noise,
                    field,
                    ..CUCKOO
                };
                let bits = security_bits(&instance).bits;
                assert!(resists(&instance, bits));
                assert!(!resists(&instance, bits + 0.01));
            }
        }
    }

    #[test]
    fn the_smallest_weight_holds_and_one_less_does_not() {
        for (k, noise) in [(4096, NoiseShape::Exact), (5120, NoiseShape::Regular)] {
            let n = 1 << 14;
            let t = smallest_weight(|_| n, k, Field::F2, noise, 128.0).expect("there is one");
            let at = |t| Instance {
                n,
                k,
                t,
                noise,
                ..CUCKOO
            };
            assert!(resists(&at(t), 128.0));
            assert!(!resists(&at(t - 1), 128.0));
        }
        // A secret of 64 bits can be guessed.
        let field = Field::F2;
        let none = smallest_weight(|_| 4096, 64, field, NoiseShape::Regular, 128.0);
        assert_eq!(none, None);
    }

    #[test]
    fn blocks_that_give_the_secret_away_cost_only_linear_algebra() {
        // 64 parity equations for a secret of 60 bits.
        let instance = Instance {
            n: 1024,
            k: 60,
            t: 64,
            field: Field::F2,
            noise: NoiseShape::Regular,
        };
        assert!(security_bits(&instance).bits < 20.0);
    }

    #[test]
    fn small_and_odd_instances_have_a_cost() {
        for (n, k, t) in [
            (2, 1, 1),
            (3, 1, 2),
            (17, 5, 3),
            (127, 31, 61),
            (128, 127, 128),
        ] {
            for field in [
                Field::F2,
                Field::Fp61,
                Field::Gf128,
                Field::Z64Odd,
                Field::Z64Uniform,
            ] {
                for noise in [NoiseShape::Exact, NoiseShape::Regular] {
                    let instance = Instance {
                        n,
                        k,
                        t,
                        field,
                        noise,
                    };
                    let estimate = security_bits(&instance);
                    assert!(!estimate.bits.is_nan(), "{instance:?}: {estimate:?}");
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "0 < k < n")]
    fn a_secret_as_long_as_the_samples_is_refused() {
        let _ = estimate(&Instance {
            k: 1 << 14,
            ..CUCKOO
        });
    }
}
