//! `volery bench paper`: the tables and figures of the papers, ours beside the published ones, as pages and files.
//!
//! What was measured is in a file of the output folder, from which an interrupted run goes on and to which further experiments and
//! runs can be added. Pages are drawn from that file alone.

mod draw;
mod intro;
mod keeper;
mod place;
mod sitting;
mod watcher;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use indicatif::ProgressBar;
use volery_bench::page::{Section, appendix};
use volery_bench::results::Results;
use volery_bench::runner::{self, Cell, Left, Settings};
use volery_experiments::experiment::{self, Experiment, Scope, Size};

use self::draw::Pages;
pub(super) use self::intro::intro;
use self::intro::intro_of_papers;
use self::keeper::Keeper;
use self::place::Place;
use self::sitting::sit_down;
use self::watcher::{Watcher, duration};
use crate::command::options::{Common, Voice};
use crate::exit::Failure;
use crate::output::on_signal;
use crate::report::{Report, peak_memory};

/// Repeat the tables and figures of the papers: results, tables and plots as files and pages in a folder
///
/// Says before it begins how long it will take. Ctrl-C keeps what is done, and the same command goes on from there; more runs, a
/// higher limit and other experiments add to what is there.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(super) struct Arguments {
    /// Tables and figures, or papers for all of theirs (dvole, ferret, kkrt); see 'volery bench list' [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Smaller sizes and fewer links, to see in minutes that all works and about what comes out
    #[arg(long)]
    quick: bool,

    /// The folder for results.json, results.csv, index.html and plots
    #[arg(long, value_name = "DIR", default_value = "volery-paper")]
    out: PathBuf,

    /// The same as a Markdown document [default: REPRODUCTION.md in the folder]
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Runs of each measurement, all once before any twice: the median counts
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// What would take longer a run, as foretold from smaller sizes, is not measured
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Measure nothing, and draw what is there
    #[arg(long, conflicts_with_all = ["runs", "limit"])]
    draw: bool,

    #[command(flatten)]
    common: Common,
}

const THREADS: &str =
    "Threads of each party, where an experiment does not say [default: 1, as in the papers]";

/// What the results say of who asked for them.
const NAMES: &str = "experiments";

type Experiments = Vec<&'static dyn Experiment>;

/// Runs the verb.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let common = &arguments.common;
    let voice = common.voice();
    let asked = experiment::named(&arguments.names).map_err(|error| {
        Failure::usage("NAME", error).hint("'volery bench list' says what each is")
    })?;
    let scope = arguments.scope();
    let (markdown, report) = (arguments.markdown.as_deref(), common.report.as_deref());
    let place = Place::open(&arguments.out, markdown, report)?;
    // Its temporary file may be in the folder, which must not hold what is not ours when it is opened.
    let report = common.prepare_report()?;
    let mut results = place.results(&arguments.asked())?;
    let shown = remember(&mut results, &asked);
    let keeper = Arc::new(Keeper::new(place.results_path(), &results));
    let bar = voice.runs();
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
        .collect::<volery_bench::Result<_>>()?;
    let pages = Pages {
        place: &place,
        intro: &intro_of_papers(&results),
        sections: &sections,
        appendix: &appendix::measurements(&results),
    };
    pages.write()?;
    voice.announce(
        format_args!(
            "drawn: {} and {}",
            place.index().display(),
            place.markdown().display()
        ),
        true,
    );
    report.write(&reported(&place, &results, &shown, made, start))?;
    if common.quiet {
        return Ok(());
    }
    pages.print().map_err(super::standard_output)
}

/// Adds the experiments to those that the results are for; gives all of these.
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
    report.seconds.total = Some(start.elapsed().as_secs_f64());
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

/// The most memory that a run of this process held; what the process itself did, if it made none.
fn peak_bytes(results: &Results, made: usize) -> Option<u64> {
    let samples = results.measurements.iter().flat_map(|one| &one.samples);
    let now = samples.filter(|sample| made > 0 && sample.sitting + 1 == results.sittings.len());
    now.filter_map(|sample| sample.peak_bytes)
        .max()
        .or_else(peak_memory)
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

    /// What must be the same for a run to go on from another's results.
    fn asked(&self) -> String {
        let Scope { size, threads, .. } = self.scope();
        let size = match size {
            Size::Full => "full",
            Size::Quick => "quick",
        };
        let plural = if threads == 1 { "" } else { "s" };
        format!("bench paper, {size}, {threads} thread{plural} a party")
    }

    /// Measures what is missing; gives how many runs that was.
    fn measure(
        &self,
        cells: &[Cell],
        results: &mut Results,
        keeper: &Keeper,
        bar: ProgressBar,
    ) -> Result<usize, Failure> {
        let (voice, settings) = (self.common.voice(), self.settings());
        if self.draw {
            if results.measurements.is_empty() {
                let what = format_args!("{} has no measurements", keeper.path().display());
                return Err(Failure::usage("--draw", what).hint("without --draw it measures"));
            }
            return Ok(0);
        }
        let left = runner::foretell(cells, results, settings);
        let there = runs_there(cells, results, settings);
        say_before(voice, left, there, cells.len(), keeper, settings);
        if left.runs > 0 || (results.sittings.is_empty() && !cells.is_empty()) {
            voice.explain("measuring the machine");
            sit_down(results, cells, voice);
        }
        let mut watcher = Watcher::new(cells, settings, voice, bar, keeper, left);
        let measured = if cells.is_empty() {
            Ok(())
        } else {
            runner::run(cells, results, settings, &mut watcher)
        };
        watcher.over();
        // What was measured before a failure is kept as well.
        keeper.keep_now(results)?;
        measured?;
        if left.runs > 0 {
            say_after(voice, cells, results, settings);
        }
        Ok(runs_there(cells, results, settings) - there)
    }
}

/// How many of the runs that are asked for there are.
fn runs_there(cells: &[Cell], results: &Results, settings: Settings) -> usize {
    let there = |cell: &Cell| {
        let have = results.find(&cell.key);
        have.map_or(0, |have| have.samples.len().min(settings.runs))
    };
    cells.iter().map(there).sum()
}

fn say_before(
    voice: Voice,
    left: Left,
    there: usize,
    cells: usize,
    keeper: &Keeper,
    settings: Settings,
) {
    let path = keeper.path().display();
    if left.skipped > 0 {
        let (skipped, limit) = (left.skipped, settings.limit);
        voice.announce(
            format_args!("{skipped} of {cells} measurements would take more than {limit} s a run and are left out; --limit SECONDS"),
            true,
        );
    }
    if cells == 0 {
        let line = "all figures follow from parameters: nothing is to be measured";
        return voice.announce(line, true);
    }
    if left.runs == 0 {
        let else_ = if left.skipped > 0 { " else" } else { "" };
        let line = format_args!("nothing{else_} is missing in {path} ({there} runs): only drawing");
        return voice.announce(line, true);
    }
    voice.announce(
        format_args!(
            "measurements: {}, runs to be made: {}, already there: {there}; this takes {}",
            cells - left.skipped,
            left.runs,
            duration(left.seconds),
        ),
        true,
    );
    voice.announce(
        format_args!("results go to {path}; Ctrl-C keeps what is done, and the same command goes on from there"),
        true,
    );
}

/// What turned out to take too long only when smaller sizes were measured is told now.
fn say_after(voice: Voice, cells: &[Cell], results: &Results, settings: Settings) {
    let is_missing = |cell: &&Cell| {
        let have = results.find(&cell.key);
        have.is_none_or(|have| have.samples.is_empty())
    };
    let (missing, limit) = (cells.iter().filter(is_missing).count(), settings.limit);
    if missing > 0 {
        voice.announce(
            format_args!(
                "left out, since a run would take more than {limit} s: {missing} of {} measurements; --limit SECONDS measures them",
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
