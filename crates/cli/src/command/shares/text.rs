//! The texts of a run for shares: its plan, its report and its last line.

use serde_json::json;
use volery_channel::Role;
use volery_matching::shares::{Outcome, Plan, Settings, Side};
use volery_matching::totals::decimal;
use volery_tables::Table;

use super::description::Description;
use crate::command::matching::MatchingArguments;
use crate::command::matching::text::{name_of, object};
use crate::command::options::Reporter;
use crate::exit::Failure;
use crate::randomness::hex;
use crate::report::{Report, Seconds, peak_memory};
use crate::said::many;

/// Tells what was left out of a table.
pub(super) fn tell_counts(reporter: &Reporter, table: &Table, side: &Side) {
    let name = name_of(table);
    for notice in table.notices() {
        reporter.tell(format_args!("{name}: {notice}"));
    }
    if side.rows() == 0 {
        reporter.caution(format_args!("{name}: there is no row"));
    }
    let counts = side.counts().rules.first().copied().unwrap_or_default();
    for (number, what) in [
        (
            counts.empty,
            "left out because a key column is empty or null",
        ),
        (
            counts.malformed,
            "left out because a key column is malformed",
        ),
        (side.duplicates(), "with a key of an earlier row"),
    ] {
        if number > 0 {
            reporter.tell(format_args!("{name}: {} {what}", many(number, "row")));
        }
    }
}

/// The report as far as it is known before the run.
pub(super) fn report(
    arguments: &MatchingArguments,
    table: &Table,
    side: &Side,
    revealed: &[String],
    reporter: &Reporter,
) -> Report {
    let settings = side.settings();
    let counts = side.counts().rules.first().copied().unwrap_or_default();
    let rule = json!({
        "rule": 1,
        "columns": arguments.keys.key.join(","),
        "rows_with_key": counts.keys,
        "empty": counts.empty,
        "malformed": counts.malformed,
        "changed": counts.changed,
        "keys": side.keys(),
        "duplicates": side.duplicates(),
    });
    let digest = side
        .digest()
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let files: Vec<_> = table
        .paths()
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let has_columns = !settings.columns.is_empty();
    let mut report = Report {
        role: Some(settings.role.name().to_owned()),
        n: Some(side.keys()),
        security: Some("semi-honest".to_owned()),
        ..Report::new("psi", reporter)
    };
    report.result = object(json!({
        "kind": "shares",
        "row_order": settings.row_order,
        "bound": has_columns.then(|| decimal(settings.bound as i64, settings.decimals)),
        "decimals": has_columns.then_some(settings.decimals),
        "key_types": side.key_description(),
        "rows": side.rows(),
        "duplicates": side.duplicates(),
        "empty": counts.empty,
        "malformed": counts.malformed,
        "rules": [rule],
        "reveals": revealed,
        "input_digest": digest,
        "inputs": files,
    }));
    report
}

/// Adds the shape of the shares, what the run cost, and how sure it is.
pub(super) fn add_outcome(
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
        "session": hex(layout.session),
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
    if let Some(serde_json::Value::Object(rule)) = rules.and_then(|rules| rules.get_mut(0)) {
        rule.insert("peer_keys".to_owned(), peer_items.into());
    }
}

fn protocol(settings: &Settings) -> &'static str {
    match settings.name {
        volery_matching::Name::CircuitLow => "circuit-low",
        _ => "circuit",
    }
}

/// The last line of a run.
pub(super) fn summary(settings: &Settings, report: &Report, outcome: &Outcome) -> String {
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
pub(super) fn plan(
    arguments: &MatchingArguments,
    side: &Side,
    revealed: &[String],
    reporter: &Reporter,
) -> Result<(String, Report), Failure> {
    let settings = side.settings();
    let own = side.keys();
    let peer = arguments.peer_rows.unwrap_or(own);
    let link = arguments.link.unwrap_or_default();
    let Plan {
        protocol,
        bytes,
        seconds,
        memory,
    } = side.plan(peer, link)?;
    let assumed = |given: bool, text: &'static str| if given { "" } else { text };
    let mut text = format!(
        "this side: {}, {}, {}\npeer: {} (assumed{}), with as many columns (assumed)\n\
         protocol: {protocol}, semi-honest\n",
        many(side.rows(), "row"),
        many(own, "different key"),
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
        "rows": side.rows(),
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
