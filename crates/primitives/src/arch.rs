//! The kernels: one folder per instruction set, the same file names and signatures in each.
//!
//! `portable` has every kernel but those whose portable forms call other functions and stand in the
//! modules that offer them: [`fold`](crate::fold), [`ristretto`](crate::ristretto) and
//! [`curve25519`](crate::curve25519). A kernel
//! missing for an instruction set falls back to `portable`; on aarch64 that is every kernel, and
//! the `aes` crate detects ARM's AES instructions itself.

pub(crate) mod portable {
    //! Plain Rust, constant time.
    pub(crate) mod aes;
    pub(crate) mod band;
    pub(crate) mod bits;
    pub(crate) mod clmul;
    pub(crate) mod gather;
    pub(crate) mod keyed;
    pub(crate) mod mersenne;
    pub(crate) mod transpose;
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64 {
    //! AES-NI, PCLMULQDQ and AVX2; VAES and VPCLMULQDQ on either width; GFNI and IFMA on AVX-512.
    //!
    //! Each kernel names its instruction sets in `#[target_feature]`; the caller checks for them
    //! with [`Cpu`](crate::cpu::Cpu).
    pub(crate) mod aes;
    pub(crate) mod band;
    pub(crate) mod bits;
    pub(crate) mod clmul;
    pub(crate) mod columns;
    pub(crate) mod combine;
    pub(crate) mod fold;
    pub(crate) mod gather;
    pub(crate) mod keyed;
    pub(crate) mod mersenne;
    pub(crate) mod rekeyed;
    pub(crate) mod ristretto;
    pub(crate) mod transpose;
    pub(crate) mod transpose_wide;
    pub(crate) mod vaes;
    pub(crate) mod vector;
}
