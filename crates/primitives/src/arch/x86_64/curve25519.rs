//! The field and the curve of Ristretto255, several elements at once.
//!
//! Arithmetic is written twice: [`avx2`], four elements of ten limbs, and [`ifma`], eight elements
//! of five limbs, with the same names. The rest is a macro over either.

pub(crate) mod avx2;
pub(crate) mod constants;
pub(crate) mod field;
pub(crate) mod ifma;
pub(crate) mod montgomery;
pub(crate) mod point;
pub(crate) mod ristretto;

/// A bit for each lane, the first lane lowest; bits above the last lane are not used.
pub(crate) type Mask = u8;
