//! The parameter sets: dated data. Each set states its estimated security in every ring in which it
//! may be used. A test recomputes these bits, and fails when one is off by more than its rounding
//! or below the claim of the set.
//!
//! The sets of the papers serve reproduction, under names that say so; the others claim 128 bits
//! and hold 129.0 or more against the cheapest of all evaluated attacks, heuristics included.
//!
//! The sets with uniform noise are made for cuckoo hashing whose bins become complete binary trees:
//! `n` samples, each in three of [`bins_for`](volery_primitives::cuckoo::bins_for)`(t, 40)` bins,
//! fill a bin to a mean `mu`, and `mu + 4 sqrt(mu) <= 2^h - 1`, so that hardly any tree needs more
//! than `h` levels and each has a spare leaf. At 129 bits `mu` hardly depends on `n`: it is about
//! `k/47` in the smallest set and `k/53` in the others. The choice of `k` therefore fills the
//! trees; a power of two would leave those of the large sets 60 to 70 % full.

use crate::{
    Noise,
    estimate::{Field, Instance, NoiseShape, in_lockstep},
};

/// The estimated security of a set in one kind of ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Cost of the cheapest attack in bits, to a tenth.
    pub bits: f64,
    /// The cheapest attack of [`crate::estimate`].
    pub attack: &'static str,
}

/// One LPN instance: `n` samples of a secret of length `k` with `t` noise values.
#[derive(Clone, Debug, PartialEq)]
pub struct LpnSet {
    /// The name in reports and handshakes.
    pub name: &'static str,
    /// Samples `n`: the length of one round's output. With regular noise a multiple of `t`.
    pub n: usize,
    /// The dimension `k`: the base correlations that a round consumes for the secret.
    pub k: usize,
    /// The noise weight `t`.
    pub t: usize,
    /// The distribution of the noise positions.
    pub noise: Noise,
    /// The rings in which the set may be used; noise over `z64` is odd.
    pub fields: &'static [Field],
    /// Over GF(2); odd noise over `z64` reduces to this case.
    binary: Level,
    /// Over a large field; the cheapest attack costs the same for all of them.
    large: Option<Level>,
    /// Over GF(2^128), if the entries of the code were zeros and ones.
    binary_code: Option<Level>,
    /// The bits that the set holds against all attacks of [`crate::estimate`], in each of its
    /// rings. For a set of a paper this may be less than the paper claims.
    pub claim: u32,
    /// Whether the set is from a paper: for reproduction, chosen only on request.
    pub paper: bool,
    /// The source of the numbers.
    pub source: &'static str,
    /// The date of the last review.
    pub date: &'static str,
}

impl LpnSet {
    /// Points of one block, regular noise.
    #[must_use]
    pub fn block(&self) -> usize {
        self.n / self.t
    }

    /// Whether the set may be used over `field`. Over an open one of 31 bits or more a set of ours
    /// holds as over `fp61`: the cheapest attack does not depend on the order.
    #[must_use]
    pub fn holds_over(&self, field: Field) -> bool {
        match field {
            Field::Open(open) => {
                open.noise_bits >= 31 && !self.paper && self.fields.contains(&Field::Fp61)
            }
            named => self.fields.contains(&named),
        }
    }

    /// The bits that the set holds over `field`, and the cheapest attack; `None` where the set may
    /// not be used.
    #[must_use]
    pub fn level(&self, field: Field) -> Option<Level> {
        let level = match field {
            Field::F2 | Field::Z64Odd => Some(self.binary),
            Field::Fp61 | Field::Gf128 | Field::Open(_) => self.large,
            Field::Z64Uniform | Field::Gf128Binary => None,
        };
        level.filter(|_| self.holds_over(field))
    }

    /// The bits over GF(2^128) if the entries of the code were zeros and ones, as they are in the
    /// other rings; `None` where the set may not be used.
    #[must_use]
    pub fn with_binary_code(&self) -> Option<Level> {
        self.binary_code.filter(|_| self.holds_over(Field::Gf128))
    }

    /// The most instances of the set that may share a code over `field`: 1, 2 or 4, with regular
    /// noise, such that each [holds](crate::estimate::in_lockstep) 129.0 bits. Their table has at
    /// most 2^20 entries: no processor gains by so many, cards do.
    #[must_use]
    pub fn most_instances(&self, field: Field) -> usize {
        let regular = self.noise == Noise::Regular && !self.paper;
        let bits = self.level(field).filter(|_| regular).map_or(0.0, |level| level.bits);
        let may = |b: &usize| in_lockstep(bits, *b) >= 129.0 && b * self.k <= 1 << 20;
        [4, 2].into_iter().find(may).unwrap_or(1)
    }

    /// The least of its security levels.
    #[must_use]
    pub fn weakest(&self) -> Level {
        match self.large {
            Some(large) if large.bits < self.binary.bits => large,
            _ => self.binary,
        }
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
            local: true,
        }
    }
}

/// All rings; `z64` with odd noise.
const ALL: &[Field] = &[Field::F2, Field::Fp61, Field::Z64Odd, Field::Gf128];

/// Correlated OT only.
const F2: &[Field] = &[Field::F2];

const SEARCH: &str = "searched with lpn::estimate: every attack costs 2^129 or more in each ring";
const SEARCH_F2: &str = "searched with lpn::estimate: every attack costs 2^129 or more over F2";
const VOLE: &str = "Distributed Vector-OLE (CCS 2019), Table 1; claims 80 bits";
const FERRET: &str = "Ferret (CCS 2020), Table 2; claims 128 bits";

const fn domain(bits: f64) -> Level {
    let attack = "domain reduction";
    Level { bits, attack }
}

const fn words(bits: f64) -> Level {
    let attack = "low-weight dual words";
    Level { bits, attack }
}

const fn linear(bits: f64) -> Level {
    let attack = "interleaved Gauss";
    Level { bits, attack }
}

const fn isd(bits: f64) -> Level {
    let attack = "interleaved ISD";
    Level { bits, attack }
}

/// The whole bits of a level, which is rounded to a tenth.
const fn whole(level: Level) -> u32 {
    (level.bits - 0.05) as u32
}

/// A set for every ring: `n`, `k`, `t`, and its levels over GF(2), over a large field, and over
/// GF(2^128) with a binary code.
const fn set(
    name: &'static str,
    noise: Noise,
    [n, k, t]: [usize; 3],
    [binary, large, binary_code]: [Level; 3],
) -> LpnSet {
    LpnSet {
        name,
        n,
        k,
        t,
        noise,
        fields: ALL,
        binary,
        large: Some(large),
        binary_code: Some(binary_code),
        claim: 128,
        paper: false,
        source: SEARCH,
        date: "2026-11-27",
    }
}

/// A set for correlated OT alone.
const fn set_over_f2(name: &'static str, noise: Noise, sizes: [usize; 3], binary: Level) -> LpnSet {
    LpnSet {
        fields: F2,
        large: None,
        binary_code: None,
        source: SEARCH_F2,
        ..set(name, noise, sizes, [binary; 3])
    }
}

const fn paper80(name: &'static str, log_n: u32, k: usize, t: usize, levels: [Level; 3]) -> LpnSet {
    LpnSet {
        claim: whole(levels[0]),
        paper: true,
        source: VOLE,
        date: "2019-11-11",
        ..set(name, Noise::Uniform, [1 << log_n, k, t], levels)
    }
}

/// A set of Ferret's Table 2. For the first the table has `n = 609,728`, which is not `t * 2^9`;
/// section 7 of its text has this `n`, which is, and which holds fewer bits.
const fn ferret(name: &'static str, noise: Noise, sizes: [usize; 3], binary: Level) -> LpnSet {
    LpnSet {
        claim: whole(binary),
        paper: true,
        source: FERRET,
        date: "2020-11-09",
        ..set_over_f2(name, noise, sizes, binary)
    }
}

const REGULAR: Noise = Noise::Regular;
const UNIFORM: Noise = Noise::Uniform;

#[rustfmt::skip]
static SETS: [LpnSet; 23] = [
    set("r14", REGULAR, [18_688, 3_840, 584], [domain(129.3), domain(147.1), linear(33.3)]),
    set("r17", REGULAR, [102_400, 8_448, 1_600], [domain(129.7), domain(141.2), isd(36.5)]),
    set("b10", REGULAR, [753_664, 1 << 16, 1_472], [domain(140.3), domain(146.4), linear(44.8)]),
    set("b11", REGULAR, [2_310_144, 1 << 17, 2_256], [domain(137.1), domain(142.2), linear(47.6)]),
    set("b12", REGULAR, [5_996_544, 1 << 18, 2_928], [domain(136.9), domain(141.2), linear(50.4)]),
    set_over_f2("b13", REGULAR, [15_106_048, 1 << 19, 3_688], domain(137.4)),
    set("u14", UNIFORM, [14_400, 4_192, 346], [domain(129.1), domain(145.1), linear(33.7)]),
    set("u16", UNIFORM, [33_600, 4_584, 887], [domain(129.1), domain(144.4), linear(34.1)]),
    set("u17", UNIFORM, [134_000, 10_624, 1_584], [domain(129.2), domain(139.5), linear(37.5)]),
    set("u20", UNIFORM, [1_048_576, 48_256, 2_721], [domain(129.0), domain(135.5), linear(43.6)]),
    set("u21", UNIFORM, [2_396_160, 98_112, 2_994], [domain(129.1), domain(134.5), linear(46.4)]),
    set("u22", UNIFORM, [6_225_920, 200_832, 3_785], [domain(129.0), domain(133.6), linear(49.3)]),
    set("u24", UNIFORM, [15_564_800, 405_696, 4_640], [domain(129.0), domain(132.8), linear(52.2)]),
    ferret("ferret-reg-setup", REGULAR, [649_728, 36_288, 1_269], domain(85.1)),
    ferret("ferret-reg", REGULAR, [10_805_248, 589_760, 1_319], domain(100.3)),
    ferret("ferret-uni-setup", UNIFORM, [616_092, 37_248, 1_254], domain(92.2)),
    ferret("ferret-uni", UNIFORM, [10_616_092, 588_160, 1_324], domain(103.7)),
    paper80("paper80-14", 14, 3_482, 192, [domain(60.8), domain(70.0), linear(32.9)]),
    paper80("paper80-16", 16, 7_391, 382, [domain(62.2), domain(69.4), linear(36.0)]),
    paper80("paper80-18", 18, 15_336, 741, [domain(62.2), domain(68.2), linear(38.9)]),
    paper80("paper80-20", 20, 32_771, 1_422, [domain(63.6), domain(68.7), linear(42.0)]),
    paper80("paper80-22", 22, 67_440, 2_735, [words(62.0), domain(68.3), linear(44.9)]),
    paper80("paper80-24", 24, 139_959, 5_205, [words(56.1), domain(68.3), linear(47.9)]),
];

/// All sets: our own, then those of each paper; within these, by noise and from the smallest to the
/// largest.
#[must_use]
pub fn sets() -> &'static [LpnSet] {
    &SETS
}

/// The set with this name.
#[must_use]
pub fn set_named(name: &str) -> Option<&'static LpnSet> {
    SETS.iter().find(|set| set.name == name)
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::estimate::{OpenField, estimate, security_bits};

    fn own() -> impl Iterator<Item = &'static LpnSet> {
        sets().iter().filter(|set| !set.paper)
    }

    fn open(noise_bits: u32) -> Field {
        let bits = 4 * noise_bits;
        Field::Open(OpenField { name: "open", noise_bits, bits, bytes: [4, 16], degree: 4 })
    }

    #[test]
    fn every_set_holds_what_it_claims() {
        for set in sets() {
            let open = [31, 64, 256].map(open).into_iter().filter(|field| set.holds_over(*field));
            for field in set.fields.iter().copied().chain(open) {
                let least = security_bits(&set.instance(field));
                let (name, bits, attack) = (set.name, least.bits, least.attack);
                assert!(
                    bits >= f64::from(set.claim),
                    "{name} over {field}: {bits:.1} bits by {attack}"
                );
                let stated = set.level(field).expect("a level for each ring");
                assert!(
                    (stated.bits - bits).abs() <= 0.05 && stated.attack == attack,
                    "{name} over {field}: {bits:.2} by {attack}, stated {stated:?}"
                );
            }
        }
    }

    #[test]
    fn a_level_for_each_ring_of_a_set_and_no_other() {
        for set in sets() {
            assert_eq!(set.claim, 128.min(whole(set.weakest())), "{}", set.name);
            let mut least = f64::INFINITY;
            for field in Field::ALL {
                let level = set.level(field);
                assert_eq!(level.is_some(), set.holds_over(field), "{}", set.name);
                least = least.min(level.map_or(f64::INFINITY, |level| level.bits));
            }
            assert_eq!(set.weakest().bits, least, "{}", set.name);
        }
        assert!(set_named("b12").is_some_and(|set| set.holds_over(open(31))));
        for (name, bits) in [("b12", 30), ("b13", 31), ("paper80-22", 31)] {
            assert!(!set_named(name).is_some_and(|set| set.holds_over(open(bits))), "{name}");
        }
        let level = set_named("b12").and_then(|set| set.level(Field::Fp61));
        let expected = Level { bits: 141.2, attack: "domain reduction" };
        assert_eq!(level, Some(expected));
    }

    /// A margin over the claim, against every evaluated attack.
    #[test]
    fn every_default_set_holds_129_bits() {
        for set in own() {
            assert_eq!(set.claim, 128);
            for field in set.fields {
                let least = security_bits(&set.instance(*field));
                assert!(least.bits >= 129.0, "{} over {field}: {least:?}", set.name);
                let together = in_lockstep(least.bits, set.most_instances(*field));
                assert!(together >= 129.0, "{} over {field}: {together}", set.name);
            }
        }
    }

    /// The large sets hold more than they need, so that lockstep takes no more trees.
    #[test]
    fn instances_that_may_share_a_code() {
        let most = [("r14", 1, 4), ("r17", 1, 4), ("b10", 4, 4), ("b11", 4, 4), ("b12", 4, 4)];
        assert_eq!(set_named("b13").map(|set| set.most_instances(Field::F2)), Some(2));
        for (name, binary, large) in most.into_iter().chain([("u22", 1, 1)]) {
            let set = set_named(name).expect("all of these are names of sets");
            let fields = [Field::F2, Field::Z64Odd, Field::Fp61, Field::Gf128];
            let most = fields.map(|field| set.most_instances(field));
            assert_eq!(most, [binary, binary, large, large], "{name}");
        }
    }

    #[test]
    fn our_own_sets_serve_all_rings() {
        for noise in [Noise::Regular, Noise::Uniform] {
            for field in ALL {
                let mut usable = own().filter(|set| set.noise == noise && set.holds_over(*field));
                assert!(usable.any(|set| set.n > 5_900_000), "{noise} {field:?}");
            }
        }
    }

    /// On a random code three of Ferret's four sets hold the 128 bits that the paper claims. The
    /// code of the paper has ten entries in a column, and on that none is shown to.
    #[test]
    fn ferret_in_todays_attacks() {
        for (name, bits, attack) in [
            ("ferret-reg-setup", 122.1, "hybrid"),
            ("ferret-reg", 148.7, "double RLPN"),
            ("ferret-uni-setup", 139.9, "double RLPN"),
            ("ferret-uni", 150.9, "double RLPN"),
        ] {
            let set = set_named(name).expect("all of these are names of sets");
            assert!(set.paper && set.weakest().bits < 104.0);
            let random = Instance { local: false, ..set.instance(Field::F2) };
            let least = security_bits(&random);
            assert!((least.bits - bits).abs() < 0.1, "{name}: {least:?}");
            assert_eq!(least.attack, attack, "{name}");
        }
    }

    /// The reason for the odd noise of `z64`: arbitrary values would cost a set about half of its
    /// weight.
    #[test]
    fn even_noise_would_not_hold() {
        for set in sets().iter().filter(|set| set.holds_over(Field::Z64Odd)) {
            assert!(!set.holds_over(Field::Z64Uniform));
            let least = security_bits(&set.instance(Field::Z64Uniform));
            assert!(least.bits < f64::from(set.claim), "{}: {:.1} bits", set.name, least.bits);
        }
    }

    /// The reason for code entries from all of gf128: with zeros and ones, all coordinates of the
    /// noise values would sit in the same places, and linear algebra would find a map under which
    /// all of them vanish.
    #[test]
    fn a_binary_code_would_not_hold_over_gf128() {
        for set in sets().iter().filter(|set| set.holds_over(Field::Gf128)) {
            assert!(!set.holds_over(Field::Gf128Binary));
            let least = security_bits(&set.instance(Field::Gf128Binary));
            let (name, stated) = (set.name, set.with_binary_code().expect("a level"));
            assert!(least.bits < f64::from(set.claim) && least.bits < 60.0, "{name}: {least:?}");
            assert!(
                (stated.bits - least.bits).abs() <= 0.05 && stated.attack == least.attack,
                "{name}: {least:?}, stated {stated:?}"
            );
            // One map alone takes half of the weight.
            let all = estimate(&set.instance(Field::Gf128Binary));
            let bits = |name| {
                let found = all.iter().find(|found| found.attack == name);
                found.expect("an attack of that name").bits
            };
            let (projected, plain) = (bits("projected ISD"), bits("Reduce and Prange"));
            assert!(projected < plain - 20.0, "{name}: {all:?}");
        }
    }

    #[test]
    fn sets_are_well_formed() {
        for set in sets() {
            assert_eq!(set_named(set.name), Some(set));
            assert!(set.k + set.t < set.n);
            assert!(!set.fields.is_empty());
            if set.noise == Noise::Regular {
                assert_eq!(set.block() * set.t, set.n);
                assert!(set.block().is_power_of_two());
            }
        }
        for pair in sets()
            .windows(2)
            .filter(|pair| pair[0].paper == pair[1].paper && pair[0].noise == pair[1].noise)
            .filter(|pair| pair[0].source == pair[1].source || !pair[0].paper)
        {
            assert!(pair[0].n < pair[1].n, "sorted by size");
        }
        assert_eq!(set_named("b1"), None);
    }
}
