//! Table 1: the cost of one instance of the OPRF in PSSZ and BaRK-OPRF, in bits of the OT matrix.
//!
//! The paper computes it: `32*l*` bits for PSSZ with the effective length `l* = l - log2 n`, the
//! width of the code for BaRK-OPRF. We do the same, and also compute the bits of the whole
//! 1-out-of-256 OTs of a run, and the choice of the hybrid of section 6.3 by either count.
//!
//! Differences: the table counts fractions of an OT. Machine and security level do not enter.

use crate::Result;
use crate::page::{Column, Section, Table, Value};
use crate::results::Results;
use crate::runner::Cell;
use volery_psi::Variant;

use super::candidate::{Candidate, parameters};
use super::published::{Protocol, Published, Quantity, SIZES};
use super::tables::{Line, Ours, columns, lines};
use crate::baselines::hybrid::{self, Choice, Cost};
use crate::experiment::{Experiment, Scope};

/// Table 1.
pub struct Table1;

impl Experiment for Table1 {
    fn name(&self) -> &'static str {
        "kkrt-table-1"
    }

    fn about(&self) -> String {
        "OT cost of one OPRF instance of PSSZ and of BaRK-OPRF; computed".to_owned()
    }

    fn cells(&self, _scope: &Scope) -> Result<Vec<Cell>> {
        Ok(Vec::new())
    }

    fn section(&self, _scope: &Scope, _results: &Results) -> Result<Section> {
        let published = published();
        Ok(Section {
            tables: vec![costs(&published), choices()],
            ..published.section(self.name())
        })
    }
}

pub(super) fn published() -> Published {
    Published::read(include_str!("../../published/kkrt/table1.json"))
}

/// All sizes: computing costs nothing.
fn costs(published: &Published) -> Table {
    let mut columns = columns(&published.unit);
    for ours in Ours::BOTH {
        let heading = format!("{}, whole OTs", ours.name());
        columns.push(Column::numbers(&heading, &published.unit));
    }
    let row = |line: &Line<'_>| {
        let mut row = line.head();
        for cost in [Cost::Fractional, Cost::Whole] {
            for ours in Ours::BOTH {
                row.push(line.computed(cost_of(line, ours, cost)));
            }
        }
        row
    };
    Table {
        caption: published.caption.clone(),
        columns,
        rows: lines(published, None, &SIZES).iter().map(row).collect(),
        notes: Vec::new(),
    }
}

/// The value of a figure if OTs are counted this way; `None` where counting has no effect, or there
/// is no such protocol.
fn cost_of(line: &Line<'_>, ours: Ours, cost: Cost) -> Option<f64> {
    let items = 1 << line.log_items;
    let pssz = |bits| hybrid::pssz_bits(items, bits, cost);
    let width = |variant| parameters(variant, items).width as f64;
    match (line.row.quantity, ours.beside(line.row)?, cost) {
        (Quantity::EffectiveBits, Candidate::Pssz(bits), Cost::Fractional) => {
            Some(pssz(bits) / 32.0)
        }
        (Quantity::OtBits, Candidate::Pssz(bits), _) => Some(pssz(bits)),
        (Quantity::OtBits, Candidate::Bark(variant), Cost::Fractional) => Some(width(variant)),
        (Quantity::Ratio, Candidate::Bark(variant), _) => {
            Some(width(variant) / pssz(line.row.item_bits()))
        }
        _ => None,
    }
}

/// The protocol that the hybrid picks for each size and length, by either count.
fn choices() -> Table {
    let mut columns = ["counted", "bits of an item"].map(Column::words).to_vec();
    columns.extend(SIZES.map(|log_items| Column::words(&format!("2^{log_items} items"))));
    let mut rows = Vec::new();
    for (cost, counted) in [
        (Cost::Fractional, "fractions of an OT"),
        (Cost::Whole, "whole OTs"),
    ] {
        for bits in [32, 64, 128] {
            let mut row = vec![Value::text(counted), Value::text(bits.to_string())];
            row.extend(SIZES.map(|log_items| {
                let items = 1 << log_items;
                let width = parameters(Variant::KkrtPaper, items).width;
                let protocol = match hybrid::choose(items, bits, width, cost) {
                    Choice::Pssz => Protocol::Pssz,
                    Choice::Bark => Protocol::Bark,
                };
                Value::text(protocol.to_string())
            }));
            rows.push(row);
        }
    }
    Table {
        caption: "the protocol that the hybrid of section 6.3 picks".to_owned(),
        columns,
        rows,
        notes: vec!["BaRK-OPRF with the paper's parameters.".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 1's ratios are those of its costs, except for the two that the notes name.
    #[test]
    fn the_ratios_are_those_of_the_costs() {
        let table = published();
        let row = |quantity, protocol, bits| {
            let found = table.rows.iter().find(|row| {
                (row.quantity, row.protocol) == (quantity, protocol) && row.bits.contains(&bits)
            });
            found.map(|row| row.values.clone()).unwrap_or_default()
        };
        for bits in [32, 64, 128] {
            let ours = row(Quantity::OtBits, Protocol::Bark, bits);
            let theirs = row(Quantity::OtBits, Protocol::Pssz, bits);
            let effective = row(Quantity::EffectiveBits, Protocol::Pssz, bits);
            let ratios = row(Quantity::Ratio, Protocol::Bark, bits);
            for (i, size) in SIZES.into_iter().enumerate() {
                let off = (ratios[i] - ours[i] / theirs[i]).abs();
                assert_eq!(
                    off <= 0.0051,
                    (bits, size) != (32, 8),
                    "{bits} {size}: {off}"
                );
                let stated = (32.0 * effective[i] - theirs[i]).abs() < 1e-9;
                assert_eq!(stated, (bits, size) != (32, 16), "{bits} {size}");
            }
        }
    }

    /// All computed values equal the printed ones, except those that the notes name.
    #[test]
    fn what_is_computed_is_what_was_published() {
        let table = published();
        let lines = lines(&table, None, &SIZES);
        assert_eq!(lines.len(), 50);
        for line in &lines {
            let computed = cost_of(line, Ours::Here, Cost::Fractional).unwrap_or_default();
            let short_items = line.row.bits == [32];
            let misprint = match line.row.quantity {
                Quantity::OtBits => short_items && line.log_items == 16,
                Quantity::Ratio => short_items && [8, 16].contains(&line.log_items),
                _ => false,
            };
            let close = (computed - line.published).abs() < 0.0051;
            assert_eq!(close, !misprint, "{:?} 2^{}", line.row, line.log_items);
        }
    }

    /// The findings about the default's code.
    #[test]
    fn the_default_has_the_narrower_code() {
        for log_items in SIZES {
            let width = |variant| parameters(variant, 1 << log_items).width;
            let less = width(Variant::KkrtPaper) - width(Variant::Kkrt);
            assert_eq!(less, if log_items < 24 { 8 } else { 0 });
        }
    }

    #[test]
    fn the_table_has_whole_ots_where_they_count() {
        let table = costs(&published());
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.len() == table.columns.len())
        );
        let row = |protocol: &str, of: &str, bits: &str, items: &str| -> Vec<_> {
            let head = [protocol, of, bits, items].map(Value::text);
            let found = table.rows.iter().find(|row| row[..4] == head);
            found.expect("there is one")[4..]
                .iter()
                .map(Value::number)
                .collect()
        };
        assert_eq!(
            row("PSSZ", "OT cost, bits", "32", "2^20"),
            [Some(384.0), Some(384.0), None, Some(512.0), None]
        );
        assert_eq!(
            row("BaRK-OPRF", "OT cost, bits", "32, 64, 128", "2^20"),
            [Some(448.0), Some(448.0), Some(440.0), None, None]
        );
        assert_eq!(
            row("BaRK-OPRF", "ratio of costs", "32", "2^20")[3],
            Some(448.0 / 512.0)
        );
    }

    #[test]
    fn the_hybrid_by_fractions_and_by_whole_ots() {
        let table = choices();
        let mut pssz = Vec::new();
        for row in &table.rows {
            assert_eq!(row.len(), table.columns.len());
            for (value, column) in row.iter().zip(&table.columns) {
                if *value == Value::text("PSSZ") {
                    pssz.push((row[0].clone(), row[1].clone(), column.heading.clone()));
                }
            }
        }
        let case = |counted: &str, items: &str| {
            (
                Value::text(counted),
                Value::text("32"),
                format!("{items} items"),
            )
        };
        assert_eq!(
            pssz,
            [
                case("fractions of an OT", "2^20"),
                case("fractions of an OT", "2^24"),
                case("whole OTs", "2^24"),
            ]
        );
    }
}
