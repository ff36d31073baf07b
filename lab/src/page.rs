//! The presentation: sections of tables and plots, which the program shows on the terminal and
//! `lab/report.py` as pages. A figure keeps its spread, its published value and its unit.

pub(crate) mod text;

use serde::Serialize;

use crate::measurement::{Difference, Spread};

/// The section for one table or figure of a paper, or for one benchmark.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Section {
    /// Its name, one word: `ferret-table-3`.
    pub(crate) name: String,
    /// `Table 3 of Ferret: COT protocols, both securities`.
    pub(crate) title: String,
    /// The publication, in words; empty if there is none.
    pub(crate) source: String,
    /// The form of the published figures: a plot, digits as printed, ...; empty if there are none.
    pub(crate) note: String,
    /// The machine of the paper; empty if there is no published figure.
    pub(crate) there: String,
    /// Our measurement.
    pub(crate) ours: Vec<String>,
    /// The differences between the two.
    pub(crate) differences: Vec<String>,
    /// The findings, with reasons for deviations from the published figures; generated sentences
    /// first.
    pub(crate) findings: Vec<String>,
    /// In order.
    pub(crate) tables: Vec<Table>,
    /// In order.
    pub(crate) plots: Vec<Plot>,
}

/// A table.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Table {
    /// Its contents; the title is unique in its section.
    pub(crate) caption: String,
    /// From left to right.
    pub(crate) columns: Vec<Column>,
    /// One value per column in each row.
    pub(crate) rows: Vec<Vec<Value>>,
    /// Notes that a reader needs.
    pub(crate) notes: Vec<String>,
}

/// The head of a column.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Column {
    /// A word or two.
    pub(crate) heading: String,
    /// Unit of its values: `ms`, `bits a COT`; empty if they have none, or if each has its own.
    pub(crate) unit: String,
    /// Numbers are right-aligned, words left-aligned.
    pub(crate) numbers: bool,
}

impl Column {
    /// Words.
    pub(crate) fn words(heading: &str) -> Self {
        Self { heading: heading.to_owned(), unit: String::new(), numbers: false }
    }

    /// Numbers in a unit.
    pub(crate) fn numbers(heading: &str, unit: &str) -> Self {
        Self { heading: heading.to_owned(), unit: unit.to_owned(), numbers: true }
    }
}

/// The contents of a table cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(crate) enum Value {
    /// No value is possible.
    None,
    /// Words.
    Text {
        /// They.
        text: String,
    },
    /// Published.
    Published {
        /// As printed.
        value: f64,
    },
    /// Measured here.
    Measured {
        /// Of the runs.
        spread: Spread,
        /// The published value to compare with, if any.
        published: Option<f64>,
        /// Fewer outputs were made than the table is about, and the time was scaled.
        extrapolated: bool,
    },
    /// Hidden by the subtracted quantity: above zero, and below this.
    Below {
        /// See [`Difference::Below`].
        bound: f64,
        /// The number of runs.
        count: usize,
    },
    /// Derived from the parameters, or from other values of the page.
    Computed {
        /// It.
        value: f64,
        /// The published value to compare with, if any.
        published: Option<f64>,
    },
    /// Not measured because it would have taken about this many seconds.
    Skipped {
        /// As predicted.
        seconds: f64,
    },
}

impl Value {
    /// Words.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// A published value, as printed; [`Self::None`] if there is none.
    pub(crate) fn published(value: Option<f64>) -> Self {
        value.map_or(Self::None, |value| Self::Published { value })
    }

    /// A value derived from others, with a published one to compare with if there is one.
    pub(crate) const fn computed(value: f64, published: Option<f64>) -> Self {
        Self::Computed { value, published }
    }

    /// A measured value; [`Self::None`] if there is none.
    pub(crate) fn measured(spread: Option<Spread>, published: Option<f64>) -> Self {
        spread.map_or(Self::None, |spread| Self::Measured {
            spread,
            published,
            extrapolated: false,
        })
    }

    /// The value for several runs; [`Self::None`] if there are none. A value below a bound has no
    /// ratio to a published one.
    pub(crate) fn told(told: Option<Difference>, published: Option<f64>) -> Self {
        match told {
            Some(Difference::Below { bound, count }) => Self::Below { bound, count },
            Some(Difference::Value(spread)) => Self::measured(Some(spread), published),
            None => Self::None,
        }
    }

    /// The value as a point of a plot, if it was measured: a value below a bound is drawn at the
    /// bound, with a range down to zero.
    pub(crate) fn plotted(&self) -> Option<Spread> {
        match *self {
            Self::Measured { spread, .. } => Some(spread),
            Self::Below { bound, count } => {
                Some(Spread { least: 0.0, count, ..Spread::exactly(bound) })
            }
            _ => None,
        }
    }

    /// The number in it; for several runs, the median.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::None | Self::Text { .. } | Self::Skipped { .. } | Self::Below { .. } => None,
            Self::Published { value, .. } | Self::Computed { value, .. } => Some(*value),
            Self::Measured { spread, .. } => Some(spread.median),
        }
    }

    /// Ours over the published one.
    pub(crate) fn ratio(&self) -> Option<f64> {
        match self {
            Self::Measured { published, .. } | Self::Computed { published, .. } => {
                let published = (*published).filter(|published| *published > 0.0)?;
                Some(self.number()? / published)
            }
            _ => None,
        }
    }
}

/// A plot: lines over two axes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plot {
    /// Its contents; the title is unique in its section.
    pub(crate) title: String,
    /// From left to right.
    pub(crate) x: Axis,
    /// From bottom to top.
    pub(crate) y: Axis,
    /// In the order of the legend.
    pub(crate) series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Axis {
    /// The quantity along it.
    pub(crate) label: String,
    /// Unit of its values; empty if they have none.
    pub(crate) unit: String,
    /// The scale.
    pub(crate) scale: Scale,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scale {
    /// Logarithmic, with powers of ten as labels.
    Log,
    /// Logarithmic, with powers of two as labels.
    Log2,
}

/// A line of a plot.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    /// The name in the paper, and its source: `Ferret-Reg, published`. A published line and one of
    /// ours whose names are equal up to the last `, ` or ` (` share colour and markers.
    pub(crate) name: String,
    /// Published lines are dashed; ours are solid.
    pub(crate) published: bool,
    /// With rising `x`.
    pub(crate) points: Vec<Point>,
}

impl Series {
    /// A published line, of values as printed.
    pub(crate) fn published(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| (x, Some(Spread::exactly(y))));
        Self { published: true, ..Self::measured(name, points) }
    }

    /// A line of ours; it has no point where nothing was measured.
    pub(crate) fn measured(
        name: &str,
        points: impl IntoIterator<Item = (f64, Option<Spread>)>,
    ) -> Self {
        let point = |(x, y): (f64, Option<Spread>)| Some(Point { x, y: y? });
        Self {
            name: name.to_owned(),
            published: false,
            points: points.into_iter().filter_map(point).collect(),
        }
    }
}

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    /// Along the first axis.
    pub(crate) x: f64,
    /// Along the second; the spread of several runs.
    pub(crate) y: Spread,
}

/// A number in about three digits, as in `0.0123`, `1.23`, `12.3`, `123`, `12345`.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size => {
            let digits = (2.0 - size.log10().floor()).clamp(2.0, 12.0);
            format!("{value:.0$}", digits as usize)
        }
    }
}
