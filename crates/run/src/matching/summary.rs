//! The texts about a table that one key was read of: for totals, and for shares.

use serde_json::{Value, json};
use volery_channel::Role;
use volery_matching::Summary;
use volery_tables::Table;

use super::arguments::MatchingArguments;
use super::text::{name_of, object};
use crate::randomness::hex;
use crate::report::Report;
use crate::reporter::Reporter;
use crate::reporter::many;

/// Tells what was left out of a table. `others`: further numbers of rows, and what they are.
pub(crate) fn tell_counts(
    reporter: &Reporter,
    table: &Table,
    summary: &Summary,
    others: &[(u64, &str)],
) {
    let name = name_of(table);
    for notice in table.notices() {
        reporter.tell(format_args!("{name}: {notice}"));
    }
    if summary.rows == 0 {
        reporter.caution(format_args!("{name}: there is no row"));
    }
    let counts = summary.counts.rules.first().copied().unwrap_or_default();
    let numbers = [
        (counts.empty, "left out because a key column is empty or null"),
        (counts.malformed, "left out because a key column is malformed"),
        (summary.duplicates, "with the same key as an earlier row"),
    ];
    for (number, what) in numbers.iter().chain(others).filter(|(rows, _)| *rows > 0) {
        reporter.tell(format_args!("{name}: {} {what}", many(*number, "row")));
    }
}

/// The report as far as it is known before the run, with the settings of the result.
pub(crate) fn report(
    arguments: &MatchingArguments,
    role: Role,
    (table, summary): (&Table, &Summary),
    settings: Value,
    revealed: &[String],
    reporter: &Reporter,
) -> Report {
    let counts = summary.counts.rules.first().copied().unwrap_or_default();
    let rule = json!({
        "rule": 1,
        "columns": arguments.key.join(","),
        "rows_with_key": counts.keys,
        "empty": counts.empty,
        "malformed": counts.malformed,
        "changed": counts.changed,
        "keys": summary.keys,
        "duplicates": summary.duplicates,
    });
    let files: Vec<_> = table.paths().iter().map(|path| path.display().to_string()).collect();
    let mut report = Report {
        role: Some(role.name().to_owned()),
        n: Some(summary.keys),
        security: Some("semi-honest".to_owned()),
        ..Report::new("psi", reporter)
    };
    report.result = object(settings);
    report.result.extend(object(json!({
        "key_types": summary.key_description,
        "rows": summary.rows,
        "duplicates": summary.duplicates,
        "empty": counts.empty,
        "malformed": counts.malformed,
        "rules": [rule],
        "reveals": revealed,
        "input_digest": hex(&summary.digest),
        "inputs": files,
    })));
    report
}
