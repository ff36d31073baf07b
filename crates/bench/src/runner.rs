//! Cells are measured in turn: the first run of all of them, then the second, and so on, so that an hour in which the machine is
//! slower is spread over all. What was measured is in the file of the results after each run.

use std::time::Instant;

use crate::measurement::{Key, Sample};
use crate::results::Results;
use crate::{Result, machine};

/// Something to be measured.
pub struct Cell {
    /// Of what; no two cells of a list have the same.
    pub key: Key,
    /// The parameters, in words; none where there are none.
    pub plan: Option<String>,
    /// The security that these parameters claim, in bits.
    pub security_bits: Option<u32>,
    /// What is known of the cost before anything is measured.
    pub forecast: Forecast,
    /// Runs both parties once, and checks what they made.
    pub run: Box<dyn Fn() -> Result<Sample> + Send + Sync>,
}

/// What a run costs, before it is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Of computing, on a machine of 2020s; a guess.
    pub seconds: f64,
    /// Both ways, at least.
    pub bytes: f64,
    /// Round trips.
    pub round_trips: f64,
    /// What the time grows in proportion to, among cells of the same protocol, link and number of threads: once a smaller
    /// one has been measured, that decides.
    pub work: f64,
}

/// How to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Runs of each cell.
    pub runs: usize,
    /// A cell of which one run would take longer is skipped; in seconds.
    pub limit: f64,
}

/// Who is told of what happens.
pub trait Observer {
    /// A run begins: of so many cells the one with that number, the run with that number of so many; all from 1.
    fn begin(&mut self, cell: &Cell, cell_number: [usize; 2], run: [usize; 2]);
    /// A run is over.
    fn done(&mut self, cell: &Cell, sample: &Sample);
    /// A cell is skipped, since one run would take about so many seconds.
    fn skipped(&mut self, cell: &Cell, seconds: f64);
    /// All of it is to be kept now: what was measured until now.
    ///
    /// # Errors
    /// Those of writing; measuring ends with it.
    fn keep(&mut self, results: &Results) -> Result<()>;
}

impl Cell {
    /// About how many seconds a run takes: what its traffic takes on the link at least, and what it would take if the largest
    /// of the smaller ones that were measured went on as it did.
    fn foretold(&self, cells: &[Self], results: &Results) -> f64 {
        let link = &self.key.link;
        let floor = link.seconds_for(self.forecast.bytes)
            + self.forecast.round_trips * link.round_trip_seconds();
        let family = |key: &Key| (key.protocol.clone(), key.link.clone(), key.threads);
        let smaller = cells
            .iter()
            .filter(|cell| cell.key.n <= self.key.n && family(&cell.key) == family(&self.key));
        let measured = smaller.filter_map(|cell| {
            let measurement = results.find(&cell.key)?;
            let seconds = measurement.seconds().map(|spread| spread.median);
            let seconds = seconds.or(measurement.skipped_seconds)?;
            Some((cell.key.n, seconds / cell.forecast.work))
        });
        match measured.max_by_key(|(n, _)| *n) {
            Some((_, each)) => floor.max(each * self.forecast.work),
            None => floor + self.forecast.seconds,
        }
    }
}

/// About how many seconds the runs that are missing take, those not counted that will be skipped.
#[must_use]
pub fn foretell(cells: &[Cell], results: &Results, settings: Settings) -> f64 {
    let left = |cell: &Cell| {
        let have = results.find(&cell.key);
        let done = have.map_or(0, |have| have.samples.len());
        let each = cell.foretold(cells, results);
        if each > settings.limit && done == 0 {
            return 0.0;
        }
        each * settings.runs.saturating_sub(done) as f64
    };
    cells.iter().map(left).sum()
}

/// How many runs are missing, of how many.
#[must_use]
pub fn missing(cells: &[Cell], results: &Results, settings: Settings) -> [usize; 2] {
    let left = |cell: &Cell| {
        let done = results.find(&cell.key).map_or(0, |have| have.samples.len());
        settings.runs.saturating_sub(done)
    };
    [cells.iter().map(left).sum(), cells.len() * settings.runs]
}

/// Measures what is missing in `results`, which holds the sitting in which it is done as its last.
///
/// # Errors
/// Those of the runs, and of `observer` where it keeps them. What was measured until then is in `results`.
///
/// # Panics
/// If `results` has no sitting.
pub fn run(
    cells: &[Cell],
    results: &mut Results,
    settings: Settings,
    observer: &mut impl Observer,
) -> Result<()> {
    let sitting = results.sittings.len() - 1;
    for run in 1..=settings.runs {
        for (number, cell) in cells.iter().enumerate() {
            let have = results.find(&cell.key);
            if have.is_some_and(|have| have.samples.len() >= run) {
                continue;
            }
            let seconds = cell.foretold(cells, results);
            if seconds > settings.limit && have.is_none_or(|have| have.samples.is_empty()) {
                results.entry(cell).skipped_seconds = Some(seconds);
                if run == 1 {
                    observer.skipped(cell, seconds);
                }
                continue;
            }
            observer.begin(cell, [number + 1, cells.len()], [run, settings.runs]);
            machine::forget_peak_memory();
            let begin = Instant::now();
            let mut sample = (cell.run)()?;
            sample.sitting = sitting;
            sample.peak_bytes = machine::peak_memory();
            observer.done(cell, &sample);
            results.sittings[sitting].seconds += begin.elapsed().as_secs_f64();
            let entry = results.entry(cell);
            entry.skipped_seconds = None;
            entry.samples.push(sample);
            observer.keep(results)?;
        }
    }
    Ok(())
}
