//! The wording of comparisons in the sentences of all papers.

use crate::measurement::Spread;

/// Medians that differ by a smaller fraction are not called different.
const NEAR: f64 = 0.05;

/// The least number of runs for a known spread.
const RUNS: usize = 3;

/// The relation of one figure to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Less: by more than a twentieth, and each of its runs less than each of the other's.
    Less,
    /// Neither less nor more.
    Same,
    /// More, likewise.
    More,
}

impl Standing {
    /// Of one figure to another.
    pub(crate) fn of(ours: Spread, other: Spread) -> Self {
        if ours.most < other.least && ours.median < other.median * (1.0 - NEAR) {
            Self::Less
        } else if ours.least > other.most && ours.median > other.median * (1.0 + NEAR) {
            Self::More
        } else {
            Self::Same
        }
    }

    /// The relation of a figure to a published one.
    pub(crate) fn to_published(ours: Spread, published: f64) -> Self {
        Self::of(ours, Spread::exactly(published))
    }
}

/// Appended to a sentence whose figures have too few runs to exclude chance; empty otherwise.
pub(crate) fn few_runs(spreads: impl IntoIterator<Item = Spread>) -> &'static str {
    let least = spreads.into_iter().map(|spread| spread.count).min();
    match least {
        Some(1) => " (one run)",
        Some(count) if count < RUNS => " (two runs)",
        _ => "",
    }
}

/// Two digits, and no fraction above ten: `0.054`, `0.83`, `2.3`, `14`, `340`.
pub(crate) fn two_digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    let digits = 1.0 - size.log10().floor();
    if digits <= 0.0 {
        let unit = 10_f64.powf(-digits);
        return format!("{:.0}", (value / unit).round() * unit);
    }
    format!("{value:.0$}", digits as usize)
}

/// From the least to the greatest: `0.83 to 2.3`, or one number if both are written the same.
/// `None` for no values.
pub(crate) fn range(values: impl IntoIterator<Item = f64>) -> Option<String> {
    let (least, most) = values
        .into_iter()
        .fold(None, |range: Option<(f64, f64)>, value| {
            let (least, most) = range.unwrap_or((value, value));
            Some((least.min(value), most.max(value)))
        })?;
    let [least, most] = [least, most].map(two_digits);
    Some(if least == most {
        least
    } else {
        format!("{least} to {most}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[f64]) -> Spread {
        Spread::of(values.to_vec()).expect("the list of values is not empty")
    }

    #[test]
    fn a_difference_is_beyond_the_runs_and_a_twentieth() {
        let other = spread(&[1.0, 1.1, 1.2]);
        for (values, standing) in [
            ([0.7, 0.8, 0.9], Standing::Less),
            ([0.7, 0.8, 1.0], Standing::Same),
            ([1.3, 1.4, 1.5], Standing::More),
            ([1.2, 1.4, 1.5], Standing::Same),
        ] {
            assert_eq!(Standing::of(spread(&values), other), standing, "{values:?}");
        }
        let near = spread(&[1.01, 1.02, 1.04]);
        assert_eq!(Standing::to_published(near, 1.0), Standing::Same);
        assert_eq!(Standing::to_published(near, 0.9), Standing::More);
    }

    #[test]
    fn numbers_in_two_digits() {
        let written = [0.0, 0.0544, 0.834, 2.26, 9.96, 14.4, 338.0, -0.4].map(two_digits);
        assert_eq!(
            written,
            ["0", "0.054", "0.83", "2.3", "10.0", "14", "340", "-0.40"]
        );
        assert_eq!(range([2.31, 0.834, 1.0]).as_deref(), Some("0.83 to 2.3"));
        assert_eq!(range([0.101, 0.102]).as_deref(), Some("0.10"));
        assert_eq!(range([]), None);
    }

    #[test]
    fn few_runs_are_said() {
        assert_eq!(
            few_runs([spread(&[1.0]), spread(&[1.0, 2.0, 3.0])]),
            " (one run)"
        );
        assert_eq!(few_runs([spread(&[1.0, 2.0])]), " (two runs)");
        assert_eq!(few_runs([spread(&[1.0, 2.0, 3.0])]), "");
        assert_eq!(few_runs([]), "");
    }
}
