//! Files that appear completely or not at all, and signal handling.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

use super::exit::{Failure, Status};
use crate::results::unfinished_in;

/// A file being written: a temporary one beside its target, removed on drop.
pub(crate) struct SingleFile {
    temporary: NamedTempFile,
    target: PathBuf,
}

impl SingleFile {
    /// Prepares the file if the option was given: see [`Self::prepare`].
    pub(crate) fn optional(option: &str, target: Option<&Path>) -> Result<Option<Self>, Failure> {
        target.map(|target| Self::prepare(option, target)).transpose()
    }

    /// Checks that `target` can be written. An existing file will be replaced.
    pub(crate) fn prepare(option: &str, target: &Path) -> Result<Self, Failure> {
        let refuse = |why: &dyn std::fmt::Display| {
            Failure::usage(option, format_args!("{}: {why}", target.display()))
        };
        if target.symlink_metadata().is_ok_and(|data| !data.is_file()) {
            return Err(refuse(&"exists and is not a file"));
        }
        let temporary = unfinished_in(target).map_err(|error| refuse(&error))?;
        Ok(Self { temporary, target: target.to_owned() })
    }

    /// Writes the contents and renames the file to its final name.
    pub(crate) fn commit(mut self, contents: &[u8]) -> Result<(), Failure> {
        let failed = |error| Failure::file(&self.target, error);
        self.temporary.write_all(contents).map_err(failed)?;
        self.temporary.as_file().sync_all().map_err(failed)?;
        let _whole = undisturbed();
        let kept = self.temporary.persist(&self.target);
        kept.map(drop).map_err(|error| failed(error.error))
    }
}

/// The action and message of a signal, where a command sets them.
static LAST_WORDS: Mutex<Option<LastWords>> = Mutex::new(None);

/// Held while no signal may interrupt.
static UNDISTURBED: Mutex<()> = Mutex::new(());

type LastWords = Box<dyn FnOnce() -> Failure + Send>;

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes SIGINT, SIGTERM and SIGHUP end the process with one line.
pub(crate) fn end_on_signal() {
    // This fails only if a handler is already installed, which then does the same.
    let _ = ctrlc::set_handler(|| {
        // The lock is held to the end: nothing can be written any more.
        let _whole = undisturbed();
        let nothing = || Failure::new(Status::Other, "interrupted by a signal");
        let last_words = lock(&LAST_WORDS).take();
        last_words.map_or_else(nothing, |words| words()).tell();
        process::exit(Status::Other as i32);
    });
}

/// While this value lives, a signal has another action and message.
pub(crate) struct OnSignal(());

/// Makes a signal run `last_words` and print its result; nothing is [`undisturbed`] then.
pub(crate) fn on_signal(last_words: impl FnOnce() -> Failure + Send + 'static) -> OnSignal {
    *lock(&LAST_WORDS) = Some(Box::new(last_words));
    OnSignal(())
}

impl Drop for OnSignal {
    fn drop(&mut self) {
        lock(&LAST_WORDS).take();
    }
}

/// Makes signals wait while the guard lives.
pub(crate) fn undisturbed() -> MutexGuard<'static, ()> {
    lock(&UNDISTURBED)
}
