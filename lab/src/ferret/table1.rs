//! Table 1 (section 1.1): correlated OT with malicious security over five links, nanoseconds and
//! bits per OT.
//!
//! The paper: its two protocols compared with KOS15 and BCG+19a, 10^7 at a time by 5 threads of
//! each of two machines, setup not included. We: whole rounds in the middle of an unbounded stream,
//! enough for n outputs, drawn without a pause, both parties on one machine. SoftSpokenOT with k =
//! 1, which sends 1 bit less, is shown beside KOS15; BCG+19a (dual LPN) is not implemented. The
//! other differences are in the data file.

use crate::Result;
use crate::page::Section;
use crate::results::Results;
use crate::runner::Cell;

use super::cells::Extent;
use super::published::Published;
use super::tables::{Shown, Whole, bits, nanoseconds};
use crate::experiment::{Experiment, Scope};

/// Table 1 of Ferret.
pub struct Table1;

impl Experiment for Table1 {
    fn name(&self) -> &'static str {
        "ferret-table-1"
    }

    fn about(&self) -> String {
        "Table 1 of Ferret: malicious COT, time and bits of one".to_owned()
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
    Published::read(include_str!("../../published/ferret/table1.json"))
}

/// The part of a run shown in the table.
pub(super) fn shown() -> Shown {
    Shown {
        name: Table1.name(),
        published: published(),
        figure: nanoseconds,
        traffic: Some(bits),
        scaled: Some(Whole::Asked),
        plotted: Some("time of a COT"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::published::Protocol;
    use super::super::tests::{assert_digits, assert_whole};
    use super::*;

    #[test]
    fn the_data_file_is_whole() {
        assert_whole(&published(), "Table 1", [4, 5]);
        let security = |row: &super::super::published::PublishedRow| row.security().to_string();
        assert!(
            published()
                .rows
                .iter()
                .all(|row| security(row) == "malicious")
        );
    }

    /// As printed.
    #[test]
    fn the_digits_are_the_papers() {
        let kos = [12831.0, 2574.0, 1292.0, 139.0, 34.0];
        assert_digits(
            &published(),
            &[
                (Protocol::Kos15, Some(128.0), &kos),
                (
                    Protocol::Bcg19a,
                    Some(0.1),
                    &[211.0, 210.0, 209.0, 208.0, 209.0],
                ),
                (
                    Protocol::FerretReg,
                    Some(0.44),
                    &[54.0, 22.0, 18.0, 19.0, 19.0],
                ),
                (
                    Protocol::FerretUni,
                    Some(0.73),
                    &[86.0, 33.0, 33.0, 32.0, 32.0],
                ),
            ],
        );
    }
}
