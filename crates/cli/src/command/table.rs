//! Tables on standard output.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// A line under the header and nothing else: narrow and easy to process.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// The text of a table, without a final newline. A column whose heading starts with `>` is
/// right-aligned.
pub(crate) fn table<const K: usize>(
    headings: [&str; K],
    rows: impl IntoIterator<Item = [String; K]>,
) -> String {
    let mut table = Table::new();
    table
        .load_style(STYLE)
        .set_header(headings.map(|heading| heading.trim_start_matches('>')))
        .add_rows(rows);
    for (column, heading) in table.column_iter_mut().zip(headings) {
        column.set_padding((0, 2));
        if heading.starts_with('>') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["a", "1"], ["bcd", "2345"]].map(|row| row.map(str::to_owned));
        let text = table(["name", ">n"], rows);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["name", "n"]);
        assert!(lines[1].chars().all(|character| character == '─'));
        assert!(lines[2].ends_with("   1") && lines[3].ends_with("2345"), "{text}");
        assert_eq!(lines.len(), 4);
    }
}
