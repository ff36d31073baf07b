//! The part that `psi` and `lookup` share: reads a file of records and writes its matching rows.

mod input;
mod output;
mod protocol;
mod run;
mod text;

use std::path::PathBuf;
use std::time::Instant;

use volery_channel::{Link, Role};
use volery_pcg::Security;
use volery_tables::{Duplicates, EmptyKeys, Encoding, Records};

use super::endpoint::EndpointArguments;
use super::options::{Common, parse_link, role};
use super::paths;
use crate::exit::Failure;
use crate::report::peak_memory;
use output::OutputFile;
use text::{Revealed, report, summary};

pub(crate) use protocol::{Name, Settings};
pub(crate) use run::{Outcome, PhaseTimer, run_party};

/// The result for the matching keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb<'a> {
    /// Write their rows.
    Psi,
    /// Write their rows with the sender's values.
    Lookup {
        /// Sender: column of the values.
        value: Option<&'a str>,
        /// Receiver: name of that column in the output.
        name: &'a str,
    },
}

impl Verb<'_> {
    /// The subcommand's name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Psi => "psi",
            Self::Lookup { .. } => "lookup",
        }
    }
}

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
    endpoint: EndpointArguments,

    /// Input file of this party: .csv, .tsv, .txt (text with a header) or .parquet
    #[arg(long, value_name = "FILE")]
    input: PathBuf,

    /// The key column, or several columns that together form one key; NAME:TYPE reads a column as
    /// text, binary, integer, boolean or date
    #[arg(long, value_name = "COL,..", value_delimiter = ',', required = true)]
    key: Vec<String>,

    /// Output file for this party's matching rows: .csv, .tsv, .txt or .parquet; appears when the
    /// run is complete
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace an existing output file
    #[arg(long)]
    force: bool,

    /// Matching protocol; both sides name the same
    #[arg(long, value_name = "NAME", default_value_t)]
    protocol: Name,

    /// Adversary that the run is secure against: malicious, a peer that may do anything; or
    /// semi-honest, a peer that follows the protocol and inspects what it receives [default:
    /// malicious; semi-honest with --both, vole-low, kkrt and kkrt-paper, which have no malicious
    /// form]
    #[arg(long)]
    security: Option<Security>,

    /// Link that --protocol auto chooses for: RATE,RTT such as 100Mbit,20ms [default: the link that
    /// the parties measure]
    #[arg(long, value_name = "RATE,RTT", value_parser = parse_link)]
    link: Option<Link>,

    /// Give the result to the sender too, with semi-honest security; both sides must set this
    #[arg(long)]
    both: bool,

    /// Treatment of a row whose key occurs in an earlier row: 'error', or 'dedup' to keep the first
    /// row of each key
    #[arg(long, value_name = "RULE", default_value = "error", value_parser = duplicates)]
    duplicates: Duplicates,

    /// Treatment of a row with an empty or null key column: 'error', or 'skip' to leave it out
    #[arg(long, value_name = "RULE", default_value = "error", value_parser = empty_keys)]
    empty_keys: EmptyKeys,

    /// Field separator of a text file: one character, or 'tab' [default: given by the extension]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    delimiter: Option<u8>,

    /// Encoding of a text file, such as utf-16le or windows-1252: keys are then compared as UTF-8
    /// [default: keys are bytes]
    #[arg(long, value_name = "LABEL")]
    encoding: Option<Encoding>,

    #[command(flatten)]
    common: Common,
}

impl MatchingArguments {
    fn settings(&self) -> Result<Settings, Failure> {
        Settings::new(self.protocol, self.security, self.both, self.link)
    }

    /// Whether this side gets rows.
    fn gets_rows(&self) -> bool {
        self.role == Role::Receiver || self.both
    }
}

/// The most key columns: the handshake compares their types, and its messages are short.
const MAX_KEY_COLUMNS: usize = 256;

fn duplicates(name: &str) -> Result<Duplicates, String> {
    match name {
        "error" => Ok(Duplicates::Error),
        "dedup" => Ok(Duplicates::Dedup),
        _ => Err("choose error or dedup".to_owned()),
    }
}

fn empty_keys(name: &str) -> Result<EmptyKeys, String> {
    match name {
        "error" => Ok(EmptyKeys::Error),
        "skip" => Ok(EmptyKeys::Skip),
        _ => Err("choose error or skip".to_owned()),
    }
}

pub(super) fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] => Ok(*byte),
        _ => Err("a delimiter is one ASCII character, or 'tab'".to_owned()),
    }
}

/// Runs one of the subcommands.
///
/// # Errors
/// Any error that ends the run.
pub(super) fn run(arguments: &MatchingArguments, verb: Verb<'_>) -> Result<(), Failure> {
    let common = &arguments.common;
    let reporter = common.reporter();
    let endpoint = arguments.endpoint.endpoint()?;
    let settings = arguments.settings()?;
    let columns = arguments.key.len();
    if columns > MAX_KEY_COLUMNS {
        return Err(Failure::usage(
            "--key",
            format_args!("{columns} columns given; a key has at most {MAX_KEY_COLUMNS}"),
        ));
    }
    paths::check_report(
        common.report.as_deref(),
        Some(&arguments.input),
        arguments.out.as_deref(),
    )?;
    let place = OutputFile::prepare(arguments)?;
    let report_place = common.prepare_report()?;
    let pool = common.pool()?;

    let reading = Instant::now();
    let records = input::read(arguments, verb, place.as_ref())?;
    let read = reading.elapsed();
    let revealed = Revealed::of(verb, arguments.role, &settings);
    for line in revealed.lines(&records) {
        reporter.say(line);
    }

    let mut channel = endpoint.open(common.timeout(), reporter)?;
    let start = Instant::now();
    let mut told = PhaseTimer::new(reporter);
    let outcome = pool.install(|| {
        run_party(
            verb,
            arguments.role,
            &settings,
            &records,
            &mut told,
            &mut channel,
        )
    })?;
    told.finish();
    let connection = endpoint.describe(&channel);
    drop(channel);

    let writing = Instant::now();
    let rows = match (place, &outcome.matched.common) {
        (Some(place), Some(common)) => Some(place.write(&records, common, &outcome, verb)?),
        _ => None,
    };
    let mut report = report(verb, arguments, &settings, &records, &outcome, &revealed);
    report.result.insert("connection".to_owned(), connection);
    text::add_seconds(&mut report, read, &told, rows.map(|_| writing.elapsed()));
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    report.peak_rss_bytes = peak_memory();
    report_place.write(&report)?;
    reporter.say(summary(arguments, &records, &outcome, &report));
    Ok(())
}

/// The keys of a file in the form the protocol takes.
pub(crate) struct Keys<'a>(pub(crate) &'a volery_tables::ByteStrings);

impl volery_psi::Items for Keys<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn item(&self, index: usize) -> &[u8] {
        self.0.get(index)
    }
}

/// The types of the key columns, which must be the same on both sides.
fn key_types(records: &Records) -> String {
    let names: Vec<_> = records.key_types().iter().map(|kind| kind.name()).collect();
    names.join(", ")
}
