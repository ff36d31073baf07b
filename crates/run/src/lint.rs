//! A check of keys: what a run would find in the keys of a table.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};
use volery_matching::Options;
use volery_options::{NamedValues, SetByName};
use volery_tables::{Inputs, Lint, NAMED_ROWS, Normaliser, Refusal, RuleLint, Table};

use crate::failure::{Failure, Status};
use crate::memory::peak_memory;
use crate::options::{Common, fill};
use crate::paths;
use crate::report::Report;
use crate::reporter::Reporter;

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
    ["key", "or", "delimiter", "encoding"].contains(&name)
}

impl Arguments {
    /// The options of a caller for these files.
    ///
    /// # Errors
    /// The option at fault, or one that is missing.
    pub(crate) fn by_name(files: Vec<PathBuf>, named: &NamedValues) -> Result<Self, Failure> {
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
/// Any error that ends the check; with `strict`, so is an empty or malformed key.
pub fn run(
    arguments: &Arguments,
    table: Option<Table>,
    reporter: &Reporter,
) -> Result<String, Failure> {
    let start = Instant::now();
    let common = &arguments.common;
    for file in &arguments.files {
        paths::check_report("--report", common.report(), Some(file), None)?;
    }
    let place = common.prepare_report(reporter)?;
    let rules = arguments.keys.rules()?;
    let inputs = Inputs { paths: arguments.files.clone(), ..arguments.keys.inputs() };
    let table = table.map_or_else(|| Table::open(&inputs), Ok)?;
    let bar = reporter.phase("reading the file", table.bytes());
    let lint =
        common.pool()?.install(|| Lint::of(&table, &rules, &mut |done| bar.set_position(done)))?;
    bar.finish_and_clear();
    for notice in table.notices() {
        reporter.announce(notice);
    }

    reporter.output(&text(&lint, &table))?;
    let mut report = Report::new("lint", reporter);
    report.n = Some(lint.rows);
    let rules = lint.rules.iter().map(|rule| rule_json(rule, &table));
    report.result.insert("rules".to_owned(), rules.collect());
    report.seconds.total = Some(start.elapsed().as_secs_f64());
    report.peak_rss_bytes = peak_memory();
    let json = place.write(&report)?;

    let unusable = |rule: &RuleLint| rule.counts.empty + rule.counts.malformed;
    let unusable: u64 = lint.rules.iter().map(unusable).sum();
    if arguments.options.strict && unusable > 0 {
        return Err(Failure::new(
            Status::Other,
            format_args!("--strict: empty and malformed keys: {unusable}"),
        ));
    }
    Ok(json)
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

/// The findings for people.
fn text(lint: &Lint, table: &Table) -> String {
    let mut text = format!("rows: {}\n", lint.rows);
    for (i, rule) in lint.rules.iter().enumerate() {
        let names: Vec<_> = rule.columns.iter().map(|column| column.name.as_str()).collect();
        let option = if i == 0 { "--key" } else { "--or" };
        // Writing into memory does not fail.
        let _ = writeln!(text, "\n{option} {}: {}", names.join(","), rule.description);
        let counts = &rule.counts;
        let _ = writeln!(text, "  rows with a key: {}", counts.keys);
        let _ = writeln!(text, "  distinct keys:  {}", rule.distinct);
        let _ = match rule.repeated {
            0 => writeln!(text, "  duplicate keys:  0"),
            repeated => writeln!(
                text,
                "  duplicate keys:  {repeated}, in {} rows; the most frequent one in {}",
                rule.repeated_rows, rule.most_rows
            ),
        };
        for (what, count, first) in [
            ("empty:          ", counts.empty, &rule.first_empty),
            ("malformed:      ", counts.malformed, &rule.first_malformed),
        ] {
            let _ = writeln!(text, "  {what} {count}");
            for refusal in first {
                let _ = writeln!(text, "    {}", refusal_line(refusal, table));
            }
            if count > NAMED_ROWS as u64 {
                let _ = writeln!(text, "    ..");
            }
        }
        let _ = writeln!(text, "  changed:         {}", counts.changed);
        for column in &rule.columns {
            for (normaliser, changed) in &column.changed {
                let _ = writeln!(text, "    column {:?} by {normaliser}: {changed}", column.name);
            }
        }
    }
    text
}

fn refusal_line(refusal: &Refusal, table: &Table) -> String {
    let (file, row) = table.place(refusal.row);
    let mut line = match table.paths() {
        [_, _, ..] => format!("{}: row {row}", file.display()),
        _ => format!("row {row}"),
    };
    let _ = write!(line, ", column {:?}", refusal.column);
    if let Some(by) = &refusal.by {
        let _ = write!(line, ", for {by}");
    }
    line
}

/// The findings by one rule in the form of the report.
fn rule_json(rule: &RuleLint, table: &Table) -> Value {
    let refusals = |refusals: &[Refusal]| -> Value {
        let refusals = refusals.iter().map(|refusal| {
            let (file, row) = table.place(refusal.row);
            let file = file.to_string_lossy();
            json!({ "file": file, "row": row, "column": refusal.column, "by": refusal.by })
        });
        refusals.collect()
    };
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
        "duplicate_keys": rule.repeated,
        "duplicate_rows": rule.repeated_rows,
        "most_rows_of_a_key": rule.most_rows,
        "empty": rule.counts.empty,
        "malformed": rule.counts.malformed,
        "changed": rule.counts.changed,
        "first_empty": refusals(&rule.first_empty),
        "first_malformed": refusals(&rule.first_malformed),
    })
}
