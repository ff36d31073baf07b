//! The public state of a round: its instance, code, trees and hash functions.

use std::sync::Arc;

use volery_channel::SessionId;
use volery_primitives::{Block, ro::RandomOracle};

use crate::{
    Noise, Plan, Security,
    check::Context,
    correlation::Correlation,
    ggm::{Growth, TreePrgs},
    mpcot::{Cells, Layout},
    plan::{ETA, Step},
};

/// Counts the rounds of a stream.
pub(crate) struct Rounds {
    plan: Plan,
    session: SessionId,
    growth: Growth,
    /// Whether the leaves' lowest bits are for `u`.
    carries: bool,
    number: usize,
    /// Outputs returned by the rounds so far.
    delivered: u64,
    /// The layout of the last round, which usually serves the next one too.
    layout: Option<(Step, Arc<Layout>)>,
}

/// The public side of one round.
pub(crate) struct Round {
    pub(crate) step: Step,
    pub(crate) layout: Arc<Layout>,
    /// The seed of its code, which has `step.set.k` rows.
    pub(crate) code: Block,
    pub(crate) prgs: TreePrgs,
    /// The context of its check.
    pub(crate) context: Context,
}

impl Rounds {
    pub(crate) fn new<K: Correlation>(plan: Plan, session: SessionId) -> Self {
        Self {
            growth: K::growth(plan.trees()),
            carries: K::CARRIES,
            plan,
            session,
            number: 0,
            delivered: 0,
            layout: None,
        }
    }

    /// Whether each round is checked.
    pub(crate) fn checked(&self) -> bool {
        // mutant(rounds-checked): `self.plan.security() == Security::Malicious` => `false`
        self.plan.security() == Security::Malicious
    }

    /// Whether the next round is one that repeats.
    #[cfg(feature = "gpu")]
    pub(crate) fn repeats(&self) -> bool {
        self.number + 1 >= self.plan.schedule().len()
    }

    /// Whether the plan's total has been returned.
    pub(crate) fn finished(&self) -> bool {
        self.plan.total() == Some(self.delivered)
    }

    /// The next round.
    pub(crate) fn next(&mut self) -> Round {
        assert!(!self.finished(), "no more correlations than the plan was made for");
        let step = self.plan.step(self.number, self.delivered);
        // mutant(rounds-trees): `self.number as u64` => `0`
        let prgs = TreePrgs::growing(self.growth, self.session, self.number as u64);
        let round = Round {
            step,
            layout: self.layout(step),
            code: self.public("volery lpn code", self.number as u64),
            prgs: if self.carries { prgs.with_cleared_leaves() } else { prgs },
            context: Context {
                session: self.session,
                // mutant(rounds-number): `self.number as u64` => `0`
                round: self.number as u64,
            },
        };
        self.number += 1;
        self.delivered += step.deliver as u64;
        round
    }

    fn layout(&mut self, step: Step) -> Arc<Layout> {
        if let Some((of, layout)) = &self.layout
            && (of.set, of.trees) == (step.set, step.trees)
        {
            return Arc::clone(layout);
        }
        let layout = Arc::new(match step.set.noise {
            Noise::Regular => Layout::regular(step.trees, step.set.block()),
            Noise::Uniform => {
                let key = self.public("volery cuckoo hashing of the noise", self.number as u64);
                let exact = self.growth == Growth::Ggm && !self.carries && !self.checked();
                let cells = if exact { Cells::Exact } else { Cells::Complete };
                Layout::cuckoo(step.n, step.set.t, ETA, key, cells)
            }
        });
        assert!(layout.batch().levels() <= step.levels, "the plan reserves an OT for each level");
        self.layout = Some((step, Arc::clone(&layout)));
        layout
    }

    fn public(&self, domain: &'static str, number: u64) -> Block {
        let mut oracle = RandomOracle::new(domain);
        // mutant(rounds-public-session): drop
        oracle.absorb(self.session.as_bytes());
        // mutant(rounds-public-number): drop
        oracle.absorb_u64(number);
        oracle.finish_block()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, PlanOptions, Protocol, correlation::Cot};

    #[test]
    fn rounds_have_keys_codes_and_contexts_of_their_own() {
        let options = PlanOptions {
            security: Security::Malicious,
            protocol: Protocol::Primal,
            ..PlanOptions::default()
        };
        let plan = Plan::new(Kind::Cot, &options).unwrap();
        let of =
            |session: u8| Rounds::new::<Cot>(plan.clone(), SessionId::from_bytes([session; 32]));
        let (mut keys, mut codes, mut contexts) = (Vec::new(), Vec::new(), Vec::new());
        for mut rounds in [of(1), of(2)] {
            for number in 0..3 {
                codes.push(rounds.public("a code", number));
                let round = rounds.next();
                keys.push(round.prgs.tree(0).children(Block::ZERO));
                contexts.push((round.context.session, round.context.round));
            }
        }
        assert!((0..6).all(|i| !keys[..i].contains(&keys[i])));
        assert!((0..6).all(|i| !codes[..i].contains(&codes[i])));
        assert!((0..6).all(|i| !contexts[..i].contains(&contexts[i])));
    }
}
