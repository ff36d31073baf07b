//! What base correlations and rounds cost, roughly: enough to choose between them.
//!
//! The nanoseconds are those of one processor with AES instructions, measured once by the benchmarks and rounded; a machine
//! twice as fast would choose the same but near a crossing. Both parties must use the same numbers and the same [`Link`],
//! as the plan follows from them.

use volery_ot::softspoken::SmallField;

use super::plan::Base;
use crate::{Noise, Security};

/// The link between the parties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Bits that it carries in a second, each way.
    pub bits_per_second: f64,
    /// Seconds from a message to its answer.
    pub round_trip: f64,
}

impl Default for Link {
    /// A local network: 10 Gbit/s, 0.2 ms.
    fn default() -> Self {
        Self {
            bits_per_second: 10e9,
            round_trip: 2e-4,
        }
    }
}

impl Link {
    /// Nanoseconds for the given bits and round trips.
    fn nanoseconds(self, bits: f64, trips: f64) -> f64 {
        1e9 * (bits / self.bits_per_second + trips * self.round_trip)
    }
}

/// Nanoseconds for `count` base correlations, apart from the setup of the base.
pub(super) fn base(base: Base, count: u64, link: Link) -> f64 {
    let (each, bits, batch) = match base {
        Base::Gilboa => (700.0, 61.0 * 64.0, 256.0),
        Base::Iknp => (25.0, 128.0, 128.0),
        Base::SoftSpoken(field) => softspoken(field),
        Base::Packed(field) => {
            let (each, bits, batch) = softspoken(field);
            (128.0 * each + 300.0, 128.0 * bits, batch)
        }
    };
    let count = count as f64 + batch;
    count * each + link.nanoseconds(count * bits, 1.0)
}

fn softspoken(field: SmallField) -> (f64, f64, f64) {
    let bits = (field.trees() - 1) as f64;
    let each = match field {
        SmallField::Bits1 => 40.0,
        SmallField::Bits2 => 30.0,
        SmallField::Bits4 => 32.0,
        SmallField::Bits8 => 170.0,
    };
    (each, bits, 256.0)
}

/// What a round does, as far as it costs.
pub(super) struct Round {
    pub(super) security: Security,
    pub(super) noise: Noise,
    pub(super) k: usize,
    pub(super) trees: usize,
    pub(super) levels: usize,
    pub(super) leaves: usize,
    pub(super) outputs: u64,
}

/// Bits that a round sends for its trees, by far the most of its traffic.
pub(super) fn sent(levels: usize) -> f64 {
    128.0 * levels as f64
}

/// Nanoseconds for one round.
pub(super) fn round(round: &Round, link: Link) -> f64 {
    const TREE: f64 = 800.0;
    // Ten reads from a table of 16 `k` bytes, dearer where it leaves the nearest cache, much dearer where it leaves
    // its part of the next.
    let log = (round.k as f64).log2();
    let output = 28.0 + 4.0 * (log - 16.0).max(0.0) + 22.0 * (log - 18.0).max(0.0);
    // Growing a leaf, and adding up the leaves of a point.
    let leaf = match round.noise {
        Noise::Regular => 8.0,
        Noise::Uniform => 14.0,
    };
    let (check, trips) = match round.security {
        Security::SemiHonest => (0.0, 0.5),
        Security::Malicious => (3.0, 3.0),
    };
    let bits = sent(round.levels);
    round.outputs as f64 * output
        + round.leaves as f64 * (leaf + check)
        + round.trees as f64 * TREE
        + link.nanoseconds(bits, trips)
}
