//! What base correlations and rounds cost, roughly: enough to choose between them.
//!
//! The nanoseconds are those of one processor with AES instructions, measured once by the benchmarks and rounded; a machine
//! twice as fast would choose the same but near a crossing. Both parties must use the same numbers and the same [`Link`],
//! as the plan follows from them.

use volery_ot::softspoken::SmallField;

use super::plan::Base;
use crate::Security;

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

/// Nanoseconds for one round.
pub(super) fn round(
    security: Security,
    k: usize,
    levels: usize,
    leaves: usize,
    outputs: u64,
    link: Link,
) -> f64 {
    // Ten reads from the table, dearer where it leaves the nearest caches.
    let output = 22.0 + 4.0 * (k as f64).log2() - 4.0 * 14.0;
    let (leaf, trips) = match security {
        Security::SemiHonest => (9.0, 0.5),
        Security::Malicious => (12.0, 3.0),
    };
    let bits = 128.0 * levels as f64;
    outputs as f64 * output + leaves as f64 * leaf + link.nanoseconds(bits, trips)
}
