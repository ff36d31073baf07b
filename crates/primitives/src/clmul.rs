//! Arithmetic in GF(2^128) = GF(2)\[X\] / (X^128 + X^7 + X^2 + X + 1).
//!
//! Bit `i` of a block is the coefficient of X^i. (GHASH has the same modulus with the bits in the
//! opposite order.) Addition is `^`. All of it is constant time.

use crate::Block;
use crate::arch::portable;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::arch::{native, wide};
use crate::cpu::Cpu;

/// Calls a kernel of a level that is known to be available.
macro_rules! dispatch {
    ($cpu:expr, $kernel:ident($($argument:expr),*)) => {
        match $cpu {
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            // SAFETY: the level is available, and with it PCLMULQDQ and AVX2, or PMULL.
            cpu if cpu.has(Cpu::NATIVE) => unsafe { native::clmul::$kernel($($argument),*) },
            _ => portable::clmul::$kernel($($argument),*),
        }
    };
}

/// `a * b`.
#[inline]
pub fn gf128_mul(a: Block, b: Block) -> Block {
    Block::new(dispatch!(Cpu::detect(), mul(a.into(), b.into())))
}

/// `acc[i] += s * x[i]` for every `i`.
///
/// # Panics
/// If the lengths differ.
pub fn gf128_axpy(acc: &mut [Block], s: Block, x: &[Block]) {
    gf128_axpy_on(Cpu::detect(), acc, s, x);
}

/// The sum of `a[i] * b[i]`, with a single reduction at the end.
///
/// # Panics
/// If the lengths differ.
pub fn gf128_inner_product(a: &[Block], b: &[Block]) -> Block {
    gf128_inner_product_on(Cpu::detect(), a, b)
}

/// `out[j]` is the sum of `weights[i] * columns[i][j]` over all `i`, with a single reduction at the
/// end.
///
/// # Panics
/// If the lengths differ.
pub fn gf128_combine<const N: usize>(
    columns: [&[Block]; N],
    weights: [Block; N],
    out: &mut [Block],
) {
    gf128_combine_on(Cpu::detect(), columns, weights, out);
}

/// `out[j] += ` the sum of `a[i][j] * b[i][j]` over all `i`, with a single reduction at the end.
///
/// # Panics
/// If the lengths differ.
pub fn gf128_add_products<const N: usize>(a: [&[Block]; N], b: [&[Block]; N], out: &mut [Block]) {
    gf128_add_products_on(Cpu::detect(), a, b, out);
}

/// [`gf128_mul`] with the kernels of one level.
pub fn gf128_mul_on(cpu: Cpu, a: Block, b: Block) -> Block {
    cpu.assert_available();
    Block::new(dispatch!(cpu, mul(a.into(), b.into())))
}

/// [`gf128_axpy`] with the kernels of one level.
pub fn gf128_axpy_on(cpu: Cpu, acc: &mut [Block], s: Block, x: &[Block]) {
    cpu.assert_available();
    assert_eq!(acc.len(), x.len(), "vectors of different lengths");
    dispatch!(cpu, axpy(bytemuck::cast_slice_mut(acc), s.into(), bytemuck::cast_slice(x)));
}

/// [`gf128_inner_product`] with the kernels of one level.
pub fn gf128_inner_product_on(cpu: Cpu, a: &[Block], b: &[Block]) -> Block {
    cpu.assert_available();
    assert_eq!(a.len(), b.len(), "vectors of different lengths");
    let (a, b) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
    Block::new(match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it VPCLMULQDQ and AVX-512.
        cpu if cpu.has(Cpu::WIDE_VAES) => unsafe { wide::combine::x4::inner_product(a, b) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the level is available, and with it PMULL and SHA3.
        cpu if cpu.has(Cpu::NEON_SHA3) => unsafe { wide::combine::x2_sha3::inner_product(a, b) },
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        // SAFETY: the level is available, and with it VPCLMULQDQ, or PMULL.
        cpu if cpu.has(Cpu::PAIRS) => unsafe { wide::combine::x2::inner_product(a, b) },
        _ => dispatch!(cpu, inner_product(a, b)),
    })
}

/// [`gf128_combine`] with the kernels of one level.
pub fn gf128_combine_on<const N: usize>(
    cpu: Cpu,
    columns: [&[Block]; N],
    weights: [Block; N],
    out: &mut [Block],
) {
    cpu.assert_available();
    assert!(columns.iter().all(|column| column.len() == out.len()), "columns of different lengths");
    let columns = columns.map(bytemuck::cast_slice);
    let weights = weights.map(u128::from);
    let out = bytemuck::cast_slice_mut(out);
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it VPCLMULQDQ and AVX-512.
        cpu if cpu.has(Cpu::WIDE_VAES) => unsafe {
            wide::combine::x4::combine(columns, weights, out)
        },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the level is available, and with it PMULL and SHA3.
        cpu if cpu.has(Cpu::NEON_SHA3) => unsafe {
            wide::combine::x2_sha3::combine(columns, weights, out)
        },
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        // SAFETY: the level is available, and with it VPCLMULQDQ, or PMULL.
        cpu if cpu.has(Cpu::PAIRS) => unsafe { wide::combine::x2::combine(columns, weights, out) },
        _ => dispatch!(cpu, combine(columns, weights, out)),
    }
}

/// [`gf128_add_products`] with the kernels of one level.
pub fn gf128_add_products_on<const N: usize>(
    cpu: Cpu,
    a: [&[Block]; N],
    b: [&[Block]; N],
    out: &mut [Block],
) {
    cpu.assert_available();
    assert!(
        a.iter().chain(&b).all(|factors| factors.len() == out.len()),
        "factors of different lengths"
    );
    let (a, b) = (a.map(bytemuck::cast_slice), b.map(bytemuck::cast_slice));
    let out = bytemuck::cast_slice_mut(out);
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it VPCLMULQDQ and AVX-512.
        cpu if cpu.has(Cpu::WIDE_VAES) => unsafe { wide::combine::x4::add_products(a, b, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the level is available, and with it PMULL and SHA3.
        cpu if cpu.has(Cpu::NEON_SHA3) => unsafe {
            wide::combine::x2_sha3::add_products(a, b, out)
        },
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        // SAFETY: the level is available, and with it VPCLMULQDQ, or PMULL.
        cpu if cpu.has(Cpu::PAIRS) => unsafe { wide::combine::x2::add_products(a, b, out) },
        _ => dispatch!(cpu, add_products(a, b, out)),
    }
}
