//! The work of a plan: its rounds, counted.

use volery_pcg::correlation::Correlation as Pipeline;
use volery_pcg::lpn::LpnSet;
use volery_pcg::{Plan, Security};

/// The work of a round of a plan with regular noise on half-trees.
pub(super) struct Round {
    set: &'static LpnSet,
    trees: u64,
    pub(super) outputs: u64,
}

impl Round {
    fn new(set: &'static LpnSet, outputs: u64) -> Self {
        Self {
            set,
            trees: outputs.div_ceil(set.block() as u64),
            outputs,
        }
    }

    /// Outputs of the previous round that it consumes.
    fn need<P: Pipeline>(&self, security: Security) -> u64 {
        let mask = match security {
            Security::SemiHonest => 0,
            _ => P::MASK as u64,
        };
        self.set.k as u64 + P::VALUES as u64 * self.trees + P::LEVELS as u64 * self.levels() + mask
    }

    /// Leaves of its trees.
    pub(super) fn leaves(&self) -> u64 {
        self.trees * self.set.block() as u64
    }

    /// Levels of its trees: each takes an OT.
    pub(super) fn levels(&self) -> u64 {
        self.trees * u64::from(self.set.block().ilog2())
    }
}

/// The rounds for `n` outputs: each instance makes the outputs that the next one consumes, and the
/// last repeats.
pub(super) fn rounds<P: Pipeline>(plan: &Plan, n: u64) -> Vec<Round> {
    let Some((last, earlier)) = plan.schedule().split_last() else {
        return Vec::new();
    };
    let need = |round: &Round| round.need::<P>(plan.security());
    let mut rounds = Vec::new();
    let mut left = n;
    while left > last.n as u64 {
        let round = Round::new(last, last.n as u64);
        left -= round.outputs - need(&round);
        rounds.push(round);
    }
    rounds.push(Round::new(last, left));
    for set in earlier.iter().rev() {
        rounds.insert(0, Round::new(set, need(&rounds[0])));
    }
    rounds
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use volery_field::Fp61;
    use volery_pcg::lpn::estimate::Field;
    use volery_pcg::{Kind, PlanOptions, Protocol};

    use super::*;

    /// The trees of the first round of each instance are those of the plan.
    fn check<P: Pipeline>(plan: impl Fn(u64, Security) -> Plan) {
        for n in [17_537, 1 << 20, 10_000_000, 1 << 26] {
            for security in [Security::SemiHonest, Security::Malicious] {
                let plan = plan(n, security);
                let rounds = rounds::<P>(&plan, n);
                let mut text = plan.base().to_string();
                for round in &rounds[..plan.schedule().len()] {
                    text += &format!("+{}x{}", round.set.name, round.trees);
                }
                assert_eq!(text, plan.describe());
                // A round of the last instance keeps the outputs that another whole round would
                // consume.
                let steps = plan.schedule().len() - 1;
                let kept = rounds
                    .windows(2)
                    .enumerate()
                    .map(|(number, pair)| pair[usize::from(number < steps)].need::<P>(security));
                let made: u64 = rounds.iter().map(|round| round.outputs).sum();
                assert_eq!(made - kept.sum::<u64>(), n);
            }
        }
    }

    #[test]
    fn rounds_are_those_of_the_plan() {
        use volery_pcg::correlation::{Cot, Vole};
        let plan = |kind, n, security| {
            let options = PlanOptions {
                total: Some(n),
                security,
                protocol: Protocol::Primal,
                ..PlanOptions::default()
            };
            Plan::new(kind, &options).unwrap()
        };
        check::<Vole<Fp61>>(|n, security| plan(Kind::Vole(Field::Fp61), n, security));
        check::<Cot>(|n, security| plan(Kind::Cot, n, security));
    }
}
