//! The vocabulary of the paper's tables: protocols, their parts and links, as the data files name
//! them.

use std::time::Duration;

use crate::Link;
use crate::page::Value;
use serde::{Deserialize, Serialize};
use volery_pcg::Security;

use crate::published;

/// One table of the paper.
pub(super) type Published = published::Published<Rate, PublishedRow>;

/// One row of a table: one protocol, or a part of one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedRow {
    security: String,
    pub(super) protocol: Protocol,
    #[serde(default)]
    pub(super) part: Part,
    /// Not a row of the paper: an approximate value stated once, in words. No figure is compared
    /// with it.
    #[serde(default)]
    pub(super) about: bool,
    pub(super) traffic: Option<f64>,
    /// A time for each of the table's columns.
    pub(super) values: Vec<f64>,
}

/// A protocol by the paper's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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

/// The part of a protocol that a row of Table 5 is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    /// SPCOT, all executions.
    Trees,
    /// LPN encoding.
    Lpn,
    /// All of it.
    #[default]
    Total,
    /// The additional time of uniform noise over regular noise.
    Extra,
}

/// The bandwidth of a link of the paper, each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(super) enum Rate {
    #[serde(rename = "10Mbit")]
    Mbit10,
    #[serde(rename = "50Mbit")]
    Mbit50,
    #[serde(rename = "100Mbit")]
    Mbit100,
    #[serde(rename = "500Mbit")]
    Mbit500,
    #[serde(rename = "1Gbit")]
    Gbit1,
    #[serde(rename = "5Gbit")]
    Gbit5,
}

/// Round-trip time over all links; the paper does not state its own.
const ROUND_TRIP: Duration = Duration::from_micros(200);

impl PublishedRow {
    /// The adversary.
    ///
    /// # Panics
    /// If the row does not name one of the known words: tests check the data files.
    pub(super) fn security(&self) -> Security {
        self.security.parse().expect("the data files are tested")
    }

    /// A time of its values, as printed in the paper.
    pub(super) fn said(&self, value: f64) -> Value {
        if self.about {
            Value::text(format!("about {value}"))
        } else {
            Value::published(Some(value))
        }
    }

    /// The protocol, and the part of it, in the paper's words.
    pub(super) fn name(&self) -> String {
        format!("{}{}", self.protocol.name(), self.part.suffix())
    }
}

impl Rate {
    /// All, in ascending order of the rate.
    pub(super) const ALL: [Self; 6] = [
        Self::Mbit10,
        Self::Mbit50,
        Self::Mbit100,
        Self::Mbit500,
        Self::Gbit1,
        Self::Gbit5,
    ];

    /// As in the data files.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mbit10 => "10Mbit",
            Self::Mbit50 => "50Mbit",
            Self::Mbit100 => "100Mbit",
            Self::Mbit500 => "500Mbit",
            Self::Gbit1 => "1Gbit",
            Self::Gbit5 => "5Gbit",
        }
    }

    /// Mbit/s.
    pub(super) const fn megabits(self) -> u32 {
        match self {
            Self::Mbit10 => 10,
            Self::Mbit50 => 50,
            Self::Mbit100 => 100,
            Self::Mbit500 => 500,
            Self::Gbit1 => 1000,
            Self::Gbit5 => 5000,
        }
    }

    /// The link that represents it here.
    pub(super) const fn link(self) -> Link {
        Link::shaped(self.megabits() as u64 * 1_000_000, ROUND_TRIP)
    }
}

impl Protocol {
    /// As in the paper.
    pub(super) const fn name(self) -> &'static str {
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
    /// The suffix to the name of the protocol.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Trees => ": SPCOT",
            Self::Lpn => ": LPN",
            Self::Total => "",
            Self::Extra => ": more than Reg",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_one_name() {
        for rate in Rate::ALL {
            assert_eq!(serde_json::to_value(rate).ok(), Some(rate.name().into()));
            let link: Link = format!("{},200us", rate.name()).parse().expect("a link");
            assert_eq!(link, rate.link());
        }
        assert!(Rate::ALL.is_sorted() && Rate::ALL.is_sorted_by_key(|rate| rate.megabits()));
    }
}
