//! Conversion of panics of the libraries at damaged files to errors.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::error::{Result, damaged};
use crate::format::Format;

thread_local! {
    /// Whether this thread is in a call of the library, in which a panic means a damaged file.
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `decode`, a call of the library for `format`; a panic in it is reported as a damaged file,
/// of which `after` rows were readable.
///
/// The state of `decode` must not be used again after an error. The first call installs a panic
/// hook in front of the existing one, which suppresses these panics only: their messages may quote
/// from the file.
pub(crate) fn guarded<T>(
    format: Format,
    after: u64,
    decode: impl FnOnce() -> Result<T>,
) -> Result<T> {
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
    result.unwrap_or_else(|_| Err(damaged(format, after, "the library panicked")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Problem;

    #[test]
    fn a_panic_is_a_damaged_file() {
        let result: Result<(), _> = guarded(Format::Parquet, 7, || panic!("at the file"));
        assert!(matches!(result, Err(Problem::Damaged { after: 7, .. })));
        assert!(!DECODING.get());
        assert!(matches!(guarded(Format::Parquet, 0, || Ok(5)), Ok(5)));
    }
}
