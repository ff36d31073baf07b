//! The search for the cheapest ladder, by the model of [`cost`].

use super::{Base, Kind, Plan, Step, own_sets};
use crate::{Link, Noise, Security, bootstrap::cost, lpn::LpnSet};

/// A way to some number of correlations.
pub(super) struct Way {
    pub(super) base: Base,
    pub(super) ladder: Vec<&'static LpnSet>,
    pub(super) cost: f64,
}

impl Plan {
    /// The cheapest way to make `need` correlations without a round.
    pub(super) fn way_from_base(&self, need: u64, link: Link) -> Way {
        let ways = self.kind.bases().into_iter().map(|base| Way {
            base,
            ladder: Vec::new(),
            cost: cost::base(base, need, link),
        });
        ways.min_by(|a, b| a.cost.total_cmp(&b.cost))
            .expect("there is a base for every kind")
    }

    /// The cheapest way to make `need` correlations, with rounds of `sets` or without.
    pub(super) fn way_to(&self, need: u64, sets: &[&'static LpnSet], link: Link) -> Way {
        let mut best = self.way_from_base(need, link);
        for set in sets.iter().filter(|set| set.n as u64 >= need) {
            let step = self.shaped(set, need as usize, need as usize, 0);
            if step.need as u64 >= need {
                continue;
            }
            let mut way = self.way_to(step.need as u64, sets, link);
            way.cost += self.round_cost(step, need, link);
            if way.cost < best.cost {
                way.ladder.push(set);
                best = way;
            }
        }
        best
    }

    /// Bits sent to make `need` correlations, in the way that sends the fewest.
    pub(in crate::bootstrap) fn bits_to(
        kind: Kind,
        security: Security,
        noise: Noise,
        need: u64,
    ) -> f64 {
        // So slow that nothing else counts.
        let link = Link {
            bits_per_second: 1e-6,
            round_trip: 0.0,
        };
        let plan = Self::empty(kind, noise, security);
        let way = plan.way_to(need, &own_sets(kind, noise), link);
        way.cost / 1e9 * link.bits_per_second
    }

    fn round_cost(&self, step: Step, outputs: u64, link: Link) -> f64 {
        let leaves = match self.noise {
            Noise::Regular => step.n,
            // One level fewer than the bound that the OTs are counted with.
            Noise::Uniform => step.trees << (step.levels / step.trees - 1),
        };
        let round = cost::Round {
            security: self.security,
            noise: self.noise,
            k: step.set.k,
            trees: step.trees,
            levels: step.levels,
            leaves,
            outputs,
        };
        cost::round(&round, link)
    }

    /// All rounds of the last instance, which is the only one in the ladder.
    pub(super) fn rounds_cost(&self, link: Link) -> f64 {
        // A stream without end is rated at this length.
        const LONG: u64 = 1 << 28;
        let total = self.total.unwrap_or(LONG);
        let first = self.step(0, 0);
        if first.keep == 0 {
            return self.round_cost(first, total, link);
        }
        let rounds = total as f64 / first.deliver as f64;
        rounds * self.round_cost(first, first.n as u64, link)
    }
}
