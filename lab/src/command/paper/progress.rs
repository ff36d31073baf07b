//! Progress of the measurements.

use std::time::{Duration, Instant};

use crate::Result;
use crate::measurement::Sample;
use crate::results::Results;
use crate::runner::{self, Cell, Left, Observer, Settings};
use indicatif::ProgressBar;

use super::store::Store;
use crate::command::options::Reporter;

/// Interval of predictions of the remaining time: each takes a moment with many cells.
const FORETELL_EVERY: Duration = Duration::from_secs(1);

/// Observes the runs: reports the current measurement and the remaining time, and has the results
/// saved.
pub(super) struct Progress<'a> {
    cells: &'a [Cell],
    settings: Settings,
    reporter: Reporter,
    bar: ProgressBar,
    keeper: &'a Store,
    predicted: Instant,
    run: [usize; 2],
}

impl<'a> Progress<'a> {
    pub(super) fn new(
        cells: &'a [Cell],
        settings: Settings,
        reporter: Reporter,
        bar: ProgressBar,
        keeper: &'a Store,
        left: Left,
    ) -> Self {
        bar.set_length(left.runs as u64);
        bar.set_prefix(duration(left.seconds));
        Self {
            cells,
            settings,
            reporter,
            bar,
            keeper,
            predicted: Instant::now(),
            run: [0; 2],
        }
    }

    /// Ends the measurements.
    pub(super) fn over(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Progress<'_> {
    fn begin(&mut self, cell: &Cell, run: [usize; 2]) {
        self.run = run;
        let [run, runs] = run;
        self.bar
            .set_message(format!("{}, run {run} of {runs}", cell.key));
        self.bar.tick();
    }

    fn done(&mut self, cell: &Cell, sample: &Sample) {
        let [run, runs] = self.run;
        let phases: Vec<_> = sample
            .phases
            .iter()
            .map(|phase| format!("{} {:.3} s", phase.name, phase.seconds))
            .collect();
        let line = format!(
            "run {run} of {runs}: {}: {}, {} bytes, {} messages",
            cell.key,
            phases.join(", "),
            sample.bytes(),
            sample.messages(),
        );
        self.bar.suspend(|| self.reporter.explain(line));
    }

    fn skipped(&mut self, cell: &Cell, seconds: f64) {
        let line = format!("left out: {}: about {seconds:.0} s a run", cell.key);
        self.bar.suspend(|| self.reporter.explain(line));
    }

    fn keep(&mut self, results: &Results) -> Result<()> {
        self.bar.inc(1);
        if !self.bar.is_hidden() && self.predicted.elapsed() >= FORETELL_EVERY {
            let left = runner::foretell(self.cells, results, self.settings);
            self.bar.set_length(self.bar.position() + left.runs as u64);
            self.bar.set_prefix(duration(left.seconds));
            self.predicted = Instant::now();
        }
        self.keeper.keep(results)
    }
}

/// A predicted time: `less than a minute`, `about 7 minutes`, `about 2 h 5 min`.
pub(super) fn duration(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match minutes {
        0 => "less than a minute".to_owned(),
        1 => "about a minute".to_owned(),
        2..120 => format!("about {minutes} minutes"),
        _ => format!("about {} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (seconds, text) in [
            (0.0, "less than a minute"),
            (29.0, "less than a minute"),
            (31.0, "about a minute"),
            (425.0, "about 7 minutes"),
            (7500.0, "about 2 h 5 min"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
