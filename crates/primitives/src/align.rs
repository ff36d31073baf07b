//! Memory that whole vectors are written to.

/// A value at an address that is a multiple of 64, the size of a cache line and of the largest vector.
///
/// Elsewhere each vector may cross from one line into the next, and once in 4096 bytes from one page into the next, for which
/// some processors take hundreds of cycles. Where an array on a stack happens to lie would decide how fast a loop is.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Aligned<T>(pub T);

/// The alignment of [`Aligned`].
pub(crate) const LINE: usize = align_of::<Aligned<()>>();
