//! Who writes the results down while they come.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use volery_bench::Result;
use volery_bench::results::Results;

use crate::exit::{Failure, Status};
use crate::output::undisturbed;

/// Runs of milliseconds are not written down one by one.
const AT_MOST_EVERY: Duration = Duration::from_secs(2);

/// Keeps the results in their file: at most as often as that, and at a signal.
pub(super) struct Keeper {
    path: PathBuf,
    /// Locked after [`undisturbed`], as a signal does it.
    state: Mutex<State>,
}

struct State {
    /// Newer than what is in the file.
    unsaved: Option<Results>,
    /// Runs that there are.
    runs: usize,
    saved: Option<Instant>,
}

impl Keeper {
    pub(super) fn new(path: PathBuf, results: &Results) -> Self {
        let state = State {
            unsaved: None,
            runs: runs(results),
            saved: None,
        };
        Self {
            path,
            state: Mutex::new(state),
        }
    }

    /// Where they are kept.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the results down, or keeps them until later if that was done just now.
    pub(super) fn keep(&self, results: &Results) -> Result<()> {
        let just_now = |saved: Instant| saved.elapsed() < AT_MOST_EVERY;
        if self.state().saved.is_none_or(|saved| !just_now(saved)) {
            return self.keep_now(results);
        }
        let mut state = self.state();
        state.unsaved = Some(results.clone());
        state.runs = runs(results);
        Ok(())
    }

    /// Writes the results down.
    pub(super) fn keep_now(&self, results: &Results) -> Result<()> {
        let _whole = undisturbed();
        let mut state = self.state();
        results.save(&self.path)?;
        *state = State {
            unsaved: None,
            runs: runs(results),
            saved: Some(Instant::now()),
        };
        Ok(())
    }

    /// Writes down what is not, when a signal ends the program; gives what there is to say.
    pub(super) fn last_words(&self) -> Failure {
        let mut state = self.state();
        let saved = state
            .unsaved
            .take()
            .map_or(Ok(()), |results| results.save(&self.path));
        let (runs, path) = (state.runs, self.path.display());
        match saved {
            Ok(()) if runs == 0 => Failure::new(
                Status::Other,
                "interrupted by a signal before the first run was over",
            ),
            Ok(()) => Failure::new(
                Status::Other,
                format_args!("interrupted by a signal; runs that are kept in {path}: {runs}"),
            )
            .hint("the same command goes on from there"),
            Err(error) => Failure::new(
                Status::Other,
                format_args!("interrupted by a signal, and the last runs are lost: {error}"),
            ),
        }
    }

    /// Also after a panic elsewhere: it is valid at every moment.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs of all measurements.
fn runs(results: &Results) -> usize {
    let runs = results.measurements.iter().map(|one| one.samples.len());
    runs.sum()
}
