//! A picture of bits against the noise weight, as SVG: a line for each attack, the least of all in bold, the bits that are
//! wanted, and the weight that was chosen. Equal data make equal pictures, to the byte.

use std::fmt::Write as _;

use volery_pcg::lpn::estimate::Sample;

/// The whole picture, and where the axes lie in it, in pixels.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 720.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 490.0;

/// Colours that people who cannot tell red from green can tell apart (Okabe and Ito), and some greys.
const COLOURS: [&str; 10] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999933", "#882255",
    "#777777", "#44aa99",
];

/// What is drawn.
pub(super) struct Plot {
    pub(super) title: String,
    /// By ascending weight.
    pub(super) samples: Vec<Sample>,
    /// The bits that are wanted.
    pub(super) wanted: u32,
    /// The weight that was chosen, and its bits.
    pub(super) chosen: (usize, f64),
}

impl Plot {
    /// The picture.
    pub(super) fn svg(&self) -> String {
        let mut svg = String::new();
        self.write(&mut svg)
            .expect("writing to a string does not fail");
        svg
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="14">"#
        )?;
        writeln!(
            out,
            "<title>Bits against noise weight: {}</title>",
            self.title
        )?;
        writeln!(
            out,
            r##"<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>"##
        )?;
        writeln!(
            out,
            r#"<clipPath id="axes"><rect x="{LEFT}" y="{TOP}" width="{}" height="{}"/></clipPath>"#,
            RIGHT - LEFT,
            BOTTOM - TOP
        )?;
        text(out, (LEFT, 30.0), "start", &self.title)?;
        self.axes(out)?;
        let attacks: Vec<_> = self.samples.first().map_or(Vec::new(), |first| {
            first.attacks.iter().map(|found| found.attack).collect()
        });
        for (number, attack) in attacks.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let style = format!(r#"stroke="{colour}" stroke-width="1.5""#);
            self.line(out, &style, |sample| sample.bits(attack))?;
            legend(out, number, &style, attack)?;
        }
        let style = r##"stroke="#000000" stroke-width="3.5" stroke-opacity="0.75""##;
        self.line(out, style, |sample| {
            Some(sample.least()).filter(|bits| bits.is_finite())
        })?;
        legend(out, attacks.len(), style, "the cheapest attack")?;
        self.marks(out, attacks.len() + 1)?;
        writeln!(out, "</svg>")
    }

    /// Frame, grid, numbers and names of the axes.
    fn axes(&self, out: &mut String) -> std::fmt::Result {
        let grid = r##"stroke="#dddddd" stroke-width="1""##;
        for weight in round_numbers(self.first(), self.last()) {
            let x = self.x(weight as f64);
            segment(out, grid, (x, TOP), (x, BOTTOM))?;
            text(out, (x, BOTTOM + 20.0), "middle", &weight.to_string())?;
        }
        let (low, high) = self.range();
        let step = (self.wanted / 8).max(1);
        for bits in (low as u32..=high as u32).filter(|bits| bits % step == 0) {
            let y = self.y(f64::from(bits));
            segment(out, grid, (LEFT, y), (RIGHT, y))?;
            text(out, (LEFT - 8.0, y + 5.0), "end", &bits.to_string())?;
        }
        let middle = (LEFT + RIGHT) / 2.0;
        text(out, (middle, BOTTOM + 45.0), "middle", "noise weight t")?;
        text(out, (LEFT - 8.0, TOP - 10.0), "middle", "bits")
    }

    /// The wanted bits and the chosen weight.
    fn marks(&self, out: &mut String, place: usize) -> std::fmt::Result {
        let wanted = r##"stroke="#cc0000" stroke-width="1.5" stroke-dasharray="7 4""##;
        let y = self.y(f64::from(self.wanted));
        segment(out, wanted, (LEFT, y), (RIGHT, y))?;
        legend(out, place, wanted, &format!("{} bits", self.wanted))?;
        let (t, bits) = self.chosen;
        let x = self.x(t as f64);
        let chosen = r##"stroke="#000000" stroke-width="1" stroke-dasharray="2 3""##;
        segment(out, chosen, (x, TOP), (x, BOTTOM))?;
        let label = if bits.is_finite() {
            let (low, high) = self.range();
            let y = self.y(bits.clamp(low, high));
            writeln!(
                out,
                r##"<circle cx="{x:.1}" cy="{y:.1}" r="5" fill="#000000"/>"##
            )?;
            format!("t = {t}: {bits:.1} bits")
        } else {
            format!("t = {t}")
        };
        legend(out, place + 1, chosen, &label)
    }

    /// The points of one line, where it has any.
    fn line(
        &self,
        out: &mut String,
        style: &str,
        bits: impl Fn(&Sample) -> Option<f64>,
    ) -> std::fmt::Result {
        // Far outside of the picture lines are as steep as they look.
        let far = 4.0 * f64::from(self.wanted);
        let points: Vec<_> = self
            .samples
            .iter()
            .filter_map(|sample| Some((sample.t, bits(sample)?.min(far))))
            .map(|(t, bits)| format!("{:.1},{:.1}", self.x(t as f64), self.y(bits)))
            .collect();
        writeln!(
            out,
            r##"<polyline clip-path="url(#axes)" fill="none" {style} points="{}"/>"##,
            points.join(" ")
        )
    }

    fn first(&self) -> f64 {
        self.samples.first().map_or(1.0, |sample| sample.t as f64)
    }

    fn last(&self) -> f64 {
        let last = self.samples.last().map_or(1.0, |sample| sample.t as f64);
        last.max(self.first() + 1.0)
    }

    /// The bits at the foot and at the head of the picture: the wanted ones are in the middle.
    fn range(&self) -> (f64, f64) {
        let wanted = f64::from(self.wanted);
        ((wanted * 0.5).floor(), (wanted * 1.5).ceil())
    }

    fn x(&self, t: f64) -> f64 {
        let share = (t / self.first()).ln() / (self.last() / self.first()).ln();
        LEFT + share * (RIGHT - LEFT)
    }

    fn y(&self, bits: f64) -> f64 {
        let (low, high) = self.range();
        BOTTOM - (bits - low) / (high - low) * (BOTTOM - TOP)
    }
}

/// Numbers with one digit of 1, 2 or 5 that is not zero.
fn round_numbers(low: f64, high: f64) -> Vec<u64> {
    let powers = (0..=13).map(|exponent| 10_u64.pow(exponent));
    let numbers = powers.flat_map(|power| [1, 2, 5].map(|digit| digit * power));
    numbers
        .filter(|number| (low..=high).contains(&(*number as f64)))
        .collect()
}

fn segment(out: &mut String, style: &str, from: (f64, f64), to: (f64, f64)) -> std::fmt::Result {
    let ((x1, y1), (x2, y2)) = (from, to);
    writeln!(
        out,
        r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" {style}/>"#
    )
}

fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) -> std::fmt::Result {
    writeln!(
        out,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{words}</text>"#
    )
}

/// A line of the legend, to the right of the axes.
fn legend(out: &mut String, place: usize, style: &str, words: &str) -> std::fmt::Result {
    let y = TOP + 12.0 + 24.0 * place as f64;
    let x = RIGHT + 16.0;
    segment(out, style, (x, y), (x + 26.0, y))?;
    text(out, (x + 34.0, y + 5.0), "start", words)
}

#[cfg(test)]
mod tests {
    use volery_pcg::lpn::estimate::Estimate;

    use super::*;

    fn plot(bits: [f64; 3]) -> Plot {
        let samples = [100, 200, 400].into_iter().zip(bits);
        Plot {
            title: "a title".to_owned(),
            samples: samples
                .map(|(t, bits)| Sample {
                    t,
                    attacks: vec![Estimate {
                        attack: "guessing",
                        bits,
                    }],
                })
                .collect(),
            wanted: 128,
            chosen: (200, bits[1]),
        }
    }

    #[test]
    fn points_lie_where_they_belong() {
        let svg = plot([64.0, 128.0, 192.0]).svg();
        let line = r#"points="70.0,490.0 395.0,275.0 720.0,60.0""#;
        assert_eq!(svg.matches(line).count(), 2, "{svg}");
        for fragment in [
            r##"<line x1="70.0" y1="275.0" x2="720.0" y2="275.0" stroke="#cc0000""##,
            r#"<circle cx="395.0" cy="275.0" r="5""#,
            ">t = 200: 128.0 bits<",
            ">guessing<",
            ">a title<",
            ">200<",
        ] {
            assert!(svg.contains(fragment), "{fragment}: {svg}");
        }
        assert_eq!(svg, plot([64.0, 128.0, 192.0]).svg());
    }

    #[test]
    fn what_has_no_place_leaves_no_mark() {
        let svg = plot([1.0, f64::INFINITY, 1e12]).svg();
        assert!(!svg.contains("inf") && !svg.contains("NaN"), "{svg}");
        assert!(!svg.contains("<circle"));
        let none = Plot {
            samples: Vec::new(),
            ..plot([1.0; 3])
        };
        assert!(!none.svg().contains("NaN"));
    }

    #[test]
    fn axes_have_round_numbers() {
        assert_eq!(round_numbers(90.0, 1000.0), [100, 200, 500, 1000]);
        assert_eq!(round_numbers(1.0, 2.0), [1, 2]);
    }
}
