//! A slice in chunks of equal length, for several threads that write to chunks in any order.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Chunks of a slice, of which each can be [taken](Self::take) once, by any thread.
///
/// Which chunks are taken is public.
#[derive(Debug)]
pub struct Chunks<'a, T> {
    start: NonNull<T>,
    /// Elements of a chunk, and the number of chunks.
    size: usize,
    count: usize,
    /// A bit for each chunk.
    taken: Vec<AtomicU64>,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: it is an exclusive slice, and gives each of its elements to one thread at most.
unsafe impl<T: Send> Send for Chunks<'_, T> {}
// SAFETY: as above; a shared reference gives nothing else either.
unsafe impl<T: Send> Sync for Chunks<'_, T> {}

impl<'a, T> Chunks<'a, T> {
    /// Chunks of `size` elements. The elements after the last whole chunk are in none.
    ///
    /// # Panics
    /// If `size` is zero.
    #[must_use]
    pub fn new(slice: &'a mut [T], size: usize) -> Self {
        let count = slice.len() / size;
        Self {
            start: NonNull::from(slice).cast(),
            size,
            count,
            taken: (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            slice: PhantomData,
        }
    }

    /// Chunk number `chunk`.
    ///
    /// # Panics
    /// If it does not exist, or was taken before.
    #[must_use]
    pub fn take(&self, chunk: usize) -> &'a mut [T] {
        assert!(chunk < self.count, "the slice has this chunk");
        let bit = 1 << (chunk % 64);
        // No memory is passed on by it: only one thread ever gets an answer of zero.
        let before = self.taken[chunk / 64].fetch_or(bit, Ordering::Relaxed);
        assert!(before & bit == 0, "a chunk is taken once");
        // SAFETY: the chunk lies inside of the slice, which nothing else refers to during 'a, and
        // no other chunk overlaps it. It was not taken before, so this reference is the only one.
        unsafe {
            let first = self.start.add(chunk * self.size);
            NonNull::slice_from_raw_parts(first, self.size).as_mut()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    fn threads_write_to_their_own_chunks() {
        let mut slice = [0u32; 3 * 70 + 2];
        let chunks = Chunks::new(&mut slice, 3);
        thread::scope(|scope| {
            for first in 0..2 {
                let chunks = &chunks;
                scope.spawn(move || {
                    for chunk in (first..70).step_by(2) {
                        let numbers = 3 * chunk as u32 + 1..;
                        for (place, number) in chunks.take(chunk).iter_mut().zip(numbers) {
                            *place = number;
                        }
                    }
                });
            }
        });
        assert!(slice[..210].iter().copied().eq(1..=210));
        assert_eq!(slice[210..], [0, 0]);
    }

    /// Takes chunks of 65, a word of bits and one more, in this order.
    fn take(chunks: &[usize]) {
        let mut slice = [0u8; 130];
        let all = Chunks::new(&mut slice, 2);
        for chunk in chunks {
            assert_eq!(all.take(*chunk), [0; 2]);
        }
    }

    #[test]
    fn each_chunk_is_taken_once() {
        take(&[0, 63, 64, 1, 62]);
    }

    #[test]
    #[should_panic(expected = "a chunk is taken once")]
    fn the_first_is_not_taken_twice() {
        take(&[0, 1, 0]);
    }

    #[test]
    #[should_panic(expected = "a chunk is taken once")]
    fn the_last_is_not_taken_twice() {
        take(&[64, 0, 64]);
    }

    #[test]
    #[should_panic(expected = "the slice has this chunk")]
    fn none_outside_is_taken() {
        take(&[64, 65]);
    }

    #[test]
    #[should_panic(expected = "the slice has this chunk")]
    fn none_far_outside_is_taken() {
        take(&[usize::MAX]);
    }
}
