//! Transposition of a bit matrix with 128 rows: the step from columns to rows in every OT
//! extension.

use zeroize::Zeroizing;

use crate::Block;
use crate::arch::portable;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::arch::wide;
#[cfg(target_arch = "x86_64")]
use crate::arch::x86_64;
use crate::cpu::Cpu;

/// Transposes a matrix of 128 rows and `n = out.len()` columns of bits.
///
/// `rows` is row-major: bit `j` of row `r` is bit `j % 128` of `rows[r * (n / 128) + j / 128]`.
/// After the call bit `r` of `out[j]` is bit `j` of row `r`. Constant time.
///
/// # Panics
/// If `rows` and `out` differ in length or the length is not a multiple of 128.
pub fn transpose_128(rows: &[Block], out: &mut [Block]) {
    transpose_128_on(Cpu::detect(), rows, out);
}

/// [`transpose_128`] with the kernels of one level.
pub fn transpose_128_on(cpu: Cpu, rows: &[Block], out: &mut [Block]) {
    assert_eq!(rows.len(), out.len(), "rows and columns differ in size");
    assert_eq!(out.len() % 128, 0, "columns come in groups of 128");
    transpose_first_on(cpu, rows, rows.len() / 128, out);
}

/// Transposes like [`transpose_128`], but the first columns of a matrix whose row `r` begins at
/// `rows[r * stride]`; the number of columns is arbitrary. Rows that begin at multiples of some
/// thousand bytes share few cache sets; a `stride` of an odd number of cache lines spreads them.
///
/// # Panics
/// If `rows` ends before the last column of the last row, or the rows overlap.
pub fn transpose_first(rows: &[Block], stride: usize, out: &mut [Block]) {
    transpose_first_on(Cpu::detect(), rows, stride, out);
}

/// [`transpose_first`] with the kernels of one level.
pub fn transpose_first_on(cpu: Cpu, rows: &[Block], stride: usize, out: &mut [Block]) {
    cpu.assert_available();
    let width = out.len().div_ceil(128);
    assert!(width <= stride, "rows do not overlap");
    if width == 0 {
        return;
    }
    let needed = stride.checked_mul(127).and_then(|n| n.checked_add(width));
    assert!(
        needed.is_some_and(|needed| needed <= rows.len()),
        "the matrix ends before its last column"
    );
    let (whole, rest) = out.split_at_mut(out.len() / 128 * 128);
    kernel(cpu, rows, stride, whole);
    if !rest.is_empty() {
        let mut last = Zeroizing::new([Block::ZERO; 128]);
        kernel(cpu, &rows[width - 1..], stride, &mut *last);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// Transposes whole groups of 128 columns; the caller checks the lengths.
fn kernel(cpu: Cpu, rows: &[Block], stride: usize, out: &mut [Block]) {
    let rows = bytemuck::cast_slice(rows);
    let out = bytemuck::cast_slice_mut(out);
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it GFNI and AVX-512 F, BW and VBMI; the caller
        // has checked the lengths.
        cpu if cpu.has(Cpu::VBMI) => unsafe {
            x86_64::transpose_wide::transpose_128(rows, stride, out)
        },
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        // SAFETY: the level is available, and with it AVX2 or NEON.
        cpu if cpu.has(Cpu::NATIVE) => unsafe { wide::transpose::transpose_128(rows, stride, out) },
        _ => portable::transpose::transpose_128(rows, stride, out),
    }
}
