//! Parts of a slice that several threads write, each at places that it finds out while it works.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// A slice in parts of equal length, each of which is lent once, to any thread.
pub struct Parts<'a, T> {
    start: NonNull<T>,
    part: usize,
    lent: Vec<AtomicBool>,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: shared access only lends parts, each as an exclusive slice and at most once, which may
// move to the borrowing thread as `T` may.
unsafe impl<T: Send> Sync for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    /// The `slice` in parts of `part` elements.
    ///
    /// # Panics
    /// If `part` is zero, or the slice is not a whole number of parts.
    #[must_use]
    pub fn new(slice: &'a mut [T], part: usize) -> Self {
        assert!(
            part > 0 && slice.len().is_multiple_of(part),
            "a whole number of parts"
        );
        let mut lent = Vec::new();
        lent.resize_with(slice.len() / part, AtomicBool::default);
        Self {
            start: NonNull::from(slice).cast(),
            part,
            lent,
            slice: PhantomData,
        }
    }

    /// Part `number`, counted from 0.
    ///
    /// # Panics
    /// If the slice has no such part, or it has been lent.
    #[must_use]
    pub fn lend(&self, number: usize) -> &'a mut [T] {
        let lent = self.lent[number].swap(true, Ordering::Relaxed);
        assert!(!lent, "a part is lent once");
        // SAFETY: the part lies in the slice, which is borrowed for 'a, and this call is the only
        // one that returns it; parts do not overlap. The order of the swap with other memory does
        // not matter, because nothing in the part is handed from one thread to another here.
        unsafe {
            let start = self.start.add(number * self.part);
            std::slice::from_raw_parts_mut(start.as_ptr(), self.part)
        }
    }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;

    #[test]
    fn parts_are_those_of_the_slice() {
        let mut slice = [0; 7 * 3];
        let parts = Parts::new(&mut slice, 3);
        (0..7).into_par_iter().for_each(|number| {
            for (place, element) in parts.lend(number).iter_mut().enumerate() {
                *element = 3 * number + place;
            }
        });
        assert!(slice.iter().enumerate().all(|(i, element)| i == *element));
        let _ = Parts::new(&mut slice[..0], 3);
    }

    #[test]
    #[should_panic(expected = "lent once")]
    fn no_part_is_lent_twice() {
        let mut slice = [0; 4];
        let parts = Parts::new(&mut slice, 2);
        let _one = parts.lend(1);
        let _again = parts.lend(1);
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn no_part_is_outside() {
        let _ = Parts::new(&mut [0; 4], 2).lend(2);
    }

    #[test]
    #[should_panic(expected = "whole number")]
    fn parts_are_whole() {
        let _ = Parts::new(&mut [0; 5], 2);
    }
}
