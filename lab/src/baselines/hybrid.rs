//! The cheaper of PSSZ and BaRK-OPRF.
//!
//! Kolesnikov, Kumaresan, Rosulek, Trieu, *Efficient Batched Oblivious PRF with Applications to
//! Private Set Intersection*, CCS 2016, section 5.3 and Table 1: the two differ in the cost of a
//! bin in bits of the OT matrix, `32*l'` for PSSZ with the effective length `l' = l - log2 n`, and
//! the width `k` of the code for BaRK-OPRF. PSSZ wins for short items in large sets.
//!
//! [`Cost::Fractional`] counts as the table does. PSSZ cannot run a fraction of an OT: it takes 256
//! bits for each byte that `l'` has begun, [`Cost::Whole`]. Of the rows of Table 1 that changes
//! one: at 2^20 items of 32 bits the table has PSSZ ahead with 384 bits to 448, while whole OTs
//! take 512, and Tables 3 and 5 show BaRK-OPRF ahead.

/// A protocol to pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// [`super::pssz`].
    Pssz,
    /// BaRK-OPRF, of `volery-psi`.
    Bark,
}

/// The method of counting the OTs of PSSZ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// As in Table 1: 32 bits for each bit of the effective length.
    Fractional,
    /// As it runs: 256 bits for each byte.
    Whole,
}

/// Bits of the OT matrix that PSSZ takes for a bin, with `items` items of `bits` bits.
pub(crate) fn pssz_bits(items: usize, bits: u32, cost: Cost) -> f64 {
    let effective = (f64::from(bits) - (items.max(1) as f64).log2()).max(0.0);
    match cost {
        Cost::Fractional => 32.0 * effective,
        // The contents of a bin are compared by at least one OT.
        Cost::Whole => 256.0 * (effective / 8.0).ceil().max(1.0),
    }
}

/// The cheaper protocol for `items` items of `bits` bits, where the code of BaRK-OPRF has `width`
/// bits; BaRK-OPRF if both cost the same.
pub(crate) fn choose(items: usize, bits: u32, width: usize, cost: Cost) -> Choice {
    if pssz_bits(items, bits, cost) < width as f64 { Choice::Pssz } else { Choice::Bark }
}
