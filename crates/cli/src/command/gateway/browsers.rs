//! The gateway between browsers and a native party.

use serde_json::json;
use volery_channel::Error;
use volery_channel::tls::Fingerprint;
use volery_channel::web::{Admission, Bridge, Event, Limits, Target};
use volery_os::sync::{Arc, Mutex, PoisonError};
use volery_run::endpoint::{Address, host_port, note_expiry};
use volery_run::failure::{Failure, Result};
use volery_run::reporter::{Reporter, event};
use volery_run::web::unusable;

use super::{Arguments, Counts};

const NO_TOKEN: &str = "required with --web-certificate, and with a --web-origin of another machine: it names who may connect";

/// Lets browsers in at `address`.
pub(super) fn run(arguments: &Arguments, address: &str, reporter: &Reporter) -> Result<()> {
    let to = arguments.to.as_deref().unwrap_or_default();
    host_port("--to", to)?;
    let mut party = arguments.party.0.clone();
    party.allow_group_readable_identity = arguments.allow_group_readable_identity;
    let secured = party.identity_and_peer(reporter)?;
    match &secured {
        Some((identity, _)) => note_expiry(identity, reporter),
        None => {
            Address::Connect(to.to_owned()).check_loopback_as(
                "--to",
                "--identity and --peer",
                "the gateway then connects by TLS, to a party that has its fingerprint as --peer",
            )?;
        }
    }
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
    arguments.web.announce(&bridge.addresses(), reporter);
    let counts = Mutex::<Counts>::default();
    let counted = || counts.lock().unwrap_or_else(PoisonError::into_inner);
    bridge.serve(limits, reporter.cancel(), &|event| {
        let mut counts = counted();
        match &event {
            Event::Met { .. } => counts.met += 1,
            Event::Ended { bytes, .. } => counts.bytes += bytes.iter().sum::<u64>(),
            // A health probe, which leaves before it asks for anything.
            Event::Refused(refusal) if matches!(refusal.error, Error::Disconnected) => return,
            Event::Refused(_) if !counts.refusals.add_one(reporter) => return,
            _ => {}
        }
        drop(counts);
        tell(&event, reporter);
    });
    let words = ["ended by a signal; browsers that were connected", "bytes passed on"];
    counted().conclude(report_place, words, reporter)
}

/// Prints a line about an event; in JSON it has the fields of the event, too.
fn tell(told: &Event, reporter: &Reporter) {
    let by = |token: &Option<Fingerprint>| match token {
        Some(token) => format!(" (token {token})"),
        None => String::new(),
    };
    let print = |token: &Option<Fingerprint>| token.map(|token| token.to_string());
    let (name, fields, message) = match told {
        Event::Refused(refusal) => {
            let (why, address) = (why(&refusal.error), refusal.address);
            let fields = json!({ "address": address.to_string(), "reason": why });
            ("refused", fields, format!("a browser at {address} was refused: {why}"))
        }
        Event::Met { address, token } => (
            "met",
            json!({ "address": address.to_string(), "token": print(token) }),
            format!("a browser at {address}{} is connected", by(token)),
        ),
        Event::Ended { address, token, bytes: [from_browser, from_party], lasted, reason } => {
            let (seconds, reason) = (lasted.as_secs_f64(), reason.as_ref().map(why));
            let fields = json!({
                "address": address.to_string(),
                "token": print(token),
                "bytes_from_browser": from_browser,
                "bytes_from_party": from_party,
                "seconds": seconds,
                "reason": reason,
            });
            let (bytes, by) = (from_browser + from_party, by(token));
            let because = reason.map_or(String::new(), |reason| format!(": {reason}"));
            let message = format!(
                "the browser at {address}{by} ended after {seconds:.0} s, {bytes} bytes{because}"
            );
            ("ended", fields, message)
        }
        _ => return,
    };
    reporter.tell_with(message, event(name, fields));
}

fn why(error: &Error) -> String {
    match error {
        Error::Disconnected => "the connection was cut".to_owned(),
        error => error.to_string(),
    }
}
