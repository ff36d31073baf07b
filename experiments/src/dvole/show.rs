//! Measurements as values of a table and points of a plot.

use volery_bench::measurement::{Key, Measurement, Sample, Spread};
use volery_bench::page::{Point, Series, Value};
use volery_bench::results::Results;

/// What is shown of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shown {
    Milliseconds,
    /// Both ways.
    Bytes,
    /// Both ways.
    Messages,
}

impl Shown {
    fn of(self, sample: &Sample) -> f64 {
        match self {
            Self::Milliseconds => 1e3 * sample.seconds(),
            Self::Bytes => sample.bytes() as f64,
            Self::Messages => sample.messages() as f64,
        }
    }

    /// Over all runs with that key; none if there is none.
    pub(super) fn spread(self, results: &Results, key: &Key) -> Option<Spread> {
        let measurement = results.find(key)?;
        measurement.spread(|sample| Some(self.of(sample)))
    }

    /// The median over all runs with that key; none if there is none.
    pub(super) fn median(self, results: &Results, key: &Key) -> Option<f64> {
        Some(self.spread(results, key)?.median)
    }

    /// The same for a table: with its spread, or as skipped, or as nothing.
    pub(super) fn value(self, results: &Results, key: &Key) -> Value {
        match (self.spread(results, key), results.find(key)) {
            (Some(spread), _) => Value::measured(Some(spread), None),
            (
                None,
                Some(Measurement {
                    skipped_seconds: Some(seconds),
                    ..
                }),
            ) => Value::Skipped { seconds: *seconds },
            (None, _) => Value::None,
        }
    }

    /// A line of ours through what was measured; none if nothing was. `keys` come with rising places along the first axis.
    pub(super) fn series(
        self,
        name: &str,
        results: &Results,
        keys: impl IntoIterator<Item = (f64, Key)>,
    ) -> Option<Series> {
        let point = |(x, key): (f64, Key)| {
            Some(Point {
                x,
                y: self.spread(results, &key)?,
                from_plot: false,
            })
        };
        let points: Vec<_> = keys.into_iter().filter_map(point).collect();
        (!points.is_empty()).then(|| Series {
            name: name.to_owned(),
            published: false,
            points,
        })
    }
}

/// A published line through points that the text states.
pub(super) fn stated_series(name: &str, points: &[(f64, f64)]) -> Series {
    let point = |&(x, y): &(f64, f64)| Point {
        x,
        y: Spread::exactly(y),
        from_plot: false,
    };
    Series {
        name: name.to_owned(),
        published: true,
        points: points.iter().map(point).collect(),
    }
}

/// The first over the second, beside what is published of it; nothing where one is missing.
pub(super) fn ratio(over: Option<f64>, under: Option<f64>, published: Option<f64>) -> Value {
    over.zip(under)
        .map_or(Value::None, |(over, under)| Value::Computed {
            value: over / under,
            published,
        })
}

/// A published value; nothing where there is none.
pub(super) fn published(value: Option<f64>) -> Value {
    value.map_or(Value::None, |value| Value::Published {
        value,
        from_plot: false,
    })
}

/// `1.3 to 4.5`, or `4.5` alone; none of no values.
pub(super) fn range(values: &[f64]) -> Option<String> {
    let spread = Spread::of(values.to_vec())?;
    let [least, most] = [spread.least, spread.most].map(digits);
    Some(if least == most {
        least
    } else {
        format!("{least} to {most}")
    })
}

/// A number in two digits.
pub(super) fn digits(value: f64) -> String {
    if value >= 10.0 {
        rounded(value).to_string()
    } else {
        format!("{value:.1}")
    }
}

/// The nearest number of two digits and zeros.
pub(super) fn rounded(value: f64) -> f64 {
    let digit = 10_f64.powf(value.log10().floor() - 1.0).max(1.0);
    (value / digit).round() * digit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits() {
        for (value, text) in [
            (0.04, "0.0"),
            (1.26, "1.3"),
            (43.4, "43"),
            (99.6, "100"),
            (31_950.0, "32000"),
            (1_234_567.0, "1200000"),
        ] {
            assert_eq!(digits(value), text);
        }
        assert_eq!(range(&[]), None);
        assert_eq!(range(&[2.0, 7.04, 3.0]).as_deref(), Some("2.0 to 7.0"));
        assert_eq!(range(&[2.01, 2.02]).as_deref(), Some("2.0"));
    }

    #[test]
    fn nothing_over_something_is_nothing() {
        assert_eq!(ratio(None, Some(1.0), Some(2.0)), Value::None);
        assert_eq!(ratio(Some(6.0), Some(2.0), None).number(), Some(3.0));
        assert_eq!(ratio(Some(6.0), Some(2.0), Some(6.0)).ratio(), Some(0.5));
        assert_eq!(published(None), Value::None);
        assert_eq!(published(Some(9.8)).number(), Some(9.8));
    }
}
