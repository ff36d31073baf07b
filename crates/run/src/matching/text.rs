//! The texts of a run: what was left out of its table, its plan, its report, and its last lines.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use volery_matching::{Matches, Outcome, PreparedTable, Settings, Summary, WrittenRows};
use volery_tables::{Counts, Table};

use super::arguments::MatchingArguments;
use super::cost::{Prediction, add_cost, choice, failures};
use crate::lint::caution_about_encoding;
use crate::randomness::hex;
use crate::report::Report;
use crate::reporter::{Reporter, event, many, object};

/// The name of a table in lines about it.
pub(crate) fn name_of(table: &Table) -> String {
    // A line feed in a name does not begin a line of its own.
    let names = table.paths().iter().map(|path| path.display().to_string().replace('\n', "\\n"));
    let names: Vec<_> = names.collect();
    match &names[..] {
        [] => "the table".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {}", many(rest.len() as u64, "other file")),
    }
}

impl Report {
    fn rule(&mut self, rule: usize) -> Option<&mut Map<String, Value>> {
        self.result.get_mut("rules")?.get_mut(rule)?.as_object_mut()
    }
}

/// Adds what a run cost and how sure its result is.
pub(crate) fn add_outcome(report: &mut Report, settings: &Settings, outcome: &Outcome) {
    let [items, peer_items] = settings.role.sides(outcome.sizes[0]);
    report.n = Some(items);
    add_cost(report, [outcome.traffic, outcome.setup_traffic], [outcome.setup, outcome.online]);
    for (rule, sizes) in outcome.sizes.iter().enumerate() {
        if let Some(map) = report.rule(rule) {
            let [own, peer] = settings.role.sides(*sizes);
            map.insert("keys".to_owned(), own.into());
            map.insert("peer_keys".to_owned(), peer.into());
        }
    }
    let [capacity, peer_capacity] = settings.role.sides(outcome.capacities[0]);
    let several = outcome.buckets > 1 || outcome.resumed > 0;
    let buckets = several.then(|| {
        json!({
            "count": outcome.buckets,
            "capacity": capacity,
            "peer_capacity": peer_capacity,
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
pub(crate) fn add_matches(
    report: &mut Report,
    matches: Option<&Matches>,
    written: Option<&WrittenRows>,
) {
    if let Some(matches) = matches {
        for (rule, rows) in matches.by_rule().iter().enumerate() {
            if let Some(map) = report.rule(rule) {
                map.insert("matched_rows".to_owned(), (*rows).into());
            }
        }
    }
    report.result.extend(object(json!({
        "matched": matches.map(Matches::rows),
        "rows_written": written.map(|written| written.rows),
        "values_unwritten": written.map(|written| written.unwritten),
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
            " (the peer has {}), using {}, secure against a {} peer",
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
            .map(|(rule, rows)| format!("{} by rule {}", many(*rows, "row"), rule + 1))
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
    side: &PreparedTable,
    revealed: &[String],
    reporter: &Reporter,
) -> (String, Report) {
    let own = side.distinct(0).map_or(side.rows(), |(keys, _)| keys);
    let peer = arguments.peer_rows.unwrap_or(own);
    let prediction = Prediction {
        arguments,
        rows: side.rows(),
        keys: [own, peer],
        security: side.settings().security.to_string(),
        plan: side.plan(peer, arguments.link.unwrap_or_default()),
        own: match side.distinct(0) {
            Some(_) => many(own, "distinct key"),
            None => "distinct keys not counted".to_owned(),
        },
        has_columns: false,
        without: "reading and writing files",
    };
    prediction.tell(revealed, Map::new(), reporter)
}

/// The facts of a table, for a result of any kind.
pub(crate) struct TableFacts<'a> {
    rows: u64,
    counts: &'a Counts,
    /// Of each rule: distinct keys and rows whose key an earlier row has, where they are known.
    distinct: Vec<Option<(u64, u64)>>,
    key_types: &'a str,
    digest: [u8; 32],
    /// Rows that are in none of the groups.
    pub(crate) no_group: u64,
    /// Columns are sent, of the first row of each key alone.
    pub(crate) sends_first: bool,
}

impl<'a> From<&'a PreparedTable> for TableFacts<'a> {
    fn from(side: &'a PreparedTable) -> Self {
        let counts = side.counts();
        Self {
            rows: side.rows(),
            counts,
            distinct: (0..counts.rules.len()).map(|rule| side.distinct(rule)).collect(),
            key_types: side.key_description(),
            digest: side.digest(),
            no_group: 0,
            sends_first: false,
        }
    }
}

impl<'a> From<&'a Summary> for TableFacts<'a> {
    fn from(summary: &'a Summary) -> Self {
        Self {
            rows: summary.rows,
            counts: &summary.counts,
            distinct: vec![Some((summary.keys, summary.duplicates))],
            key_types: &summary.key_description,
            digest: summary.digest,
            no_group: 0,
            sends_first: false,
        }
    }
}

impl TableFacts<'_> {
    /// Tells how many keys the table has, and what was left out of it.
    pub(crate) fn tell(&self, table: &Table, reporter: &Reporter) {
        let name = name_of(table);
        for notice in table.notices() {
            reporter.tell(format_args!("{name}: {notice}"));
        }
        if self.rows == 0 {
            reporter.caution(format_args!("{name}: there is no row"));
        }
        caution_about_encoding(reporter, table, self.counts.rules.iter());
        let (mut text, mut rules) = (String::new(), Vec::new());
        let mut tell = |number: u64, what: &str, by: &str| {
            if number > 0 {
                text += &format!("{name}: {} {what}{by}\n", many(number, "row"));
            }
        };
        for (rule, (counts, distinct)) in self.counts.rules.iter().zip(&self.distinct).enumerate() {
            let by = match self.distinct.len() {
                1 => String::new(),
                _ => format!(" by rule {}", rule + 1),
            };
            let duplicates = distinct.map_or(0, |(_, rows)| rows);
            tell(counts.empty, "left out because a key column is empty or null", &by);
            tell(
                counts.malformed,
                "left out because a key column is malformed ('volery lint' says why)",
                &by,
            );
            tell(counts.repeated, "left out because too many rows have their key", &by);
            tell(duplicates, "with the same key as an earlier row", &by);
            if self.sends_first && duplicates > 0 {
                reporter.caution(format_args!(
                    "{name}: the columns of {} are not sent{by}: an earlier row has the same key, \
                     and a lookup sends the first row of a key; leave such rows out, or set \
                     --duplicates to dedup or error",
                    many(duplicates, "row")
                ));
            }
            rules.push(json!({
                "keys": distinct.map(|(keys, _)| keys),
                "empty": counts.empty,
                "malformed": counts.malformed,
                "repeated": counts.repeated,
                "duplicates": duplicates,
            }));
        }
        tell(self.no_group, "in none of the --groups", "");
        let keys = match self.distinct.first() {
            Some(Some((keys, _))) => many(*keys, "distinct key"),
            _ => many(self.rows, "row"),
        };
        text += &format!("this side has {keys}");
        let fields = json!({ "table": name, "rows": self.rows, "rules": rules });
        reporter.tell_with(text, event("table", fields));
    }

    /// The report as far as it is known before the run, with further `fields` of its result.
    pub(crate) fn report(
        &self,
        arguments: &MatchingArguments,
        (table, security): (&Table, String),
        fields: Map<String, Value>,
        revealed: &[String],
        reporter: &Reporter,
    ) -> Report {
        let columns = std::iter::once(arguments.key.join(",")).chain(arguments.or.iter().cloned());
        let rules = columns.zip(&self.counts.rules).zip(&self.distinct).enumerate();
        let rules = rules.map(|(rule, ((columns, counts), distinct))| {
            json!({
                "rule": rule + 1,
                "columns": columns,
                "rows_with_key": counts.keys,
                "empty": counts.empty,
                "malformed": counts.malformed,
                "repeated": counts.repeated,
                "changed": counts.changed,
                "not_utf8": counts.not_utf8,
                "keys": distinct.map(|(keys, _)| keys),
                "duplicates": distinct.map(|(_, rows)| rows),
            })
        });
        let rules: Vec<_> = rules.collect();
        let first = self.counts.rules.first().copied().unwrap_or_default();
        let distinct = self.distinct.first().copied().flatten();
        let files: Vec<_> = table.paths().iter().map(|path| path.display().to_string()).collect();
        let mut report = Report {
            role: Some(arguments.role.name().to_owned()),
            n: distinct.map(|(keys, _)| keys),
            security: Some(security),
            ..Report::new(arguments.verb.name(), reporter)
        };
        report.result = object(json!({
            "key_types": self.key_types,
            "rows": self.rows,
            "duplicates": distinct.map(|(_, rows)| rows),
            "empty": first.empty,
            "malformed": first.malformed,
            "rules": rules,
            "reveals": revealed,
            "input_digest": hex(&self.digest),
            "inputs": files,
        }));
        report.result.extend(fields);
        report
    }
}
