//! A picture of bits against the noise weight: a line for each attack that costs little more than
//! the cheapest, a line for the bits that are wanted, and the weight that was chosen.

use volery_bench::measurement::Spread;
use volery_bench::page::{self, Axis, Point, Scale, Series, VerticalMark, svg};
use volery_pcg::lpn::estimate::{Estimate, Sample};

/// How far the picture reaches below and above what is wanted and what the chosen weight has.
const RANGE: [f64; 2] = [0.85, 1.2];

/// Of the cost of the cheapest attack at the chosen weight: the most that an attack costs there
/// whose line is drawn.
const NEAR: f64 = 1.1;

/// What is drawn.
pub(super) struct Plot {
    pub(super) title: String,
    /// By ascending weight.
    pub(super) samples: Vec<Sample>,
    /// The bits that are wanted.
    pub(super) wanted: u32,
    /// The weight that was chosen.
    pub(super) chosen: usize,
    /// What the attacks cost there, the cheapest first.
    pub(super) attacks: Vec<Estimate>,
}

impl Plot {
    /// The picture. Equal data make equal pictures, to the byte.
    pub(super) fn svg(&self) -> String {
        svg::plot(&self.page())
    }

    fn page(&self) -> page::Plot {
        let least = self.least();
        let near = self
            .attacks
            .iter()
            .filter(|found| found.bits.is_finite() && found.bits <= NEAR * least);
        let mut series: Vec<_> = near
            .map(|Estimate { attack, bits }| {
                self.series(&format!("{attack}: {bits:.1}"), |sample| {
                    sample.bits(attack)
                })
            })
            .collect();
        let wanted = f64::from(self.wanted);
        let mut level = self.series(&format!("{wanted} bits"), |_| Some(wanted));
        // Dashed, as it is no attack.
        level.published = true;
        series.push(level);
        page::Plot {
            title: format!("Bits against noise weight: {}", self.title),
            x: Axis {
                label: "noise weight t".to_owned(),
                unit: String::new(),
                scale: Scale::Linear,
            },
            y: Axis {
                label: "security".to_owned(),
                unit: "bits".to_owned(),
                scale: Scale::Linear,
            },
            series,
            marks: self.mark().into_iter().collect(),
        }
    }

    /// The cost of the cheapest attack at the chosen weight.
    fn least(&self) -> f64 {
        self.attacks
            .first()
            .map_or(f64::INFINITY, |found| found.bits)
    }

    /// A line through the points that are near enough to what is wanted to be seen beside it.
    fn series(&self, name: &str, bits: impl Fn(&Sample) -> Option<f64>) -> Series {
        let wanted = f64::from(self.wanted);
        let least = Some(self.least())
            .filter(|bits| bits.is_finite())
            .unwrap_or(wanted);
        let (lowest, highest) = (RANGE[0] * wanted.min(least), RANGE[1] * wanted.max(least));
        let points = self.samples.iter().filter_map(|sample| {
            let bits = bits(sample).filter(|bits| (lowest..=highest).contains(bits))?;
            Some(Point {
                x: sample.t as f64,
                y: Spread::exactly(bits),
                from_plot: false,
            })
        });
        Series {
            name: name.to_owned(),
            published: false,
            points: points.collect(),
        }
    }

    fn mark(&self) -> Option<VerticalMark> {
        let (t, bits) = (self.chosen, self.least());
        (!self.samples.is_empty()).then(|| VerticalMark {
            x: t as f64,
            label: if bits.is_finite() {
                format!("t = {t}: {bits:.1} bits")
            } else {
                format!("t = {t}")
            },
        })
    }
}

#[cfg(test)]
mod tests {
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
            chosen: 200,
            attacks: vec![Estimate {
                attack: "guessing",
                bits: bits[1],
            }],
        }
    }

    #[test]
    fn lines_of_all_attacks_and_what_is_wanted() {
        let drawn = plot([109.0, 128.0, 160.0]).page();
        let lines: Vec<_> = drawn
            .series
            .iter()
            .map(|series| {
                let points = series.points.iter().map(|point| (point.x, point.y.median));
                (series.name.as_str(), points.collect::<Vec<_>>())
            })
            .collect();
        // 160 bits are too far above.
        let bits = vec![(100.0, 109.0), (200.0, 128.0)];
        let level = vec![(100.0, 128.0), (200.0, 128.0), (400.0, 128.0)];
        assert_eq!(lines, [("guessing: 128.0", bits), ("128 bits", level)]);
        assert_eq!(drawn.marks[0].label, "t = 200: 128.0 bits");
        let svg = plot([109.0, 128.0, 160.0]).svg();
        assert!(svg.contains("a title") && svg.contains("noise weight t"));
        assert_eq!(svg, plot([109.0, 128.0, 160.0]).svg());
    }

    #[test]
    fn attacks_that_cost_far_more_have_no_line() {
        let mut plot = plot([109.0, 120.0, 130.0]);
        for (attack, bits) in [("trying", 131.0), ("waiting", 133.0)] {
            plot.attacks.push(Estimate { attack, bits });
            for sample in &mut plot.samples {
                sample.attacks.push(Estimate { attack, bits });
            }
        }
        let names: Vec<_> = plot
            .page()
            .series
            .into_iter()
            .map(|series| series.name)
            .collect();
        assert_eq!(names, ["guessing: 120.0", "trying: 131.0", "128 bits"]);
    }

    #[test]
    fn what_has_no_place_leaves_no_mark() {
        let far = plot([110.0, f64::INFINITY, 1e12]);
        assert_eq!(
            far.page().series.len(),
            1,
            "an attack that does not work has no line"
        );
        assert_eq!(far.page().marks[0].label, "t = 200");
        let none = Plot {
            samples: Vec::new(),
            ..plot([1.0; 3])
        };
        for svg in [far.svg(), none.svg()] {
            assert!(!svg.contains("inf") && !svg.contains("NaN"), "{svg}");
        }
    }
}
