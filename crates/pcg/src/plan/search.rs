//! The search for the cheapest schedule, by the model of [`cost`].

use super::{
    Base, Kind, Link, Plan, PlanOptions, Step,
    cost::{self, Cost},
    own_sets,
};
use crate::{Noise, Security, lpn::LpnSet};

/// An unlimited stream is rated at this length.
const LONG: u64 = 1 << 28;

/// A way to make a number of correlations.
struct Way {
    base: Base,
    schedule: Vec<&'static LpnSet>,
    cost: Cost,
}

impl Plan {
    /// The plan with rounds of `set`, with the cheapest way to the base of the first, and its cost.
    pub(super) fn primal(
        mut self,
        (set, instances): (&'static LpnSet, usize),
        options: &PlanOptions<'_>,
    ) -> (Self, Cost) {
        let link = options.link;
        self.schedule = vec![set];
        self.instances = instances;
        let need = self.step(0, 0).need as u64;
        let way = self.way_to(need, &own_sets(self.kind, self.noise), link);
        self.substreams = options.substreams.unwrap_or(1);
        let cost = way.cost * self.substreams as f64 + self.rounds_cost(link);
        self.base = way.base;
        self.schedule = way.schedule;
        self.schedule.push(set);
        (self, cost)
    }

    /// The cheapest way to make `need` correlations without a round.
    fn way_from_base(&self, need: u64, link: Link) -> Way {
        let ways = self.kind.bases().into_iter().map(|base| Way {
            base,
            schedule: Vec::new(),
            cost: cost::base(base, self.packed_ots(), self.security, need, link),
        });
        ways.min_by(|a, b| a.cost.time.total_cmp(&b.cost.time)).expect("every kind has a base")
    }

    /// The cheapest way to make `need` correlations, with rounds of `sets` or without.
    fn way_to(&self, need: u64, sets: &[&'static LpnSet], link: Link) -> Way {
        let mut best = self.way_from_base(need, link);
        for set in sets.iter().filter(|set| set.n as u64 >= need) {
            let step = self.shaped((set, 1), need as usize, need as usize, 0);
            if step.need as u64 >= need {
                continue;
            }
            let round = self.round_cost(step, need, link);
            // Parties wait for this search: it skips the base of a round that alone costs more than
            // the best way so far.
            if round.time >= best.cost.time {
                continue;
            }
            let mut way = self.way_to(step.need as u64, sets, link);
            way.cost = way.cost + round;
            if way.cost.time < best.cost.time {
                way.schedule.push(set);
                best = way;
            }
        }
        best
    }

    /// Bits sent to make `need` correlations, in the way that sends the fewest.
    pub(super) fn bits_to(kind: Kind, security: Security, noise: Noise, need: u64) -> f64 {
        // Slow enough that nothing else counts.
        let link = Link { bits_per_second: 1e-6, round_trip: 0.0 };
        let plan = Self::empty(kind, noise, security);
        let way = plan.way_to(need, &own_sets(kind, noise), link);
        way.cost.bits
    }

    fn round_cost(&self, step: Step, outputs: u64, link: Link) -> Cost {
        let leaves = match self.noise {
            Noise::Regular => step.n,
            // One level fewer than the bound that counts the OTs.
            Noise::Uniform => step.trees << (step.levels / step.trees - 1),
        };
        let round = cost::Round {
            kind: self.kind,
            security: self.security,
            noise: self.noise,
            k: step.set.k,
            instances: step.instances,
            trees: step.trees,
            levels: step.levels,
            leaves,
            outputs,
        };
        cost::round(&round, link)
    }

    /// All rounds of the last instance, which is the only one in the schedule.
    fn rounds_cost(&self, link: Link) -> Cost {
        let total = self.total.unwrap_or(LONG);
        let first = self.step(0, 0);
        if first.keep == 0 {
            return self.round_cost(first, total, link);
        }
        let rounds = total as f64 / first.deliver as f64;
        self.round_cost(first, first.n as u64, link) * rounds
    }

    /// All outputs from the base itself.
    pub(super) fn direct_cost(&self, link: Link) -> Cost {
        let total = self.total.unwrap_or(LONG);
        cost::base(self.base, self.packed_ots(), self.security, total, link)
    }

    /// All outputs by dual LPN, with their base.
    pub(super) fn dual_cost(&self, link: Link) -> Cost {
        let total = self.total.unwrap_or(LONG);
        let need = self.base_count() as u64;
        let base = cost::base(self.base, self.packed_ots(), self.security, need, link);
        self.dual_steps(total).fold(base, |cost, (step, alike)| {
            let bytes = self.instance_bytes(step.shape) as f64;
            let one = cost::dual(self.kind, self.security, step.shape, bytes, link);
            cost + one * alike as f64
        })
    }
}
