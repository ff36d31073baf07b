//! The names of the lines, below the axes.

use plotters::style::text_anchor::HPos;

use super::look::Look;
use super::pen::{Drawn, EM, LINE, Sheet, WIDTH, whole_width, width, write};
use crate::page::wrap::wrap;

/// A piece of the line, with a marker on it.
const SAMPLE: i32 = EM * 2;

/// Between the piece of the line and the name, and between the columns.
const GAP: i32 = EM / 2;

/// The names of lines, in columns.
pub(super) struct Legend {
    /// Each on one line or more.
    names: Vec<Vec<String>>,
    columns: usize,
}

impl Legend {
    /// In as many columns as there is room for, three at most.
    pub(super) fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let room = WIDTH - 2 * EM / 3 - SAMPLE - GAP;
        let wrapped = names.map(|name| wrap(name, room.into(), width));
        let names: Vec<Vec<String>> = wrapped.collect();
        let widest = names.iter().flatten().map(|line| whole_width(line)).max();
        let column = widest.unwrap_or(0) + SAMPLE + 2 * GAP;
        let columns = usize::try_from(WIDTH / column).unwrap_or(1).clamp(1, 3);
        Self { names, columns }
    }

    fn rows(&self) -> usize {
        self.names.len().div_ceil(self.columns)
    }

    /// Of a row.
    fn lines(&self, row: usize) -> i32 {
        let names = self.names.iter().skip(row).step_by(self.rows().max(1));
        let lines = names.map(Vec::len).max().unwrap_or(0);
        i32::try_from(lines).unwrap_or(1)
    }

    /// Of it all.
    pub(super) fn height(&self) -> i32 {
        (0..self.rows()).map(|row| self.lines(row) * LINE).sum()
    }

    /// Draws it from a height downwards, one column after the other.
    pub(super) fn draw(&self, sheet: &Sheet<'_>, looks: &[Look], top: i32) -> Drawn {
        let column_width = WIDTH / i32::try_from(self.columns).unwrap_or(1);
        let rows = self.rows().max(1);
        for (index, (name, look)) in self.names.iter().zip(looks).enumerate() {
            let (column, row) = (index / rows, index % rows);
            let left = EM / 3 + column_width * i32::try_from(column).unwrap_or(0);
            let above: i32 = (0..row).map(|row| self.lines(row) * LINE).sum();
            let mut y = top + above + LINE / 2;
            look.line(sheet, &[(left, y), (left + SAMPLE, y)])?;
            look.marker(sheet, (left + SAMPLE / 2, y))?;
            for line in name {
                write(sheet, line, (left + SAMPLE + GAP, y), HPos::Left)?;
                y += LINE;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_columns_as_fit() {
        let shape = |name: &str, count: usize| {
            let legend = Legend::of(std::iter::repeat_n(name, count));
            (legend.columns, legend.height() / LINE)
        };
        assert_eq!(shape("short", 7), (3, 3));
        assert_eq!(shape("a name of middling length", 7), (2, 4));
        assert_eq!(shape("a name for which there is room on a line", 7), (1, 7));
        assert_eq!(shape(&"many words ".repeat(12), 2), (1, 6));
        assert_eq!(shape("", 0), (3, 0));
    }
}
