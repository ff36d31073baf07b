//! The part that `psi` and `lookup` share: reads tables of records and writes the matching rows.

pub(super) mod files;
mod served;
pub(super) mod summary;
pub(crate) mod text;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use volery_channel::{Link, Role};
use volery_matching::{
    Columns, Divided, Error, Finish, Local, Matches, Name, Outcome, Progress, Settings, Side, Verb,
    Wrong,
};
use volery_pcg::Security;
use volery_tables::{Duplicates, EmptyKeys, Encoding, Format, Malformed, Table};

use super::endpoint::{Connection, Endpoint, EndpointArguments};
use super::options::{Common, Reporter, parse_link, role};
use super::run_local::{RunArguments, Workers};
use super::{totals, worker};
use crate::embed::Matched;
use crate::exit::{Failure, Status};
use crate::output::SingleFile;
use crate::report::{Report, peak_memory};
use crate::said::{Bar, many};
use crate::{page, values};
use files::OutputFile;
pub(super) use served::ServedArguments;

/// The options of both subcommands.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MatchingArguments {
    /// Role of this party
    #[arg(long, value_parser = role(
        "Holds the set that the peer's keys are matched against; learns only the number of the peer's keys, unless both sides set --both",
        "Gets the result",
    ))]
    pub(super) role: Role,

    #[command(flatten)]
    pub(super) endpoint: EndpointArguments,

    /// Input of this party: a file (.csv, .tsv, .txt, each also with .gz or .zst; .parquet;
    /// .arrow), a folder of Parquet files, or a pattern with '*'; '-' is standard input. Several
    /// are one table: repeat --input
    #[arg(long, value_name = "FILE", required = true, help_heading = "Input")]
    pub(super) input: Vec<PathBuf>,

    /// Format of standard input, or of files whose names do not say it
    #[arg(long, value_name = "FORMAT", value_parser = format, help_heading = "Input")]
    format: Option<Format>,

    /// Field separator of a text file: one character, or 'tab' [default: given by the extension]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter, help_heading = "Input")]
    delimiter: Option<u8>,

    /// Encoding of a text file, such as utf-16le or windows-1252: keys are then compared as UTF-8
    /// [default: keys are bytes]
    #[arg(long, value_name = "LABEL", help_heading = "Input")]
    encoding: Option<Encoding>,

    #[command(flatten)]
    pub(super) keys: KeyArguments,

    /// Treatment of rows with the same key: 'keep', all of them match or none; 'error'; or 'dedup',
    /// only the first
    #[arg(long, value_name = "RULE", default_value = "keep", value_parser = duplicates, help_heading = "Keys")]
    duplicates: Duplicates,

    /// Output file for this party's matching rows: .csv, .tsv, .txt, each also with .gz or .zst,
    /// .parquet or .arrow; appears when the run is complete. '-' is standard output, as CSV. With
    /// psi --result shares a folder of .npy files, or a .parquet file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) out: Option<PathBuf>,

    /// Replace an existing output file
    #[arg(long, help_heading = "Output")]
    pub(super) force: bool,

    /// Append a column with the number of the key by which a row matched: 1 for --key, 2 for the
    /// first --or
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub(super) rule_column: Option<String>,

    /// Write a page about the run to this file, to be looked at in a browser
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) html: Option<PathBuf>,

    /// Matching protocol; both sides name the same
    #[arg(long, value_name = "NAME", default_value_t, help_heading = "Protocol")]
    pub(super) protocol: Name,

    /// Adversary that the run is secure against: malicious, a peer that may do anything; or
    /// semi-honest, a peer that follows the protocol and inspects what it receives [default:
    /// malicious; semi-honest with --both, vole-low, kkrt and kkrt-paper, which have no malicious
    /// form]
    #[arg(long, help_heading = "Protocol")]
    pub(super) security: Option<Security>,

    /// Link that --protocol auto chooses for: RATE,RTT such as 100Mbit,20ms [default: the link that
    /// the parties measure]
    #[arg(long, value_name = "RATE,RTT", value_parser = parse_link, help_heading = "Protocol")]
    pub(super) link: Option<Link>,

    /// Give the result to the sender too, with semi-honest security; both sides must set this
    #[arg(long, help_heading = "Protocol")]
    pub(super) both: bool,

    /// Memory that the run may take, such as 2GiB: the keys are then on disk, and matched bucket by
    /// bucket
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "Running")]
    pub(super) memory: Option<u64>,

    /// Folder for keys on disk and for the progress of the run: the same command goes on with a run
    /// that broke, and does nothing when it is complete. Holds hashes of the keys until then
    #[arg(long, value_name = "DIR", help_heading = "Running")]
    pub(super) resume: Option<PathBuf>,

    /// Least number of buckets, which are matched one after the other
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(volery_matching::MAX_BUCKETS)), help_heading = "Running")]
    pub(super) buckets: Option<u32>,

    /// Say what the run will cost and reveal, and end; nothing is sent
    #[arg(long, help_heading = "Running")]
    pub(super) dry_run: bool,

    /// Rows of the peer, for --dry-run [default: as many as here]
    #[arg(long, value_name = "N", value_parser = values::count, requires = "dry_run", help_heading = "Running")]
    pub(super) peer_rows: Option<u64>,

    #[command(flatten)]
    pub(super) common: Common,
}

/// How the rows get their keys.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct KeyArguments {
    /// The key column, or several columns that together form one key. NAME:SPEC reads a column as a
    /// type (text, binary, integer, decimal, boolean, date, timestamp), or cleans it by normalisers
    /// with '+' in between, such as email or trim+lower+nfc or e164=DE; 'volery lint' tries them.
    /// A name with a comma or colon stands in double quotes
    #[arg(
        long,
        value_name = "COL[:SPEC],..",
        required = true,
        help_heading = "Keys"
    )]
    pub(super) key: Vec<String>,

    /// Another key by which rows match that do not match by the keys before it; may be repeated.
    /// Both sides give the same number of keys, in the same order
    #[arg(long, value_name = "COL[:SPEC],..", help_heading = "Keys")]
    pub(super) or: Vec<String>,

    #[command(flatten)]
    rows: RowRules,
}

/// What becomes of rows without a key.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct RowRules {
    /// Treatment of a row with an empty or null key column: 'error', or 'skip' to leave it out;
    /// with --or such a row has no part in that key
    #[arg(long, value_name = "RULE", default_value = "error", value_parser = empty_keys, help_heading = "Keys")]
    empty_keys: EmptyKeys,

    /// Treatment of a row whose key column does not fit its type or normaliser: 'error', or 'skip'
    #[arg(long, value_name = "RULE", default_value = "error", value_parser = malformed, help_heading = "Keys")]
    malformed: Malformed,
}

/// What `lookup` adds.
#[derive(Clone, Debug, Default)]
pub(super) struct Lookup {
    /// Sender: the columns of the payload.
    pub(super) values: Vec<String>,
    /// Receiver: names for them.
    pub(super) names: Vec<String>,
    /// Receiver: keeps all its rows.
    pub(super) left: bool,
}

fn choose<T: Copy>(name: &str, all: &[(&str, T)]) -> Result<T, String> {
    let found = all.iter().find(|(other, _)| *other == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        format!("choose {}", listed(&names))
    })
}

/// "a or b", "a, b or c".
fn listed(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        names => names.join(""),
    }
}

pub(super) fn duplicates(name: &str) -> Result<Duplicates, String> {
    let all = [
        ("keep", Duplicates::Keep),
        ("error", Duplicates::Error),
        ("dedup", Duplicates::Dedup),
    ];
    choose(name, &all)
}

fn empty_keys(name: &str) -> Result<EmptyKeys, String> {
    choose(
        name,
        &[("error", EmptyKeys::Error), ("skip", EmptyKeys::Skip)],
    )
}

fn malformed(name: &str) -> Result<Malformed, String> {
    choose(
        name,
        &[("error", Malformed::Error), ("skip", Malformed::Skip)],
    )
}

pub(super) fn format(name: &str) -> Result<Format, String> {
    let all = [
        ("csv", Format::Csv),
        ("tsv", Format::Tsv),
        ("parquet", Format::Parquet),
        ("arrow", Format::Arrow),
    ];
    choose(name, &all)
}

/// Names with commas in between; one with a comma stands in double quotes, a quote in it twice.
pub(crate) fn names(text: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut rest = text;
    loop {
        let (name, left) = match rest.strip_prefix('"') {
            None => match rest.split_once(',') {
                Some((name, left)) => (name.to_owned(), Some(left)),
                None => (rest.to_owned(), None),
            },
            Some(quoted) => {
                let (mut name, mut left) = (String::new(), quoted);
                loop {
                    let (piece, after) = left.split_once('"').ok_or("a quote does not close")?;
                    name += piece;
                    left = match after.strip_prefix('"') {
                        Some(after) => after,
                        None => break left = after,
                    };
                    name.push('"');
                }
                match left {
                    "" => (name, None),
                    _ => {
                        let left = left.strip_prefix(',');
                        (name, Some(left.ok_or("a comma is missing after a quote")?))
                    }
                }
            }
        };
        if name.is_empty() {
            return Err("a name is empty".to_owned());
        }
        names.push(name);
        match left {
            Some(left) => rest = left,
            None => return Ok(names),
        }
    }
}

pub(super) fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] => Ok(*byte),
        _ => Err("a delimiter is one ASCII character, or 'tab'".to_owned()),
    }
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        Self::usage(wrong.option, wrong.what).with_hint(wrong.hint)
    }
}

impl From<volery_tables::Error> for Failure {
    fn from(error: volery_tables::Error) -> Self {
        let failure = Self::new(Status::Other, &error);
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let hint = error.hint();
        let failure = match error {
            Error::Protocol(volery_psi::Error::Channel(error)) => disagreement(error),
            Error::Protocol(error) if let Some(refused) = served::refused(&error) => {
                return refused;
            }
            Error::Table(error) => return error.into(),
            Error::LongKeys => Self::usage("--key", error),
            Error::LittleMemory { .. } => Self::usage("--memory", error),
            Error::LargeTotal { .. } => Self::usage("--bound", error),
            other => Self::new(Status::Other, other),
        };
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// The remedy for settings that differ between the two sides.
fn disagreement(error: volery_channel::Error) -> Failure {
    use volery_channel::Error;
    let hint = match &error {
        Error::Mismatch { field, .. } if field == volery_matching::KEYS => {
            "give the same keys on both sides: as many --key and --or in the same order, with the same types and normalisers; the names of the columns may differ"
        }
        Error::Mismatch { field, .. } if field == volery_matching::BOTH => {
            "the sender gets the result only if both sides set --both"
        }
        Error::Mismatch { field, .. } if worker::disagreement(field).is_some() => {
            worker::disagreement(field).unwrap_or_default()
        }
        Error::Mismatch { field, .. } if totals::disagreement(field).is_some() => {
            totals::disagreement(field).unwrap_or_default()
        }
        Error::Mismatch { field, .. } if field == volery_matching::PROGRESS => {
            "use the folders of the same run on both sides; to begin anew, name new folders on both"
        }
        _ => return error.into(),
    };
    Failure::from(error).with_hint(hint)
}

/// What a caller gives to a run, and wants of it.
#[derive(Default)]
pub(crate) struct Given<'a> {
    /// The table, in place of files.
    pub(crate) table: Option<Table>,
    /// The connection, in place of an address.
    pub(crate) connection: Option<&'a mut Connection>,
    /// Workers, in place of one connection.
    pub(crate) workers: Option<&'a RunArguments>,
    /// Of queries to a server.
    pub(crate) served: Option<&'a ServedArguments>,
    /// Whether the matching rows are wanted in memory.
    pub(crate) rows: bool,
}

/// Runs one of the subcommands; a lookup has `lookup`.
///
/// # Errors
/// Any error that ends the run.
pub(super) fn run(
    arguments: &MatchingArguments,
    lookup: Option<&Lookup>,
    given: Given<'_>,
    reporter: &Reporter,
) -> Result<Matched, Failure> {
    let common = &arguments.common;
    let verb = lookup.map_or(Verb::Psi, |_| Verb::Lookup);
    let MatchingArguments { role, both, .. } = *arguments;
    let name = match (given.workers, arguments.protocol) {
        // Shards are large, and both sides must know the protocol before they meet.
        (Some(_), Name::Auto) => Name::Vole,
        (_, name) => name,
    };
    let settings = Settings::new(verb, role, name, arguments.security, both, arguments.link)?;
    let query = served::Query::of(arguments, given.served, given.workers.is_some(), name)?;
    let workers = given
        .workers
        .map(|workers| Workers::prepare(workers, arguments, reporter))
        .transpose()?;
    let endpoint = match arguments.dry_run || workers.is_some() {
        true => None,
        false => Some(arguments.endpoint.endpoint(given.connection, reporter)?),
    };
    let local = arguments.local();
    if local.is_complete() {
        let folder = arguments.resume.as_deref().unwrap_or_else(|| "".as_ref());
        reporter.say(format_args!(
            "{}: this run is complete; name another folder for a new one",
            folder.display()
        ));
        return Ok(Matched::of(Report::new(verb.name(), reporter).to_json()));
    }
    if given.table.is_some() && !arguments.input.is_empty() {
        let what = "the table is given in memory, too; remove one of them";
        return Err(Failure::usage("--input", what));
    }
    files::check_names(arguments)?;
    let place = match arguments.dry_run {
        true => None,
        false => OutputFile::prepare(arguments, &settings, reporter.is_program())?,
    };
    let page = arguments.html.as_deref();
    let page = page
        .map(|path| SingleFile::prepare("--html", path))
        .transpose()?;
    let report_place = common.prepare_report(reporter)?;
    let pool = common.pool()?;

    let start = Instant::now();
    let mut told = Told::new(reporter);
    let reading = files::reading(arguments, lookup)?;
    let mut table = match given.table {
        Some(table) => table,
        None => Table::open(&files::inputs(arguments))?,
    };
    if let Some(place) = &place {
        place.check(&table)?;
    }
    let format = match &place {
        Some(place) => place.format(),
        None => Format::Arrow,
    };
    if matches!(format, Format::Parquet | Format::Arrow) && (place.is_some() || given.rows) {
        // Before the run: afterwards the result would be lost.
        table.require_utf8(format);
    }
    let columns = Columns {
        left: lookup.is_some_and(|lookup| lookup.left),
        names: lookup
            .map(|lookup| lookup.names.clone())
            .unwrap_or_default(),
        rule: arguments.rule_column.clone(),
    };
    columns.check(&table).map_err(|what| {
        let option = match columns.names.is_empty() {
            true => "--rule-column",
            false => "--value-name",
        };
        Failure::usage(option, what).with_hint("choose another name")
    })?;
    let mut side = pool.install(|| Side::read(&table, &reading, &settings, &local, &mut told))?;
    told.end();
    text::tell_counts(reporter, &table, &side);
    let rows_read = side.rows();
    let rules = reading.rules.len();
    let disk = arguments.memory.is_some() || arguments.resume.is_some();
    let divided = match (&workers, disk || local.buckets > 1) {
        (Some(_), _) => Divided::Shards,
        (None, true) => Divided::Buckets,
        (None, false) => Divided::No,
    };
    let revealed = match query {
        Some(_) => volery_matching::served::revealed(),
        None => volery_matching::revealed(&settings, rules, divided),
    };
    let mut named = vec![match side.distinct(0) {
        Some((keys, _)) => format!("this side has {}", many(keys, "different key")),
        None => format!("this side has {}", many(side.rows(), "row")),
    }];
    named.extend(revealed.iter().cloned());
    for line in &named {
        reporter.tell(line);
    }
    if let (Some(query), true) = (&query, arguments.dry_run) {
        let (text, report) = query.plan(arguments, &settings, &side, &revealed, reporter);
        reporter.output(&format!("{text}\n"))?;
        return Ok(Matched::of(report_place.write(&report)?));
    }
    if arguments.dry_run {
        let (text, report) = text::plan(arguments, &settings, &side, &revealed, reporter);
        reporter.output(&format!("{text}\n"))?;
        return Ok(Matched::of(report_place.write(&report)?));
    }

    let mut report = text::report(arguments, &settings, &table, &side, (&revealed, reporter));
    let asking = query.is_some();
    let (matches, finish, outcome) = match (endpoint, workers) {
        (Some(endpoint), _) if asking => {
            let query = query.expect("this run asks");
            let timeout = common.timeout();
            query.run(
                (endpoint, timeout),
                side,
                &pool,
                (&revealed, &mut report),
                &mut told,
            )?
        }
        (Some(endpoint), _) => meet(
            endpoint,
            side,
            arguments,
            (&pool, &revealed),
            &mut report,
            &mut told,
        )?,
        (None, Some(workers)) => {
            reporter.known().revealed.extend(revealed.iter().cloned());
            let ran = workers.run(&mut side, &pool, &mut told)?;
            let Some((manifest, worked, run)) = ran else {
                return Ok(Matched::of(report_place.write(&report)?));
            };
            let mut outcome = side.into_outcome(&manifest, &worked)?;
            let matches = outcome.matches.take();
            text::add_outcome(&mut report, &settings, &outcome);
            report.result.insert("run".to_owned(), run);
            let (finish, outcome) = outcome.split();
            (matches, finish, Some(outcome))
        }
        (None, None) => unreachable!("a run has a peer"),
    };
    let mut written = None;
    if let (Some(place), Some(matches)) = (place, &matches) {
        written = Some(place.write(&table, matches, &columns, &mut told)?);
        told.end();
    }
    let mut matched = Matched::default();
    if let (Some(matches), false) = (&matches, reporter.is_program()) {
        let (indices, rules) = matches.rows_and_rules()?;
        matched.count = Some(matches.rows());
        (matched.indices, matched.rules) = (Some(indices), Some(rules));
        if given.rows && arguments.out.is_none() {
            let rows = matches.to_batches(&table, &columns, &mut told);
            matched.rows = Some(rows.map_err(|error| files::refused(error, "the rows".as_ref()))?);
            told.end();
        }
    }
    finish.finish()?;
    text::add_matches(&mut report, matches.as_ref(), written);
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    report.peak_rss_bytes = peak_memory();
    let report = report.up_to_now(reporter);
    if let Some(page) = page {
        let value = serde_json::to_value(&report).expect("a report serialises");
        page.commit(page::render(&value).as_bytes())?;
    }
    matched.report = report_place.write(&report)?;
    for line in text::summary(arguments, &report, outcome.as_ref(), matches.as_ref()) {
        reporter.say(line);
    }
    text::caution_about_no_match(reporter, rows_read, matches.as_ref());
    Ok(matched)
}

/// The matches, the end of the run, and what it cost: nothing if an earlier attempt had all
/// results.
type Ended = (Option<Matches>, Finish, Option<Outcome>);

/// Runs the side over one connection.
fn meet(
    endpoint: Endpoint<'_>,
    side: Side,
    arguments: &MatchingArguments,
    (pool, revealed): (&rayon::ThreadPool, &[String]),
    report: &mut Report,
    told: &mut Told<'_>,
) -> Result<Ended, Failure> {
    let reporter = told.reporter;
    let finished_before = side.has_all_results();
    let endpoint = match finished_before {
        true => {
            // Only the peer may not know yet; it matters to a sender that still waits.
            reporter.tell("all results of this run are here already; telling the peer");
            endpoint.within(Duration::from_secs(10))
        }
        false => endpoint,
    };
    let settings = *side.settings();
    match endpoint.open(arguments.common.timeout(), reporter) {
        Err(_) if finished_before => {
            let (matches, finish) = side.into_matches()?;
            Ok((Some(matches), finish, None))
        }
        Err(failure) => Err(failure),
        Ok(mut channel) => {
            reporter.known().revealed.extend(revealed.iter().cloned());
            let mut outcome = pool.install(|| side.run(&mut channel, told))?;
            told.end();
            let connection = channel.describe();
            report.result.insert("connection".to_owned(), connection);
            channel.end();
            let matches = outcome.matches.take();
            text::add_outcome(report, &settings, &outcome);
            let (finish, outcome) = outcome.split();
            Ok((matches, finish, Some(outcome)))
        }
    }
}

impl MatchingArguments {
    /// The number of rules.
    pub(super) fn rules(&self) -> u64 {
        1 + self.keys.or.len() as u64
    }

    /// Where this side keeps its keys.
    pub(super) fn local(&self) -> Local {
        let beside = self.out.as_deref().filter(|out| *out != "-").map(|out| {
            let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
            parent.unwrap_or_else(|| ".".as_ref()).to_owned()
        });
        Local {
            memory: self.memory,
            folder: self.resume.clone().or(beside),
            resume: self.resume.is_some(),
            buckets: self.buckets.unwrap_or(1),
        }
    }
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
