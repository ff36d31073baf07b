//! Table 4 (section 7.3): the one-time setup of correlated OT over six links, milliseconds and
//! megabytes.
//!
//! The paper: OT extension and one round of its setup set, by 5 threads of each of two machines;
//! for other protocols it states about 30 ms. We: from the open connection to the first output,
//! minus the time of a later round to its first output. So the public arrangement of uniform noise,
//! made once, counts as setup. The differences are in the data file.

use crate::Result;
use crate::measurement::Term;
use crate::page::Section;
use crate::results::Results;
use crate::runner::Cell;

use super::cells::Extent;
use super::measure::Parts;
use super::published::{Part, Published};
use super::tables::Shown;
use crate::experiment::{Experiment, Scope};

/// Table 4 of Ferret.
pub struct Table4;

impl Experiment for Table4 {
    fn name(&self) -> &'static str {
        "ferret-table-4"
    }

    fn about(&self) -> String {
        "Table 4 of Ferret: the one-time setup".to_owned()
    }

    fn cells(&self, scope: &Scope) -> Result<Vec<Cell>> {
        Extent::from(scope).cells(&published())
    }

    fn section(&self, scope: &Scope, results: &Results) -> Result<Section> {
        shown().section(&Extent::from(scope), results)
    }
}

/// The printed figure of the paper.
pub(super) fn published() -> Published {
    Published::read(include_str!("../../published/ferret/table4.json"))
}

/// The part of a run shown in the table.
pub(super) fn shown() -> Shown {
    Shown {
        name: Table4.name(),
        published: published(),
        figure: milliseconds,
        traffic: Some(megabytes),
        scaled: None,
        plotted: Some("setup"),
    }
}

/// Milliseconds of the setup, which has no parts.
fn milliseconds(parts: &Parts, _: Part) -> Option<Term> {
    Some(parts.setup_seconds.times(1e3))
}

/// Megabytes of the setup, both ways.
fn megabytes(parts: &Parts) -> f64 {
    parts.setup_bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::super::published::Protocol;
    use super::super::tests::{assert_digits, assert_whole};
    use super::*;

    #[test]
    fn the_data_file_is_whole() {
        assert_whole(&published(), "Table 4", [6, 6]);
    }

    /// As printed: semi-honest, then malicious. The caption has one figure for the other protocols,
    /// and no bytes.
    #[test]
    fn the_digits_are_the_papers() {
        let others = [30.0; 6];
        let uni = [1162.0, 482.0, 482.0, 481.0, 479.0, 478.0];
        let reg = [811.0, 183.0, 106.0, 41.0, 35.0, 30.0];
        let uni_checked = [1166.0, 486.0, 485.0, 484.0, 485.0, 484.0];
        let reg_checked = [818.0, 184.0, 107.0, 42.0, 37.0, 32.0];
        assert_digits(
            &published(),
            &[
                (Protocol::Alsz13, None, &others),
                (Protocol::FerretUni, Some(1.51), &uni),
                (Protocol::FerretReg, Some(1.13), &reg),
                (Protocol::Kos15, None, &others),
                (Protocol::FerretUni, Some(1.51), &uni_checked),
                (Protocol::FerretReg, Some(1.13), &reg_checked),
            ],
        );
    }

    #[test]
    fn setup_in_its_units() {
        let parts = Parts {
            setup_seconds: Term {
                whole: 0.75,
                less: 0.5,
            },
            setup_bytes: 1_500_000,
            seconds: 9.0,
            bytes: 9,
            cots: 9,
            round: None,
        };
        let figure = milliseconds(&parts, Part::Total).expect("a total");
        let [whole, less] = [figure.whole, figure.less].map(f64::round);
        assert!((whole, less) == (750.0, 500.0) && (megabytes(&parts) - 1.5).abs() < 1e-9);
    }
}
