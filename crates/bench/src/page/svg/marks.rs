//! Places along the first axis that have a name: dotted lines, with the names above the axes, each on a line of its own.

use std::ops::Range;

use plotters::coord::ranged1d::Ranged;
use plotters::element::{DashedPathElement, Rectangle};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBColor, WHITE};

use super::axis::{Along, can_be_on};
use super::pen::{Drawn, EM, LINE, Sheet, WIDTH, whole_width, width, write};
use crate::page::Plot;
use crate::page::wrap::wrap;

/// Of the dotted lines.
const COLOUR: RGBColor = RGBColor(0x55, 0x55, 0x55);

/// As wide as a name may be: there is room for it on one side of any line.
const WIDEST: i32 = WIDTH * 9 / 20;

/// Between a dotted line and its name.
const GAP: i32 = EM / 3;

/// Named places.
pub(super) struct Marks {
    /// The name of the first stands highest.
    marks: Vec<Mark>,
}

struct Mark {
    /// Of the dotted line.
    x: i32,
    /// What the name takes.
    span: Range<i32>,
    /// The name.
    lines: Vec<String>,
}

impl Marks {
    /// The marks of a plot that have a place on its first axis, which takes these places in the picture.
    pub(super) fn of(plot: &Plot, along: &Along, axis: Range<i32>) -> Self {
        let marks = plot.marks.iter();
        let marks = marks.filter(|mark| can_be_on(plot.x.scale, mark.x));
        let marks = marks.map(|mark| {
            let x = along.map(&mark.x, (axis.start, axis.end));
            Mark::at(x, wrap(&mark.label, WIDEST.into(), width))
        });
        Self {
            marks: in_order(marks.collect()),
        }
    }

    /// Of all names.
    pub(super) fn height(&self) -> i32 {
        self.marks.iter().map(Mark::height).sum()
    }

    /// From the top of the highest name to the bottom of the axes.
    pub(super) fn draw(&self, sheet: &Sheet<'_>, top: i32, bottom: i32) -> Drawn {
        let mut y = top;
        for mark in &self.marks {
            let dots = vec![(mark.x, bottom), (mark.x, y + LINE / 4)];
            let style = COLOUR.stroke_width(6);
            sheet.draw(&DashedPathElement::new(dots, EM / 8, EM / 6, style))?;
            y += mark.height();
        }
        y = top;
        for mark in &self.marks {
            mark.draw(sheet, y)?;
            y += mark.height();
        }
        Ok(())
    }
}

/// From the highest to the lowest name, so that few dotted lines, which go up to their names, cross other names.
fn in_order(mut marks: Vec<Mark>) -> Vec<Mark> {
    let mut from_below = Vec::new();
    while !marks.is_empty() {
        let crossings = |mark: &Mark| {
            marks
                .iter()
                .filter(|other| mark.span.contains(&other.x))
                .count()
        };
        // The last of several, so that of those that are alike the first stands highest.
        let best = (0..marks.len())
            .rev()
            .min_by_key(|&index| crossings(&marks[index]));
        from_below.push(marks.remove(best.unwrap_or(0)));
    }
    from_below.into_iter().rev().collect()
}

impl Mark {
    /// The name stands on the right of its line if there is room, else on the left.
    fn at(x: i32, lines: Vec<String>) -> Self {
        let widths = lines.iter().map(|line| whole_width(line));
        let wide = widths.max().unwrap_or(0);
        let span = if x + GAP + wide <= WIDTH - GAP {
            x + GAP..x + GAP + wide
        } else {
            // A single word may be wider than the room on both sides.
            let end = (x - GAP).max(wide);
            end - wide..end
        };
        Self { x, span, lines }
    }

    fn height(&self) -> i32 {
        LINE * i32::try_from(self.lines.len()).unwrap_or(1)
    }

    /// The name, on white.
    fn draw(&self, sheet: &Sheet<'_>, top: i32) -> Drawn {
        let Range { start, end } = self.span;
        let corners = [(start, top), (end, top + self.height())];
        sheet.draw(&Rectangle::new(corners, WHITE.filled()))?;
        let (x, at) = if start > self.x {
            (start, HPos::Left)
        } else {
            (end, HPos::Right)
        };
        for (line, words) in (0..).zip(&self.lines) {
            write(sheet, words, (x, top + LINE * line + LINE / 2), at)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(x: i32, label: &str) -> Mark {
        Mark::at(x, wrap(label, WIDEST.into(), width))
    }

    #[test]
    fn names_stand_in_the_picture() {
        for label in ["a", "a mark of middling length", &"long ".repeat(40)] {
            for x in [4 * EM, WIDTH / 3, WIDTH / 2, WIDTH - EM] {
                let Range { start, end } = mark(x, label).span;
                assert!(start >= 0 && end <= WIDTH, "{label} at {x}: {start}..{end}");
                assert!(x < start || end < x);
            }
        }
    }

    #[test]
    fn lines_do_not_cross_names_where_they_need_not() {
        // On the right of their lines, and the last on its left.
        let marks = vec![
            mark(1300, "first"),
            mark(1400, "second"),
            mark(WIDTH - 100, &"long ".repeat(7)),
        ];
        let order: Vec<_> = in_order(marks).into_iter().map(|mark| mark.x).collect();
        assert_eq!(order, [WIDTH - 100, 1300, 1400]);
    }
}
