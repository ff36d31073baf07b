//! Packed bits: bit `i` is bit `i % 8` of byte `i / 8`, low bit first.
//!
//! The index is public; the bits may be secret: no code branches on them.

use crate::Block;
#[cfg(target_arch = "aarch64")]
use crate::arch::aarch64;
use crate::arch::portable;
#[cfg(target_arch = "x86_64")]
use crate::arch::x86_64;
use crate::cpu::Cpu;

/// Bytes that hold `bits` bits.
#[inline]
pub const fn bytes_for(bits: usize) -> usize {
    bits.div_ceil(8)
}

/// Bit `index`.
///
/// # Panics
/// If `index` is past the end of `bytes`.
#[inline]
#[must_use]
pub fn bit(bytes: &[u8], index: usize) -> bool {
    bytes[index / 8] >> (index % 8) & 1 == 1
}

/// Replaces bit `index` by `value`.
///
/// # Panics
/// If `index` is past the end of `bytes`.
#[inline]
pub fn set(bytes: &mut [u8], index: usize, value: bool) {
    let byte = &mut bytes[index / 8];
    *byte = *byte & !(1 << (index % 8)) | u8::from(value) << (index % 8);
}

/// The bits packed into [`bytes_for`]`(bits.len())` bytes; the unused bits of the last byte are
/// zero.
pub fn pack(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8)
        .map(|eight| eight.iter().enumerate().fold(0, |byte, (i, &bit)| byte | u8::from(bit) << i))
        .collect()
}

/// The first `bits` bits, one `bool` each.
///
/// # Panics
/// If `bytes` is shorter than [`bytes_for`]`(bits)`.
pub fn unpack(bytes: &[u8], bits: usize) -> Vec<bool> {
    (0..bits).map(|i| bit(bytes, i)).collect()
}

/// The used bits of the last of [`bytes_for`]`(bits)` bytes: all of them if `bits` is a multiple of
/// 8.
#[inline]
pub const fn last_byte_mask(bits: usize) -> u8 {
    match bits % 8 {
        0 => 0xff,
        used => (1 << used) - 1,
    }
}

/// Sets the bits from `bits` on to zero, so that equal bit strings are equal bytes.
///
/// # Panics
/// If `bytes` is shorter than [`bytes_for`]`(bits)`.
pub fn clear_from(bytes: &mut [u8], bits: usize) {
    let used = bytes_for(bits);
    bytes[used..].fill(0);
    if used > 0 {
        bytes[used - 1] &= last_byte_mask(bits);
    }
}

/// `acc ^= x`, byte by byte.
///
/// # Panics
/// If the lengths differ.
pub fn xor_into(acc: &mut [u8], x: &[u8]) {
    assert_eq!(acc.len(), x.len(), "bit strings of different lengths");
    for (a, b) in acc.iter_mut().zip(x) {
        *a ^= b;
    }
}

/// The lowest bit of each block: bit `i` of `out` is that of `blocks[i]`; the unused bits of the
/// last byte are zero.
///
/// # Panics
/// If `out` is not [`bytes_for`]`(blocks.len())` bytes.
pub fn lowest_bits(blocks: &[Block], out: &mut [u8]) {
    lowest_bits_on(Cpu::detect(), blocks, out);
}

/// [`lowest_bits`] with the kernels of one level.
pub fn lowest_bits_on(cpu: Cpu, blocks: &[Block], out: &mut [u8]) {
    cpu.assert_available();
    assert_eq!(bytes_for(blocks.len()), out.len(), "one bit for each block");
    match cpu {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is available, and with it AVX2.
        cpu if cpu.has(Cpu::AES_NI) => unsafe { x86_64::bits::lowest_bits(blocks, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the level is available, and with it NEON.
        cpu if cpu.has(Cpu::NEON) => unsafe { aarch64::bits::lowest_bits(blocks, out) },
        _ => portable::bits::lowest_bits(blocks, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_bits_are_packed_in_order() {
        for n in [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 1000, 1001] {
            // All other bits are the complement, and one block more in front changes the alignment.
            let blocks: Vec<Block> = (0..=n)
                .map(|i: usize| Block::select_mask(i * i % 7 >= 3).with_lsb(i * i % 7 < 3))
                .collect();
            let bits: Vec<bool> = blocks[1..].iter().map(|block| block.lsb()).collect();
            for cpu in Cpu::available() {
                let mut out = vec![0xff; bytes_for(n)];
                lowest_bits_on(cpu, &blocks[1..], &mut out);
                assert_eq!(out, pack(&bits), "{n} blocks, {cpu}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "one bit for each block")]
    fn lowest_bits_refuses_a_byte_too_many() {
        lowest_bits(&[Block::ONE; 8], &mut [0; 2]);
    }

    #[test]
    fn pack_and_unpack_are_inverse_at_awkward_lengths() {
        for n in [0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 101] {
            let bits: Vec<bool> = (0..n).map(|i| i * i % 7 < 3).collect();
            let packed = pack(&bits);
            assert_eq!(packed.len(), bytes_for(n));
            assert_eq!(unpack(&packed, n), bits);
            let mut dirty = packed.clone();
            if n % 8 != 0 {
                dirty[n / 8] |= !last_byte_mask(n);
            }
            dirty.push(0xff);
            clear_from(&mut dirty, n);
            assert_eq!(dirty[..packed.len()], packed);
            assert_eq!(dirty[packed.len()], 0);
        }
    }
}
