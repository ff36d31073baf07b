//! Table 2: the parameters of BaRK-OPRF: size of the stash, width of the code, bits of an output.
//!
//! The paper computes the last two and takes the stash from Pinkas, Schneider, Segev and Zohner. We
//! compute all of them from this program's PSI, with the paper's parameters and by default.
//!
//! Differences: the default has no stash. Machine and OT extension do not enter; both aim at a
//! failure of 2^-40.

use crate::Result;
use crate::page::{Section, Table};
use crate::results::Results;
use crate::runner::Cell;

use super::candidate::{Candidate, parameters};
use super::published::{Published, Quantity, SIZES};
use super::tables::{Line, Ours, columns, lines, plans};
use crate::experiment::{Experiment, Scope};

/// Table 2.
pub struct Table2;

impl Experiment for Table2 {
    fn name(&self) -> &'static str {
        "kkrt-table-2"
    }

    fn about(&self) -> String {
        "parameters of BaRK-OPRF; computed".to_owned()
    }

    fn cells(&self, _scope: &Scope) -> Result<Vec<Cell>> {
        Ok(Vec::new())
    }

    fn section(&self, _scope: &Scope, _results: &Results) -> Result<Section> {
        let published = published();
        Ok(Section {
            tables: vec![beside(&published), plans(&Candidate::BARK, &SIZES)],
            ..published.section(self.name())
        })
    }
}

pub(super) fn published() -> Published {
    Published::read(include_str!("../../published/kkrt/table2.json"))
}

/// All sizes: computing costs nothing.
fn beside(published: &Published) -> Table {
    let row = |line: &Line<'_>| {
        let mut row = line.head();
        row.extend(Ours::BOTH.map(|ours| line.computed(parameter(line, ours))));
        row
    };
    Table {
        caption: published.caption.clone(),
        columns: columns(&published.unit),
        rows: lines(published, None, &SIZES).iter().map(row).collect(),
        notes: Vec::new(),
    }
}

/// `None` where the table has no such value.
fn parameter(line: &Line<'_>, ours: Ours) -> Option<f64> {
    let Candidate::Bark(variant) = ours.beside(line.row)? else {
        return None;
    };
    let parameters = parameters(variant, 1 << line.log_items);
    match line.row.quantity {
        Quantity::Stash => Some(parameters.stash as f64),
        Quantity::CodeBits => Some(parameters.width as f64),
        Quantity::ValueBits => Some(8.0 * parameters.tag as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::page::Value;
    use volery_psi::Variant;

    use super::*;

    #[test]
    fn what_is_computed_is_what_was_published() {
        let table = published();
        let lines = lines(&table, None, &SIZES);
        assert_eq!(lines.len(), 15);
        for line in &lines {
            assert_eq!(parameter(line, Ours::Here), Some(line.published));
        }
        let section = beside(&table);
        assert!(
            section
                .rows
                .iter()
                .all(|row| row.len() == section.columns.len())
        );
        let numbers = section.rows.iter().flat_map(|row| &row[4..]);
        assert!(numbers.map(Value::number).all(|number| number.is_some()));
        // No stash is no part of a stash.
        assert!(matches!(
            section.rows[0][6],
            Value::Computed {
                published: None,
                ..
            }
        ));
        assert_eq!(section.rows[0][5].ratio(), Some(1.0));
    }

    /// The findings about the default.
    #[test]
    fn the_default_has_bins_instead_of_a_stash() {
        for log_items in SIZES {
            let [paper, default] = [Variant::KkrtPaper, Variant::Kkrt]
                .map(|variant| parameters(variant, 1 << log_items));
            assert_eq!((default.stash, default.sets()), (0, 3));
            assert_eq!(paper.sets(), 3 + paper.stash);
            let bins = default.bins as f64 / f64::from(1 << log_items);
            assert!((1.28..1.45).contains(&bins), "{bins}");
            let larger = default.bins as f64 / paper.bins as f64;
            assert!((1.065..1.205).contains(&larger), "{larger}");
        }
    }
}
