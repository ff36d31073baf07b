//! The kernels that this processor can run.
//!
//! A level is a set of facts about a processor. The table has the kernels of each module.
//!
//! | module | `portable` | `aes-ni` | `vaes` | `avx512` | `avx512-vaes` | `neon` | `wasm-simd128` |
//! |---|---|---|---|---|---|---|---|
//! | [`aes`](crate::aes), [`fold`](crate::fold) | crate `aes` | AES-NI | VAES, 256 bits | `aes-ni` | VAES, 512 bits | AES | bit-sliced |
//! | [`clmul`](crate::clmul) | shifts | PCLMULQDQ | VPCLMULQDQ, 256 bits | `aes-ni` | VPCLMULQDQ, 512 bits | PMULL | none |
//! | [`keyed`](crate::keyed) | a lane | AVX2 | AVX2 | AVX-512 | AVX-512 | NEON | none |
//! | [`band`](crate::band) | words | AVX2 | AVX2 | AVX2 | GFNI, 512 bits | NEON | none |
//! | [`transpose`](crate::transpose) | words | AVX2 | AVX2 | AVX2 | GFNI and VBMI | NEON | none |
//! | [`gather`](crate::gather), indices | words | AVX2 | AVX2 | AVX-512 | AVX-512 | NEON | none |
//! | [`gather`](crate::gather), sums | entries | AVX2 | AVX2 | AVX-512 | AVX-512 | none | none |
//! | [`sum`](crate::BlockSum) | words | SSE2 | SSE2 | SSE2 | SSE2 | NEON | none |
//! | [`mersenne`](crate::mersenne), sums | words | AVX2 | AVX2 | AVX-512 | AVX-512 | words (1) | none |
//! | [`mersenne`](crate::mersenne), products | words | none | none | none | IFMA | words (2) | none |
//! | [`bits`](crate::bits) | words | AVX2 | AVX2 | AVX2 | AVX2 | NEON | none |
//! | [`ristretto`](crate::ristretto), [`curve25519`](crate::curve25519) | a point | AVX2, four | AVX2, four | AVX2, four | IFMA, eight | none (3) | none |
//!
//! Where there is none, the kernel is the portable one.
//!
//! 1. The compiler makes the instructions of NEON from the portable loops, two words in each.
//! 2. NEON multiplies no words of 64 bits. The portable loop has the two instructions of aarch64
//!    for the halves of a product, and two additions.
//! 3. A gap. A multiplication in the field has 50 products of words in the portable form; NEON has
//!    100 for two elements, but adds as it multiplies. Which one is faster depends on the
//!    processor.
//!
//! `neon-sha3` is `neon`, where sums of products in `clmul` add three vectors in one instruction,
//! `eor3`. The sums of `gather` do not: their loop waits for reads of memory. Encryptions and
//! hashes do not either: of the 25 instructions for a block `eor3` would save one.
//!
//! A processor with AVX-512 and only some of VAES with VPCLMULQDQ, IFMA, and GFNI with VBMI gets
//! the kernels of `avx512-vaes` for those that it has. `avx512-no-vaes`, `avx512-no-ifma` and
//! `avx512-no-vbmi` are the levels that lack one of the three.

use std::ffi::OsStr;
use std::fmt;
use std::sync::OnceLock;

/// A set of kernels.
///
/// [`Cpu::detect`] gives the best one. The functions that take a level are for tests, which run
/// every level of [`Cpu::available`] against the portable one, and for callers that detect it once
/// for many calls. They panic if the processor cannot run the kernels of the level.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cpu(u8);

const AES: u8 = 1;
const WIDE_AES: u8 = 2;
const WIDE: u8 = 4;
const MULTIPLY: u8 = 8;
const BYTES: u8 = 16;
const ARM: u8 = 32;
const WASM: u8 = 64;
const SUMS_OF_THREE: u8 = 128;

/// The environment variable that names a level for [`Cpu::detect`].
pub const VARIABLE: &str = "VOLERY_CPU";

impl Cpu {
    /// Plain Rust; AES from the `aes` crate, which uses ARM's or x86's AES instructions where it
    /// finds them and bit-slicing elsewhere.
    pub const PORTABLE: Self = Self(0);
    /// x86-64 with AES-NI, PCLMULQDQ and AVX2.
    pub const AES_NI: Self = Self(AES);
    /// [`Cpu::AES_NI`] with VAES and VPCLMULQDQ, on 256 bits.
    pub const VAES: Self = Self(AES | WIDE_AES);
    /// [`Cpu::AES_NI`] with AVX-512 (F, BW, DQ and VL).
    pub const AVX512: Self = Self(AES | WIDE);
    /// [`Cpu::AVX512`] with [`Cpu::VAES`], [`Cpu::IFMA`] and [`Cpu::VBMI`].
    pub const AVX512_VAES: Self = Self(AES | WIDE_AES | WIDE | MULTIPLY | BYTES);
    /// [`Cpu::AVX512_VAES`] without IFMA.
    pub const NO_IFMA: Self = Self(AES | WIDE_AES | WIDE | BYTES);
    /// [`Cpu::AVX512_VAES`] without VBMI or without GFNI.
    pub const NO_VBMI: Self = Self(AES | WIDE_AES | WIDE | MULTIPLY);
    /// [`Cpu::AVX512_VAES`] without VAES or without VPCLMULQDQ.
    pub const NO_VAES: Self = Self(AES | WIDE | MULTIPLY | BYTES);
    /// [`Cpu::AVX512`] with [`Cpu::VAES`], which then work on 512 bits: no level by name.
    pub const WIDE_VAES: Self = Self(AES | WIDE_AES | WIDE);
    /// [`Cpu::AVX512`] with IFMA: no level by name.
    pub const IFMA: Self = Self(AES | WIDE | MULTIPLY);
    /// [`Cpu::AVX512`] with VBMI and GFNI: no level by name.
    pub const VBMI: Self = Self(AES | WIDE | BYTES);

    /// aarch64 with NEON, AES and PMULL: all but the smallest processors of ARMv8.
    pub const NEON: Self = Self(ARM);
    /// [`Cpu::NEON`] with the instructions for SHA-3, of which `eor3` adds three vectors.
    pub const NEON_SHA3: Self = Self(ARM | SUMS_OF_THREE);

    /// WebAssembly with SIMD128: a module that is compiled with it runs nowhere else.
    pub const WASM_SIMD128: Self = Self(WASM);

    /// The level that the kernels on vectors of two blocks need.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const PAIRS: Self = Self::VAES;
    #[cfg(target_arch = "aarch64")]
    pub(crate) const PAIRS: Self = Self::NEON;

    /// The level that the kernels on single blocks need.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const NATIVE: Self = Self::AES_NI;
    #[cfg(target_arch = "aarch64")]
    pub(crate) const NATIVE: Self = Self::NEON;

    /// The levels with names, worst first.
    const NAMED: [(Self, &'static str); 11] = [
        (Self::PORTABLE, "portable"),
        (Self::AES_NI, "aes-ni"),
        (Self::VAES, "vaes"),
        (Self::AVX512, "avx512"),
        (Self::NO_VAES, "avx512-no-vaes"),
        (Self::NO_IFMA, "avx512-no-ifma"),
        (Self::NO_VBMI, "avx512-no-vbmi"),
        (Self::AVX512_VAES, "avx512-vaes"),
        (Self::NEON, "neon"),
        (Self::NEON_SHA3, "neon-sha3"),
        (Self::WASM_SIMD128, "wasm-simd128"),
    ];

    /// The level that [`VARIABLE`] names, or the best one of this processor; found on the first
    /// call and remembered.
    ///
    /// Under Miri it is [`Cpu::PORTABLE`].
    ///
    /// # Panics
    /// If the variable does not name a level of this processor: [`Cpu::check`] says so before.
    #[inline]
    pub fn detect() -> Self {
        static CHOSEN: OnceLock<Cpu> = OnceLock::new();
        *CHOSEN.get_or_init(|| Self::chosen().unwrap_or_else(|error| panic!("{error}")))
    }

    /// Checks [`VARIABLE`].
    ///
    /// # Errors
    /// If it is set and does not name a level of this processor.
    pub fn check() -> Result<(), UnknownLevel> {
        Self::chosen().map(drop)
    }

    fn chosen() -> Result<Self, UnknownLevel> {
        Self::by_name(std::env::var_os(VARIABLE).as_deref())
    }

    /// The level of this name, or the best one without a name. An empty name is none.
    fn by_name(name: Option<&OsStr>) -> Result<Self, UnknownLevel> {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Ok(Self::best());
        };
        let levels = Self::available();
        let found = levels.iter().find(|level| *level.name() == *name);
        found.copied().ok_or(UnknownLevel(levels))
    }

    /// The best level of this processor.
    fn best() -> Self {
        static BEST: OnceLock<Cpu> = OnceLock::new();
        *BEST.get_or_init(best)
    }

    /// Every level of this processor by name, worst first, and the best one. The first is always
    /// [`Cpu::PORTABLE`].
    pub fn available() -> Vec<Self> {
        let best = Self::best();
        let named = Self::NAMED.iter().map(|(level, _)| *level);
        let mut levels: Vec<_> = named.filter(|level| best.has(*level)).collect();
        if !levels.contains(&best) {
            levels.push(best);
        }
        levels
    }

    /// Whether this processor can run this level.
    #[inline]
    #[must_use]
    pub fn is_available(self) -> bool {
        Self::best().has(self)
    }

    /// Whether this level includes the other.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// A short name for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = Self::NAMED.iter().find(|(level, _)| *level == self);
        named.map_or("avx512-other", |(_, name)| name)
    }

    /// Panics if the processor lacks the kernels: running them would be undefined behaviour.
    #[inline]
    pub(crate) fn assert_available(self) {
        assert!(self.is_available(), "this processor cannot run the kernels of level {self}");
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// [`VARIABLE`] does not name a level of this processor: these are the levels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownLevel(pub Vec<Cpu>);

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VARIABLE}: this processor has the levels ")?;
        for (i, level) in self.0.iter().enumerate() {
            write!(f, "{}{level}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownLevel {}

/// The level of an x86-64 that has these instruction sets.
#[cfg(any(test, all(target_arch = "x86_64", not(miri))))]
fn of_x86_64(has: impl Fn(&str) -> bool) -> Cpu {
    let all = |sets: &[&str]| sets.iter().all(|set| has(set));
    if !all(&["aes", "pclmulqdq", "avx2"]) {
        return Cpu::PORTABLE;
    }
    let wide = all(&["avx512f", "avx512bw", "avx512dq", "avx512vl"]);
    let facts = [
        (true, AES),
        (all(&["vaes", "vpclmulqdq"]), WIDE_AES),
        (wide, WIDE),
        (wide && has("avx512ifma"), MULTIPLY),
        (wide && all(&["avx512vbmi", "gfni"]), BYTES),
    ];
    let facts = facts.iter().filter(|(there, _)| *there);
    Cpu(facts.fold(0, |all, (_, fact)| all | fact))
}

/// The level of an aarch64 that has these instruction sets.
#[cfg(any(test, all(target_arch = "aarch64", not(miri))))]
fn of_aarch64(has: impl Fn(&str) -> bool) -> Cpu {
    match (has("aes") && has("pmull"), has("sha3")) {
        (false, _) => Cpu::PORTABLE,
        (true, false) => Cpu::NEON,
        (true, true) => Cpu::NEON_SHA3,
    }
}

/// A function that tells whether this processor has one of the instruction sets that are listed.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
macro_rules! detection {
    ($detected:ident: $($set:tt),*) => {
        |set: &str| match set {
            $($set => std::arch::$detected!($set),)*
            _ => unreachable!("{set} is not listed"),
        }
    };
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn best() -> Cpu {
    of_x86_64(detection!(
        is_x86_feature_detected: "aes", "pclmulqdq", "avx2", "vaes", "vpclmulqdq", "avx512f",
        "avx512bw", "avx512dq", "avx512vl", "avx512ifma", "avx512vbmi", "gfni"
    ))
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
fn best() -> Cpu {
    of_aarch64(detection!(is_aarch64_feature_detected: "aes", "pmull", "sha3"))
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
fn best() -> Cpu {
    Cpu::WASM_SIMD128
}

#[cfg(any(
    miri,
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        all(target_arch = "wasm32", target_feature = "simd128")
    ))
))]
fn best() -> Cpu {
    Cpu::PORTABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_within_the_best() {
        let levels = Cpu::available();
        assert_eq!(levels.first(), Some(&Cpu::PORTABLE));
        assert!(levels.contains(&Cpu::best()));
        assert!(levels.iter().all(|level| level.is_available()));
        let unknown = UnknownLevel(vec![Cpu::PORTABLE, Cpu::AES_NI]).to_string();
        assert_eq!(unknown, "VOLERY_CPU: this processor has the levels portable, aes-ni");
    }

    #[test]
    fn an_empty_name_is_none() {
        assert_eq!(Cpu::by_name(None), Ok(Cpu::best()));
        assert_eq!(Cpu::by_name(Some(OsStr::new(""))), Ok(Cpu::best()));
        let portable = Cpu::by_name(Some(OsStr::new("portable")));
        assert_eq!(portable, Ok(Cpu::PORTABLE));
        for unknown in [" ", "Portable", "none", "avx512-other"] {
            let levels = Cpu::available();
            let result = Cpu::by_name(Some(OsStr::new(unknown)));
            if !levels.iter().any(|level| level.name() == unknown) {
                assert_eq!(result, Err(UnknownLevel(levels)), "{unknown}");
            }
        }
    }

    #[test]
    fn levels_have_names_of_their_own() {
        for (i, (level, name)) in Cpu::NAMED.iter().enumerate() {
            let others = &Cpu::NAMED[i + 1..];
            assert!(others.iter().all(|(l, n)| l != level && n != name));
            assert_eq!(level.name(), *name);
            // Worst first: no level includes a later one.
            assert!(others.iter().all(|(l, _)| !level.has(*l)), "{name}");
        }
    }

    /// The instruction sets of a processor with all of them.
    const X86_64: [&str; 12] = [
        "aes",
        "pclmulqdq",
        "avx2",
        "vaes",
        "vpclmulqdq",
        "avx512f",
        "avx512bw",
        "avx512dq",
        "avx512vl",
        "avx512ifma",
        "avx512vbmi",
        "gfni",
    ];

    #[test]
    fn a_processor_that_lacks_one_set_keeps_the_rest() {
        assert_eq!(of_x86_64(|_| true), Cpu::AVX512_VAES);
        for missing in X86_64 {
            let level = of_x86_64(|set| set != missing);
            let expected = match missing {
                "aes" | "pclmulqdq" | "avx2" => Cpu::PORTABLE,
                "vaes" | "vpclmulqdq" => Cpu::NO_VAES,
                "avx512ifma" => Cpu::NO_IFMA,
                "avx512vbmi" | "gfni" => Cpu::NO_VBMI,
                _ => Cpu::VAES,
            };
            assert_eq!(level, expected, "without {missing}");
        }
        let only = |sets: &'static [&str]| of_x86_64(move |set| sets.contains(&set));
        assert_eq!(only(&[]), Cpu::PORTABLE);
        assert_eq!(only(&X86_64[..3]), Cpu::AES_NI);
        assert_eq!(only(&X86_64[..5]), Cpu::VAES);
        assert_eq!(only(&X86_64[..9]), Cpu::WIDE_VAES);
        let skylake = of_x86_64(|set| X86_64[..3].contains(&set) || X86_64[5..9].contains(&set));
        assert_eq!(skylake, Cpu::AVX512);
        // On 256 bits there is no use for them.
        assert_eq!(of_x86_64(|set| !X86_64[5..9].contains(&set)), Cpu::VAES);
        assert_eq!(of_aarch64(|_| true), Cpu::NEON_SHA3);
        assert_eq!(of_aarch64(|set| set != "sha3"), Cpu::NEON);
        assert_eq!(of_aarch64(|set| set != "aes"), Cpu::PORTABLE);
        assert_eq!(of_aarch64(|set| set != "pmull"), Cpu::PORTABLE);
    }
}
