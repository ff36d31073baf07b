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
//! | [`gather`](crate::gather) | words | AVX2 | AVX2 | AVX-512 | AVX-512 | none | none |
//! | [`mersenne`](crate::mersenne), sums | words | AVX2 | AVX2 | AVX-512 | AVX-512 | none | none |
//! | [`mersenne`](crate::mersenne), products | words | none | none | none | IFMA | none | none |
//! | [`bits`](crate::bits) | words | AVX2 | AVX2 | AVX2 | AVX2 | none | none |
//! | [`ristretto`](crate::ristretto), [`curve25519`](crate::curve25519) | a point | AVX2, four | AVX2, four | AVX2, four | IFMA, eight | none | none |
//!
//! Where there is none, the kernel is the portable one.
//!
//! A processor with AVX-512 and only some of VAES, IFMA, and GFNI with VBMI gets the kernels of
//! `avx512-vaes` for those that it has.

use std::fmt;
use std::sync::OnceLock;

/// A set of kernels.
///
/// [`Cpu::detect`] gives the best one; the functions that take a level are for tests, which run
/// every level of [`Cpu::available`] against the portable one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cpu(u8);

const AES: u8 = 1;
const WIDE_AES: u8 = 2;
const WIDE: u8 = 4;
const MULTIPLY: u8 = 8;
const BYTES: u8 = 16;
const ARM: u8 = 32;
const WASM: u8 = 64;

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
    /// [`Cpu::AVX512`] with [`Cpu::VAES`], which then work on 512 bits: no level by name.
    pub const WIDE_VAES: Self = Self(AES | WIDE_AES | WIDE);
    /// [`Cpu::AVX512`] with IFMA: no level by name.
    pub const IFMA: Self = Self(AES | WIDE | MULTIPLY);
    /// [`Cpu::AVX512`] with VBMI and GFNI: no level by name.
    pub const VBMI: Self = Self(AES | WIDE | BYTES);

    /// aarch64 with NEON, AES and PMULL: all but the smallest processors of ARMv8.
    pub const NEON: Self = Self(ARM);

    /// WebAssembly with SIMD128: a module that is compiled with it runs nowhere else.
    pub const WASM_SIMD128: Self = Self(WASM);

    /// What the kernels on vectors of two blocks need.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const PAIRS: Self = Self::VAES;
    #[cfg(target_arch = "aarch64")]
    pub(crate) const PAIRS: Self = Self::NEON;

    /// What the kernels on single blocks need.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const NATIVE: Self = Self::AES_NI;
    #[cfg(target_arch = "aarch64")]
    pub(crate) const NATIVE: Self = Self::NEON;

    /// The levels with names, worst first.
    const NAMED: [(Self, &'static str); 7] = [
        (Self::PORTABLE, "portable"),
        (Self::AES_NI, "aes-ni"),
        (Self::VAES, "vaes"),
        (Self::AVX512, "avx512"),
        (Self::AVX512_VAES, "avx512-vaes"),
        (Self::NEON, "neon"),
        (Self::WASM_SIMD128, "wasm-simd128"),
    ];

    /// The level that [`VARIABLE`] names, or the best one of this processor; found on the first
    /// call and remembered.
    ///
    /// Under Miri it is [`Cpu::PORTABLE`].
    ///
    /// # Panics
    ///
    /// If the variable does not name a level of this processor: [`Cpu::check`] says so before.
    #[inline]
    #[must_use]
    pub fn detect() -> Self {
        static CHOSEN: OnceLock<Cpu> = OnceLock::new();
        *CHOSEN.get_or_init(|| Self::chosen().unwrap_or_else(|error| panic!("{error}")))
    }

    /// Checks [`VARIABLE`].
    ///
    /// # Errors
    ///
    /// If it is set and does not name a level of this processor.
    pub fn check() -> Result<(), UnknownLevel> {
        Self::chosen().map(drop)
    }

    fn chosen() -> Result<Self, UnknownLevel> {
        match std::env::var_os(VARIABLE) {
            None => Ok(Self::best()),
            Some(name) => {
                let levels = Self::available();
                let found = levels.iter().find(|level| *level.name() == *name);
                found.copied().ok_or(UnknownLevel(levels))
            }
        }
    }

    /// The best level of this processor.
    fn best() -> Self {
        static BEST: OnceLock<Cpu> = OnceLock::new();
        *BEST.get_or_init(best)
    }

    /// Every level of this processor by name, worst first, and the best one. The first is always
    /// [`Cpu::PORTABLE`].
    #[must_use]
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
        assert!(
            self.is_available(),
            "this processor cannot run the kernels of level {self}"
        );
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

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn best() -> Cpu {
    let aes = is_x86_feature_detected!("aes")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("avx2");
    if !aes {
        return Cpu::PORTABLE;
    }
    let wide_aes = is_x86_feature_detected!("vaes") && is_x86_feature_detected!("vpclmulqdq");
    let wide = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    let facts = [
        (true, AES),
        (wide_aes, WIDE_AES),
        (wide, WIDE),
        (wide && is_x86_feature_detected!("avx512ifma"), MULTIPLY),
        (
            wide && is_x86_feature_detected!("avx512vbmi") && is_x86_feature_detected!("gfni"),
            BYTES,
        ),
    ];
    let facts = facts.iter().filter(|(there, _)| *there);
    Cpu(facts.fold(0, |all, (_, fact)| all | fact))
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
fn best() -> Cpu {
    use std::arch::is_aarch64_feature_detected;
    match is_aarch64_feature_detected!("aes") && is_aarch64_feature_detected!("pmull") {
        true => Cpu::NEON,
        false => Cpu::PORTABLE,
    }
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
        assert_eq!(
            unknown,
            "VOLERY_CPU: this processor has the levels portable, aes-ni"
        );
    }

    #[test]
    fn levels_include_others() {
        let all = Cpu::AVX512_VAES;
        for level in [Cpu::VAES, Cpu::AVX512, Cpu::WIDE_VAES, Cpu::IFMA, Cpu::VBMI] {
            assert!(all.has(level) && level.has(Cpu::AES_NI) && !Cpu::AES_NI.has(level));
        }
        assert!(!Cpu::AVX512.has(Cpu::VAES) && !Cpu::VAES.has(Cpu::AVX512));
    }
}
