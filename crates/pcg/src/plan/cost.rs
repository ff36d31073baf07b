//! Approximate costs of base correlations, rounds and instances of dual LPN: precise enough to
//! choose between them.
//!
//! The nanoseconds are those of one processor with wide AES instructions (AMD Zen 5, measured by
//! `volery-bench run` on 2026-11-22, OT extension without its check on 2026-11-23), one thread per
//! party, both at work; a machine twice as fast would choose the same except near a crossing. Both
//! parties must use the same numbers and the same [`Link`], because the plan follows from them.

use volery_channel::Link;
use volery_ot::softspoken::SmallField;

use super::kind::{Base, Kind};
use crate::{
    Noise, Security,
    lpn::{dual::params::Shape, estimate::Field},
};

/// Nanoseconds spent on a link.
trait Nanoseconds {
    /// For the given bits.
    fn transfer(self, bits: f64) -> f64;

    /// For the given round trips.
    fn trips(self, trips: f64) -> f64;
}

impl Nanoseconds for Link {
    fn transfer(self, bits: f64) -> f64 {
        1e9 * bits / self.bits_per_second
    }

    fn trips(self, trips: f64) -> f64 {
        1e9 * trips * self.round_trip
    }
}

/// The cost of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    /// Nanoseconds of the slower party, waiting included.
    pub(super) time: f64,
    /// Bits, in both directions.
    pub(super) bits: f64,
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { time: self.time + other.time, bits: self.bits + other.bits }
    }
}

impl std::ops::Mul<f64> for Cost {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self { time: self.time * times, bits: self.bits * times }
    }
}

/// Work that overlaps with the transfer of its bits, in `pieces`: the longer of the two counts, and
/// a piece of the other.
fn streamed(work: f64, bits: f64, pieces: f64, link: Link) -> Cost {
    let transfer = link.transfer(bits);
    Cost { time: work.max(transfer) + work.min(transfer) / pieces.max(1.0), bits }
}

/// 128 base OTs and the trees above them, with which every protocol begins. Two messages that
/// cross, then one, then the first of the next step.
pub(super) fn setup(link: Link) -> Cost {
    const WORK: f64 = 3e6;
    let bits = 8.0 * (8192.0 + 32.0 + 4096.0);
    Cost { time: WORK + link.transfer(bits) + link.trips(1.0), bits }
}

/// `count` base correlations, without the setup; a packed one consists of `packed_ots`.
pub(super) fn base(
    base: Base,
    packed_ots: usize,
    security: Security,
    count: u64,
    link: Link,
) -> Cost {
    /// Correlations between two messages.
    const BATCH: f64 = 32_768.0;
    let (each, bits, padding) = match base {
        Base::Gilboa => (700.0, 61.0 * 64.0, 256.0),
        Base::SoftSpoken(field) => softspoken(field, security),
        Base::Packed(field) => {
            let (each, bits, padding) = softspoken(field, Security::Malicious);
            let share = packed_ots as f64 / 128.0;
            (share * (128.0 * each + 300.0), share * 128.0 * bits, padding)
        }
    };
    let made = count as f64 + padding;
    let pieces = made / BATCH;
    streamed(made * each, made * bits, pieces, link) + Cost { time: link.trips(0.5), bits: 0.0 }
}

/// Nanoseconds and bits for each OT, and discarded OTs.
fn softspoken(field: SmallField, security: Security) -> (f64, f64, f64) {
    let bits = (field.trees() - 1) as f64;
    let (semi_honest, malicious) = match field {
        SmallField::Bits1 => (6.0, 12.5),
        SmallField::Bits2 => (3.8, 6.4),
        SmallField::Bits4 => (3.7, 4.7),
        SmallField::Bits8 => (14.6, 16.5),
    };
    match security {
        Security::SemiHonest => (semi_honest, bits, 128.0),
        Security::Malicious => (malicious, bits, 256.0),
    }
}

/// The cost parameters of a round.
pub(super) struct Round {
    pub(super) kind: Kind,
    pub(super) security: Security,
    pub(super) noise: Noise,
    pub(super) k: usize,
    pub(super) instances: usize,
    pub(super) trees: usize,
    pub(super) levels: usize,
    pub(super) leaves: usize,
    pub(super) outputs: u64,
}

/// Bits that a round sends for its trees, by far the largest part of its traffic.
pub(super) fn sent(levels: usize) -> f64 {
    128.0 * levels as f64
}

/// One round.
pub(super) fn round(round: &Round, link: Link) -> Cost {
    const TREE: f64 = 300.0;
    // Ten reads from a table of 16 `k` bytes an instance, slower where it exceeds the nearest
    // cache; each serves all instances.
    let reads = match round.k * round.instances {
        0..100_000 => 4.7,
        100_000..200_000 => 5.7,
        200_000..400_000 => 6.5,
        _ => 7.4,
    };
    let output = reads * [1.0, 0.53, 0.37][round.instances.ilog2() as usize];
    // Expanding a leaf, and adding up the leaves of a point.
    let leaf = match round.noise {
        Noise::Regular => 1.6,
        Noise::Uniform => 5.0,
    };
    let (check, trips) = match round.security {
        Security::SemiHonest => (0.0, 0.5),
        Security::Malicious => (2.6, 3.0),
    };
    let more = match round.kind {
        Kind::Cot => 0.0,
        Kind::Vole(_) => 3.0,
    };
    let factor = match round.kind {
        Kind::Vole(Field::Gf128) => 2.0,
        _ => 0.0,
    };
    let work = round.outputs as f64 * (output + factor)
        + round.leaves as f64 * (leaf + check + more)
        + round.trees as f64 * TREE;
    let bits = sent(round.levels);
    Cost { time: work + link.transfer(bits) + link.trips(trips), bits }
}

/// An instance of dual LPN, without its base correlations; it sends `bytes`.
pub(super) fn dual(kind: Kind, security: Security, shape: Shape, bytes: f64, link: Link) -> Cost {
    let leaves = shape.leaves() as f64;
    // A tree and half an output. Data much larger than the caches takes longer to gather, and the
    // system must clear its pages first.
    let gathered = if leaves < 1e7 { 30.0 } else { 40.0 };
    let (check, trips) = match security {
        Security::SemiHonest => (0.0, 0.5),
        Security::Malicious => (0.8, 3.0),
    };
    let more = match kind {
        Kind::Cot | Kind::Vole(Field::Fp61 | Field::Z64Odd) => 1.0,
        Kind::Vole(_) => 1.6,
    };
    Cost {
        time: leaves * (gathered + check) * more + link.transfer(8.0 * bytes) + link.trips(trips),
        bits: 8.0 * bytes,
    }
}
