//! The Parquet library panics at some damaged files. A user's file is no reason to panic.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::error::Problem;

thread_local! {
    /// Whether this thread is inside the library, where a panic means a damaged file.
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `decode`, a call of the Parquet library; a panic in it is a damaged file, of which `after` rows could be read.
///
/// What `decode` works on must not be used again after an error. The first call puts a panic hook in front of the one
/// there is, which keeps silent about these panics only: their messages may quote from the file.
pub(super) fn guarded<T>(
    after: u64,
    decode: impl FnOnce() -> Result<T, Problem>,
) -> Result<T, Problem> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !DECODING.get() {
                previous(info);
            }
        }));
    });
    let outer = DECODING.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(decode));
    DECODING.set(outer);
    result.unwrap_or_else(|_| Err(super::damaged(after, "the library gave up")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_damaged_file() {
        let result: Result<(), _> = guarded(7, || panic!("at the file"));
        assert!(matches!(result, Err(Problem::Damaged { after: 7, .. })));
        assert!(!DECODING.get());
        assert!(matches!(guarded(0, || Ok(5)), Ok(5)));
    }
}
