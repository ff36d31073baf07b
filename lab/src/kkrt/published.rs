//! The figures of the paper: a data file for each table.

use std::fmt;
use std::time::Duration;

use crate::Link;
use serde::Deserialize;

use crate::experiment::{Scope, Size};

/// One table of the paper; its columns are set sizes as powers of two.
pub(super) type Published = crate::published::Published<u32, Row>;

/// The set sizes of the paper, as powers of two.
pub(super) const SIZES: [u32; 5] = [8, 12, 16, 20, 24];

/// One row of a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) quantity: Quantity,
    /// `None` where the figure does not depend on the link.
    pub(super) setting: Option<Setting>,
    pub(super) protocol: Protocol,
    /// Bits of an item: all lengths that the row covers.
    pub(super) bits: Vec<u32>,
    /// A value for each of the table's columns.
    pub(super) values: Vec<f64>,
}

/// The quantity of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Setting {
    #[serde(rename = "LAN")]
    Lan,
    #[serde(rename = "WAN")]
    Wan,
}

/// A protocol by the paper's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Protocol {
    #[serde(rename = "naive")]
    Naive,
    #[serde(rename = "PSSZ")]
    Pssz,
    #[serde(rename = "BaRK-OPRF")]
    Bark,
}

impl Row {
    /// The length of the items that represents the whole row.
    pub(super) fn item_bits(&self) -> u32 {
        self.bits.first().copied().unwrap_or(128)
    }

    /// The lengths, `32, 64, 128`.
    pub(super) fn bits_text(&self) -> String {
        let bits: Vec<_> = self.bits.iter().map(u32::to_string).collect();
        bits.join(", ")
    }
}

impl Setting {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Lan, Self::Wan];

    /// It and the link that represents it, in words.
    pub(super) const fn about(self) -> &'static str {
        match self {
            Self::Lan => "LAN: 10 Gbit/s, 0.2 ms there and back",
            Self::Wan => "WAN: 400 Mbit/s, 96 ms there and back",
        }
    }

    /// The link that represents it. The paper states no bandwidth of its LAN.
    pub(super) const fn link(self) -> Link {
        match self {
            Self::Lan => Link::shaped(10_000_000_000, Duration::from_micros(200)),
            Self::Wan => Link::shaped(400_000_000, Duration::from_millis(96)),
        }
    }
}

/// The sizes that are measured.
pub(super) fn sizes(scope: &Scope) -> Vec<u32> {
    let largest = match scope.size {
        Size::Full => 24,
        Size::Quick => 16,
    };
    SIZES.into_iter().filter(|log| *log <= largest).collect()
}

impl fmt::Display for Quantity {
    /// As in the paper, with the unit where not all values of a table have the same; a ratio has
    /// none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EffectiveBits => "l*, bits",
            Self::OtBits => "OT cost, bits",
            Self::Ratio => "ratio of costs",
            Self::Stash => "s, places",
            Self::CodeBits => "k, bits",
            Self::ValueBits => "v, bits",
            Self::Total => "total",
            Self::Offline => "offline",
            Self::Online => "online",
            Self::Traffic => "traffic",
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lan => "LAN",
            Self::Wan => "WAN",
        })
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Naive => "naive",
            Self::Pssz => "PSSZ",
            Self::Bark => "BaRK-OPRF",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{table1, table2, table3, table4, table5};
    use super::*;

    #[test]
    fn every_table_is_whole() {
        for (number, table, rows) in [
            (1, table1::published(), 10),
            (2, table2::published(), 3),
            (3, table3::published(), 10),
            (4, table4::published(), 4),
            (5, table5::published(), 5),
        ] {
            assert_eq!(table.what, format!("Table {number}"));
            assert_eq!((table.rows.len(), &table.columns[..]), (rows, &SIZES[..]));
            assert!(table.paper.contains("2016/799") && table.section.contains('.'));
            assert!(!table.findings.is_empty() && !table.differences.is_empty());
            for row in &table.rows {
                assert_eq!(row.values.len(), SIZES.len(), "{row:?}");
                assert!(row.values.iter().all(|value| *value > 0.0), "{row:?}");
                assert!(!row.bits.is_empty());
                assert!(row.bits.iter().all(|bits| [32, 64, 128].contains(bits)));
                // Only PSSZ's cost, and costs compared with it, depend on the length.
                let by_length = row.protocol == Protocol::Pssz || row.quantity == Quantity::Ratio;
                assert_eq!(row.bits.len() == 1, by_length, "{row:?}");
                assert_eq!(row.setting.is_some(), [3, 4].contains(&number));
            }
        }
    }

    /// Detects any change of a figure: the files were compared with the paper when these sums were
    /// taken.
    #[test]
    fn every_digit_is_as_it_was_compared_with_the_paper() {
        let sums = [
            table1::published(),
            table2::published(),
            table3::published(),
            table4::published(),
            table5::published(),
        ]
        .map(|table| sum(&table));
        assert_eq!(
            sums,
            [
                "60eb9da1ae5d37bf",
                "b18e9134c900baf3",
                "5c5a223d06a2cecc",
                "a0db75550d616872",
                "1e216ccb55854fd7"
            ]
        );
    }

    /// A few digits of a hash of all rows.
    fn sum(table: &Published) -> String {
        let mut hash = blake3::Hasher::new();
        for row in &table.rows {
            let setting = row.setting.map(|setting| setting.to_string());
            let head = [
                setting.unwrap_or_default(),
                row.protocol.to_string(),
                format!("{:?}", row.quantity),
                row.bits_text(),
            ];
            let values = row.values.iter().map(f64::to_string);
            let cells: Vec<_> = head.into_iter().chain(values).collect();
            hash.update(cells.join(";").as_bytes());
            hash.update(b"\n");
        }
        hash.finalize().to_hex()[..16].to_owned()
    }

    /// A table has one unit, or each of its quantities is shown with its own; only a ratio has
    /// none.
    #[test]
    fn every_figure_has_its_unit() {
        for (table, unit) in [
            (table1::published(), ""),
            (table2::published(), ""),
            (table3::published(), "ms"),
            (table4::published(), "ms"),
            (table5::published(), "MiB"),
        ] {
            assert_eq!(table.unit, unit);
            for row in table.rows {
                let own = row.quantity.to_string();
                let own = own.split_once(", ").map(|(_, unit)| unit);
                let has = matches!(own, Some("bits" | "places"));
                let needs = unit.is_empty() && row.quantity != Quantity::Ratio;
                assert_eq!(has, needs, "{row:?}");
            }
        }
    }

    /// Table 3's totals of BaRK-OPRF are the sums of Table 4's phases.
    #[test]
    fn the_tables_agree_with_each_other() {
        let [third, fourth] = [table3::published(), table4::published()];
        for setting in Setting::ALL {
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

    #[test]
    fn the_links_are_those_of_the_paper() {
        let links = Setting::ALL.map(|setting| setting.link().to_string());
        assert_eq!(links, ["10000Mbit,0.2ms", "400Mbit,96ms"]);
    }
}
