//! `volery gateway`: where workers meet that cannot listen for each other, and where browsers come
//! in.

mod browsers;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use volery_channel::gateway::{Client, Event, Gateway, Limits};
use volery_channel::tls::Fingerprint;
use volery_options::values;
use volery_os::sync::{Mutex, PoisonError};
use volery_run::endpoint::{Address, EndpointOptions, fingerprint};
use volery_run::failure::{Failure, Result};
use volery_run::report::{PreparedReport, Report};
use volery_run::reporter::{LineKind, Refusals, Reporter, event};

use super::options::{OutputArguments, WebArguments, listens};
use crate::flat::{Flat, Selection};

/// Relay connections between workers that cannot reach each other, or with --web between browsers
/// and a party
///
/// Workers of both sides connect to it, and it passes on what they send each other: encrypted
/// between them, so that it reads none of it. Browsers connect by WebSocket, and it passes on their
/// bytes to the party at --to: whoever runs it can read and change them, so that party runs it. It
/// runs until a signal ends it, with status 0.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_args(|argument| match PartyOptions::has(argument.get_id().as_str()) {
    true => argument.requires("to"),
    false => argument,
}))]
pub(crate) struct Arguments {
    /// Wait for the workers at this address
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "web")]
    listen: Option<String>,

    /// Fingerprint of an organisation whose workers may meet others here, or a file that holds it;
    /// named twice or more, once for each organisation
    #[arg(long, value_name = "FINGERPRINT", value_parser = fingerprint, conflicts_with = "web")]
    allow: Vec<Fingerprint>,

    /// The most workers or browsers at the same time; of workers at most half wait and are of one
    /// organisation
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    max_connections: u32,

    /// Close a connection over which nothing has passed for this long, such as 90s or 5m; both
    /// sides show a sign of life every 15s
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = values::time)]
    idle: Duration,

    #[command(flatten)]
    web: WebArguments,

    /// Connect browsers to the party that listens at this address, one connection for each browser
    #[arg(long, value_name = "HOST:PORT", requires = "web")]
    pub(super) to: Option<String>,

    /// Fingerprint of an access token, or a file that holds it: only browsers with a token may
    /// connect; named once for each. 'volery keygen --token' makes one [default: all may, if no
    /// browser comes from another machine]
    #[arg(long, value_name = "FINGERPRINT", value_parser = fingerprint, requires = "web")]
    token: Vec<Fingerprint>,

    /// How long a browser waits for the party at --to to listen
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::time)]
    wait: Duration,

    #[command(flatten)]
    party: Flat<EndpointOptions, PartyOptions>,

    /// Accept an --identity or --web-key that its group can read, such as a mounted secret; never
    /// one that all users can read
    #[arg(long)]
    allow_group_readable_identity: bool,

    #[command(flatten)]
    output: OutputArguments,
}

/// The options for TLS to the party at `--to`.
#[derive(Clone, Debug)]
struct PartyOptions;

impl Selection for PartyOptions {
    fn has(name: &str) -> bool {
        ["identity", "identity_command", "identity_passphrase", "peer"].contains(&name)
    }
}

impl Arguments {
    /// The addresses at which it listens, each with its option.
    pub(super) fn listens(&self) -> Vec<(&'static str, String)> {
        listens(&self.listen, &self.web)
    }
}

/// The counts of a gateway's work: connections, bytes, refusals.
#[derive(Default)]
struct Counts {
    met: u64,
    bytes: u64,
    refusals: Refusals,
}

impl Counts {
    /// Writes the report of a gateway that a signal has ended, and says what it did: `connected`
    /// and `relayed` name the connections and the bytes.
    fn conclude(
        &self,
        place: PreparedReport,
        [connected, relayed]: [&str; 2],
        reporter: &Reporter,
    ) -> Result<()> {
        let (met, bytes, refused) = (self.met, self.bytes, self.refusals.count());
        let mut report = Report::new("gateway", reporter);
        for (name, count) in [("met", met), ("refused", refused), ("bytes", bytes)] {
            report.result.insert(name.to_owned(), count.into());
        }
        place.write(&report)?;
        let text = format!("{connected}: {met}, {relayed}: {bytes}, refused: {refused}");
        let fields = event("stopped", Value::Object(report.result));
        reporter.line(LineKind::Result, text, fields);
        Ok(())
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<()> {
    if let Some(address) = arguments.web.place()? {
        if arguments.to.is_none() {
            let what = "required with --web: the party that browsers are connected to";
            return Err(Failure::usage("--to", what).with_hint("for example --to 127.0.0.1:7000"));
        }
        return browsers::run(arguments, address, reporter);
    }
    let listen = arguments.listen.as_ref().ok_or_else(|| {
        Failure::usage("--listen", "required, unless --web lets browsers in")
            .with_hint("for example 0.0.0.0:7443")
    })?;
    let place = Address::Listen(listen.clone());
    place.check_form()?;
    let allowed: HashSet<_> = arguments.allow.iter().copied().collect();
    if allowed.len() < 2 {
        let what = "at least two organisations are required";
        return Err(Failure::usage("--allow", what)
            .with_hint("give the fingerprint of each organisation in an --allow of its own"));
    }
    let report_place = arguments.output.report.prepare(reporter)?;
    let connections = arguments.max_connections as usize;
    let limits =
        Limits { connections, waiting: connections / 2, idle: arguments.idle, ..Limits::default() };
    let gateway = Gateway::bind(&**listen, limits, allowed.into_iter().collect())
        .map_err(|error| place.unusable(error))?;
    reporter.announce_listener(&gateway.addresses());
    let counts = Mutex::<Counts>::default();
    let counted = || counts.lock().unwrap_or_else(PoisonError::into_inner);
    gateway.serve(reporter.cancel(), &|event| {
        let mut counts = counted();
        match &event {
            Event::Met { .. } => counts.met += 1,
            Event::Ended { bytes, .. } => counts.bytes += bytes.iter().sum::<u64>(),
            Event::Refused { .. } if !counts.refusals.add_one(reporter) => return,
            _ => {}
        }
        drop(counts);
        tell(&event, reporter);
    })?;
    let words = ["stopped by a signal; pairs connected", "bytes relayed"];
    counted().conclude(report_place, words, reporter)
}

/// Prints a line about an event; in JSON it has the fields of the event, too.
fn tell(told: &Event, reporter: &Reporter) {
    let (name, fields, message) = match told {
        Event::Refused { address, reason } => (
            "refused",
            json!({ "address": address.to_string(), "reason": reason.to_string() }),
            format!("{address} was refused: {reason}"),
        ),
        Event::Waiting(client) => {
            ("waiting", describe(client), format!("{} waits for its peer", ClientName(client)))
        }
        Event::Left { client, reason } => {
            let closed = || "it closed the connection".to_owned();
            let why = reason.as_ref().map_or_else(closed, ToString::to_string);
            let mut fields = describe(client);
            fields["reason"] = why.as_str().into();
            ("left", fields, format!("{} waits no longer: {why}", ClientName(client)))
        }
        Event::Met { sender, receiver } => {
            let (from, to) = (ClientName(sender), ClientName(receiver));
            let message = format!("{from} and {to} are connected");
            ("met", describe_pair([sender, receiver]), message)
        }
        Event::Ended { sender, receiver, bytes: [from_sender, from_receiver], lasted } => {
            let mut fields = describe_pair([sender, receiver]);
            fields["bytes_from_sender"] = (*from_sender).into();
            fields["bytes_from_receiver"] = (*from_receiver).into();
            let seconds = lasted.as_secs_f64();
            fields["seconds"] = seconds.into();
            let (from, to) = (ClientName(sender), ClientName(receiver));
            let bytes = from_sender + from_receiver;
            let message = format!("{from} and {to} ended after {seconds:.0} s, {bytes} bytes");
            ("ended", fields, message)
        }
        _ => return,
    };
    reporter.tell_with(message, event(name, fields));
}

/// The first half of a run, as in the name of its certificates.
fn run_of(client: &Client) -> String {
    let run = &client.ticket.run[..16];
    run.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn describe(client: &Client) -> Value {
    let ticket = &client.ticket;
    json!({
        "run": run_of(client),
        "side": ticket.side.name(),
        "worker": ticket.worker,
        "attempt": ticket.attempt,
        "organisation": client.organisation.to_string(),
        "address": client.address.to_string(),
    })
}

fn describe_pair(pair: [&Client; 2]) -> Value {
    let mut fields = json!({ "run": run_of(pair[0]), "worker": pair[0].ticket.worker });
    for client in pair {
        let mut of_client = describe(client);
        for name in ["attempt", "organisation", "address"] {
            fields[format!("{}_{name}", client.ticket.side.name())] = of_client[name].take();
        }
    }
    fields
}

/// A client in words.
struct ClientName<'a>(&'a Client);

impl fmt::Display for ClientName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticket = &self.0.ticket;
        match ticket.worker {
            Some(worker) => write!(f, "{} {worker}", ticket.side)?,
            None => write!(f, "the {}'s driver", ticket.side)?,
        }
        let run = run_of(self.0);
        write!(f, " of run {} (attempt {})", &run[..8], ticket.attempt)
    }
}
