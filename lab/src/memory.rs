//! Allocator settings, and the peak memory of a run.
//!
//! glibc returns large blocks to the system, which clears them page by page when glibc takes them
//! again. A run that does so while it is timed takes one of two times: Ferret's uniform setup 0.6
//! or 2.7 s. So `volery-bench` restarts itself once with [`KEPT`] in its environment, and memory
//! stays in the process. With another C library these variables have no effect.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::machine::kibibytes;

/// No separate mapping for a large allocation, no trimming, one arena for all threads.
pub(crate) const KEPT: [(&str, &str); 3] = [
    ("MALLOC_MMAP_MAX_", "0"),
    ("MALLOC_TRIM_THRESHOLD_", "200000000000"),
    ("MALLOC_ARENA_MAX", "1"),
];

/// This variable, set to `system`, leaves the allocator as it is.
pub(crate) const ALLOCATOR: &str = "VOLERY_BENCH_ALLOCATOR";

/// Growth above the memory already held, in bytes, that counts as fresh memory.
const FRESH: u64 = 16 << 20;

/// Whether this process was started with [`KEPT`].
pub(crate) fn is_kept() -> bool {
    KEPT.iter().all(|(name, value)| env::var_os(name).is_some_and(|have| have == *value))
}

/// Restarts this program with [`KEPT`], in the same process, unless it was started so or
/// [`ALLOCATOR`] forbids it. If that fails the program continues unchanged, and the machine's
/// record says so.
pub(crate) fn keep() {
    if is_kept() || env::var_os(ALLOCATOR).is_some_and(|value| value == "system") {
        return;
    }
    let mut arguments = env::args_os();
    let Ok(program) = env::current_exe() else {
        return;
    };
    let mut command = Command::new(program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    // The call returns only if it failed.
    let _ = command.args(arguments).envs(KEPT).exec();
}

/// The memory of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// The peak memory of the process in bytes, where the system reports it, including memory that
    /// its allocator keeps.
    pub(crate) peak: Option<u64>,
    /// The process had to take much more memory than it held, which is a part of the time of the
    /// run.
    pub(crate) fresh: bool,
}

/// Runs the work and returns the memory it took.
pub(crate) fn watch<T>(work: impl FnOnce() -> T) -> (T, Memory) {
    let held = status("VmRSS:");
    let forgotten = std::fs::write("/proc/self/clear_refs", "5").is_ok();
    let done = work();
    let peak = forgotten.then(peak).flatten();
    let grown = peak.zip(held).map(|(peak, held)| peak.saturating_sub(held));
    let fresh = grown.is_some_and(|grown| grown > FRESH);
    (done, Memory { peak, fresh })
}

/// The peak memory of this process since its start or the last run, in bytes, where the system
/// reports it.
fn peak() -> Option<u64> {
    status("VmHWM:")
}

fn status(name: &str) -> Option<u64> {
    kibibytes(&std::fs::read_to_string("/proc/self/status").ok()?, name)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    /// More than the other tests hold at the same time.
    const MUCH: usize = 1 << 30;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_run_took_is_told_of_it_alone() {
        let ((), much) = watch(|| drop(black_box(vec![1_u8; MUCH])));
        assert!(much.peak > Some(MUCH as u64), "{much:?}");
        let ((), little) = watch(|| ());
        let less = little.peak.map(|peak| peak + (300 << 20));
        assert!(less < much.peak, "{little:?}, {much:?}");
    }
}
