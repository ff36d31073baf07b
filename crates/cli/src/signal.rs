//! Clean-up and message when a signal ends the process.

use std::process;
use std::sync::Arc;

use volery_channel::Cancel;
use volery_run::failure::{Failure, Status};
use volery_run::output::{remove, unfinished};
use volery_run::report::report_failure;
use volery_run::reporter::Reporter;

use crate::terminal::Terminal;

/// Makes SIGINT, SIGTERM and SIGHUP remove unfinished output and end the process.
///
/// `reporter` is that of the only run of the process, whose report then says so.
pub(crate) fn clean_up_on_signal(terminal: Arc<Terminal>, reporter: Reporter) {
    // This fails only if a handler is already installed, which then does the same.
    let _ = ctrlc::set_handler(move || {
        let failure = nothing_left();
        report_failure(&failure, &reporter);
        // The lock is held to the end: nothing can be created or renamed any more.
        let unfinished = unfinished();
        for path in unfinished.iter() {
            remove(path);
        }
        terminal.fail(&failure, &reporter);
        process::exit(Status::Other as i32);
    });
}

/// Makes SIGINT, SIGTERM and SIGHUP cancel, for a subcommand that then ends by itself.
pub(crate) fn end_on_signal(cancel: Cancel) {
    // This fails only if a handler is already installed, which then ends the process.
    let _ = ctrlc::set_handler(move || cancel.cancel());
}

/// Does what [`end_on_signal`] does; a second signal ends the process at once.
#[cfg(unix)]
pub(crate) fn end_on_second_signal(cancel: Cancel) {
    let _ = ctrlc::set_handler(move || {
        if cancel.is_cancelled() {
            process::exit(Status::Other as i32);
        }
        cancel.cancel();
    });
}

fn nothing_left() -> Failure {
    Failure::new(Status::Other, "interrupted by a signal; all unfinished output was removed")
}
