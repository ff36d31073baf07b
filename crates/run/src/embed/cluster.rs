//! The functions that a driver and the tasks of a cluster call for a run that several workers on
//! each side share.

use arrow_schema::SchemaRef;
use serde_json::json;
use volery_cluster::driver::{self, ClusterTable, ResumeState};
pub use volery_cluster::staging::{Items, Slice, Slices, digest, found, shards};
use volery_cluster::totals as cluster_totals;
use volery_cluster::{ClusterStats, Manifest, Secrets, Task};
use volery_matching::{Operation, Options, Partitioning, totals};
use volery_options::{NamedValues, SetByName};
use volery_os::time::Instant;
use volery_tables::Reading;
use zeroize::Zeroizing;

use super::Run;
use crate::cluster::{self, ClusterOptions, Meeting};
use crate::endpoint::EndpointOptions;
use crate::failure::{Failure, Result};
use crate::guard::check_level;
use crate::options::{RunOptions, fill};
use crate::report::Report;
use crate::reporter::object;
use crate::totals::{of_cluster, text};

/// The options of a call of a driver or a task. Each call has only some of them.
#[derive(Default)]
struct Call {
    verb: Option<Operation>,
    options: Options,
    cluster: ClusterOptions,
    endpoint: EndpointOptions,
    run: RunOptions,
}

impl Call {
    /// Takes options by name, of which this call requires some.
    fn of(named: &NamedValues, required: &[&str]) -> Result<Self> {
        check_level()?;
        let has = |wanted: &str| named.iter().any(|(name, _)| name == wanted);
        if let Some(missing) = required.iter().find(|name| !has(name)) {
            return Err(Failure::usage(&format!("--{missing}"), "required"));
        }
        let mut call = Self::default();
        let verb = |name: &str| match name {
            "psi" => Ok(Operation::Psi),
            "lookup" => Ok(Operation::Lookup),
            _ => Err(Failure::usage("--verb", "give psi or lookup")),
        };
        let of_verb = named.iter().find(|(name, _)| name == "verb");
        call.verb =
            of_verb.map(|(_, value)| verb(value.to_str().unwrap_or_default())).transpose()?;
        let others = named.iter().filter(|(name, _)| name != "verb").cloned();
        let others: Vec<_> = others.collect();
        let mut sets: [&mut dyn SetByName; 4] =
            [&mut call.options, &mut call.cluster, &mut call.endpoint, &mut call.run];
        fill(&others, &mut sets, &[])?;
        Ok(call)
    }

    /// The settings of the run.
    fn settings(&self) -> Result<Task> {
        if let Some(settings) = of_cluster(&self.options)? {
            return Ok(Task::Totals(Box::new(settings)));
        }
        let settings = self.options.settings(self.verb.unwrap_or(Operation::Psi))?;
        Ok(Task::Rows(settings.for_workers()?.0))
    }
}

/// The keys and the payload of a table that comes in pieces; the options are `role`, `key`, `or`,
/// `value`, `empty_keys`, `malformed`, `drop_repeated`, which the engine applies, and `result` with
/// the options that belong to it.
pub fn items(schema: SchemaRef, named: &NamedValues) -> Result<Items> {
    let Call { options, .. } = Call::of(named, &["role", "key"])?;
    // The engine counts the rows of each key.
    let reading = Reading { drop_repeated: None, ..options.reading()? };
    let Some(settings) = of_cluster(&options)? else {
        return Ok(Items::new(schema, reading)?);
    };
    if !reading.values.is_empty() {
        return Err(Failure::usage("--value", "only with --result rows"));
    }
    Ok(Items::for_totals(schema, reading, &settings)?)
}

/// The consequences of `role`, `result` and the options that belong to it, for sets of so many
/// keys, that of this side first: a JSON object with `kind`, `protocol`, `alike`, a text that is
/// the same on both sides, `reveals`, `bound` in units of the last decimal place, and `bytes`, in
/// both directions. Nothing for rows.
///
/// # Errors
/// If an option is wrong, or a total could leave 64 bits.
pub fn totals(named: &NamedValues, [own, peer]: [u64; 2]) -> Result<Option<String>> {
    let Some(settings) = of_cluster(&Call::of(named, &["role"])?.options)? else {
        return Ok(None);
    };
    let sizes = settings.role.sides([own, peer]);
    settings.check_range(sizes)?;
    let protocol = settings.protocol().expect("the protocol of workers is named");
    let cost = protocol.cost(&settings.task(sizes));
    let about = json!({
        "kind": settings.kind.name(),
        "protocol": protocol.name(),
        "alike": settings.alike(),
        "reveals": totals::revealed(&settings, Partitioning::Shards),
        "bound": settings.bound,
        "bytes": cost.bytes,
    });
    Ok(Some(about.to_string()))
}

/// The facts about its table that the driver of a cluster knows.
#[derive(serde::Deserialize)]
struct FactsText {
    keys: String,
    sizes: Vec<u64>,
    payload: Option<(String, usize)>,
    digest: String,
    #[serde(default)]
    rows: u64,
}

/// The secrets of a side's driver for a run, a text to be kept before [`agree`] is called: those of
/// an earlier start, if they are of this table and these settings, or new ones. Options and `facts`
/// are those of [`agree`].
///
/// # Errors
/// If an option, the facts or the earlier secrets are wrong.
pub fn secrets(
    named: &NamedValues,
    facts: &str,
    earlier: Option<&str>,
) -> Result<Zeroizing<String>> {
    let call = Call::of(named, &["role"])?;
    let earlier = earlier.map(read_secrets).transpose()?;
    let (facts, earlier) = (read_facts(facts)?, earlier.as_ref());
    Ok(driver::secrets(call.settings()?, &facts, earlier)?.to_json())
}

fn read_secrets(text: &str) -> Result<Secrets> {
    Secrets::from_json(text.as_bytes()).map_err(|what| Failure::usage("the driver's secrets", what))
}

fn read_facts(text: &str) -> Result<ClusterTable> {
    let facts: FactsText =
        serde_json::from_str(text).map_err(|error| Failure::usage("facts", error))?;
    Ok(ClusterTable {
        keys: facts.keys,
        sizes: facts.sizes,
        payload: facts.payload,
        digest: facts.digest,
        rows: facts.rows,
    })
}

/// Agrees with the peer's driver on a manifest, and returns it. The options are `role`, `verb`,
/// `gateway`, `run`, `workers`, `shards`, `identity`, `peer`, `protocol`, `security`, `wait`,
/// `timeout`, `value_name`, and `result` with the options that belong to it. `facts` is a JSON
/// object with `keys`, the description of [`Items`]; `sizes`, the number of distinct items by each
/// rule; `payload`, at the sender of a lookup its line and the bytes of the longest, or null; and
/// `digest` and `rows` of the table. `secret` is what [`secrets`] returned. `earlier` is the
/// manifest of an earlier start, if there is one, and whether a shard was begun. `keep` puts the
/// manifest into this side's storage, before the other side goes on.
pub fn agree(
    named: &NamedValues,
    (facts, secret): (&str, &str),
    (earlier, begun): (Option<&str>, bool),
    keep: &mut dyn FnMut(&str) -> Result<()>,
    run: &Run,
) -> Result<String> {
    let call = Call::of(named, &["role", "gateway", "run", "workers"])?;
    let earlier = earlier.map(|text| Manifest::from_json(text.as_bytes())).transpose();
    let earlier = earlier.map_err(|what| Failure::usage("the earlier manifest", what))?;
    let (facts, secrets) = (read_facts(facts)?, read_secrets(secret)?);
    run.with("", Some(call.options.role), |reporter| {
        let role = call.options.role;
        let settings = call.settings()?;
        let (identity, peer) = call.endpoint.at_gateway(reporter)?;
        let terms = call.cluster.terms(&settings, &facts.keys, (&identity, peer))?;
        let meeting = Meeting {
            gateway: call.cluster.gateway(),
            proxy: call.endpoint.proxy.as_ref(),
            terms: &terms,
            role,
            worker: None,
            attempt: cluster::attempt(),
        };
        let certificate = meeting.certificate(&identity)?;
        reporter.begin("connecting");
        let times = (call.endpoint.wait, call.run.timeout);
        let mut channel = meeting.meet(&certificate, times, reporter)?;
        reporter.end();
        let terms = (terms, call.cluster.shards);
        let earlier = ResumeState { manifest: earlier.as_ref(), begun };
        let mut kept = Ok(());
        let names = call.options.columns().names.len();
        let mut keep = |manifest: &Manifest| {
            manifest.check_names(names)?;
            kept = keep(&manifest.to_json());
            kept.as_ref().map_err(|failure| {
                volery_matching::Error::Manifest(format!("was not kept: {}", failure.message()))
            })?;
            Ok(())
        };
        let (known, channel) = ((&facts, &secrets), &mut channel);
        let agreed = driver::agree(settings, known, terms, earlier, channel, &mut keep);
        kept?;
        Ok(agreed?.to_json())
    })
}

/// The data of a run for totals that the driver of a cluster has.
pub struct Opening {
    /// The results that the workers kept of each shard, in the order of the shards.
    pub found: Vec<Vec<u8>>,
    /// The text that `keep` got first from an earlier start, and whether a second call came.
    pub opened: Option<(String, bool)>,
    /// Rows in none of the groups, at the side that has them.
    pub no_group: Option<u64>,
}

/// Opens the totals of a run with the peer's driver, when all workers have finished, and returns
/// the report of the opening, a JSON object. `secret` is what [`agree`] had. The options are
/// `role`, `gateway`, `identity`, `peer`, `wait` and `timeout`. `keep` puts the totals,
/// a text, into this side's storage, before the other side goes on; then an empty text says that
/// the other side has them, too.
pub fn open(
    named: &NamedValues,
    (manifest, secret): (&str, &str),
    opening: Opening,
    keep: &mut dyn FnMut(&str) -> Result<()>,
    run: &Run,
) -> Result<String> {
    let call = Call::of(named, &["role", "gateway"])?;
    let role = call.options.role;
    let wrong = |what| Failure::usage("--manifest", what);
    let manifest = Manifest::from_json(manifest.as_bytes()).map_err(wrong)?;
    let (Some(settings), Some(terms)) = (manifest.totals(role), manifest.terms()) else {
        return Err(wrong("it is not of a run for totals"));
    };
    let secrets = read_secrets(secret)?;
    let Opening { found, opened, no_group } = opening;
    let found: Vec<_> = found.into_iter().map(Zeroizing::new).collect();
    let opened = opened
        .map(|(text, told)| {
            let totals = serde_json::from_str(&text)?;
            Ok::<_, serde_json::Error>(cluster_totals::OpenedTotals { totals, told })
        })
        .transpose();
    let opened = opened.map_err(|error| Failure::usage("the opened totals", error))?;
    run.with("", Some(role), |reporter| {
        let start = Instant::now();
        let (identity, _) = call.endpoint.at_gateway(reporter)?;
        let meeting = Meeting {
            gateway: &call.cluster.gateway,
            proxy: call.endpoint.proxy.as_ref(),
            terms,
            role,
            worker: None,
            attempt: cluster::attempt(),
        };
        let times = (call.endpoint.wait, call.run.timeout);
        let opened = (opened, settings.gets_totals());
        let (totals, traffic) =
            cluster::open_totals(&meeting, &identity, times, opened, reporter, |channel| {
                let mut kept = Ok(());
                let mut keep = |what: cluster_totals::Keep<'_>| {
                    let text = match what {
                        cluster_totals::Keep::Totals(all) => {
                            serde_json::to_string(all).expect("numbers serialise")
                        }
                        cluster_totals::Keep::Told => String::new(),
                    };
                    kept = keep(&text);
                    kept.as_ref().map_err(|failure| {
                        let what = format!("of totals that were not kept: {}", failure.message());
                        volery_matching::Error::Manifest(what)
                    })?;
                    Ok(())
                };
                let found = ("found".as_ref(), &found[..]);
                let known = (&manifest, &secrets);
                let opened = cluster_totals::open_shards(
                    &settings,
                    known,
                    found,
                    channel,
                    &mut keep,
                    &mut (),
                );
                kept?;
                Ok(opened?)
            })?;
        let worked = ClusterStats::default();
        let outcome =
            cluster_totals::outcome(&settings, &manifest, &worked, (totals, traffic, start))?;
        let mut report = Report::new("psi", reporter);
        report.role = Some(role.name().to_owned());
        report.result = object(text::settings_of(&settings, no_group));
        text::add_outcome(&mut report, &settings, &outcome);
        Ok(report.to_json())
    })
}

/// The run certificate of each worker, with its key, in PEM: secrets, valid for a day. The words
/// are `role`, `identity` and `peer`.
///
/// # Errors
/// If an option or the manifest is wrong, or the identity is not of the run.
pub fn tickets(manifest: &str, named: &NamedValues) -> Result<Vec<String>> {
    let call = Call::of(named, &["role"])?;
    let role = call.options.role;
    let wrong = |what| Failure::usage("--manifest", what);
    let manifest = Manifest::from_json(manifest.as_bytes()).map_err(wrong)?;
    let terms = manifest.terms().ok_or_else(|| wrong("it is not of a run with workers"))?;
    let identity = call.endpoint.load_identity()?;
    let issue = |worker| {
        let meeting =
            Meeting { gateway: "", proxy: None, terms, role, worker: Some(worker), attempt: 0 };
        Ok(meeting.certificate(&identity)?.to_pem().to_owned())
    };
    (0..terms.workers).map(issue).collect()
}
