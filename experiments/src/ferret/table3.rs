//! Table 3 (section 7.2): correlated OT of both securities over six links, milliseconds of ten million and bits of one.
//!
//! The paper: its two protocols beside ALSZ13, KOS15 and BCG+19a, 10^7 at a time by 5 threads of each of two machines,
//! setup not included. We: the measurements of Table 1, and the same without checks; the time of what a run made is scaled to
//! 10^7. Beside ALSZ13 stands IKNP, beside KOS15 SoftSpokenOT with k = 1; BCG+19a (dual LPN) is not implemented. The
//! other differences are in the data file.

use volery_bench::Result;
use volery_bench::page::Section;
use volery_bench::results::Results;
use volery_bench::runner::Cell;

use super::cells::Extent;
use super::measure::Parts;
use super::published::{Part, Published};
use super::tables::{Shown, bits, nanoseconds};
use crate::experiment::{Experiment, Scope};

/// Table 3 of Ferret.
pub struct Table3;

impl Experiment for Table3 {
    fn name(&self) -> &'static str {
        "ferret-table-3"
    }

    fn about(&self) -> String {
        "Table 3 of Ferret: COT of both securities, time of ten million".to_owned()
    }

    fn cells(&self, scope: &Scope) -> Result<Vec<Cell>> {
        Extent::from(scope).cells(&published())
    }

    fn section(&self, scope: &Scope, results: &Results) -> Result<Section> {
        shown().section(&Extent::from(scope), results)
    }
}

/// What the paper printed.
pub(super) fn published() -> Published {
    Published::read(include_str!("../../ferret/table3.json"))
}

/// What of a run stands in the table.
pub(super) fn shown() -> Shown {
    Shown {
        name: Table3.name(),
        published: published(),
        figure: milliseconds,
        traffic: bits,
        scaled: true,
        plotted: Some("time"),
    }
}

/// Milliseconds of ten million.
fn milliseconds(parts: &Parts, part: Part) -> Option<f64> {
    Some(nanoseconds(parts, part)? * 1e7 * 1e-6)
}

#[cfg(test)]
mod tests {
    use super::super::table1;
    use super::super::tests::assert_whole;
    use super::*;

    #[test]
    fn the_data_file_is_whole() {
        assert_whole(&published(), "Table 3", [8, 6]);
    }

    /// Table 1 is a part of Table 3, in nanoseconds for one in place of milliseconds for ten million.
    #[test]
    fn the_tables_agree_with_each_other() {
        let (first, third) = (table1::published(), published());
        for row in &first.rows {
            let same = third
                .rows
                .iter()
                .find(|other| (other.protocol, other.security()) == (row.protocol, row.security()));
            let same = same.expect("a row of the same protocol");
            assert_eq!(row.traffic, same.traffic);
            for (value, rate) in row.values.iter().zip(&first.columns) {
                let column = third.columns.iter().position(|other| other == rate);
                let other = same.values[column.expect("a column of the same link")] / 10.0;
                assert!((value - other).abs() <= 1.0, "{row:?}: {value} and {other}");
            }
        }
    }

    #[test]
    fn a_second_for_a_million_are_ten_for_ten() {
        let parts = Parts {
            setup_seconds: 9.0,
            setup_bytes: 9,
            seconds: 1.0,
            bytes: 125_000,
            cots: 1_000_000,
            round: None,
        };
        let figure = milliseconds(&parts, Part::Total).expect("a total");
        assert!((figure - 10_000.0).abs() < 1e-6);
        assert!((bits(&parts) - 1.0).abs() < 1e-12);
        assert_eq!(milliseconds(&parts, Part::Lpn), None);
    }
}
