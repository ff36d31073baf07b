//! `volery-bench paper`: the tables and figures of the papers, ours beside the published ones.
//!
//! The measurements are in a file, which is saved while they are made. An interrupted run continues
//! from it, and further experiments and runs can be added. The file also has the lines of the
//! tables, from which `lab/report.py` makes tables, plots and pages.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::exit::Failure;
use super::options::{Common, Reporter};
use super::output::check_writable;
use crate::Error;
use crate::measurement::Sample;
use crate::papers::{self, Experiment, Scope, Size};
use crate::results::{BenchmarkSession, Results};
use crate::runner::{self, Cell, Observer, Settings};

/// Measure the tables and figures of the papers, ours beside the published ones
///
/// Predicts its duration before it begins. Ctrl-C keeps the runs of all but the last two seconds,
/// and the same command continues from there; more runs, a higher limit and other experiments add
/// to the existing results.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Arguments {
    /// Tables and figures, or papers for all of theirs (dvole, ferret, kkrt); see 'volery-bench
    /// list' [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Smaller sizes and fewer links, as a check that takes minutes and gives approximate results
    #[arg(long)]
    quick: bool,

    /// File for the results, from which lab/report.py makes tables and pages
    #[arg(long, value_name = "FILE", default_value = "paper.json")]
    json: PathBuf,

    /// Runs of each measurement, all once before any twice: the median counts
    #[arg(long, value_name = "R", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// Longest run in seconds: measurements that would take longer, as predicted from smaller
    /// sizes, are left out
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Measure nothing: renew what the existing results say of the tables
    #[arg(long, conflicts_with_all = ["runs", "limit"])]
    draw: bool,

    #[command(flatten)]
    common: Common,
}

/// Least interval between two saves, so that runs of milliseconds are not saved one by one.
const AT_MOST_EVERY: Duration = Duration::from_secs(2);

/// The names of the experiments that the results hold beside the measurements.
const NAMES: &str = "experiments";

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let asked = papers::named(&arguments.names).map_err(|error| {
        Failure::usage("NAME", error).with_hint("'volery-bench list' describes each")
    })?;
    let scope = Scope {
        size: if arguments.quick { Size::Quick } else { Size::Full },
        threads: common.threads(),
        timeout: common.timeout(),
    };
    let path = &arguments.json;
    check_writable("--json", path)?;
    let mut results = existing(path, &arguments.asked(&scope))?;
    let shown = remember(&mut results, &asked);
    let cells = papers::cells(&asked, &scope)?;
    arguments.measure(&cells, &mut results, path)?;
    let mut planned = Vec::new();
    let lines = shown.iter().map(|experiment| experiment.lines(&scope, &mut planned));
    results.more.insert("lines".to_owned(), lines.collect::<crate::Result<Vec<_>>>()?.into());
    results.more.insert("planned".to_owned(), json!(planned));
    results.save(path)?;
    if common.quiet {
        return Ok(());
    }
    writeln!(
        std::io::stdout(),
        "report.py beside the lab's README shows the tables of {}",
        path.display()
    )
    .map_err(Failure::output)
}

/// The existing results, or empty ones.
fn existing(path: &Path, asked: &str) -> Result<Results, Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(Results::new(asked));
    }
    let results = Results::load(path)?;
    if results.asked == asked {
        return Ok(results);
    }
    let what = format!("'{}' there, '{asked}' now", results.asked);
    Err(Error::Different { path: path.to_owned(), what }.into())
}

/// Adds the experiments to those of the results; returns all of them.
fn remember(results: &mut Results, asked: &[&Experiment]) -> Vec<&'static Experiment> {
    let before: Vec<_> = results
        .more
        .get(NAMES)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    let all = papers::ALL.iter().filter(|experiment| {
        before.iter().any(|name| name == experiment.name)
            || asked.iter().any(|asked| asked.name == experiment.name)
    });
    let all: Vec<_> = all.collect();
    let names: Vec<_> = all.iter().map(|experiment| experiment.name).collect();
    results.more.insert(NAMES.to_owned(), names.into());
    all
}

/// The number of requested runs that exist.
fn runs_there(cells: &[Cell], results: &Results, settings: Settings) -> usize {
    let there = |cell: &Cell| {
        results.find(&cell.key).map_or(0, |have| have.samples.len().min(settings.runs))
    };
    cells.iter().map(there).sum()
}

impl Arguments {
    /// The settings that must be equal for a run to continue from another's results.
    fn asked(&self, scope: &Scope) -> String {
        let size = if self.quick { "quick" } else { "full" };
        let plural = if scope.threads == 1 { "" } else { "s" };
        format!("bench paper, {size}, {} thread{plural} a party", scope.threads)
    }

    fn measure(&self, cells: &[Cell], results: &mut Results, file: &Path) -> Result<(), Failure> {
        let path = file.display();
        if self.draw {
            if results.measurements.is_empty() {
                let what = format_args!("{path} has no measurements");
                let failure = Failure::usage("--draw", what);
                return Err(failure.with_hint("run without --draw to measure"));
            }
            return Ok(());
        }
        let settings = Settings { runs: self.runs.into(), limit: self.limit.into() };
        let reporter = self.common.reporter();
        let say = |line: &dyn std::fmt::Display| reporter.announce(line, true);
        let left = runner::foretell(cells, results, settings);
        let there = runs_there(cells, results, settings);
        if left.skipped > 0 {
            say(&format_args!(
                "{} of {} measurements would take more than {} s a run and are left out; --limit \
                 SECONDS",
                left.skipped,
                cells.len(),
                self.limit
            ));
        }
        if cells.is_empty() {
            say(&"all figures follow from parameters: nothing is to be measured");
            return Ok(());
        }
        if left.runs == 0 {
            say(&format_args!("nothing is missing in {path} ({there} runs)"));
        } else {
            say(&format_args!(
                "measurements: {}, runs to be made: {}, already there: {there}; this takes {}",
                cells.len() - left.skipped,
                left.runs,
                duration(left.seconds),
            ));
            say(&format_args!(
                "results go to {path}; Ctrl-C keeps the runs of all but the last two seconds, and \
                 the same command continues from there"
            ));
        }
        if left.runs > 0 || results.sittings.is_empty() {
            begin_session(results, cells, reporter);
        }
        let bar = reporter.runs();
        bar.set_length(left.runs as u64);
        bar.set_prefix(duration(left.seconds));
        let mut progress = Progress {
            cells,
            settings,
            reporter,
            bar,
            file,
            saved: None,
            predicted: Instant::now(),
            run: [0; 2],
        };
        let measured = runner::run(cells, results, settings, &mut progress);
        progress.bar.finish_and_clear();
        // The measurements before a failure are kept as well.
        results.save(file)?;
        measured?;
        let is_missing =
            |cell: &&Cell| results.find(&cell.key).is_none_or(|have| have.samples.is_empty());
        let missing = cells.iter().filter(is_missing).count();
        if left.runs > 0 && missing > 0 {
            say(&format_args!(
                "left out because a run would take more than {} s: {missing} of {} measurements; \
                 --limit SECONDS measures them",
                self.limit,
                cells.len()
            ));
        }
        Ok(())
    }
}

/// Begins a session, and reports how it differs from the last one. Sessions without measurements
/// are dropped.
fn begin_session(results: &mut Results, cells: &[Cell], reporter: Reporter) {
    let samples = results.measurements.iter().flat_map(|one| &one.samples);
    let used = samples.map(|sample| sample.sitting.saturating_add(1)).max().unwrap_or(0);
    results.sittings.truncate(used);
    let threads = cells.iter().map(|cell| cell.key.threads).max().unwrap_or(1);
    reporter.explain("measuring the machine");
    let mut session = BenchmarkSession::begin(env!("CARGO_PKG_VERSION"), threads);
    if let Some(before) = results.sittings.last() {
        session.remarks.extend(session.changes_from(before));
    }
    super::tell_remarks(reporter, &session.remarks);
    results.sittings.push(session);
}

/// Observes the runs: reports the current measurement and the remaining time, and has the results
/// saved.
struct Progress<'a> {
    cells: &'a [Cell],
    settings: Settings,
    reporter: Reporter,
    bar: ProgressBar,
    file: &'a Path,
    saved: Option<Instant>,
    predicted: Instant,
    run: [usize; 2],
}

impl Observer for Progress<'_> {
    fn begin(&mut self, cell: &Cell, run: [usize; 2]) {
        self.run = run;
        self.bar.set_message(format!("{}, run {} of {}", cell.key, run[0], run[1]));
        self.bar.tick();
    }

    fn done(&mut self, cell: &Cell, sample: &Sample) {
        let [run, runs] = self.run;
        let phases = sample.phases.iter();
        let phases: Vec<_> =
            phases.map(|phase| format!("{} {:.3} s", phase.name, phase.seconds)).collect();
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

    fn keep(&mut self, results: &Results) -> crate::Result<()> {
        self.bar.inc(1);
        // A prediction takes a moment with many cells.
        if !self.bar.is_hidden() && self.predicted.elapsed() >= Duration::from_secs(1) {
            let left = runner::foretell(self.cells, results, self.settings);
            self.bar.set_length(self.bar.position() + left.runs as u64);
            self.bar.set_prefix(duration(left.seconds));
            self.predicted = Instant::now();
        }
        if self.saved.is_none_or(|saved| saved.elapsed() >= AT_MOST_EVERY) {
            results.save(self.file)?;
            self.saved = Some(Instant::now());
        }
        Ok(())
    }
}

/// A predicted time: `less than a minute`, `about 7 minutes`, `about 2 h 5 min`.
fn duration(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match minutes {
        0 => "less than a minute".to_owned(),
        1 => "about a minute".to_owned(),
        2..120 => format!("about {minutes} minutes"),
        _ => format!("about {} h {} min", minutes / 60, minutes % 60),
    }
}
