//! Figure 3: one point function, all of its values at both parties, by the size of the domain.
//!
//! The paper: its protocol for an index that one party knows (Protocol 3, GGM trees), against the
//! distributed point function of FLORAM, whose index neither party knows; one thread, one machine
//! for each party.
//!
//! We: the same three protocols, ours on a half-tree and on a GGM tree, over loopback in one
//! process, timed after the setup of the OT extension.
//!
//! Differences: SoftSpokenOT in place of EMP's OT extension; FLORAM's garbled circuits are OTs
//! here; its last level is folded into the one above; the field has 61 bits in place of 60.
//! `experiments/dvole/figure3.json` has all of it.

use crate::measurement::{Key, Spread};
use crate::page::{Axis, Column, Plot, Scale, Section, Table, Value};
use crate::results::Results;
use crate::runner::Cell;
use crate::{Link, Result};

use super::candidate::{Candidate, Case, RingName};
use super::show::{Shown, ratio};
use super::stated::{Figure, Quantity, sources, stated};
use crate::experiment::{Experiment, Scope, Size};
use crate::words::{Standing, few_runs, range, two_digits};

/// Figure 3.
pub struct Figure3;

/// The statements of the text.
pub(super) fn figure() -> Figure {
    Figure::read(include_str!("../../published/dvole/figure3.json"))
}

/// Sizes of the domain, as powers of two.
fn logs(size: Size) -> Vec<u32> {
    match size {
        Size::Full => (14..=24).collect(),
        Size::Quick => vec![14, 17, 20],
    }
}

fn case(candidate: Candidate, ring: RingName, log: u32, scope: &Scope) -> Case {
    Case {
        candidate,
        ring,
        n: 1 << log,
        link: Link::Loopback,
        threads: scope.threads,
    }
}

impl Experiment for Figure3 {
    fn name(&self) -> &'static str {
        "dvole-figure-3"
    }

    fn about(&self) -> String {
        "One point function by the size of its domain: an index that a party knows, against one that nobody knows".to_owned()
    }

    fn cells(&self, scope: &Scope) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for ring in RingName::ALL {
            for log in logs(scope.size) {
                for candidate in Candidate::POINT_FUNCTIONS {
                    cells.push(case(candidate, ring, log, scope).cell(scope.timeout)?);
                }
            }
        }
        Ok(cells)
    }

    fn section(&self, scope: &Scope, results: &Results) -> Result<Section> {
        let figure = figure();
        let mut section = figure.section(self.name());
        let of_rings = || {
            RingName::ALL.map(|ring| OfRing {
                ring,
                scope,
                results,
            })
        };
        let generated = of_rings().into_iter().filter_map(|of| of.finding(&figure));
        section.lead_with(generated.collect());
        for of in of_rings() {
            section
                .tables
                .extend([of.times(&figure.unit), of.traffic()]);
            section.plots.extend(of.plot(&figure));
        }
        // The text does not name the ring: once is enough.
        section.tables[0].notes = sources(&figure, &[Quantity::LeadAtMost]);
        Ok(section)
    }
}

/// The values shown for a ring.
#[derive(Clone, Copy)]
struct OfRing<'a> {
    ring: RingName,
    scope: &'a Scope,
    results: &'a Results,
}

impl OfRing<'_> {
    fn key(&self, candidate: Candidate, log: u32) -> Key {
        case(candidate, self.ring, log, self.scope).key()
    }

    /// The time over that of the half-tree.
    fn over_half(&self, candidate: Candidate, log: u32) -> Option<f64> {
        let time = |candidate| Shown::Milliseconds.median(self.results, &self.key(candidate, log));
        Some(time(candidate)? / time(Candidate::Half)?)
    }

    fn times(&self, unit: &str) -> Table {
        let mut columns = vec![Column::numbers("values", "")];
        for candidate in Candidate::POINT_FUNCTIONS {
            columns.push(Column::numbers(candidate.title(), unit));
        }
        let others = [Candidate::Ggm, Candidate::Dpf];
        columns.push(Column::numbers("GGM tree / ours", ""));
        columns.push(Column::numbers("FLORAM's / ours", ""));
        let row = |log: u32| {
            let mut row = vec![Value::text(format!("2^{log}"))];
            for candidate in Candidate::POINT_FUNCTIONS {
                row.push(Shown::Milliseconds.value(self.results, &self.key(candidate, log)));
            }
            for other in others {
                row.push(ratio(self.over_half(other, log), Some(1.0), None));
            }
            row
        };
        Table {
            caption: format!("Time over {}", self.ring.name()),
            columns,
            rows: logs(self.scope.size).into_iter().map(row).collect(),
            notes: Vec::new(),
        }
    }

    fn traffic(&self) -> Table {
        let mut columns = vec![Column::numbers("values", "")];
        let kinds = [(Shown::Bytes, "bytes"), (Shown::Messages, "messages")];
        for (_, unit) in kinds {
            for candidate in Candidate::POINT_FUNCTIONS {
                columns.push(Column::numbers(candidate.title(), unit));
            }
        }
        let row = |log: u32| {
            let mut row = vec![Value::text(format!("2^{log}"))];
            for (shown, _) in kinds {
                for candidate in Candidate::POINT_FUNCTIONS {
                    row.push(shown.value(self.results, &self.key(candidate, log)));
                }
            }
            row
        };
        Table {
            caption: format!("Traffic over {}, both ways", self.ring.name()),
            columns,
            rows: logs(self.scope.size).into_iter().map(row).collect(),
            notes: Vec::new(),
        }
    }

    /// `None` if nothing was measured.
    fn plot(&self, figure: &Figure) -> Option<Plot> {
        let series = |candidate: Candidate| {
            let logs = logs(self.scope.size).into_iter();
            let keys = logs.map(|log| (f64::from(log).exp2(), self.key(candidate, log)));
            Shown::Milliseconds.series(candidate.title(), self.results, keys)
        };
        let series: Vec<_> = Candidate::POINT_FUNCTIONS
            .into_iter()
            .filter_map(series)
            .collect();
        (!series.is_empty()).then(|| Plot {
            title: format!("One point function over {}", self.ring.name()),
            x: Axis {
                label: "values of the function".to_owned(),
                unit: String::new(),
                scale: Scale::Log2,
            },
            y: Axis {
                label: "time".to_owned(),
                unit: figure.unit.clone(),
                scale: Scale::Log,
            },
            series,
            marks: Vec::new(),
        })
    }

    /// The half-tree and the distributed point function at all sizes at which both were measured.
    fn pairs(&self) -> Vec<(u32, Spread, Spread)> {
        let spread = |candidate, log| {
            let key = self.key(candidate, log);
            Shown::Milliseconds.spread(self.results, &key)
        };
        let pair = |log| {
            Some((
                log,
                spread(Candidate::Half, log)?,
                spread(Candidate::Dpf, log)?,
            ))
        };
        logs(self.scope.size).into_iter().filter_map(pair).collect()
    }

    fn finding(&self, figure: &Figure) -> Option<String> {
        let pairs = self.pairs();
        let times = pairs.iter().map(|(_, ours, dpf)| dpf.median / ours.median);
        let ring = self.ring.name();
        let mut finding = format!(
            "{ring}: SPFSS is {} times as fast as the distributed point function",
            range(times)?
        );
        let (first, last) = (pairs.first()?.0, pairs.last()?.0);
        finding += &if first == last {
            format!(" at 2^{first} values")
        } else {
            format!(", from 2^{first} to 2^{last} values")
        };
        let same = pairs
            .iter()
            .filter(|(_, ours, dpf)| Standing::of(*ours, *dpf) == Standing::Same);
        let same: Vec<_> = same.map(|(log, ..)| format!("2^{log}")).collect();
        if !same.is_empty() {
            finding += &format!(", without a difference at {}", same.join(", "));
        }
        finding += few_runs(pairs.iter().flat_map(|(_, ours, dpf)| [*ours, *dpf]));
        if let Some(most) = stated(figure, Quantity::LeadAtMost, ring, "loopback") {
            let most = two_digits(most);
            finding += &format!("; the paper: up to {most} times, faster at all sizes");
        }
        Some(finding + ".")
    }
}
