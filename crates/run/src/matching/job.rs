//! The part of a run that depends on its kind of result.

use volery_matching::Partitioning;
use volery_tables::{Reading, Table};

use super::text::TableFacts;
use crate::cluster::Workers;
use crate::endpoint::{Connection, Endpoint, RunChannel};
use crate::failure::Result;
use crate::progress::PhaseProgress;
use crate::report::Report;
use crate::reporter::Reporter;
use crate::results::MatchResult;

/// Checks the options of workers and returns those.
pub type PrepareWorkers<'a> = dyn Fn() -> Result<Box<dyn Workers + 'a>> + 'a;

/// The inputs of a run that do not come from its options, and what its caller wants of it.
#[derive(Default)]
pub struct MatchInputs<'a> {
    /// The table, in place of files.
    pub table: Option<Table>,
    /// The connection, in place of an address.
    pub connection: Option<&'a mut Connection>,
    /// Prepares workers, in place of one connection, when the options have been checked.
    pub workers: Option<&'a PrepareWorkers<'a>>,
    /// Whether the matching rows are wanted in memory.
    pub rows: bool,
}

/// The state of a run that meets its peer.
pub(crate) struct RunState<'a, 'r> {
    pub(crate) pool: &'a crate::options::Pool,
    pub(crate) revealed: &'a [String],
    pub(crate) report: &'a mut Report,
    pub(crate) told: &'a mut PhaseProgress<'r>,
}

impl RunState<'_, '_> {
    /// Records that this side's facts may be known to the peer from now on.
    pub(crate) fn reveal(&self) {
        let mut record = self.told.reporter.record();
        record.revealed.extend(self.revealed.iter().cloned());
    }

    /// Ends the run on this connection, and adds its protection to the report.
    pub(crate) fn end_connection(&mut self, channel: RunChannel<'_>) {
        let connection = channel.describe();
        self.report.result.insert("connection".to_owned(), connection);
        channel.end();
    }
}

/// The part of a run that depends on its kind of result. The methods are called in this order.
pub(crate) trait Job: Send {
    /// Checks, before any work, that the output can be written. Not called in a dry run.
    fn prepare_output(&mut self) -> Result<()>;

    /// Checks that the columns of the table go with the output.
    fn check_table(&self, table: &mut Table) -> Result<()> {
        let _ = table;
        Ok(())
    }

    /// Reads the keys of the table, on the threads of the run.
    fn read(
        &mut self,
        table: &Table,
        reading: &Reading,
        told: &mut PhaseProgress<'_>,
    ) -> Result<()>;

    /// The facts of the table.
    fn facts(&self) -> TableFacts<'_>;

    /// The facts that each side learns, in sentences.
    fn revealed(&self, divided: Partitioning) -> Vec<String>;

    /// The predicted cost of a run: for people, and as a report.
    fn plan(&self, revealed: &[String], reporter: &Reporter) -> Result<(String, Report)>;

    /// The report as far as it is known before the run.
    fn report(&self, table: &Table, revealed: &[String], reporter: &Reporter) -> Report;

    /// Runs over one connection.
    fn meet(&mut self, endpoint: Endpoint<'_>, run: &mut RunState<'_, '_>) -> Result<()>;

    /// Runs with workers; false if these are left to something else.
    fn work(&mut self, workers: &dyn Workers, run: &mut RunState<'_, '_>) -> Result<bool>;

    /// Writes the result, and adds it to the report.
    fn write(
        &mut self,
        table: &Table,
        report: &mut Report,
        told: &mut PhaseProgress<'_>,
    ) -> Result<MatchResult>;

    /// Says how the run ended, with its whole report.
    fn end(&mut self, report: &Report, reporter: &Reporter) -> Result<()>;
}

/// The settings of a run with workers. Tells the protocol that they run where it was to be chosen.
pub(crate) fn of_workers<S>((settings, why): (S, Option<String>), reporter: &Reporter) -> S {
    if let Some(why) = why {
        reporter.tell(why);
    }
    settings
}
