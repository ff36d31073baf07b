//! The protocols of the figures, and their expected cost.

use std::time::Duration;

use crate::Link;
use crate::Result;
use crate::measurement::{Key, Sample};
use crate::runner::{Cell, Forecast};
use volery_field::{Fp61, Z64};
use volery_pcg::lpn::LpnSet;
use volery_pcg::vole::VoleRing;
use volery_pcg::{Kind, Plan, PlanOptions, Protocol, Security};

use super::measure::{self, Run};
use crate::baselines::dvole::{self, Batching};
use crate::baselines::gilboa::Multiply;
use crate::experiment::failed;

/// A protocol of ours, or a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// A known-index point function on a half-tree: this program's protocol.
    Half,
    /// Protocol 3 of the paper, on a GGM tree.
    Ggm,
    /// The distributed point function, with an index that neither party knows.
    Dpf,
    /// Vector OLE including setup: this program's protocol, 128 bits.
    Vole(Security),
    /// Protocol 6 of the paper with its own parameters, 80 bits by its count.
    Paper80,
    /// Multiplication alone.
    Gilboa,
    /// Protocol 6 with naive batching, parameters as [`Self::Paper80`].
    WholeDomain,
    /// Protocol 6 with the distributed point function in every bucket, parameters as
    /// [`Self::Paper80`].
    Floram,
}

impl Candidate {
    /// Those of Figure 3.
    pub(super) const POINT_FUNCTIONS: [Self; 3] = [Self::Half, Self::Ggm, Self::Dpf];

    /// This program's default where the figure is about semi-honest parties.
    pub(super) const VOLE: Self = Self::Vole(Security::SemiHonest);

    /// Those of Figure 4.
    pub(super) const VECTOR_OLES: [Self; 6] = [
        Self::VOLE,
        Self::Vole(Security::Malicious),
        Self::Paper80,
        Self::Gilboa,
        Self::WholeDomain,
        Self::Floram,
    ];

    /// Whether it is one of Figure 3.
    pub(super) fn is_point_function(self) -> bool {
        Self::POINT_FUNCTIONS.contains(&self)
    }

    /// One word.
    pub(super) fn name(self) -> String {
        match self {
            Self::Half => "spfss-half".to_owned(),
            Self::Ggm => "spfss-ggm".to_owned(),
            Self::Dpf => "dpf".to_owned(),
            Self::Vole(security) => format!("vole-{security}"),
            Self::Paper80 => "vole-paper80".to_owned(),
            Self::Gilboa => "gilboa".to_owned(),
            Self::WholeDomain => "whole-domain".to_owned(),
            Self::Floram => "floram".to_owned(),
        }
    }

    /// The name in the paper.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Half => "SPFSS (ours)",
            Self::Ggm => "SPFSS, GGM tree",
            Self::Dpf => "FLORAM's FSS",
            Self::Vole(Security::SemiHonest) => "VOLE",
            Self::Vole(_) => "VOLE, malicious",
            Self::Paper80 => "VOLE, 80 bits",
            Self::Gilboa => "Gilboa",
            Self::WholeDomain => "naive batching",
            Self::Floram => "FLORAM",
        }
    }

    /// The plan of a vector OLE for the link; `None` without our LPN.
    ///
    /// # Errors
    /// If there is no such plan.
    pub(super) fn plan<R: VoleRing>(self, n: u64, link: &Link) -> Result<Option<Plan>> {
        match self {
            Self::Vole(security) => {
                let wishes = PlanOptions {
                    total: Some(n),
                    security,
                    link: link.for_plan(),
                    protocol: Protocol::Primal,
                    ..PlanOptions::default()
                };
                Plan::new(Kind::Vole(R::FIELD), &wishes).map(Some)
            }
            Self::Paper80 => Plan::paper80(R::FIELD, n).map(Some),
            _ => Ok(None),
        }
        .map_err(failed)
    }

    /// The baselines of Protocol 6: their plan for a vector of `n` entries.
    ///
    /// # Panics
    /// If it is none of them, or `n` is above 2^24.
    pub(super) fn slow_plan(self, n: u64) -> dvole::Plan {
        let batching = match self {
            Self::WholeDomain => Batching::WholeDomain,
            Self::Floram => Batching::Floram,
            _ => panic!("{self:?} is no baseline of Protocol 6"),
        };
        let n = usize::try_from(n).expect("a length fits into memory");
        dvole::Plan::paper80(n, batching).expect("lengths are at most 2^24")
    }

    /// The cost of a run with `n` entries over `R`: an estimate of the time, a lower bound of the
    /// traffic.
    pub(super) fn forecast<R: VoleRing + Multiply>(self, n: u64) -> Forecast {
        let levels = n.max(2).ilog2();
        let entries = n as f64;
        let set = || paper_set(n);
        // As sent by our own multiplication, which is the base of our vector OLE.
        let own_product = f64::from(R::BITS) * R::BYTES as f64;
        let products = |count: usize| R::bytes(count) as f64;
        let (seconds, bytes, round_trips) = match self {
            Self::Half | Self::Ggm => (
                0.0003 + 4e-9 * entries,
                500.0 + 16.0 * f64::from(levels),
                1.0,
            ),
            Self::Dpf => (
                0.0015 + 9e-9 * entries,
                2000.0 + 64.0 * f64::from(levels),
                f64::from(levels) + 1.0,
            ),
            Self::Vole(_) => (
                0.03 + 30e-9 * entries,
                own_product * entries.min(3900.0),
                4.0,
            ),
            Self::Paper80 => (
                0.03 + 100e-9 * set().n as f64,
                own_product * (set().k + set().t) as f64,
                4.0,
            ),
            Self::Gilboa => {
                let each = if R::bytes(1) < 488 { 450e-9 } else { 700e-9 };
                (0.01 + each * entries, products(n as usize), 2.0)
            }
            Self::WholeDomain => (
                0.035 + 3.5e-9 * set().n as f64 * set().t as f64,
                products(set().k + set().t),
                3.0,
            ),
            Self::Floram => (
                0.045 + 180e-9 * set().n as f64,
                products(set().k + set().t),
                13.0,
            ),
        };
        Forecast {
            seconds,
            bytes,
            round_trips,
            // Adds the cost of a run that does not depend on its length.
            work: seconds,
        }
    }
}

/// The smallest instance of the paper's Table 1 for a vector of `n` entries.
fn paper_set(n: u64) -> &'static LpnSet {
    Candidate::Floram.slow_plan(n).set
}

/// The rings of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingName {
    /// Integers modulo `2^61 - 1`, for the paper's field of 60 bits.
    Fp61,
    /// Integers modulo `2^64`.
    Z64,
}

impl RingName {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Fp61, Self::Z64];

    /// One word.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fp61 => "fp61",
            Self::Z64 => "z64",
        }
    }

    /// The name in the paper.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Fp61 => "prime field",
            Self::Z64 => "integer ring",
        }
    }
}

/// A protocol over a ring, with all settings that affect its cost.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) candidate: Candidate,
    pub(super) ring: RingName,
    /// The length of the vector, or the size of the domain.
    pub(super) n: u64,
    pub(super) link: Link,
    pub(super) threads: usize,
}

impl Case {
    /// Whether such a protocol exists: modulo `2^64` there is none against malicious parties.
    pub(super) fn exists(&self) -> bool {
        self.candidate != Candidate::Vole(Security::Malicious) || self.ring != RingName::Z64
    }

    /// Its name among the results.
    pub(super) fn key(&self) -> Key {
        Key {
            protocol: format!("{}-{}", self.candidate.name(), self.ring.name()),
            n: self.n,
            link: self.link.clone(),
            threads: self.threads,
        }
    }

    /// The cost of a run.
    pub(super) fn forecast(&self) -> Forecast {
        match self.ring {
            RingName::Fp61 => self.candidate.forecast::<Fp61>(self.n),
            RingName::Z64 => self.candidate.forecast::<Z64>(self.n),
        }
    }

    /// The approximate seconds of a run over the link.
    pub(super) fn seconds(&self) -> f64 {
        let forecast = self.forecast();
        forecast.seconds
            + self.link.seconds_for(forecast.bytes)
            + forecast.round_trips * self.link.round_trip_seconds()
    }

    /// To be measured. A point function is run once before the run that counts: the system finds
    /// its memory, which for the first of a size takes longer than all else.
    ///
    /// # Errors
    /// If there is no such plan.
    pub(super) fn cell(self, timeout: Duration) -> Result<Cell> {
        let plan = match self.ring {
            RingName::Fp61 => self.candidate.plan::<Fp61>(self.n, &self.link),
            RingName::Z64 => self.candidate.plan::<Z64>(self.n, &self.link),
        }?;
        let (words, bits) = match (self.candidate, &plan) {
            (Candidate::WholeDomain | Candidate::Floram, _) => {
                let set = self.candidate.slow_plan(self.n).set;
                (Some(set.name.to_owned()), Some(set.claim))
            }
            (_, Some(plan)) => (Some(plan.describe()), Some(plan.claimed_bits())),
            (_, None) => (None, None),
        };
        Ok(Cell {
            key: self.key(),
            plan: words,
            security_bits: bits,
            forecast: self.forecast(),
            run: Box::new(move || {
                if self.candidate.is_point_function() {
                    self.run(plan.as_ref(), timeout)?;
                }
                self.run(plan.as_ref(), timeout)
            }),
        })
    }

    fn run(&self, plan: Option<&Plan>, timeout: Duration) -> Result<Sample> {
        let run = Run {
            candidate: self.candidate,
            n: self.n as usize,
            plan,
            link: &self.link,
            threads: self.threads,
            timeout,
        };
        match self.ring {
            RingName::Fp61 => measure::run::<Fp61>(&run),
            RingName::Z64 => measure::run::<Z64>(&run),
        }
    }
}

#[cfg(test)]
mod tests {
    use volery_field::Gf128;

    use super::*;

    fn case(candidate: Candidate, ring: RingName) -> Case {
        Case {
            candidate,
            ring,
            n: 10_000,
            link: Link::Loopback,
            threads: 1,
        }
    }

    #[test]
    fn names_are_different() {
        let all = || {
            Candidate::POINT_FUNCTIONS
                .into_iter()
                .chain(Candidate::VECTOR_OLES)
        };
        let names = |of: fn(Candidate) -> String| {
            let mut names: Vec<_> = all().map(of).collect();
            names.sort_unstable();
            names.dedup();
            names.len()
        };
        assert_eq!(names(Candidate::name), all().count());
        assert_eq!(
            names(|candidate| candidate.title().to_owned()),
            all().count()
        );
        let key = case(Candidate::VOLE, RingName::Fp61).key();
        assert_eq!(key.protocol, "vole-semi-honest-fp61");
        assert_eq!(
            case(Candidate::Half, RingName::Z64).key().protocol,
            "spfss-half-z64"
        );
    }

    #[test]
    fn plans() {
        for candidate in Candidate::VECTOR_OLES {
            for ring in RingName::ALL {
                let case = case(candidate, ring);
                let exists = case.exists();
                let cell = case.cell(Duration::from_secs(1));
                assert_eq!(cell.is_ok(), exists, "{candidate:?}");
                let bits = match candidate {
                    Candidate::Gilboa => None,
                    Candidate::Vole(_) => Some(128),
                    // What the paper's sets of 80 bits hold.
                    _ => Some(60),
                };
                if let Ok(cell) = cell {
                    assert_eq!(cell.security_bits, bits, "{candidate:?}");
                    assert_eq!(cell.plan.is_some(), bits.is_some(), "{candidate:?}");
                }
            }
            let over_gf128 = candidate.plan::<Gf128>(10_000, &Link::Loopback);
            assert!(over_gf128.is_ok(), "{candidate:?}");
        }
    }

    #[test]
    fn forecasts() {
        // 192 trees of 2^14 leaves, and 382 of 2^16.
        let leaves = |n| {
            let forecast = Candidate::WholeDomain.forecast::<Fp61>(n);
            forecast.work - 0.035
        };
        let grown = leaves(1 << 16) / leaves(1 << 14);
        assert!((grown - 4.0 * 382.0 / 192.0).abs() < 1e-9, "{grown}");
        let bytes = |forecast: Forecast| forecast.bytes as u64;
        let gilboa = Candidate::Gilboa;
        assert_eq!(bytes(gilboa.forecast::<Fp61>(1000)), 488_000);
        assert_eq!(bytes(gilboa.forecast::<Z64>(1 << 20)), 260 << 20);
        // The link decides: 48.8 MB at 8 Mbit/s.
        let slow = Case {
            n: 100_000,
            link: Link::shaped(8_000_000, Duration::ZERO),
            ..case(gilboa, RingName::Fp61)
        };
        let compute = slow.forecast().seconds;
        assert!((slow.seconds() - compute - 48.8).abs() < 1e-9);
    }
}
