//! Which LPN instances lead from a few base correlations to the length that is wanted.

use std::fmt;

use volery_primitives::cuckoo;

use crate::{
    Noise, Security,
    lpn::{LpnSet, estimate::Field, sets},
};

/// Cuckoo hashing fails with probability at most `2^-ETA` (`eta` of section 8.2 of the 2019 paper).
pub const ETA: u32 = 40;

/// The rounds that both parties will run: a ladder of LPN instances, the last of which repeats.
///
/// Each round spends base correlations and makes more of them; what the next round needs is kept back. The
/// parties must use equal plans: the setup of a stream binds the ring, [`total`](Self::total) and
/// [`describe`](Self::describe) to the session, so that unequal ones fail there; a handshake that holds them says so first.
///
/// An instance with regular noise may be used for its first blocks only: an adversary against the shorter instance is
/// one against the longer that ignores the other samples.
#[derive(Clone, Debug)]
pub struct Plan {
    field: Field,
    noise: Noise,
    total: Option<u64>,
    /// The instances in order; empty where the base correlations themselves are the output.
    ladder: Vec<&'static LpnSet>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// The malicious form of this correlation does not exist.
    NotMalicious,
    /// No set of that name is made for this noise.
    NoSuchSet(String),
    /// The named set makes at most this many correlations at once.
    SetTooSmall(u64),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMalicious => f.write_str(
                "vector OLE is secure against semi-honest parties only in this version: its consistency check does \
                 not exist yet",
            ),
            Self::NoSuchSet(name) => write!(f, "no parameters named '{name}'"),
            Self::SetTooSmall(n) => write!(f, "these parameters make at most {n} correlations"),
        }
    }
}

impl std::error::Error for PlanError {}

/// What one round does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The instance.
    pub(crate) set: &'static LpnSet,
    /// Trees, and base correlations for the noise: one for each.
    pub(crate) trees: usize,
    /// Outputs made.
    pub(crate) n: usize,
    /// Outputs kept back for the next round; they are the first.
    pub(crate) keep: usize,
    /// Outputs handed out; the others are not computed.
    pub(crate) deliver: usize,
}

impl Step {
    /// Base correlations that the round spends.
    pub(crate) fn need(&self) -> usize {
        self.set.k + self.trees
    }
}

impl Plan {
    /// The plan for `total` correlations, or for a stream without end, with 128 bits of security.
    ///
    /// # Errors
    /// If the security is not to be had.
    pub fn new(
        field: Field,
        total: Option<u64>,
        noise: Noise,
        security: Security,
    ) -> Result<Self, PlanError> {
        if security != Security::SemiHonest {
            return Err(PlanError::NotMalicious);
        }
        let candidates: Vec<_> = sets()
            .iter()
            .filter(|set| set.noise == noise && set.claim >= 128)
            .collect();
        let smallest_for = |n: u64| candidates.iter().copied().find(|set| set.n as u64 >= n);
        let largest = *candidates.last().expect("there are sets for each noise");
        let mut plan = Self {
            field,
            noise,
            total,
            ladder: Vec::new(),
        };
        if total.is_some_and(|total| total <= candidates[0].k as u64) {
            return Ok(plan);
        }
        let last = total.and_then(smallest_for).unwrap_or(largest);
        plan.ladder.push(last);
        while plan.ladder[0] != candidates[0] {
            let need = plan.step(0, 0).need() as u64;
            plan.ladder.insert(0, smallest_for(need).unwrap_or(largest));
        }
        Ok(plan)
    }

    /// The plan of the 2019 paper itself, for reproduction only: one round of the 80-bit instance of its Table 1 that
    /// is large enough for `total` correlations, the base made by Gilboa's multiplication alone.
    ///
    /// The noise values of `z64` are odd, where the paper draws any: with those the instances fall short of 80 bits.
    ///
    /// # Errors
    /// If `total` is above 2^24.
    pub fn paper80(field: Field, total: u64) -> Result<Self, PlanError> {
        let paper = |set: &&LpnSet| set.claim == 80;
        let set = sets()
            .iter()
            .filter(paper)
            .find(|set| set.n as u64 >= total)
            .ok_or(PlanError::SetTooSmall(1 << 24))?;
        Ok(Self {
            field,
            noise: Noise::Uniform,
            total: Some(total),
            ladder: vec![set],
        })
    }

    /// The ring the plan was made for.
    #[must_use]
    pub fn field(&self) -> Field {
        self.field
    }

    /// The noise of all instances.
    #[must_use]
    pub fn noise(&self) -> Noise {
        self.noise
    }

    /// Correlations that the plan makes; none if the stream has no end.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// The instances in the order of their use; the last repeats.
    #[must_use]
    pub fn ladder(&self) -> &[&'static LpnSet] {
        &self.ladder
    }

    /// The plan in one word: the instances with their trees in the first round of each.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = String::from("gilboa");
        for number in 0..self.ladder.len() {
            let step = self.step(number, 0);
            text += &format!("+{}x{}", step.set.name, step.trees);
        }
        text
    }

    /// Bits of security against all attacks of [`crate::lpn::estimate`]: the least over the instances; infinite
    /// where no LPN instance is used.
    #[must_use]
    pub fn security_bits(&self) -> f64 {
        self.ladder
            .iter()
            .map(|set| crate::lpn::estimate::security_bits(&set.instance(self.field)).bits)
            .fold(f64::INFINITY, f64::min)
    }

    /// The bits that the instances claim: 128, or 80 for the paper's.
    #[must_use]
    pub fn claimed_bits(&self) -> u32 {
        self.ladder.iter().map(|set| set.claim).min().unwrap_or(128)
    }

    /// The assumptions, in one line.
    #[must_use]
    pub fn assumption(&self) -> String {
        let lpn = match (self.ladder.is_empty(), self.noise) {
            (true, _) => "",
            (false, Noise::Regular) => ", primal LPN with a 10-local code and regular noise",
            (false, Noise::Uniform) => ", primal LPN with a 10-local code and exact noise",
        };
        format!(
            "gap Diffie-Hellman in Ristretto255, AES-128 an ideal cipher, BLAKE3 a random oracle{lpn}"
        )
    }

    /// Base correlations that are to be made by other means before the first round.
    pub(crate) fn base(&self) -> usize {
        if self.ladder.is_empty() {
            return 0;
        }
        self.step(0, 0).need()
    }

    /// Round `number`, when `delivered` correlations have been handed out before it.
    pub(crate) fn step(&self, number: usize, delivered: u64) -> Step {
        let last = self.ladder.len() - 1;
        let set = self.ladder[number.min(last)];
        if number < last {
            let keep = self.step(number + 1, 0).need();
            return self.shaped(set, keep, keep, 0);
        }
        let left = self.total.map(|total| total - delivered);
        match left {
            Some(left) if left <= set.n as u64 => self.shaped(set, left as usize, 0, left as usize),
            _ => {
                let keep = self.shaped(set, set.n, 0, 0).need();
                self.shaped(set, set.n, keep, set.n - keep)
            }
        }
    }

    /// The step with as few trees as `outputs` outputs take.
    fn shaped(&self, set: &'static LpnSet, outputs: usize, keep: usize, deliver: usize) -> Step {
        let (trees, n) = match self.noise {
            Noise::Regular => {
                let trees = outputs.div_ceil(set.block());
                (trees, trees * set.block())
            }
            Noise::Uniform => (cuckoo::bins_for(set.t, ETA), set.n),
        };
        Step {
            set,
            trees,
            n,
            keep,
            deliver,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    /// What a round needs is what the one before it kept, and the outputs add up to the total.
    fn check(plan: &Plan, wanted: u64) {
        let (mut delivered, mut number, mut store) = (0, 0, plan.base());
        while delivered < wanted {
            let step = plan.step(number, delivered);
            assert!(step.need() <= store, "round {number} of {plan:?}");
            assert!(step.keep + step.deliver <= step.n && step.n <= step.set.n);
            store = step.keep;
            delivered += step.deliver as u64;
            number += 1;
            assert!(step.deliver > 0 || number < plan.ladder.len(), "progress");
        }
        if plan.total == Some(wanted) {
            assert_eq!(delivered, wanted);
        }
    }

    #[test]
    fn rounds_feed_each_other() {
        for noise in [Noise::Regular, Noise::Uniform] {
            for total in [
                4609,
                17_536,
                17_537,
                100_000,
                134_145,
                870_401,
                1 << 20,
                2_396_160,
                2_396_161,
                10_000_000,
                6_225_920,
                6_225_921,
                1 << 24,
                1 << 40,
            ] {
                let plan =
                    Plan::new(Field::Fp61, Some(total), noise, Security::SemiHonest).unwrap();
                check(&plan, total.min(1 << 27));
                assert_eq!(plan.claimed_bits(), 128);
            }
            let stream = Plan::new(Field::Fp61, None, noise, Security::SemiHonest).unwrap();
            check(&stream, 100_000_000);
        }
        for total in [1, 1 << 14, 1 << 20, 1 << 24] {
            let plan = Plan::paper80(Field::Fp61, total).unwrap();
            check(&plan, total);
            assert_eq!(plan.claimed_bits(), 80);
        }
    }

    #[test]
    fn few_correlations_take_no_lpn() {
        for total in [0, 1, 4608] {
            let plan = Plan::new(
                Field::Gf128,
                Some(total),
                Noise::Regular,
                Security::SemiHonest,
            )
            .unwrap();
            assert!(plan.ladder().is_empty());
            assert_eq!((plan.base(), plan.describe().as_str()), (0, "gilboa"));
        }
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        let refused = Plan::new(Field::Fp61, Some(5), Noise::Regular, Security::Malicious);
        assert_eq!(refused.unwrap_err(), PlanError::NotMalicious);
        let refused = Plan::paper80(Field::Fp61, (1 << 24) + 1);
        assert_eq!(refused.unwrap_err(), PlanError::SetTooSmall(1 << 24));
    }
}
