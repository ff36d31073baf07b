//! Memory for large tables that are read in random order.
//!
//! A read at a random index of a table of some megabytes waits as long for the page tables as for
//! the cache line, unless the table lies in huge pages. [`Buffer`] asks the operating system for
//! huge pages and works without them. It starts on a cache line, as [`Aligned`](crate::Aligned)
//! does.

use std::alloc::{self, Layout};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use bytemuck::Zeroable;
use zeroize::ZeroizeOnDrop;

use crate::align::LINE;

/// Size and alignment of a huge page.
const HUGE: usize = 2 << 20;

/// A slice on the heap, wiped when dropped; in huge pages if it is large enough and the system has
/// them.
///
/// The elements need no drop of their own: they are `Copy`.
pub struct Buffer<T: Copy + Zeroable> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: the buffer owns its memory alone, as a boxed slice does.
unsafe impl<T: Copy + Zeroable + Send> Send for Buffer<T> {}
// SAFETY: as above; a shared buffer gives shared access only.
unsafe impl<T: Copy + Zeroable + Sync> Sync for Buffer<T> {}

impl<T: Copy + Zeroable> Buffer<T> {
    /// `len` elements, all zero.
    ///
    /// # Panics
    /// If `len` elements are more than the address space holds. Aborts if there is no memory, as
    /// `Vec` does.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let layout = Self::layout(len);
        if layout.size() == 0 {
            return Self {
                start: NonNull::dangling(),
                len,
            };
        }
        // SAFETY: the layout has a size above zero.
        let bytes = unsafe { alloc::alloc(layout) };
        let Some(start) = NonNull::new(bytes.cast::<T>()) else {
            alloc::handle_alloc_error(layout)
        };
        advise(bytes, layout);
        // SAFETY: `bytes` is the start of `layout.size()` bytes of our own.
        unsafe { bytes.write_bytes(0, layout.size()) };
        Self { start, len }
    }

    /// A buffer of `len` elements: this one with its contents if it has that length, otherwise a
    /// new one, all zero.
    ///
    /// # Panics
    /// As [`zeroed`](Self::zeroed).
    #[must_use]
    pub fn with_len(self, len: usize) -> Self {
        if self.len == len {
            return self;
        }
        Self::zeroed(len)
    }

    fn layout(len: usize) -> Layout {
        let layout = Layout::array::<T>(len).expect("the buffer fits into the address space");
        let align = if layout.size() < HUGE { LINE } else { HUGE };
        layout
            .align_to(align)
            .expect("the buffer fits into the address space")
    }
}

/// Requests huge pages; a refusal costs only speed.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise(bytes: *mut u8, layout: Layout) {
    if layout.align() >= HUGE {
        // SAFETY: the range is the one just allocated, and the advice changes nothing that can be
        // observed but time.
        unsafe { libc::madvise(bytes.cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
}

// Miri does not support the call.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise(_bytes: *mut u8, _layout: Layout) {}

impl<T: Copy + Zeroable> Default for Buffer<T> {
    fn default() -> Self {
        Self::zeroed(0)
    }
}

impl<T: Copy + Zeroable> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements from `start` are allocated, aligned and initialised (all zero is
        // valid), and `start` is not null even where `len` is 0.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy + Zeroable> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy + Zeroable> ZeroizeOnDrop for Buffer<T> {}

impl<T: Copy + Zeroable> Drop for Buffer<T> {
    fn drop(&mut self) {
        let layout = Self::layout(self.len);
        if layout.size() == 0 {
            return;
        }
        let bytes = self.start.as_ptr().cast::<u8>();
        // SAFETY: the memory is our own and was allocated with this layout; nothing can refer to it
        // any more.
        unsafe {
            bytes.write_bytes(0, layout.size());
            // Keeps the compiler from dropping a store into memory that is about to be freed.
            std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
            std::hint::black_box(bytes);
            alloc::dealloc(bytes, layout);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Block;

    #[test]
    fn buffers_are_zero_aligned_and_writable() {
        // Miri would look at all of them for an hour.
        const STEP: usize = if cfg!(miri) { 4099 } else { 1 };
        for len in [
            0,
            1,
            1000,
            (HUGE / 16) - 1,
            HUGE / 16,
            (HUGE / 16) + 1,
            HUGE / 4,
        ] {
            let mut buffer = Buffer::<Block>::zeroed(len);
            assert_eq!(buffer.len(), len);
            let mut zeros = buffer.iter().step_by(STEP);
            assert!(zeros.all(|block| *block == Block::ZERO));
            for (block, i) in buffer.iter_mut().step_by(STEP).zip(0u128..) {
                *block = Block::from(i);
            }
            assert!(
                buffer
                    .iter()
                    .step_by(STEP)
                    .zip(0u128..)
                    .all(|(block, i)| *block == Block::from(i))
            );
            assert!(len == 0 || buffer.as_ptr().addr().is_multiple_of(LINE));
            if len * 16 >= HUGE {
                assert_eq!(buffer.as_ptr().addr() % HUGE, 0);
            }
        }
        assert!(Buffer::<u64>::default().is_empty());
        let mut buffer = Buffer::<u64>::zeroed(3);
        buffer[2] = 5;
        assert_eq!(buffer.with_len(3)[..], [0, 0, 5]);
        assert_eq!(Buffer::<u64>::zeroed(3).with_len(2)[..], [0, 0]);
    }
}
