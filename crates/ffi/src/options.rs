//! The options of a protocol.

use bytemuck::{Pod, Zeroable};
use volery::channel::Link;
use volery::pcg::{Kind, Plan, PlanOptions, Security};
use volery::primitives::prg::Prg;
use volery::primitives::ro::RandomOracle;

use crate::raw::{In, Sized32};
use crate::status::{Failure, Result, Status};

/// `volery_options`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(crate) struct Raw {
    size: u32,
    security: u32,
    total: u64,
    bits_per_second: f64,
    round_trip: f64,
    for_cards: u64,
    test_seed: u64,
}

impl Sized32 for Raw {
    const LEAST: usize = 32;
}

/// The layout that the header describes.
const _: () = assert!(size_of::<Raw>() == 48 && align_of::<Raw>() == align_of::<u64>());

/// The options, checked.
pub(crate) struct Options {
    pub(crate) total: Option<u64>,
    pub(crate) security: Security,
    link: Link,
    for_cards: bool,
    /// For tests, in place of the randomness of the operating system.
    test_seed: Option<u64>,
}

impl Options {
    pub(crate) fn read(raw: &In<Raw>) -> Result<Self> {
        let raw = raw.versioned("options")?.unwrap_or(Raw::zeroed());
        let security = match raw.security {
            0 => Security::Malicious,
            1 => Security::SemiHonest,
            other => {
                return Err(Failure::usage(format!(
                    "options: security is {other}: use VOLERY_MALICIOUS or VOLERY_SEMI_HONEST"
                )));
            }
        };
        let mut link = Link::default();
        if raw.bits_per_second != 0.0 {
            link.bits_per_second = raw.bits_per_second;
        }
        if raw.round_trip != 0.0 {
            link.round_trip = raw.round_trip;
        }
        if !(1e3..=1e12).contains(&link.bits_per_second) {
            let message = "options: bits_per_second is not from 1e3 to 1e12";
            return Err(Failure::usage(message));
        }
        if !(0.0..=60.0).contains(&link.round_trip) {
            let message = "options: round_trip is not from 0 to 60 seconds";
            return Err(Failure::usage(message));
        }
        if raw.for_cards > 1 {
            return Err(Failure::usage("options: for_cards is neither 0 nor 1"));
        }
        let total = Some(raw.total).filter(|total| *total > 0);
        let test_seed = Some(raw.test_seed).filter(|seed| *seed != 0);
        Ok(Self { total, security, link, for_cards: raw.for_cards == 1, test_seed })
    }

    pub(crate) fn plan(&self, kind: Kind) -> Result<Plan> {
        let options = PlanOptions {
            total: self.total,
            security: self.security,
            link: self.link,
            set: self.for_cards.then_some("b11"),
            instances: self.for_cards.then_some(4),
            ..PlanOptions::default()
        };
        Plan::new(kind, &options).map_err(Failure::usage)
    }

    /// The randomness of this party, which has this role.
    pub(crate) fn randomness(&self, role: &str) -> Result<Prg> {
        let Some(seed) = self.test_seed else {
            return Prg::from_os().map_err(|error| {
                let message = format!("the operating system gives no randomness: {error}");
                Failure::new(Status::Other, message)
            });
        };
        let mut oracle = RandomOracle::new("volery ffi: a seed for tests");
        oracle.absorb(role.as_bytes());
        oracle.absorb_u64(seed);
        Ok(Prg::new(oracle.finish_block()))
    }
}

/// The correlations that are left of a plan; `None` for a stream without end.
pub(crate) struct Remainder(pub(crate) Option<u64>);

impl Remainder {
    /// The remainder after `n` more. For a call to check before it touches the caller's memory.
    pub(crate) fn after(&self, n: usize) -> Result<Self> {
        let Some(left) = self.0 else {
            return Ok(Self(None));
        };
        let after = left.checked_sub(n as u64);
        let after = after.ok_or_else(|| {
            Failure::usage(format!(
                "{n} correlations asked for, {left} left of the total in the options"
            ))
        })?;
        Ok(Self(Some(after)))
    }
}
