//! The figures of the paper: data files under `experiments/ferret`, one a table, each with its source.

use serde::{Deserialize, Serialize};

use crate::command::paper;

/// One table of the paper.
pub(super) type Published = paper::Published<Rate, PublishedRow>;

/// One row of a table: one protocol, or a part of one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedRow {
    pub(super) security: String,
    pub(super) protocol: Protocol,
    #[serde(default)]
    pub(super) part: Part,
    pub(super) traffic: Option<f64>,
    /// A time for each of the table's columns.
    pub(super) values: Vec<f64>,
}

/// A protocol by the paper's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Protocol {
    #[serde(rename = "ALSZ13")]
    Alsz13,
    #[serde(rename = "KOS15")]
    Kos15,
    #[serde(rename = "BCG+19a")]
    Bcg19a,
    #[serde(rename = "Ferret-Reg")]
    FerretReg,
    #[serde(rename = "Ferret-Uni")]
    FerretUni,
}

/// What of a protocol a row of Table 5 is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    /// SPCOT, all executions.
    Trees,
    /// LPN encoding.
    Lpn,
    /// All of it.
    #[default]
    Total,
    /// What uniform noise takes more than regular noise.
    Extra,
}

/// The bandwidth of a link of the paper, each way.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, clap::ValueEnum,
)]
pub(super) enum Rate {
    #[serde(rename = "10Mbit")]
    #[value(name = "10Mbit")]
    Mbit10,
    #[serde(rename = "50Mbit")]
    #[value(name = "50Mbit")]
    Mbit50,
    #[serde(rename = "100Mbit")]
    #[value(name = "100Mbit")]
    Mbit100,
    #[serde(rename = "500Mbit")]
    #[value(name = "500Mbit")]
    Mbit500,
    #[serde(rename = "1Gbit")]
    #[value(name = "1Gbit")]
    Gbit1,
    #[serde(rename = "5Gbit")]
    #[value(name = "5Gbit")]
    Gbit5,
}

impl Rate {
    /// As on the command line and in the data files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mbit10 => "10Mbit",
            Self::Mbit50 => "50Mbit",
            Self::Mbit100 => "100Mbit",
            Self::Mbit500 => "500Mbit",
            Self::Gbit1 => "1Gbit",
            Self::Gbit5 => "5Gbit",
        }
    }

    /// Bits per second.
    pub(super) fn bits_per_second(self) -> f64 {
        match self {
            Self::Mbit10 => 10e6,
            Self::Mbit50 => 50e6,
            Self::Mbit100 => 100e6,
            Self::Mbit500 => 500e6,
            Self::Gbit1 => 1e9,
            Self::Gbit5 => 5e9,
        }
    }
}

impl Protocol {
    /// As in the paper.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Alsz13 => "[ALSZ13]",
            Self::Kos15 => "[KOS15]",
            Self::Bcg19a => "[BCG+19a]",
            Self::FerretReg => "Ferret-Reg",
            Self::FerretUni => "Ferret-Uni",
        }
    }
}

impl Part {
    /// What is added to the name of the protocol.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Trees => ": SPCOT",
            Self::Lpn => ": LPN",
            Self::Total => "",
            Self::Extra => ": more than Reg",
        }
    }
}

/// The tables with their numbers.
pub(super) const TABLES: [(u8, &str); 4] = [
    (
        1,
        include_str!("../../../../../experiments/ferret/table1.json"),
    ),
    (
        3,
        include_str!("../../../../../experiments/ferret/table3.json"),
    ),
    (
        4,
        include_str!("../../../../../experiments/ferret/table4.json"),
    ),
    (
        5,
        include_str!("../../../../../experiments/ferret/table5.json"),
    ),
];

/// The table of that number.
///
/// # Panics
/// If there is none.
pub(super) fn published(number: u8) -> Published {
    Published::find(&TABLES, number)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_table_is_whole() {
        for (number, rows, columns) in [(1, 4, 5), (3, 8, 6), (4, 6, 6), (5, 4, 3)] {
            let table = published(number);
            assert_eq!(table.table, number);
            assert_eq!(
                (table.rows.len(), table.columns.len()),
                (rows, columns),
                "{number}"
            );
            assert!(table.columns.is_sorted());
            assert!(table.paper.contains("2020/924") && table.section.contains('.'));
            for row in &table.rows {
                assert_eq!(row.values.len(), columns, "{row:?}");
                assert!(row.values.iter().all(|value| *value > 0.0), "{row:?}");
                assert!(["semi-honest", "malicious"].contains(&row.security.as_str()));
                let direct = matches!(row.protocol, Protocol::Alsz13 | Protocol::Kos15);
                let stated = number != 5 && !(number == 4 && direct);
                assert_eq!(row.traffic.is_some(), stated, "{row:?}");
            }
            assert_eq!(table.traffic_unit.is_some(), number != 5);
        }
    }

    /// Table 1 is a part of Table 3, in nanoseconds for one in place of milliseconds for ten million.
    #[test]
    fn the_tables_agree_with_each_other() {
        let [first, third] = [1, 3].map(published);
        for row in &first.rows {
            let same = third
                .rows
                .iter()
                .find(|other| (other.protocol, &*other.security) == (row.protocol, "malicious"));
            let same = same.expect("a row of the same protocol");
            assert_eq!(row.traffic, same.traffic);
            for (value, rate) in row.values.iter().zip(&first.columns) {
                let column = third.columns.iter().position(|other| other == rate);
                let other = same.values[column.expect("a column of the same link")] / 10.0;
                assert!((value - other).abs() <= 1.0, "{row:?}: {value} and {other}");
            }
        }
    }

    #[test]
    fn rates_have_one_name() {
        for rate in Rate::value_variants() {
            assert_eq!(serde_json::to_value(rate).ok(), Some(rate.name().into()));
            let value = rate.to_possible_value().expect("no rate is hidden");
            assert_eq!(value.get_name(), rate.name());
        }
        assert!(Rate::value_variants().is_sorted_by_key(|rate| rate.bits_per_second()));
    }
}
