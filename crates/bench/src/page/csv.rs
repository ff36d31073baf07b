//! Comma-separated values: one line for each number, so that it can be sorted and filtered.
//!
//! | column | |
//! |---|---|
//! | `section` | the name of the section: `ferret-table-3` |
//! | `table` | the caption of the table, or the title of the plot |
//! | `row_number` | of the row in the table, of the point in its line, of the mark in the plot; from 1 |
//! | `row` | the words in the row, joined by ` / `; the name of the line, or the label of the mark |
//! | `column` | the heading of the column; what is along the second axis |
//! | `unit` | of `value`, `least`, `most` and `published` |
//! | `kind` | `published`, `measured`, `below`, `computed`, `skipped`; of plots `point` and `mark` |
//! | `value` | the number, the median of several; of what was skipped how long it would take |
//! | `least`, `most`, `count` | the range of the runs, and how many; below a bound, from 0 to that |
//! | `published` | the published value that it stands beside |
//! | `ratio` | `value` over `published` |
//! | `marks` | of `extrapolated`, `from-plot`, `published` (a published line), those that apply, with blanks between |
//! | `x`, `x_axis`, `x_unit` | the place of a point or mark along the first axis, what is along it, and its unit |

use ::csv::WriterBuilder;
use serde::Serialize;

use super::{Column, Plot, Section, Table, Value};
use crate::measurement::Spread;
use crate::{Error, Result};

/// One line, in the order of its columns.
#[derive(Default, Serialize)]
struct Line<'a> {
    section: &'a str,
    table: &'a str,
    row_number: usize,
    row: String,
    column: &'a str,
    unit: &'a str,
    kind: &'a str,
    value: Option<f64>,
    least: Option<f64>,
    most: Option<f64>,
    count: Option<usize>,
    published: Option<f64>,
    ratio: Option<f64>,
    marks: String,
    x: Option<f64>,
    x_axis: &'a str,
    x_unit: &'a str,
}

/// The numbers of all tables and plots of the sections, under one header.
///
/// # Errors
/// If a line cannot be written.
pub fn all(sections: &[Section]) -> Result<String> {
    // The header is written even if there are no lines.
    let mut writer = WriterBuilder::new().has_headers(false).from_writer(vec![]);
    writer.write_record(HEADER).map_err(Error::protocol)?;
    for section in sections {
        let tables = section.tables.iter().flat_map(of_table);
        let plots = section.plots.iter().flat_map(of_plot);
        for line in tables.chain(plots) {
            let section = &section.name;
            let line = Line { section, ..line };
            writer.serialize(line).map_err(Error::protocol)?;
        }
    }
    let bytes = writer.into_inner().map_err(Error::protocol)?;
    String::from_utf8(bytes).map_err(Error::protocol)
}

const HEADER: [&str; 17] = [
    "section",
    "table",
    "row_number",
    "row",
    "column",
    "unit",
    "kind",
    "value",
    "least",
    "most",
    "count",
    "published",
    "ratio",
    "marks",
    "x",
    "x_axis",
    "x_unit",
];

fn of_table(table: &Table) -> impl Iterator<Item = Line<'_>> {
    table.rows.iter().enumerate().flat_map(move |(index, row)| {
        let texts = row.iter().filter_map(|value| match value {
            Value::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let label = texts.collect::<Vec<_>>().join(" / ");
        let cells = table.columns.iter().zip(row);
        cells.filter_map(move |(column, value)| {
            Some(Line {
                table: &table.caption,
                row_number: index + 1,
                row: label.clone(),
                ..of_value(column, value)?
            })
        })
    })
}

/// What a line says of a value; none of words, and where nothing can be.
fn of_value<'a>(column: &'a Column, value: &'a Value) -> Option<Line<'a>> {
    let line = Line {
        column: &column.heading,
        unit: &column.unit,
        value: value.number(),
        ratio: value.ratio(),
        ..Line::default()
    };
    Some(match value {
        Value::None | Value::Text { .. } => return None,
        Value::Published { from_plot, .. } => Line {
            kind: "published",
            marks: marks([(*from_plot, "from-plot")]),
            ..line
        },
        Value::Measured {
            spread,
            published,
            extrapolated,
        } => Line {
            kind: "measured",
            published: *published,
            marks: marks([(*extrapolated, "extrapolated")]),
            ..with_range(line, spread)
        },
        Value::Below { bound, .. } => Line {
            kind: "below",
            value: Some(*bound),
            ..value.plotted().iter().fold(line, with_range)
        },
        Value::Computed { published, .. } => Line {
            kind: "computed",
            published: *published,
            ..line
        },
        Value::Skipped { seconds } => Line {
            kind: "skipped",
            value: Some(*seconds),
            unit: "s",
            ..line
        },
    })
}

fn of_plot(plot: &Plot) -> impl Iterator<Item = Line<'_>> {
    let points = plot.series.iter().flat_map(move |series| {
        let points = series.points.iter().enumerate();
        points.map(move |(index, point)| {
            let line = Line {
                kind: "point",
                column: &plot.y.label,
                unit: &plot.y.unit,
                value: Some(point.y.median),
                marks: marks([
                    (point.from_plot, "from-plot"),
                    (series.published, "published"),
                ]),
                ..place(plot, index, &series.name, point.x)
            };
            with_range(line, &point.y)
        })
    });
    let marks = plot.marks.iter().enumerate();
    points.chain(marks.map(move |(index, mark)| Line {
        kind: "mark",
        ..place(plot, index, &mark.label, mark.x)
    }))
}

/// What a line says of a place along the first axis.
fn place<'a>(plot: &'a Plot, index: usize, label: &str, x: f64) -> Line<'a> {
    Line {
        table: &plot.title,
        row_number: index + 1,
        row: label.to_owned(),
        x: Some(x),
        x_axis: &plot.x.label,
        x_unit: &plot.x.unit,
        ..Line::default()
    }
}

fn with_range<'a>(line: Line<'a>, spread: &Spread) -> Line<'a> {
    Line {
        least: Some(spread.least),
        most: Some(spread.most),
        count: Some(spread.count),
        ..line
    }
}

/// The names of those that apply, with blanks between.
fn marks<const K: usize>(marks: [(bool, &str); K]) -> String {
    let apply = marks.into_iter().filter(|(applies, _)| *applies);
    apply.map(|(_, name)| name).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use ::csv::Writer;

    use super::*;
    use crate::page::samples;

    /// The lines, by the names of their columns.
    fn read(text: &str) -> Vec<HashMap<String, String>> {
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let lines = reader.deserialize();
        lines
            .map(|line| line.expect("as many fields on each line as in the header"))
            .collect()
    }

    #[test]
    fn every_number_has_a_line() {
        let text = all(&[samples::section()]).expect("it is written");
        let lines = read(&text);
        let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str()).collect();
        let mut expected = vec![
            "published",
            "published",
            "measured",
            "measured",
            "computed",
            "skipped",
            "below",
        ];
        expected.extend(["point"; 5]);
        expected.push("mark");
        assert_eq!(kinds, expected);
        assert!(lines.iter().all(|line| line["section"] == "paper-table-3"));

        let fields = |line: usize, names: &[&str]| -> Vec<String> {
            names
                .iter()
                .map(|name| lines[line][*name].clone())
                .collect()
        };
        let measured = ["value", "least", "most", "count", "published", "ratio"];
        let ratio = (12.34 / 13.0_f64).to_string();
        assert_eq!(
            fields(2, &measured),
            ["12.34", "10.0", "14.0", "5", "13.0", &ratio]
        );
        assert_eq!(
            fields(2, &["table", "row", "column", "unit"]),
            ["first | caption", "r5 / long, \"row\"", "time", "ms"]
        );
        assert_eq!(fields(1, &["marks"]), ["from-plot"]);
        assert_eq!(fields(3, &["marks"]), ["extrapolated"]);
        assert_eq!(fields(5, &["value", "unit"]), ["123.4", "s"]);
        assert_eq!(
            fields(6, &["value", "least", "most", "count", "ratio"]),
            ["12.34", "0.0", "12.34", "5", ""]
        );
        assert_eq!(
            fields(11, &["row", "row_number", "x", "x_axis", "marks"]),
            ["theirs", "2", "1048576.0", "n", "from-plot published"]
        );
        assert_eq!(
            fields(12, &["row", "x", "value"]),
            ["a mark", "65536.0", ""]
        );
    }

    #[test]
    fn the_header_is_there_without_lines() {
        let text = all(&[]).expect("it is written");
        assert_eq!(text, HEADER.join(",") + "\n");
    }

    #[test]
    fn the_columns_are_those_that_are_written() {
        let mut writer = Writer::from_writer(vec![]);
        writer.serialize(Line::default()).expect("it is written");
        let bytes = writer.into_inner().expect("it is in memory");
        let text = String::from_utf8(bytes).expect("it is text");
        assert_eq!(text.lines().next(), Some(HEADER.join(",").as_str()));
    }
}
