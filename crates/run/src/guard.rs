//! Around every run: the level of the processor, and panics as failures.

use std::panic::{AssertUnwindSafe, catch_unwind};

use volery_primitives::cpu::Cpu;

use crate::failure::{Failure, Result, Status};
use crate::reporter::Reporter;

/// The begin of the message of a run that panicked.
pub const PANICKED: &str = "internal error in volery";

/// Runs `body`; turns a panic, and the end of a cancelled run, into a failure. Either has unwound
/// through the guards that remove unfinished output and close the connection.
///
/// # Errors
/// The errors of `body`, and these two.
pub fn guarded<T>(reporter: &Reporter, body: impl FnOnce() -> Result<T>) -> Result<T> {
    check_level()?;
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(Status::Other, format_args!("{PANICKED}, described above"))
            .with_hint("report it together with the command line"),
    };
    Err(match reporter.cancel().is_cancelled() {
        true => Failure::new(Status::Other, "cancelled"),
        false => failure,
    })
}

/// Checks `VOLERY_CPU`, without which the first kernel would panic.
pub(crate) fn check_level() -> Result<()> {
    Cpu::check().map_err(|error| {
        Failure::new(Status::Usage, error).with_hint("name one of them, or unset the variable")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_that_says_so() {
        let reporter = Reporter::for_tests();
        let failed = guarded(&reporter, || -> Result<()> { panic!("a test") });
        let failure = failed.expect_err("the body panics");
        assert!(failure.message().starts_with(PANICKED), "{failure}");
        assert_eq!(failure.status(), Status::Other);
        assert!(guarded(&reporter, || Ok(())).is_ok());
    }
}
