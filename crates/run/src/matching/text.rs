//! The texts of a run: its plan, its report, and its last lines.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use volery_channel::Role;
use volery_matching::{Choice, Matches, Outcome, PreparedTable, Settings};
use volery_tables::Table;

use super::arguments::MatchingArguments;
use super::cost::{Prediction, add_cost, assumed, choice, failures, lines};
use crate::randomness::hex;
use crate::report::Report;
use crate::reporter::{Reporter, many};

/// The name of a table in lines about it.
pub(crate) fn name_of(table: &Table) -> String {
    let names: Vec<_> = table.paths().iter().map(|path| path.display().to_string()).collect();
    match &names[..] {
        [] => "the table".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {}", many(rest.len() as u64, "other file")),
    }
}

/// The fields of a JSON literal.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => unreachable!("the JSON literal is an object"),
    }
}

impl Report {
    fn rule(&mut self, rule: usize) -> Option<&mut Map<String, Value>> {
        self.result.get_mut("rules")?.get_mut(rule)?.as_object_mut()
    }
}

/// Adds what a run cost and how sure its result is.
pub(crate) fn add_outcome(report: &mut Report, settings: &Settings, outcome: &Outcome) {
    let own = usize::from(settings.role == Role::Receiver);
    let [items, peer_items] = [own, 1 - own].map(|side| outcome.sizes[0][side]);
    report.n = Some(items);
    add_cost(report, [outcome.traffic, outcome.setup_traffic], [outcome.setup, outcome.online]);
    for (rule, sizes) in outcome.sizes.iter().enumerate() {
        if let Some(map) = report.rule(rule) {
            map.insert("keys".to_owned(), sizes[own].into());
            map.insert("peer_keys".to_owned(), sizes[1 - own].into());
        }
    }
    let several = outcome.buckets > 1 || outcome.resumed > 0;
    let buckets = several.then(|| {
        json!({
            "count": outcome.buckets,
            "capacity": outcome.capacities[0][own],
            "peer_capacity": outcome.capacities[0][1 - own],
            "finished_before": outcome.resumed,
            "attempts": outcome.attempts,
        })
    });
    report.result.extend(object(json!({
        "session": hex(outcome.session.as_bytes()),
        "protocol": outcome.protocol.name(),
        "choice": outcome.choice.as_ref().map(choice),
        "items": items,
        "peer_items": peer_items,
        "buckets": buckets,
        "longest_value_bytes": outcome.longest,
    })));
    let Some(parameters) = &outcome.parameters else {
        return;
    };
    report.parameters = Some(parameters.describe());
    report.assumption = Some(parameters.assumption());
    // All executions together.
    let parts = f64::from(outcome.buckets) * outcome.sizes.len() as f64;
    let more = parts.log2();
    let failures = failures(parameters.failures().into_iter(), more);
    let [in_2_80, in_2_128] = parameters.most_items();
    let most_items = in_2_80.map(|most| json!({ "2^80 hashes": most, "2^128 hashes": in_2_128 }));
    let bytes = parameters.bytes(outcome.longest);
    let [encoding, tags, values, correlations] = bytes.map(|bytes| bytes as f64 * parts);
    report.result.extend(object(json!({
        "false_positive_log2": more + parameters.false_positive(),
        "failures": failures,
        "failure_log2": more - parameters.failure_bits(),
        "statistical_bits": parameters.statistical_bits() - more,
        "most_items": most_items,
        "bytes_encoding": encoding,
        "bytes_tags": tags,
        "bytes_values": values,
        "bytes_correlations": correlations,
        "bytes_formula": encoding + tags + values + correlations,
        "memory_bytes": parameters.memory(settings.role),
    })));
}

/// Adds the result.
pub(crate) fn add_matches(report: &mut Report, matches: Option<&Matches>, written: Option<u64>) {
    if let Some(matches) = matches {
        for (rule, rows) in matches.by_rule().iter().enumerate() {
            if let Some(map) = report.rule(rule) {
                map.insert("matched_rows".to_owned(), (*rows).into());
            }
        }
    }
    report.result.extend(object(json!({
        "matched": matches.map(Matches::rows),
        "rows_written": written,
    })));
}

/// The last lines of a run.
pub(crate) fn summary(
    arguments: &MatchingArguments,
    report: &Report,
    outcome: Option<&Outcome>,
    matches: Option<&Matches>,
) -> Vec<String> {
    let rows = report.result["rows"].as_u64().unwrap_or_default();
    let mut text = format!("{}: ", arguments.role.name());
    match (matches, &arguments.out) {
        (Some(matches), Some(out)) => {
            let _ = write!(
                text,
                "{} of {} match; wrote {} to {}",
                matches.rows(),
                many(rows, "row"),
                many(report.result["rows_written"].as_u64().unwrap_or_default(), "row"),
                out.display()
            );
        }
        _ => {
            let _ = write!(text, "done; compared {} with the peer's keys", many(rows, "row"));
        }
    }
    if let Some(outcome) = outcome {
        let peer = report.result["peer_items"].as_u64().unwrap_or_default();
        let _ = write!(
            text,
            " (the peer has {}), by {}, secure against a {} peer",
            many(peer, "key"),
            outcome.protocol,
            report.security.as_deref().unwrap_or_default(),
        );
        if let (Some(_), Some(log2)) = (matches, report.result.get("false_positive_log2")) {
            let log2 = log2.as_f64().unwrap_or_default();
            let _ = write!(text, ", false matches with probability at most 2^{log2:.0} in all");
        }
        let _ = write!(
            text,
            ", in {:.3} s, {} bytes sent, {} received",
            report.seconds.total.unwrap_or_default(),
            outcome.traffic.bytes_sent,
            outcome.traffic.bytes_received,
        );
    }
    let mut lines = vec![text];
    if let Some(matches) = matches
        && matches.by_rule().len() > 1
    {
        let each = matches.by_rule().iter().enumerate();
        let each: Vec<_> = each
            .map(|(rule, rows)| format!("{} by key {}", many(*rows, "row"), rule + 1))
            .collect();
        lines.push(format!("of these {}", each.join(", ")));
    }
    lines
}

/// Tells what usually causes that no row matches.
pub(crate) fn caution_about_no_match(reporter: &Reporter, rows: u64, matches: Option<&Matches>) {
    if rows > 0 && matches.is_some_and(|matches| matches.rows() == 0) {
        reporter.caution("no row matches. The usual causes: the sides wrote their keys differently (case, spaces, country codes, accents: see --key COL:email, e164=REGION, trim+lower+nfc; or a text file that is not UTF-8: see --encoding), compared other columns, or one side hashed its keys; 'volery lint FILE --key ..' shows what a key column holds without printing a key");
    }
}

/// The cost of a run: for people, and as a report.
pub(crate) fn plan(
    arguments: &MatchingArguments,
    settings: &Settings,
    side: &PreparedTable,
    revealed: &[String],
    reporter: &Reporter,
) -> (String, Report) {
    let own = side.distinct(0).map_or(side.rows(), |(keys, _)| keys);
    let peer = arguments.peer_rows.unwrap_or(own);
    let rules = arguments.number_of_rules() as u64;
    let link = arguments.link.unwrap_or_default();
    let plan = side.plan(peer, link);
    let (sender_items, receiver_items) = match settings.role {
        Role::Sender => (own, peer),
        Role::Receiver => (peer, own),
    };
    let task = settings.task([sender_items, receiver_items]);
    let choice_of = Choice::new(task, link);
    let prediction = Prediction {
        keys: [own, peer],
        rows: side.rows(),
        protocol: plan.protocol.name(),
        security: settings.security.to_string(),
        bytes: plan.bytes * rules,
        seconds: plan.seconds * rules as f64,
        memory: plan.memory,
        buckets: plan.buckets,
    };
    let text = format!(
        "this side: {}, {} with a key\npeer: {} (assumed{})\nprotocol: {}, {}\n{}, in {}\n{}",
        many(side.rows(), "row"),
        many(own, "row"),
        many(peer, "key"),
        assumed(arguments.peer_rows.is_some(), "; --peer-rows"),
        plan.protocol,
        settings.security,
        prediction.describe(arguments, "reading and writing files"),
        many(plan.buckets.into(), "bucket"),
        lines(revealed),
    );
    let fields = object(json!({ "choice": choice(&choice_of) }));
    (text, prediction.report(arguments, revealed, fields, reporter))
}
