//! How lines are told apart: by colour, by marker, by dashes.
//!
//! A line of many points has no markers, which would hide it and the lines beside it; there the
//! dashes tell.
//!
//! The colours are those of Okabe and Ito, which people who do not see red or green tell apart, the darkest first; yellow,
//! which is hardly seen on white, is not among them. In grey, the markers tell.

use plotters::element::{Circle, DashedPathElement, PathElement, Polygon};
use plotters::style::{Color, RGBColor, ShapeStyle, WHITE};

use super::pen::{Drawn, EM, Sheet};

const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 0, 0),
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x56, 0xB4, 0xE9),
];

/// As many as have no factor in common with the colours.
const MARKERS: [Marker; 9] = [
    Marker::Circle,
    Marker::Square,
    Marker::Up,
    Marker::Diamond,
    Marker::Cross,
    Marker::Down,
    Marker::Plus,
    Marker::Left,
    Marker::Right,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    Circle,
    Square,
    Up,
    Diamond,
    Cross,
    Down,
    Plus,
    Left,
    Right,
}

/// Dashes and gaps of lines without markers; as many kinds as have no factor in common with the
/// colours. The first is drawn through.
const DASHES: [Option<(i32, i32)>; 4] = [
    None,
    Some((EM * 5 / 6, EM / 3)),
    Some((EM / 5, EM / 5)),
    Some((EM * 3 / 2, EM * 3 / 4)),
];

/// Dashes and gaps of published lines.
const PUBLISHED: (i32, i32) = (EM * 9 / 20, EM * 7 / 30);

/// Points of a line that has no markers, at least.
pub(super) const DENSE: usize = 24;

/// The size of a marker, from its middle.
const SIZE: i32 = EM / 4;

/// The width of a line.
const STROKE: u32 = 8;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    colour: RGBColor,
    /// None on a line of many points.
    marker: Option<Marker>,
    dashes: Option<(i32, i32)>,
    /// With hollow markers.
    published: bool,
}

impl Look {
    /// Of lines in this order, by their names, whether they are published, and their points. A
    /// published one looks like the first of ours, and ours like the first published one, that has
    /// the same name but for the end and no such partner yet.
    pub(super) fn of<'a>(lines: impl Iterator<Item = (&'a str, bool, usize)>) -> Vec<Self> {
        let mut taken: Vec<(&str, [bool; 2])> = Vec::new();
        let look = |(name, published, points): (&'a str, bool, usize)| {
            let side = usize::from(published);
            let find = |same: &dyn Fn(&str) -> bool| {
                let partner = |(other, sides): &(&str, [bool; 2])| same(other) && !sides[side];
                taken.iter().position(partner)
            };
            // `vole, fp61, published` belongs to `vole, fp61`, if there is such a line, rather than to `vole, z64`.
            let index = find(&|other| other == stem(name))
                .or_else(|| find(&|other| stem(other) == stem(name)))
                .unwrap_or_else(|| {
                    taken.push((name, [false; 2]));
                    taken.len() - 1
                });
            taken[index].1[side] = true;
            let dense = points >= DENSE;
            Self {
                colour: COLOURS[index % COLOURS.len()],
                marker: (!dense).then(|| MARKERS[index % MARKERS.len()]),
                dashes: match (published, dense) {
                    (true, _) => Some(PUBLISHED),
                    (false, true) => DASHES[index % DASHES.len()],
                    (false, false) => None,
                },
                published,
            }
        };
        lines.map(look).collect()
    }

    /// Through places in the picture.
    pub(super) fn line(self, sheet: &Sheet<'_>, places: &[(i32, i32)]) -> Drawn {
        let style = self.colour.stroke_width(STROKE);
        let places = places.to_vec();
        match self.dashes {
            Some((dash, gap)) => sheet.draw(&DashedPathElement::new(places, dash, gap, style)),
            None => sheet.draw(&PathElement::new(places, style)),
        }
    }

    /// From the least to the most.
    pub(super) fn range(self, sheet: &Sheet<'_>, (x, least): (i32, i32), most: i32) -> Drawn {
        let style = self.colour.stroke_width(STROKE / 2);
        for stroke in [
            [(x, least), (x, most)],
            [(x - SIZE, least), (x + SIZE, least)],
            [(x - SIZE, most), (x + SIZE, most)],
        ] {
            sheet.draw(&PathElement::new(stroke.to_vec(), style))?;
        }
        Ok(())
    }

    /// At a place in the picture, with a white edge to be seen on other lines.
    pub(super) fn marker(self, sheet: &Sheet<'_>, at: (i32, i32)) -> Drawn {
        let Some(marker) = self.marker else {
            return Ok(());
        };
        let edge = SIZE / 3;
        marker.shape(sheet, at, SIZE + edge, WHITE)?;
        marker.shape(sheet, at, SIZE, self.colour)?;
        if self.published && !marker.is_of_strokes() {
            marker.shape(sheet, at, SIZE / 2, WHITE)?;
        }
        Ok(())
    }
}

impl Marker {
    fn is_of_strokes(self) -> bool {
        matches!(self, Self::Cross | Self::Plus)
    }

    fn shape(self, sheet: &Sheet<'_>, (x, y): (i32, i32), size: i32, colour: RGBColor) -> Drawn {
        let filled: ShapeStyle = colour.filled();
        let at = |(right, down): (i32, i32)| (x + right * size / 8, y + down * size / 8);
        let corners: &[(i32, i32)] = match self {
            Self::Circle => return sheet.draw(&Circle::new((x, y), size, filled)),
            Self::Square => &[(-7, -7), (7, -7), (7, 7), (-7, 7)],
            Self::Diamond => &[(0, -11), (11, 0), (0, 11), (-11, 0)],
            Self::Up => &[(0, -11), (10, 7), (-10, 7)],
            Self::Down => &[(0, 11), (10, -7), (-10, -7)],
            Self::Left => &[(-11, 0), (7, 10), (7, -10)],
            Self::Right => &[(11, 0), (-7, 10), (-7, -10)],
            Self::Cross => &[(-8, -8), (8, 8), (-8, 8), (8, -8)],
            Self::Plus => &[(-10, 0), (10, 0), (0, -10), (0, 10)],
        };
        let corners: Vec<_> = corners.iter().copied().map(at).collect();
        if !self.is_of_strokes() {
            return sheet.draw(&Polygon::new(corners, filled));
        }
        let wider = if colour == WHITE { STROKE } else { 0 };
        for stroke in corners.chunks(2) {
            let style = colour.stroke_width(STROKE + 2 + wider);
            sheet.draw(&PathElement::new(stroke.to_vec(), style))?;
        }
        Ok(())
    }
}

/// A name without what is behind the last `, ` or ` (`.
fn stem(name: &str) -> &str {
    let end = [name.rfind(", "), name.rfind(" (")].into_iter().max();
    end.flatten().map_or(name, |end| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_look_different() {
        let names: Vec<_> = (0..60).map(|index| format!("line {index}")).collect();
        for (points, lines) in [(DENSE - 1, 60), (DENSE, 28)] {
            let names = names[..lines].iter();
            let looks = Look::of(names.map(|name| (name.as_str(), false, points)));
            for (index, look) in looks.iter().enumerate() {
                assert!(!looks[..index].contains(look), "{index}: {look:?}");
                assert_eq!(look.marker.is_some(), points < DENSE);
            }
        }
    }

    #[test]
    fn a_published_line_looks_like_ours_but_for_its_dashes() {
        let lines = [
            ("gilboa, fp61, here", false),
            ("gilboa, z64, here", false),
            ("gilboa, z64, published", true),
            ("gilboa, z64, again", false),
            ("Ferret (paper)", true),
            ("Ferret (here)", false),
        ];
        let looks = Look::of(
            lines
                .into_iter()
                .map(|(name, published)| (name, published, 9)),
        );
        let same = |ours: usize, published: usize| {
            assert!(looks[published].published && !looks[ours].published);
            looks[ours]
                == Look {
                    dashes: None,
                    published: false,
                    ..looks[published]
                }
        };
        assert!(same(1, 2) && same(5, 4));
        assert!(!same(0, 2) && !same(3, 2) && !same(5, 2));
    }

    #[test]
    fn a_published_line_looks_like_the_line_it_belongs_to() {
        let names = [
            ("vole, fp61", false),
            ("vole, z64", false),
            ("cot, here", false),
            ("vole, z64, published", true),
            ("cot, published", true),
            ("other, published", true),
        ];
        let looks = Look::of(
            names
                .into_iter()
                .map(|(name, published)| (name, published, 9)),
        );
        let like = |index: usize| {
            let same = |look: &Look| {
                (look.colour, look.marker) == (looks[index].colour, looks[index].marker)
            };
            looks.iter().position(same)
        };
        assert_eq!([3, 4, 5].map(like), [Some(1), Some(2), Some(5)]);
    }

    #[test]
    fn stems() {
        let names = ["a, b, c", "a (b, c)", "a (b)", "a", ", "];
        assert_eq!(names.map(stem), ["a, b", "a (b", "a", "a", ""]);
    }
}
