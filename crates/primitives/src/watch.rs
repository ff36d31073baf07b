//! An allocator that searches every freed block, and can search all blocks in use: for tests of
//! whether secrets are wiped. Present only with the feature `testing`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::collections::HashSet;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{mem, ptr};

use zeroize::Zeroizing;

/// The system's allocator, with zeroed memory and a list of all blocks in use. The
/// `global_allocator` of a test program that calls [`blocks_with`].
#[derive(Debug)]
pub struct WatchingAllocator;

/// The header before each block.
#[repr(C)]
struct Header {
    previous: *mut Self,
    next: *mut Self,
    size: usize,
}

/// Blocks in use, each linked with the next.
static FIRST: AtomicPtr<Header> = AtomicPtr::new(ptr::null_mut());
/// Held while the list is read or changed.
static LOCKED: AtomicBool = AtomicBool::new(false);
/// The secrets to search for; null: none.
static WANTED: AtomicPtr<SecretWords> = AtomicPtr::new(ptr::null_mut());
/// Number of freed blocks that held a secret.
static HITS: AtomicUsize = AtomicUsize::new(0);
/// The places where the first of them were freed.
static PLACES: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    /// Whether this thread is recording a hit, which frees memory itself.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

fn with_list<T>(work: impl FnOnce() -> T) -> T {
    while LOCKED.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        spin_loop();
    }
    let out = work();
    LOCKED.store(false, Ordering::Release);
    out
}

/// The layout of a block with its header, and where in it the block begins; `None` if memory has
/// no place for it.
fn whole(layout: Layout) -> Option<(Layout, usize)> {
    let front = layout.align().max(size_of::<Header>().next_power_of_two());
    let size = front.checked_add(layout.size())?;
    let align = layout.align().max(align_of::<Header>());
    Some((Layout::from_size_align(size, align).ok()?, front))
}

// SAFETY: blocks are those of the system's allocator, moved up by `front`, which keeps their
// alignment; `dealloc` computes the same `front` from the same layout. `realloc` is the default
// one: a new block, a copy, and `dealloc`.
unsafe impl GlobalAlloc for WatchingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((whole, front)) = whole(layout) else {
            return ptr::null_mut();
        };
        // SAFETY: the size is not zero, as there is a header. Zeroed: what is read when it is freed
        // is initialised.
        let start = unsafe { System.alloc_zeroed(whole) };
        if start.is_null() {
            return start;
        }
        // SAFETY: inside of what was just allocated.
        let block = unsafe { start.add(front) };
        let header = block.cast::<Header>().wrapping_sub(1);
        with_list(|| {
            let next = FIRST.load(Ordering::Relaxed);
            // SAFETY: `header` lies in front of the block, in memory of our own and aligned; the
            // list holds headers of blocks that are in use, and this thread holds its lock.
            unsafe {
                header.write(Header { previous: ptr::null_mut(), next, size: layout.size() });
                if !next.is_null() {
                    (*next).previous = header;
                }
            }
            FIRST.store(header, Ordering::Relaxed);
        });
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller gives a block of this allocator back, which nobody else uses any more.
        if unsafe { holds_wanted(block, layout.size()) } {
            record_hit(layout.size());
        }
        let (whole, front) = whole(layout).expect("`alloc` found a place for it");
        let header = block.cast::<Header>().wrapping_sub(1);
        with_list(|| {
            // SAFETY: as in `alloc`.
            unsafe {
                let Header { previous, next, .. } = header.read();
                if previous.is_null() {
                    FIRST.store(next, Ordering::Relaxed);
                } else {
                    (*previous).next = next;
                }
                if !next.is_null() {
                    (*next).previous = previous;
                }
            }
        });
        // SAFETY: what `alloc` got from the system for this layout.
        unsafe { System.dealloc(block.wrapping_sub(front), whole) };
    }
}

/// Records a block of `size` bytes that the caller freed.
fn record_hit(size: usize) {
    HITS.fetch_add(1, Ordering::Relaxed);
    let _ = BUSY.try_with(|busy| {
        if !busy.replace(true) {
            let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
            if places.len() < 4 {
                let place = Backtrace::force_capture();
                places.push(format!("{size} bytes, freed at\n{place}"));
            }
            drop(places);
            busy.set(false);
        }
    });
}

/// Words that must not be found, each plus [`MASK`]: the list itself is in memory.
struct SecretWords {
    words: HashSet<u64>,
    /// A filter with one bit for each word, selected by some of its own bits.
    filter: Vec<u64>,
}

const MASK: u64 = 0x5851_f42d_4c95_7f2d;

/// Bits of the filter, as a binary logarithm.
const FILTER: u32 = 20;

fn place(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER)) as usize
}

impl SecretWords {
    fn new(secrets: &[u8]) -> Self {
        let words: HashSet<u64> = secrets
            .as_chunks()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            // Small numbers occur everywhere.
            .filter(|word| word.count_ones().min(word.count_zeros()) >= 12)
            .map(|word| word ^ MASK)
            .collect();
        let mut filter = vec![0; 1 << (FILTER - 6)];
        for &word in &words {
            filter[place(word) / 64] |= 1 << (place(word) % 64);
        }
        Self { words, filter }
    }

    fn has(&self, word: u64) -> bool {
        let word = word ^ MASK;
        let place = place(word);
        self.filter[place / 64] >> (place % 64) & 1 == 1 && self.words.contains(&word)
    }
}

/// Whether one of the wanted words occurs in a block, at any position.
///
/// # Safety
/// The block is `size` bytes that can be read.
unsafe fn holds_wanted(block: *const u8, size: usize) -> bool {
    let wanted = WANTED.load(Ordering::Acquire);
    if wanted.is_null() {
        return false;
    }
    // SAFETY: it is never freed.
    let wanted = unsafe { &*wanted };
    let mut word = 0;
    for i in 0..size {
        // SAFETY: inside of the block. All of its bytes were zero when it was allocated; volatile,
        // so that the read is of the memory, whatever the compiler thinks of what was written
        // there.
        let byte = unsafe { block.add(i).read_volatile() };
        word = word >> 8 | u64::from(byte) << 56;
        if i >= 7 && wanted.has(word) {
            return true;
        }
    }
    false
}

/// Returns an error if blocks held eight bytes of `secrets` in a row when they were freed while
/// `work` ran, or if blocks hold them after it. `secrets` is split into pieces of eight bytes;
/// pieces with few ones or few zeros are skipped.
///
/// One at a time: concurrent tests would have the same secrets in memory. The threads of `work` end
/// before it does, except those of a pool, which then wait.
///
/// # Errors
/// The number of such blocks, and where the first of them were freed.
///
/// # Panics
/// If `secrets` has no piece to search for.
pub fn blocks_with(
    secrets: impl Into<Zeroizing<Vec<u8>>>,
    work: impl FnOnce(),
) -> Result<(), String> {
    let secrets = secrets.into();
    let wanted = SecretWords::new(&secrets);
    drop(secrets);
    assert!(!wanted.words.is_empty(), "the list of secrets is not empty");
    // Never freed: a thread may be reading it.
    let wanted = Box::leak(Box::new(wanted));
    HITS.store(0, Ordering::Relaxed);
    WANTED.store(wanted, Ordering::Release);
    work();
    let live = live_blocks();
    WANTED.store(ptr::null_mut(), Ordering::Release);
    let freed = HITS.load(Ordering::Relaxed);
    let places = mem::take(&mut *PLACES.lock().unwrap_or_else(PoisonError::into_inner));
    if freed + live == 0 {
        return Ok(());
    }
    Err(format!(
        "{freed} blocks were freed with secrets in them, {live} are still there\n{}",
        places.join("\n")
    ))
}

/// Number of blocks in use that hold a secret. No other thread writes to one meanwhile: that is for
/// the caller of [`blocks_with`] to see to.
fn live_blocks() -> usize {
    with_list(|| {
        let mut found = 0;
        let mut header = FIRST.load(Ordering::Relaxed);
        while !header.is_null() {
            // SAFETY: a header of the list, whose lock this thread holds: the block is not freed
            // meanwhile, and no other thread uses it.
            unsafe {
                let block = header.wrapping_add(1).cast::<u8>();
                found += usize::from(holds_wanted(block, (*header).size));
                header = (*header).next;
            }
        }
        found
    })
}
