//! The published figures and ours, side by side.

use std::io::Write;

use serde::Serialize;
use volery_experiments::baselines::hybrid::{self, Cost};
use volery_psi::Variant;

use super::Cell;
use super::candidate::{Candidate, parameters};
use super::measure::Sample;
use super::published::{Protocol, Published, PublishedRow, Quantity, Setting};
use crate::command::paper::{self, Figure};
use crate::command::table::table;

/// A table of the paper with our figures.
pub(super) type Compared = paper::Compared<Row>;

/// One figure of the paper with ours.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    setting: Option<Setting>,
    protocol: Protocol,
    quantity: Quantity,
    /// Bits of an item: all lengths that the row stands for.
    bits: Vec<u32>,
    /// Items of each party, as a power of two.
    log_items: u32,
    published: Option<f64>,
    /// The paper's protocol and parameters.
    here: Option<Ours>,
    /// What this program does by default.
    volery: Option<Ours>,
}

/// What we have for a figure.
#[derive(Clone, Debug, Serialize)]
struct Ours {
    /// None where nothing was measured.
    figure: Option<Figure>,
    /// What a formula gives: bytes, in the unit of the table, or the bits of whole OTs.
    formula: Option<f64>,
    /// About so many seconds would have been too many.
    skipped: Option<f64>,
}

/// Puts our figures beside those of a table, for the sizes and settings asked for.
pub(super) fn compare(
    published: &Published,
    sizes: &[u32],
    settings: &[Setting],
    cells: &[Cell],
) -> Compared {
    let mut rows = Vec::new();
    let wanted = |row: &&PublishedRow| {
        row.setting
            .is_none_or(|setting| settings.contains(&setting))
    };
    for row in published.rows.iter().filter(wanted) {
        for &log_items in sizes {
            let column = published.columns.iter().position(|have| *have == log_items);
            let value = column.and_then(|column| row.values.get(column)).copied();
            let [here, volery] =
                Candidate::beside(row.protocol, row.bits.first().copied().unwrap_or(128))
                    .map(|candidate| ours(candidate?, row, log_items, value, cells));
            rows.push(Row {
                setting: row.setting,
                protocol: row.protocol,
                quantity: row.quantity,
                bits: row.bits.clone(),
                log_items,
                published: value,
                here,
                volery,
            });
        }
    }
    Compared::new(published, rows)
}

/// Our figure for one of a row; none where there is no such thing.
fn ours(
    candidate: Candidate,
    row: &PublishedRow,
    log_items: u32,
    published: Option<f64>,
    cells: &[Cell],
) -> Option<Ours> {
    if let Some((computed, formula)) = computed(candidate, row, log_items) {
        return Some(Ours {
            figure: Figure::of(vec![computed], published),
            formula,
            skipped: None,
        });
    }
    let value: fn(&Sample) -> f64 = match row.quantity {
        Quantity::Total => |sample| sample.seconds() * 1e3,
        Quantity::Offline => |sample| sample.offline_seconds * 1e3,
        Quantity::Online => |sample| sample.online_seconds * 1e3,
        Quantity::Traffic => |sample| sample.online_bytes as f64 / MEBIBYTE,
        _ => return None,
    };
    let cell = cells.iter().find(|cell| {
        (cell.candidate, cell.log_items) == (candidate, log_items)
            && row.setting.is_none_or(|setting| setting == cell.setting)
    });
    let traffic = row.quantity == Quantity::Traffic;
    Some(Ours {
        figure: cell
            .and_then(|cell| Figure::of(cell.samples.iter().map(value).collect(), published)),
        formula: traffic.then(|| candidate.formula(1 << log_items) / MEBIBYTE),
        skipped: cell.and_then(|cell| cell.skipped),
    })
}

const MEBIBYTE: f64 = (1 << 20) as f64;

/// What follows from the parameters, with the bits of whole OTs beside those of Table 1; none where it has to be
/// measured.
fn computed(
    candidate: Candidate,
    row: &PublishedRow,
    log_items: u32,
) -> Option<(f64, Option<f64>)> {
    let items = 1 << log_items;
    let width = |variant| parameters(variant, items).width as f64;
    let pssz = |bits, cost| hybrid::pssz_bits(items, bits, cost);
    let bits = row.bits.first().copied().unwrap_or(128);
    Some(match (row.quantity, candidate) {
        (Quantity::EffectiveBits, Candidate::Pssz(bits)) => {
            (pssz(bits, Cost::Fractional) / 32.0, None)
        }
        (Quantity::OtBits, Candidate::Pssz(bits)) => {
            (pssz(bits, Cost::Fractional), Some(pssz(bits, Cost::Whole)))
        }
        (Quantity::OtBits | Quantity::CodeBits, Candidate::Bark(variant)) => (width(variant), None),
        (Quantity::Ratio, Candidate::Bark(variant)) => (
            width(variant) / pssz(bits, Cost::Fractional),
            Some(width(variant) / pssz(bits, Cost::Whole)),
        ),
        (Quantity::Stash, Candidate::Bark(variant)) => {
            (parameters(variant, items).stash as f64, None)
        }
        (Quantity::ValueBits, Candidate::Bark(variant)) => {
            (8.0 * parameters(variant, items).tag as f64, None)
        }
        _ => return None,
    })
}

/// What was run, each protocol once a size.
pub(super) fn plans(cells: &[Cell]) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in cells.iter().filter(|cell| !cell.samples.is_empty()) {
        let line = format!(
            "{}, 2^{} items: {}",
            cell.candidate.name(),
            cell.log_items,
            cell.candidate.describe(1 << cell.log_items)
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The protocol that [`hybrid`] picks for each size and length, with whole OTs.
pub(super) fn choices(sizes: &[u32]) -> Vec<String> {
    let mut lines = Vec::new();
    for (cost, counted) in [
        (Cost::Fractional, "fractions of an OT"),
        (Cost::Whole, "whole OTs"),
    ] {
        let mut cheaper = Vec::new();
        for &log_items in sizes {
            let width = parameters(Variant::KkrtPaper, 1 << log_items).width;
            for bits in [32, 64, 128] {
                let choice = hybrid::choose(1 << log_items, bits, width, cost);
                if choice == hybrid::Choice::Pssz {
                    cheaper.push(format!("2^{log_items} items of {bits} bits"));
                }
            }
        }
        lines.push(format!(
            "hybrid, counting {counted}: PSSZ for {}, else BaRK-OPRF",
            if cheaper.is_empty() {
                "none of these".to_owned()
            } else {
                cheaper.join(", ")
            }
        ));
    }
    lines
}

/// Prints a table and what has to be known to read it.
///
/// # Errors
/// Those of `out`.
pub(super) fn print(compared: &Compared, out: &mut impl Write) -> std::io::Result<()> {
    compared.print_title(out)?;
    if compared.rows.is_empty() {
        return writeln!(
            out,
            "nothing of this table is among the sizes and settings\n"
        );
    }
    let headings = [
        "link",
        "protocol",
        "of",
        "bits",
        ">items",
        ">published",
        ">here",
        ">range",
        ">ratio",
        ">formula",
        ">volery",
        ">range",
        ">ratio",
        ">formula",
    ];
    let mut last = None;
    let cells = compared.rows.iter().map(|row| {
        let group = (row.setting, row.protocol, row.quantity, row.bits.clone());
        let first = last.replace(group.clone()).as_ref() != Some(&group);
        let once = |text: String| if first { text } else { String::new() };
        let [here, here_spread, here_ratio, here_formula] = texts(row.here.as_ref());
        let [volery, volery_spread, volery_ratio, volery_formula] = texts(row.volery.as_ref());
        let bits: Vec<_> = row.bits.iter().map(u32::to_string).collect();
        [
            once(
                row.setting
                    .map_or("-".to_owned(), |setting| setting.to_string()),
            ),
            once(row.protocol.to_string()),
            once(row.quantity.to_string()),
            once(bits.join(" ")),
            format!("2^{}", row.log_items),
            row.published
                .map_or("-".to_owned(), |value| value.to_string()),
            here,
            here_spread,
            here_ratio,
            here_formula,
            volery,
            volery_spread,
            volery_ratio,
            volery_formula,
        ]
    });
    writeln!(out, "{}", table(headings, cells))?;
    let mut all = compared
        .rows
        .iter()
        .flat_map(|row| [&row.here, &row.volery])
        .flatten();
    if all.any(|ours| ours.skipped.is_some()) {
        writeln!(out, "> s: skipped, would take about so long (--limit)")?;
    }
    writeln!(out)
}

/// The median, the range, the ratio and the formula.
fn texts(ours: Option<&Ours>) -> [String; 4] {
    let [median, range, ratio] = Figure::texts(ours.and_then(|ours| ours.figure.as_ref()));
    let formula = ours.and_then(|ours| ours.formula);
    let median = match ours.and_then(|ours| ours.skipped) {
        Some(seconds) => format!("> {seconds:.0} s"),
        None => median,
    };
    let formula = formula.map_or(String::new(), |formula| format!("{formula:.2}"));
    [median, range, ratio, formula]
}

#[cfg(test)]
mod tests {
    use super::super::published::{SIZES, published};
    use super::*;

    /// All that is computed is what the paper prints, but for what its notes name.
    #[test]
    fn what_is_computed_is_what_was_published() {
        for number in [1, 2] {
            let table = published(number);
            let compared = compare(&table, &SIZES, &[], &[]);
            assert_eq!(compared.rows.len(), table.rows.len() * SIZES.len());
            for row in &compared.rows {
                let here = row.here.as_ref().and_then(|ours| ours.figure.as_ref());
                let computed = here.map(|figure| figure.median).unwrap_or_default();
                let published = row.published.unwrap_or_default();
                let short_set = row.bits == [32];
                let misprint = match row.quantity {
                    Quantity::OtBits => short_set && row.log_items == 16,
                    Quantity::Ratio => short_set && [8, 16].contains(&row.log_items),
                    _ => false,
                };
                let close = (computed - published).abs() < 0.0051;
                assert_eq!(close, !misprint, "{row:?}");
            }
        }
    }

    /// Table 5 is its own formulas in units of 2^20 bytes, up to rounding either way.
    #[test]
    fn the_traffic_is_that_of_the_formulas() {
        let compared = compare(&published(5), &SIZES, &[], &[]);
        assert_eq!(compared.rows.len(), 25);
        for row in &compared.rows {
            let formula = row.here.as_ref().and_then(|ours| ours.formula);
            let off = formula.unwrap_or_default() - row.published.unwrap_or_default();
            assert!(off.abs() < 0.0085, "{row:?}");
        }
    }

    #[test]
    fn skipped_measurements_say_so() {
        let ours = Ours {
            figure: None,
            formula: Some(1.5),
            skipped: Some(123.4),
        };
        assert_eq!(
            texts(Some(&ours)),
            ["> 123 s", "-", "-", "1.50"].map(|text| text)
        );
        assert_eq!(texts(None), ["-", "-", "-", ""]);
    }

    #[test]
    fn the_hybrid_by_fractions_and_by_whole_ots() {
        let [fractional, whole] = &choices(&SIZES)[..] else {
            panic!("two ways to count");
        };
        assert!(fractional.contains("2^20 items of 32 bits, 2^24 items of 32 bits, else"));
        assert!(whole.contains("PSSZ for 2^24 items of 32 bits, else"));
        assert!(choices(&[8])[1].contains("none"));
    }
}
