//! Sizes of a picture, and words in it.

use std::io;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::element::Text;
use plotters::prelude::SVGBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontFamily, IntoFont, RGBColor, TextStyle};

/// What is drawn on.
pub(super) type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Of drawing.
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<io::Error>>;

/// The size of the letters. Places are whole numbers, so all is drawn large enough for their steps not to be seen.
pub(super) const EM: i32 = 60;

/// Of the picture: letters of 9 pixels where it is 360 pixels wide, of 17 where it is 680.
pub(super) const WIDTH: i32 = 40 * EM;

/// From one line of words to the next.
pub(super) const LINE: i32 = EM * 3 / 2;

/// Of words.
pub(super) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);

/// The library makes letters smaller by this than they are asked for.
const SMALLER: f64 = 1.24;

/// Words, around the place that they are put at.
pub(super) fn words(colour: RGBColor, at: HPos) -> TextStyle<'static> {
    let font = (FontFamily::SansSerif, f64::from(EM) * SMALLER).into_font();
    font.color(&colour).pos(Pos::new(at, VPos::Center))
}

/// Writes words with their middle at a height, and from, to or around a place.
pub(super) fn write(sheet: &Sheet<'_>, text: &str, place: (i32, i32), at: HPos) -> Drawn {
    sheet.draw(&Text::new(text.to_owned(), place, words(INK, at)))
}

/// As wide as a text is in `DejaVu Sans`, one of the widest of the usual fonts, or somewhat wider.
pub(super) fn width(text: &str) -> f64 {
    let letter = |letter| match letter {
        'i' | 'j' | 'l' | '\'' => 0.28,
        ' ' | '\u{2009}' | '.' | ',' | ':' | ';' | '/' | '|' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '!' => 0.42,
        '⁰'..='⁹' | '⁻' | '¹' | '²' | '³' => 0.44,
        'c' | 's' | 'z' => 0.55,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 1.0,
        '+' | '=' | '<' | '>' | '×' | '~' | '&' => 0.84,
        'N' | 'O' | 'Q' | 'D' | 'G' | 'H' | 'U' => 0.79,
        letter if letter.is_uppercase() => 0.7,
        letter if letter.is_alphanumeric() && u32::from(letter) < 0x500 => 0.64,
        letter if letter.is_ascii() => 0.64,
        _ => 1.0,
    };
    f64::from(EM) * text.chars().map(letter).sum::<f64>()
}

/// The same as a whole number.
#[expect(clippy::cast_possible_truncation, reason = "texts are short")]
pub(super) fn whole_width(text: &str) -> i32 {
    width(text).ceil() as i32
}
