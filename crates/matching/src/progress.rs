//! Progress of a run.

use volery_psi::{Phase, Watch};

/// An observer of a run. `()` ignores all reports.
pub trait Progress {
    /// A phase of `steps` steps begins (0: unknown); the previous phase is over.
    fn begin(&mut self, phase: &'static str, steps: u64);

    /// `steps` steps of the phase are done by now.
    fn done(&mut self, steps: u64);

    /// See [`Watch::touched`].
    fn touched(&mut self, _items: u64) {}

    /// A fact worth telling once, such as why a protocol was chosen.
    fn note(&mut self, _text: &str) {}
}

impl Progress for () {
    fn begin(&mut self, _: &'static str, _: u64) {}

    fn done(&mut self, _: u64) {}
}

/// Hands the phases of a protocol on: all of them in a run of one part, none in others, whose
/// phases are their parts.
pub struct Inner<'a> {
    /// The observer of the run.
    pub progress: &'a mut dyn Progress,
    /// Whether the run has one part.
    pub shown: bool,
}

impl Watch for Inner<'_> {
    fn begin(&mut self, phase: Phase, steps: u64) {
        if self.shown {
            self.progress.begin(phase.name(), steps);
        }
    }

    fn done(&mut self, steps: u64) {
        if self.shown {
            self.progress.done(steps);
        }
    }

    fn touched(&mut self, items: u64) {
        self.progress.touched(items);
    }
}
