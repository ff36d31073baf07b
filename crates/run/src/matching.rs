//! One run of a matching, from its options to its result: rows, totals or shares.
//!
//! [`run`] reads the table, says what will be revealed, meets the peer or starts workers, and
//! writes the result; a `Job` does what depends on the kind of result.

pub mod arguments;
pub(crate) mod cost;
mod failure;
pub(crate) mod files;
pub mod job;
mod rows;
mod served;
pub(crate) mod text;

use arguments::MatchingArguments;
use job::{Job, MatchInputs, RunState};
use serde_json::json;
use volery_matching::{Partitioning, ResultKind};
use volery_os::time::Instant;
use volery_tables::Table;

use crate::failure::{Failure, Result};
use crate::lint::caution_about_plain_files;
use crate::output::SingleFile;
use crate::page;
use crate::progress::PhaseProgress;
use crate::report::Report;
use crate::reporter::{Reporter, event};
use crate::results::MatchResult;
use crate::{shares, totals};

/// Runs one side.
pub fn run(
    arguments: &MatchingArguments,
    inputs: MatchInputs<'_>,
    reporter: &Reporter,
) -> Result<MatchResult> {
    let common = &arguments.common;
    arguments.options.check(arguments.verb)?;
    let has_workers = inputs.workers.is_some();
    let mut job: Box<dyn Job + '_> = match &arguments.result {
        ResultKind::Rows => Box::new(rows::Rows::new(arguments, &inputs, reporter)?),
        ResultKind::Shares(_) => Box::new(shares::SharesJob::new(arguments, &inputs)?),
        _ => Box::new(totals::TotalsJob::new(arguments, has_workers, reporter)?),
    };
    let workers = inputs.workers.map(|prepare| prepare()).transpose()?;
    let endpoint = match arguments.dry_run || has_workers {
        true => None,
        false => Some(arguments.endpoint.endpoint(inputs.connection, reporter)?),
    };
    let local = arguments.local();
    if local.is_complete() {
        let folder = arguments.resume.as_deref().unwrap_or_else(|| "".as_ref());
        reporter.say(format_args!(
            "{}: this run is complete; name another folder for a new one",
            folder.display()
        ));
        let report = Report::new(arguments.verb.name(), reporter);
        return Ok(MatchResult::of(report.to_json()));
    }
    if inputs.table.is_some() && !arguments.input.is_empty() {
        let what = "the table is given in memory, too; remove one of them";
        return Err(Failure::usage("--input", what));
    }
    files::check_names(arguments)?;
    if !arguments.dry_run {
        job.prepare_output()?;
    }
    let page = arguments.html.as_deref();
    let page = page.map(|path| SingleFile::prepare("--html", path)).transpose()?;
    let report_place = common.prepare_report(reporter)?;
    let pool = common.pool()?;

    let start = Instant::now();
    let mut told = PhaseProgress::new(reporter);
    let reading = arguments.reading()?;
    let mut table = match inputs.table {
        Some(table) => table,
        None => Table::open(&arguments.inputs())?,
    };
    caution_about_plain_files(reporter, arguments.plain_files);
    job.check_table(&mut table)?;
    pool.install(|| job.read(&table, &reading, &mut told))?;
    told.end();
    job.facts().tell(&table, reporter);
    let on_disk = arguments.memory.is_some() || arguments.resume.is_some() || local.buckets > 1;
    let revealed = job.revealed(match (has_workers, on_disk) {
        (true, _) => Partitioning::Shards,
        (false, true) => Partitioning::Buckets,
        (false, false) => Partitioning::No,
    });
    let fields = event("reveals", json!({ "reveals": revealed }));
    reporter.tell_with(revealed.join("\n"), fields);
    if arguments.dry_run {
        let (text, report) = job.plan(&revealed, reporter)?;
        reporter.output(&format!("{text}\n"))?;
        return Ok(MatchResult::of(report_place.write(&report)?));
    }
    let mut report = job.report(&table, &revealed, reporter);
    let mut running =
        RunState { pool: &pool, revealed: &revealed, report: &mut report, told: &mut told };
    match (endpoint, workers) {
        (Some(endpoint), _) => job.meet(endpoint, &mut running)?,
        (None, Some(workers)) => {
            running.reveal();
            if !job.work(&*workers, &mut running)? {
                return Ok(MatchResult::of(report_place.write(&report)?));
            }
        }
        (None, None) => unreachable!("a run has a peer"),
    }
    let matched = job.write(&table, &mut report, &mut told)?;
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    let report = report.up_to_now(reporter);
    if let Some(page) = page {
        let value = serde_json::to_value(&report).expect("a report serialises");
        page.commit(page::render(&value).as_bytes())?;
    }
    let text = report_place.write(&report)?;
    job.end(&report, reporter)?;
    Ok(MatchResult { report: text, ..matched })
}
