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
