//! Table 5: the communication of naive hashing, PSSZ and BaRK-OPRF, for 2^8 to 2^24 items.
//!
//! The paper gives formulas and figures computed from them, without the base OTs. We count the
//! bytes of both directions in the online phase of Table 3's runs, and show the formulas beside
//! them.
//!
//! Differences: a run sends at most a few kilobytes beyond the formulas; the default of this
//! program has other parameters (Table 2). Machine and link have no effect. `table5.json` has them
//! in full.

use crate::Result;
use crate::page::{Column, Section, Table};
use crate::results::Results;
use crate::runner::Cell;

use super::candidate::Candidate;
use super::published::{Published, Setting, sizes};
use super::tables::{self, Figures, Ours};
use super::{findings, plots};
use crate::experiment::{Experiment, Scope};

/// Table 5.
pub struct Table5;

impl Experiment for Table5 {
    fn name(&self) -> &'static str {
        "kkrt-table-5"
    }

    fn about(&self) -> String {
        "communication of PSI protocols".to_owned()
    }

    /// Over the faster link: bytes do not depend on it.
    fn cells(&self, scope: &Scope) -> Result<Vec<Cell>> {
        Ok(tables::cells(&Candidate::ALL, &[Setting::Lan], scope))
    }

    fn section(&self, scope: &Scope, results: &Results) -> Result<Section> {
        let published = published();
        let figures = Figures { scope, results };
        let mut section = published.section(self.name());
        section.tables.push(with_formulas(&published, figures));
        section
            .tables
            .push(tables::plans(&Candidate::ALL, &sizes(scope)));
        section
            .plots
            .push(plots::beside_published(&published, None, figures));
        section.lead_with(findings::beside_published(&published, figures));
        Ok(section)
    }
}

pub(super) fn published() -> Published {
    Published::read(include_str!("../../published/kkrt/table5.json"))
}

/// The counted values, and those of the formulas.
fn with_formulas(published: &Published, figures: Figures<'_>) -> Table {
    let mut table = tables::measured(published, None, figures);
    for ours in Ours::BOTH {
        let heading = format!("{}, formula", ours.name());
        table
            .columns
            .push(Column::numbers(&heading, &published.unit));
    }
    let lines = tables::lines(published, None, &sizes(figures.scope));
    for (row, line) in table.rows.iter_mut().zip(&lines) {
        row.extend(Ours::BOTH.map(|ours| line.traffic_by_formula(ours)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::published::SIZES;
    use super::*;

    /// Table 5 is its own formulas in units of 2^20 bytes, up to rounding either way.
    #[test]
    fn the_traffic_is_that_of_the_formulas() {
        let table = published();
        let lines = tables::lines(&table, None, &SIZES);
        assert_eq!(lines.len(), 25);
        for line in &lines {
            let formula = line.traffic_by_formula(Ours::Here).number();
            let off = formula.unwrap_or_default() - line.published;
            assert!(off.abs() < 0.0085, "{:?} 2^{}", line.row, line.log_items);
        }
    }

    /// The findings about the default's traffic.
    #[test]
    fn the_default_sends_less() {
        let share = |log_items: u32| {
            let [paper, default] =
                Candidate::BARK.map(|candidate| candidate.formula(1 << log_items));
            default / paper
        };
        let shares = SIZES.map(|log_items| format!("{:.2}", share(log_items)));
        assert_eq!(shares, ["0.56", "0.67", "0.75", "0.81", "0.88"]);
    }
}
