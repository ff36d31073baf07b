//! The published figures and ours, side by side.

use crate::measurement::{Measurement, Sample, Spread};
use crate::page::{Column, Table, Value};
use crate::results::Results;
use crate::runner::Cell;

use super::candidate::Candidate;
use super::measure::{self, OFFLINE, ONLINE};
use super::published::{Published, Quantity, Row, Setting, sizes};
use crate::experiment::Scope;

const MEBIBYTE: f64 = (1 << 20) as f64;

/// The column that a figure of ours belongs to, beside the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ours {
    /// The paper's protocol and parameters, by this program.
    Here,
    /// This program's default.
    Volery,
}

impl Ours {
    /// In the order of the columns.
    pub(super) const BOTH: [Self; 2] = [Self::Here, Self::Volery];

    /// The heading of its column.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Volery => "volery",
        }
    }

    /// The measurement of ours for a row; `None` where there is none.
    pub(super) fn beside(self, row: &Row) -> Option<Candidate> {
        let [here, volery] = Candidate::beside(row.protocol, row.item_bits());
        match self {
            Self::Here => here,
            Self::Volery => volery,
        }
    }
}

/// The existing measurements of the requested ones.
#[derive(Clone, Copy)]
pub(super) struct Figures<'a> {
    pub(super) scope: &'a Scope,
    pub(super) results: &'a Results,
}

impl<'a> Figures<'a> {
    /// Over a link; over the first of both that has figures, if it does not matter which.
    fn measurement(
        self,
        candidate: Candidate,
        setting: Option<Setting>,
        log_items: u32,
    ) -> Option<&'a Measurement> {
        let over = |setting| {
            let key = measure::key(candidate, setting, log_items, self.scope);
            self.results.find(&key)
        };
        let Some(setting) = setting else {
            let [lan, wan] = Setting::ALL.map(over);
            let has = |have: &&Measurement| !have.samples.is_empty();
            return lan.filter(has).or(wan.filter(has)).or(lan).or(wan);
        };
        over(setting)
    }

    /// Our value for a figure of a row, in its unit; `None` where nothing was measured.
    pub(super) fn spread(self, ours: Ours, row: &Row, log_items: u32) -> Option<Spread> {
        self.measurement(ours.beside(row)?, row.setting, log_items)?
            .spread(|sample| of(row.quantity, sample))
    }

    /// Our values for a figure of a row.
    fn value(self, ours: Ours, line: &Line<'_>) -> Value {
        let Some(candidate) = ours.beside(line.row) else {
            return Value::None;
        };
        let measurement = self.measurement(candidate, line.row.setting, line.log_items);
        Value::of(measurement, Some(line.published), |sample| {
            of(line.row.quantity, sample)
        })
    }
}

/// A quantity of a run, in the unit of its table.
fn of(quantity: Quantity, sample: &Sample) -> Option<f64> {
    let milliseconds = |name| Some(1e3 * sample.phase(name)?.seconds);
    match quantity {
        Quantity::Total => Some(1e3 * sample.seconds()),
        Quantity::Offline => milliseconds(OFFLINE),
        Quantity::Online => milliseconds(ONLINE),
        Quantity::Traffic => Some(sample.phase(ONLINE)?.bytes as f64 / MEBIBYTE),
        _ => None,
    }
}

/// One published figure.
pub(super) struct Line<'a> {
    pub(super) row: &'a Row,
    /// Items of each party, as a power of two.
    pub(super) log_items: u32,
    pub(super) published: f64,
}

impl Line<'_> {
    /// The quantity, and the figure.
    pub(super) fn head(&self) -> Vec<Value> {
        vec![
            Value::text(self.row.protocol.to_string()),
            Value::text(self.row.quantity.to_string()),
            Value::text(self.row.bits_text()),
            items(self.log_items),
            Value::published(Some(self.published)),
        ]
    }

    /// The value we compute for it. A zero is not compared with the published figure.
    pub(super) fn computed(&self, value: Option<f64>) -> Value {
        let published = |value| Some(self.published).filter(|_| value != 0.0);
        value.map_or(Value::None, |value| {
            Value::computed(value, published(value))
        })
    }

    /// Our traffic by a formula, in the unit of the table.
    pub(super) fn traffic_by_formula(&self, ours: Ours) -> Value {
        let bytes = |candidate: Candidate| candidate.formula(1 << self.log_items);
        self.computed(ours.beside(self.row).map(|ours| bytes(ours) / MEBIBYTE))
    }
}

/// All figures of a table for some sizes, and over one link if it has several.
pub(super) fn lines<'a>(
    published: &'a Published,
    setting: Option<Setting>,
    sizes: &[u32],
) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for row in rows(published, setting) {
        for (&log_items, &published) in published.columns.iter().zip(&row.values) {
            if sizes.contains(&log_items) {
                lines.push(Line {
                    row,
                    log_items,
                    published,
                });
            }
        }
    }
    lines
}

/// The rows of a table, over one link if it has several.
pub(super) fn rows(published: &Published, setting: Option<Setting>) -> impl Iterator<Item = &Row> {
    let rows = published.rows.iter();
    rows.filter(move |row| setting.is_none() || row.setting == setting)
}

/// The columns of [`Line::head`], and ours, in the common unit of all rows; without a unit if each
/// row has its own.
pub(super) fn columns(unit: &str) -> Vec<Column> {
    let mut columns = ["protocol", "of", "bits of an item"]
        .map(Column::words)
        .to_vec();
    columns.push(Column::numbers("items", ""));
    for heading in ["published", Ours::Here.name(), Ours::Volery.name()] {
        columns.push(Column::numbers(heading, unit));
    }
    columns
}

/// A table of the paper, or the part of it over one link, with the measurements.
pub(super) fn measured(
    published: &Published,
    setting: Option<Setting>,
    figures: Figures<'_>,
) -> Table {
    let link = setting.map(|setting| format!("; {}", setting.about()));
    let row = |line: &Line<'_>| {
        let mut row = line.head();
        row.extend(Ours::BOTH.map(|ours| figures.value(ours, line)));
        row
    };
    Table {
        caption: format!("{}{}", published.caption, link.unwrap_or_default()),
        columns: columns(&published.unit),
        rows: lines(published, setting, &sizes(figures.scope))
            .iter()
            .map(row)
            .collect(),
        notes: Vec::new(),
    }
}

/// The parameters behind each protocol and size.
pub(super) fn plans(candidates: &[Candidate], sizes: &[u32]) -> Table {
    let mut columns = ["protocol", "bits of an item"].map(Column::words).to_vec();
    columns.push(Column::numbers("items", ""));
    columns.push(Column::words("a run is made of"));
    let mut rows = Vec::new();
    for candidate in candidates {
        for &log_items in sizes {
            rows.push(vec![
                Value::text(candidate.name()),
                Value::text(candidate.item_bits().to_string()),
                items(log_items),
                Value::text(candidate.describe(1 << log_items)),
            ]);
        }
    }
    Table {
        caption: "parameters of each protocol for each size".to_owned(),
        columns,
        rows,
        notes: vec![
            "'kkrt-paper' is in the column 'here' of BaRK-OPRF, 'kkrt' in the column 'volery'."
                .to_owned(),
        ],
    }
}

/// The cells to measure: each protocol over each link, from the smallest sets to the largest.
pub(super) fn cells(candidates: &[Candidate], settings: &[Setting], scope: &Scope) -> Vec<Cell> {
    let mut cells = Vec::new();
    for log_items in sizes(scope) {
        for &setting in settings {
            for &candidate in candidates {
                cells.push(measure::cell(candidate, setting, log_items, scope));
            }
        }
    }
    cells
}

/// The number of items as a power of two.
pub(super) fn items(log_items: u32) -> Value {
    Value::text(format!("2^{log_items}"))
}
