//! Queries to `volery serve`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader};
use std::time::Duration;

use serde_json::json;
use volery_matching::served::{MAX_KEYS, QueryResult};
use volery_matching::{Finish, Matches, PreparedTable, ProtocolChoice, Settings};
use volery_psi::Error;
use volery_psi::served::{self as protocol, Filter};

use super::arguments::MatchingArguments;
use super::cost::add_cost;
use super::job::RunState;
use crate::endpoint::Endpoint;
use crate::failure::{Failure, Result, Status};
use crate::output::SingleFile;
use crate::randomness::hex;
use crate::report::Report;
use crate::reporter::{Reporter, many, object};

/// Of both sides for a key, on one core each; and bytes of memory for a key.
const SECONDS: f64 = 1e-4;
const MEMORY: u64 = 400;

/// Queries for which 'volery serve' makes its filter by default.
const QUERIES: u64 = 1 << 30;

/// A query, before it begins.
pub(crate) struct Query {
    /// The filter that is here, read and checked.
    filter: Option<Filter>,
    /// Where a filter that is fetched goes.
    place: Option<SingleFile>,
}

impl Query {
    /// Checks the options, and reads the filter; `None` for other protocols.
    pub(crate) fn of(arguments: &MatchingArguments, workers: bool) -> Result<Option<Self>> {
        if arguments.protocol != ProtocolChoice::Served {
            return match arguments.filter {
                Some(_) => Err(Failure::usage("--filter", "only --protocol served has one")),
                None => Ok(None),
            };
        }
        let (filter, refresh) = (&arguments.filter, arguments.refresh);
        if workers {
            let what = "a query has one connection; use 'volery psi'";
            return Err(Failure::usage("--protocol", what));
        }
        let unusable = [
            ("--or", !arguments.or.is_empty()),
            ("--memory", arguments.memory.is_some()),
            ("--resume", arguments.resume.is_some()),
            ("--buckets", arguments.buckets.is_some()),
        ];
        if let Some((option, _)) = unusable.into_iter().find(|(_, given)| *given) {
            let what = "not with --protocol served: a server has keys of one kind, and a query fits into memory";
            return Err(Failure::usage(option, what).with_hint(format_args!("remove {option}")));
        }
        let mut query = Self { filter: None, place: None };
        let Some(path) = filter else {
            return Ok(Some(query));
        };
        let damaged = |error: &dyn std::fmt::Display| {
            Failure::new(Status::Other, format_args!("--filter: {}: {error}", path.display()))
                .with_hint("if the file is the one of an earlier run, --refresh fetches it again")
        };
        if !refresh {
            match File::open(path) {
                Ok(file) => {
                    let mut file = BufReader::new(file);
                    let filter = Filter::read(&mut file, MAX_KEYS);
                    let filter = filter.map_err(|error| damaged(&error))?;
                    let end = io::Read::read(&mut file, &mut [0]);
                    if end.map_err(|error| damaged(&error))? > 0 {
                        return Err(damaged(&"bytes follow its end"));
                    }
                    query.filter = Some(filter);
                    if !arguments.endpoint.follow_key {
                        return Ok(Some(query));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(damaged(&error)),
            }
        }
        if !arguments.dry_run {
            query.place = Some(SingleFile::prepare("--filter", path)?);
        }
        Ok(Some(query))
    }

    /// The cost of a query: for people, and as a report.
    pub(crate) fn plan(
        &self,
        arguments: &MatchingArguments,
        settings: &Settings,
        side: &PreparedTable,
        revealed: &[String],
        reporter: &Reporter,
    ) -> (String, Report) {
        let own = side.distinct(0).map_or(side.rows(), |(keys, _)| keys);
        let (sent, received) = protocol::bytes(own);
        let query = sent + received;
        let mut text = format!(
            "this side: {}, {}\nprotocol: served, {}\nquery: {query} bytes in both directions\n",
            many(side.rows(), "row"),
            many(own, "row"),
            settings.security,
        );
        let known = self.filter.as_ref().map(|filter| filter.items());
        let peer = known.or(arguments.peer_rows);
        // As many queries as a server assumes by default.
        let filter = peer.map(|keys| protocol::filter_bytes(keys, QUERIES));
        let fetched = if known.is_some() { None } else { filter };
        let link = arguments.link.unwrap_or_default();
        let bytes = query + fetched.unwrap_or(0);
        // The handshake, the filter, and the query, each an answer to the one before.
        let seconds = SECONDS * own as f64
            + 8.0 * bytes as f64 / link.bits_per_second
            + 3.0 * link.round_trip;
        let memory = filter.unwrap_or(0) + MEMORY * own;
        let _ = match (&self.filter, filter) {
            (Some(filter), _) => {
                writeln!(text, "filter: here, of {} at the server", many(filter.items(), "key"))
            }
            (None, Some(bytes)) => writeln!(text, "filter: about {bytes} bytes, to be fetched"),
            (None, None) => writeln!(
                text,
                "filter: to be fetched, about 9 bytes for each key of the server; --peer-rows"
            ),
        };
        let _ = writeln!(
            text,
            "time: {seconds:.1} s at {:.0} Mbit/s and {:.0} ms (assumed)\nmemory: {:.0} MB on this side",
            link.bits_per_second / 1e6,
            link.round_trip * 1e3,
            memory as f64 / 1e6,
        );
        for line in revealed {
            let _ = writeln!(text, "- {line}");
        }
        let mut report = Report::new(settings.verb.name(), reporter);
        report.role = Some(settings.role.name().to_owned());
        report.n = Some(own);
        report.security = Some(settings.security.to_string());
        report.result = object(json!({
            "dry_run": true,
            "rows": side.rows(),
            "peer_items": peer,
            "protocol": "served",
            "bytes": query,
            "filter_bytes": fetched,
            "seconds": seconds,
            "memory_bytes": memory,
            "buckets": 1,
            "reveals": revealed,
        }));
        (text, report)
    }

    /// Asks the server.
    pub(crate) fn run(
        self,
        (endpoint, timeout): (Endpoint<'_>, Duration),
        side: PreparedTable,
        run: &mut RunState<'_, '_>,
    ) -> Result<(Matches, Finish)> {
        let reporter = run.told.reporter;
        let mut channel = endpoint.open(timeout, reporter)?;
        run.reveal();
        let Self { filter, place } = self;
        let pins = channel.pins.clone();
        let follow = |[ours, theirs]: [&[u8]; 2]| match &pins {
            None => Ok(false),
            Some(pins) => {
                pins.follow_filter(hex(ours), &hex(theirs))?;
                reporter.warn(format_args!(
                    "--follow-key: the server has a new key ({}); its filter is fetched again",
                    hex(theirs)
                ));
                Ok(true)
            }
        };
        let keep = |filter: &Filter| match place {
            Some(place) => place.write(|file| {
                let written = filter.write(&mut io::BufWriter::new(file));
                written.map_err(|error| Failure::new(Status::Other, error))
            }),
            None => Ok(()),
        };
        let ask = || side.ask(filter, MAX_KEYS, follow, keep, &mut channel, run.told);
        let asked = run.pool.install(ask);
        run.told.end();
        let asked = asked?;
        run.end_connection(channel);
        add(run.report, &asked);
        let left = match asked.left {
            Some(left) => format!("{} may still be asked for", many(left, "key")),
            None => "without a limit".to_owned(),
        };
        reporter.tell(format_args!("the server has {}; {left}", many(asked.label.items(), "key")));
        Ok((asked.matches, asked.finish))
    }
}

/// The failure of a query that a server does not answer: one that needs another filter or budget
/// ends a script, and one that only came too early may be repeated.
pub(crate) fn refused(error: &Error) -> Option<Failure> {
    let time = |wait: Duration| format!("{} s", wait.as_secs());
    Some(match error {
        Error::OtherKey { .. } => Failure::new(Status::Mismatch, error).with_hint(
            "if the operator of the server confirms its new key, --refresh fetches the filter again; --follow-key does so without being asked",
        ),
        Error::OtherVersion => Failure::new(Status::Mismatch, error)
            .with_hint("--refresh fetches the filter again"),
        Error::Budget { wait, .. } => Failure::new(Status::Usage, error).with_hint(match wait {
            Some(wait) => format!("ask for fewer keys, or come again in {}", time(*wait)),
            None => "ask for fewer keys, or ask the operator of the server for more".to_owned(),
        }),
        Error::Later { wait, .. } => Failure::new(Status::Network, error)
            .with_hint(format_args!("come again in {}", time(*wait))),
        _ => return None,
    })
}

/// Adds what a query cost and how sure its result is.
fn add(report: &mut Report, asked: &QueryResult) {
    let label = &asked.label;
    report.n = Some(asked.items);
    add_cost(report, [asked.traffic, asked.setup_traffic], [asked.setup, asked.online]);
    report.parameters = Some(format!(
        "RFC 9497, ristretto255-SHA512, mode VOPRF; tags for {} queries",
        label.queries()
    ));
    report.assumption = Some(
        "malicious: the peer may do anything, but the tags of the filter are its own; one-more gap Diffie-Hellman in \
         Ristretto255, SHA-512 as a random oracle; 128 bits, 40 statistical"
            .to_owned(),
    );
    // One of so many queries is answered with a false yes with probability 2^-40.
    let false_positive = (asked.items.max(1) as f64 / label.queries() as f64).log2() - 40.0;
    report.result.extend(object(json!({
        "session": hex(asked.session.as_bytes()),
        "protocol": "served",
        "items": asked.items,
        "peer_items": label.items(),
        "filter_fetched": asked.fetched,
        "filter_version": hex(label.version()),
        "public_key": hex(label.public()),
        "budget_left": asked.left,
        "false_positive_log2": false_positive,
    })));
}
