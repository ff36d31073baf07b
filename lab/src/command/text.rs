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
