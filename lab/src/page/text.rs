//! Tables and sections for the terminal, in at most 100 columns.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table as Drawn, TableStyle};

use super::{Column, Section, Table, Value, short};

/// A line under the header and nothing else: narrow and easy to process.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// Columns of the terminal.
const WIDE: usize = 100;

/// The meaning of the signs in the tables.
const SIGNS: &str = "a..b: the least and the greatest of several runs, whose median stands before \
    them; x: over the published value; ~: scaled from fewer outputs; > s: not measured, as a run \
    would take about this long; <: a difference that is lost in the spread of its terms";

/// The text of a table of words, without a final newline. A column whose heading starts with `>` is
/// right-aligned.
pub(crate) fn words<const K: usize>(
    headings: [&str; K],
    rows: impl IntoIterator<Item = [String; K]>,
) -> String {
    let columns = headings.map(|heading| Column {
        heading: heading.trim_start_matches('>').to_owned(),
        unit: String::new(),
        numbers: heading.starts_with('>'),
    });
    draw(&columns, &rows.into_iter().map(|row| row.to_vec()).collect::<Vec<_>>())
}

/// The text of a table, without its caption, its notes and a final newline. Ranges are left out
/// where they would make it too wide.
pub(crate) fn table(table: &Table) -> String {
    let cells = |with_range| -> Vec<Vec<_>> {
        let row = |row: &Vec<Value>| row.iter().map(|value| cell(value, with_range)).collect();
        table.rows.iter().map(row).collect()
    };
    let width = |rows: &[Vec<String>]| {
        let column = |(place, column): (usize, &Column)| {
            let cells = rows.iter().filter_map(|row| row.get(place)).map(|cell| count(cell));
            cells.chain([count(&column.heading)]).max().unwrap_or(0) + 2
        };
        table.columns.iter().enumerate().map(column).sum::<usize>()
    };
    let rows = cells(true);
    draw(&table.columns, &if width(&rows) > WIDE { cells(false) } else { rows })
}

fn count(text: &str) -> usize {
    text.chars().count()
}

/// Cells that do not fit into the width are wrapped.
fn draw(columns: &[Column], rows: &[Vec<String>]) -> String {
    let mut drawn = Drawn::new();
    let heading = |column: &Column| match column.unit.as_str() {
        "" => column.heading.clone(),
        unit => format!("{}\n{unit}", column.heading),
    };
    drawn.load_style(STYLE).set_header(columns.iter().map(heading)).add_rows(rows);
    for (drawn, column) in drawn.column_iter_mut().zip(columns) {
        drawn.set_padding((0, 2));
        if column.numbers {
            drawn.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = drawn.trim_fmt();
    if text.lines().all(|line| count(line) <= WIDE) {
        return text;
    }
    drawn.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDE as u16);
    drawn.trim_fmt()
}

/// A value in words: `~12.3 (10.0..14.0) x0.95`.
fn cell(value: &Value, with_range: bool) -> String {
    let mut text = match value {
        Value::None => "-".to_owned(),
        Value::Text { text } => text.clone(),
        // A published number keeps its printed digits.
        Value::Published { value } => value.to_string(),
        Value::Measured { spread, extrapolated, .. } => {
            let sign = if *extrapolated { "~" } else { "" };
            // The same whole number in each run, as of messages and bytes.
            if spread.least.fract() == 0.0 && spread.least == spread.most {
                format!("{sign}{:.0}", spread.median)
            } else {
                format!("{sign}{}", short(spread.median))
            }
        }
        Value::Below { bound, .. } => format!("< {}", short(*bound)),
        Value::Computed { value, .. } => short(*value),
        Value::Skipped { seconds } => format!("> {} s", short(*seconds)),
    };
    if let (true, Value::Measured { spread, .. }) = (with_range, value)
        && spread.least < spread.most
    {
        text += &format!(" ({}..{})", short(spread.least), short(spread.most));
    }
    if let Some(ratio) = value.ratio() {
        text += &format!(" x{}", short(ratio));
    }
    text
}

/// A section: its title, its publication, its tables with their notes, the meaning of the signs in
/// them, and the findings. It has no plots, and ends with a newline.
pub(crate) fn section(section: &Section) -> String {
    let mut parts = vec![prose("", &section.title)];
    if !section.source.is_empty() {
        parts[0] += &format!("\n{}", prose("", &section.source));
    }
    for shown in &section.tables {
        let mut part = format!("{}\n\n{}", prose("", &shown.caption), table(shown));
        for note in &shown.notes {
            part += &format!("\n{}", prose("  ", note));
        }
        parts.push(part);
    }
    if !section.source.is_empty() {
        parts.push(prose("  ", SIGNS));
    }
    let findings: Vec<_> = section.findings.iter().map(|finding| prose("- ", finding)).collect();
    parts.push(findings.join("\n"));
    parts.join("\n\n").trim_end().to_owned() + "\n"
}

/// Lines of prose after a mark; all but the first are indented by as much.
pub(crate) fn prose(mark: &str, text: &str) -> String {
    let indent = " ".repeat(count(mark));
    let mut lines = vec![mark.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one from the beginning");
        let is_empty = count(line) == count(mark);
        if !is_empty && count(line) + 1 + count(word) > WIDE {
            lines.push(format!("{indent}{word}"));
        } else {
            *line += if is_empty { "" } else { " " };
            *line += word;
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Spread;

    #[test]
    fn a_section_in_text() {
        let spread = Spread { median: 12.34, least: 10.0, most: 14.0, count: 5 };
        let measured =
            |extrapolated| Value::Measured { spread, published: Some(13.0), extrapolated };
        let values = [
            Value::None,
            Value::text("a | b"),
            Value::Published { value: 128_308.0 },
            measured(false),
            measured(true),
            Value::measured(Some(Spread::exactly(1000.0)), None),
            Value::computed(1000.0, Some(800.0)),
            Value::Skipped { seconds: 123.4 },
            Value::Below { bound: 12.34, count: 5 },
        ];
        let shown = Table {
            caption: "a caption".to_owned(),
            columns: vec![Column::words("of"), Column::numbers("time", "ms")],
            rows: values.into_iter().map(|value| vec![Value::text("row"), value]).collect(),
            notes: vec!["a note".to_owned()],
        };
        let expected = "
of                       time
                           ms
───────────────────────────────
row                         -
row                     a | b
row                    128308
row   12.3 (10.0..14.0) x0.949
row  ~12.3 (10.0..14.0) x0.949
row                      1000
row                1000 x1.25
row                   > 123 s
row                    < 12.3";
        let squeezed = |text: &str| {
            let lines = text.lines().filter(|line| !line.contains('─'));
            lines
                .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
                .collect::<Vec<_>>()
        };
        assert_eq!(squeezed(&format!("\n{}", table(&shown))), squeezed(expected));
        let mut wide = shown.clone();
        for row in &mut wide.rows {
            row[0] = Value::text("r".repeat(85));
        }
        assert!(!table(&wide).contains(".."), "{}", table(&wide));
        assert!(table(&wide).lines().all(|line| count(line) <= WIDE));
        let text = section(&Section {
            title: "Table 3 of Paper".to_owned(),
            source: "Somebody: Paper".to_owned(),
            tables: vec![shown],
            findings: vec!["a finding ".repeat(15)],
            ..Section::default()
        });
        for part in
            ["Table 3 of Paper\nSomebody: Paper\n\na caption\n\n", "\n  a note", "\n- a finding"]
        {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        assert!(text.lines().all(|line| count(line) <= WIDE && line.trim_end() == line));
    }
}
