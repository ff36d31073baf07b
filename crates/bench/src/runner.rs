//! Cells are measured in turn: the first run of all of them, then the second, and so on, so that an hour in which the machine is
//! slower is spread over all. After each run the observer may keep the results.
//!
//! Before each run as much memory is touched as a run of its cell has taken. A run that takes much
//! more than that, as the first of a cell does, is made again and does not count: where the system
//! had to fetch memory it would say how long that takes.

use std::time::Instant;

use crate::measurement::{Key, Measurement, Sample};
use crate::results::Results;
use crate::{Error, Result, machine};

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
    /// A run begins, the one with that number of so many, from 1.
    fn begin(&mut self, cell: &Cell, run: [usize; 2]);
    /// A run is over.
    fn done(&mut self, cell: &Cell, sample: &Sample);
    /// A cell is skipped, since one run would take about so many seconds; told once.
    fn skipped(&mut self, cell: &Cell, seconds: f64);
    /// All of it is to be kept now: what was measured until now.
    ///
    /// # Errors
    /// Those of writing; measuring ends with it.
    fn keep(&mut self, results: &Results) -> Result<()>;
}

impl Cell {
    /// A measurement of it without samples.
    fn unmeasured(&self) -> Measurement {
        Measurement {
            key: self.key.clone(),
            plan: self.plan.clone(),
            security_bits: self.security_bits,
            skipped_seconds: None,
            samples: Vec::new(),
        }
    }

    /// About how many seconds a run takes: what it would take if the largest of those up to its size that were measured went on as
    /// it did; as long as none was, the forecast, with its traffic and its round trips on the link.
    fn foretold(&self, cells: &[Self], results: &Results) -> f64 {
        let family = |key: &Key| (key.protocol.clone(), key.link.clone(), key.threads);
        let up_to = cells
            .iter()
            .filter(|cell| cell.key.n <= self.key.n && family(&cell.key) == family(&self.key));
        let measured = up_to.filter_map(|cell| {
            let seconds = results.find(&cell.key)?.wall_seconds()?;
            Some((cell.key.n, seconds / cell.forecast.work))
        });
        if let Some((_, each)) = measured.max_by_key(|(n, _)| *n) {
            return each * self.forecast.work;
        }
        let link = &self.key.link;
        self.forecast.seconds
            + link.seconds_for(self.forecast.bytes)
            + self.forecast.round_trips * link.round_trip_seconds()
    }
}

/// What is left to be measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Left {
    /// Runs that are missing.
    pub runs: usize,
    /// About how many seconds they take.
    pub seconds: f64,
    /// Cells that will be skipped, as foretold now: neither they nor their time are counted above.
    pub skipped: usize,
}

/// Foretells what is left to be measured.
#[must_use]
pub fn foretell(cells: &[Cell], results: &Results, settings: Settings) -> Left {
    let mut left = Left {
        runs: 0,
        seconds: 0.0,
        skipped: 0,
    };
    for cell in cells {
        let done = results.find(&cell.key).map_or(0, |have| have.samples.len());
        let each = cell.foretold(cells, results);
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

/// Measures what is missing in `results`, which holds the sitting in which it is done as its last.
///
/// # Errors
/// [`Error::Run`] if a run fails; if something was measured before with other parameters; those of `observer` where it
/// keeps the results. What was measured until then is in `results`.
///
/// # Panics
/// If `results` has no sitting.
pub fn run(
    cells: &[Cell],
    results: &mut Results,
    settings: Settings,
    observer: &mut impl Observer,
) -> Result<()> {
    same_parameters(cells, results)?;
    for round in 1..=settings.runs {
        measure_up_to(round, cells, results, settings, observer)?;
    }
    // What was to be skipped may turn out to be quick enough when the smaller ones have been measured more often.
    while measure_up_to(settings.runs, cells, results, settings, observer)? {}
    Ok(())
}

/// Measures each cell that has fewer runs than that once. Says whether there was one.
fn measure_up_to(
    runs: usize,
    cells: &[Cell],
    results: &mut Results,
    settings: Settings,
    observer: &mut impl Observer,
) -> Result<bool> {
    let mut any = false;
    for cell in cells {
        let done = results.find(&cell.key).map_or(0, |have| have.samples.len());
        if done >= runs {
            continue;
        }
        let seconds = cell.foretold(cells, results);
        if done == 0 && seconds > settings.limit {
            let entry = results.entry(cell.unmeasured());
            if entry.skipped_seconds.replace(seconds).is_none() {
                observer.skipped(cell, seconds);
            }
            continue;
        }
        observer.begin(cell, [done + 1, settings.runs]);
        let sample = measure(cell, results)?;
        observer.done(cell, &sample);
        let sitting = results.sittings.last_mut().expect("there is a sitting");
        sitting.seconds += sample.wall_seconds;
        sitting.load_after = machine::load();
        let entry = results.entry(cell.unmeasured());
        entry.skipped_seconds = None;
        entry.samples.push(sample);
        observer.keep(results)?;
        any = true;
    }
    Ok(any)
}

/// One run; after another where that had to reach for fresh memory.
fn measure(cell: &Cell, results: &Results) -> Result<Sample> {
    let samples = results.find(&cell.key).map(|have| &have.samples);
    let before = samples.and_then(|all| all.iter().filter_map(|one| one.peak_bytes).max());
    let (mut sample, fresh) = once(cell, before)?;
    if fresh {
        (sample, _) = once(cell, sample.peak_bytes.max(before))?;
    }
    sample.sitting = results.sittings.len() - 1;
    Ok(sample)
}

/// One run, and whether it took much more memory than `before`.
fn once(cell: &Cell, before: Option<u64>) -> Result<(Sample, bool)> {
    let ((sample, wall_seconds), memory) = machine::with_memory_at_hand(before, || {
        let begin = Instant::now();
        ((cell.run)(), begin.elapsed().as_secs_f64())
    });
    let sample = sample.map_err(|error| Error::Run {
        key: Box::new(cell.key.clone()),
        error: Box::new(error),
    })?;
    let sample = Sample {
        wall_seconds,
        peak_bytes: memory.peak,
        ..sample
    };
    Ok((sample, memory.fresh))
}

/// Medians over runs with different parameters mean nothing.
fn same_parameters(cells: &[Cell], results: &Results) -> Result<()> {
    for cell in cells {
        let Some(have) = results
            .find(&cell.key)
            .filter(|have| !have.samples.is_empty())
        else {
            continue;
        };
        if (&have.plan, have.security_bits) != (&cell.plan, cell.security_bits) {
            let words = |plan: &Option<String>| plan.clone().unwrap_or_else(|| "none".to_owned());
            return Err(Error::protocol(format_args!(
                "{}: measured before with other parameters ({}; now {}): the old results need a folder of their own",
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
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::Link;
    use crate::measurement::Phase;
    use crate::results::Sitting;

    const SETTINGS: Settings = Settings {
        runs: 3,
        limit: 10.0,
    };

    /// What happened, a word each.
    #[derive(Default)]
    struct Log {
        words: Vec<String>,
        kept: usize,
        /// The run that began last.
        run: Arc<AtomicUsize>,
    }

    impl Observer for Log {
        fn begin(&mut self, cell: &Cell, [run, runs]: [usize; 2]) {
            let Key { protocol, n, .. } = &cell.key;
            self.run.store(run, Ordering::Relaxed);
            self.words.push(format!("{protocol}{n} {run}/{runs}"));
        }

        fn done(&mut self, _: &Cell, sample: &Sample) {
            assert!(sample.phases.len() == 1 && sample.peak_bytes.is_some());
        }

        fn skipped(&mut self, cell: &Cell, seconds: f64) {
            self.words.push(format!(
                "skipped {}{} {seconds:.0}",
                cell.key.protocol, cell.key.n
            ));
        }

        fn keep(&mut self, results: &Results) -> Result<()> {
            let all = |sum: usize, one: &Measurement| sum + one.samples.len();
            self.kept = results.measurements.iter().fold(0, all);
            Ok(())
        }
    }

    fn forecast(n: u64) -> Forecast {
        Forecast {
            seconds: 1.0,
            bytes: 0.0,
            round_trips: 0.0,
            work: n as f64,
        }
    }

    /// A cell that says that each of its `n` takes a tenth of a second.
    fn cell(protocol: &str, n: u64) -> Cell {
        Cell {
            key: Key {
                protocol: protocol.to_owned(),
                n,
                link: Link::Loopback,
                threads: 1,
            },
            plan: None,
            security_bits: None,
            forecast: forecast(n),
            run: Box::new(move || {
                Ok(Sample {
                    phases: vec![Phase {
                        name: "all".to_owned(),
                        outputs: n,
                        seconds: n as f64 / 10.0,
                        bytes: n,
                        messages: 1,
                    }],
                    ..Sample::default()
                })
            }),
        }
    }

    fn results() -> Results {
        let mut results = Results::new("test");
        results.sittings.push(Sitting::begin("test", 1));
        results
    }

    #[test]
    fn first_runs_of_all_come_first_and_a_second_call_goes_on() {
        let cells = [cell("a", 1), cell("b", 1)];
        let (mut results, mut log) = (results(), Log::default());
        let once = Settings {
            runs: 1,
            ..SETTINGS
        };
        run(&cells, &mut results, once, &mut log).expect("nothing fails");
        assert_eq!(log.words, ["a1 1/1", "b1 1/1"]);
        assert_eq!(foretell(&cells, &results, SETTINGS).runs, 4);
        log.words.clear();
        results.sittings.push(Sitting::begin("test", 1));
        run(&cells, &mut results, SETTINGS, &mut log).expect("nothing fails");
        assert_eq!(log.words, ["a1 2/3", "b1 2/3", "a1 3/3", "b1 3/3"]);
        assert_eq!(log.kept, 6);
        let sittings = |key| {
            let samples = &results.find(key).expect("it was measured").samples;
            samples
                .iter()
                .map(|sample| sample.sitting)
                .collect::<Vec<_>>()
        };
        assert_eq!(sittings(&cells[0].key), [0, 1, 1]);
        let left = foretell(&cells, &results, SETTINGS);
        assert!((left.runs, left.skipped) == (0, 0) && left.seconds < 1e-9);
    }

    #[test]
    fn what_takes_too_long_is_foretold_from_the_smaller_ones() {
        let cells = [
            cell("a", 1),
            cell("a", 90),
            cell("a", 1000),
            cell("b", 1000),
        ];
        let (mut results, mut log) = (results(), Log::default());
        // Before anything is measured: the guesses.
        assert!((foretell(&cells, &results, SETTINGS).seconds - 12.0).abs() < 1e-9);
        run(&cells, &mut results, SETTINGS, &mut log).expect("nothing fails");
        assert_eq!(
            log.words[..4],
            ["a1 1/3", "a90 1/3", "skipped a1000 100", "b1000 1/3"]
        );
        let skipped = results.find(&cells[2].key).expect("it is named");
        assert!(skipped.samples.is_empty() && skipped.skipped_seconds.is_some());
        let left = foretell(&cells, &results, SETTINGS);
        assert_eq!((left.runs, left.skipped), (0, 1));
        // What was skipped counts no more when the smaller ones take less.
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
        // A higher limit measures what was skipped.
        let patient = Settings {
            limit: 200.0,
            ..SETTINGS
        };
        assert!((foretell(&cells, &results, patient).seconds - 300.0).abs() < 1e-6);
        run(&cells, &mut results, patient, &mut log).expect("nothing fails");
        let measured = results.find(&cells[2].key).expect("it is named");
        assert_eq!(
            (measured.samples.len(), measured.skipped_seconds),
            (3, None)
        );
    }

    #[test]
    fn a_link_takes_its_time() {
        let mut slow = cell("a", 1);
        slow.key.link = Link::shaped(8_000_000, std::time::Duration::from_millis(500));
        slow.forecast.bytes = 5e6;
        slow.forecast.round_trips = 4.0;
        let once = Settings {
            runs: 1,
            limit: 1e9,
        };
        let seconds = foretell(&[slow], &results(), once).seconds;
        assert!((seconds - (5.0 + 2.0 + 1.0)).abs() < 1e-9, "{seconds}");
    }

    #[test]
    fn other_parameters_are_not_mixed() {
        let (mut results, mut log) = (results(), Log::default());
        let once = Settings {
            runs: 1,
            ..SETTINGS
        };
        run(&[cell("a", 1)], &mut results, once, &mut log).expect("nothing fails");
        let mut other = cell("a", 1);
        other.plan = Some("b12".to_owned());
        let error = run(&[other], &mut results, SETTINGS, &mut log).expect_err("another plan");
        assert!(error.to_string().contains("(none; now b12)"), "{error}");
        assert_eq!(log.words.len(), 1);
    }

    #[test]
    fn what_was_measured_before_a_failure_is_kept() {
        let (mut results, mut log) = (results(), Log::default());
        let mut bad = cell("bad", 1);
        let under_way = Arc::clone(&log.run);
        let good = Mutex::new(cell("good", 1).run);
        bad.run = Box::new(move || {
            if under_way.load(Ordering::Relaxed) == 2 {
                return Err(Error::protocol("on purpose"));
            }
            (good.lock().expect("nobody panics"))()
        });
        let cells = [cell("a", 1), bad];
        let failure = run(&cells, &mut results, SETTINGS, &mut log).expect_err("it fails");
        assert_eq!(
            failure.to_string(),
            "bad, n = 1, loopback, 1 thread a party: on purpose"
        );
        let left = foretell(&cells, &results, SETTINGS);
        assert_eq!((left.runs, log.kept), (3, 3));
    }
}
