//! The kernels: one folder per instruction set, the same file names and signatures in each, and
//! `wide`, whose kernels are written once over the vectors of all instruction sets.
//!
//! `portable` has every kernel but those whose portable forms call other functions and stand in the
//! modules that offer them: [`fold`](crate::fold), [`ristretto`](crate::ristretto) and
//! [`curve25519`](crate::curve25519). A kernel missing for an instruction set falls back to
//! `portable`; the table of [`cpu`](crate::cpu) shows which.

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
    //! AES-NI, PCLMULQDQ and AVX2; GFNI and IFMA on AVX-512. The curve is written once, as a macro
    //! over the arithmetic of its field.
    //!
    //! Each kernel names its instruction sets in `#[target_feature]`; the caller checks for them
    //! with [`Cpu`](crate::cpu::Cpu).
    pub(crate) mod aes;
    pub(crate) mod band_wide;
    pub(crate) mod bits;
    pub(crate) mod bytes;
    pub(crate) mod clmul;
    pub(crate) mod curve25519;
    pub(crate) mod gather;
    pub(crate) mod mersenne;
    pub(crate) mod transpose_wide;
    pub(crate) mod vector;
}

#[cfg(target_arch = "aarch64")]
pub(crate) mod aarch64 {
    //! NEON with the instructions for AES and PMULL.
    pub(crate) mod aes;
    pub(crate) mod bits;
    pub(crate) mod bytes;
    pub(crate) mod clmul;
    pub(crate) mod gather;
    pub(crate) mod vector;
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) mod wasm32 {
    //! SIMD128 of WebAssembly, which a module has or has not: there is no detection at run time.
    pub(crate) mod aes;
}

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64 as native;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64 as native;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod wide {
    //! Kernels over vectors of blocks. Each is a macro over the module of a vector and the names of
    //! its instruction sets: `x1` for a block in a register (AES-NI), `x2` for two blocks (VAES and
    //! VPCLMULQDQ on AVX2; NEON), `x4` for four (on AVX-512), `x2_sha3` for two that `eor3` of NEON
    //! adds up. The kernels on bytes, `band`
    //! and `transpose`, have one width only and are functions over `bytes`: AVX2; NEON.
    pub(crate) mod aes;
    pub(crate) mod band;
    pub(crate) mod columns;
    pub(crate) mod combine;
    pub(crate) mod fold;
    pub(crate) mod keyed;
    pub(crate) mod rekeyed;
    pub(crate) mod single;
    pub(crate) mod transpose;
}
