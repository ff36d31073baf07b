//! Objects whose memory is wiped as a whole.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use zeroize::Zeroize;

/// A value whose memory is wiped where it is dropped, every byte of it.
///
/// A value that wipes all its fields leaves the bytes between them, and those of an `Option` that
/// is `None` or of a smaller variant of an enum. When the value is moved to the heap they may come
/// from the stack, with what lay there before.
pub struct Wiped<T>(MaybeUninit<T>);

impl<T> Wiped<T> {
    /// This value.
    pub const fn new(value: T) -> Self {
        Self(MaybeUninit::new(value))
    }
}

impl<T> Deref for Wiped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: there is a value from `new` on until `drop`.
        unsafe { self.0.assume_init_ref() }
    }
}

impl<T> DerefMut for Wiped<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { self.0.assume_init_mut() }
    }
}

impl<T> Drop for Wiped<T> {
    fn drop(&mut self) {
        // SAFETY: as in `deref`; nothing refers to the value afterwards.
        unsafe { self.0.assume_init_drop() };
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    struct Counted<'a>(&'a Cell<u32>, Option<[u64; 5]>, u8);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn nothing_is_left_where_a_value_was() {
        let drops = Cell::new(0);
        for array in [None, Some([7; 5])] {
            let value = MaybeUninit::new(Wiped::new(Counted(&drops, array, 3)));
            let mut boxed = Box::new(value);
            drops.set(0);
            let bytes = size_of::<Wiped<Counted<'_>>>();
            let start = boxed.as_mut_ptr();
            // SAFETY: the value is there, is dropped once, and is not used afterwards; the drop
            // writes all of its bytes.
            let left = unsafe {
                assert_eq!((*start).2, 3);
                start.drop_in_place();
                std::slice::from_raw_parts(start.cast::<u8>(), bytes)
            };
            assert_eq!(drops.get(), 1);
            assert!(left.iter().all(|byte| *byte == 0));
        }
    }
}
