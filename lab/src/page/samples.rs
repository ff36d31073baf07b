//! Invented sections for the tests.

use super::{Axis, Column, Plot, Point, Scale, Section, Series, Table, Value, VerticalMark};
use crate::measurement::Spread;

/// Text that must be escaped in any format.
pub(super) const AWKWARD: &str = "a <b> & \"c\" | d";

/// One of every kind, and both marks.
pub(super) fn values() -> Vec<Value> {
    vec![
        Value::None,
        Value::text(AWKWARD),
        Value::Published {
            value: 0.73,
            from_plot: false,
        },
        Value::Published {
            value: 12.34,
            from_plot: true,
        },
        Value::measured(Some(spread(12.34)), Some(13.0)),
        Value::Measured {
            spread: Spread::exactly(12.34),
            published: None,
            extrapolated: true,
        },
        Value::Computed {
            value: 1000.0,
            published: Some(800.0),
        },
        Value::Skipped { seconds: 123.4 },
        Value::Below {
            bound: 12.34,
            count: 5,
        },
    ]
}

fn spread(median: f64) -> Spread {
    Spread {
        median,
        least: 10.0,
        most: 14.0,
        count: 5,
    }
}

/// A table whose last column is `time` in ms; the columns before it are words.
pub(super) fn table(rows: Vec<Vec<Value>>) -> Table {
    let wide = rows.iter().map(Vec::len).max().unwrap_or(1);
    let mut columns = vec![Column::words("what"); wide - 1];
    columns.push(Column::numbers("time", "ms"));
    Table {
        caption: "first | caption".to_owned(),
        columns,
        rows,
        notes: vec!["a note".to_owned()],
    }
}

/// One table with every kind of value, one plot.
pub(super) fn section() -> Section {
    let rows = values().into_iter().enumerate().map(|(index, value)| {
        let label = Value::text(format!("r{}", index + 1));
        vec![label, Value::text("long, \"row\""), value]
    });
    Section {
        name: "paper-table-3".to_owned(),
        title: format!("Table 3 of Paper: {AWKWARD}"),
        source: "Somebody: Paper".to_owned(),
        note: "Digits as printed.".to_owned(),
        there: "two machines".to_owned(),
        ours: vec!["one machine".to_owned()],
        differences: vec!["one machine, not two".to_owned()],
        findings: vec!["a finding".to_owned()],
        tables: vec![table(rows.collect())],
        plots: vec![plot()],
    }
}

/// A wide table: 8 rows of three lines each, over 4 links.
pub(super) fn links() -> Section {
    let mut columns = vec![Column::words("protocol"), Column::words("whose")];
    let links = ["10Mbit", "50Mbit", "100Mbit", "1Gbit"];
    columns.extend(links.map(|link| Column::numbers(link, "ms")));
    let measured = |published: f64, factor: f64| {
        let median = published * factor;
        let spread = Spread {
            median,
            least: median * 0.97,
            most: median * 1.05,
            count: 5,
        };
        Value::measured(Some(spread), Some(published))
    };
    let rows = (0..8).flat_map(|protocol| {
        let times = (0..4).map(move |link| f64::from(128_308 >> (protocol + link)));
        let row = move |whose: &str, of: &dyn Fn(f64) -> Value| {
            let label = [
                Value::text(format!("protocol {protocol}")),
                Value::text(whose),
            ];
            label.into_iter().chain(times.clone().map(of)).collect()
        };
        let published = |value| Value::Published {
            value,
            from_plot: false,
        };
        [
            row("published", &published),
            row("here", &|time| measured(time, 1.3)),
            row("volery", &|time| measured(time, 0.8)),
        ]
    });
    let table = Table {
        caption: "time".to_owned(),
        columns,
        rows: rows.collect(),
        notes: Vec::new(),
    };
    Section {
        name: "links".to_owned(),
        title: "Links".to_owned(),
        tables: vec![table],
        ..Section::default()
    }
}

/// Two lines, a published one among them, and a mark.
pub(super) fn plot() -> Plot {
    let point = |exponent: i32, y, from_plot| Point {
        x: 2_f64.powi(exponent),
        y,
        from_plot,
    };
    Plot {
        title: "time <&\"> of both".to_owned(),
        x: axis("n", "COTs", Scale::Log2),
        y: axis("time", "ms", Scale::Log),
        series: vec![
            Series {
                name: "ours <&\">".to_owned(),
                published: false,
                points: vec![
                    point(14, spread(12.0), false),
                    point(16, Spread::exactly(40.0), false),
                    point(18, Spread::exactly(170.0), false),
                ],
            },
            Series {
                name: "theirs".to_owned(),
                published: true,
                points: vec![
                    point(14, Spread::exactly(20.0), true),
                    point(20, Spread::exactly(900.0), true),
                ],
            },
        ],
        marks: vec![VerticalMark {
            x: 65536.0,
            label: "a mark".to_owned(),
        }],
    }
}

/// An axis.
pub(super) fn axis(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis {
        label: label.to_owned(),
        unit: unit.to_owned(),
        scale,
    }
}
