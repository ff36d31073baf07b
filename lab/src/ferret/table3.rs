//! Table 3 (section 7.2): correlated OT of both securities over six links, milliseconds for ten
//! million and bits per OT.
//!
//! The paper: its two protocols compared with ALSZ13, KOS15 and BCG+19a, 10^7 at a time by 5
//! threads of each of two machines, setup not included. We: the measurements of Table 1, and the
//! same without checks; the time is scaled from the outputs of a run to 10^7. IKNP is shown beside
//! ALSZ13, SoftSpokenOT with k = 1 beside KOS15; BCG+19a (dual LPN) is not implemented. The other
//! differences are in the data file.

use crate::Result;
use crate::measurement::Term;
use crate::page::Section;
use crate::results::Results;
use crate::runner::Cell;

use super::cells::Extent;
use super::measure::Parts;
use super::published::{Part, Published};
use super::tables::{Shown, Whole, bits, nanoseconds};
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

/// The number of correlated OTs of a time.
const TEN_MILLION: u64 = 10_000_000;

/// The printed figure of the paper.
pub(super) fn published() -> Published {
    Published::read(include_str!("../../published/ferret/table3.json"))
}

/// The part of a run shown in the table.
pub(super) fn shown() -> Shown {
    Shown {
        name: Table3.name(),
        published: published(),
        figure: milliseconds,
        traffic: Some(bits),
        scaled: Some(Whole::Of(TEN_MILLION)),
        plotted: Some("time"),
    }
}

/// Milliseconds for ten million.
fn milliseconds(parts: &Parts, part: Part) -> Option<Term> {
    Some(nanoseconds(parts, part)?.times(TEN_MILLION as f64 * 1e-6))
}

#[cfg(test)]
mod tests {
    use super::super::published::Protocol;
    use super::super::table1;
    use super::super::tests::{assert_digits, assert_whole};
    use super::*;

    #[test]
    fn the_data_file_is_whole() {
        assert_whole(&published(), "Table 3", [8, 6]);
    }

    /// As printed: semi-honest, then malicious.
    #[test]
    fn the_digits_are_the_papers() {
        let alsz = [128_308.0, 25704.0, 12885.0, 2627.0, 1345.0, 324.0];
        let bcg = [1942.0, 1961.0, 1953.0, 1966.0, 1971.0, 1966.0];
        let uni = [821.0, 306.0, 262.0, 264.0, 262.0, 261.0];
        let reg = [536.0, 215.0, 176.0, 159.0, 158.0, 160.0];
        let kos = [128_314.0, 25736.0, 12924.0, 2647.0, 1387.0, 344.0];
        let bcg_checked = [2113.0, 2099.0, 2091.0, 2106.0, 2083.0, 2095.0];
        let uni_checked = [864.0, 325.0, 326.0, 318.0, 317.0, 317.0];
        let reg_checked = [540.0, 220.0, 184.0, 182.0, 185.0, 185.0];
        assert_digits(
            &published(),
            &[
                (Protocol::Alsz13, Some(128.0), &alsz),
                (Protocol::Bcg19a, Some(0.1), &bcg),
                (Protocol::FerretUni, Some(0.73), &uni),
                (Protocol::FerretReg, Some(0.44), &reg),
                (Protocol::Kos15, Some(128.0), &kos),
                (Protocol::Bcg19a, Some(0.1), &bcg_checked),
                (Protocol::FerretUni, Some(0.73), &uni_checked),
                (Protocol::FerretReg, Some(0.44), &reg_checked),
            ],
        );
    }

    /// Checks of the findings: the additional time of malicious Ferret-Reg, and how near OT
    /// extension is to 128 bits at the link's rate.
    #[test]
    fn what_is_said_of_the_published_figures_is_so() {
        let published = published();
        let [checked, plain] = [7, 3].map(|row| &published.rows[row].values);
        let more = checked
            .iter()
            .zip(plain)
            .map(|(checked, plain)| 100.0 * (checked / plain - 1.0));
        let said = [
            0.7..0.8,
            2.3..2.4,
            4.5..4.6,
            14.4..17.2,
            14.4..17.2,
            14.4..17.2,
        ];
        for (percent, said) in more.zip(said) {
            assert!(said.contains(&percent), "{percent} is not in {said:?}");
        }
        for row in [0, 4].map(|row| &published.rows[row]) {
            for (rate, value) in published.columns.iter().zip(&row.values).take(5) {
                let sending = 128.0 * 1e7 / (f64::from(rate.megabits()) * 1e3);
                assert!((1.0..1.09).contains(&(value / sending)), "{row:?}");
            }
        }
    }

    /// Table 1 is a part of Table 3, in nanoseconds for one instead of milliseconds for ten
    /// million.
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
            setup_seconds: Term::measured(9.0),
            setup_bytes: 9,
            seconds: 1.0,
            bytes: 125_000,
            cots: 1_000_000,
            round: None,
        };
        let figure = milliseconds(&parts, Part::Total).expect("a total");
        assert!((figure.whole - 10_000.0).abs() < 1e-6);
        assert!((bits(&parts) - 1.0).abs() < 1e-12);
        assert_eq!(milliseconds(&parts, Part::Lpn), None);
    }
}
