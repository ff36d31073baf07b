//! Plots as pictures.
//!
//! A picture is as wide as its place, and its letters are large enough for a phone. Lines differ by
//! marker or by dashes as well as by colour, so that they are told apart in grey. The legend stands
//! below the axes and hides nothing.

mod axis;
mod legend;
mod look;
mod marks;
mod pen;

use maud::html;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::drawing::IntoDrawingArea;
use plotters::prelude::{Cartesian2d, SVGBackend};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBColor, WHITE};

use self::axis::{Along, can_be_on};
use self::legend::Legend;
use self::look::Look;
use self::marks::Marks;
use self::pen::{Drawn, EM, INK, LINE, Sheet, WIDTH, whole_width, width, words, write};
use super::wrap::wrap;
use super::{Axis, Plot, Point, Series};

/// The height of what is between the axes.
const AXES: i32 = 23 * EM;

/// Free on the sides of the picture.
const SIDE: i32 = EM / 3;

/// On the right, so that half of a label has room below the end of the axis.
const RIGHT: i32 = EM * 3 / 2;

/// For the labels of the first axis.
const X_LABELS: i32 = EM * 7 / 4;

/// The length of a tick.
const TICK: i32 = EM / 5;

/// At most so many labels along the first and along the second axis.
const LABELS: [usize; 2] = [11, 8];

/// The lines of the grid that have a label, and the others.
const GRID: [RGBColor; 2] = [RGBColor(0xCC, 0xCC, 0xCC), RGBColor(0xEC, 0xEC, 0xEC)];

/// In place of axes where there is nothing to show.
const NOTHING: &str = "No points: none were measured, and none published.";

/// A plot as an SVG picture, without a size of its own: it is as wide as its place. Equal plots give equal bytes.
///
/// Lines without points are left out, and so are values that have no place on their axis: on a logarithmic one those that are
/// not above zero.
#[must_use]
pub fn plot(plot: &Plot) -> String {
    let mut drawn = String::new();
    let picture = Picture::of(plot);
    let height = picture.as_ref().map_or(2 * LINE, Picture::height);
    draw(picture.as_ref(), height, &mut drawn).expect("a string takes all that is drawn on it");
    // The library gives the picture a size in pixels and no name.
    let inside = drawn.split_once('>').map_or("", |(_, inside)| inside);
    let head = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">"#
    );
    let names = html! { title { (plot.title) } desc { (description(plot)) } };
    format!("{head}{}{inside}", names.into_string())
}

/// What is on the axes, and the lines, for those who do not see them.
fn description(plot: &Plot) -> String {
    let series = plot.series.iter().map(|series| series.name.as_str());
    let marks = plot.marks.iter().map(|mark| mark.label.as_str());
    format!(
        "{} over {}: {}",
        with_unit(&plot.y),
        with_unit(&plot.x),
        series.chain(marks).collect::<Vec<_>>().join("; ")
    )
}

fn with_unit(axis: &Axis) -> String {
    if axis.unit.is_empty() {
        axis.label.clone()
    } else {
        format!("{} ({})", axis.label, axis.unit)
    }
}

fn draw(picture: Option<&Picture<'_>>, height: i32, into: &mut String) -> Drawn {
    let size = [WIDTH, height].map(|side| u32::try_from(side).unwrap_or(1));
    let sheet = SVGBackend::with_string(into, size.into()).into_drawing_area();
    sheet.fill(&WHITE)?;
    match picture {
        Some(picture) => picture.draw(&sheet)?,
        None => write(&sheet, NOTHING, (SIDE, LINE), HPos::Left)?,
    }
    sheet.present()
}

/// A plot with its axes, before it is drawn.
struct Picture<'a> {
    /// Those with points that have a place.
    series: Vec<(&'a Series, Vec<&'a Point>)>,
    x: Along,
    y: Along,
    /// The names of the axes, on lines.
    names: [Vec<String>; 2],
    marks: Marks,
    legend: Legend,
}

impl<'a> Picture<'a> {
    /// None if nothing has a place.
    fn of(plot: &'a Plot) -> Option<Self> {
        let has_place = |point: &&Point| {
            can_be_on(plot.x.scale, point.x) && can_be_on(plot.y.scale, point.y.median)
        };
        let series = plot.series.iter().map(|series| {
            let points: Vec<_> = series.points.iter().filter(has_place).collect();
            (series, points)
        });
        let series: Vec<_> = series.filter(|(_, points)| !points.is_empty()).collect();
        let points = || series.iter().flat_map(|(_, points)| points);
        let marks = plot.marks.iter().map(|mark| mark.x);
        // Nothing but marks has no place along the second axis.
        let heights = points().flat_map(|point| [point.y.least, point.y.median, point.y.most]);
        let y = Along::of(plot.y.scale, heights, LABELS[1], true)?;
        let xs = points().map(|point| point.x).chain(marks);
        let x = Along::of(plot.x.scale, xs, LABELS[0], false)?;
        let lines = |axis| wrap(&with_unit(axis), (WIDTH - 2 * SIDE).into(), width);
        let left = left(&y);
        Some(Self {
            names: [lines(&plot.x), lines(&plot.y)],
            marks: Marks::of(plot, &x, left..WIDTH - RIGHT),
            legend: Legend::of(series.iter().map(|(series, _)| series.name.as_str())),
            series,
            x,
            y,
        })
    }

    /// Of what is above the axes.
    fn top(&self) -> i32 {
        lines(&self.names[1]) + self.marks.height() + EM / 4
    }

    /// Where the legend begins.
    fn legend_top(&self) -> i32 {
        self.top() + AXES + X_LABELS + lines(&self.names[0]) + EM / 2
    }

    fn height(&self) -> i32 {
        self.legend_top() + self.legend.height() + EM / 4
    }

    fn draw(&self, sheet: &Sheet<'_>) -> Drawn {
        let mut chart = ChartBuilder::on(sheet)
            .margin_top(self.top())
            .margin_left(SIDE)
            .margin_right(RIGHT)
            .margin_bottom(self.height() - self.top() - AXES - X_LABELS)
            .x_label_area_size(X_LABELS)
            .y_label_area_size(left(&self.y) - SIDE)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        let [major, minor] = GRID;
        chart
            .configure_mesh()
            .bold_line_style(major.stroke_width(4))
            .light_line_style(minor.stroke_width(3))
            .axis_style(INK.stroke_width(5))
            .label_style(words(INK, HPos::Center))
            .set_all_tick_mark_size(TICK)
            .draw()?;
        self.draw_names(sheet)?;
        let above = lines(&self.names[1]);
        self.marks.draw(sheet, above, self.top() + AXES)?;
        let looks = self.looks();
        for ((_, points), look) in self.series.iter().zip(&looks) {
            draw_series(sheet, &chart, points, *look, &self.y)?;
        }
        self.legend.draw(sheet, &looks, self.legend_top())
    }

    /// Of the lines that are drawn.
    fn looks(&self) -> Vec<Look> {
        let lines = self.series.iter();
        Look::of(
            lines.map(|(series, points)| (series.name.as_str(), series.published, points.len())),
        )
    }

    /// That of the second axis stands above it, that of the first in the middle below.
    fn draw_names(&self, sheet: &Sheet<'_>) -> Drawn {
        let middle = i32::midpoint(left(&self.y), WIDTH - RIGHT);
        let below = self.top() + AXES + X_LABELS;
        let [x, y] = &self.names;
        for (names, place, at) in [
            (y, (SIDE, 0), HPos::Left),
            (x, (middle, below), HPos::Center),
        ] {
            for (line, name) in (0..).zip(names) {
                let height = place.1 + LINE / 2 + LINE * line;
                write(sheet, name, (place.0, height), at)?;
            }
        }
        Ok(())
    }
}

/// Where the first axis begins: the labels of the second are on its left.
fn left(y: &Along) -> i32 {
    let widest = y.labels().map(whole_width).max().unwrap_or(0);
    SIDE + widest + 2 * TICK + EM / 4
}

/// The height of lines of words.
fn lines(lines: &[String]) -> i32 {
    LINE * i32::try_from(lines.len()).unwrap_or(1)
}

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Along, Along>>;

fn draw_series(
    sheet: &Sheet<'_>,
    chart: &Chart<'_, '_>,
    points: &[&Point],
    look: Look,
    y: &Along,
) -> Drawn {
    let place = |x: f64, y: f64| chart.backend_coord(&(x, y));
    let medians = points.iter().map(|point| place(point.x, point.y.median));
    let medians: Vec<_> = medians.collect();
    if medians.len() > 1 {
        look.line(sheet, &medians)?;
    }
    for median in medians {
        look.marker(sheet, median)?;
    }
    for point in points {
        // What has no place is below all that has.
        let least = if y.has(point.y.least) {
            point.y.least
        } else {
            y.lowest()
        };
        if least < point.y.most && y.has(point.y.most) {
            let (_, top) = place(point.x, point.y.most);
            look.range(sheet, place(point.x, least), top)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Spread;
    use crate::page::{Scale, samples};

    #[test]
    fn all_labels_are_in_it_and_escaped() {
        let svg = plot(&samples::plot());
        assert!(svg.starts_with("<svg xmlns="), "{}", &svg[..80]);
        assert!(svg.trim_end().ends_with("</svg>"));
        for part in [
            r#"role="img""#,
            "<title>time &lt;&amp;&quot;&gt; of both</title>",
            "\nours &lt;&amp;&quot;&gt;\n",
            "\ntheirs\n",
            "\na mark\n",
            "\nn (COTs)\n",
            "\ntime (ms)\n",
            "\n2¹⁴\n",
            "\n2²⁰\n",
            "\n10\n",
            "\n100\n",
        ] {
            assert!(svg.contains(part), "{part}");
        }
        let head = svg.split_once('>').expect("it has a head").0;
        assert!(
            !head.contains(" width=") && head.contains("viewBox"),
            "{head}"
        );
    }

    #[test]
    fn equal_plots_make_equal_pictures() {
        assert_eq!(plot(&samples::plot()), plot(&samples::plot()));
    }

    #[test]
    fn published_lines_are_dashed_and_ours_drawn_through() {
        let mut published = samples::plot();
        published.marks.clear();
        published.series.remove(0);
        let mut ours = published.clone();
        ours.series[0].published = false;
        let strokes = |plot_of: &Plot| plot(plot_of).matches("<polyline").count();
        assert!(strokes(&published) > strokes(&ours) + 20);
    }

    #[test]
    fn a_range_is_drawn_where_there_is_one() {
        let mut exact = samples::plot();
        let strokes = |plot_of: &Plot| {
            let picture = plot(plot_of);
            let thin = picture
                .lines()
                .filter(|line| line.contains(r##"stroke="#000000" stroke-width="4""##));
            thin.count()
        };
        assert_eq!(strokes(&exact), 3, "one bar and its two ends");
        exact.series[0].points[0].y = Spread::exactly(12.0);
        assert_eq!(strokes(&exact), 0);
    }

    #[test]
    fn a_single_point_is_shown() {
        for scale in [Scale::Linear, Scale::Log, Scale::Log2] {
            let mut single = samples::plot();
            single.marks.clear();
            single.series.truncate(1);
            single.series[0].points.truncate(1);
            (single.x.scale, single.y.scale) = (scale, scale);
            // White edge and disc, on the axes and in the legend.
            assert_eq!(plot(&single).matches("<circle").count(), 4, "{scale:?}");
        }
    }

    #[test]
    fn lines_without_points_are_left_out() {
        let mut partly = samples::plot();
        partly.series[0].points.clear();
        let svg = plot(&partly);
        assert!(!svg.contains("\nours ") && svg.contains("\ntheirs\n"));
        partly.series[1].points[0].y = Spread::exactly(0.0);
        let with_one = plot(&partly);
        assert!(with_one.len() < svg.len() && with_one.contains("\ntheirs\n"));
    }

    #[test]
    fn nothing_to_show_is_said() {
        let mut empty = samples::plot();
        for series in &mut empty.series {
            for point in &mut series.points {
                point.y = Spread::exactly(-1.0);
            }
        }
        let svg = plot(&empty);
        assert!(svg.contains(NOTHING) && svg.contains("<title>"), "{svg}");
        empty.series.clear();
        assert!(plot(&empty).contains(NOTHING));
    }

    #[test]
    fn values_that_cannot_be_drawn_do_no_harm() {
        let mut strange = samples::plot();
        let least = Spread {
            least: 0.0,
            ..strange.series[0].points[0].y
        };
        strange.series[0].points[0].y = least;
        strange.series[0].points[1].y = Spread::exactly(f64::NAN);
        strange.series[1].points[0].x = f64::INFINITY;
        strange.marks[0].x = 0.0;
        let svg = plot(&strange);
        assert!(!svg.contains("NaN") && !svg.contains("\na mark\n"));
    }

    /// Where words are, with how wide they are taken to be: left and right end, and height.
    fn boxes(svg: &str) -> Vec<(f64, f64, f64)> {
        let number = |tag: &str, name: &str| -> f64 {
            let from = tag.split_once(&format!(" {name}=\"")).expect(name).1;
            let digits = from.split_once('"').expect("a quotation mark").0;
            digits.parse().expect("a number")
        };
        let of_text = |text: &str| {
            let (tag, rest) = text.split_once('>').expect("the end of the tag");
            let words = rest.split_once('<').expect("the end of the text").0;
            let words = words.replace("&apos;", "'").replace("&quot;", "\"");
            let words = words.replace("&lt;", "<").replace("&gt;", ">");
            let wide = width(words.replace("&amp;", "&").trim());
            let left = match tag {
                tag if tag.contains("\"start\"") => 0.0,
                tag if tag.contains("\"middle\"") => wide / 2.0,
                _ => wide,
            };
            let left = number(tag, "x") - left;
            (left, left + wide, number(tag, "y"))
        };
        svg.split("<text").skip(1).map(of_text).collect()
    }

    #[test]
    fn words_are_not_clipped_and_not_on_each_other() {
        let mut crowded = samples::plot();
        for index in 0..12 {
            let mut series = crowded.series[index % 2].clone();
            series.name = format!("protocol {index} with a long name");
            crowded.series.push(series);
        }
        for (exponent, label) in [
            (14, "left"),
            (16, "the same place"),
            (20, "far on the right"),
        ] {
            let label = format!("{label}: from here on theirs takes less time");
            let x = 2_f64.powi(exponent);
            crowded.marks.push(crate::page::VerticalMark { x, label });
        }
        crowded.y.label = "time of both parties, the slower one's. ".repeat(3);
        let svg = plot(&crowded);
        let boxes = boxes(&svg);
        assert!(boxes.len() > 30);
        let height = svg.split_once(&format!("viewBox=\"0 0 {WIDTH} "));
        let height = height.and_then(|(_, rest)| rest.split_once('"'));
        let height: f64 = height.expect("a height").0.parse().expect("a number");
        for (index, &(left, right, y)) in boxes.iter().enumerate() {
            assert!(
                left >= 0.0 && right <= WIDTH.into(),
                "{left}..{right} at {y}"
            );
            assert!(y >= f64::from(EM) / 2.0 && y <= height - f64::from(EM) / 2.0);
            for &(other_left, other_right, other_y) in &boxes[..index] {
                let beside = other_right <= left || right <= other_left;
                assert!(
                    beside || (y - other_y).abs() >= f64::from(EM),
                    "at {left}, {y}"
                );
            }
        }
    }
}
