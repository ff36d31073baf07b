//! `volery psi --result count` and other totals: one number about the keys that both sides have, or
//! one for each group.

pub(crate) mod text;

use std::path::Path;

use volery_cluster::totals::{Driver, SHARES};
use volery_matching::totals::{
    COLUMN, GROUP_BY, GROUPS, Outcome, PreparedTable, Settings, TO, revealed,
};
use volery_matching::{Operation, Options, Partitioning, ProtocolChoice, RESULT, ResultKind};
use volery_tables::{Reading, Table};

use crate::cluster::Workers;
use crate::endpoint::Endpoint;
use crate::failure::{Failure, Result};
use crate::matching::arguments::MatchingArguments;
use crate::matching::files::{self, TableFile};
use crate::matching::job::{Job, RunState, of_workers};
use crate::matching::text::TableFacts;
use crate::paths::ResultFile;
use crate::progress::PhaseProgress;
use crate::report::Report;
use crate::reporter::{LineKind, Reporter, object};
use crate::results::MatchResult;

/// The settings of a side whose table is in a cluster; nothing for rows.
///
/// # Errors
/// The option at fault, or a result that workers of a cluster do not give.
pub(crate) fn of_cluster(options: &Options) -> Result<Option<Settings>> {
    options.check(Operation::Psi)?;
    match options.result {
        ResultKind::Rows => return Ok(None),
        ResultKind::Shares(_) => return Err(no_shares()),
        _ => {}
    }
    if options.protocol == ProtocolChoice::Dh {
        return Err(no_dh());
    }
    Ok(Some(options.totals()?.for_workers()?.0))
}

/// The remedy for a setting of a total in which the two sides differ.
pub(crate) fn disagreement(field: &str) -> Option<&'static str> {
    Some(match field {
        RESULT => {
            "give the same --result on both sides; of a sum or a mean one side names its column, the other gives the name alone"
        }
        COLUMN => "one side gives sum=COL or mean=COL, the other one sum or mean without a column",
        TO => "the result goes to --to SIDE, which both sides give alike",
        SHARES => {
            "shares of two attempts do not fit together, and nothing was opened: begin a new run, with a new --run and --resume on both sides"
        }
        GROUPS => "give the same --groups in the same order on both sides",
        GROUP_BY => "give --group-by at one side, the one with the column, and --groups at both",
        "--bound" | "--decimals" | "--minimum" | "--epsilon" | "--delta" => {
            "agree on it, and give the same on both sides"
        }
        _ => return None,
    })
}

/// The refusal of a result that workers do not compute.
pub fn no_shares() -> Failure {
    let what = "shares are computed by one process a side, not by workers";
    Failure::usage("--result", what).with_hint("use 'volery psi'")
}

/// The refusal of a protocol that workers do not run.
fn no_dh() -> Failure {
    let what = "workers compute totals by circuit or circuit-low, not by dh";
    Failure::usage("--protocol", what).with_hint("choose --protocol circuit on both sides")
}

/// Refuses a folder of progress, which totals and shares do not have.
pub(crate) fn check_resume(arguments: &MatchingArguments, kind: &str) -> Result<()> {
    match arguments.resume {
        None => Ok(()),
        Some(_) => {
            let what = format_args!("a {kind} is computed in memory, at once");
            let hint = "remove it; --dry-run says how much memory the run takes";
            Err(Failure::usage("--resume", what).with_hint(hint))
        }
    }
}

/// The file of the totals, checked before any work.
fn prepare_file(arguments: &MatchingArguments, settings: &Settings) -> Result<Option<TableFile>> {
    let Some(path) = &arguments.out else {
        return Ok(None);
    };
    let refuse = |what: String, hint: &str| Err(Failure::usage("--out", what).with_hint(hint));
    if !settings.gets_totals() {
        let what = format!("this side does not get the {}", settings.kind.name());
        return refuse(what, "remove --out; --to says who gets the result");
    }
    if path == Path::new("-") {
        let what = "the numbers are on standard output already".to_owned();
        return refuse(what, "remove --out, or name a file");
    }
    let format = files::format_of(path)?;
    let file = ResultFile::prepare(path, &arguments.input, arguments.force)?;
    Ok(Some((file, format)))
}

/// A run for a total. What it does not have yet, or no longer, is `None`.
pub(crate) struct TotalsJob<'a> {
    arguments: &'a MatchingArguments,
    settings: Settings,
    output: Option<TableFile>,
    side: Option<PreparedTable>,
    outcome: Option<Outcome>,
    /// The driver of workers, who keep the progress of the run.
    driver: Option<Driver>,
}

impl<'a> TotalsJob<'a> {
    /// Checks the options.
    pub(crate) fn new(
        arguments: &'a MatchingArguments,
        has_workers: bool,
        reporter: &Reporter,
    ) -> Result<Self> {
        if !has_workers {
            check_resume(arguments, arguments.result.name())?;
        } else if arguments.protocol == ProtocolChoice::Dh {
            return Err(no_dh());
        }
        let mut settings = arguments.options.totals()?;
        if has_workers {
            settings = of_workers(settings.for_workers()?, reporter);
        }
        Ok(Self { arguments, settings, output: None, side: None, outcome: None, driver: None })
    }

    fn side(&self) -> &PreparedTable {
        self.side.as_ref().expect("the table has been read")
    }

    fn take_side(&mut self) -> PreparedTable {
        self.side.take().expect("the table has been read")
    }

    fn outcome(&self) -> &Outcome {
        self.outcome.as_ref().expect("the run has ended")
    }
}

impl Job for TotalsJob<'_> {
    fn prepare_output(&mut self) -> Result<()> {
        self.output = prepare_file(self.arguments, &self.settings)?;
        Ok(())
    }

    fn read(
        &mut self,
        table: &Table,
        reading: &Reading,
        told: &mut PhaseProgress<'_>,
    ) -> Result<()> {
        self.side = Some(PreparedTable::read(table, reading, &self.settings, told)?);
        Ok(())
    }

    fn facts(&self) -> TableFacts<'_> {
        let mut facts = TableFacts::from(self.side().summary());
        facts.no_group = self.side().rows_in_no_group().unwrap_or(0);
        facts
    }

    fn revealed(&self, divided: Partitioning) -> Vec<String> {
        revealed(&self.settings, divided)
    }

    fn plan(&self, revealed: &[String], reporter: &Reporter) -> Result<(String, Report)> {
        text::plan(self.arguments, self.side(), revealed, reporter)
    }

    fn report(&self, table: &Table, revealed: &[String], reporter: &Reporter) -> Report {
        let side = self.side();
        let fields = object(text::settings_of(side.settings(), side.rows_in_no_group()));
        let table = (table, "semi-honest".to_owned());
        TableFacts::from(side.summary()).report(self.arguments, table, fields, revealed, reporter)
    }

    fn meet(&mut self, endpoint: Endpoint<'_>, run: &mut RunState<'_, '_>) -> Result<()> {
        let side = self.take_side();
        let reporter = run.told.reporter;
        // Before the run: also one that fails may have revealed something.
        run.reveal();
        let mut channel = endpoint.open(self.arguments.common.timeout, reporter)?;
        let outcome = run.pool.install(|| side.run(&mut channel, run.told))?;
        run.told.end();
        run.end_connection(channel);
        self.outcome = Some(outcome);
        Ok(())
    }

    fn work(&mut self, workers: &dyn Workers, run: &mut RunState<'_, '_>) -> Result<bool> {
        let mut driver = Driver::new(self.take_side(), workers.folder())?;
        let Some((outcome, about)) = workers.totals(&mut driver, run.pool, run.told)? else {
            return Ok(false);
        };
        run.report.result.insert("run".to_owned(), about);
        (self.outcome, self.driver) = (Some(outcome), Some(driver));
        Ok(true)
    }

    fn write(
        &mut self,
        _: &Table,
        report: &mut Report,
        _: &mut PhaseProgress<'_>,
    ) -> Result<MatchResult> {
        text::add_outcome(report, &self.settings, self.outcome());
        if let Some((output, format)) = self.output.take() {
            let path = output.path().to_owned();
            output.write(|file| {
                let written = self.outcome().write(&self.settings, file, format);
                written.map_err(|problem| files::failure(&path, &problem))
            })?;
        }
        Ok(MatchResult::default())
    }

    fn end(&mut self, report: &Report, reporter: &Reporter) -> Result<()> {
        if self.settings.gets_totals() {
            reporter.output(&text::numbers(&self.settings, self.outcome()))?;
        }
        if let Some(driver) = self.driver.take()
            && !driver.finish()?
        {
            reporter.say(
                "the peer has not confirmed; if it is still waiting, run the same command again",
            );
        }
        let lines = text::summary(&self.settings, report, self.outcome());
        reporter.line(LineKind::Result, lines.join("\n"), report.done());
        Ok(())
    }
}
