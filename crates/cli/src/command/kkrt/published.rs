//! The figures of the paper: data files under `experiments/kkrt`, one a table, each with its source.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::command::paper;

/// One table of the paper; its columns are set sizes as powers of two.
pub(super) type Published = paper::Published<u32, PublishedRow>;

/// One row of a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedRow {
    pub(super) quantity: Quantity,
    /// None where the figure does not depend on the link.
    pub(super) setting: Option<Setting>,
    pub(super) protocol: Protocol,
    /// Bits of an item: all lengths that the row stands for.
    pub(super) bits: Vec<u32>,
    /// A value for each of the table's columns.
    pub(super) values: Vec<f64>,
}

/// What a value is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Quantity {
    /// Bits of an item that are compared.
    EffectiveBits,
    /// Bits of the OT matrix for each instance.
    OtBits,
    /// Those of BaRK-OPRF over those of PSSZ.
    Ratio,
    /// Places in the stash.
    Stash,
    /// Width of the code.
    CodeBits,
    /// Bits of an output.
    ValueBits,
    /// Time of a whole run.
    Total,
    /// Time before the items are needed.
    Offline,
    /// Time from then on.
    Online,
    /// Bytes of both directions without the setup.
    Traffic,
}

/// A network of the paper.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, clap::ValueEnum,
)]
pub(super) enum Setting {
    #[serde(rename = "LAN")]
    Lan,
    #[serde(rename = "WAN")]
    Wan,
}

/// A protocol by the paper's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Protocol {
    #[serde(rename = "naive")]
    Naive,
    #[serde(rename = "PSSZ")]
    Pssz,
    #[serde(rename = "BaRK-OPRF")]
    Bark,
}

impl Quantity {
    /// Whether it takes a run to know it.
    pub(super) const fn is_measured(self) -> bool {
        matches!(
            self,
            Self::Total | Self::Offline | Self::Online | Self::Traffic
        )
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::EffectiveBits => "l*",
            Self::OtBits => "OT cost",
            Self::Ratio => "ratio",
            Self::Stash => "s",
            Self::CodeBits => "k",
            Self::ValueBits => "v",
            Self::Total => "total",
            Self::Offline => "offline",
            Self::Online => "online",
            Self::Traffic => "traffic",
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Lan => "LAN",
            Self::Wan => "WAN",
        })
    }
}

impl fmt::Display for Protocol {
    /// As in the paper.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Naive => "naive (insecure)",
            Self::Pssz => "PSSZ",
            Self::Bark => "BaRK-OPRF",
        })
    }
}

/// The tables with their numbers.
pub(super) const TABLES: [(u8, &str); 5] = [
    (
        1,
        include_str!("../../../../../experiments/kkrt/table1.json"),
    ),
    (
        2,
        include_str!("../../../../../experiments/kkrt/table2.json"),
    ),
    (
        3,
        include_str!("../../../../../experiments/kkrt/table3.json"),
    ),
    (
        4,
        include_str!("../../../../../experiments/kkrt/table4.json"),
    ),
    (
        5,
        include_str!("../../../../../experiments/kkrt/table5.json"),
    ),
];

/// The set sizes of the paper, as powers of two.
pub(super) const SIZES: [u32; 5] = [8, 12, 16, 20, 24];

/// The table of that number.
///
/// # Panics
/// If there is none.
pub(super) fn published(number: u8) -> Published {
    Published::find(&TABLES, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_whole() {
        for (number, rows) in [(1, 10), (2, 3), (3, 10), (4, 4), (5, 5)] {
            let table = published(number);
            assert_eq!((table.table, table.rows.len()), (number, rows));
            assert_eq!(table.columns, SIZES);
            assert!(table.paper.contains("2016/799") && table.section.contains('.'));
            for row in &table.rows {
                assert_eq!(row.values.len(), SIZES.len(), "{row:?}");
                assert!(row.values.iter().all(|value| *value > 0.0), "{row:?}");
                assert!(!row.bits.is_empty());
                assert!(row.bits.iter().all(|bits| [32, 64, 128].contains(bits)));
                // Only the cost of PSSZ depends on the length, and what is compared with it.
                let by_length = row.protocol == Protocol::Pssz || row.quantity == Quantity::Ratio;
                assert_eq!(row.bits.len() == 1, by_length, "{row:?}");
                assert_eq!(row.setting.is_some(), [3, 4].contains(&number));
            }
        }
    }

    /// Table 3's totals of BaRK-OPRF are the sums of Table 4's phases.
    #[test]
    fn the_tables_agree_with_each_other() {
        let [third, fourth] = [3, 4].map(published);
        for setting in [Setting::Lan, Setting::Wan] {
            let of = |table: &Published, quantity| {
                let found = table.rows.iter().find(|row| {
                    (row.quantity, row.setting, row.protocol)
                        == (quantity, Some(setting), Protocol::Bark)
                });
                found.map(|row| row.values.clone()).unwrap_or_default()
            };
            let totals = of(&third, Quantity::Total);
            let phases = [Quantity::Offline, Quantity::Online].map(|phase| of(&fourth, phase));
            let sums = phases[0].iter().zip(&phases[1]).map(|(a, b)| a + b);
            assert!(totals.len() == SIZES.len() && totals.iter().copied().eq(sums));
        }
    }

    /// Table 1's ratios are those of its costs, but for the two that the notes name.
    #[test]
    fn the_ratios_are_those_of_the_costs() {
        let table = published(1);
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
}
