//! The kernels that this processor can run.

use std::fmt;
use std::sync::OnceLock;

/// A set of kernels.
///
/// [`Cpu::detect`] gives the best one; the functions that take a level are for tests, which run
/// every level of [`Cpu::available`] against the portable one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cpu {
    /// Plain Rust; AES from the `aes` crate, which uses ARM's or x86's AES instructions where it
    /// finds them and bit-slicing elsewhere.
    Portable,
    /// x86-64 with AES-NI, PCLMULQDQ and AVX2.
    AesNi,
    /// x86-64 with VAES, VPCLMULQDQ, GFNI and AVX-512 (F, BW, DQ, VL, IFMA, VBMI) on top of
    /// [`Cpu::AesNi`]. All processors with VAES and AVX-512 have the others.
    Vaes,
}

impl Cpu {
    /// The best level of this processor, found on the first call and remembered.
    ///
    /// Under Miri it is [`Cpu::Portable`].
    #[inline]
    #[must_use]
    pub fn detect() -> Self {
        static BEST: OnceLock<Cpu> = OnceLock::new();
        *BEST.get_or_init(best)
    }

    /// Every level of this processor, worst first. The first is always [`Cpu::Portable`].
    #[must_use]
    pub fn available() -> Vec<Self> {
        [Self::Portable, Self::AesNi, Self::Vaes]
            .into_iter()
            .filter(|level| level.is_available())
            .collect()
    }

    /// Whether this processor can run this level.
    #[inline]
    #[must_use]
    pub fn is_available(self) -> bool {
        self <= Self::detect()
    }

    /// A short name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::AesNi => "aes-ni",
            Self::Vaes => "vaes",
        }
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

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn best() -> Cpu {
    let aes_ni = is_x86_feature_detected!("aes")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("avx2");
    let vaes = is_x86_feature_detected!("vaes")
        && is_x86_feature_detected!("vpclmulqdq")
        && is_x86_feature_detected!("gfni")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512ifma")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vl");
    match (aes_ni, vaes) {
        (true, true) => Cpu::Vaes,
        (true, false) => Cpu::AesNi,
        (false, _) => Cpu::Portable,
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn best() -> Cpu {
    Cpu::Portable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_listed_in_order_up_to_the_best() {
        let levels = Cpu::available();
        assert_eq!(levels.first(), Some(&Cpu::Portable));
        assert_eq!(levels.last(), Some(&Cpu::detect()));
        assert!(levels.is_sorted());
    }
}
