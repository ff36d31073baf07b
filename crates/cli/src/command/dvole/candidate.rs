//! What is measured in each figure.

use volery_experiments::baselines::dvole::{self, Batching};
use volery_experiments::baselines::gilboa::Multiply;
use volery_pcg::vole::VoleRing;
use volery_pcg::{Kind, Link, Plan, PlanError, Security, Wishes};

use crate::command::options::{RingName, with_ring};

/// A protocol of ours, or a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// A known-index point function on a half-tree: what this program does.
    Half,
    /// Protocol 3 of the paper, on a GGM tree.
    Ggm,
    /// The distributed point function, on a shared index.
    Dpf,
    /// Vector OLE from nothing: what this program does, 128 bits.
    Vole(Security),
    /// Protocol 6 of the paper with its own parameters, 80 bits by its count.
    Paper80,
    /// Multiplication alone.
    Gilboa,
    /// Protocol 6 with naive batching, parameters as [`Self::Paper80`].
    WholeDomain,
    /// Protocol 6 with the distributed point function in every bucket, parameters as [`Self::Paper80`].
    Floram,
}

impl Candidate {
    /// Those of Figure 3.
    pub(super) const POINT_FUNCTIONS: [Self; 3] = [Self::Half, Self::Ggm, Self::Dpf];

    /// Those of Figure 4.
    pub(super) const VECTOR_OLES: [Self; 6] = [
        Self::Vole(Security::SemiHonest),
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

    /// Whether it exists over the ring.
    pub(super) fn exists(self, ring: RingName) -> bool {
        self != Self::Vole(Security::Malicious) || ring != RingName::Z64
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

    /// The plan of a vector OLE; none where there is no LPN of ours.
    ///
    /// # Errors
    /// If there is no such plan.
    pub(super) fn plan(
        self,
        ring: RingName,
        n: u64,
        link: Link,
    ) -> Result<Option<Plan>, PlanError> {
        let field = with_ring!(ring, R => R::FIELD);
        match self {
            Self::Vole(security) => {
                let wishes = Wishes {
                    total: Some(n),
                    security,
                    link,
                    ..Wishes::default()
                };
                Plan::new(Kind::Vole(field), &wishes).map(Some)
            }
            Self::Paper80 => Plan::paper80(field, n).map(Some),
            _ => Ok(None),
        }
    }

    /// Bytes that it sends for `n` entries at least, by a formula; zero where there is none.
    pub(super) fn formula(self, ring: RingName, n: u64) -> u64 {
        match self {
            Self::Gilboa => with_ring!(ring, R => R::bytes(n as usize)),
            _ => 0,
        }
    }

    /// What its time grows in proportion to.
    pub(super) fn work(self, n: u64) -> f64 {
        match self {
            Self::WholeDomain => {
                let set = self.slow_plan(n).set;
                set.n as f64 * set.t as f64
            }
            Self::Floram => self.slow_plan(n).set.n as f64,
            _ => n as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different() {
        let all = Candidate::POINT_FUNCTIONS.into_iter();
        let mut names: Vec<_> = all
            .chain(Candidate::VECTOR_OLES)
            .map(Candidate::name)
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn plans() {
        let link = Link::default();
        for candidate in Candidate::VECTOR_OLES {
            for ring in [RingName::Fp61, RingName::Z64, RingName::Gf128] {
                let plan = candidate.plan(ring, 10_000, link);
                assert_eq!(plan.is_ok(), candidate.exists(ring), "{candidate:?}");
            }
        }
        // 192 trees of 2^14 leaves, and 382 of 2^16.
        let grown = Candidate::WholeDomain.work(1 << 16) / Candidate::WholeDomain.work(1 << 14);
        assert!((grown - 4.0 * 382.0 / 192.0).abs() < 1e-9);
        assert_eq!(Candidate::Gilboa.formula(RingName::Fp61, 1000), 488_000);
        assert_eq!(Candidate::Floram.formula(RingName::Fp61, 1000), 0);
    }
}
