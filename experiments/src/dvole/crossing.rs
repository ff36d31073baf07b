//! Where one line falls below another: the length from which on a protocol takes less than another.

use volery_bench::page::Value;

use super::show::rounded;

/// Where one line falls below another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ahead {
    /// At all lengths measured; this is the least.
    Everywhere(f64),
    /// From about this length on, between two that were measured.
    From(f64),
    /// At none; this is the greatest.
    Nowhere(f64),
    /// Nothing to compare.
    Unknown,
}

impl Ahead {
    /// From lengths in ascending order, each with the other's value and ours.
    pub(super) fn of(points: &[(f64, f64, f64)]) -> Self {
        let lead = |(_, other, ours): &(f64, f64, f64)| (other / ours).ln();
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Self::Unknown;
        };
        if lead(last) <= 0.0 {
            return Self::Nowhere(last.0);
        }
        let behind = points.iter().rposition(|point| lead(point) <= 0.0);
        let Some(behind) = behind else {
            return Self::Everywhere(first.0);
        };
        // Straight lines between logarithms.
        let [left, right] = [&points[behind], &points[behind + 1]];
        let part = -lead(left) / (lead(right) - lead(left));
        Self::From((left.0.ln() + part * (right.0.ln() - left.0.ln())).exp())
    }

    /// For a table.
    pub(super) fn value(self, published: Option<f64>) -> Value {
        match self {
            Self::From(n) => Value::Computed {
                value: rounded(n),
                published,
            },
            Self::Everywhere(n) => Value::text(format!("below {n}")),
            Self::Nowhere(n) => Value::text(format!("above {n}")),
            Self::Unknown => Value::None,
        }
    }

    /// What it says of `ours` against `other`; nothing where nothing was compared.
    pub(super) fn sentence(self, ours: &str, other: &str) -> Option<String> {
        Some(match self {
            Self::Everywhere(n) => {
                format!("{ours} is ahead of {other} at all lengths measured, from {n} entries on")
            }
            Self::From(n) => format!("{ours} overtakes {other} at {} entries", rounded(n)),
            Self::Nowhere(n) => format!("{ours} is behind {other} up to {n} entries"),
            Self::Unknown => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_one_line_falls_below_another() {
        // The other takes n, ours 100 and nothing for each.
        let points =
            |lengths: &[f64]| -> Vec<_> { lengths.iter().map(|n| (*n, *n, 100.0)).collect() };
        let Ahead::From(n) = Ahead::of(&points(&[10.0, 50.0, 400.0, 1000.0])) else {
            panic!("they cross");
        };
        assert!((n - 100.0).abs() < 1e-6, "{n}");
        assert_eq!(
            Ahead::of(&points(&[200.0, 300.0])),
            Ahead::Everywhere(200.0)
        );
        assert_eq!(Ahead::of(&points(&[20.0, 30.0])), Ahead::Nowhere(30.0));
        assert_eq!(Ahead::of(&points(&[100.0])), Ahead::Nowhere(100.0));
        assert_eq!(Ahead::of(&[]), Ahead::Unknown);
        // A lead that is lost again does not count.
        let lost = [(1.0, 2.0, 1.0), (2.0, 1.0, 2.0), (4.0, 2.0, 1.0)];
        let Ahead::From(n) = Ahead::of(&lost) else {
            panic!("they cross");
        };
        assert!((n - 8.0_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn in_words() {
        let sentence = |ahead: Ahead| ahead.sentence("VOLE", "Gilboa");
        assert_eq!(
            sentence(Ahead::From(31_950.0)).as_deref(),
            Some("VOLE overtakes Gilboa at 32000 entries")
        );
        assert_eq!(
            sentence(Ahead::Nowhere(4096.0)).as_deref(),
            Some("VOLE is behind Gilboa up to 4096 entries")
        );
        let everywhere = sentence(Ahead::Everywhere(4096.0)).expect("there is something");
        assert!(everywhere.contains("from 4096 entries on"));
        assert_eq!(sentence(Ahead::Unknown), None);
        assert_eq!(
            Ahead::From(31_950.0).value(Some(320_000.0)).ratio(),
            Some(0.1)
        );
        assert_eq!(Ahead::Everywhere(9.0).value(None), Value::text("below 9"));
        assert_eq!(Ahead::Nowhere(9.0).value(None), Value::text("above 9"));
        assert_eq!(Ahead::Unknown.value(Some(1.0)), Value::None);
    }
}
