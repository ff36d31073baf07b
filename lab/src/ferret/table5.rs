//! Table 5 (section 7.4): the parts of maliciously secure correlated OT over three links,
//! nanoseconds of one.
//!
//! The paper: SPCOT of all trees, LPN encoding, their sum, and the additional time of uniform
//! noise, by 5 threads of each of two machines. We: a main round in the middle of a stream, split
//! at the end of its messages; the outputs that it keeps for the next round are encoded before
//! that, and are counted as LPN at the same time each. The totals are those of Table 1. The other
//! differences are in the data file.

use crate::Result;
use crate::page::Section;
use crate::results::Results;
use crate::runner::Cell;

use super::cells::Extent;
use super::published::Published;
use super::tables::{Shown, Whole, nanoseconds};
use crate::experiment::{Experiment, Scope};

/// Table 5 of Ferret.
pub struct Table5;

impl Experiment for Table5 {
    fn name(&self) -> &'static str {
        "ferret-table-5"
    }

    fn about(&self) -> String {
        "Table 5 of Ferret: SPCOT and LPN apart".to_owned()
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
    Published::read(include_str!("../../published/ferret/table5.json"))
}

/// The part of a run shown in the table.
pub(super) fn shown() -> Shown {
    Shown {
        name: Table5.name(),
        published: published(),
        figure: nanoseconds,
        traffic: None,
        scaled: Some(Whole::Asked),
        plotted: None,
    }
}

#[cfg(test)]
mod tests {
    use crate::measurement::Term;

    use super::super::measure::{Parts, Round};
    use super::super::published::{Part, Protocol};
    use super::super::tests::{assert_digits, assert_whole};
    use super::*;

    #[test]
    fn the_data_file_is_whole() {
        assert_whole(&published(), "Table 5", [4, 3]);
    }

    /// As printed.
    #[test]
    fn the_digits_are_the_papers() {
        assert_digits(
            &published(),
            &[
                (Protocol::FerretReg, None, &[40.0, 9.0, 6.0]),
                (Protocol::FerretReg, None, &[12.0, 12.0, 11.0]),
                (Protocol::FerretReg, None, &[53.0, 22.0, 18.0]),
                (Protocol::FerretUni, None, &[32.0, 10.0, 14.0]),
            ],
        );
    }

    /// The parts are 1 ns short of the total, as the findings say; uniform noise is as in Table 1.
    #[test]
    fn the_published_parts_add_up() {
        let [trees, lpn, total, extra] = [0, 1, 2, 3].map(|row| published().rows[row].clone());
        let parts = [trees.part, lpn.part, total.part, extra.part];
        assert_eq!(parts, [Part::Trees, Part::Lpn, Part::Total, Part::Extra]);
        for link in 0..3 {
            let sum = trees.values[link] + lpn.values[link];
            assert!((sum + 1.0 - total.values[link]).abs() < 1e-9, "{link}");
        }
        let first = super::super::table1::published();
        for (link, extra) in extra.values.iter().enumerate() {
            let difference = first.rows[3].values[link] - first.rows[2].values[link];
            assert!((difference - extra).abs() <= 1.0, "{link}");
        }
    }

    #[test]
    fn each_part_is_of_its_own_round() {
        let parts = Parts {
            setup_seconds: Term::measured(9.0),
            setup_bytes: 9,
            seconds: 10.0,
            bytes: 9,
            cots: 100,
            round: Some(Round {
                trees_seconds: Term::measured(3.0),
                lpn_seconds: 1.0,
                cots: 50,
            }),
        };
        let figure = |part| nanoseconds(&parts, part).map(|value| (value.whole * 1e-6).round());
        let found = [Part::Trees, Part::Lpn, Part::Total].map(figure);
        assert_eq!(found, [Some(60.0), Some(20.0), Some(100.0)]);
    }
}
