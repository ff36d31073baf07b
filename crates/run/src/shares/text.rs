//! The texts of a run for shares: its plan, its report and its last line.

use serde_json::{Value, json};
use volery_channel::Role;
use volery_matching::shares::{Outcome, PreparedTable, Settings};
use volery_matching::totals::decimal;

use super::description::Description;
use crate::failure::Failure;
use crate::matching::arguments::MatchingArguments;
use crate::matching::cost::{Prediction, add_cost, assumed, failures, lines};
use crate::matching::text::object;
use crate::randomness::hex;
use crate::report::Report;
use crate::reporter::{Reporter, many};

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
    add_cost(report, [outcome.traffic, outcome.setup_traffic], [outcome.setup, outcome.online]);
    let parameters = &outcome.parameters;
    report.parameters = Some(parameters.to_string());
    report.assumption = Some(format!(
        "{}; {:.0} statistical",
        parameters.assumption(),
        parameters.failure_bits().floor()
    ));
    let causes = parameters.failures().into_iter().map(|cause| (cause.what, cause.bits));
    report.result.extend(object(json!({
        "session": hex(layout.session.as_bytes()),
        "protocol": protocol(settings),
        "shares": description,
        "items": items,
        "peer_items": peer_items,
        "failures": failures(causes, 0.0),
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

/// The cost of a run: for people, and as a report.
pub(crate) fn plan(
    arguments: &MatchingArguments,
    side: &PreparedTable,
    revealed: &[String],
    reporter: &Reporter,
) -> Result<(String, Report), Failure> {
    let settings = side.settings();
    let own = side.summary().keys;
    let peer = arguments.peer_rows.unwrap_or(own);
    let plan = side.plan(peer, arguments.link.unwrap_or_default())?;
    let prediction = Prediction {
        keys: [own, peer],
        rows: side.summary().rows,
        protocol: plan.protocol.name(),
        security: "semi-honest".to_owned(),
        bytes: plan.bytes,
        seconds: plan.seconds,
        memory: plan.memory,
        buckets: 1,
    };
    let text = format!(
        "this side: {}, {}, {}\npeer: {} (assumed{}), with as many columns (assumed)\nprotocol: {}, \
         semi-honest\n{}\n{}",
        many(side.summary().rows, "row"),
        many(own, "distinct key"),
        many(settings.columns.len() as u64, "column"),
        many(peer, "key"),
        assumed(arguments.peer_rows.is_some(), "; --peer-rows"),
        plan.protocol,
        prediction.describe(arguments, "reading files"),
        lines(revealed),
    );
    let fields = object(json!({ "kind": "shares", "row_order": settings.row_order }));
    Ok((text, prediction.report(arguments, revealed, fields, reporter)))
}
