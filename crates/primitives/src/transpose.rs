//! Transposition of a bit matrix with 128 rows: the step from columns to rows in every OT extension.

use crate::Block;
use crate::arch::portable;
#[cfg(target_arch = "x86_64")]
use crate::arch::x86_64;
use crate::cpu::Cpu;

/// Transposes a matrix of 128 rows and `n = out.len()` columns of bits.
///
/// `rows` is row-major: bit `j` of row `r` is bit `j % 128` of `rows[r * (n / 128) + j / 128]`. After the call bit `r` of
/// `out[j]` is bit `j` of row `r`. Constant time.
///
/// # Panics
///
/// If `rows` and `out` differ in length or the length is not a multiple of 128.
pub fn transpose_128(rows: &[Block], out: &mut [Block]) {
    transpose_128_on(Cpu::detect(), rows, out);
}

/// [`transpose_128`] with the kernels of one level.
///
/// # Panics
///
/// As [`transpose_128`], or if the processor cannot run the kernels.
pub fn transpose_128_on(cpu: Cpu, rows: &[Block], out: &mut [Block]) {
    cpu.assert_available();
    assert_eq!(rows.len(), out.len(), "rows and columns differ in size");
    assert_eq!(out.len() % 128, 0, "columns come in groups of 128");
    let rows = bytemuck::cast_slice(rows);
    let out = bytemuck::cast_slice_mut(out);
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX2.
        Cpu::AesNi | Cpu::Vaes => unsafe { x86_64::transpose::transpose_128(rows, out) },
        _ => portable::transpose::transpose_128(rows, out),
    }
}
