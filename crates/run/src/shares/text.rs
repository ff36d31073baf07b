//! The texts of a run for shares: its plan, its report and its last line.

use serde_json::{Value, json};
use volery_channel::Role;
use volery_matching::shares::{Outcome, Plan, PreparedTable, Settings};
use volery_matching::totals::decimal;

use super::description::Description;
use crate::failure::Failure;
use crate::matching::arguments::MatchingArguments;
use crate::matching::text::object;
use crate::memory::peak_memory;
use crate::randomness::hex;
use crate::report::{Report, Seconds};
use crate::reporter::Reporter;
use crate::reporter::many;

/// The settings of the result.
pub(crate) fn settings_of(settings: &Settings) -> Value {
    let has_columns = !settings.columns.is_empty();
    json!({
        "kind": "shares",
        "row_order": settings.row_order,
        "bound": has_columns.then(|| decimal(settings.bound as i64, settings.decimals)),
        "decimals": has_columns.then_some(settings.decimals),
    })
}

/// Adds the shape of the shares, what the run cost, and how sure it is.
pub(crate) fn add_outcome(
    report: &mut Report,
    settings: &Settings,
    description: &Description,
    outcome: &Outcome,
) {
    let layout = &outcome.layout;
    let own = usize::from(settings.role == Role::Receiver);
    let [items, peer_items] = [own, 1 - own].map(|side| layout.sizes[side]);
    let traffic = outcome.traffic;
    let [all, setup] =
        [traffic, outcome.setup_traffic].map(|one| one.bytes_sent + one.bytes_received);
    report.bytes_sent = Some(traffic.bytes_sent);
    report.bytes_received = Some(traffic.bytes_received);
    report.messages = Some(traffic.messages_sent + traffic.messages_received);
    report.seconds = Seconds {
        setup: Some(outcome.setup.as_secs_f64()),
        online: Some(outcome.online.as_secs_f64()),
        ..Seconds::default()
    };
    let parameters = &outcome.parameters;
    report.parameters = Some(parameters.to_string());
    report.assumption = Some(format!(
        "{}; {:.0} statistical",
        parameters.assumption(),
        parameters.failure_bits().floor()
    ));
    let failures = parameters.failures().into_iter().map(|cause| {
        // A cause that cannot occur has no logarithm.
        json!({ "what": cause.what, "log2": cause.bits.is_finite().then_some(-cause.bits) })
    });
    let failures: Vec<_> = failures.collect();
    report.result.extend(object(json!({
        "session": hex(layout.session.as_bytes()),
        "protocol": protocol(settings),
        "shares": description,
        "items": items,
        "peer_items": peer_items,
        "bytes_online": all - setup,
        "bytes_setup": setup,
        "failures": failures,
        "failure_log2": -parameters.failure_bits(),
        "statistical_bits": parameters.failure_bits(),
    })));
    let rules = report.result.get_mut("rules");
    if let Some(Value::Object(rule)) = rules.and_then(|rules| rules.get_mut(0)) {
        rule.insert("peer_keys".to_owned(), peer_items.into());
    }
}

fn protocol(settings: &Settings) -> &'static str {
    match settings.name {
        volery_matching::ProtocolChoice::CircuitLow => "circuit-low",
        _ => "circuit",
    }
}

/// The last line of a run.
pub(crate) fn summary(settings: &Settings, report: &Report, outcome: &Outcome) -> String {
    let layout = &outcome.layout;
    let own = usize::from(settings.role == Role::Receiver);
    let [items, peer] = [own, 1 - own].map(|side| layout.sizes[side]);
    let columns = layout.columns.iter().map(|side| side.count as u64).sum();
    format!(
        "{}: shares of {} and {} for {} here and {peer} at the peer, by {}, semi-honest, in {:.3} \
         s, {} bytes sent, {} received",
        settings.role.name(),
        many(layout.places, "place"),
        many(columns, "column"),
        many(items, "key"),
        protocol(settings),
        report.seconds.total.unwrap_or_default(),
        outcome.traffic.bytes_sent,
        outcome.traffic.bytes_received,
    )
}

/// What a run would cost: for people, and as a report.
pub(crate) fn plan(
    arguments: &MatchingArguments,
    side: &PreparedTable,
    revealed: &[String],
    reporter: &Reporter,
) -> Result<(String, Report), Failure> {
    let settings = side.settings();
    let own = side.summary().keys;
    let peer = arguments.peer_rows.unwrap_or(own);
    let link = arguments.link.unwrap_or_default();
    let Plan { protocol, bytes, seconds, memory } = side.plan(peer, link)?;
    let assumed = |given: bool, text: &'static str| if given { "" } else { text };
    let mut text = format!(
        "this side: {}, {}, {}\npeer: {} (assumed{}), with as many columns (assumed)\n\
         protocol: {protocol}, semi-honest\n",
        many(side.summary().rows, "row"),
        many(own, "distinct key"),
        many(settings.columns.len() as u64, "column"),
        many(peer, "key"),
        assumed(arguments.peer_rows.is_some(), "; --peer-rows"),
    );
    text += &format!(
        "bytes: {:.1} MB in both directions\ntime: {seconds:.1} s at {:.0} Mbit/s and {:.0} ms{}, \
         one thread a party, without reading files\nmemory: {:.0} MB on this side\n",
        bytes as f64 / 1e6,
        link.bits_per_second / 1e6,
        link.round_trip * 1e3,
        assumed(arguments.link.is_some(), " (assumed; --link)"),
        memory as f64 / 1e6,
    );
    for line in revealed {
        text += &format!("- {line}\n");
    }
    let mut report = Report::new("psi", reporter);
    report.role = Some(settings.role.name().to_owned());
    report.n = Some(own);
    report.security = Some("semi-honest".to_owned());
    report.peak_rss_bytes = peak_memory();
    report.result = object(json!({
        "kind": "shares",
        "dry_run": true,
        "row_order": settings.row_order,
        "rows": side.summary().rows,
        "peer_items": peer,
        "protocol": protocol.name(),
        "bytes": bytes,
        "seconds": seconds,
        "memory_bytes": memory,
        "buckets": 1,
        "reveals": revealed,
    }));
    Ok((text, report))
}
