//! A run: the table read, what will be revealed, and the matching rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use serde_json::{Value, json};
use volery_channel::{Channel, Stats};
use volery_matching::served::MAX_KEYS;
use volery_matching::steps::hex;
use volery_matching::{
    Columns, Matches, Outcome, Partitioning, PreparedTable, Progress, ProtocolChoice, Settings,
    StorageOptions, totals,
};
use volery_pcg::Security;
use volery_psi::served::Filter;
use volery_tables::{Counts, Format, Packing, RuleCounts, Table, column_texts};

use crate::failure::{Failure, Kind, Result};
use crate::options::{COLUMN, Call, Options};

/// A side that has read its table.
pub struct PreparedRun {
    table: Table,
    side: PreparedSide,
    columns: Columns,
    call: Call,
    with_file: bool,
    terms: Value,
}

/// A side, by what it wants.
enum PreparedSide {
    Rows(Box<PreparedTable>),
    Count(Box<totals::PreparedTable>),
}

/// The filters of a query to a server.
pub struct Filters<'a> {
    /// The one of an earlier query.
    pub kept: Option<Vec<u8>>,
    /// Keeps the one that was fetched, before anything is asked.
    pub keep: &'a mut dyn FnMut(&[u8]),
}

/// The result of a run.
pub struct RunResult {
    /// The matching rows, counted from 0, ascending.
    pub rows: Vec<u32>,
    /// The number of the key by which each matched, from 1.
    pub rules: Vec<u8>,
    /// The matching rows as a text file, if it was asked for.
    pub file: Option<Vec<u8>>,
    /// The other results, as in `web/index.d.ts`.
    pub told: Value,
}

impl PreparedRun {
    /// Reads a text file; `name` is that of the file, and says its format unless `options` does.
    pub fn file(
        options: &Options,
        name: &str,
        bytes: Vec<u8>,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        let table = Table::from_text(name, bytes.into(), &options.inputs()?)?;
        Self::read(options, table, false, progress)
    }

    /// Reads a list of keys.
    pub fn keys(options: &Options, keys: &[String], progress: &mut dyn Progress) -> Result<Self> {
        options.inputs()?;
        for option in ["format", "delimiter", "encoding", "quote"] {
            if options.has(option) {
                return Err(Failure::usage(option, "a list of keys has none"));
            }
        }
        let column = Field::new(COLUMN, DataType::Utf8, false);
        let schema = Arc::new(Schema::new(vec![column]));
        let strings: ArrayRef = Arc::new(StringArray::from_iter_values(keys));
        let rows = RecordBatch::try_new(Arc::clone(&schema), vec![strings]);
        let rows = rows.map_err(|error| Failure::new(Kind::Data, error))?;
        let table = Table::from_batches(schema, vec![rows])?;
        Self::read(options, table, true, progress)
    }

    fn read(
        options: &Options,
        table: Table,
        list: bool,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        let reading = options.reading(list)?;
        let columns = options.matching.columns();
        let (side, terms) = match options.call {
            Call::Count => {
                let settings = options.count_settings()?;
                let side = totals::PreparedTable::read(&table, &reading, &settings, progress)?;
                let revealed = totals::revealed(&settings, Partitioning::No);
                let summary = side.summary();
                let read = (summary.rows, &summary.counts, &*summary.key_description);
                let distinct = [(summary.keys, summary.duplicates)];
                let agreed = (settings.name, Security::SemiHonest);
                let terms = terms(&table, read, &distinct, agreed, revealed);
                (PreparedSide::Count(side.into()), terms)
            }
            _ => {
                let settings = options.settings()?;
                let names = columns.check(&table);
                names.map_err(|what| Failure::usage("valueNames", what))?;
                let local = StorageOptions::default();
                let side = PreparedTable::read(&table, &reading, &settings, &local, progress)?;
                let side = side.naming(&columns);
                let rules = reading.rules.len();
                let revealed = match options.call {
                    Call::Query => volery_matching::served::revealed(),
                    _ => volery_matching::revealed(&settings, rules, Partitioning::No),
                };
                let distinct: Vec<_> = (0..rules).filter_map(|rule| side.distinct(rule)).collect();
                let read = (side.rows(), side.counts(), side.key_description());
                let agreed = (settings.name, settings.security);
                let terms = terms(&table, read, &distinct, agreed, revealed);
                (PreparedSide::Rows(side.into()), terms)
            }
        };
        if terms["rows"].as_u64().unwrap_or(u64::MAX) > u32::MAX.into() {
            let what = "the table has more rows than a page can number";
            return Err(Failure::new(Kind::Data, what).with_hint("split it"));
        }
        Ok(Self { table, side, columns, call: options.call, with_file: options.out, terms })
    }

    /// The facts that the run will reveal: `Terms` of `web/index.d.ts`.
    pub fn terms(&self) -> &Value {
        &self.terms
    }

    /// The run over a new connection.
    pub fn run(
        self,
        filters: Filters<'_>,
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<RunResult> {
        let side = match self.side {
            PreparedSide::Count(side) => return count(*side, channel, progress),
            PreparedSide::Rows(side) => side,
        };
        let (matches, told) = match self.call {
            Call::Query => ask(*side, filters, channel, progress)?,
            _ => meet(*side, channel, progress)?,
        };
        let mut result = run_result(&matches, told)?;
        if self.call == Call::Lookup {
            result.told["values"] = values(&matches, &self.table, &self.columns, progress)?;
        }
        if self.with_file {
            result.file = Some(file(&matches, &self.table, &self.columns, progress)?);
        }
        Ok(result)
    }
}

/// The matching rows, with a side of `volery psi` or `volery lookup`.
fn meet(
    side: PreparedTable,
    channel: &mut Channel,
    progress: &mut dyn Progress,
) -> Result<(Matches, Value)> {
    let settings = *side.settings();
    let mut outcome = side.run(channel, progress)?;
    let matches = outcome.matches.take();
    let matches = matches.ok_or_else(|| Failure::new(Kind::Data, "there is no result"))?;
    let told = told(outcome.traffic, outcome_report(&settings, &outcome));
    Ok((matches, told))
}

/// Asks a server.
fn ask(
    side: PreparedTable,
    filters: Filters<'_>,
    channel: &mut Channel,
    progress: &mut dyn Progress,
) -> Result<(Matches, Value)> {
    let kept = filters.kept;
    let kept = kept.map(|bytes| Filter::from_bytes(&bytes, MAX_KEYS));
    let kept = kept.transpose().map_err(|error| Failure {
        other_filter: true,
        ..Failure::new(Kind::Data, error)
            .with_hint("'refresh' fetches the filter again in place of the kept one")
    })?;
    let keep = |filter: &Filter| {
        let mut bytes = Vec::new();
        filter.write(&mut bytes)?;
        (filters.keep)(&bytes);
        Ok::<_, Failure>(())
    };
    let asked = side.ask(kept, MAX_KEYS, |_| Ok(false), keep, channel, progress)?;
    let report = json!({
        "session": hex(asked.session.as_bytes()),
        "protocol": "served",
        "security": "malicious",
        "items": asked.items,
        "peer_items": asked.label.items(),
        "filter_version": hex(asked.label.version()),
        "public_key": hex(asked.label.public()),
        "filter_fetched": asked.fetched,
        "budget_left": asked.left,
        "seconds": { "setup": asked.setup.as_secs_f64(), "online": asked.online.as_secs_f64() },
    });
    let mut told = told(asked.traffic, report);
    told["fetched"] = asked.fetched.into();
    told["left"] = asked.left.into();
    Ok((asked.matches, told))
}

/// The number of common keys.
fn count(
    side: totals::PreparedTable,
    channel: &mut Channel,
    progress: &mut dyn Progress,
) -> Result<RunResult> {
    let outcome = side.run(channel, progress)?;
    let [sender, receiver] = outcome.sizes;
    let report = json!({
        "session": hex(outcome.session.as_bytes()),
        "protocol": outcome.protocol.name(),
        "security": "semi-honest",
        "choice": outcome.choice.as_ref().map(totals::Choice::why),
        "items": receiver,
        "peer_items": sender,
        "parameters": outcome.parameters.describe(),
        "assumption": outcome.parameters.assumption(),
        "seconds": { "setup": outcome.setup.as_secs_f64(), "online": outcome.online.as_secs_f64() },
    });
    let mut told = told(outcome.traffic, report);
    let total = outcome.totals.first();
    told["belowMinimum"] = total.is_some_and(|total| total.below_minimum).into();
    told["count"] = total.and_then(|total| total.count).into();
    Ok(RunResult { rows: Vec::new(), rules: Vec::new(), file: None, told })
}

fn terms(
    table: &Table,
    (rows, counts, key_types): (u64, &Counts, &str),
    distinct: &[(u64, u64)],
    (protocol, security): (ProtocolChoice, Security),
    revealed: Vec<String>,
) -> Value {
    let sum = |of: fn(&RuleCounts) -> u64| counts.rules.iter().map(of).sum::<u64>();
    json!({
        "revealed": revealed,
        "rows": rows,
        "keys": distinct.iter().map(|(keys, _)| keys).collect::<Vec<_>>(),
        "empty": sum(|counts| counts.empty),
        "malformed": sum(|counts| counts.malformed),
        "repeated": sum(|counts| counts.repeated),
        "duplicates": distinct.iter().map(|(_, duplicates)| duplicates).sum::<u64>(),
        "notices": table.notices(),
        "keyTypes": key_types,
        "protocol": protocol.name(),
        "security": security.to_string(),
    })
}

fn told(traffic: Stats, report: Value) -> Value {
    json!({ "bytes": traffic.bytes_sent + traffic.bytes_received, "report": report })
}

fn run_result(matches: &Matches, mut told: Value) -> Result<RunResult> {
    let (rows, rules) = matches.rows_and_rules()?;
    told["count"] = matches.rows().into();
    Ok(RunResult {
        // The number of rows was checked, and that of rules is at most 16.
        rows: rows.into_iter().map(|row| row as u32).collect(),
        rules: rules.into_iter().map(|rule| rule as u8).collect(),
        file: None,
        told,
    })
}

/// The cost of a run and the certainty of its result, under the names of the program's report.
fn outcome_report(settings: &Settings, outcome: &Outcome) -> Value {
    let traffic = outcome.traffic;
    let [sender, receiver] = outcome.sizes.first().copied().unwrap_or_default();
    let parts = (f64::from(outcome.buckets) * outcome.sizes.len() as f64).log2();
    let parameters = outcome.parameters.as_ref();
    json!({
        "session": hex(outcome.session.as_bytes()),
        "protocol": outcome.protocol.name(),
        "security": settings.security.to_string(),
        "choice": outcome.choice.as_ref().map(volery_matching::Choice::why),
        "items": receiver,
        "peer_items": sender,
        "buckets": outcome.buckets,
        "bytes_sent": traffic.bytes_sent,
        "bytes_received": traffic.bytes_received,
        "parameters": parameters.map(volery_matching::Parameters::describe),
        "assumption": parameters.map(|parameters| parameters.assumption()),
        "false_positive_log2": parameters.map(|parameters| parts + parameters.false_positive()),
        "failure_log2": parameters.map(|parameters| parts - parameters.failure_bits()),
        "seconds": {
            "setup": outcome.setup.as_secs_f64(),
            "online": outcome.online.as_secs_f64(),
        },
    })
}

/// The sender's columns for the matching rows.
fn values(
    matches: &Matches,
    table: &Table,
    columns: &Columns,
    progress: &mut dyn Progress,
) -> Result<Value> {
    let own = table.schema().fields().len();
    let (schema, batches, _) = matches.to_batches(table, columns, progress)?;
    let mut all = Vec::new();
    for (place, field) in schema.fields().iter().enumerate().skip(own) {
        let mut cells: Vec<Option<String>> = Vec::new();
        for batch in &batches {
            let texts = column_texts(field, batch.column(place));
            cells.extend(texts.map_err(|error| Failure::new(Kind::Data, error))?);
        }
        all.push(json!({ "name": field.name(), "cells": cells }));
    }
    Ok(all.into())
}

/// The matching rows, as the program writes them.
fn file(
    matches: &Matches,
    table: &Table,
    columns: &Columns,
    progress: &mut dyn Progress,
) -> Result<Vec<u8>> {
    let format = match table.format() {
        Format::Tsv => Format::Tsv,
        _ => Format::Csv,
    };
    let mut bytes = Vec::new();
    let form = (format, Packing::None);
    matches.write(table, columns, &mut bytes, form, progress)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use volery_channel::{Role, run_two_parties};
    use volery_matching::Operation;
    use volery_tables::{Inputs, Reading, Rule};

    use super::*;

    fn options(words: Value) -> Result<Options> {
        Options::parse(words.as_object().unwrap())
    }

    fn prepare(words: Value, csv: &str) -> Result<PreparedRun> {
        PreparedRun::file(&options(words)?, "t.csv", csv.into(), &mut ())
    }

    /// A text that looks like the border of a row is one only where the reader of tables says so.
    #[test]
    fn the_file_has_the_rows_that_matched() {
        let theirs = b"mail\nb@x.org\nd@x.org\n"[..].into();
        let table = Table::from_text("s.csv", theirs, &Inputs::default()).unwrap();
        let rules = vec![Rule::parse("mail:email").unwrap()];
        let reading = Reading { rules, ..Reading::default() };
        let (operation, name) = (Operation::Psi, ProtocolChoice::Auto);
        let settings = Settings::new(operation, Role::Sender, name, None, false, None).unwrap();
        let storage = StorageOptions::default();
        let sender = PreparedTable::read(&table, &reading, &settings, &storage, &mut ()).unwrap();
        let ours =
            "mail,note\na@x.org,5\" pipe\rb@x.org,7\" pipe\r\n\nc@x.org,\"1\n2\"\nd@x.org,x\"y\"z";
        let words = json!({ "key": ["mail:email"], "out": true });
        let prepared = prepare(words, ours).unwrap();
        assert_eq!(prepared.terms()["rows"], 4);
        assert_eq!(prepared.terms()["keys"], json!([4]));
        assert_eq!(prepared.terms()["security"], "malicious");
        let (sent, result) = run_two_parties(
            |channel| sender.run(channel, &mut ()),
            |channel| prepared.run(Filters { kept: None, keep: &mut |_| () }, channel, &mut ()),
        );
        sent.unwrap();
        let result = result.unwrap();
        assert_eq!((&result.rows[..], &result.rules[..]), (&[1, 3][..], &[1, 1][..]));
        assert_eq!(result.told["count"], 2);
        assert_eq!(result.told["report"]["peer_items"], 2);
        let file = "mail,note\nb@x.org,\"7\"\" pipe\"\nd@x.org,\"x\"\"y\"\"z\"\n";
        assert_eq!(String::from_utf8(result.file.unwrap()).unwrap(), file);
    }

    #[test]
    fn wrong_options_are_named() {
        let failed = |words: Value, csv: &str| match prepare(words, csv) {
            Ok(_) => panic!("it is wrong"),
            Err(failure) => (failure.kind, failure.message),
        };
        for (words, option) in [
            (json!({}), "key"),
            (json!({ "key": ["a"], "protocol": "served" }), "protocol"),
            (json!({ "key": ["a"], "both": true, "protocol": "dh" }), "both"),
            (json!({ "key": ["a"], "emptyKeys": "no" }), "emptyKeys"),
            (json!({ "key": ["a"], "delimiter": ";;" }), "delimiter"),
            (json!({ "key": ["a"], "format": "parquet" }), "format"),
            (json!({ "call": "query", "key": ["a"], "or": ["a"] }), "or"),
            (json!({ "key": ["a"], "valueNames": ["a"] }), "valueNames"),
        ] {
            let (kind, message) = failed(words, "a\n1\n");
            assert_eq!(kind, Kind::Usage, "{message}");
            assert!(message.starts_with(&format!("{option}: ")), "{message}");
        }
        let (kind, message) = failed(json!({ "key": ["a"] }), "a,b\n1\n");
        assert_eq!((kind, message.contains("t.csv")), (Kind::Data, true));
    }
}
