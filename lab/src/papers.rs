//! The tables and figures of the papers: one runner for all of them. A data file
//! ([`crate::published`]) has the published figures of each, and names the protocols that are
//! measured beside them; [`cell`] knows each protocol by its name. `lab/tables.py` puts the results
//! beside the published figures.
//!
//! | module | |
//! |---|---|
//! | `vectors` | point functions and vector OLE |
//! | `cots` | correlated OT |
//! | `sets` | set intersection |

mod cots;
mod sets;
mod vectors;

use std::sync::LazyLock;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use volery_channel::SessionId;
use volery_pcg::{Kind, Plan, PlanOptions, Protocol};
use volery_primitives::prg::Prg;

use crate::measurement::Key;
use crate::published::{self, Published, Row, Side};
use crate::runner::Cell;
use crate::{Error, Link, Result, machine};

/// The amount of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
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
pub(crate) static ALL: [Experiment; 12] = experiments! {
    "dvole-figure-3": "dvole/figure3",
    "dvole-figure-4": "dvole/figure4",
    "dvole-figure-5": "dvole/figure5",
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

/// The experiments with the given names, each once and in order; a name is that of an experiment or
/// of a paper (`dvole`, `ferret`, `kkrt`). No names: all of the papers.
pub(crate) fn named(names: &[String]) -> std::result::Result<Vec<&'static Experiment>, String> {
    let selects = |name: &str, have: &str| have == name || have.split('-').next() == Some(name);
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
    let wanted = |experiment: &&Experiment| {
        names.is_empty() || names.iter().any(|name| selects(name, experiment.name))
    };
    Ok(ALL.iter().filter(wanted).collect())
}

/// The measurements of several experiments, each once, from the smallest to the largest.
pub(crate) fn cells(experiments: &[&Experiment], scope: &Scope) -> Result<Vec<Cell>> {
    let mut all: Vec<Cell> = Vec::new();
    for table in experiments.iter().flat_map(|experiment| &experiment.published.tables) {
        for line in lines(table, scope) {
            for key in line.measured(scope) {
                if all.iter().any(|have| have.key == key) {
                    continue;
                }
                all.push(cell(&key, scope)?);
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

/// A row at a column.
struct Line<'a> {
    table: &'a published::Table,
    row: &'a Row,
    row_number: usize,
    column: &'a str,
}

/// The lines of a table within the scope.
fn lines<'a>(table: &'a published::Table, scope: &Scope) -> Vec<Line<'a>> {
    let quick = table.quick.as_ref().filter(|_| scope.size == Size::Quick);
    let mut lines = Vec::new();
    for (row_number, row) in table.rows.iter().enumerate() {
        for column in &table.columns {
            if quick.is_none_or(|quick| quick.contains(column)) {
                lines.push(Line { table, row, row_number, column });
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
            keys.extend(self.keys(place, scope).into_iter().filter(|key| {
                // Without a pivot, the measurements are those of another table.
                self.table.pivot.is_some()
                    && sets::figure(key, &self.quantity(side)).is_none()
                    && (key.threads == scope.threads || key.threads <= machine::cores().max(2))
            }));
        }
        keys
    }

    /// The content of one of our columns.
    fn place(&self, side: usize, scope: &Scope, planned: &mut Vec<Planned>) -> Result<Place> {
        let (quantity, keys) = (self.quantity(&self.table.sides[side]), self.keys(side, scope));
        let computed = keys.first().and_then(|key| sets::figure(key, &quantity));
        let numbers = keys.iter().map(|key| Planned::number(key, scope, planned));
        Ok(Place { quantity, measurements: numbers.collect::<Result<_>>()?, computed })
    }
}

/// The content of one of our columns in a line.
#[derive(Serialize)]
struct Place {
    quantity: String,
    /// The numbers of the planned measurements that it is taken from.
    measurements: Vec<usize>,
    /// A figure that follows from the parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    computed: Option<f64>,
}

/// A measurement and its parameters, whether it has been made or not.
#[derive(Serialize)]
pub(crate) struct Planned {
    key: Key,
    plan: Option<String>,
    security_bits: Option<u32>,
    /// The outputs of a checked main round, those that it keeps included.
    round: Option<usize>,
}

impl Planned {
    /// The place of a measurement in the list, to which it is added if it is not there.
    fn number(key: &Key, scope: &Scope, planned: &mut Vec<Self>) -> Result<usize> {
        if let Some(place) = planned.iter().position(|have| have.key == *key) {
            return Ok(place);
        }
        let (Cell { key, plan, security_bits, .. }, round) =
            (cell(key, scope)?, cots::checked_round(key)?);
        planned.push(Self { key, plan, security_bits, round });
        Ok(planned.len() - 1)
    }
}

impl Experiment {
    /// One line.
    pub(crate) fn about(&self) -> String {
        let Published { what, short, caption, .. } = &*self.published;
        format!("{what} of {short}: {caption}")
    }

    /// The lines of its tables: the row of the data file, the column, and what stands in our
    /// columns. `lab/tables.py` makes the tables of them and of the measurements.
    pub(crate) fn lines(&self, scope: &Scope, planned: &mut Vec<Planned>) -> Result<Value> {
        let mut line = |line: &Line<'_>| {
            let sides = (0..line.table.sides.len()).map(|side| line.place(side, scope, planned));
            let sides = sides.collect::<Result<Vec<_>>>()?;
            Ok(json!({"row": line.row_number, "column": line.column, "sides": sides}))
        };
        let of = |table| lines(table, scope).iter().map(&mut line).collect::<Result<Vec<_>>>();
        self.published.tables.iter().map(of).collect::<Result<Vec<_>>>().map(Value::from)
    }
}

/// The plan of this program for a link: of primal LPN, with one instance, as the shipped results
/// were measured.
fn own_plan(kind: Kind, link: &Link, options: PlanOptions<'_>) -> Result<Plan> {
    let (protocol, instances) = (Protocol::Primal, Some(1));
    let options = PlanOptions { link: link.for_plan(), protocol, instances, ..options };
    Plan::new(kind, &options).map_err(failed)
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
