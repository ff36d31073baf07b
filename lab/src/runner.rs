//! Measures cells in turn: the first run of all of them, then the second, and so on, so that a
//! period in which the machine is slower affects all cells. The caller may save the results
//! after each run.
//!
//! A run that takes memory that the process did not hold before is repeated and does not count: see
//! [`crate::memory`].

use std::time::Instant;

use crate::measurement::{Key, Measurement, Sample};
use crate::results::Results;
use crate::{Error, Result, machine, memory};

/// One measurement of a list.
pub(crate) struct Cell {
    /// The key; no two cells of a list have the same.
    pub(crate) key: Key,
    /// The parameters, in words; `None` if there are none.
    pub(crate) plan: Option<String>,
    /// The security that these parameters claim, in bits.
    pub(crate) security_bits: Option<u32>,
    /// The seconds of a run over its link on a machine of the 2020s, an estimate: once a smaller
    /// cell has been measured, their ratio predicts this one.
    pub(crate) seconds: f64,
    /// Runs both parties once, and checks their outputs.
    pub(crate) run: Box<dyn Fn() -> Result<Sample> + Send + Sync>,
}

/// The settings of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Runs of each cell.
    pub(crate) runs: usize,
    /// A cell whose runs would take longer than this many seconds is skipped.
    pub(crate) limit: f64,
}

impl Cell {
    /// A measurement of this cell without samples.
    fn unmeasured(&self) -> Measurement {
        Measurement {
            key: self.key.clone(),
            plan: self.plan.clone(),
            security_bits: self.security_bits,
            skipped_seconds: None,
            samples: Vec::new(),
        }
    }

    /// The predicted seconds of a run: extrapolated from the largest measured cell up to its size
    /// of the same protocol, link and number of threads; without one, the estimate.
    fn predicted(&self, cells: &[Self], results: &Results) -> f64 {
        let family = |key: &Key| (key.protocol.clone(), key.link.clone(), key.threads);
        let up_to = cells
            .iter()
            .filter(|cell| cell.key.n <= self.key.n && family(&cell.key) == family(&self.key));
        let measured = up_to.filter_map(|cell| {
            let seconds = results.find(&cell.key)?.wall_seconds()?;
            Some((cell.key.n, seconds / cell.seconds))
        });
        if let Some((_, each)) = measured.max_by_key(|(n, _)| *n) {
            return each * self.seconds;
        }
        self.seconds
    }
}

/// The measurements still to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Left {
    pub(crate) runs: usize,
    /// Their predicted seconds.
    pub(crate) seconds: f64,
    /// Cells that will be skipped, as predicted now; the numbers above exclude them.
    pub(crate) skipped: usize,
}

/// Predicts the measurements still to be made.
pub(crate) fn foretell(cells: &[Cell], results: &Results, settings: Settings) -> Left {
    let mut left = Left { runs: 0, seconds: 0.0, skipped: 0 };
    for cell in cells {
        let done = results.find(&cell.key).map_or(0, |have| have.samples.len());
        let each = cell.predicted(cells, results);
        if each > settings.limit && done == 0 {
            left.skipped += 1;
        } else {
            let runs = settings.runs.saturating_sub(done);
            left.runs += runs;
            left.seconds += each * runs as f64;
        }
    }
    left
}

/// Measures the missing runs of `results`, whose last session is the current one, and calls `after`
/// with the measurement and all results after each.
pub(crate) fn run(
    cells: &[Cell],
    results: &mut Results,
    settings: Settings,
    after: &mut impl FnMut(&Measurement, &Results) -> Result<()>,
) -> Result<()> {
    same_parameters(cells, results)?;
    for round in 1..=settings.runs {
        measure_up_to(round, cells, results, settings, after)?;
    }
    // A skipped cell may turn out to be fast enough when the smaller ones have been measured more
    // often.
    while measure_up_to(settings.runs, cells, results, settings, after)? {}
    Ok(())
}

/// Measures each cell that has fewer runs than `count` once. Returns whether there was one.
fn measure_up_to(
    runs: usize,
    cells: &[Cell],
    results: &mut Results,
    settings: Settings,
    after: &mut impl FnMut(&Measurement, &Results) -> Result<()>,
) -> Result<bool> {
    let mut any = false;
    for cell in cells {
        let done = results.find(&cell.key).map_or(0, |have| have.samples.len());
        if done >= runs {
            continue;
        }
        let seconds = cell.predicted(cells, results);
        if done == 0 && seconds > settings.limit {
            let entry = results.entry(cell.unmeasured());
            entry.skipped_seconds = Some(seconds);
            continue;
        }
        let sample = measure(cell, results)?;
        let sitting = results.sittings.last_mut().expect("run() requires a session");
        sitting.seconds += sample.wall_seconds;
        sitting.load_after = machine::load();
        let entry = results.entry(cell.unmeasured());
        entry.skipped_seconds = None;
        entry.samples.push(sample);
        let one = results.find(&cell.key).expect("it was measured");
        after(one, results)?;
        any = true;
    }
    Ok(any)
}

/// One run. If the process keeps its memory, a run that took fresh memory is repeated and does not
/// count: the next run finds that memory in the process.
fn measure(cell: &Cell, results: &Results) -> Result<Sample> {
    let (mut sample, fresh) = once(cell)?;
    if fresh && memory::is_kept() {
        (sample, _) = once(cell)?;
    }
    sample.sitting = results.sittings.len() - 1;
    Ok(sample)
}

/// One run, and whether it took fresh memory.
fn once(cell: &Cell) -> Result<(Sample, bool)> {
    let ((sample, wall_seconds), memory) = memory::watch(|| {
        let begin = Instant::now();
        ((cell.run)(), begin.elapsed().as_secs_f64())
    });
    let sample = sample
        .map_err(|error| Error::Run { key: Box::new(cell.key.clone()), error: Box::new(error) })?;
    let sample = Sample { wall_seconds, peak_bytes: memory.peak, ..sample };
    Ok((sample, memory.fresh))
}

/// Medians over runs with different parameters are meaningless.
fn same_parameters(cells: &[Cell], results: &Results) -> Result<()> {
    for cell in cells {
        let Some(have) = results.find(&cell.key).filter(|have| !have.samples.is_empty()) else {
            continue;
        };
        if (&have.plan, have.security_bits) != (&cell.plan, cell.security_bits) {
            let words = |plan: &Option<String>| plan.clone().unwrap_or_else(|| "none".to_owned());
            return Err(Error::protocol(format_args!(
                "{}: measured before with other parameters ({}; now {}): use another file to keep the old results",
                cell.key,
                words(&have.plan),
                words(&cell.plan)
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::measurement::Phase;
    use crate::results::BenchmarkSession;

    const SETTINGS: Settings = Settings { runs: 3, limit: 10.0 };

    /// Measures, and returns a word for each run.
    fn run_all(cells: &[Cell], results: &mut Results, settings: Settings) -> Vec<String> {
        let mut words = Vec::new();
        let mut after = |one: &Measurement, _: &Results| {
            words.push(format!("{}{} {}", one.key.protocol, one.key.n, one.samples.len()));
            assert!(one.samples.last().is_some_and(|sample| sample.peak_bytes.is_some()));
            Ok(())
        };
        run(cells, results, settings, &mut after).expect("all runs succeed");
        words
    }

    /// A cell that reports a tenth of a second for each of its `n` outputs.
    fn cell(protocol: &str, n: u64) -> Cell {
        Cell {
            key: Key::example(protocol, n),
            plan: None,
            security_bits: None,
            seconds: n as f64 / 1000.0,
            run: Box::new(move || {
                Ok(Sample {
                    phases: vec![Phase::example("all", n, n as f64 / 10.0, n)],
                    ..Sample::default()
                })
            }),
        }
    }

    fn results() -> Results {
        let mut results = Results::new("test");
        results.sittings.push(BenchmarkSession::example());
        results
    }

    #[test]
    fn first_runs_of_all_come_first_and_a_second_call_goes_on() {
        let cells = [cell("a", 1), cell("b", 1)];
        let mut results = results();
        let once = Settings { runs: 1, ..SETTINGS };
        assert_eq!(run_all(&cells, &mut results, once), ["a1 1", "b1 1"]);
        assert_eq!(foretell(&cells, &results, SETTINGS).runs, 4);
        results.sittings.push(BenchmarkSession::example());
        assert_eq!(run_all(&cells, &mut results, SETTINGS), ["a1 2", "b1 2", "a1 3", "b1 3"]);
        let sittings = |key| {
            let samples = &results.find(key).expect("the cell was measured").samples;
            samples.iter().map(|sample| sample.sitting).collect::<Vec<_>>()
        };
        assert_eq!(sittings(&cells[0].key), [0, 1, 1]);
        let left = foretell(&cells, &results, SETTINGS);
        assert!((left.runs, left.skipped) == (0, 0) && left.seconds < 1e-9);
    }

    #[test]
    fn what_takes_too_long_is_predicted_from_the_smaller_ones() {
        let cells = [cell("a", 1), cell("a", 90), cell("a", 1000), cell("b", 1000)];
        let mut results = results();
        // Before anything is measured: the estimates.
        assert!((foretell(&cells, &results, SETTINGS).seconds - 6.273).abs() < 1e-9);
        assert_eq!(run_all(&cells, &mut results, SETTINGS)[..3], ["a1 1", "a90 1", "b1000 1"]);
        let skipped = results.find(&cells[2].key).expect("skipped cells are listed");
        assert!(skipped.samples.is_empty() && skipped.skipped_seconds == Some(100.0));
        let left = foretell(&cells, &results, SETTINGS);
        assert_eq!((left.runs, left.skipped), (0, 1));
        // A skipped cell no longer counts when the smaller ones take less.
        for measurement in &mut results.measurements {
            for sample in &mut measurement.samples {
                sample.phases[0].seconds /= 20.0;
            }
        }
        let left = foretell(&cells, &results, SETTINGS);
        assert_eq!((left.runs, left.skipped), (3, 0));
        for measurement in &mut results.measurements {
            for sample in &mut measurement.samples {
                sample.phases[0].seconds *= 20.0;
            }
        }
        // A higher limit measures the skipped cell.
        let patient = Settings { limit: 200.0, ..SETTINGS };
        assert!((foretell(&cells, &results, patient).seconds - 300.0).abs() < 1e-6);
        run_all(&cells, &mut results, patient);
        let measured = results.find(&cells[2].key).expect("skipped cells are listed");
        assert_eq!((measured.samples.len(), measured.skipped_seconds), (3, None));
    }

    #[test]
    fn other_parameters_are_not_mixed() {
        let mut results = results();
        run_all(&[cell("a", 1)], &mut results, Settings { runs: 1, ..SETTINGS });
        let mut other = cell("a", 1);
        other.plan = Some("b12".to_owned());
        let after = &mut |_: &Measurement, _: &Results| panic!("nothing is measured");
        let error = run(&[other], &mut results, SETTINGS, after).expect_err("another plan");
        assert!(error.to_string().contains("(none; now b12)"), "{error}");
    }

    /// The first run that takes fresh memory does not count, and no later run is repeated: in a
    /// process of its own, which keeps its memory.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_run_that_fetches_memory_does_not_count() {
        if !memory::is_kept() {
            let program = std::env::current_exe().expect("this test");
            let again = std::process::Command::new(program)
                .args(["runner::tests::a_run_that_fetches_memory_does_not_count", "--exact"])
                .envs(memory::KEPT)
                .output()
                .expect("it runs again");
            let said = String::from_utf8_lossy(&again.stdout);
            assert!(again.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let runs = Arc::new(AtomicUsize::new(0));
        let holding = |name: &str, bytes: usize| {
            let (count, mut holding) = (Arc::clone(&runs), cell(name, 1));
            let run = std::mem::replace(&mut holding.run, Box::new(|| unreachable!()));
            holding.run = Box::new(move || {
                drop(std::hint::black_box(vec![1_u8; bytes]));
                let mut sample = run()?;
                sample.phases[0].outputs = count.fetch_add(1, Ordering::Relaxed) as u64;
                Ok(sample)
            });
            holding
        };
        let cells = [holding("much", 500 << 20), holding("little", 1 << 20)];
        let mut results = results();
        run_all(&cells, &mut results, SETTINGS);
        let samples = |cell: usize| &results.find(&cells[cell].key).expect("it was run").samples;
        let numbers = |cell| samples(cell).iter().map(|sample| sample.phases[0].outputs);
        assert!(numbers(0).eq([1, 3, 5]) && numbers(1).eq([2, 4, 6]), "{results:?}");
        assert!(samples(0).iter().all(|sample| sample.peak_bytes > Some(500 << 20)), "{results:?}");
    }
}
