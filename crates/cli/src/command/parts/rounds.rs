//! How much work a plan is: its rounds, counted.

use volery_pcg::ggm::Shape;
use volery_pcg::lpn::LpnSet;

/// What a round of a plan with regular noise makes.
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

    /// Outputs of the round before it that it spends.
    fn need(&self) -> u64 {
        self.set.k as u64 + self.trees
    }

    /// Leaves of its trees.
    pub(super) fn leaves(&self) -> u64 {
        self.trees * self.set.block() as u64
    }

    /// OTs that its trees take: one a level.
    pub(super) fn ots(&self) -> u64 {
        self.trees * u64::from(Shape::new(self.set.block()).depth())
    }
}

/// The rounds for `n` outputs: each instance makes what the next one spends, and the last repeats.
pub(super) fn rounds(ladder: &[&'static LpnSet], n: u64) -> Vec<Round> {
    let Some((last, earlier)) = ladder.split_last() else {
        return Vec::new();
    };
    let mut rounds = Vec::new();
    let mut left = n;
    while left > last.n as u64 {
        let round = Round::new(last, last.n as u64);
        left -= round.outputs - round.need();
        rounds.push(round);
    }
    rounds.push(Round::new(last, left));
    for set in earlier.iter().rev() {
        rounds.insert(0, Round::new(set, rounds[0].need()));
    }
    rounds
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use volery_field::Fp61;
    use volery_pcg::{Noise, Security, vole};

    use super::*;

    /// The trees of the first round of each instance are those that the plan names itself.
    #[test]
    fn rounds_are_those_of_the_plan() {
        for n in [
            4609,
            17_536,
            17_537,
            100_000,
            1 << 20,
            6_225_921,
            10_000_000,
            1 << 26,
        ] {
            let plan = vole::plan::<Fp61>(Some(n), Noise::Regular, Security::SemiHonest).unwrap();
            let rounds = rounds(plan.ladder(), n);
            let mut text = String::from("gilboa");
            for round in &rounds[..plan.ladder().len()] {
                text += &format!("+{}x{}", round.set.name, round.trees);
            }
            assert_eq!(text, plan.describe());
            // A round of the last instance keeps what another whole round would spend.
            let kept = rounds.windows(2).map(|pair| {
                let repeats = pair[0].set == pair[1].set;
                pair[usize::from(!repeats)].need()
            });
            let made: u64 = rounds.iter().map(|round| round.outputs).sum();
            assert_eq!(made - kept.sum::<u64>(), n);
        }
        assert!(rounds(&[], 5).is_empty());
    }
}
