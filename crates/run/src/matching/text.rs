//! The texts of a run: its plan, its report, and its last lines.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use volery_channel::Role;
use volery_matching::{Choice, Matches, Outcome, PreparedTable, Settings};
use volery_tables::Table;

use super::arguments::MatchingArguments;
use crate::memory::peak_memory;
use crate::randomness::hex;
use crate::report::{Report, Seconds};
use crate::reporter::Reporter;
use crate::reporter::many;

/// The name of a table in lines about it.
pub(crate) fn name_of(table: &Table) -> String {
    let names: Vec<_> = table.paths().iter().map(|path| path.display().to_string()).collect();
    match &names[..] {
        [] => "the table".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {}", many(rest.len() as u64, "other file")),
    }
}

/// Tells what was left out of a table.
pub(crate) fn tell_counts(reporter: &Reporter, table: &Table, side: &PreparedTable) {
    let name = name_of(table);
    for notice in table.notices() {
        reporter.tell(format_args!("{name}: {notice}"));
    }
    if side.rows() == 0 {
        reporter.caution(format_args!("{name}: there is no row"));
    }
    let rules = &side.counts().rules;
    for (rule, counts) in rules.iter().enumerate() {
        let by = match rules.len() {
            1 => String::new(),
            _ => format!(" by key {}", rule + 1),
        };
        for (number, why) in [
            (counts.empty, "a key column is empty or null"),
            (counts.malformed, "a key column is malformed"),
        ] {
            if number > 0 {
                let rows = many(number, "row");
                reporter.tell(format_args!("{name}: {rows} left out{by} because {why}"));
            }
        }
        if let Some((_, number)) = side.distinct(rule).filter(|(_, number)| *number > 0) {
            let rows = many(number, "row");
            reporter.tell(format_args!("{name}: {rows} with the same key as an earlier row{by}"));
        }
    }
}

/// The report as far as it is known before the run.
pub(crate) fn report(
    arguments: &MatchingArguments,
    settings: &Settings,
    table: &Table,
    side: &PreparedTable,
    (revealed, reporter): (&[String], &Reporter),
) -> Report {
    let counts = side.counts();
    let columns = std::iter::once(arguments.key.join(",")).chain(arguments.or.iter().cloned());
    let rules: Vec<_> = columns
        .zip(&counts.rules)
        .enumerate()
        .map(|(rule, (columns, counts))| {
            let distinct = side.distinct(rule);
            json!({
                "rule": rule + 1,
                "columns": columns,
                "rows_with_key": counts.keys,
                "empty": counts.empty,
                "malformed": counts.malformed,
                "changed": counts.changed,
                "keys": distinct.map(|(keys, _)| keys),
                "duplicates": distinct.map(|(_, rows)| rows),
            })
        })
        .collect();
    let first = counts.rules.first().copied().unwrap_or_default();
    let result = json!({
        "both": arguments.both,
        "key_types": side.key_description(),
        "rows": side.rows(),
        "duplicates": side.distinct(0).map(|(_, rows)| rows),
        "empty": first.empty,
        "malformed": first.malformed,
        "rules": rules,
        "reveals": revealed,
    });
    let mut report = Report {
        role: Some(arguments.role.name().to_owned()),
        n: side.distinct(0).map(|(keys, _)| keys),
        security: Some(settings.security.to_string()),
        ..Report::new(settings.verb.name(), reporter)
    };
    report.result = object(result);
    let digest = side.digest().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let files: Vec<_> = table.paths().iter().map(|path| path.display().to_string()).collect();
    report.result.insert("input_digest".to_owned(), digest.into());
    report.result.insert("inputs".to_owned(), files.into());
    report
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
    let traffic = outcome.traffic;
    let [all, setup] =
        [traffic, outcome.setup_traffic].map(|one| one.bytes_sent + one.bytes_received);
    let own = usize::from(settings.role == Role::Receiver);
    let [items, peer_items] = [own, 1 - own].map(|side| outcome.sizes[0][side]);
    report.n = Some(items);
    report.bytes_sent = Some(traffic.bytes_sent);
    report.bytes_received = Some(traffic.bytes_received);
    report.messages = Some(traffic.messages_sent + traffic.messages_received);
    report.seconds = Seconds {
        setup: Some(outcome.setup.as_secs_f64()),
        online: Some(outcome.online.as_secs_f64()),
        ..Seconds::default()
    };
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
        "bytes_online": all - setup,
        "bytes_setup": setup,
    })));
    let Some(parameters) = &outcome.parameters else {
        return;
    };
    report.parameters = Some(parameters.describe());
    report.assumption = Some(parameters.assumption());
    // All executions together.
    let parts = f64::from(outcome.buckets) * outcome.sizes.len() as f64;
    let more = parts.log2();
    let failures = parameters.failures().into_iter().map(|(what, bits)| {
        // A cause that cannot occur has no logarithm.
        json!({ "what": what, "log2": bits.is_finite().then_some(more - bits) })
    });
    let failures: Vec<_> = failures.collect();
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

fn choice(choice: &Choice) -> Value {
    let predicted: Vec<_> = choice
        .candidates
        .iter()
        .map(|one| {
            json!({
                "protocol": one.protocol.name(),
                "seconds": one.seconds,
                "bytes": one.bytes,
            })
        })
        .collect();
    json!({
        "why": choice.why(),
        "bits_per_second": choice.link.bits_per_second as u64,
        "round_trip_seconds": choice.link.round_trip,
        "predicted": predicted,
    })
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

/// What a run would cost: for people, and as a report.
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
    let bytes = plan.bytes * rules;
    let seconds = plan.seconds * rules as f64;
    let mut text = format!(
        "this side: {}, {} with a key\npeer: {} (assumed{})\nprotocol: {}, {}\n",
        many(side.rows(), "row"),
        many(own, "row"),
        many(peer, "key"),
        match arguments.peer_rows {
            Some(_) => "",
            None => "; --peer-rows",
        },
        plan.protocol,
        settings.security,
    );
    let _ = write!(
        text,
        "bytes: {:.1} MB in both directions\ntime: {:.1} s at {:.0} Mbit/s and {:.0} ms{}, one thread a party, without reading and writing files\nmemory: {:.0} MB on this side, in {}\n",
        bytes as f64 / 1e6,
        seconds,
        link.bits_per_second / 1e6,
        link.round_trip * 1e3,
        match arguments.link {
            Some(_) => "",
            None => " (assumed; --link)",
        },
        plan.memory as f64 / 1e6,
        many(plan.buckets.into(), "bucket"),
    );
    for line in revealed {
        let _ = writeln!(text, "- {line}");
    }
    let mut report = Report::new(settings.verb.name(), reporter);
    report.role = Some(settings.role.name().to_owned());
    report.n = Some(own);
    report.security = Some(settings.security.to_string());
    report.peak_rss_bytes = peak_memory();
    report.result = object(json!({
        "dry_run": true,
        "rows": side.rows(),
        "peer_items": peer,
        "protocol": plan.protocol.name(),
        "choice": choice(&choice_of),
        "bytes": bytes,
        "seconds": seconds,
        "memory_bytes": plan.memory,
        "buckets": plan.buckets,
        "reveals": revealed,
    }));
    (text, report)
}
