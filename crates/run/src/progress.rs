//! The phases of a run on the terminal, or for a caller.

use volery_matching::Progress;

use crate::reporter::{Bar, Reporter};

/// Shows the phases of a run.
pub struct PhaseProgress<'a> {
    /// Tells them.
    pub reporter: &'a Reporter,
    bar: Option<Bar>,
}

impl<'a> PhaseProgress<'a> {
    /// Shows the phases by `reporter`.
    pub fn new(reporter: &'a Reporter) -> Self {
        Self { reporter, bar: None }
    }

    /// Ends the last phase.
    pub fn end(&mut self) {
        self.clear();
        self.reporter.end();
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Progress for PhaseProgress<'_> {
    fn begin(&mut self, phase: &'static str, steps: u64) {
        self.clear();
        self.bar = Some(self.reporter.phase(phase, steps));
    }

    fn done(&mut self, steps: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(steps);
        }
    }

    fn note(&mut self, text: &str) {
        self.reporter.explain(text);
    }
}
