//! `volery gateway`: where workers meet that cannot listen for each other, and where browsers come
//! in.

mod browsers;

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use volery_channel::gateway::{Client, Event, Gateway, Limits};
use volery_channel::tls::Fingerprint;
use volery_options::values;
use volery_run::endpoint::{Address, fingerprint};
use volery_run::failure::Failure;
use volery_run::identity;
use volery_run::report::Report;
use volery_run::reporter::Reporter;

use super::options::OutputArguments;
use super::options::WebArguments;

/// Refused connections that are reported one by one in a minute; more would flood the log.
const MAX_REPORTED: u64 = 30;

const MINUTE: Duration = Duration::from_secs(60);

/// Relay connections between workers that cannot reach each other, or with --web between browsers
/// and a party
///
/// Workers of both sides connect to it, and it passes on what they send each other: encrypted
/// between them, so that it reads none of it. Browsers connect by WebSocket, and it passes on their
/// bytes to the party at --to: whoever runs it can read and change them, so that party runs it. It
/// runs until a signal ends it, with status 0.
#[derive(Clone, Debug, clap::Args)]
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
    to: Option<String>,

    /// Fingerprint of an access token, or a file that holds it: only browsers with a token may
    /// connect; named once for each. 'volery keygen --token' makes one [default: all may, if no
    /// browser comes from another machine]
    #[arg(long, value_name = "FINGERPRINT", value_parser = fingerprint, requires = "web")]
    token: Vec<Fingerprint>,

    /// How long a browser waits for the party at --to to listen
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::time)]
    wait: Duration,

    /// This gateway's identity, for TLS to the party at --to, which addresses off the loopback
    /// interface require, together with --peer
    #[arg(long, value_name = "DIR", requires_all = ["to", "peer"])]
    identity: Option<PathBuf>,

    /// Fingerprint of the party at --to, or a file that holds it
    #[arg(long, value_name = "FINGERPRINT", value_parser = fingerprint, requires_all = ["to", "identity"])]
    peer: Option<Fingerprint>,

    /// Accept an --identity or --web-key that its group can read, such as a mounted secret; never
    /// one that all users can read
    #[arg(long)]
    allow_group_readable_identity: bool,

    #[command(flatten)]
    output: OutputArguments,
}

/// Refused clients.
#[derive(Default)]
struct Refusals {
    count: u64,
    /// The minute in which they are counted, with their number.
    minute: Option<(Instant, u64)>,
}

impl Refusals {
    /// Whether one more refusal is reported, and how many of the minute before were not.
    fn add(&mut self, now: Instant) -> (bool, u64) {
        self.count += 1;
        let (start, count) = self.minute.get_or_insert((now, 0));
        let mut left_out = 0;
        if now.duration_since(*start) >= MINUTE {
            left_out = count.saturating_sub(MAX_REPORTED);
            (*start, *count) = (now, 0);
        }
        *count += 1;
        (*count <= MAX_REPORTED, left_out)
    }

    /// Counts one more; whether it is reported.
    fn is_told(&mut self, reporter: &Reporter) -> bool {
        let (is_told, left_out) = self.add(Instant::now());
        if left_out > 0 {
            reporter.tell(format_args!("{left_out} more were refused in a minute"));
        }
        is_told
    }
}

/// The counts of a gateway's work.
#[derive(Default)]
struct Counts {
    met: u64,
    bytes: u64,
    refusals: Refusals,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<(), Failure> {
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
        let what = "two organisations are required, and only one is named";
        return Err(Failure::usage("--allow", what)
            .with_hint("name the fingerprint of each organisation with an --allow of its own"));
    }
    let report_place = arguments.output.report.prepare(reporter)?;
    let connections = arguments.max_connections as usize;
    let limits =
        Limits { connections, waiting: connections / 2, idle: arguments.idle, ..Limits::default() };
    let gateway = Gateway::bind(&**listen, limits, allowed.into_iter().collect())
        .map_err(|error| place.unusable(error))?;
    reporter.announce(format_args!("listening on {}", gateway.local_addr()?));
    let counts = Mutex::<Counts>::default();
    let counted = || counts.lock().unwrap_or_else(PoisonError::into_inner);
    gateway.serve(reporter.cancel(), &|event| {
        let mut counts = counted();
        match &event {
            Event::Met { .. } => counts.met += 1,
            Event::Ended { bytes, .. } => counts.bytes += bytes.iter().sum::<u64>(),
            Event::Refused { .. } if !counts.refusals.is_told(reporter) => return,
            _ => {}
        }
        drop(counts);
        tell(&event, reporter);
    })?;
    let counts = counted();
    let (met, bytes, refused) = (counts.met, counts.bytes, counts.refusals.count);
    let mut report = Report::new("gateway", reporter);
    for (name, count) in [("met", met), ("refused", refused), ("bytes", bytes)] {
        report.result.insert(name.to_owned(), count.into());
    }
    report_place.write(&report)?;
    reporter.say(format_args!(
        "stopped by a signal; pairs connected: {met}, bytes relayed: {bytes}, refused: {refused}"
    ));
    Ok(())
}

/// Prints a line about an event; in JSON it has the fields of the event, too.
fn tell(event: &Event, reporter: &Reporter) {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    let (name, message) = match event {
        Event::Refused { address, reason } => {
            set("address", address.to_string().into());
            set("reason", reason.to_string().into());
            ("refused", format!("{address} was refused: {reason}"))
        }
        Event::Waiting(client) => {
            describe(client, &mut set);
            ("waiting", format!("{} waits for its peer", ClientName(client)))
        }
        Event::Left { client, reason } => {
            describe(client, &mut set);
            let why = match reason {
                Some(reason) => reason.to_string(),
                None => "it closed the connection".to_owned(),
            };
            set("reason", why.as_str().into());
            ("left", format!("{} waits no longer: {why}", ClientName(client)))
        }
        Event::Met { sender, receiver } => {
            describe_pair([sender, receiver], &mut set);
            let (sender, receiver) = (ClientName(sender), ClientName(receiver));
            ("met", format!("{sender} and {receiver} are connected"))
        }
        Event::Ended { sender, receiver, bytes: [from_sender, from_receiver], lasted } => {
            describe_pair([sender, receiver], &mut set);
            set("bytes_from_sender", (*from_sender).into());
            set("bytes_from_receiver", (*from_receiver).into());
            set("seconds", json!(lasted.as_secs_f64()));
            let (sender, receiver) = (ClientName(sender), ClientName(receiver));
            let bytes = from_sender + from_receiver;
            let seconds = lasted.as_secs_f64();
            let what = format!("{sender} and {receiver} ended after {seconds:.0} s, {bytes} bytes");
            ("ended", what)
        }
        _ => return,
    };
    set("event", name.into());
    reporter.tell_with(message, fields);
}

/// The first half of a run, as in the name of its certificates.
fn run_of(client: &Client) -> String {
    let run = &client.ticket.run[..16];
    run.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn describe(client: &Client, set: &mut impl FnMut(&str, Value)) {
    let ticket = &client.ticket;
    set("run", run_of(client).into());
    set("side", ticket.side.name().into());
    set("worker", ticket.worker.into());
    set("attempt", ticket.attempt.into());
    set("organisation", client.organisation.to_string().into());
    set("address", client.address.to_string().into());
}

fn describe_pair(pair: [&Client; 2], set: &mut impl FnMut(&str, Value)) {
    set("run", run_of(pair[0]).into());
    set("worker", pair[0].ticket.worker.into());
    for client in pair {
        let side = client.ticket.side.name();
        set(&format!("{side}_attempt"), client.ticket.attempt.into());
        let organisation = client.organisation.to_string();
        set(&format!("{side}_organisation"), organisation.into());
        set(&format!("{side}_address"), client.address.to_string().into());
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_do_not_flood_the_log() {
        let mut refusals = Refusals::default();
        let start = Instant::now();
        let told = (0..100).filter(|_| refusals.add(start).0).count();
        assert_eq!(told, 30);
        assert_eq!(refusals.add(start + MINUTE), (true, 70));
        assert_eq!(refusals.add(start + 3 * MINUTE), (true, 0));
        assert_eq!(refusals.count, 102);
    }
}
