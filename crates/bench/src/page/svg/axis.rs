//! Where values lie along an axis, and which of them have a label.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::page::Scale;
use crate::page::value::grouped;

/// A value with a label: a few digits, and a power of ten that they are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    digits: i64,
    power: i32,
}

impl Decimal {
    /// Rounded once only, unlike digits times a power below one.
    #[expect(clippy::cast_precision_loss, reason = "they are few digits")]
    fn value(self) -> f64 {
        let power = 10_f64.powi(self.power.abs());
        let digits = self.digits as f64;
        if self.power < 0 {
            digits / power
        } else {
            digits * power
        }
    }

    /// `0.05`, `20 000`.
    fn plain(self) -> String {
        if self.digits == 0 {
            return "0".to_owned();
        }
        let places = usize::try_from(-self.power).unwrap_or(0);
        grouped(&format!("{:.places$}", self.value()))
    }

    /// `10⁶`, `2×10⁶`.
    fn scientific(self) -> String {
        let text = format!("{:e}", self.value());
        match text.split_once('e') {
            Some(("0", _)) => "0".to_owned(),
            Some(("1", power)) => format!("10{}", superscript(power)),
            Some((digits, power)) => format!("{digits}×10{}", superscript(power)),
            None => text,
        }
    }
}

/// Of digits and a sign.
fn superscript(number: &str) -> String {
    let raised = |character| match character {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '0' | '4'..='9' => {
            char::from_u32('⁰' as u32 + (character as u32 - '0' as u32)).unwrap_or(character)
        }
        other => other,
    };
    number.chars().map(raised).collect()
}

/// An axis with a range and with places that have a label.
#[derive(Clone, Debug)]
pub(super) struct Along {
    scale: Scale,
    /// What is on it, as values, not logarithms.
    range: Range<f64>,
    /// Values with their labels.
    major: Vec<(f64, String)>,
    /// Values with a lighter line of the grid.
    minor: Vec<f64>,
}

impl Along {
    /// The axis that all values are on, with at most so many labels; a linear one begins at zero
    /// where `from_zero`, nothing is below, and the values take the half of it at least. None if
    /// there are no values on it.
    pub(super) fn of(
        scale: Scale,
        values: impl Iterator<Item = f64>,
        labels: usize,
        from_zero: bool,
    ) -> Option<Self> {
        let values: Vec<_> = values.filter(|value| can_be_on(scale, *value)).collect();
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().reduce(f64::max)?;
        Some(match scale {
            Scale::Linear => {
                let whole = values.iter().all(|value| value.fract() == 0.0);
                Self::linear(least, most, labels, from_zero, whole)
            }
            Scale::Log => Self::log(least, most, labels),
            Scale::Log2 => Self::log2(least, most, labels),
        })
    }

    fn linear(least: f64, most: f64, labels: usize, from_zero: bool, whole: bool) -> Self {
        let from_zero = from_zero && least >= 0.0 && least <= most / 2.0;
        let low = if from_zero { 0.0 } else { least };
        let mut span = most - low;
        if span <= low.abs().max(most.abs()) * 1e-9 {
            span = if low == 0.0 { 1.0 } else { low.abs() };
        }
        let margin = span * MARGIN;
        let range = (if from_zero { 0.0 } else { low - margin })..low + span + margin;
        let major = steps(&range, labels, whole);
        let plain = major.iter().all(|tick| tick.plain().chars().count() <= 9);
        Self {
            scale: Scale::Linear,
            range,
            major: label(&major, plain),
            minor: Vec::new(),
        }
    }

    fn log(least: f64, most: f64, labels: usize) -> Self {
        // Values that are nearly the same shall look so.
        let middle = f64::midpoint(least.log10(), most.log10());
        let half = ((most / least).log10() * (0.5 + MARGIN)).max(0.5 * 2_f64.log10());
        let range = 10_f64.powf(middle - half)..10_f64.powf(middle + half);
        let decades = decimals(&range, &[1]);
        let fine = decimals(&range, &[1, 2, 5]);
        let major = if decades.len() > 2 {
            thinned(&decades, labels)
        } else if (2..=labels).contains(&fine.len()) {
            fine
        } else if decades.len() == 2 {
            decades
        } else {
            steps(&range, labels, false)
        };
        let plain = major
            .iter()
            .all(|tick| (0.000_99..100_001.0).contains(&tick.value()));
        let all: &[i64] = &[1, 2, 3, 4, 5, 6, 7, 8, 9];
        let minor = decimals(&range, all).into_iter().map(Decimal::value);
        Self {
            scale: Scale::Log,
            major: label(&major, plain),
            minor: minor.collect(),
            range,
        }
    }

    fn log2(least: f64, most: f64, labels: usize) -> Self {
        let margin = (most / least).log2() * MARGIN;
        let (mut low, mut high) = (least.log2() - margin, most.log2() + margin);
        if high.floor() - low.ceil() < 1.0 {
            (low, high) = (
                low.floor() - MARGIN,
                (high.ceil()).max(low.floor() + 1.0) + MARGIN,
            );
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 1074 in size")]
        let powers: Vec<i32> = (low.ceil() as i32..=high.floor() as i32).collect();
        let major = thinned(&powers, labels);
        let plain = major.iter().all(|power| (0..=9).contains(power));
        let major = major.into_iter().map(|power| {
            let value = 2_f64.powi(power);
            let text = if plain {
                value.to_string()
            } else {
                format!("2{}", superscript(&power.to_string()))
            };
            (value, text)
        });
        Self {
            scale: Scale::Log2,
            range: low.exp2()..high.exp2(),
            major: major.collect(),
            minor: powers.iter().map(|power| 2_f64.powi(*power)).collect(),
        }
    }

    /// The labels.
    pub(super) fn labels(&self) -> impl Iterator<Item = &str> {
        self.major.iter().map(|(_, label)| label.as_str())
    }

    /// Whether there is a place for it.
    pub(super) fn has(&self, value: f64) -> bool {
        can_be_on(self.scale, value)
    }

    /// The value at its lower end.
    pub(super) const fn lowest(&self) -> f64 {
        self.range.start
    }

    /// From 0 to 1 where a value is on the axis.
    fn place(&self, value: f64) -> f64 {
        let along = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Log | Scale::Log2 => value.ln(),
        };
        let (low, high) = (along(self.range.start), along(self.range.end));
        (along(value) - low) / (high - low)
    }
}

/// Of the length of the axis, on each side.
const MARGIN: f64 = 0.04;

/// Whether there is a place for it.
pub(super) fn can_be_on(scale: Scale, value: f64) -> bool {
    value.is_finite() && (scale == Scale::Linear || value > 0.0)
}

fn label(ticks: &[Decimal], plain: bool) -> Vec<(f64, String)> {
    let text = |tick: Decimal| {
        if plain {
            tick.plain()
        } else {
            tick.scientific()
        }
    };
    ticks
        .iter()
        .map(|tick| (tick.value(), text(*tick)))
        .collect()
}

/// The numbers in the range that have one of the digits and otherwise zeros only.
fn decimals(range: &Range<f64>, digits: &[i64]) -> Vec<Decimal> {
    #[expect(clippy::cast_possible_truncation, reason = "at most 324 in size")]
    let powers = range.start.log10().floor() as i32..=range.end.log10().ceil() as i32;
    powers
        .flat_map(|power| digits.iter().map(move |&digits| Decimal { digits, power }))
        .filter(|decimal| range.contains(&decimal.value()))
        .collect()
}

/// At most so many, those whose exponents are multiples of the same step; two at least where there are two.
fn thinned<T: Copy + Numbered>(all: &[T], most: usize) -> Vec<T> {
    let mut step = 1;
    loop {
        let kept = all.iter().copied();
        let kept: Vec<T> = kept.filter(|tick| tick.number() % step == 0).collect();
        if kept.len() <= most.max(2) {
            return if kept.len() < 2 { ends(all) } else { kept };
        }
        step += 1;
    }
}

/// The first and the last.
fn ends<T: Copy>(all: &[T]) -> Vec<T> {
    all.first().into_iter().chain(all.last()).copied().collect()
}

/// A power of two or of ten.
trait Numbered {
    /// The exponent.
    fn number(&self) -> i32;
}

impl Numbered for i32 {
    fn number(&self) -> i32 {
        *self
    }
}

impl Numbered for Decimal {
    fn number(&self) -> i32 {
        self.power
    }
}

/// The multiples of a round number in the range, at most so many.
fn steps(range: &Range<f64>, most: usize, whole: bool) -> Vec<Decimal> {
    let span = range.end - range.start;
    #[expect(clippy::cast_possible_truncation, reason = "at most 324 in size")]
    let first = (span.log10().floor() as i32) - 2;
    let first = if whole { first.max(0) } else { first };
    let candidates = (first..first + 5)
        .flat_map(|power| [1, 2, 5].map(|digits| Decimal { digits, power }))
        .map(|step| multiples(range, step));
    let mut fitting = candidates.filter(|ticks| ticks.len() <= most.max(2));
    fitting.next().unwrap_or_default()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "of the size of the range over the step"
)]
fn multiples(range: &Range<f64>, step: Decimal) -> Vec<Decimal> {
    let size = step.value();
    let times = (range.start / size).ceil() as i64..=(range.end / size).floor() as i64;
    let multiple = |times: i64| Decimal {
        digits: times * step.digits,
        ..step
    };
    times.take(1000).map(multiple).collect()
}

impl Ranged for Along {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    #[expect(clippy::cast_possible_truncation, reason = "places in a picture")]
    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let (low, high) = (f64::from(limit.0), f64::from(limit.1));
        (low + (high - low) * self.place(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            self.minor.clone()
        } else {
            self.major.iter().map(|(value, _)| *value).collect()
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Along {
    fn format_ext(&self, value: &f64) -> String {
        let labelled = self.major.iter().find(|(major, _)| major == value);
        labelled.map_or_else(String::new, |(_, label)| label.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64]) -> Vec<String> {
        let along = Along::of(scale, values.iter().copied(), 8, true).expect("there are values");
        for value in values {
            assert!(along.range.contains(value), "{value} on {along:?}");
        }
        along.labels().map(str::to_owned).collect()
    }

    #[test]
    fn powers_of_two() {
        let from_12_to_22 = [4096.0, 4_194_304.0];
        assert_eq!(
            labels(Scale::Log2, &from_12_to_22),
            ["2¹²", "2¹⁴", "2¹⁶", "2¹⁸", "2²⁰", "2²²"]
        );
        assert_eq!(labels(Scale::Log2, &[1.0, 8.0]), ["1", "2", "4", "8"]);
        assert_eq!(labels(Scale::Log2, &[0.3]), ["2⁻²", "2⁻¹"]);
        assert_eq!(labels(Scale::Log2, &[1000.0]), ["2⁹", "2¹⁰"]);
        assert_eq!(labels(Scale::Log2, &[1024.0]).len(), 2);
        assert_eq!(labels(Scale::Log2, &[5.0, 7.0]).len(), 2);
    }

    #[test]
    fn powers_of_ten() {
        assert_eq!(
            labels(Scale::Log, &[0.02, 30.0]),
            ["0.1", "1", "10"],
            "0.01 and 100 are outside"
        );
        assert_eq!(
            labels(Scale::Log, &[5.0, 3e6]),
            ["10¹", "10²", "10³", "10⁴", "10⁵", "10⁶"]
        );
        assert_eq!(
            labels(Scale::Log, &[9.0, 110_000.0]),
            ["10", "100", "1000", "10\u{2009}000", "100\u{2009}000"]
        );
        assert_eq!(labels(Scale::Log, &[1e-9, 1e9]).len(), 7);
    }

    #[test]
    fn less_than_a_decade_has_two_labels_at_least() {
        for (least, most) in [
            (11.0, 15.0),
            (3.0, 4.0),
            (1.0, 1.0),
            (0.999, 1.001),
            (12.0, 80.0),
            (7e-9, 7.1e-9),
            (1.1e12, 1.2e12),
        ] {
            for scale in [Scale::Log, Scale::Log2] {
                let labels = labels(scale, &[least, most]);
                let count = labels.len();
                assert!((2..=8).contains(&count), "{least} to {most}: {labels:?}");
                assert!(labels.iter().all(|label| label.chars().count() < 10));
            }
        }
        assert_eq!(labels(Scale::Log, &[12.0, 80.0]), ["20", "50"]);
    }

    #[test]
    fn linear_axes() {
        let threads = Along::of(Scale::Linear, [1.0, 2.0, 4.0].into_iter(), 8, false);
        let threads = threads.expect("there are values");
        assert_eq!(threads.labels().collect::<Vec<_>>(), ["1", "2", "3", "4"]);
        assert_eq!(
            labels(Scale::Linear, &[0.31, 1.1]),
            ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(labels(Scale::Linear, &[-3.0, 2.5])[0], "-3");
        assert_eq!(
            labels(Scale::Linear, &[0.0, 4e6])[1],
            "1\u{2009}000\u{2009}000"
        );
        assert_eq!(labels(Scale::Linear, &[0.0, 3e11])[1], "5×10¹⁰");
        for single in [0.0, 7.0, -7.0, 1e-12] {
            assert!(labels(Scale::Linear, &[single]).len() >= 2, "{single}");
        }
    }

    #[test]
    fn what_has_no_logarithm_is_left_out() {
        for scale in [Scale::Log, Scale::Log2] {
            let values = [-1.0, 0.0, f64::NAN, f64::INFINITY];
            assert!(Along::of(scale, values.into_iter(), 8, false).is_none());
            let values = [-1.0, 0.0, 4.0, 16.0];
            let along = Along::of(scale, values.into_iter(), 8, false).expect("two are on it");
            assert!(along.range.start > 2.0, "{along:?}");
        }
    }

    #[test]
    fn places() {
        let along = Along::of(Scale::Log, [1.0, 100.0].into_iter(), 8, false);
        let along = along.expect("there are values");
        assert_eq!(along.map(&10.0, (0, 100)), 50);
        assert_eq!(along.map(&along.range.start, (100, 0)), 100);
        assert_eq!(along.map(&along.range.end, (100, 0)), 0);
    }
}
