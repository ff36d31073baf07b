//! Table 3: the running time of naive hashing, PSSZ and BaRK-OPRF, for 2^8 to 2^24 items, over a
//! LAN and a WAN.
//!
//! The paper ran both parties on one server, one thread each, over links made by `tc`, and counted
//! base OTs. We do the same over links made by this program, with our own programs for all three
//! protocols; BaRK-OPRF once with the paper's parameters and once with this program's defaults.
//!
//! Differences: another machine; endemic OTs over Ristretto255 instead of Naor-Pinkas, extended by
//! SoftSpoken OT instead of IKNP; a seed drawn by both parties, and an end confirmed by both, in
//! BaRK-OPRF. Security is the same: semi-honest, 128 bits, 2^-40. `table3.json` has them in full.

use crate::Result;
use crate::page::Section;
use crate::results::Results;
use crate::runner::Cell;

use super::candidate::Candidate;
use super::published::{Published, Setting, sizes};
use super::tables::{self, Figures};
use super::{findings, plots};
use crate::experiment::{Experiment, Scope};

/// Table 3.
pub struct Table3;

impl Experiment for Table3 {
    fn name(&self) -> &'static str {
        "kkrt-table-3"
    }

    fn about(&self) -> String {
        "running time of PSI protocols over a LAN and a WAN".to_owned()
    }

    fn cells(&self, scope: &Scope) -> Result<Vec<Cell>> {
        Ok(tables::cells(&Candidate::ALL, &Setting::ALL, scope))
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
            section
                .plots
                .extend(plots::all_of_ours(&published, setting, figures));
        }
        section
            .tables
            .push(tables::plans(&Candidate::ALL, &sizes(scope)));
        let mut findings = findings::beside_published(&published, figures);
        findings.extend(findings::beside_pssz(&published, figures));
        section.lead_with(findings);
        Ok(section)
    }
}

pub(super) fn published() -> Published {
    Published::read(include_str!("../../published/kkrt/table3.json"))
}
