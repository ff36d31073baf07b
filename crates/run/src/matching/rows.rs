//! The matching rows.

use std::time::Duration;

use serde_json::json;
use volery_cluster::{driver, take_back};
use volery_matching::{
    Columns, Finish, Matches, Outcome, Partitioning, PreparedTable, Settings, StorageOptions,
    WrittenRows,
};
use volery_tables::{Duplicates, Format, Reading, Table};

use super::arguments::MatchingArguments;
use super::files::{self, RowOutput};
use super::job::{Job, MatchInputs, RunState, of_workers};
use super::served::Query;
use super::text::{self, TableFacts};
use crate::cluster::{Driver, Workers};
use crate::endpoint::Endpoint;
use crate::failure::{Failure, Result};
use crate::progress::PhaseProgress;
use crate::report::Report;
use crate::reporter::{LineKind, Reporter, event, many, object};
use crate::results::MatchResult;

/// A run for rows. What it does not have yet, or no longer, is `None`.
pub(crate) struct Rows<'a> {
    arguments: &'a MatchingArguments,
    settings: Settings,
    local: StorageOptions,
    columns: Columns,
    query: Option<Query>,
    output: Option<RowOutput>,
    /// Whether this is the program: it requires an output file, and returns no rows.
    is_program: bool,
    /// Whether the caller wants the rows in memory.
    in_memory: bool,
    side: Option<PreparedTable>,
    rows_read: u64,
    matches: Option<Matches>,
    /// Removes what a finished run no longer needs.
    finish: Option<Finish>,
    /// The cost of the run: nothing if an earlier attempt had all results, or for a query.
    outcome: Option<Outcome>,
}

impl<'a> Rows<'a> {
    /// Checks the options.
    pub(crate) fn new(
        arguments: &'a MatchingArguments,
        inputs: &MatchInputs<'_>,
        reporter: &Reporter,
    ) -> Result<Self> {
        let has_workers = inputs.workers.is_some();
        let mut settings = arguments.options.settings(arguments.verb)?;
        if has_workers {
            settings = of_workers(settings.for_workers()?, reporter);
        }
        Ok(Self {
            arguments,
            settings,
            local: arguments.local(),
            columns: arguments.columns(),
            query: Query::of(arguments, has_workers)?,
            output: None,
            is_program: reporter.is_program(),
            in_memory: inputs.rows,
            side: None,
            rows_read: 0,
            matches: None,
            finish: None,
            outcome: None,
        })
    }

    fn side(&self) -> &PreparedTable {
        self.side.as_ref().expect("the table has been read")
    }

    fn take_side(&mut self) -> PreparedTable {
        self.side.take().expect("the table has been read")
    }

    /// Keeps the result of a run.
    fn keep(&mut self, mut outcome: Outcome, report: &mut Report) {
        self.matches = outcome.matches.take();
        text::add_outcome(report, &self.settings, &outcome);
        let (finish, outcome) = outcome.split();
        (self.finish, self.outcome) = (Some(finish), Some(outcome));
    }
}

impl Job for Rows<'_> {
    fn prepare_output(&mut self) -> Result<()> {
        self.output = RowOutput::prepare(self.arguments, &self.settings, self.is_program)?;
        Ok(())
    }

    fn check_table(&self, table: &mut Table) -> Result<()> {
        if let Some(output) = &self.output {
            output.check(table)?;
        }
        let format = match &self.output {
            Some(output) => output.format(),
            None => Format::Arrow,
        };
        if matches!(format, Format::Parquet | Format::Arrow)
            && (self.output.is_some() || self.in_memory)
        {
            // Before the run: afterwards the result would be lost.
            table.require_utf8(format);
        }
        self.columns.check(table).map_err(|what| {
            let option = match self.columns.names.is_empty() {
                true => "--rule-column",
                false => "--value-name",
            };
            Failure::usage(option, what).with_hint("choose another name")
        })
    }

    fn read(
        &mut self,
        table: &Table,
        reading: &Reading,
        told: &mut PhaseProgress<'_>,
    ) -> Result<()> {
        if let (Some(folder), true) = (&self.local.folder, self.local.resume) {
            take_back(folder)?;
        }
        let side = PreparedTable::read(table, reading, &self.settings, &self.local, told)?;
        let side = side.naming(&self.columns);
        self.rows_read = side.rows();
        if let Some(output) = &self.output {
            let rows = side.rows();
            let matching = match self.columns.left {
                true => rows,
                false => side.most_matches(self.arguments.peer_rows),
            };
            output.check_space(table, matching, rows)?;
        }
        self.side = Some(side);
        Ok(())
    }

    fn facts(&self) -> TableFacts<'_> {
        let duplicates = self.arguments.duplicates;
        let mut facts = TableFacts::from(self.side());
        facts.sends_first = self.arguments.value.is_some() && duplicates == Duplicates::Keep;
        facts
    }

    fn revealed(&self, divided: Partitioning) -> Vec<String> {
        match self.query {
            Some(_) => volery_matching::served::revealed(),
            None => {
                let rules = self.arguments.number_of_rules();
                volery_matching::revealed(&self.settings, rules, divided)
            }
        }
    }

    fn plan(&self, revealed: &[String], reporter: &Reporter) -> Result<(String, Report)> {
        let (arguments, side) = (self.arguments, self.side());
        Ok(match &self.query {
            Some(query) => query.plan(arguments, &self.settings, side, revealed, reporter),
            None => text::plan(arguments, side, revealed, reporter),
        })
    }

    fn report(&self, table: &Table, revealed: &[String], reporter: &Reporter) -> Report {
        let (arguments, facts) = (self.arguments, self.facts());
        let fields = object(json!({ "both": arguments.both }));
        let security = self.settings.security.to_string();
        facts.report(arguments, (table, security), fields, revealed, reporter)
    }

    fn meet(&mut self, endpoint: Endpoint<'_>, run: &mut RunState<'_, '_>) -> Result<()> {
        let reporter = run.told.reporter;
        let timeout = self.arguments.common.timeout;
        let side = self.take_side();
        if let Some(query) = self.query.take() {
            let (matches, finish) = query.run((endpoint, timeout), side, run)?;
            (self.matches, self.finish) = (Some(matches), Some(finish));
            return Ok(());
        }
        let finished_before = side.has_all_results();
        // The peer may lack results of its own, for which it needs this side.
        let is_needed = self.settings.both;
        let endpoint = match finished_before && !is_needed {
            true => {
                // Only the peer may not know yet; it matters to a sender that still waits.
                reporter.tell("all results of this run are here already; telling the peer");
                endpoint.within(Duration::from_secs(10))
            }
            false => endpoint,
        };
        let mut channel = match endpoint.open(timeout, reporter) {
            Err(failure) if finished_before && (!is_needed || failure.is_network()) => {
                let (matches, finish) = side.into_matches()?;
                (self.matches, self.finish) = (Some(matches), (!is_needed).then_some(finish));
                if is_needed {
                    reporter.caution(format_args!(
                        "{}; all results of this side are here, so it ends without the peer; delete its \
                         folder of --resume once the peer has its results, too, or start again with \
                         --force to help it",
                        failure.message()
                    ));
                }
                return Ok(());
            }
            opened => opened?,
        };
        run.reveal();
        let outcome = run.pool.install(|| side.run(&mut channel, run.told))?;
        run.told.end();
        run.end_connection(channel);
        self.keep(outcome, run.report);
        Ok(())
    }

    fn work(&mut self, workers: &dyn Workers, run: &mut RunState<'_, '_>) -> Result<bool> {
        let mut side = self.take_side();
        let Some((manifest, worked, about)) =
            workers.run(&mut Driver::Rows(&mut side), run.pool, run.told)?
        else {
            return Ok(false);
        };
        let outcome = driver::into_outcome(side, &manifest, &worked)?;
        self.keep(outcome, run.report);
        run.report.result.insert("run".to_owned(), about);
        Ok(true)
    }

    fn write(
        &mut self,
        table: &Table,
        report: &mut Report,
        told: &mut PhaseProgress<'_>,
    ) -> Result<MatchResult> {
        let mut matched = MatchResult::default();
        let mut written: Option<WrittenRows> = None;
        if let Some(matches) = &self.matches {
            if let Some(output) = self.output.take() {
                written = Some(output.write(table, matches, &self.columns, told)?);
                told.end();
            }
            if !self.is_program {
                let (indices, rules) = matches.rows_and_rules()?;
                matched.count = Some(matches.rows());
                (matched.indices, matched.rules) = (Some(indices), Some(rules));
                if self.in_memory && self.arguments.out.is_none() {
                    let rows = matches.to_batches(table, &self.columns, told);
                    let rows = rows.map_err(|error| files::refused(error, "the rows".as_ref()));
                    let (schema, batches, in_memory) = rows?;
                    matched.rows = Some((schema, batches));
                    written = Some(WrittenRows { rows: 0, ..in_memory });
                    told.end();
                }
            }
        }
        if let Some(finish) = self.finish.take() {
            finish.finish()?;
        }
        if let Some(written) = written.as_ref().filter(|written| written.unwritten > 0) {
            let (values, first) = (written.unwritten, &written.first_unwritten);
            let text = format!(
                "left empty because they could not be written: {}; {}",
                many(values, "value"),
                first.join("; "),
            );
            let fields = event("left_empty", json!({ "values": values, "first": first }));
            told.reporter.line(LineKind::Warning, text, fields);
        }
        text::add_matches(report, self.matches.as_ref(), written.as_ref());
        Ok(matched)
    }

    fn end(&mut self, report: &Report, reporter: &Reporter) -> Result<()> {
        let (outcome, matches) = (self.outcome.as_ref(), self.matches.as_ref());
        let lines = text::summary(self.arguments, report, outcome, matches);
        reporter.line(LineKind::Result, lines.join("\n"), report.done());
        text::caution_about_no_match(reporter, self.rows_read, matches);
        Ok(())
    }
}
