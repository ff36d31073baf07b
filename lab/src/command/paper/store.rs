//! Saves the results while they are measured.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Result;
use crate::results::Results;

use super::super::exit::{Failure, Status};
use super::super::output::undisturbed;

/// Least interval between two saves, so that runs of milliseconds are not saved one by one.
const AT_MOST_EVERY: Duration = Duration::from_secs(2);

/// Keeps the results in their file, saving at most once per interval, and at a signal.
pub(super) struct Store {
    path: PathBuf,
    /// Locked after [`undisturbed`], in the same order as a signal does.
    state: Mutex<State>,
}

struct State {
    /// Whether the data is newer than the file.
    unsaved: Option<Results>,
    /// Number of existing runs.
    runs: usize,
    saved: Option<Instant>,
}

impl Store {
    pub(super) fn new(path: PathBuf, results: &Results) -> Self {
        let state = State { unsaved: None, runs: runs(results), saved: None };
        Self { path, state: Mutex::new(state) }
    }

    /// The path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Saves the results, or postpones it if they were saved just before.
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

    /// Saves the results.
    pub(super) fn keep_now(&self, results: &Results) -> Result<()> {
        let _whole = undisturbed();
        let mut state = self.state();
        results.save(&self.path)?;
        *state = State { unsaved: None, runs: runs(results), saved: Some(Instant::now()) };
        Ok(())
    }

    /// Saves unsaved results when a signal ends the program; returns the message.
    pub(super) fn last_words(&self) -> Failure {
        let mut state = self.state();
        let saved = state.unsaved.take().map_or(Ok(()), |results| results.save(&self.path));
        let (runs, path) = (state.runs, self.path.display());
        match saved {
            Ok(()) if runs == 0 => {
                Failure::new(Status::Other, "interrupted by a signal before the first run ended")
            }
            Ok(()) => Failure::new(
                Status::Other,
                format_args!("interrupted by a signal; runs that are kept in {path}: {runs}"),
            )
            .with_hint("the same command continues from there"),
            Err(error) => Failure::new(
                Status::Other,
                format_args!("interrupted by a signal; the last runs could not be saved: {error}"),
            ),
        }
    }

    /// Also after a panic in another thread: the data is valid at every moment.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs of all measurements.
fn runs(results: &Results) -> usize {
    let runs = results.measurements.iter().map(|one| one.samples.len());
    runs.sum()
}
