//! Table 4: the offline and online phases of BaRK-OPRF, for 2^8 to 2^24 items, over a LAN and a
//! WAN.
//!
//! The paper's offline phase is the base OTs, their extension and the parts that can be expanded
//! before the items are known; ours is the base OTs and their extension to one for each column of
//! the code. The runs are those of Table 3.
//!
//! Differences: those of Table 3, and the boundary of the phases: nothing here that grows with the
//! number of items is expanded offline. `table4.json` has them in full.

use crate::Result;
use crate::page::Section;
use crate::results::Results;
use crate::runner::Cell;

use super::candidate::Candidate;
use super::published::{Published, Setting, sizes};
use super::tables::{self, Figures};
use super::{findings, plots};
use crate::experiment::{Experiment, Scope};

/// Table 4.
pub struct Table4;

impl Experiment for Table4 {
    fn name(&self) -> &'static str {
        "kkrt-table-4"
    }

    fn about(&self) -> String {
        "offline and online phases of BaRK-OPRF over a LAN and a WAN".to_owned()
    }

    fn cells(&self, scope: &Scope) -> Result<Vec<Cell>> {
        Ok(tables::cells(&Candidate::BARK, &Setting::ALL, scope))
    }

    fn section(&self, scope: &Scope, results: &Results) -> Result<Section> {
        let published = published();
        let figures = Figures { scope, results };
        let mut section = published.section(self.name());
        for setting in Setting::ALL {
            let over = Some(setting);
            section
                .tables
                .push(tables::measured(&published, over, figures));
            section
                .plots
                .push(plots::beside_published(&published, over, figures));
        }
        section
            .tables
            .push(tables::plans(&Candidate::BARK, &sizes(scope)));
        section.lead_with(findings::beside_published(&published, figures));
        Ok(section)
    }
}

pub(super) fn published() -> Published {
    Published::read(include_str!("../../published/kkrt/table4.json"))
}
