//! A check of keys: what a run would find in the keys of a table.

use std::fmt::{self, Write as _};
use std::path::PathBuf;

use serde_json::{Value, json};
use volery_matching::totals::{WrongValues, check_values, value_columns};
use volery_matching::{Operation, Options, ResultKind};
use volery_options::{NamedValues, SetByName};
use volery_os::time::Instant;
use volery_tables::{
    Duplicates, EmptyKeys, Finding, Inputs, Lint, Malformed, Normaliser, Reading, RuleCounts,
    RuleLint, Table,
};

use crate::failure::{Failure, Result, Status};
use crate::options::{Common, fill};
use crate::paths;
use crate::progress::PhaseProgress;
use crate::report::Report;
use crate::reporter::{Reporter, many};

volery_options::options! {
    /// The options of a check of keys alone.
    pub struct LintOptions {
        /// End with exit status 1 if a key is empty or malformed
        switch strict ["Running"];
    }
}

/// The keys to check, and the options.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Files or folders.
    pub files: Vec<PathBuf>,
    /// The options of the keys: those that [`has`] names.
    pub keys: Options,
    /// Its own options.
    pub options: LintOptions,
    /// The options of every run.
    pub common: Common,
}

/// Whether a check of keys has this option of a match.
#[must_use]
pub fn has(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "key",
        "or",
        "delimiter",
        "encoding",
        "quote",
        "as_of",
        "plain_files",
        "duplicates",
        "drop_repeated",
        "result",
        "bound",
        "decimals",
    ];
    NAMES.contains(&name)
}

impl Arguments {
    /// The options of a caller for these files.
    pub(crate) fn by_name(files: Vec<PathBuf>, named: &NamedValues) -> Result<Self> {
        let mut all = Self { files, ..Self::default() };
        let (keys, others): (Vec<_>, Vec<_>) =
            named.iter().cloned().partition(|(name, _)| has(name));
        fill(&keys, &mut [&mut all.keys], &["key"])?;
        let mut sets: [&mut dyn SetByName; 3] =
            [&mut all.options, &mut all.common.run, &mut all.common.report];
        fill(&others, &mut sets, &[])?;
        Ok(all)
    }
}

/// Checks the keys, of a table in place of the files where one is given; returns the report.
///
/// # Errors
/// Any error that ends the check; with `strict` an empty or malformed key, too, and with `error`
/// for duplicates a row with the key of an earlier one.
pub fn run(arguments: &Arguments, table: Option<Table>, reporter: &Reporter) -> Result<String> {
    let start = Instant::now();
    let common = &arguments.common;
    for file in &arguments.files {
        paths::check_report("--report", common.report(), Some(file), None)?;
    }
    let place = common.prepare_report(reporter)?;
    let keys = &arguments.keys;
    keys.check(Operation::Psi)?;
    let (mut columns, limits) = value_columns(keys)?;
    let (empty_keys, malformed) = (EmptyKeys::Skip, Malformed::Skip);
    let duplicates = match keys.duplicates {
        Duplicates::Error => Duplicates::Keep,
        other => other,
    };
    let reading = Reading { empty_keys, malformed, duplicates, ..keys.reading()? };
    let inputs = Inputs { paths: arguments.files.clone(), ..keys.inputs() };
    let table = table.map_or_else(|| Table::open(&inputs), Ok)?;
    caution_about_plain_files(reporter, keys.plain_files);
    // The missing column of a total is told before the keys of a large file are read.
    let mut progress = PhaseProgress::new(reporter);
    // Of two columns one is the peer's.
    let is_here = |column: &String| table.schema().index_of(column).is_ok();
    if matches!(keys.result, ResultKind::SumProduct(_)) && columns.iter().any(is_here) {
        columns.retain(is_here);
        columns.dedup();
    }
    let values = check_values(&table, &reading, &columns, limits, &mut progress)?;
    progress.end();
    let bar = reporter.phase("reading the file", table.bytes());
    let lint = common
        .pool()?
        .install(|| Lint::of(&table, &reading, &mut |done| bar.set_position(done)))?;
    bar.finish_and_clear();
    for notice in table.notices() {
        reporter.announce(notice);
    }
    caution_about_encoding(reporter, &table, lint.rules.iter().map(|rule| &rule.counts));

    reporter.output(&(text(&lint, &table) + &text_of_values(&values, &table)))?;
    let mut report = Report::new("lint", reporter);
    report.n = Some(lint.rows);
    let rules = lint.rules.iter().map(|rule| rule_json(rule, &table));
    report.result.insert("rules".to_owned(), rules.collect());
    let values = values.iter().map(|((column, what), (count, rows))| {
        json!({ "column": column, "what": what, "count": count, "rows": places(rows, &table) })
    });
    report.result.insert("values".to_owned(), values.collect());
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    let json = place.write(&report)?;

    let sum = |count: fn(&RuleLint) -> u64| lint.rules.iter().map(count).sum::<u64>();
    let unusable = sum(|rule| rule.counts.empty + rule.counts.malformed);
    let repeats = "--duplicates error: rows with the same key as an earlier row";
    for (is_checked, what, number) in [
        (arguments.options.strict, "--strict: empty and malformed keys", unusable),
        (keys.duplicates == Duplicates::Error, repeats, sum(repetitions)),
    ] {
        if is_checked && number > 0 {
            return Err(Failure::new(Status::Other, format_args!("{what}: {number}")));
        }
    }
    Ok(json)
}

/// Tells of keys that are not UTF-8: where the peer's table is in another encoding, they do not
/// match.
pub(crate) fn caution_about_encoding<'c>(
    reporter: &Reporter,
    table: &Table,
    rules: impl Iterator<Item = &'c RuleCounts>,
) {
    let keys = match rules.map(|counts| counts.not_utf8).sum() {
        0_u64 => return,
        1 => "1 key is".to_owned(),
        keys => format!("{keys} keys are"),
    };
    let remedy = match table.format().is_text() {
        true => "name the encoding of the file, such as --encoding windows-1252",
        false => "write the column as strings, or read it as binary on both sides (COL:binary)",
    };
    let what = "not UTF-8 and will match only the same bytes";
    reporter.caution(format_args!("{keys} {what}: {remedy}"));
}

/// Tells of rows that a reader of the table would not find.
pub(crate) fn caution_about_plain_files(reporter: &Reporter, plain_files: bool) {
    if plain_files {
        reporter.caution(
            "--plain-files: in the folder of a Delta, Iceberg or Hudi table, rows that were deleted \
             or replaced are read as well, and take part in the run",
        );
    }
}

/// The normalisers, for the help.
pub fn normalisers() -> String {
    let mut text =
        "Normalisers, joined by '+' behind the name of a column (email:trim+email):".to_owned();
    for one in Normaliser::all() {
        let _ = write!(text, "\n  {:12} {}", one.name, one.description);
    }
    text
}

fn text_of_values(values: &WrongValues, table: &Table) -> String {
    let lines = values.iter().map(|((column, what), (count, rows))| {
        format!(
            "column {column:?} {what}: {}: {}\n",
            many(*count, "row"),
            rows_in_words(rows, *count, table)
        )
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// Rows with the same key as an earlier row.
fn repetitions(rule: &RuleLint) -> u64 {
    rule.repeated_rows - rule.repeated
}

/// The findings for people.
fn text(lint: &Lint, table: &Table) -> String {
    let mut text = format!("rows: {}\n", lint.rows);
    // Writing into memory does not fail.
    let mut line = |line: fmt::Arguments<'_>| {
        let _ = writeln!(text, "{line}");
    };
    for (i, rule) in lint.rules.iter().enumerate() {
        let names: Vec<_> = rule.columns.iter().map(|column| column.name.as_str()).collect();
        let option = if i == 0 { "--key" } else { "--or" };
        line(format_args!("\n{option} {}: {}", names.join(","), rule.description));
        let counts = &rule.counts;
        line(format_args!("  rows with a key: {}", counts.keys));
        line(format_args!("  distinct keys:   {}", rule.distinct));
        line(format_args!("  duplicates:      {}", repetitions(rule)));
        if counts.repeated > 0 {
            line(format_args!("  left out:        {}", counts.repeated));
        }
        for (count, rows) in &rule.frequent {
            let rows = rows_in_words(rows, *count, table);
            line(format_args!("    one key in {}: {rows}", many(*count, "row")));
        }
        for kind in ["empty", "malformed", "placeholder"] {
            let found = || rule.findings.iter().filter(|finding| finding.kind == kind);
            let count: u64 = found().map(|finding| finding.count).sum();
            line(format_args!("  {:16} {count}", format!("{kind}:")));
            for Finding { column, by, cause, count, rows, .. } in found() {
                let by = by.as_ref().map_or(String::new(), |by| format!(", for {by}"));
                let cause = cause.map_or(String::new(), |cause| format!(", {cause}"));
                let rows = rows_in_words(rows, *count, table);
                line(format_args!(
                    "    column {column:?}{by}{cause}: {}: {rows}",
                    many(*count, "row")
                ));
            }
        }
        if counts.not_utf8 > 0 {
            line(format_args!("  not UTF-8:       {}", counts.not_utf8));
        }
        line(format_args!("  changed:         {}", counts.changed));
        for column in &rule.columns {
            for (normaliser, changed) in &column.changed {
                line(format_args!("    column {:?} by {normaliser}: {changed}", column.name));
            }
        }
    }
    text
}

/// The numbers of rows, with their files where there are several.
fn rows_in_words(rows: &[u64], count: u64, table: &Table) -> String {
    let words = rows.iter().map(|row| match (table.place(*row), table.paths()) {
        ((file, row), [_, _, ..]) => format!("{} {row}", file.display()),
        ((_, row), _) => row.to_string(),
    });
    let more = (count > rows.len() as u64).then(|| "..".to_owned());
    words.chain(more).collect::<Vec<_>>().join(", ")
}

/// The places of rows in the form of the report.
fn places(rows: &[u64], table: &Table) -> Value {
    let places = rows.iter().map(|row| {
        let (file, row) = table.place(*row);
        json!({ "file": file.to_string_lossy(), "row": row })
    });
    places.collect()
}

/// The findings by one rule in the form of the report.
fn rule_json(rule: &RuleLint, table: &Table) -> Value {
    let findings = rule.findings.iter().map(|finding| {
        json!({
            "kind": finding.kind,
            "column": finding.column,
            "by": finding.by,
            "cause": finding.cause,
            "count": finding.count,
            "rows": places(&finding.rows, table),
        })
    });
    let frequent = rule.frequent.iter();
    let frequent =
        frequent.map(|(count, rows)| json!({ "count": count, "rows": places(rows, table) }));
    let columns = rule.columns.iter().map(|column| {
        let normalisers = column.changed.iter();
        let normalisers: Value = normalisers
            .map(|(name, changed)| json!({ "name": name, "changed": changed }))
            .collect();
        json!({ "name": column.name, "type": column.kind.name(), "normalisers": normalisers })
    });
    json!({
        "key": rule.description,
        "columns": columns.collect::<Value>(),
        "keys": rule.counts.keys,
        "distinct": rule.distinct,
        "duplicates": repetitions(rule),
        "empty": rule.counts.empty,
        "malformed": rule.counts.malformed,
        "repeated": rule.counts.repeated,
        "changed": rule.counts.changed,
        "not_utf8": rule.counts.not_utf8,
        "findings": findings.collect::<Value>(),
        "frequent": frequent.collect::<Value>(),
    })
}
