//! Memory for large tables that are read in random order.
//!
//! A read at a random index of a table of some megabytes waits as long for the page tables as for
//! the cache line, unless the table lies in huge pages. [`Buffer`] asks the operating system for
//! huge pages and works without them. It starts on a cache line, as [`Aligned`](crate::Aligned)
//! does.
//!
//! The pages of a large buffer are not touched before they are used: the thread that first writes
//! to one waits for the system to clear it, not the one that allocates all.

use std::alloc::{self, Layout};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use bytemuck::Zeroable;
use zeroize::ZeroizeOnDrop;

use crate::align::LINE;

/// Size and alignment of a huge page.
const HUGE: usize = 2 << 20;

/// Bytes from which on a buffer is large: as many as every C library takes from the system at once,
/// which clears them.
const LARGE: usize = 32 << 20;

/// A slice on the heap, wiped when dropped; in huge pages if it is large enough and the system has
/// them.
///
/// The elements need no drop of their own: they are `Copy`.
pub struct Buffer<T: Copy + Zeroable> {
    start: NonNull<T>,
    len: usize,
    /// Bytes before the start that were allocated with it, never written.
    front: usize,
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
    pub fn zeroed(len: usize) -> Self {
        let layout = Self::layout(len);
        if layout.size() == 0 {
            return Self { start: NonNull::dangling(), len, front: 0 };
        }
        let large = Self::is_large(len);
        // SAFETY: the layout has a size above zero.
        let block = unsafe {
            match large {
                true => alloc::alloc_zeroed(layout),
                false => alloc::alloc(layout),
            }
        };
        let Some(block) = NonNull::new(block) else { alloc::handle_alloc_error(layout) };
        let front = match large {
            true => block.addr().get().wrapping_neg() % HUGE,
            false => 0,
        };
        // SAFETY: `front` is below HUGE, and a large layout has that many bytes more than the
        // elements.
        let start = unsafe { block.add(front) };
        let bytes = len * size_of::<T>();
        advise(start, bytes);
        if !large {
            // SAFETY: `start` is the start of `bytes` bytes of our own.
            unsafe { start.write_bytes(0, bytes) };
        }
        Self { start: start.cast(), len, front }
    }

    /// A buffer of `len` elements: this one with its contents if it has that length, otherwise a
    /// new one, all zero.
    ///
    /// # Panics
    /// The panics of [`zeroed`](Self::zeroed).
    #[must_use]
    pub fn with_len(self, len: usize) -> Self {
        if self.len == len {
            return self;
        }
        Self::zeroed(len)
    }

    /// Wipes the buffer by `wipe`, for example on several threads, instead of in this one.
    ///
    /// `wipe` must overwrite every element.
    pub fn wiped_by(mut self, wipe: impl FnOnce(&mut [T])) {
        wipe(&mut self);
        // SAFETY: nothing uses or drops the buffer any more.
        unsafe { ManuallyDrop::new(self).free() };
    }

    fn is_large(len: usize) -> bool {
        len.saturating_mul(size_of::<T>()) >= LARGE
    }

    fn layout(len: usize) -> Layout {
        const FITS: &str = "the buffer fits into the address space";
        let layout = Layout::array::<T>(len).expect(FITS);
        if Self::is_large(len) {
            // No larger alignment: only with its own does the C library clear the memory by not
            // touching it. The start is aligned by hand.
            return Layout::from_size_align(layout.size() + HUGE, layout.align()).expect(FITS);
        }
        let align = if layout.size() < HUGE { LINE } else { HUGE };
        layout.align_to(align).expect(FITS)
    }

    /// Frees the memory.
    ///
    /// # Safety
    /// The buffer is used no more.
    unsafe fn free(&mut self) {
        let layout = Self::layout(self.len);
        if layout.size() == 0 {
            return;
        }
        let start = self.start.as_ptr().cast::<u8>();
        // Keeps the compiler from dropping a store into memory that is about to be freed.
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        std::hint::black_box(start);
        // SAFETY: the memory is our own and was allocated with this layout, which depends on T and
        // the length alone, `front` bytes before the start; nothing refers to it any more.
        unsafe { alloc::dealloc(start.sub(self.front), layout) };
    }
}

/// Requests huge pages; a refusal costs only speed.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise(start: NonNull<u8>, bytes: usize) {
    if bytes >= HUGE {
        // SAFETY: the range is the one just allocated, and the advice changes nothing that can be
        // observed but time.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

// Miri does not support the call.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise(_start: NonNull<u8>, _bytes: usize) {}

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
        let bytes = self.len * size_of::<T>();
        // SAFETY: these bytes are our own, and are used no more.
        unsafe {
            self.start.cast::<u8>().write_bytes(0, bytes);
            self.free();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Block;

    fn check(len: usize) {
        // Miri would look at all of them for an hour.
        const STEP: usize = if cfg!(miri) { 4099 } else { 1 };
        let mut buffer = Buffer::<Block>::zeroed(len);
        assert_eq!(buffer.len(), len);
        let mut zeros = buffer.iter().step_by(STEP);
        assert!(zeros.all(|block| *block == Block::ZERO));
        for (block, i) in buffer.iter_mut().step_by(STEP).zip(0u128..) {
            *block = Block::from(i);
        }
        assert!(
            buffer.iter().step_by(STEP).zip(0u128..).all(|(block, i)| *block == Block::from(i))
        );
        assert!(len == 0 || buffer.as_ptr().addr().is_multiple_of(LINE));
        if len * 16 >= HUGE {
            assert_eq!(buffer.as_ptr().addr() % HUGE, 0);
        }
    }

    #[test]
    fn buffers_are_zero_aligned_and_writable() {
        for len in [0, 1, 1000, (HUGE / 16) - 1, HUGE / 16, (HUGE / 16) + 1, HUGE / 4] {
            check(len);
        }
        assert!(Buffer::<u64>::default().is_empty());
        Buffer::<u64>::default().wiped_by(|elements| assert!(elements.is_empty()));
        let mut buffer = Buffer::<u64>::zeroed(3);
        buffer[2] = 5;
        assert_eq!(buffer.with_len(3)[..], [0, 0, 5]);
        assert_eq!(Buffer::<u64>::zeroed(3).with_len(2)[..], [0, 0]);
    }

    #[test]
    #[cfg_attr(
        target_family = "wasm",
        ignore = "Node 20 crashes as it ends after any WASI program that took so much at once"
    )]
    fn large_buffers_are_so_too() {
        check(LARGE / 16);
        let mut wiped = 0;
        Buffer::<u64>::zeroed(LARGE / 8).wiped_by(|elements| wiped = elements.len());
        assert_eq!(wiped, LARGE / 8);
    }
}
