//! Prefetching.

/// In a loop of reads at random places, how many reads ahead to prefetch. There should be one
/// prefetch for each read: a processor may drop prefetches that come faster than memory answers, so
/// that those of a loop of their own are of no use.
pub const AHEAD: usize = 32;

/// Prefetches the cache line of an entry, without waiting for it; an index out of range does
/// nothing. A prefetch is visible to other users of the cache, as a read is.
#[inline(always)]
pub fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(entry) = table.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: x86-64 has SSE; a prefetch reads nothing that a program could see, and the
        // address is of a live entry.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (table, index);
}

/// Prefetches the cache lines of a range of entries, as [`prefetch`].
#[inline(always)]
pub fn prefetch_range<T>(table: &[T], range: std::ops::Range<usize>) {
    for index in range.clone().step_by((64 / size_of::<T>()).max(1)) {
        prefetch(table, index);
    }
    if let Some(last) = range.last() {
        prefetch(table, last);
    }
}

/// Prefetches the cache lines of a slice for writing. This is only a hint.
#[inline(always)]
pub fn prefetch_to_write<T>(places: &mut [T]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        let bytes = places.as_mut_ptr().cast::<i8>();
        for line in (0..size_of_val(places)).step_by(64) {
            // SAFETY: x86-64 has SSE, and takes the hint for nothing where it has no prefetch to
            // write; it changes nothing that a program could see, and the address is within the
            // slice.
            unsafe { _mm_prefetch::<_MM_HINT_ET0>(bytes.add(line)) };
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = places;
}
