//! Clean-up and message when a signal ends the process.

use std::process;

use super::{remove, unfinished};
use crate::exit::{Failure, Status};

/// Makes SIGINT, SIGTERM and SIGHUP remove unfinished output and end the process.
pub(crate) fn clean_up_on_signal() {
    // This fails only if a handler is already installed, which then does the same.
    let _ = ctrlc::set_handler(|| {
        let failure = nothing_left();
        crate::report::report_failure(&failure, true);
        // The lock is held to the end: nothing can be created or renamed any more.
        let unfinished = unfinished();
        for path in unfinished.iter() {
            remove(path);
        }
        failure.print();
        process::exit(Status::Other as i32);
    });
}

fn nothing_left() -> Failure {
    Failure::new(
        Status::Other,
        "interrupted by a signal; all unfinished output was removed",
    )
}
