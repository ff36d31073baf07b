//! `volery-bench paper`: the tables and figures of the papers, ours beside the published ones.
//!
//! The measurements are in a file of the output folder. An interrupted run continues from it, and
//! further experiments and runs can be added. The file also has the tables and plots, from which
//! `lab/report.py` makes pages.

mod intro;
mod place;
mod progress;
mod session;
mod store;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::experiment::{self, Experiment, Scope, Size};
use crate::memory;
use crate::page::{Section, text};
use crate::results::Results;
use crate::runner::{self, Cell, Left, Settings};
use indicatif::ProgressBar;

use self::intro::intro_of_papers;
use self::place::Place;
use self::progress::{Progress, duration};
use self::session::sit_down;
use self::store::Store;
use crate::command::exit::Failure;
use crate::command::options::{Common, Reporter};
use crate::command::output::on_signal;
use crate::command::report::Report;

/// Repeat the tables and figures of the papers
///
/// Predicts its duration before it begins. Ctrl-C keeps finished runs, and the same command
/// continues from there; more runs, a higher limit and other experiments add to the existing
/// results.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(super) struct Arguments {
    /// Tables and figures, or papers for all of theirs (dvole, ferret, kkrt); see 'volery-bench
    /// list' [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Smaller sizes and fewer links, as a check that takes minutes and gives approximate results
    #[arg(long)]
    quick: bool,

    /// Folder for results.json, from which lab/report.py makes pages
    #[arg(long, value_name = "DIR", default_value = "volery-paper")]
    out: PathBuf,

    /// Runs of each measurement, all once before any twice: the median counts
    #[arg(
        long,
        value_name = "R",
        default_value_t = 5,
        value_parser = clap::value_parser!(u16).range(1..),
    )]
    runs: u16,

    /// Longest run in seconds: measurements that would take longer, as predicted from smaller
    /// sizes, are left out
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(1..),
    )]
    limit: u32,

    /// Measure nothing, and show the existing results
    #[arg(long, conflicts_with_all = ["runs", "limit"])]
    draw: bool,

    #[command(flatten)]
    common: Common,
}

const THREADS: &str =
    "Threads of each party, unless an experiment sets them [default: 1, as in the papers]";

/// The data that the results hold beside measurements: the names of the experiments, the paragraphs
/// above all tables, and the tables and plots.
const NAMES: &str = "experiments";
const INTRO: &str = "intro";
const SECTIONS: &str = "sections";

type Experiments = Vec<&'static dyn Experiment>;

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let common = &arguments.common;
    let reporter = common.reporter();
    let asked = experiment::named(&arguments.names).map_err(|error| {
        Failure::usage("NAME", error).with_hint("'volery-bench list' describes each")
    })?;
    let scope = arguments.scope();
    let place = Place::open(&arguments.out, common.report.as_deref())?;
    // The temporary file of the report may be in the folder, which must not hold foreign files when
    // it is opened.
    let report = common.prepare_report()?;
    let mut results = place.results(&arguments.asked())?;
    let shown = remember(&mut results, &asked);
    let keeper = Arc::new(Store::new(place.results_path(), &results));
    let bar = reporter.runs();
    let _interrupted = {
        let (keeper, bar) = (Arc::clone(&keeper), bar.clone());
        on_signal(move || {
            bar.finish_and_clear();
            keeper.last_words()
        })
    };
    let cells = experiment::cells(&asked, &scope)?;
    let made = arguments.measure(&cells, &mut results, &keeper, bar)?;
    let sections: Vec<Section> = shown
        .iter()
        .map(|experiment| experiment.section(&scope, &results))
        .collect::<crate::Result<_>>()?;
    let intro = intro_of_papers(&results);
    for (name, value) in [
        (INTRO, serde_json::to_value(&intro)),
        (SECTIONS, serde_json::to_value(&sections)),
    ] {
        let value = value.expect("strings and numbers");
        results.more.insert(name.to_owned(), value);
    }
    keeper.keep_now(&results)?;
    report.write(&reported(&place, &results, &shown, made, start))?;
    if common.quiet {
        return Ok(());
    }
    print(&sections, &intro).map_err(super::standard_output)
}

fn print(sections: &[Section], intro: &[String]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for section in sections {
        writeln!(out, "{}", text::section(section))?;
    }
    intro
        .iter()
        .try_for_each(|line| writeln!(out, "{}", text::prose("", line)))
}

/// Adds the experiments to those of the results; returns all of them.
fn remember(results: &mut Results, asked: &Experiments) -> Experiments {
    let have = results.more.get(NAMES).and_then(|names| names.as_array());
    let before: Vec<&str> = have
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str())
        .collect();
    let of_these = |experiment: &&&dyn Experiment| {
        let name = experiment.name();
        before.contains(&name) || asked.iter().any(|asked| asked.name() == name)
    };
    let all: Experiments = experiment::ALL.iter().filter(of_these).copied().collect();
    let names: Vec<_> = all.iter().map(|experiment| experiment.name()).collect();
    results.more.insert(NAMES.to_owned(), names.into());
    all
}

fn reported(
    place: &Place,
    results: &Results,
    shown: &Experiments,
    made: usize,
    start: Instant,
) -> Report {
    let names: Vec<_> = shown.iter().map(|experiment| experiment.name()).collect();
    let mut report = Report::new("bench paper");
    report.peak_rss_bytes = peak_bytes(results, made);
    report.seconds = Some(start.elapsed().as_secs_f64());
    report.result = serde_json::Map::from_iter([
        (
            "results".to_owned(),
            place.results_path().display().to_string().into(),
        ),
        (NAMES.to_owned(), names.into()),
        ("measurements".to_owned(), results.measurements.len().into()),
        ("runs_made".to_owned(), made.into()),
    ]);
    report
}

/// The peak memory of a run of this process; that of the process itself if it made none.
fn peak_bytes(results: &Results, made: usize) -> Option<u64> {
    let samples = results.measurements.iter().flat_map(|one| &one.samples);
    let now = samples.filter(|sample| made > 0 && sample.sitting + 1 == results.sittings.len());
    now.filter_map(|sample| sample.peak_bytes)
        .max()
        .or_else(memory::peak)
}

impl Arguments {
    fn scope(&self) -> Scope {
        Scope {
            size: if self.quick { Size::Quick } else { Size::Full },
            threads: self.common.threads.map_or(1, usize::from),
            timeout: self.common.timeout(),
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            runs: self.runs.into(),
            limit: self.limit.into(),
        }
    }

    /// The settings that must be equal for a run to continue from another's results.
    fn asked(&self) -> String {
        let Scope { size, threads, .. } = self.scope();
        let size = match size {
            Size::Full => "full",
            Size::Quick => "quick",
        };
        let plural = if threads == 1 { "" } else { "s" };
        format!("bench paper, {size}, {threads} thread{plural} a party")
    }

    /// Measures the missing runs; returns their number.
    fn measure(
        &self,
        cells: &[Cell],
        results: &mut Results,
        keeper: &Store,
        bar: ProgressBar,
    ) -> Result<usize, Failure> {
        let (reporter, settings) = (self.common.reporter(), self.settings());
        if self.draw {
            if results.measurements.is_empty() {
                let what = format_args!("{} has no measurements", keeper.path().display());
                return Err(
                    Failure::usage("--draw", what).with_hint("run without --draw to measure")
                );
            }
            return Ok(0);
        }
        let left = runner::foretell(cells, results, settings);
        let there = runs_there(cells, results, settings);
        say_before(reporter, left, there, cells.len(), keeper, settings);
        if left.runs > 0 || (results.sittings.is_empty() && !cells.is_empty()) {
            reporter.explain("measuring the machine");
            sit_down(results, cells, reporter);
        }
        let mut watcher = Progress::new(cells, settings, reporter, bar, keeper, left);
        let measured = if cells.is_empty() {
            Ok(())
        } else {
            runner::run(cells, results, settings, &mut watcher)
        };
        watcher.over();
        // The measurements before a failure are kept as well.
        keeper.keep_now(results)?;
        measured?;
        if left.runs > 0 {
            say_after(reporter, cells, results, settings);
        }
        Ok(runs_there(cells, results, settings) - there)
    }
}

/// The number of requested runs that exist.
fn runs_there(cells: &[Cell], results: &Results, settings: Settings) -> usize {
    let there = |cell: &Cell| {
        let have = results.find(&cell.key);
        have.map_or(0, |have| have.samples.len().min(settings.runs))
    };
    cells.iter().map(there).sum()
}

fn say_before(
    reporter: Reporter,
    left: Left,
    there: usize,
    cells: usize,
    keeper: &Store,
    settings: Settings,
) {
    let path = keeper.path().display();
    if left.skipped > 0 {
        let (skipped, limit) = (left.skipped, settings.limit);
        reporter.announce(
            format_args!("{skipped} of {cells} measurements would take more than {limit} s a run and are left out; --limit SECONDS"),
            true,
        );
    }
    if cells == 0 {
        let line = "all figures follow from parameters: nothing is to be measured";
        return reporter.announce(line, true);
    }
    if left.runs == 0 {
        let else_ = if left.skipped > 0 { " else" } else { "" };
        let line = format_args!("nothing{else_} is missing in {path} ({there} runs): only showing");
        return reporter.announce(line, true);
    }
    reporter.announce(
        format_args!(
            "measurements: {}, runs to be made: {}, already there: {there}; this takes {}",
            cells - left.skipped,
            left.runs,
            duration(left.seconds),
        ),
        true,
    );
    reporter.announce(
        format_args!("results go to {path}; Ctrl-C keeps finished runs, and the same command continues from there"),
        true,
    );
}

/// Reports cells that turned out to take too long only when smaller sizes were measured.
fn say_after(reporter: Reporter, cells: &[Cell], results: &Results, settings: Settings) {
    let is_missing = |cell: &&Cell| {
        let have = results.find(&cell.key);
        have.is_none_or(|have| have.samples.is_empty())
    };
    let (missing, limit) = (cells.iter().filter(is_missing).count(), settings.limit);
    if missing > 0 {
        reporter.announce(
            format_args!(
                "left out because a run would take more than {limit} s: {missing} of {} measurements; --limit SECONDS measures them",
                cells.len()
            ),
            true,
        );
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn names(experiments: &Experiments) -> Vec<&'static str> {
        experiments
            .iter()
            .map(|experiment| experiment.name())
            .collect()
    }

    #[test]
    fn experiments_are_added_to_those_that_are_there() {
        let mut results = Results::new("test");
        let mut add = |name: &str| {
            let asked = experiment::named(&[name.to_owned()]).unwrap();
            names(&remember(&mut results, &asked))
        };
        assert_eq!(add("kkrt-table-2"), ["kkrt-table-2"]);
        assert_eq!(add("dvole-figure-5"), ["dvole-figure-5", "kkrt-table-2"]);
        assert_eq!(add("kkrt-table-2"), ["dvole-figure-5", "kkrt-table-2"]);
    }
}
