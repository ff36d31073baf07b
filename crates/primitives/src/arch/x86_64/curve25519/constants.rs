//! Constants of the field, in five limbs of 51 bits.

/// Bits of a limb.
pub(crate) const LIMB_BITS: u32 = 51;
pub(crate) const LIMB_MASK: u64 = (1 << LIMB_BITS) - 1;

/// The limbs of a constant.
pub(crate) type Limbs = [u64; 5];

// The constants of RFC 9496, section 4.1.
pub(crate) const ZERO: Limbs = [0; 5];
pub(crate) const ONE: Limbs = [1, 0, 0, 0, 0];
pub(crate) const D: Limbs =
    [0x34dca135978a3, 0x1a8283b156ebd, 0x5e7a26001c029, 0x739c663a03cbb, 0x52036cee2b6ff];
pub(crate) const TWICE_D: Limbs =
    [0x69b9426b2f159, 0x35050762add7a, 0x3cf44c0038052, 0x6738cc7407977, 0x2406d9dc56dff];
pub(crate) const SQRT_M1: Limbs =
    [0x61b274a0ea0b0, 0x0d5a5fc8f189d, 0x7ef5e9cbd0c60, 0x78595a6804c9e, 0x2b8324804fc1d];
pub(crate) const SQRT_AD_MINUS_ONE: Limbs =
    [0x7f6a0497b2e1b, 0x1836f0a97afd2, 0x7d747f6be7638, 0x456079e7e6498, 0x376931bf2b834];
pub(crate) const INVSQRT_A_MINUS_D: Limbs =
    [0x0fdaa805d40ea, 0x2eb482e57d339, 0x07610274bc58, 0x6510b613dc8ff, 0x786c8905cfaff];
pub(crate) const ONE_MINUS_D_SQ: Limbs =
    [0x409c1945fc176, 0x719abc6a1fc4f, 0x1c37f90b20684, 0x06bccca55eedf, 0x029072a8b2b3e];
pub(crate) const D_MINUS_ONE_SQ: Limbs =
    [0x55aaa44ed4d20, 0x59603c3332635, 0x26d3baf4a7928, 0x120a66e6997a9, 0x5968b37af66c2];
