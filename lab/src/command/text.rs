//! Tables and prose for the terminal, in at most 100 columns.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// A line under the header and nothing else: narrow and easy to process.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// Columns of the terminal.
const WIDE: usize = 100;

/// The text of a table, without a final newline. A column whose heading starts with `>` is
/// right-aligned; cells that do not fit into the width are wrapped.
pub(super) fn table<const K: usize>(
    headings: [&str; K],
    rows: impl IntoIterator<Item = [String; K]>,
) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(headings.map(|heading| heading.trim_start_matches('>')));
    table.add_rows(rows);
    for (column, heading) in table.column_iter_mut().zip(headings) {
        column.set_padding((0, 2));
        if heading.starts_with('>') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = table.trim_fmt();
    if text.lines().all(|line| line.chars().count() <= WIDE) {
        return text;
    }
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDE as u16);
    table.trim_fmt()
}

/// A paragraph in lines.
pub(super) fn prose(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one from the beginning");
        if line.is_empty() {
            *line += word;
        } else if line.chars().count() + 1 + word.chars().count() > WIDE {
            lines.push(word.to_owned());
        } else {
            *line += " ";
            *line += word;
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_tables_and_long_paragraphs_are_wrapped() {
        let narrow =
            table(["of", ">n"], [["row", "7"], ["x", "12"]].map(|row| row.map(str::to_owned)));
        let lines: Vec<_> = narrow.lines().filter(|line| !line.contains('─')).collect();
        assert_eq!(lines, ["of    n", "row   7", "x    12"]);
        let word = "word ".repeat(40);
        let wide = table(["one", "two"], [[word.clone(), word.clone()]]);
        let prose = prose(&word);
        assert_eq!([wide.matches("word").count(), prose.matches("word").count()], [80, 40]);
        for line in wide.lines().chain(prose.lines()) {
            assert!(line.chars().count() <= WIDE && line.trim_end() == line, "{line:?}");
        }
    }
}
