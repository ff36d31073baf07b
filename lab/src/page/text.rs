//! Tables for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};

use super::value::{Words, signs};
use super::wrap::{letters, wrap};
use super::{Column, Section, Table};

/// A line under the header and nothing else: narrow and easy to process.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// Letters on a line, of prose and of a table with all of a value on one line.
const WIDE: f64 = 100.0;

/// Before a ratio.
const TIMES: &str = "x";

/// The text of a table, without its caption, its notes and a final newline.
///
/// The median, the range and the ratio of measured values have separate columns; if that makes the
/// table wider than 100 letters, the range moves to its own line below the median; a table that is
/// still too wide is wrapped.
#[must_use]
pub fn table(table: &Table) -> String {
    let words: Vec<Vec<Words>> = table
        .rows
        .iter()
        .map(|row| row.iter().map(Words::of).collect())
        .collect();
    let fits = |text: &String| text.lines().map(letters).all(|wide| wide <= WIDE);
    let wide = lay_out(table, &words, side_by_side, false);
    if fits(&wide) {
        return wide;
    }
    let narrow = lay_out(table, &words, below_each_other, false);
    if fits(&narrow) {
        return narrow;
    }
    lay_out(table, &words, below_each_other, true)
}

/// A section: its title, its publication, its tables with their notes, the meaning of the signs in
/// them, and the findings. It has no plots, and ends with a newline.
#[must_use]
pub fn section(section: &Section) -> String {
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
    let meanings = signs(&section.tables, TIMES);
    let widest = meanings.iter().map(|(sign, _)| sign.chars().count()).max();
    let meanings: Vec<_> = meanings
        .iter()
        .map(|(sign, meaning)| format!("  {sign:<0$}  {meaning}", widest.unwrap_or(0)))
        .collect();
    let findings: Vec<_> = section
        .findings
        .iter()
        .map(|finding| prose("- ", finding))
        .collect();
    let last = [meanings.join("\n"), findings.join("\n")];
    parts.extend(last.into_iter().filter(|part| !part.is_empty()));
    parts.join("\n\n") + "\n"
}

/// Lines of prose after a mark; all but the first are indented by as much.
#[must_use]
pub fn prose(mark: &str, text: &str) -> String {
    let indent = " ".repeat(mark.chars().count());
    let lines = wrap(text, WIDE - letters(mark), letters);
    format!("{mark}{}", lines.join(&format!("\n{indent}")))
}

/// The terminal columns of a table column: their cells, the header first, and whether they are
/// right-aligned.
type Cells = (Vec<String>, bool);

/// The text of a table whose terminal columns are given by `of`, wrapped if requested.
fn lay_out(
    table: &Table,
    words: &[Vec<Words>],
    of: fn(&Column, &[&Words]) -> Vec<Cells>,
    wrapped: bool,
) -> String {
    let columns: Vec<Cells> = table
        .columns
        .iter()
        .enumerate()
        .flat_map(|(index, column)| {
            let words: Vec<_> = words.iter().filter_map(|row| row.get(index)).collect();
            of(column, &words)
        })
        .collect();
    let line = |index: usize| {
        columns
            .iter()
            .map(move |(cells, _)| cells.get(index).cloned().unwrap_or_default())
    };
    let mut drawn = comfy_table::Table::new();
    drawn.load_style(STYLE).set_header(line(0));
    if wrapped {
        drawn
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(WIDE as u16);
    }
    for row in 0..table.rows.len() {
        drawn.add_row(line(row + 1));
    }
    for (column, (_, right)) in drawn.column_iter_mut().zip(&columns) {
        column.set_padding((0, 2));
        if *right {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    drawn.trim_fmt()
}

/// The heading with the unit below it.
fn heading(column: &Column) -> String {
    if column.unit.is_empty() {
        column.heading.clone()
    } else {
        format!("{}\n{}", column.heading, column.unit)
    }
}

/// The median, the range and the ratio in separate columns, where any row has them.
fn side_by_side(column: &Column, words: &[&Words]) -> Vec<Cells> {
    let cells = |head: String, of: &dyn Fn(&Words) -> String| {
        let rest = words.iter().map(|words| of(words));
        std::iter::once(head).chain(rest).collect()
    };
    let values = cells(heading(column), &|words| words.value.clone());
    let mut columns = vec![(values, column.numbers)];
    if words.iter().any(|words| words.range.is_some()) {
        columns.push((cells("range".to_owned(), &range), true));
    }
    if words.iter().any(|words| words.ratio.is_some()) {
        columns.push((cells("ratio".to_owned(), &ratio), true));
    }
    columns
}

/// The range on a line below the median and the ratio.
fn below_each_other(column: &Column, words: &[&Words]) -> Vec<Cells> {
    let widest = words.iter().map(|words| letters(&ratio(words)) as usize);
    let widest = widest.max().unwrap_or(0);
    let cell = |words: &Words| {
        let mut text = words.value.clone();
        if widest > 0 {
            text += &format!(" {:>widest$}", ratio(words));
        }
        if words.range.is_some() {
            text += &format!("\n{}", range(words));
        }
        text
    };
    let rest = words.iter().map(|words| cell(words));
    let cells = std::iter::once(heading(column)).chain(rest).collect();
    vec![(cells, column.numbers)]
}

fn range(words: &Words) -> String {
    let text = words.range.as_ref();
    text.map_or_else(String::new, |(least, most)| format!("{least}..{most}"))
}

fn ratio(words: &Words) -> String {
    let text = words.ratio.as_ref();
    text.map_or_else(String::new, |ratio| format!("{TIMES}{ratio}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::samples;

    #[test]
    fn medians_ranges_and_ratios_line_up() {
        let text = table(&samples::table(
            samples::values()
                .into_iter()
                .map(|value| vec![crate::page::Value::text("row"), value])
                .collect(),
        ));
        let expected = "
what             time       range  ratio
                   ms
──────────────────────────────────────────
row                 -
row   a <b> & \"c\" | d
row              0.73
row             †12.3
row              12.3  10.0..14.0  x0.95
row             ~12.3
row              1000              x1.25
row           > 123 s
row            < 12.3";
        assert_eq!(format!("\n{text}"), expected, "{text}");
    }

    #[test]
    fn a_table_that_is_too_wide_has_its_ranges_below() {
        let section = samples::links();
        let text = table(&section.tables[0]);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= 100), "{text}");
        let header = text.lines().next().expect("a header");
        assert!(!header.contains("range"), "{text}");
        let row = text.lines().skip_while(|line| !line.contains('x'));
        let row: Vec<_> = row.take(2).collect();
        assert_eq!(row[1].matches("..").count(), 4, "{text}");
        assert_eq!(
            row[0].chars().count(),
            row[1].chars().count(),
            "both lines end on the right\n{text}"
        );
    }

    #[test]
    fn a_section_explains_each_sign_once() {
        let text = section(&samples::section());
        for part in [
            "Table 3 of Paper: a <b> & \"c\" | d\nSomebody: Paper",
            "first | caption\n\n",
            "\n  a note",
            "\n- a finding",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        assert_eq!(text.matches("not measured: a run").count(), 1);
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"));
        assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    }
}
