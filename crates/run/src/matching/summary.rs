//! The facts of a table that a side has read: what was left out, and the report before the run.

use serde_json::{Map, Value, json};
use volery_matching::{PreparedTable, Summary};
use volery_tables::{Counts, Table};

use super::arguments::MatchingArguments;
use super::text::{name_of, object};
use crate::randomness::hex;
use crate::report::Report;
use crate::reporter::{Reporter, many};

/// The facts of a table, for a result of any kind.
pub(crate) struct TableFacts<'a> {
    rows: u64,
    counts: &'a Counts,
    /// Of each rule: distinct keys and rows whose key an earlier row has, where they are known.
    distinct: Vec<Option<(u64, u64)>>,
    key_types: &'a str,
    digest: [u8; 32],
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
        }
    }
}

impl TableFacts<'_> {
    /// Tells what was left out of the table. `others`: further numbers of rows, and what they are.
    pub(crate) fn tell(&self, table: &Table, others: &[(u64, &str)], reporter: &Reporter) {
        let name = name_of(table);
        for notice in table.notices() {
            reporter.tell(format_args!("{name}: {notice}"));
        }
        if self.rows == 0 {
            reporter.caution(format_args!("{name}: there is no row"));
        }
        let tell = |number: u64, what: String| {
            if number > 0 {
                reporter.tell(format_args!("{name}: {} {what}", many(number, "row")));
            }
        };
        for (rule, (counts, distinct)) in self.counts.rules.iter().zip(&self.distinct).enumerate() {
            let by = match self.distinct.len() {
                1 => String::new(),
                _ => format!(" by key {}", rule + 1),
            };
            tell(counts.empty, format!("left out{by} because a key column is empty or null"));
            tell(counts.malformed, format!("left out{by} because a key column is malformed"));
            let duplicates = distinct.map_or(0, |(_, rows)| rows);
            tell(duplicates, format!("with the same key as an earlier row{by}"));
        }
        for (number, what) in others {
            tell(*number, (*what).to_owned());
        }
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
                "changed": counts.changed,
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
