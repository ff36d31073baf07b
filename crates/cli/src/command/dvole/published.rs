//! The figures of the paper: data files under `experiments/dvole`, one a figure, each with its source. The figures are plots;
//! the files hold what the text states of them.

use serde::{Deserialize, Serialize};

use crate::command::paper;

/// One figure of the paper. Its columns are links, or numbers of threads.
pub(super) type Published = paper::Published<String, PublishedRow>;

/// What the text states.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedRow {
    pub(super) quantity: Quantity,
    /// The ring here that stands for the paper's; none where it does not say.
    pub(super) ring: Option<String>,
    /// One for each of the columns.
    pub(super) values: Vec<f64>,
}

/// What a value is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Quantity {
    /// The length from which on the paper's vector OLE takes less time than Gilboa's multiplication.
    Crossing,
    /// How many times faster than one thread.
    SpeedUp,
}

/// The figures with their numbers.
const FIGURES: [(u8, &str); 3] = [
    (
        3,
        include_str!("../../../../../experiments/dvole/figure3.json"),
    ),
    (
        4,
        include_str!("../../../../../experiments/dvole/figure4.json"),
    ),
    (
        5,
        include_str!("../../../../../experiments/dvole/figure5.json"),
    ),
];

/// The number of a figure, from the command line.
pub(super) fn figure_number(text: &str) -> Result<u8, String> {
    let known = FIGURES.iter().map(|(number, _)| *number);
    let found = known.clone().find(|number| text.parse() == Ok(*number));
    found.ok_or_else(|| {
        let known: Vec<_> = known.map(|number| number.to_string()).collect();
        format!("the figures are {}", known.join(", "))
    })
}

/// The figure of that number.
///
/// # Panics
/// If there is none.
pub(super) fn published(number: u8) -> Published {
    Published::find(&FIGURES, number)
}

/// What the text states for a column, if it does.
pub(super) fn stated(
    number: u8,
    quantity: Quantity,
    ring: Option<&str>,
    column: &str,
) -> Option<f64> {
    let figure = published(number);
    let place = figure.columns.iter().position(|have| have == column)?;
    let row = figure.rows.iter().find(|row| {
        row.quantity == quantity && (row.ring.is_none() || row.ring.as_deref() == ring)
    })?;
    row.values.get(place).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_whole() {
        for (number, columns, rows) in [(3, 0, 0), (4, 2, 2), (5, 3, 1)] {
            let figure = published(number);
            assert_eq!(figure.table, number);
            assert_eq!((figure.columns.len(), figure.rows.len()), (columns, rows));
            assert!(figure.paper.contains("CCS 2019") && figure.section.starts_with("8.3"));
            for row in &figure.rows {
                assert_eq!(row.values.len(), columns);
                assert!(row.values.iter().all(|value| *value > 0.0));
            }
        }
    }

    #[test]
    fn the_text_of_the_paper() {
        let crossing = |ring, link| stated(4, Quantity::Crossing, Some(ring), link);
        assert_eq!(crossing("fp61", "loopback"), Some(300_000.0));
        assert_eq!(crossing("z64", "loopback"), Some(2_000_000.0));
        assert_eq!(crossing("fp61", "100Mbit"), Some(200_000.0));
        assert_eq!(crossing("z64", "100Mbit"), Some(400_000.0));
        assert_eq!(crossing("gf128", "100Mbit"), None);
        assert_eq!(crossing("z64", "10Mbit"), None);
        assert_eq!(stated(5, Quantity::SpeedUp, None, "32"), Some(9.8));
        assert_eq!(figure_number("4"), Ok(4));
        for bad in ["", "2", "3.1"] {
            assert_eq!(
                figure_number(bad),
                Err("the figures are 3, 4, 5".to_owned())
            );
        }
    }
}
