//! What is shown: sections of tables and plots, the same for the terminal, HTML, Markdown and CSV.
//!
//! A figure keeps its spread, its published value and its unit until it is drawn; each form shows as much of it as it has room
//! for.

pub mod appendix;
pub mod csv;
pub mod html;
pub mod markdown;
#[cfg(test)]
mod samples;
pub mod svg;
pub mod text;
mod value;
mod wrap;

use serde::Serialize;

use crate::measurement::{Measurement, Sample, Spread, Told};

/// All that is shown of one table or figure of a paper, or of one benchmark.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Section {
    /// One word, by which it is asked for: `ferret-table-3`.
    pub name: String,
    /// `Table 3 of Ferret: COT protocols, both securities`.
    pub title: String,
    /// Where it was published, in words; empty where nothing was.
    pub source: String,
    /// How it was published there: a plot, digits as printed, ...; empty where nothing was.
    pub note: String,
    /// What the paper measured on; empty where nothing was published.
    pub there: String,
    /// What we measure.
    pub ours: Vec<String>,
    /// What keeps the two from being the same.
    pub differences: Vec<String>,
    /// What came out, and why where it is not what was published; generated sentences first.
    pub findings: Vec<String>,
    /// In order.
    pub tables: Vec<Table>,
    /// In order.
    pub plots: Vec<Plot>,
}

impl Section {
    /// Puts what was generated from the results before all other findings.
    pub fn lead_with(&mut self, generated: Vec<String>) {
        self.findings.splice(0..0, generated);
    }
}

/// A table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// What is in it; unlike all others of its section.
    pub caption: String,
    /// From left to right.
    pub columns: Vec<Column>,
    /// As many values as there are columns in each.
    pub rows: Vec<Vec<Value>>,
    /// What has to be known to read it.
    pub notes: Vec<String>,
}

/// The head of a column.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// A word or two.
    pub heading: String,
    /// Of its values: `ms`, `bits a COT`; empty where they have none, or each its own.
    pub unit: String,
    /// Numbers stand on the right, words on the left.
    pub numbers: bool,
}

impl Column {
    /// Words.
    #[must_use]
    pub fn words(heading: &str) -> Self {
        Self {
            heading: heading.to_owned(),
            unit: String::new(),
            numbers: false,
        }
    }

    /// Numbers in a unit.
    #[must_use]
    pub fn numbers(heading: &str, unit: &str) -> Self {
        Self {
            heading: heading.to_owned(),
            unit: unit.to_owned(),
            numbers: true,
        }
    }
}

/// What stands in a cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Value {
    /// Nothing can be there.
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
        /// It was not printed but is read off a plot.
        from_plot: bool,
    },
    /// Measured here.
    Measured {
        /// Of the runs.
        spread: Spread,
        /// Beside which published value it stands, if beside one.
        published: Option<f64>,
        /// Less was made than the table is about, and the time scaled.
        extrapolated: bool,
    },
    /// Lost in what it was to be told from: above zero, and below this.
    Below {
        /// See [`Told::Below`].
        bound: f64,
        /// How many runs.
        count: usize,
    },
    /// Follows from the parameters, or from other values of the page.
    Computed {
        /// It.
        value: f64,
        /// Beside which published value it stands, if beside one.
        published: Option<f64>,
    },
    /// Not measured, as it would have taken about so many seconds.
    Skipped {
        /// As foretold.
        seconds: f64,
    },
}

impl Value {
    /// Words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// A published value, as printed; [`Self::None`] if there is none.
    #[must_use]
    pub fn published(value: Option<f64>) -> Self {
        value.map_or(Self::None, |value| Self::Published {
            value,
            from_plot: false,
        })
    }

    /// A value that follows from others, beside a published one if it stands beside one.
    #[must_use]
    pub const fn computed(value: f64, published: Option<f64>) -> Self {
        Self::Computed { value, published }
    }

    /// What a measurement says of something: its spread, or that it was skipped, or [`Self::None`].
    #[must_use]
    pub fn of(
        measurement: Option<&Measurement>,
        published: Option<f64>,
        of: impl Fn(&Sample) -> Option<f64>,
    ) -> Self {
        let Some(measurement) = measurement else {
            return Self::None;
        };
        match (measurement.spread(of), measurement.skipped_seconds) {
            (None, Some(seconds)) => Self::Skipped { seconds },
            (spread, _) => Self::measured(spread, published),
        }
    }

    /// A measured value; [`Self::None`] if there is none.
    #[must_use]
    pub fn measured(spread: Option<Spread>, published: Option<f64>) -> Self {
        spread.map_or(Self::None, |spread| Self::Measured {
            spread,
            published,
            extrapolated: false,
        })
    }

    /// What several runs tell; [`Self::None`] if there are none. Beside what is below a bound no
    /// ratio tells anything.
    #[must_use]
    pub fn told(told: Option<Told>, published: Option<f64>) -> Self {
        match told {
            Some(Told::Below { bound, count }) => Self::Below { bound, count },
            Some(Told::Value(spread)) => Self::measured(Some(spread), published),
            None => Self::None,
        }
    }

    /// As the point of a plot, if it was measured: what is below a bound stands at it, with a range
    /// down to zero.
    #[must_use]
    pub fn plotted(&self) -> Option<Spread> {
        match *self {
            Self::Measured { spread, .. } => Some(spread),
            Self::Below { bound, count } => Some(Spread {
                least: 0.0,
                count,
                ..Spread::exactly(bound)
            }),
            _ => None,
        }
    }

    /// The number in it, the median of several.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::None | Self::Text { .. } | Self::Skipped { .. } | Self::Below { .. } => None,
            Self::Published { value, .. } | Self::Computed { value, .. } => Some(*value),
            Self::Measured { spread, .. } => Some(spread.median),
        }
    }

    /// Ours over the published one.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
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
pub struct Plot {
    /// Unlike all others of its section.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From below.
    pub y: Axis,
    /// In the order of the legend.
    pub series: Vec<Series>,
    /// Published statements that are no points: where two lines cross, and the like.
    pub marks: Vec<VerticalMark>,
}

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// What is along it.
    pub label: String,
    /// Of its values; empty where they have none.
    pub unit: String,
    /// How values lie along it.
    pub scale: Scale,
}

/// How values lie along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// As they are.
    Linear,
    /// By their logarithm; the labels are powers of ten.
    Log,
    /// By their logarithm; the labels are powers of two.
    Log2,
}

/// A line of a plot.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// As the paper calls it, and whose it is: `Ferret-Reg, published`. A published line and one of ours whose names are the
    /// same up to the last `, ` or ` (` are drawn in the same colour and with the same markers.
    pub name: String,
    /// Published, and so dashed; ours is drawn through.
    pub published: bool,
    /// With rising `x`.
    pub points: Vec<Point>,
}

impl Series {
    /// A published line, of values as printed.
    #[must_use]
    pub fn published(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points
            .into_iter()
            .map(|(x, y)| (x, Some(Spread::exactly(y))));
        Self {
            published: true,
            ..Self::measured(name, points)
        }
    }

    /// A line of ours; where nothing was measured it has no point.
    #[must_use]
    pub fn measured(name: &str, points: impl IntoIterator<Item = (f64, Option<Spread>)>) -> Self {
        let point = |(x, y): (f64, Option<Spread>)| {
            Some(Point {
                x,
                y: y?,
                from_plot: false,
            })
        };
        Self {
            name: name.to_owned(),
            published: false,
            points: points.into_iter().filter_map(point).collect(),
        }
    }
}

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Along the first axis.
    pub x: f64,
    /// Along the second; the spread of several runs.
    pub y: Spread,
    /// It was not printed but is read off a plot.
    pub from_plot: bool,
}

/// A place along the first axis that has a name.
#[derive(Clone, Debug, Serialize)]
pub struct VerticalMark {
    /// Along the first axis.
    pub x: f64,
    /// A few words.
    pub label: String,
}

/// The name of the file with a plot of a section, by the number of the plot from 1 on: `ferret-table-3-1.svg`.
#[must_use]
pub fn plot_name(section: &Section, number: usize) -> String {
    format!("{}-{number}.svg", section.name)
}

/// A number in about three digits, as in `0.0123`, `1.23`, `12.3`, `123`, `12345`.
#[must_use]
pub fn short(value: f64) -> String {
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
