//! What `psi` and `lookup` have in common: a file of records in, its matching rows out.

mod input;
mod output;
mod run;
mod words;

use std::path::PathBuf;
use std::time::Instant;

use volery_psi::{Settings, Variant};
use volery_records::{Duplicates, EmptyKeys, Encoding, Records};

use super::endpoint::EndpointArguments;
use super::options::Common;
use super::paths;
use crate::exit::Failure;
use crate::report::peak_memory;
use output::Place;
use words::{Revealed, report, summary};

pub(crate) use run::{Outcome, Told, run_party};
pub(crate) use words::ASSUMPTION;

/// Which side a party takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Role {
    /// Lets the peer look for its keys; gets nothing but the number of the peer's keys, unless both sides say --both.
    Sender,
    /// Gets the result.
    Receiver,
}

impl Role {
    /// The word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// What is done with the keys that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb<'a> {
    /// Their rows are written.
    Psi,
    /// Their rows are written with the sender's values.
    Lookup {
        /// Sender: the column of the values.
        value: Option<&'a str>,
        /// Receiver: what that column is called in the output.
        name: &'a str,
    },
}

impl Verb<'_> {
    /// The verb on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Psi => "psi",
            Self::Lookup { .. } => "lookup",
        }
    }
}

/// The options of both verbs.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MatchingArguments {
    /// Which side this party takes
    #[arg(long)]
    pub(super) role: Role,

    #[command(flatten)]
    endpoint: EndpointArguments,

    /// This party's file: .csv, .tsv, .txt (text with a header) or .parquet
    #[arg(long, value_name = "FILE")]
    input: PathBuf,

    /// The key column, or several which together make one key; NAME:TYPE reads a column as text, binary, integer, boolean or
    /// date
    #[arg(long, value_name = "COL,..", value_delimiter = ',', required = true)]
    key: Vec<String>,

    /// The file for this party's matching rows: .csv, .tsv, .txt or .parquet; appears when the run is done
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace an existing output file
    #[arg(long)]
    force: bool,

    /// How the match is made: kkrt, or kkrt-paper with the parameters of the paper
    #[arg(long, value_name = "NAME", default_value_t)]
    protocol: Variant,

    /// Against whom the run is secure; there is only semi-honest: a peer that follows the protocol and looks at what it gets
    #[arg(long, value_name = "SECURITY", default_value = "semi-honest", value_parser = semi_honest)]
    security: SemiHonest,

    /// Give the result to the sender, too; both sides must say so
    #[arg(long)]
    both: bool,

    /// A row whose key an earlier row has: 'error', or 'dedup' to keep the first row of each key
    #[arg(long, value_name = "RULE", default_value = "error", value_parser = duplicates)]
    duplicates: Duplicates,

    /// A row in which a key column is empty or null: 'error', or 'skip' to leave it out
    #[arg(long, value_name = "RULE", default_value = "error", value_parser = empty_keys)]
    empty_keys: EmptyKeys,

    /// What separates the fields of a text file: one character, or 'tab' [default: as the extension says]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    delimiter: Option<u8>,

    /// The encoding of a text file, such as utf-16le or windows-1252: keys are then compared as UTF-8 [default: keys are
    /// bytes]
    #[arg(long, value_name = "LABEL")]
    encoding: Option<Encoding>,

    #[command(flatten)]
    common: Common,
}

impl MatchingArguments {
    fn settings(&self) -> Settings {
        Settings {
            variant: self.protocol,
            both: self.both,
        }
    }

    /// Whether this side gets rows.
    fn gets_rows(&self) -> bool {
        self.role == Role::Receiver || self.both
    }
}

/// The most key columns: the handshake compares their types, and its messages are short.
const MAX_KEY_COLUMNS: usize = 256;

/// The only security there is.
#[derive(Clone, Copy, Debug)]
struct SemiHonest;

fn semi_honest(name: &str) -> Result<SemiHonest, String> {
    match name {
        "semi-honest" => Ok(SemiHonest),
        "malicious" => Err(
            "no protocol here is secure against a malicious peer yet: this one trusts the peer to follow it"
                .to_owned(),
        ),
        _ => Err("there is semi-honest".to_owned()),
    }
}

fn duplicates(name: &str) -> Result<Duplicates, String> {
    match name {
        "error" => Ok(Duplicates::Error),
        "dedup" => Ok(Duplicates::Dedup),
        _ => Err("there is error and dedup".to_owned()),
    }
}

fn empty_keys(name: &str) -> Result<EmptyKeys, String> {
    match name {
        "error" => Ok(EmptyKeys::Error),
        "skip" => Ok(EmptyKeys::Skip),
        _ => Err("there is error and skip".to_owned()),
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] => Ok(*byte),
        _ => Err("a delimiter is one ASCII character, or 'tab'".to_owned()),
    }
}

/// Runs one of the verbs.
///
/// # Errors
/// Whatever ends the run.
pub(super) fn run(arguments: &MatchingArguments, verb: Verb<'_>) -> Result<(), Failure> {
    let common = &arguments.common;
    let voice = common.voice();
    let endpoint = arguments.endpoint.endpoint()?;
    let columns = arguments.key.len();
    if columns > MAX_KEY_COLUMNS {
        return Err(Failure::usage(
            "--key",
            format_args!("{columns} columns, and a key has at most {MAX_KEY_COLUMNS}"),
        ));
    }
    paths::check_report(
        common.report.as_deref(),
        Some(&arguments.input),
        arguments.out.as_deref(),
    )?;
    let place = Place::prepare(arguments)?;
    let report_place = common.prepare_report()?;
    let pool = common.pool()?;

    let reading = Instant::now();
    let records = input::read(arguments, verb, place.as_ref())?;
    let read = reading.elapsed();
    let revealed = Revealed::of(verb, arguments.role, arguments.both);
    for line in revealed.lines(&records) {
        voice.say(line);
    }

    let mut channel = endpoint.open(common.timeout(), voice)?;
    let start = Instant::now();
    let mut told = Told::new(voice);
    let settings = arguments.settings();
    let outcome = pool.install(|| {
        run_party(
            verb,
            arguments.role,
            settings,
            &records,
            &mut told,
            &mut channel,
        )
    })?;
    told.finish();
    let connection = endpoint.describe(&channel);
    drop(channel);

    let writing = Instant::now();
    let rows = match (place, &outcome.common) {
        (Some(place), Some(common)) => Some(place.write(&records, common, &outcome, verb)?),
        _ => None,
    };
    let mut report = report(verb, arguments, &records, &outcome, &revealed);
    report.result.insert("connection".to_owned(), connection);
    words::add_seconds(&mut report, read, &told, rows.map(|_| writing.elapsed()));
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    report.peak_rss_bytes = peak_memory();
    report_place.write(&report)?;
    voice.say(summary(arguments, &records, &outcome, &report));
    Ok(())
}

/// The keys of a file as the protocol takes them.
pub(crate) struct Keys<'a>(pub(crate) &'a volery_records::ByteStrings);

impl volery_psi::Items for Keys<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn item(&self, index: usize) -> &[u8] {
        self.0.get(index)
    }
}

/// The types of the key columns, as both sides must have them.
fn key_types(records: &Records) -> String {
    let names: Vec<_> = records.key_types().iter().map(|kind| kind.name()).collect();
    names.join(", ")
}
