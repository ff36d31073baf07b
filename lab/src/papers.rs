//! The tables and figures of the papers: one runner for all of them. A data file
//! ([`crate::published`]) has the published figures of each, and names the protocols that are
//! measured beside them; [`cell`] knows each protocol by its name.
//!
//! | module | |
//! |---|---|
//! | `vectors` | point functions and vector OLE |
//! | `cots` | correlated OT |
//! | `sets` | set intersection |

mod cots;
mod items;
mod sets;
mod vectors;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use volery_channel::SessionId;
use volery_primitives::prg::Prg;

use crate::measurement::{Difference, Key, Measurement, Sample, Spread, Term};
use crate::page::{Axis, Column, Plot, Scale, Section, Series, Table, Value, short};
use crate::published::{self, Published, Row, Side};
use crate::results::Results;
use crate::runner::Cell;
use crate::{Error, Link, Result, machine};
use cots::Parts;

/// The amount of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The size of the experiments.
    pub(crate) size: Size,
    /// Threads of each party, unless the experiment sets them.
    pub(crate) threads: usize,
    /// The channel between the parties gives up after this long without data.
    pub(crate) timeout: Duration,
}

/// The size of the experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// As in the paper, as far as one machine shared by both parties can.
    Full,
    /// Fewer links and smaller sizes, as a quick check with approximate results.
    Quick,
}

/// A table or figure of a paper.
pub(crate) struct Experiment {
    /// One word: `ferret-table-3`.
    pub(crate) name: &'static str,
    published: LazyLock<Published>,
}

macro_rules! experiments {
    ($($name:literal: $file:literal,)*) => {
        [$(Experiment {
            name: $name,
            published: LazyLock::new(|| {
                Published::read(include_str!(concat!("../published/", $file, ".json")))
            }),
        }),*]
    };
}

/// All of them, in the order of the papers.
pub(crate) static ALL: [Experiment; 13] = experiments! {
    "dvole-figure-3": "dvole/figure3",
    "dvole-figure-4": "dvole/figure4",
    "dvole-figure-5": "dvole/figure5",
    "dvole-arity": "dvole/arity",
    "ferret-table-1": "ferret/table1",
    "ferret-table-3": "ferret/table3",
    "ferret-table-4": "ferret/table4",
    "ferret-table-5": "ferret/table5",
    "kkrt-table-1": "kkrt/table1",
    "kkrt-table-2": "kkrt/table2",
    "kkrt-table-3": "kkrt/table3",
    "kkrt-table-4": "kkrt/table4",
    "kkrt-table-5": "kkrt/table5",
};

/// Only measured by its name: no figure of the paper stands beside it.
const BY_NAME_ONLY: &str = "dvole-arity";

/// The experiments with the given names, each once and in order; a name is that of an experiment or
/// of a paper (`dvole`, `ferret`, `kkrt`). No names: all of the papers.
pub(crate) fn named(names: &[String]) -> std::result::Result<Vec<&'static Experiment>, String> {
    let selects = |name: &str, have: &str| {
        have == name || (have != BY_NAME_ONLY && have.split('-').next() == Some(name))
    };
    for name in names {
        if !ALL.iter().any(|experiment| selects(name, experiment.name)) {
            let all: Vec<_> = ALL.iter().map(|experiment| experiment.name).collect();
            return Err(format!(
                "unknown experiment '{name}'; choose from {}; dvole, ferret and kkrt select all \
                 of a paper",
                all.join(", ")
            ));
        }
    }
    let wanted = |experiment: &&Experiment| match names {
        [] => experiment.name != BY_NAME_ONLY,
        names => names.iter().any(|name| selects(name, experiment.name)),
    };
    Ok(ALL.iter().filter(wanted).collect())
}

/// The measurements of several experiments, each once, from the smallest to the largest.
pub(crate) fn cells(experiments: &[&Experiment], scope: &Scope) -> Result<Vec<Cell>> {
    let mut all: Vec<Cell> = Vec::new();
    for table in experiments.iter().flat_map(|experiment| &experiment.published.tables) {
        let lines = lines(table, scope);
        for key in lines.iter().flat_map(|line| line.measured(scope)) {
            if all.iter().any(|have| have.key == key) {
                continue;
            }
            let cell = cell(&key, scope)?;
            if cell.forecast.on(&key.link) <= longest(table, scope) {
                all.push(cell);
            }
        }
    }
    all.sort_by_key(|cell| cell.key.n);
    Ok(all)
}

/// The cell of a measurement, by its key.
pub(crate) fn cell(key: &Key, scope: &Scope) -> Result<Cell> {
    if let Some(cell) = sets::cell(key, scope) {
        return Ok(cell);
    }
    let cell = match cots::cell(key, scope)? {
        None => vectors::cell(key, scope)?,
        cell => cell,
    };
    cell.ok_or_else(|| failed(format_args!("there is no protocol '{}'", key.protocol)))
}

/// The predicted seconds above which a cell of a table is left out.
fn longest(table: &published::Table, scope: &Scope) -> f64 {
    let place = usize::from(scope.size == Size::Quick);
    table.longest.map_or(f64::INFINITY, |longest| longest[place])
}

/// A row at a column.
struct Line<'a> {
    table: &'a published::Table,
    row: &'a Row,
    column: &'a str,
    published: Option<f64>,
}

/// The lines of a table within the scope.
fn lines<'a>(table: &'a published::Table, scope: &Scope) -> Vec<Line<'a>> {
    let quick = table.quick.as_ref().filter(|_| scope.size == Size::Quick);
    let mut lines = Vec::new();
    for row in &table.rows {
        for (place, column) in table.columns.iter().enumerate() {
            if quick.is_none_or(|quick| quick.contains(column)) {
                let published = row.values.get(place).copied().flatten();
                lines.push(Line { table, row, column, published });
            }
        }
    }
    lines
}

/// A link of a data file: one without a round-trip time has 0.2 ms.
fn link(text: &str) -> Link {
    let whole = match text {
        "loopback" | "tls" => text.to_owned(),
        text if text.contains(',') => text.to_owned(),
        rate => format!("{rate},0.2ms"),
    };
    whole.parse().expect("the data files are tested")
}

/// A number of outputs of a data file: `4096` or `2^12`.
fn outputs(text: &str) -> u64 {
    match text.strip_prefix("2^") {
        Some(log) => 1 << log.parse::<u32>().expect("the data files are tested"),
        None => text.parse().expect("the data files are tested"),
    }
}

impl Line<'_> {
    fn quantity(&self, side: &Side) -> String {
        format!("{}{}", self.row.quantity, side.suffix)
    }

    /// The keys of the measurements of one of our columns, one for each link that is taken
    /// together; none without a protocol.
    fn keys(&self, side: usize, scope: &Scope) -> Vec<Key> {
        let table = self.table;
        let Some(protocol) = self.row.protocols.get(side).cloned().flatten() else {
            return Vec::new();
        };
        let fixed = table.link.as_deref().unwrap_or("loopback");
        let mut key = Key { protocol, n: table.n, link: link(fixed), threads: scope.threads };
        match table.pivot.as_deref() {
            Some("link") => key.link = link(self.column),
            Some("threads") => key.threads = self.column.parse().expect("a number of threads"),
            Some(_) => key.n = outputs(self.column),
            None => {
                let of = |text: &String| Key { link: link(text), ..key.clone() };
                return table.links.iter().map(of).collect();
            }
        }
        vec![key]
    }

    /// The keys of what is to be measured for it.
    fn measured(&self, scope: &Scope) -> Vec<Key> {
        let mut keys = Vec::new();
        for (place, side) in self.table.sides.iter().enumerate() {
            // Without a pivot, the measurements are those of another table.
            let is_measured =
                self.table.pivot.is_some() && MEASURED.contains(&self.quantity(side).as_str());
            keys.extend(self.keys(place, scope).into_iter().filter(|key| {
                is_measured
                    && side.most.is_none_or(|most| key.n <= most)
                    && (key.threads == scope.threads || key.threads <= machine::cores().max(2))
            }));
        }
        keys
    }

    /// The value of one of our columns.
    fn value(&self, place: usize, scope: &Scope, results: &Results) -> Result<Value> {
        let side = &self.table.sides[place];
        let (keys, quantity) = (self.keys(place, scope), self.quantity(side));
        let Some(key) = keys.first() else {
            return Ok(Value::None);
        };
        let published = self.published.filter(|_| !self.row.about);
        let items = key.n as usize;
        if let Some(text) = sets::choice(&quantity, items) {
            return Ok(Value::text(text));
        }
        let computed = sets::Protocol::named(&key.protocol)
            .and_then(|protocol| protocol.figure(&quantity, items));
        if let (Some(value), false) = (computed, MEASURED.contains(&quantity.as_str())) {
            return Ok(Value::computed(value, published.filter(|_| value != 0.0)));
        }
        if let Some(value) = compared(&quantity, key, published, results) {
            return Ok(value);
        }
        let found: Vec<_> = keys.iter().filter_map(|key| results.find(key)).collect();
        let (mut terms, mut fewest) = (Vec::new(), u64::MAX);
        for measurement in &found {
            let set = cots::checked_set(&measurement.key, measurement.plan.as_deref())?;
            for sample in &measurement.samples {
                let parts = Parts::of(sample, set);
                fewest = fewest.min(parts.map_or(u64::MAX, |parts| parts.cots));
                terms.extend(term(&quantity, sample, parts));
            }
        }
        let skipped = found.iter().find_map(|measurement| measurement.skipped_seconds);
        Ok(match (Difference::of(&terms), skipped) {
            (None, Some(seconds)) => Value::Skipped { seconds },
            (None, None) if found.is_empty() && self.measured(scope).contains(key) => {
                let seconds = cell(key, scope)?.forecast.on(&key.link);
                let left_out = seconds > longest(self.table, scope);
                if left_out { Value::Skipped { seconds } } else { Value::None }
            }
            (told, _) => {
                let mut value = Value::told(told, published);
                if let Value::Measured { extrapolated, .. } = &mut value {
                    let scaled = ["nanoseconds", "ten-million"].contains(&quantity.as_str());
                    *extrapolated = scaled && fewest < key.n;
                }
                value
            }
        })
    }
}

/// The quantities that need a measurement of their own.
const MEASURED: [&str; 15] = [
    "milliseconds",
    "seconds",
    "bytes",
    "messages",
    "nanoseconds",
    "ten-million",
    "bits",
    "setup",
    "setup-bytes",
    "trees",
    "lpn",
    "extra",
    "offline",
    "online",
    "traffic",
];

/// A quantity of a run; `None` if the run has none of that name.
fn term(quantity: &str, sample: &Sample, parts: Option<Parts>) -> Option<Term> {
    let phase = |name| sample.phase(name);
    let nanoseconds = |parts: Parts| 1e9 * parts.seconds / parts.cots as f64;
    let value = match quantity {
        "milliseconds" => 1e3 * sample.seconds(),
        "seconds" => sample.seconds(),
        "bytes" => sample.bytes() as f64,
        "messages" => sample.messages() as f64,
        "nanoseconds" => nanoseconds(parts?),
        // Milliseconds of ten million.
        "ten-million" => 10.0 * nanoseconds(parts?),
        "bits" => parts?.bytes as f64 * 8.0 / parts?.cots as f64,
        "setup" => return Some(parts?.setup_seconds.times(1e3)),
        "setup-bytes" => parts?.setup_bytes as f64 / 1e6,
        "trees" => return Some(parts?.trees_each?.times(1e9)),
        "lpn" => 1e9 * parts?.lpn_each?,
        "offline" => 1e3 * phase(sets::OFFLINE)?.seconds,
        "online" => 1e3 * phase(sets::ONLINE)?.seconds,
        "traffic" => phase(sets::ONLINE)?.bytes as f64 / sets::MEBIBYTE,
        _ => return None,
    };
    Some(Term::measured(value))
}

/// A value that compares two measurements; `None` if the quantity is none of these.
fn compared(quantity: &str, key: &Key, published: Option<f64>, results: &Results) -> Option<Value> {
    let ring = key.protocol.rsplit('-').next().unwrap_or_default();
    let spread = |key: &Key, quantity: &str| {
        let found = results.find(key)?;
        found.spread(|sample| Some(term(quantity, sample, Parts::of(sample, None))?.whole))
    };
    let ratio = |over: &Key, under: &Key, quantity| {
        let ratio = spread(over, quantity)?.median / spread(under, quantity)?.median;
        Some(Value::computed(ratio, published))
    };
    let gilboa = |n| Key { protocol: format!("gilboa-{ring}"), n, ..key.clone() };
    let value = match quantity {
        "speed-up" => ratio(&Key { threads: 1, ..key.clone() }, key, "seconds"),
        "gilboa-time" => ratio(&gilboa(key.n), key, "seconds"),
        "gilboa-bytes" => ratio(&gilboa(key.n), key, "bytes"),
        "crossing" | "crossing-bytes" => {
            let of = if quantity == "crossing" { "seconds" } else { "bytes" };
            let mut points: Vec<_> = results
                .measurements
                .iter()
                .map(|one| &one.key)
                .filter(|have| **have == Key { n: have.n, ..key.clone() })
                .filter_map(|have| {
                    let other = spread(&gilboa(have.n), of)?.median;
                    Some((have.n as f64, other / spread(have, of)?.median))
                })
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            // Only the time has a published one.
            crossing(&points, published.filter(|_| of == "seconds"))
        }
        "extra" => {
            let less = Key { protocol: key.protocol.replace("uniform", "regular"), ..key.clone() };
            extra(results.find(key)?, results.find(&less)?, published)
        }
        _ => return None,
    };
    Some(value.unwrap_or(Value::None))
}

/// The length from which on one line is below another: the lead is the other's value over ours at
/// each length, in ascending order. A lead that is lost again does not count.
fn crossing(leads: &[(f64, f64)], published: Option<f64>) -> Option<Value> {
    let (first, last) = (leads.first()?, leads.last()?);
    if last.1 <= 1.0 {
        return Some(Value::text(format!("above {}", last.0)));
    }
    let Some(behind) = leads.iter().rposition(|(_, lead)| *lead <= 1.0) else {
        return Some(Value::text(format!("below {}", first.0)));
    };
    // Straight lines between logarithms.
    let [left, right] = [leads[behind], leads[behind + 1]].map(|(n, lead)| (n.ln(), lead.ln()));
    let n = (left.0 - left.1 / (right.1 - left.1) * (right.0 - left.0)).exp();
    // Two digits.
    let unit = 10_f64.powf(n.log10().floor() - 1.0);
    Some(Value::computed((n / unit).round() * unit, published))
}

/// The time of a run beyond that of another protocol, run by run. The difference may be less than
/// zero; one that is lost in the spread has no ratio.
fn extra(more: &Measurement, less: &Measurement, published: Option<f64>) -> Option<Value> {
    let each = |sample: &Sample| Some(term("nanoseconds", sample, Parts::of(sample, None))?.whole);
    let pairs = more.samples.iter().zip(&less.samples);
    let spread = Spread::of(pairs.filter_map(|(a, b)| Some(each(a)? - each(b)?)).collect())?;
    Some(Value::measured(Some(spread), published.filter(|_| spread.least > 0.0)))
}

impl Experiment {
    /// One line.
    pub(crate) fn about(&self) -> String {
        let Published { what, short, caption, .. } = &*self.published;
        format!("{what} of {short}: {caption}")
    }

    /// The results beside the published figures. Missing measurements are shown as missing.
    pub(crate) fn section(&self, scope: &Scope, results: &Results) -> Result<Section> {
        let published = &*self.published;
        let (mut tables, mut plots, mut findings) = (Vec::new(), Vec::new(), Vec::new());
        for spec in &published.tables {
            let filled = Filled::of(spec, scope, results)?;
            if !filled.lines.is_empty() {
                findings.extend(filled.findings());
                plots.extend(filled.plots());
                tables.push(filled.table());
            }
        }
        tables.extend(self.parameters(scope, results)?);
        findings.extend(published.findings.iter().cloned());
        Ok(Section {
            name: self.name.to_owned(),
            title: self.about(),
            source: format!(
                "{}, {}, section {}",
                published.paper, published.what, published.section
            ),
            note: published.note.clone(),
            there: published.there.clone(),
            ours: published.ours.clone(),
            differences: published.differences.clone(),
            findings,
            tables,
            plots,
        })
    }

    /// The parameters of each protocol: those of the measurements or, where there are none yet, the
    /// planned ones. `None` if no protocol has any.
    fn parameters(&self, scope: &Scope, results: &Results) -> Result<Option<Table>> {
        let mut columns: BTreeMap<(String, String, u32), Vec<String>> = BTreeMap::new();
        for table in &self.published.tables {
            for line in lines(table, scope) {
                for key in (0..table.sides.len()).flat_map(|side| line.keys(side, scope)) {
                    let plan = match results.find(&key) {
                        Some(have) => have.plan.clone().zip(have.security_bits),
                        // Where there is a length.
                        None if key.n > 0 => {
                            let cell = cell(&key, scope)?;
                            cell.plan.zip(cell.security_bits)
                        }
                        None => None,
                    };
                    if let Some((plan, bits)) = plan {
                        let entry = columns.entry((key.protocol, plan, bits)).or_default();
                        let column = line.column.to_owned();
                        if table.pivot.is_some() && !entry.contains(&column) {
                            entry.push(column);
                        }
                    }
                }
            }
        }
        let row = |((protocol, plan, bits), columns): ((String, String, u32), Vec<String>)| {
            vec![
                Value::text(protocol),
                Value::text(plan),
                Value::computed(f64::from(bits), None),
                Value::text(columns.join(" ")),
            ]
        };
        Ok((!columns.is_empty()).then(|| Table {
            caption: "Parameters".to_owned(),
            columns: vec![
                Column::words("measurement"),
                Column::words("parameters"),
                Column::numbers("claimed", "bits"),
                Column::words("at"),
            ],
            rows: columns.into_iter().map(row).collect(),
            notes: Vec::new(),
        }))
    }
}

/// A table with our values.
struct Filled<'a> {
    spec: &'a published::Table,
    lines: Vec<(Line<'a>, Vec<Value>)>,
    /// Whether anything is published.
    beside: bool,
}

impl<'a> Filled<'a> {
    /// Lines without a published value and without a measurement are left out.
    fn of(spec: &'a published::Table, scope: &Scope, results: &Results) -> Result<Self> {
        let mut filled = Vec::new();
        for line in lines(spec, scope) {
            let sides = 0..spec.sides.len();
            let values = sides.map(|side| line.value(side, scope, results));
            let values = values.collect::<Result<Vec<_>>>()?;
            if line.published.is_some() || values.iter().any(|value| *value != Value::None) {
                filled.push((line, values));
            }
        }
        let beside = filled.iter().any(|(line, _)| line.published.is_some());
        Ok(Self { spec, lines: filled, beside })
    }

    fn ratio(&self, values: &[Value], (_, over, under): &(String, usize, usize)) -> Option<f64> {
        Some(values[*over].number()? / values[*under].number()?)
    }

    fn table(&self) -> Table {
        let spec = self.spec;
        let mut columns: Vec<_> = spec.labels.iter().map(|label| Column::words(label)).collect();
        match spec.pivot.as_deref() {
            Some("link") => columns.push(Column::words("link")),
            Some(pivot) => columns.push(Column::numbers(pivot, "")),
            None => {}
        }
        let headings = spec.sides.iter().map(|side| side.heading.as_str());
        for heading in self.beside.then_some("published").into_iter().chain(headings) {
            columns.push(Column::numbers(heading, &spec.unit));
        }
        columns.extend(spec.ratios.iter().map(|(heading, ..)| Column::numbers(heading, "")));
        let row = |(line, values): &(Line<'_>, Vec<Value>)| {
            let mut row: Vec<_> = line.row.labels.iter().map(Value::text).collect();
            if spec.pivot.is_some() {
                row.push(Value::text(line.column));
            }
            if self.beside {
                row.push(match line.published {
                    Some(value) if line.row.about => Value::text(format!("about {value}")),
                    published => Value::published(published),
                });
            }
            row.extend(values.iter().cloned());
            for ratio in &spec.ratios {
                let ratio = self.ratio(values, ratio);
                row.push(ratio.map_or(Value::None, |ratio| Value::computed(ratio, None)));
            }
            row
        };
        Table {
            caption: spec.caption.clone(),
            columns,
            rows: self.lines.iter().map(row).collect(),
            notes: spec.notes.clone(),
        }
    }

    /// A sentence for each of our columns that is compared with published values, and for each
    /// ratio.
    fn findings(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut tell = |heading: &str, values: Vec<f64>, of: &str| {
            if let Some(Spread { median, least, most, count }) = Spread::of(values) {
                let [median, least, most] = [median, least, most].map(short);
                let caption = &self.spec.caption;
                let lines = if count == 1 { "line" } else { "lines" };
                sentences.push(format!(
                    "{caption}: {heading} {least} to {most}{of}, median {median} ({count} {lines})."
                ));
            }
        };
        for (place, side) in self.spec.sides.iter().enumerate() {
            let ratios = self.lines.iter().filter_map(|(_, values)| values[place].ratio());
            tell(&side.heading, ratios.collect(), " of the published value");
        }
        for ratio in &self.spec.ratios {
            let ratios = self.lines.iter().filter_map(|(_, values)| self.ratio(values, ratio));
            tell(&ratio.0, ratios.collect(), "");
        }
        sentences
    }

    /// The plots of the table: one, or one for each first label.
    fn plots(&self) -> Vec<Plot> {
        let scale = match self.spec.plot.as_deref() {
            None => return Vec::new(),
            Some("log2") => Scale::Log2,
            Some(_) => Scale::Log,
        };
        let mut facets: Vec<&str> = Vec::new();
        for row in &self.spec.rows {
            let facet = row.labels.first().filter(|_| self.spec.facet);
            let facet = facet.map_or("", String::as_str);
            if !facets.contains(&facet) {
                facets.push(facet);
            }
        }
        let plot = |facet: &&str| {
            let axis = |label: &str, unit: &str, scale| Axis {
                label: label.to_owned(),
                unit: unit.to_owned(),
                scale,
            };
            let pivot = self.spec.pivot.as_deref().unwrap_or_default();
            let label = if pivot == "link" { "bandwidth, Mbit/s" } else { pivot };
            let rows = self.spec.rows.iter();
            let of_facet = rows.filter(|row| {
                !self.spec.facet || row.labels.first().is_some_and(|label| label == facet)
            });
            let series: Vec<_> = of_facet.flat_map(|row| self.series(row)).collect();
            (!series.is_empty()).then(|| Plot {
                title: [&self.spec.caption, *facet].map(str::to_owned).join(" ").trim().to_owned(),
                x: axis(label, "", scale),
                y: axis("", &self.spec.unit, Scale::Log),
                series,
            })
        };
        facets.iter().filter_map(plot).collect()
    }

    /// The lines of a plot of a row: published, then ours.
    fn series(&self, row: &Row) -> Vec<Series> {
        let x = |column: &str| match self.spec.pivot.as_deref() {
            Some("link") => match link(column) {
                Link::Shaped { rate, .. } => rate as f64 / 1e6,
                _ => 1e5,
            },
            _ => outputs(column) as f64,
        };
        let of_row = || self.lines.iter().filter(|(line, _)| std::ptr::eq(line.row, row));
        let skipped = usize::from(self.spec.facet);
        let labels = row.labels.iter().skip(skipped).map(String::as_str);
        let name = |last: &str| labels.clone().chain([last]).collect::<Vec<_>>().join(", ");
        let printed = of_row()
            .filter(|(line, _)| !line.row.about)
            .filter_map(|(line, _)| Some((x(line.column), line.published?)));
        let mut all = vec![Series::published(&name("published"), printed)];
        for (place, side) in self.spec.sides.iter().enumerate() {
            let points = of_row().map(|(line, values)| (x(line.column), values[place].plotted()));
            all.push(Series::measured(&name(&side.heading), points));
        }
        all.retain(|series| !series.points.is_empty());
        all
    }
}

/// Randomness from the system, for one party of a run.
fn fresh_prg() -> Result<Prg> {
    Prg::from_os().map_err(|error| {
        failed(format_args!("the operating system returned no random numbers: {error}"))
    })
}

/// A fresh session id for each run.
fn fresh_session() -> Result<SessionId> {
    let mut session = [0; 32];
    fresh_prg()?.fill_bytes(&mut session);
    Ok(SessionId::from_bytes(session))
}

/// A protocol failed or computed a wrong result.
fn failed(error: impl std::fmt::Display) -> Error {
    Error::protocol(error)
}

#[cfg(test)]
mod tests;
