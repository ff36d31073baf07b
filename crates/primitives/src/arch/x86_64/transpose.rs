//! Bit-matrix transposition with AVX2.

pub(crate) use crate::arch::portable::transpose::transpose_128;
