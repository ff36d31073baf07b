//! Measurements as values of a table and points of a plot.

use crate::Link;
use crate::measurement::{Key, Sample, Spread};
use crate::page::{Series, Value};
use crate::results::Results;

use crate::words::two_digits;

/// The values shown for a run.
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

    /// Over all runs with this key; `None` if there are none.
    pub(super) fn spread(self, results: &Results, key: &Key) -> Option<Spread> {
        let measurement = results.find(key)?;
        measurement.spread(|sample| Some(self.of(sample)))
    }

    /// The median over all runs with this key; `None` if there are none.
    pub(super) fn median(self, results: &Results, key: &Key) -> Option<f64> {
        Some(self.spread(results, key)?.median)
    }

    /// The same for a table: with its spread, or as skipped, or empty.
    pub(super) fn value(self, results: &Results, key: &Key) -> Value {
        Value::of(results.find(key), None, |sample| Some(self.of(sample)))
    }

    /// A line of ours through the measurements; `None` if there are none. `keys` are in ascending
    /// order along the first axis.
    pub(super) fn series(
        self,
        name: &str,
        results: &Results,
        keys: impl IntoIterator<Item = (f64, Key)>,
    ) -> Option<Series> {
        let points = keys
            .into_iter()
            .map(|(x, key)| (x, self.spread(results, &key)));
        let series = Series::measured(name, points);
        (!series.points.is_empty()).then_some(series)
    }
}

/// The first over the second, with the published ratio; empty if one is missing.
pub(super) fn ratio(over: Option<f64>, under: Option<f64>, published: Option<f64>) -> Value {
    over.zip(under).map_or(Value::None, |(over, under)| {
        Value::computed(over / under, published)
    })
}

/// The nearest number of two digits and zeros.
pub(super) fn rounded(value: f64) -> f64 {
    two_digits(value).parse().unwrap_or(value)
}

/// A link as written in a sentence: a shaped one by its rate.
pub(super) fn in_words(link: &Link) -> String {
    match link {
        Link::Shaped { rate, .. } => format!("{} Mbit/s", *rate as f64 / 1e6),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn numbers_of_two_digits() {
        let numbers = [43.4, 1019.2, 5096.0, 31_950.0, 1_234_567.0].map(rounded);
        assert_eq!(numbers, [43.0, 1000.0, 5100.0, 32_000.0, 1_200_000.0]);
    }

    #[test]
    fn links_in_words() {
        let link = Link::shaped(100_000_000, Duration::from_micros(200));
        assert_eq!(in_words(&link), "100 Mbit/s");
        assert_eq!(in_words(&Link::Loopback), "loopback");
    }

    #[test]
    fn nothing_over_something_is_nothing() {
        assert_eq!(ratio(None, Some(1.0), Some(2.0)), Value::None);
        assert_eq!(ratio(Some(6.0), Some(2.0), None).number(), Some(3.0));
        assert_eq!(ratio(Some(6.0), Some(2.0), Some(6.0)).ratio(), Some(0.5));
    }
}
