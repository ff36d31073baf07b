//! `volery-bench paper`: the tables and figures of the papers, ours beside the published ones.
//!
//! The measurements are in a file, which is saved while they are made. An interrupted run continues
//! from it, and further experiments and runs can be added. The file also has the lines of the
//! tables, from which `lab/report.py` makes tables, plots and pages.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::options::{Common, Reporter, check_writable};
use crate::measurement::Measurement;
use crate::papers::{self, Experiment, Scope, Size};
use crate::results::{BenchmarkSession, Results};
use crate::runner::{self, Cell, Settings};
use crate::{Error, Result};

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

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let common = &arguments.common;
    let asked = papers::named(&arguments.names).map_err(|error| Error::usage("NAME", error))?;
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
    arguments.measure(&cells, &mut results)?;
    let mut planned = Vec::new();
    let lines = shown.iter().map(|experiment| experiment.lines(&scope, &mut planned));
    results.more.insert("lines".to_owned(), lines.collect::<Result<Vec<_>>>()?.into());
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
    .map_err(Error::output)
}

/// The existing results, or empty ones.
fn existing(path: &Path, asked: &str) -> Result<Results> {
    if path.symlink_metadata().is_err() {
        return Ok(Results::new(asked));
    }
    let results = Results::load(path)?;
    if results.asked == asked {
        return Ok(results);
    }
    let (path, there) = (path.display(), results.asked);
    let what = format_args!(
        "{path}: measured with other settings: '{there}' there, '{asked}' now; choose another file"
    );
    Err(Error::usage("--json", what))
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

impl Arguments {
    /// The settings that must be equal for a run to continue from another's results.
    fn asked(&self, scope: &Scope) -> String {
        let size = if self.quick { "quick" } else { "full" };
        let plural = if scope.threads == 1 { "" } else { "s" };
        format!("bench paper, {size}, {} thread{plural} a party", scope.threads)
    }

    fn measure(&self, cells: &[Cell], results: &mut Results) -> Result<()> {
        let (path, reporter) = (self.json.display(), self.common.reporter());
        if self.draw {
            return if results.measurements.is_empty() {
                let what = format_args!("{path} has no measurements: run without --draw first");
                Err(Error::usage("--draw", what))
            } else {
                Ok(())
            };
        }
        if cells.is_empty() {
            reporter.announce("all figures follow from parameters: nothing is measured", true);
            return Ok(());
        }
        let settings = Settings { runs: self.runs.into(), limit: self.limit.into() };
        let left = runner::foretell(cells, results, settings);
        if left.runs == 0 {
            reporter.announce(format_args!("nothing is missing in {path}"), true);
        } else {
            let line = format_args!(
                "{} runs go to {path}, which takes {}; Ctrl-C keeps the runs of all but the last \
                 two seconds, and the same command continues from there",
                left.runs,
                duration(left.seconds),
            );
            reporter.announce(line, true);
        }
        if left.runs > 0 || results.sittings.is_empty() {
            begin_session(results, cells, reporter);
        }
        let (mut done, mut saved) = (0, Instant::now());
        let mut after = |one: &Measurement, results: &Results| {
            done += 1;
            reporter.announce(format_args!("{done} of {}: {one}", left.runs), false);
            if saved.elapsed() >= AT_MOST_EVERY {
                results.save(&self.json)?;
                saved = Instant::now();
            }
            Ok(())
        };
        let measured = runner::run(cells, results, settings, &mut after);
        // The measurements before a failure are kept as well.
        results.save(&self.json)?;
        measured?;
        let is_missing =
            |cell: &&Cell| results.find(&cell.key).is_none_or(|have| have.samples.is_empty());
        let missing = cells.iter().filter(is_missing).count();
        if missing > 0 {
            let line = format_args!(
                "{missing} of {} measurements would take more than {} s a run and are left out; \
                 --limit SECONDS measures them",
                cells.len(),
                self.limit,
            );
            reporter.announce(line, true);
        }
        Ok(())
    }
}

/// Begins a session. Sessions without measurements are dropped.
fn begin_session(results: &mut Results, cells: &[Cell], reporter: Reporter) {
    let samples = results.measurements.iter().flat_map(|one| &one.samples);
    let used = samples.map(|sample| sample.sitting.saturating_add(1)).max().unwrap_or(0);
    results.sittings.truncate(used);
    let threads = cells.iter().map(|cell| cell.key.threads).max().unwrap_or(1);
    reporter.explain("measuring the machine");
    let session = BenchmarkSession::begin(env!("CARGO_PKG_VERSION"), threads);
    super::tell_remarks(reporter, &session.remarks);
    results.sittings.push(session);
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
