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

    /// With space between its fields, and in an `Option` that is `None`.
    struct DropCounter<'a> {
        drops: &'a Cell<u32>,
        array: Option<[u64; 5]>,
        byte: u8,
    }

    impl Drop for DropCounter<'_> {
        fn drop(&mut self) {
            self.drops.set(self.drops.get() + 1);
        }
    }

    #[test]
    fn nothing_is_left_where_a_value_was() {
        for array in [None, Some([7; 5])] {
            let drops = Cell::new(0);
            let counted = DropCounter { drops: &drops, array, byte: 3 };
            let mut boxed = Box::new(MaybeUninit::new(Wiped::new(counted)));
            // SAFETY: the value is there until it is dropped, once.
            let wiped = unsafe { boxed.assume_init_mut() };
            assert_eq!((wiped.array, wiped.byte), (array, 3));
            wiped.byte = 4;
            // SAFETY: as above; nothing uses the value afterwards.
            unsafe { boxed.assume_init_drop() };
            assert_eq!(drops.get(), 1);
            let start = boxed.as_ptr().cast::<u8>();
            // SAFETY: the drop has written all of these bytes.
            let left = unsafe { std::slice::from_raw_parts(start, size_of_val(&*boxed)) };
            assert!(left.iter().all(|byte| *byte == 0));
        }
    }
}
