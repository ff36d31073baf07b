//! Where one line falls below another: the length from which on a protocol takes less than another.

use crate::measurement::Spread;
use crate::page::Value;

use super::show::rounded;
use crate::words::{Standing, few_runs};

/// A length, with the other's figure and ours.
pub(super) type Pair = (f64, Spread, Spread);

/// Where the medians of one line fall below those of another.
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
    /// From lengths in ascending order.
    pub(super) fn of(points: &[Pair]) -> Self {
        let lead = |(_, other, ours): &Pair| (other.median / ours.median).ln();
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
            Self::From(n) => Value::computed(rounded(n), published),
            Self::Everywhere(n) => Value::text(format!("below {n}")),
            Self::Nowhere(n) => Value::text(format!("above {n}")),
            Self::Unknown => Value::None,
        }
    }
}

/// The comparison of the times of `ours` with those of `other` at the lengths, in ascending order;
/// a lead counts only beyond the spread of the runs; `None` where nothing was compared.
pub(super) fn sentence(points: &[Pair], ours: &str, other: &str) -> Option<String> {
    let standing = |(_, theirs, our): &Pair| Standing::of(*our, *theirs);
    let (first, last) = (points.first()?.0, points.last()?.0);
    let all = |is| points.iter().all(|point| standing(point) == is);
    let not_ahead = points
        .iter()
        .rposition(|point| standing(point) != Standing::Less);
    let lead = points.get(not_ahead.map_or(0, |place| place + 1));
    let mut text = match (lead, Ahead::of(points)) {
        (Some(_), _) if not_ahead.is_none() => {
            format!("{ours} is ahead of {other} at all lengths measured, from {first} entries on")
        }
        (Some((n, ..)), Ahead::From(crossing)) => format!(
            "{ours} overtakes {other} at about {} entries, and is ahead beyond the spread of the runs from {n} on",
            rounded(crossing)
        ),
        (Some((n, ..)), _) => format!(
            "{ours} is ahead of {other} from {n} entries on, and not beyond the spread of the runs at all that are shorter"
        ),
        (None, _) if all(Standing::More) => {
            format!("{ours} is behind {other} up to {last} entries")
        }
        (None, _) if points.last().map(standing) == Some(Standing::More) => {
            format!("{ours} is behind {other} at {last} entries, the most measured")
        }
        (None, _) => {
            format!("{ours} takes about as long as {other} at {last} entries, the most measured")
        }
    };
    text += few_runs(points.iter().flat_map(|(_, other, ours)| [*other, *ours]));
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair((n, other, ours): (f64, f64, f64)) -> Pair {
        (n, Spread::exactly(other), Spread::exactly(ours))
    }

    #[test]
    fn where_one_line_falls_below_another() {
        // The other takes n, ours 100 and nothing for each.
        let points =
            |lengths: &[f64]| -> Vec<_> { lengths.iter().map(|n| pair((*n, *n, 100.0))).collect() };
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
        let lost = [(1.0, 2.0, 1.0), (2.0, 1.0, 2.0), (4.0, 2.0, 1.0)].map(pair);
        let Ahead::From(n) = Ahead::of(&lost) else {
            panic!("they cross");
        };
        assert!((n - 8.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(
            Ahead::From(31_950.0).value(Some(320_000.0)).ratio(),
            Some(0.1)
        );
        assert_eq!(Ahead::Everywhere(9.0).value(None), Value::text("below 9"));
        assert_eq!(Ahead::Nowhere(9.0).value(None), Value::text("above 9"));
        assert_eq!(Ahead::Unknown.value(Some(1.0)), Value::None);
    }

    #[test]
    fn in_words() {
        // Ours takes 100 whatever the length, plus or minus 10.
        let words = |times: &[f64]| {
            let ours = Spread::of(vec![90.0, 100.0, 110.0]).expect("there are values");
            let mut n = 500.0;
            let points: Vec<_> = times
                .iter()
                .map(|time| {
                    n *= 2.0;
                    (
                        n,
                        Spread::of(vec![*time; 3]).expect("there are values"),
                        ours,
                    )
                })
                .collect();
            sentence(&points, "VOLE", "Gilboa").expect("there is something")
        };
        assert_eq!(
            words(&[50.0, 200.0]),
            "VOLE overtakes Gilboa at about 1400 entries, and is ahead beyond the spread of the runs from 2000 on"
        );
        assert_eq!(
            words(&[50.0, 105.0, 400.0]),
            "VOLE overtakes Gilboa at about 1900 entries, and is ahead beyond the spread of the runs from 4000 on"
        );
        assert_eq!(
            words(&[105.0, 200.0]),
            "VOLE is ahead of Gilboa from 2000 entries on, and not beyond the spread of the runs at all that are shorter"
        );
        assert_eq!(
            words(&[150.0, 200.0]),
            "VOLE is ahead of Gilboa at all lengths measured, from 1000 entries on"
        );
        assert_eq!(
            words(&[50.0, 60.0]),
            "VOLE is behind Gilboa up to 2000 entries"
        );
        assert_eq!(
            words(&[105.0, 60.0]),
            "VOLE is behind Gilboa at 2000 entries, the most measured"
        );
        assert_eq!(
            words(&[60.0, 105.0]),
            "VOLE takes about as long as Gilboa at 2000 entries, the most measured"
        );
        assert_eq!(sentence(&[], "VOLE", "Gilboa"), None);
        let once = [pair((4096.0, 1.0, 2.0))];
        assert_eq!(
            sentence(&once, "VOLE", "Gilboa").as_deref(),
            Some("VOLE is behind Gilboa up to 4096 entries (one run)")
        );
    }
}
