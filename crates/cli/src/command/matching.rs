//! One run of a matching, from its options to its result: rows, totals or shares.
//!
//! [`run`] reads the table, says what will be revealed, meets the peer or starts workers, and
//! writes the result; a [`Job`] does what depends on the kind of result.

mod failure;
pub(super) mod files;
mod rows;
mod served;
pub(super) mod summary;
pub(crate) mod text;

use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Instant;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use volery_matching::{Divided, Options, Progress, Verb, What};
use volery_options::{Named, SetByName};
use volery_tables::{Reading, Table};

use super::endpoint::{Connection, Endpoint, EndpointArguments, EndpointOptions, Met};
use super::options::{Common, Reporter};
use super::run_local::{RunArguments, Workers};
use super::{shares, totals};
use crate::embed::Matched;
use crate::exit::Failure;
use crate::flat::{Flat, Select};
use crate::output::SingleFile;
use crate::page;
use crate::report::{Report, peak_memory};
use crate::said::Bar;

/// The options of one side.
#[derive(Clone, Debug)]
pub(crate) struct MatchingArguments {
    pub(super) verb: Verb,
    pub(super) options: Options,
    pub(super) endpoint: EndpointArguments,
    pub(super) common: Common,
}

impl Deref for MatchingArguments {
    type Target = Options;

    fn deref(&self) -> &Options {
        &self.options
    }
}

impl MatchingArguments {
    /// The options of a caller who gives a table, or names files with `input`.
    ///
    /// # Errors
    /// The option at fault, or one that is missing.
    pub(crate) fn by_name(verb: Verb, named: &Named, has_table: bool) -> Result<Self, Failure> {
        let mut options = Options::default();
        let mut endpoint = EndpointOptions::default();
        let mut common = Common::default();
        for (name, _) in named {
            if !verb.has(name) {
                let option = format!("--{}", name.replace('_', "-"));
                let what = format_args!("not an option of {}", verb.name());
                return Err(Failure::usage(&option, what));
            }
        }
        let mut sets: [&mut dyn SetByName; 4] = [
            &mut options,
            &mut endpoint,
            &mut common.run.0,
            &mut common.output.report.0,
        ];
        volery_options::fill(named, &mut sets).map_err(not_an_option)?;
        for required in ["role", "key", "input"] {
            let optional = required == "input" && has_table;
            if !optional && !named.iter().any(|(name, _)| name == required) {
                return Err(Failure::usage(&format!("--{required}"), "required"));
            }
        }
        Ok(Self {
            verb,
            options,
            endpoint: Flat::new(endpoint),
            common,
        })
    }
}

/// The failure of an option that is set by name.
pub(crate) fn not_an_option((name, what): (&str, String)) -> Failure {
    Failure::usage(&format!("--{}", name.replace('_', "-")), what)
}

/// The operation that a subcommand is.
pub(crate) trait Operation: Clone + std::fmt::Debug + Send + Sync + 'static {
    const VERB: Verb;
}

/// `volery psi`.
#[derive(Clone, Debug)]
pub(crate) struct Psi;

/// `volery lookup`.
#[derive(Clone, Debug)]
pub(crate) struct Lookup;

impl Operation for Psi {
    const VERB: Verb = Verb::Psi;
}

impl Operation for Lookup {
    const VERB: Verb = Verb::Lookup;
}

impl<O: Operation> Select for O {
    fn has(name: &str) -> bool {
        O::VERB.has(name)
    }
}

/// [`MatchingArguments`] of an operation, on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Words<O>(pub(super) MatchingArguments, PhantomData<O>);

impl<O> Deref for Words<O> {
    type Target = MatchingArguments;

    fn deref(&self) -> &MatchingArguments {
        &self.0
    }
}

impl<O: Operation> Args for Words<O> {
    fn augment_args(command: Command) -> Command {
        let command = Flat::<Options, O>::augment_args(command);
        Common::augment_args(EndpointArguments::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<O: Operation> FromArgMatches for Words<O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let arguments = MatchingArguments {
            verb: O::VERB,
            options: Flat::<Options, O>::from_arg_matches(matches)?.0,
            endpoint: EndpointArguments::from_arg_matches(matches)?,
            common: Common::from_arg_matches(matches)?,
        };
        Ok(Self(arguments, PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The inputs of a run that do not come from its options, and what its caller wants of it.
#[derive(Default)]
pub(crate) struct MatchInputs<'a> {
    /// The table, in place of files.
    pub(crate) table: Option<Table>,
    /// The connection, in place of an address.
    pub(crate) connection: Option<&'a mut Connection>,
    /// Workers, in place of one connection.
    pub(crate) workers: Option<&'a RunArguments>,
    /// Whether the matching rows are wanted in memory.
    pub(crate) rows: bool,
}

/// The state of a run that meets its peer.
pub(super) struct RunState<'a, 'r> {
    pub(super) pool: &'a rayon::ThreadPool,
    pub(super) revealed: &'a [String],
    pub(super) report: &'a mut Report,
    pub(super) told: &'a mut Told<'r>,
}

impl RunState<'_, '_> {
    /// Ends the run on this connection, and adds its protection to the report.
    pub(super) fn end_connection(&mut self, channel: Met<'_>) {
        let connection = channel.describe();
        self.report
            .result
            .insert("connection".to_owned(), connection);
        channel.end();
    }
}

/// The part of a run that depends on its kind of result. The methods are called in this order.
pub(super) trait Job {
    /// Checks, before any work, that the output can be written. Not called in a dry run.
    fn prepare_output(&mut self) -> Result<(), Failure>;

    /// Checks that the columns of the table go with the output.
    fn check_table(&self, table: &mut Table) -> Result<(), Failure> {
        let _ = table;
        Ok(())
    }

    /// Reads the keys of the table.
    fn read(
        &mut self,
        table: &Table,
        reading: &Reading,
        pool: &rayon::ThreadPool,
        told: &mut Told<'_>,
    ) -> Result<(), Failure>;

    /// Tells what was left out of the table, and returns the number of keys in words.
    fn tell_counts(&self, table: &Table, reporter: &Reporter) -> String;

    /// What each side learns, in sentences.
    fn revealed(&self, divided: Divided) -> Vec<String>;

    /// What a run would cost: for people, and as a report.
    fn plan(&self, revealed: &[String], reporter: &Reporter) -> Result<(String, Report), Failure>;

    /// The report as far as it is known before the run.
    fn report(&self, table: &Table, revealed: &[String], reporter: &Reporter) -> Report;

    /// Runs over one connection.
    fn meet(&mut self, endpoint: Endpoint<'_>, run: &mut RunState<'_, '_>) -> Result<(), Failure>;

    /// Runs with workers; false if these are left to something else.
    fn work(&mut self, workers: &Workers<'_>, run: &mut RunState<'_, '_>) -> Result<bool, Failure>;

    /// Writes the result, and adds it to the report.
    fn write(
        &mut self,
        table: &Table,
        report: &mut Report,
        told: &mut Told<'_>,
    ) -> Result<Matched, Failure>;

    /// Says how the run ended, with its whole report.
    fn end(&mut self, report: &Report, reporter: &Reporter) -> Result<(), Failure>;
}

/// Runs one side.
///
/// # Errors
/// Any error that ends the run.
pub(crate) fn run(
    arguments: &MatchingArguments,
    inputs: MatchInputs<'_>,
    reporter: &Reporter,
) -> Result<Matched, Failure> {
    let common = &arguments.common;
    arguments.options.check(arguments.verb)?;
    let has_workers = inputs.workers.is_some();
    let mut job: Box<dyn Job + '_> = match &arguments.result {
        What::Rows => Box::new(rows::Rows::new(arguments, &inputs, reporter)?),
        What::Shares(columns) => Box::new(shares::SharesOf::new(arguments, columns, &inputs)?),
        _ => Box::new(totals::TotalsOf::new(arguments, has_workers, reporter)?),
    };
    let workers = inputs
        .workers
        .map(|workers| Workers::prepare(workers, arguments, reporter))
        .transpose()?;
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
        return Ok(Matched::of(report.to_json()));
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
    let page = page
        .map(|path| SingleFile::prepare("--html", path))
        .transpose()?;
    let report_place = common.prepare_report(reporter)?;
    let pool = common.pool()?;

    let start = Instant::now();
    let mut told = Told::new(reporter);
    let reading = arguments.reading()?;
    let mut table = match inputs.table {
        Some(table) => table,
        None => Table::open(&arguments.inputs())?,
    };
    job.check_table(&mut table)?;
    job.read(&table, &reading, &pool, &mut told)?;
    told.end();
    let keys = job.tell_counts(&table, reporter);
    let on_disk = arguments.memory.is_some() || arguments.resume.is_some() || local.buckets > 1;
    let revealed = job.revealed(match (has_workers, on_disk) {
        (true, _) => Divided::Shards,
        (false, true) => Divided::Buckets,
        (false, false) => Divided::No,
    });
    reporter.tell(format_args!("this side has {keys}"));
    for line in &revealed {
        reporter.tell(line);
    }
    if arguments.dry_run {
        let (text, report) = job.plan(&revealed, reporter)?;
        reporter.output(&format!("{text}\n"))?;
        return Ok(Matched::of(report_place.write(&report)?));
    }
    let mut report = job.report(&table, &revealed, reporter);
    let mut running = RunState {
        pool: &pool,
        revealed: &revealed,
        report: &mut report,
        told: &mut told,
    };
    match (endpoint, workers) {
        (Some(endpoint), _) => job.meet(endpoint, &mut running)?,
        (None, Some(workers)) => {
            reporter.known().revealed.extend(revealed.iter().cloned());
            if !job.work(&workers, &mut running)? {
                return Ok(Matched::of(report_place.write(&report)?));
            }
        }
        (None, None) => unreachable!("a run has a peer"),
    }
    let matched = job.write(&table, &mut report, &mut told)?;
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    report.peak_rss_bytes = peak_memory();
    let report = report.up_to_now(reporter);
    if let Some(page) = page {
        let value = serde_json::to_value(&report).expect("a report serialises");
        page.commit(page::render(&value).as_bytes())?;
    }
    let text = report_place.write(&report)?;
    job.end(&report, reporter)?;
    Ok(Matched {
        report: text,
        ..matched
    })
}

/// The settings of a run with workers. Tells the protocol that they run where it was to be chosen.
pub(super) fn of_workers<S>((settings, why): (S, Option<String>), reporter: &Reporter) -> S {
    if let Some(why) = why {
        reporter.tell(why);
    }
    settings
}

/// Shows the phases of a run.
pub(super) struct Told<'a> {
    pub(super) reporter: &'a Reporter,
    bar: Option<Bar>,
}

impl<'a> Told<'a> {
    pub(super) fn new(reporter: &'a Reporter) -> Self {
        Self {
            reporter,
            bar: None,
        }
    }

    /// Ends the last phase.
    pub(super) fn end(&mut self) {
        self.clear();
        self.reporter.end();
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Told<'_> {
    fn begin(&mut self, phase: &'static str, steps: u64) {
        self.clear();
        self.bar = Some(self.reporter.phase(phase, steps));
    }

    fn done(&mut self, steps: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(steps);
        }
    }

    fn note(&mut self, text: &str) {
        self.reporter.explain(text);
    }
}
