//! What a driver and the tasks of a cluster call for a run that several workers on each side share.

use std::ffi::OsString;
use std::time::Duration;

use arrow_schema::SchemaRef;
use clap::{CommandFactory as _, FromArgMatches as _, Parser as _};
use volery_channel::Role;
use volery_matching::driver::{self, Earlier, Facts};
pub use volery_matching::staging::{Items, found, shards};
use volery_matching::{Manifest, Name, Settings, Verb};
use volery_pcg::Security;
use volery_tables::Reading;

use super::Run;
use crate::command::check_level;
use crate::command::cluster::{self, ClusterArguments, Meeting};
use crate::command::endpoint::EndpointArguments;
use crate::command::matching::{KeyArguments, names};
use crate::exit::{Failure, wrong_words};

/// The options of the rows' keys.
#[derive(clap::Parser)]
#[command(name = "items", no_binary_name = true)]
struct Keys {
    #[command(flatten)]
    keys: KeyArguments,

    #[arg(long)]
    value: Option<String>,
}

/// The keys and the payload of a table that comes in pieces; the words are `--key`, `--or`,
/// `--value`, `--empty-keys` and `--malformed`.
///
/// # Errors
/// If the words are wrong, or do not go with the schema.
pub fn items(schema: SchemaRef, words: &[OsString]) -> Result<Items, Failure> {
    check_level()?;
    let words = Keys::try_parse_from(words).map_err(|error| wrong_words(&error, DRIVER))?;
    let values = words.value.as_deref().map_or(Ok(Vec::new()), names);
    let values = values.map_err(|what| Failure::usage("--value", what))?;
    let reading = words.keys.reading()?;
    Ok(Items::new(schema, Reading { values, ..reading })?)
}

/// The options of a driver whose table is in a cluster.
#[derive(clap::Parser)]
#[command(name = "driver", no_binary_name = true)]
struct DriverWords {
    #[arg(long)]
    role: Role,

    #[arg(long, default_value = "psi", value_parser = ["psi", "lookup"])]
    verb: String,

    #[command(flatten)]
    workers: ClusterArguments,

    #[command(flatten)]
    endpoint: EndpointArguments,

    #[arg(long, default_value = "vole")]
    protocol: Name,

    #[arg(long)]
    security: Option<Security>,

    #[arg(long, default_value = "60s", value_parser = crate::values::time)]
    timeout: Duration,
}

/// What the driver of a cluster knows of its table.
#[derive(serde::Deserialize)]
struct FactsText {
    keys: String,
    sizes: Vec<u64>,
    payload: Option<(String, usize)>,
    digest: String,
    #[serde(default)]
    rows: u64,
}

/// Agrees with the peer's driver on a manifest, and returns it. The words are `--role`, `--verb`,
/// `--gateway`, `--run`, `--workers`, `--shards`, `--identity`, `--peer`, `--protocol`,
/// `--security`, `--wait` and `--timeout`. `facts` is a JSON object with `keys`, the description of
/// [`Items`]; `sizes`, the number of distinct items by each rule; `payload`, at the sender of a
/// lookup its line and the bytes of the longest, or null; and `digest` and `rows` of the table.
/// `earlier` is the manifest of an earlier start, if there is one, and whether a shard was begun.
/// `keep` puts the manifest into this side's storage, before the other side goes on.
///
/// # Errors
/// Any error that ends the agreement.
pub fn agree(
    words: &[OsString],
    facts: &str,
    (earlier, begun): (Option<&str>, bool),
    keep: &mut dyn FnMut(&str) -> Result<(), Failure>,
    run: &Run,
) -> Result<String, Failure> {
    let matches = DriverWords::command()
        .try_get_matches_from(words)
        .and_then(|matches| Ok((DriverWords::from_arg_matches(&matches)?, matches)));
    let (words, matches) = matches.map_err(|error| wrong_words(&error, DRIVER))?;
    let earlier = earlier
        .map(|text| Manifest::from_json(text.as_bytes()))
        .transpose();
    let earlier = earlier.map_err(|what| Failure::usage("the earlier manifest", what))?;
    let facts: FactsText =
        serde_json::from_str(facts).map_err(|error| Failure::usage("facts", error))?;
    run.with(&matches, |reporter| {
        let verb = match words.verb.as_str() {
            "psi" => Verb::Psi,
            _ => Verb::Lookup,
        };
        let settings = Settings::new(
            verb,
            words.role,
            words.protocol,
            words.security,
            false,
            None,
        )?;
        let (identity, peer) = words.endpoint.at_gateway(reporter)?;
        let terms = words
            .workers
            .terms(&settings, &facts.keys, (&identity, peer))?;
        let meeting = Meeting {
            gateway: words.workers.gateway(),
            terms: &terms,
            role: words.role,
            worker: None,
            attempt: cluster::attempt(),
        };
        let certificate = meeting.certificate(&identity)?;
        reporter.begin("meeting");
        let times = (words.endpoint.wait(), words.timeout);
        let mut channel = meeting.meet(&certificate, times, reporter)?;
        reporter.end();
        let facts = Facts {
            keys: facts.keys,
            sizes: facts.sizes,
            payload: facts.payload,
            digest: facts.digest,
            rows: facts.rows,
        };
        let terms = (terms, words.workers.shards);
        let earlier = Earlier {
            manifest: earlier.as_ref(),
            begun,
        };
        let mut kept = Ok(());
        let mut keep = |manifest: &Manifest| {
            kept = keep(&manifest.to_json());
            kept.as_ref().map_err(|failure| {
                volery_matching::Error::Manifest(format!("was not kept: {}", failure.message()))
            })?;
            Ok(())
        };
        let agreed = driver::agree(&settings, &facts, terms, earlier, &mut channel, &mut keep);
        kept?;
        Ok(agreed?.to_json())
    })
}

/// The words of a certificate's issuer.
#[derive(clap::Parser)]
#[command(name = "tickets", no_binary_name = true)]
struct IssuerWords {
    #[arg(long)]
    role: Role,

    #[command(flatten)]
    endpoint: EndpointArguments,
}

/// The run certificate of each worker, with its key, in PEM: secrets, valid for a day. The words
/// are `--role`, `--identity` and `--peer`.
///
/// # Errors
/// If the words or the manifest are wrong, or the identity is not of the run.
pub fn tickets(manifest: &str, words: &[OsString]) -> Result<Vec<String>, Failure> {
    let words = IssuerWords::try_parse_from(words).map_err(|error| wrong_words(&error, DRIVER))?;
    let wrong = |what| Failure::usage("--manifest", what);
    let manifest = Manifest::from_json(manifest.as_bytes()).map_err(wrong)?;
    let terms = manifest
        .terms()
        .ok_or_else(|| wrong("it is not of a run with workers"))?;
    let identity = words.endpoint.load_identity()?;
    let issue = |worker| {
        let meeting = Meeting {
            gateway: "",
            terms,
            role: words.role,
            worker: Some(worker),
            attempt: 0,
        };
        Ok(meeting.certificate(&identity)?.to_pem().to_owned())
    };
    (0..terms.workers).map(issue).collect()
}

/// The remedy where the words of a driver are wrong.
const DRIVER: &str = "the words are those of a driver only";
