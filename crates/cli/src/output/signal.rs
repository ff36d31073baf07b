//! What a signal that ends the process does and says.

use std::path::PathBuf;
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{remove, unfinished};
use crate::exit::{Failure, Status};

/// What a signal does beside removing what is unfinished, and what it says, where a command asked for it.
static FAREWELL: Mutex<Option<Farewell>> = Mutex::new(None);

type Farewell = Box<dyn FnOnce() -> Failure + Send>;

fn farewell() -> MutexGuard<'static, Option<Farewell>> {
    FAREWELL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes SIGINT, SIGTERM and SIGHUP remove what is unfinished and end the process.
pub(crate) fn clean_up_on_signal() {
    // Fails only if a handler is there already, and then that one does it.
    let _ = ctrlc::set_handler(|| {
        // The lock is kept to the end: nothing can be created or renamed any more.
        let unfinished = unfinished();
        for path in unfinished.iter() {
            remove(path);
        }
        let last_words = farewell().take();
        last_words
            .map_or_else(nothing_left, |last_words| last_words())
            .tell();
        process::exit(Status::Other as i32);
    });
}

fn nothing_left() -> Failure {
    Failure::new(
        Status::Other,
        "interrupted by a signal; nothing was left behind",
    )
}

/// While it lives, a signal does and says something else.
pub(crate) struct OnSignal(());

/// Makes a signal, beside removing what is unfinished, do `last_words` and say what that gives. It finds nobody who is
/// [`Undisturbed`].
pub(crate) fn on_signal(last_words: impl FnOnce() -> Failure + Send + 'static) -> OnSignal {
    *farewell() = Some(Box::new(last_words));
    OnSignal(())
}

impl Drop for OnSignal {
    fn drop(&mut self) {
        farewell().take();
    }
}

/// While it lives, a signal waits. Who has it must not make or commit a [`Folder`](super::Folder) or [`SingleFile`](super::SingleFile).
pub(crate) struct Undisturbed(
    #[expect(dead_code, reason = "the lock lasts as long as it is held")]
    MutexGuard<'static, Vec<PathBuf>>,
);

/// Lets signals wait.
pub(crate) fn undisturbed() -> Undisturbed {
    Undisturbed(unfinished())
}
