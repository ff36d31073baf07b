//! Which LPN instances lead from a few base correlations to the length that is wanted.

mod choice;
mod error;
mod low;
mod search;

pub use choice::{Candidate, ParseProtocolError, Protocol};
pub use error::PlanError;

use std::fmt;

use volery_channel::SessionId;
use volery_ot::softspoken::SmallField;
use volery_primitives::ro::RandomOracle;

use super::{cost::Link, dual, size};
use crate::{
    Noise, Security, Trees,
    lpn::{Level, LpnSet, dual::params::Shape, estimate::Field, set_named, sets},
};

/// Cuckoo hashing fails with probability at most `2^-ETA` (`eta` of section 8.2 of the 2019 paper).
pub const ETA: u32 = 40;

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Correlated OT.
    Cot,
    /// Vector-OLE over the ring that the estimator sees as this.
    Vole(Field),
}

/// What is wanted of a plan, apart from its kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes<'a> {
    /// How many correlations; none: a stream without end.
    pub total: Option<u64>,
    /// Where the LPN noise sits.
    pub noise: Noise,
    /// Against whom.
    pub security: Security,
    /// On which trees.
    pub trees: Trees,
    /// The link between the parties: on a slow one, more is computed to send less.
    pub link: Link,
    /// How the correlations are made.
    pub protocol: Protocol,
    /// The set of the repeated round of primal LPN, by name, which leaves no other protocol; none: chosen by cost.
    pub set: Option<&'a str>,
}

/// How the base correlations of the first round are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// By correlated OT in the ring: [`crate::gilboa`].
    Gilboa,
    /// By OT extension: `SoftSpokenOT`, with its checks unless the plan is for semi-honest parties.
    SoftSpoken(SmallField),
    /// By OT extension with `x` as its difference, 128 correlated OTs to an element of F_2^128; always with the checks.
    Packed(SmallField),
    /// By semi-honest OT extension: IKNP. For reproduction only.
    Iknp,
}

/// The rounds that both parties will run: a ladder of LPN instances, the last of which repeats.
///
/// Each round spends base correlations and makes more of them; what the next round needs is kept back. The
/// parties must use equal plans: the setup of a stream binds its kind, [`total`](Self::total),
/// [`security`](Self::security) and [`describe`](Self::describe) to the session, so that unequal ones fail there; a
/// handshake that holds them says so first.
///
/// Protocol and ladder are the cheapest by a rough model of time and bytes on the given [`Link`]
/// ([`candidates`](Self::candidates)): few correlations do not pay for a round that makes millions, a fast link carries
/// more bits in the time that it takes to compute them away.
///
/// An instance with regular noise may be used for its first blocks only: an adversary against the shorter instance is
/// one against the longer that ignores the other samples.
#[derive(Clone, Debug)]
pub struct Plan {
    kind: Kind,
    noise: Noise,
    security: Security,
    trees: Trees,
    total: Option<u64>,
    base: Base,
    /// The instances in order; empty where the base correlations themselves are the output, and where dual LPN is used.
    ladder: Vec<&'static LpnSet>,
    is_dual: bool,
}

/// What one round does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// The instance.
    pub(crate) set: &'static LpnSet,
    /// Number of trees.
    pub(crate) trees: usize,
    /// OTs that the trees take together, at most.
    pub(crate) levels: usize,
    /// Base correlations that the round spends.
    pub(crate) need: usize,
    /// Outputs made.
    pub(crate) n: usize,
    /// Outputs kept back for the next round; they are the first.
    pub(crate) keep: usize,
    /// Outputs handed out; the others are not computed.
    pub(crate) deliver: usize,
}

impl Kind {
    /// The ring of the noise, as the estimator sees it.
    #[must_use]
    pub fn field(self) -> Field {
        match self {
            Self::Cot => Field::F2,
            Self::Vole(field) => field,
        }
    }

    /// Refuses what is no vector OLE.
    fn exists(self) -> Result<(), PlanError> {
        match self {
            Self::Vole(field @ (Field::F2 | Field::Z64Uniform | Field::Gf128Binary)) => {
                Err(PlanError::NoSuchRing(field))
            }
            _ => Ok(()),
        }
    }

    fn bases(self) -> Vec<Base> {
        let fields = || SmallField::ALL.into_iter();
        match self {
            Self::Cot => fields().map(Base::SoftSpoken).collect(),
            Self::Vole(Field::Gf128) => fields().map(Base::Packed).collect(),
            Self::Vole(_) => vec![Base::Gilboa],
        }
    }
}

impl Plan {
    /// The cheapest plan with 128 bits of security that fulfils the wishes.
    ///
    /// # Errors
    /// If the security is not to be had, there is no set of that name for this kind and noise, or no such kind.
    pub fn new(kind: Kind, wishes: &Wishes<'_>) -> Result<Self, PlanError> {
        let best = Self::candidates(kind, wishes)?.into_iter().next();
        Ok(best.expect("there are candidates, or an error").plan)
    }

    /// A plan without rounds yet.
    fn empty(kind: Kind, noise: Noise, security: Security) -> Self {
        Self {
            kind,
            noise,
            security,
            trees: Trees::default(),
            total: None,
            base: kind.bases()[0],
            ladder: Vec::new(),
            is_dual: false,
        }
    }

    /// The plan of the 2019 paper itself, for reproduction only: one round of the 80-bit instance of its Table 1 that
    /// is large enough for `total` correlations, on GGM trees, the base made by Gilboa's multiplication alone.
    ///
    /// The noise values of `z64` are odd, where the paper draws any: with those the instances fall short of 80 bits.
    ///
    /// # Errors
    /// If `total` is above 2^24, or there is no such kind.
    pub fn paper80(field: Field, total: u64) -> Result<Self, PlanError> {
        Kind::Vole(field).exists()?;
        let paper = |set: &&LpnSet| set.claim == 80;
        let set = sets()
            .iter()
            .filter(paper)
            .find(|set| set.n as u64 >= total)
            .ok_or(PlanError::SetTooSmall(1 << 24))?;
        Ok(Self {
            kind: Kind::Vole(field),
            noise: Noise::Uniform,
            security: Security::SemiHonest,
            trees: Trees::Ggm,
            total: Some(total),
            base: Base::Gilboa,
            ladder: vec![set],
            is_dual: false,
        })
    }

    /// The plan of the Ferret paper, for reproduction only: Table 2 on GGM trees, over IKNP where semi-honest, and where
    /// malicious over SoftSpokenOT with the same traffic in place of KOS, whose proof has a gap.
    ///
    /// The setup set for regular noise holds [less than 128 bits](LpnSet::claim) by today's attacks.
    #[must_use]
    pub fn ferret(total: Option<u64>, noise: Noise, security: Security) -> Self {
        let names = match noise {
            Noise::Regular => ["ferret-reg-setup", "ferret-reg"],
            Noise::Uniform => ["ferret-uni-setup", "ferret-uni"],
        };
        Self {
            kind: Kind::Cot,
            noise,
            security,
            trees: Trees::Ggm,
            total,
            base: match security {
                Security::SemiHonest => Base::Iknp,
                Security::Malicious => Base::SoftSpoken(SmallField::Bits1),
            },
            ladder: names
                .map(|name| set_named(name).expect("the paper's sets are there"))
                .to_vec(),
            is_dual: false,
        }
    }

    /// What the plan is for.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The noise of all instances.
    #[must_use]
    pub fn noise(&self) -> Noise {
        self.noise
    }

    /// Against whom the rounds are secure.
    #[must_use]
    pub fn security(&self) -> Security {
        self.security
    }

    /// The trees of all rounds.
    #[must_use]
    pub fn trees(&self) -> Trees {
        self.trees
    }

    /// Correlations that the plan makes; none if the stream has no end.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// How the base correlations are made.
    #[must_use]
    pub fn base(&self) -> Base {
        self.base
    }

    /// The instances in the order of their use; the last repeats.
    #[must_use]
    pub fn ladder(&self) -> &[&'static LpnSet] {
        &self.ladder
    }

    /// The plan in one word: the base, the trees where they are not half-trees, and the instances with their trees in the
    /// first round of each.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = self.base.to_string();
        if self.trees != Trees::Half && !self.ladder.is_empty() {
            text += &format!("+{}", self.trees);
        }
        for number in 0..self.ladder.len() {
            let step = self.step(number, 0);
            text += &format!("+{}x{}", step.set.name, step.trees);
        }
        if let Some(shape) = self.dual() {
            let Shape { trees, deep, depth } = shape;
            text += &format!("+dual{depth}x{}", trees - deep);
            if deep > 0 {
                text += &format!("+{}x{deep}", depth + 1);
            }
        }
        text
    }

    /// The instance that holds the fewest bits in the ring of the plan, and its level there; none where no LPN instance is
    /// used.
    #[must_use]
    pub fn weakest(&self) -> Option<(&'static LpnSet, Level)> {
        let field = self.kind.field();
        let levels = self.ladder.iter().map(|set| {
            let level = set.level(field);
            (
                *set,
                level.expect("a plan takes sets of its ring from the list only"),
            )
        });
        levels.min_by(|(_, a), (_, b)| a.bits.total_cmp(&b.bits))
    }

    /// Bits of security against all attacks of [`crate::lpn::estimate`], and with dual LPN against all linear tests: the least
    /// over the instances; infinite where no LPN instance is used.
    #[must_use]
    pub fn security_bits(&self) -> f64 {
        if self.is_dual {
            return dual::security_bits(self.kind.field());
        }
        self.weakest()
            .map_or(f64::INFINITY, |(_, level)| level.bits)
    }

    /// The bits that the instances claim: 128, or fewer for some of the papers'.
    #[must_use]
    pub fn claimed_bits(&self) -> u32 {
        self.ladder.iter().map(|set| set.claim).min().unwrap_or(128)
    }

    /// The probability, as the negative of its logarithm, with which wrong correlations pass the check of one round; none
    /// where there is no check. 60 over `fp61`, 63 over `gf128` and for correlated OT: see [`crate::check`].
    #[must_use]
    pub fn statistical_bits(&self) -> Option<u32> {
        match (self.security, self.kind) {
            (Security::SemiHonest, _) => None,
            (Security::Malicious, Kind::Vole(Field::Fp61)) => Some(60),
            // Without rounds there is only the check of the OT extension, which is no statistical one.
            (Security::Malicious, _) => (!self.is_direct()).then_some(63),
        }
    }

    /// The assumptions in one line, with their level: the bits that the weakest LPN instance holds, and against what.
    #[must_use]
    pub fn assumption(&self) -> String {
        let direct = self.is_direct();
        let lpn = match (direct, self.noise) {
            (true, _) => "",
            _ if self.is_dual => ", dual LPN with a Reed-Muller-accumulate code and regular noise",
            (false, Noise::Regular) => ", primal LPN with a 10-local code and regular noise",
            (false, Noise::Uniform) => ", primal LPN with a 10-local code and exact noise",
        };
        let leakage = match (self.security, self.noise) {
            (Security::Malicious, Noise::Regular) if !direct => ", with static leakage",
            (Security::Malicious, Noise::Uniform) if !direct => ", with static, functional leakage",
            _ => "",
        };
        let level = match self.weakest() {
            None if direct => "no LPN; 128 bits".to_owned(),
            None => format!(
                "{:.1} bits over {}, by linear tests",
                self.security_bits(),
                self.kind.field()
            ),
            Some((set, Level { bits, attack })) => format!(
                "{bits:.1} bits for the weakest set, {} over {}, by {attack}",
                set.name,
                self.kind.field()
            ),
        };
        format!(
            "gap Diffie-Hellman in Ristretto255, AES-128 an ideal cipher, BLAKE3 a random oracle{lpn}{leakage}; {level}"
        )
    }

    /// A session of its own for a part of the protocol, bound to all that the plan says.
    pub(crate) fn session(
        &self,
        mut oracle: RandomOracle,
        session: SessionId,
        part: &str,
    ) -> SessionId {
        oracle.absorb(session.as_bytes());
        let total = format!("{:?}", self.total);
        let security = self.security.to_string();
        for bound in [&self.describe(), &total, &security, part] {
            oracle.absorb(bound.as_bytes());
        }
        SessionId::from_bytes(oracle.finish32())
    }

    /// Base correlations that are to be made by other means before the first round.
    pub(crate) fn base_count(&self) -> usize {
        if let Some(shape) = self.dual() {
            return self.dual_need(shape);
        }
        if self.ladder.is_empty() {
            return 0;
        }
        self.step(0, 0).need
    }

    /// Round `number`, when `delivered` correlations have been handed out before it.
    pub(crate) fn step(&self, number: usize, delivered: u64) -> Step {
        let last = self.ladder.len() - 1;
        let set = self.ladder[number.min(last)];
        if number < last {
            let keep = self.step(number + 1, 0).need;
            return self.shaped(set, keep, keep, 0);
        }
        let left = self.total.map(|total| total - delivered);
        match left {
            Some(left) if left <= set.n as u64 => self.shaped(set, left as usize, 0, left as usize),
            _ => {
                let keep = self.shaped(set, set.n, 0, 0).need;
                self.shaped(set, set.n, keep, set.n - keep)
            }
        }
    }

    /// The step with as few trees as `outputs` outputs take.
    fn shaped(&self, set: &'static LpnSet, outputs: usize, keep: usize, deliver: usize) -> Step {
        let (trees, n, depth) = match self.noise {
            Noise::Regular => {
                let trees = outputs.div_ceil(set.block());
                (trees, trees * set.block(), set.block().ilog2() as usize)
            }
            noise @ Noise::Uniform => {
                let trees = size::trees_of(set);
                (trees, set.n, size::depth(noise, set.n, trees))
            }
        };
        let levels = trees * depth;
        let need = size::Spending::of(self.kind).need(self.security, set.k, trees, levels);
        Step {
            set,
            trees,
            levels,
            need,
            n,
            keep,
            deliver,
        }
    }
}

/// The sets that hold 128 bits and are made for this kind and noise.
fn usable(kind: Kind, noise: Noise) -> impl Fn(&&'static LpnSet) -> bool {
    move |set| set.noise == noise && set.claim >= 128 && set.holds_over(kind.field())
}

/// Those of them that need not be asked for by name.
fn own_sets(kind: Kind, noise: Noise) -> Vec<&'static LpnSet> {
    let usable = sets().iter().filter(usable(kind, noise));
    usable.filter(|set| !set.paper).collect()
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gilboa => f.pad("gilboa"),
            Self::SoftSpoken(field) => write!(f, "softspoken{}", field.bits()),
            Self::Packed(field) => write!(f, "packed{}", field.bits()),
            Self::Iknp => f.pad("iknp"),
        }
    }
}

#[cfg(test)]
mod parts;
#[cfg(test)]
mod tests;
