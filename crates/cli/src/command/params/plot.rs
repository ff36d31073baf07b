//! A picture of bits against the noise weight: a line for each attack, one for the cheapest of all, the bits that are wanted,
//! and the weight that was chosen.

use volery_bench::measurement::Spread;
use volery_bench::page::{self, Axis, Point, Scale, Series, VerticalMark, svg};
use volery_pcg::lpn::estimate::Sample;

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
    /// The picture. Equal data make equal pictures, to the byte.
    pub(super) fn svg(&self) -> String {
        svg::plot(&self.page())
    }

    fn page(&self) -> page::Plot {
        let attacks = self.samples.first().map_or(&[][..], |first| &first.attacks);
        let line = |attack: &'static str| self.series(attack, |sample| sample.bits(attack));
        let mut series: Vec<_> = attacks.iter().map(|found| line(found.attack)).collect();
        series.push(self.series("the cheapest attack", |sample| Some(sample.least())));
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
                scale: Scale::Log,
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

    /// A line through the points that are near enough to what is wanted to be seen beside it.
    fn series(&self, name: &str, bits: impl Fn(&Sample) -> Option<f64>) -> Series {
        let highest = 1.5 * f64::from(self.wanted);
        let points = self.samples.iter().filter_map(|sample| {
            let bits = bits(sample).filter(|bits| *bits <= highest)?;
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
        let (t, bits) = self.chosen;
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
    fn lines_of_all_attacks_and_what_is_wanted() {
        let drawn = plot([64.0, 128.0, 192.0]).page();
        let lines: Vec<_> = drawn
            .series
            .iter()
            .map(|series| {
                let points = series.points.iter().map(|point| (point.x, point.y.median));
                (series.name.as_str(), points.collect::<Vec<_>>())
            })
            .collect();
        let bits = vec![(100.0, 64.0), (200.0, 128.0), (400.0, 192.0)];
        let level = bits.iter().map(|(t, _)| (*t, 128.0)).collect();
        assert_eq!(
            lines,
            [
                ("guessing", bits.clone()),
                ("the cheapest attack", bits),
                ("128 bits", level)
            ]
        );
        assert_eq!(drawn.marks[0].label, "t = 200: 128.0 bits");
        let svg = plot([64.0, 128.0, 192.0]).svg();
        assert!(svg.contains("a title") && svg.contains("noise weight t"));
        assert_eq!(svg, plot([64.0, 128.0, 192.0]).svg());
    }

    #[test]
    fn what_has_no_place_leaves_no_mark() {
        let far = plot([1.0, f64::INFINITY, 1e12]);
        assert_eq!(far.page().series[0].points.len(), 1);
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
