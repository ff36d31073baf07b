//! Values in words, the same for all formats.

use std::ops::RangeInclusive;

use super::{Table, Value, short};
use crate::measurement::Spread;

/// A value in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// With its signs.
    pub(super) value: String,
    /// The least and the greatest, where they differ.
    pub(super) range: Option<(String, String)>,
    /// Over the published value, where there is one.
    pub(super) ratio: Option<String>,
}

impl Words {
    /// The value in words.
    pub(super) fn of(value: &Value) -> Self {
        let text = match value {
            Value::None => NONE.to_owned(),
            Value::Text { text } => text.clone(),
            Value::Published { value, from_plot } if *from_plot => format!("†{}", short(*value)),
            Value::Published { value, .. } => as_printed(*value),
            Value::Measured {
                spread,
                extrapolated,
                ..
            } => format!(
                "{}{}",
                if *extrapolated { "~" } else { "" },
                if is_counted(spread) {
                    format!("{:.0}", spread.median)
                } else {
                    short(spread.median)
                }
            ),
            Value::Below { bound, .. } => format!("< {}", short(*bound)),
            Value::Computed { value, .. } => short(*value),
            Value::Skipped { seconds } => format!("> {} s", short(*seconds)),
        };
        Self {
            value: text,
            range: range(value).map(|range| (short(*range.start()), short(*range.end()))),
            ratio: value.ratio().map(ratio),
        }
    }

    /// All on one line: `~12.3 (10.0..14.0) x0.95`.
    #[cfg(test)]
    pub(super) fn on_one_line(&self, times: &str) -> String {
        let mut line = self.value.clone();
        if let Some((least, most)) = &self.range {
            line += &format!(" ({least}..{most})");
        }
        if let Some(ratio) = &self.ratio {
            line += &format!(" {times}{ratio}");
        }
        line
    }
}

/// Where there is no value.
const NONE: &str = "-";

/// From the least to the greatest, where they differ.
fn range(value: &Value) -> Option<RangeInclusive<f64>> {
    match value {
        Value::Measured { spread, .. } if spread.least < spread.most => {
            Some(spread.least..=spread.most)
        }
        _ => None,
    }
}

/// Whether the value is the same whole number in each run, as for messages and bytes.
fn is_counted(spread: &Spread) -> bool {
    spread.least.fract() == 0.0 && spread.least == spread.most
}

/// A published number keeps its printed digits.
fn as_printed(value: f64) -> String {
    let text = value.to_string();
    if text.len() > 12 { short(value) } else { text }
}

/// Two digits behind the point are enough where the values are near each other.
fn ratio(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) {
        format!("{ratio:.2}")
    } else {
        short(ratio)
    }
}

/// The signs used in the tables, each with its meaning; `times` is the prefix of a ratio.
pub(super) fn signs<'a>(
    tables: impl IntoIterator<Item = &'a Table>,
    times: &str,
) -> Vec<(String, &'static str)> {
    let mut found = [false; 7];
    let values = tables.into_iter().flat_map(|table| &table.rows).flatten();
    for value in values {
        found[0] |= range(value).is_some();
        found[1] |= value.ratio().is_some();
        found[2] |= matches!(
            value,
            Value::Measured {
                extrapolated: true,
                ..
            }
        );
        found[3] |= matches!(
            value,
            Value::Published {
                from_plot: true,
                ..
            }
        );
        found[4] |= matches!(value, Value::Skipped { .. });
        found[5] |= matches!(value, Value::Below { .. });
        found[6] |= matches!(value, Value::None);
    }
    let meanings = [
        (
            "10.0..14.0".to_owned(),
            "the least and the greatest of several runs; the value itself is their median",
        ),
        (
            format!("{times}0.95"),
            "the value over the published one: below 1 it is less than published",
        ),
        (
            "~12.3".to_owned(),
            "less was made than the table is about, and the result scaled",
        ),
        (
            "†12.3".to_owned(),
            "read off a plot of the paper, not printed there",
        ),
        (
            "> 123 s".to_owned(),
            "not measured: a run would take about so long",
        ),
        (
            "< 12.3".to_owned(),
            "the difference of two measured ones, which is lost in what the runs differ by: above zero and below this; in a \
             plot a range from there down to the axis",
        ),
        (NONE.to_owned(), "no value"),
    ];
    let used = meanings
        .into_iter()
        .zip(found)
        .filter(|(_, found)| *found)
        .map(|(meaning, _)| meaning);
    used.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::samples;

    #[test]
    fn every_kind_of_value() {
        let lines: Vec<_> = samples::values()
            .iter()
            .map(|value| Words::of(value).on_one_line("x"))
            .collect();
        assert_eq!(
            lines,
            [
                "-",
                "a <b> & \"c\" | d",
                "0.73",
                "†12.3",
                "12.3 (10.0..14.0) x0.95",
                "~12.3",
                "1000 x1.25",
                "> 123 s",
                "< 12.3",
            ]
        );
    }

    #[test]
    fn a_published_value_has_the_digits_that_were_printed() {
        let printed = |value| {
            Words::of(&Value::Published {
                value,
                from_plot: false,
            })
            .value
        };
        assert_eq!(printed(128_308.0), "128308");
        assert_eq!(printed(1.0), "1");
        assert_eq!(printed(0.1), "0.1");
        assert_eq!(printed(1.0 / 3.0), "0.333");
    }

    #[test]
    fn ratios_far_from_one_keep_their_digits() {
        let digits = [0.95, 9.994, 0.0123, 1234.4].map(ratio);
        assert_eq!(digits, ["0.95", "9.99", "0.0123", "1234"]);
    }

    #[test]
    fn only_signs_that_are_used_are_explained() {
        assert!(signs([&samples::table(vec![vec![Value::text("~")]])], "x").is_empty());
        let all = samples::table(vec![samples::values()]);
        let all: Vec<_> = signs([&all], "x").into_iter().map(|sign| sign.0).collect();
        assert_eq!(
            all,
            [
                "10.0..14.0",
                "x0.95",
                "~12.3",
                "†12.3",
                "> 123 s",
                "< 12.3",
                "-"
            ]
        );
        let skipped = samples::table(vec![vec![Value::Skipped { seconds: 9.0 }]]);
        assert_eq!(signs([&skipped], "x").len(), 1);
    }
}
