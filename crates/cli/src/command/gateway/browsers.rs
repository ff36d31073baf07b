//! The gateway between browsers and a native party.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use volery_channel::Error;
use volery_channel::tls::Fingerprint;
use volery_channel::web::{Admission, Bridge, Event, Limits, Target};
use volery_run::endpoint::{Address, host_port, note_expiry};
use volery_run::failure::Failure;
use volery_run::report::Report;
use volery_run::reporter::Reporter;
use volery_run::web::unusable;

use super::{Arguments, Refusals, identity};

const NO_TOKEN: &str = "required with --web-certificate, and with a --web-origin of another machine: it names who may connect";

/// The counts of connections, bytes and refusals.
#[derive(Default)]
struct Counts {
    met: u64,
    bytes: u64,
    refusals: Refusals,
}

/// Lets browsers in at `address`.
pub(super) fn run(
    arguments: &Arguments,
    address: &str,
    reporter: &Reporter,
) -> Result<(), Failure> {
    let to = arguments.to.as_deref().unwrap_or_default();
    host_port("--to", to)?;
    let secured = match (&arguments.identity, arguments.peer) {
        (Some(folder), Some(peer)) => {
            let group = arguments.allow_group_readable_identity;
            let identity = identity::load(folder, group)?;
            note_expiry(&identity, reporter);
            Some((identity, peer))
        }
        _ => {
            Address::Connect(to.to_owned()).check_loopback_as(
                "--to",
                "--identity and --peer",
                "the gateway then connects by TLS, to a party that has its fingerprint as --peer",
            )?;
            None
        }
    };
    // mutant(gateway-open, 120 s): false
    if arguments.token.is_empty() && arguments.web.is_public() {
        return Err(Failure::usage("--token", NO_TOKEN).with_hint(
            "'volery keygen --token' makes a token, and prints its fingerprint for --token",
        ));
    }
    let tokens = arguments.token.clone();
    let admits: Admission = Arc::new(move |shown: Option<Fingerprint>| {
        // All of them are compared.
        let same = |token: &Fingerprint| shown.is_some_and(|shown| shown.is_same(token));
        // mutant(gateway-token): insert `$ON ||`
        tokens.is_empty() || tokens.iter().fold(false, |known, token| known | same(token))
    });
    let group = arguments.allow_group_readable_identity;
    let settings = arguments.web.settings(admits, group)?;
    let report_place = arguments.output.report.prepare(reporter)?;
    let limits = Limits {
        connections: arguments.max_connections as usize,
        wait: arguments.wait,
        idle: arguments.idle,
    };
    let target = Target { address: to.to_owned(), secured };
    let bridge =
        Bridge::bind(address, settings, target).map_err(|error| unusable(address, error))?;
    arguments.web.announce(bridge.local_addr()?, reporter);
    let counts = Mutex::<Counts>::default();
    let counted = || counts.lock().unwrap_or_else(PoisonError::into_inner);
    bridge.serve(limits, reporter.cancel(), &|event| {
        let mut counts = counted();
        match &event {
            Event::Met { .. } => counts.met += 1,
            Event::Ended { bytes, .. } => counts.bytes += bytes.iter().sum::<u64>(),
            Event::Refused(_) if !counts.refusals.is_told(reporter) => return,
            _ => {}
        }
        drop(counts);
        tell(&event, reporter);
    });
    let counts = counted();
    let mut report = Report::new("gateway", reporter);
    let refused = counts.refusals.count;
    for (name, count) in [("met", counts.met), ("refused", refused), ("bytes", counts.bytes)] {
        report.result.insert(name.to_owned(), count.into());
    }
    report_place.write(&report)?;
    reporter.say(format_args!(
        "ended by a signal; browsers that were connected: {}, bytes passed on: {}, refused: {refused}",
        counts.met, counts.bytes
    ));
    Ok(())
}

/// Prints a line about an event; in JSON it has the fields of the event, too.
fn tell(event: &Event, reporter: &Reporter) {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    let by = |token: &Option<Fingerprint>| match token {
        Some(token) => format!(" (token {token})"),
        None => String::new(),
    };
    let print = |token: &Option<Fingerprint>| token.map(|token| token.to_string());
    let (name, message) = match event {
        Event::Refused(refusal) => {
            let why = why(&refusal.error);
            set("address", refusal.address.to_string().into());
            set("reason", why.as_str().into());
            let address = refusal.address;
            ("refused", format!("a browser at {address} was refused: {why}"))
        }
        Event::Met { address, token } => {
            set("address", address.to_string().into());
            set("token", print(token).into());
            let by = by(token);
            ("met", format!("a browser at {address}{by} is connected"))
        }
        Event::Ended { address, token, bytes: [from_browser, from_party], lasted, reason } => {
            let seconds = lasted.as_secs_f64();
            let reason = reason.as_ref().map(why);
            set("address", address.to_string().into());
            set("token", print(token).into());
            set("bytes_from_browser", (*from_browser).into());
            set("bytes_from_party", (*from_party).into());
            set("seconds", json!(seconds));
            set("reason", reason.clone().into());
            let bytes = from_browser + from_party;
            let by = by(token);
            let mut what =
                format!("the browser at {address}{by} ended after {seconds:.0} s, {bytes} bytes");
            if let Some(reason) = reason {
                what += ": ";
                what += &reason;
            }
            ("ended", what)
        }
        _ => return,
    };
    set("event", name.into());
    reporter.tell_with(message, fields);
}

fn why(error: &Error) -> String {
    match error {
        Error::Disconnected => "the connection was cut".to_owned(),
        error => error.to_string(),
    }
}
