//! Memory aligned to whole vectors.

/// A value at an address that is a multiple of 64, the size of a cache line and of the largest
/// vector.
///
/// At other addresses a vector may cross from one line into the next, and once in 4096 bytes from
/// one page into the next, which costs hundreds of cycles on some processors. The speed of a loop
/// would then depend on the position of an array on the stack.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Aligned<T>(pub T);

/// The alignment of [`Aligned`].
pub(crate) const LINE: usize = align_of::<Aligned<()>>();
