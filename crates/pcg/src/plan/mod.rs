//! Parameter schedules: the LPN instances that extend a few base correlations to the requested
//! length.

mod choice;
mod cost;
pub(crate) mod dual;
mod error;
mod kind;
mod search;
mod size;
mod traffic;

pub use choice::{Candidate, ParseProtocolError, Protocol};
pub use error::PlanError;
pub use kind::{Base, Kind};
pub use size::ETA;
pub use traffic::{LeastTraffic, RoundSize, least_traffic};

use volery_channel::{Hello, Link, Role, SessionId};
use volery_ot::softspoken::SmallField;
use volery_primitives::ro::RandomOracle;

use crate::{
    Device, Noise, Security, Trees, check,
    lpn::{
        Level, LpnSet,
        dual::params::{DISTANCE, Shape},
        estimate::{Field, in_lockstep},
        set_named, sets,
    },
};

/// The requirements on a plan, apart from its kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanOptions<'a> {
    /// The number of correlations; `None`: an unlimited stream.
    pub total: Option<u64>,
    /// The distribution of the LPN noise positions.
    pub noise: Noise,
    /// The adversary.
    pub security: Security,
    /// The kind of trees.
    pub trees: Trees,
    /// The link between the parties: on a slow one, the plan computes more to send less.
    pub link: Link,
    /// The protocol that makes the correlations.
    pub protocol: Protocol,
    /// The set of the repeated round of primal LPN, by name, which excludes all other protocols;
    /// `None`: chosen by cost.
    pub set: Option<&'a str>,
    /// The instances of primal LPN that a repeated round with regular noise makes in lockstep, with
    /// one public code: 1, 2 or 4. `None`: by cost. A bundle of `B` computes its outputs in less
    /// time, and costs each instance [`log2 B` bits](crate::lpn::estimate::in_lockstep): no more
    /// than [leave the set 129.0](LpnSet::most_instances).
    pub instances: Option<usize>,
    /// The substreams of primal LPN: streams of one key, from one setup, whose rounds follow each
    /// other in turn. A draw of several rounds runs its substreams side by side on as many threads
    /// as there are, so that none waits for the peer while another substream can go on. Each has a
    /// base and a table of its own. 1 to [`MAX_SUBSTREAMS`]; `None`: one, which is best for draws
    /// that are shorter than a round. Other protocols have one.
    pub substreams: Option<usize>,
    /// What this party computes the rounds on. The peer may choose another: this changes neither
    /// the plan nor a message. A card computes rounds of primal LPN with regular noise on
    /// half-trees, by the sets `b10` to `b13`; the others it leaves to the processor.
    pub device: Device,
    /// The bits `l` of the values `u` of vector OLE over `gf128`, 8 to 128: all `u` are then in the
    /// set `V` of the elements whose bits from `l` on are zero, and `v`, `w`, `x` anywhere in
    /// `gf128`. `None`, as 128: `u` is any element. For semi-honest parties only, from the base
    /// itself or by dual LPN.
    ///
    /// `V` is no field, but a subspace of `gf128` over F_2: closed under sums, and under no product
    /// except with 0 and 1. That is enough where `u` is only added:
    ///
    /// * **The base.** A correlation is packed from `l` correlated OTs in place of 128, so that its
    ///   `u` is uniform in `V`, and its traffic and time fall by `l/128`.
    /// * **Dual LPN.** The outputs `u = G*mu` are sums of the noise values, because the code has
    ///   entries 0 and 1; so they are in `V` if the noise values are, which are uniform there. The
    ///   message that turns a base correlation into one with the noise value `y` is `y - u`, which
    ///   tells nothing of `y` as `u` is uniform in `V`.
    /// * **Primal LPN** is refused: over `gf128` its code has factors from all of the ring
    ///   ([`LocalCode`](crate::lpn::LocalCode)), which lead out of `V`. With ones in their place
    ///   no set would hold what it claims ([`LpnSet::with_binary_code`]).
    ///
    /// Security: that of the plan without this option. An instance of dual LPN over `V` is one over
    /// `gf128` of which all bits from `l` on have been deleted: the code acts on each bit
    /// separately, and the first `l` bits of a uniform noise value are uniform. Hence an attack on
    /// the outputs over `V` is one on those over `gf128`, at the same cost. (The noise values over
    /// `gf128` are not zero, which is a distance of `t/2^128`.) In terms of attacks, every
    /// F_2-linear map from `V` to F_2 gives an instance of binary LPN in which each noise value
    /// vanishes with probability one half, and an attacker may combine `l` such maps in place of
    /// the 128 that the level of the plan counts.
    ///
    /// A malicious plan is refused because its check shows that `w = u*x + v` for some `u`, and not
    /// that this `u` is in `V`.
    pub value_bits: Option<u32>,
}

/// The most substreams of a plan.
pub const MAX_SUBSTREAMS: usize = 16;

/// The rounds that both parties will run: a schedule of LPN instances, the last of which repeats.
///
/// Each round consumes base correlations and makes more of them; the base of the next round is
/// reserved. The parties must use equal plans: the setup of a stream binds its kind,
/// [`total`](Self::total), [`security`](Self::security) and [`describe`](Self::describe) to the
/// session, so unequal plans fail there; a handshake that contains them reports this first.
///
/// Protocol and schedule are the cheapest by a rough model of time and bytes on the given [`Link`]
/// ([`candidates`](Self::candidates)): few correlations do not pay for a round that makes millions,
/// and a fast link carries more bits in the time that it takes to compute them away.
///
/// An instance with regular noise may be used for its first blocks only: an adversary against the
/// shorter instance is one against the longer that ignores the other samples.
#[derive(Clone, Debug)]
pub struct Plan {
    kind: Kind,
    noise: Noise,
    security: Security,
    trees: Trees,
    total: Option<u64>,
    base: Base,
    /// The instances in order; empty where the base correlations themselves are the output, and
    /// with dual LPN.
    schedule: Vec<&'static LpnSet>,
    /// Instances of the last of them in one round.
    instances: usize,
    /// Streams side by side: each makes an equal part of the total, by the same rounds.
    substreams: usize,
    /// Whether the correlations come from dual LPN.
    is_dual: bool,
    /// The bits of `u`, if fewer than those of the ring.
    value_bits: Option<u32>,
    device: Device,
}

/// The size of one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// The instance.
    pub(crate) set: &'static LpnSet,
    /// The number of instances with one code.
    pub(crate) instances: usize,
    /// Number of trees.
    pub(crate) trees: usize,
    /// The most OTs of all trees together.
    pub(crate) levels: usize,
    /// Base correlations that the round consumes.
    pub(crate) need: usize,
    /// Outputs made.
    pub(crate) n: usize,
    /// Outputs reserved for the next round; they are the first.
    pub(crate) keep: usize,
    /// Outputs returned; the others are not computed.
    pub(crate) deliver: usize,
}

impl Step {
    /// Base correlations that are secrets of the code, of all instances.
    pub(crate) fn secret(&self) -> usize {
        self.instances * self.set.k
    }
}

impl Plan {
    /// The cheapest plan with 128 bits of security that fulfils the options.
    ///
    /// # Errors
    /// If no protocol offers the security, no set has that name for this kind and noise, or the
    /// kind does not exist.
    pub fn new(kind: Kind, options: &PlanOptions<'_>) -> Result<Self, PlanError> {
        let best = Self::candidates(kind, options)?.into_iter().next();
        best.expect("`candidates` returns one plan at least, or an error").plan.on(options.device)
    }

    /// The plan with so many instances in lockstep, whatever they hold.
    #[cfg(test)]
    pub(crate) fn with_instances(self, instances: usize) -> Self {
        Self { instances, ..self }
    }

    /// A plan without rounds.
    fn empty(kind: Kind, noise: Noise, security: Security) -> Self {
        Self {
            kind,
            noise,
            security,
            trees: Trees::default(),
            total: None,
            base: kind.bases()[0],
            schedule: Vec::new(),
            instances: 1,
            substreams: 1,
            is_dual: false,
            value_bits: None,
            device: Device::Processor,
        }
    }

    /// The plan of the 2019 paper itself, for reproduction only: one round of the 80-bit instance
    /// of its Table 1 that is large enough for `total` correlations, on GGM trees, with a base by
    /// Gilboa's multiplication alone.
    ///
    /// The noise values of `z64` are odd, where the paper draws any values: modulo 2 half of those
    /// would vanish.
    ///
    /// # Errors
    /// If `total` is above 2^24, or the kind does not exist.
    pub fn paper80(field: Field, total: u64) -> Result<Self, PlanError> {
        Kind::Vole(field).exists()?;
        let paper = |set: &&LpnSet| set.name.starts_with("paper80") && set.holds_over(field);
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
            schedule: vec![set],
            instances: 1,
            substreams: 1,
            is_dual: false,
            value_bits: None,
            device: Device::Processor,
        })
    }

    /// The plan of the Ferret paper, for reproduction only: Table 2 on GGM trees, over
    /// SoftSpokenOT with nearly the same traffic in place of IKNP, and of KOS, whose proof has a
    /// gap.
    ///
    /// The setup set for regular noise holds [less than 128 bits](LpnSet::claim) by today's
    /// attacks.
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
            base: Base::SoftSpoken(SmallField::Bits1),
            schedule: names
                .map(|name| set_named(name).expect("the list has the paper's sets"))
                .to_vec(),
            instances: 1,
            substreams: 1,
            is_dual: false,
            value_bits: None,
            device: Device::Processor,
        }
    }

    /// The fields of this party in the handshake of a run of this plan: the peer must send the
    /// same, except the role.
    #[must_use]
    pub fn hello(&self, role: Role) -> Hello {
        let total = self.total.map_or("without end".to_owned(), |n| n.to_string());
        Hello {
            protocol: self.kind.name(),
            role: role.name(),
            fields: vec![
                ("ring", self.kind.field().name().to_owned()),
                ("n", total),
                ("security", self.security.to_string()),
                ("noise", self.noise.to_string()),
                ("parameters", self.describe()),
            ],
        }
    }

    /// The correlation of the plan.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The noise of all instances.
    #[must_use]
    pub fn noise(&self) -> Noise {
        self.noise
    }

    /// The adversary against which the rounds are secure.
    #[must_use]
    pub fn security(&self) -> Security {
        self.security
    }

    /// The trees of all rounds.
    #[must_use]
    pub fn trees(&self) -> Trees {
        self.trees
    }

    /// Correlations that the plan makes; `None` if the stream is unlimited.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// The source of the base correlations.
    #[must_use]
    pub fn base(&self) -> Base {
        self.base
    }

    /// The bits of the values `u`, where [`PlanOptions::value_bits`] makes them fewer than those of
    /// the ring.
    #[must_use]
    pub fn value_bits(&self) -> Option<u32> {
        self.value_bits
    }

    /// Correlated OTs from which a base correlation over `gf128` is packed.
    pub(crate) fn packed_ots(&self) -> usize {
        self.value_bits.unwrap_or(128) as usize
    }

    /// The instances in the order of their use; the last repeats.
    #[must_use]
    pub fn schedule(&self) -> &[&'static LpnSet] {
        &self.schedule
    }

    /// Instances of the last instance of the [schedule](Self::schedule) in one round.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.instances
    }

    /// The [substreams](PlanOptions::substreams).
    #[must_use]
    pub fn substreams(&self) -> usize {
        self.substreams
    }

    /// What this party computes the rounds on.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The plan for a party that computes on another device: the same to the peer.
    ///
    /// # Errors
    /// If a card is named that has no part in this plan, if the last of several comes before the
    /// first, or if this build has no support for cards.
    pub fn on(self, device: Device) -> Result<Self, PlanError> {
        if let Device::Cuda(_) | Device::Cards(..) = device {
            if matches!(device, Device::Cards(first, last) if first > last) {
                return Err(PlanError::NoSuchCards(device));
            }
            if !cfg!(feature = "gpu") {
                return Err(PlanError::NoCards);
            }
            if !self.suits_cards() {
                return Err(PlanError::NotOnCards(self.describe()));
            }
        }
        Ok(Self { device, ..self })
    }

    /// Fails if the plan names a card that cannot be used: before the parties exchange anything.
    pub(crate) fn open_card(&self) -> volery_channel::Result<()> {
        #[cfg(feature = "gpu")]
        for number in match self.device {
            Device::Cuda(number) => number..=number,
            Device::Cards(first, last) => first..=last,
            _ => return Ok(()),
        } {
            volery_gpu::Device::open(number).map_err(crate::stream::card::failed)?;
        }
        Ok(())
    }

    /// The card that computes the repeated round; of [`Device::Auto`] the first, if it works.
    #[cfg(feature = "gpu")]
    pub(crate) fn card(&self) -> Option<usize> {
        match self.device {
            Device::Cuda(number) | Device::Cards(number, _) => Some(number),
            Device::Auto if self.suits_cards() => volery_gpu::Device::open(0).is_ok().then_some(0),
            _ => None,
        }
    }

    /// What this party will compute the repeated round on: the cards, opened, or the processor.
    ///
    /// # Errors
    /// [`Error::Card`](volery_channel::Error::Card) if the plan names a card that cannot be used.
    pub fn used_device(&self) -> volery_channel::Result<Device> {
        self.open_card()?;
        Ok(match self.device {
            #[cfg(feature = "gpu")]
            Device::Auto => self.card().map_or(Device::Processor, Device::Cuda),
            #[cfg(not(feature = "gpu"))]
            Device::Auto => Device::Processor,
            named => named,
        })
    }

    /// Whether a card computes the repeated round.
    pub(crate) fn suits_cards(&self) -> bool {
        let field = matches!(self.kind, Kind::Cot | Kind::Vole(Field::Fp61 | Field::Gf128));
        let half = self.trees == Trees::Half && self.noise == Noise::Regular;
        field
            && half
            && !self.is_dual
            && self.schedule.last().is_some_and(|set| {
                let block = set.block();
                set.k.is_power_of_two()
                    && block.is_power_of_two()
                    && (9..13).contains(&block.ilog2())
            })
    }

    /// The plan of a substream.
    pub(crate) fn substream(&self, number: usize) -> Self {
        let device = self.device.of_substream(number);
        Self { total: self.each(), substreams: 1, device, ..self.clone() }
    }

    /// The correlations of each substream; `None` if they are unlimited.
    fn each(&self) -> Option<u64> {
        self.total.map(|total| total.div_ceil(self.substreams as u64))
    }

    /// The correlations that a substream's next round returns, after `delivered`, which are not
    /// all.
    pub(crate) fn delivery(&self, delivered: u64) -> usize {
        self.step(self.schedule.len() - 1, delivered).deliver
    }

    /// The plan in one word: the base, the bits of `u` if there are fewer than in the ring, the
    /// trees unless they are half-trees, and the instances with their trees in the first round of
    /// each, and how many are in lockstep, and then the substreams.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = self.base.to_string();
        if let Some(bits) = self.value_bits {
            // mutant(value-bits-described): drop
            text += &format!("/{bits}");
        }
        if self.trees != Trees::Half && !self.schedule.is_empty() {
            text += &format!("+{}", self.trees);
        }
        for number in 0..self.schedule.len() {
            let step = self.step(number, 0);
            text += &format!("+{}x{}", step.set.name, step.trees);
            if step.instances > 1 {
                // mutant(instances-described): drop
                text += &format!("/{}", step.instances);
            }
        }
        if let Some(shape) = self.dual() {
            let Shape { trees, deep, depth } = shape;
            text += &format!("+dual-ec{depth}x{}", trees - deep);
            if deep > 0 {
                text += &format!("+{}x{deep}", depth + 1);
            }
        }
        if self.substreams > 1 {
            // mutant(substreams-described): drop
            text += &format!("*{}", self.substreams);
        }
        text
    }

    /// The instance that holds the fewest bits in the ring of the plan, and its level there; `None`
    /// where no LPN instance is used.
    #[must_use]
    pub fn weakest(&self) -> Option<(&'static LpnSet, Level)> {
        let field = self.kind.field();
        let last = self.schedule.len().wrapping_sub(1);
        let levels = self.schedule.iter().enumerate().map(|(number, set)| {
            let mut level = set.level(field).expect("all sets of a plan support its ring");
            if number == last {
                level.bits = in_lockstep(level.bits, self.instances);
            }
            (*set, level)
        });
        levels.min_by(|(_, a), (_, b)| a.bits.total_cmp(&b.bits))
    }

    /// Bits of security against all attacks of [`crate::lpn::estimate`], and with dual LPN against
    /// all linear tests: the least over the instances; infinite where no LPN instance is used.
    #[must_use]
    pub fn security_bits(&self) -> f64 {
        if self.is_dual {
            return dual::security_bits(self.kind.field());
        }
        self.weakest().map_or(f64::INFINITY, |(_, level)| level.bits)
    }

    /// The bits that the instances claim: 128, or fewer for some of the sets of papers.
    #[must_use]
    pub fn claimed_bits(&self) -> u32 {
        self.schedule.iter().map(|set| set.claim).min().unwrap_or(128)
    }

    /// The probability, as the negative of its logarithm, with which wrong correlations pass the
    /// check of one round; `None` without a check. 60 over `fp61`, 63 over `gf128` and for
    /// correlated OT, at least half of the bits of any other field: see `check`.
    #[must_use]
    pub fn statistical_bits(&self) -> Option<u32> {
        match (self.security, self.kind) {
            (Security::SemiHonest, _) => None,
            (Security::Malicious, Kind::Vole(Field::Fp61)) => Some(60),
            (Security::Malicious, Kind::Vole(Field::Open(field))) => {
                // Its order is above 2^(bits - degree).
                let order = field.bits - field.degree as u32;
                Some(order * check::repetitions_of(field.bits) as u32 / 2 - 1)
            }
            // Without rounds the only check is that of the OT extension, which is not statistical.
            (Security::Malicious, Kind::Cot | Kind::Vole(Field::Gf128)) => {
                (!self.is_direct()).then_some(63)
            }
            // There is no such plan: the check needs a field.
            (Security::Malicious, Kind::Vole(_)) => None,
        }
    }

    /// The assumptions in one line, with their level: the bits of the weakest LPN instance, and the
    /// adversary.
    #[must_use]
    pub fn assumption(&self) -> String {
        let direct = self.is_direct();
        let lpn = match self.noise {
            _ if direct => "",
            _ if self.is_dual => {
                ", dual LPN with an expand-convolute code of estimated distance and regular noise"
            }
            Noise::Regular => ", primal LPN with a 10-local code and regular noise",
            Noise::Uniform => ", primal LPN with a 10-local code and exact noise",
        };
        let leakage = match (self.security, self.noise) {
            (Security::Malicious, Noise::Regular) if !direct => ", with static leakage",
            (Security::Malicious, Noise::Uniform) if !direct => ", with static, functional leakage",
            _ => "",
        };
        let lpn = match self.instances {
            1 => lpn.to_owned(),
            more => format!("{lpn}, {more} instances with one code"),
        };
        let level = match self.weakest() {
            None if direct => "no LPN; 128 bits".to_owned(),
            None => format!(
                "{:.1} bits over {}, by linear tests at a distance of {DISTANCE:.2}",
                self.security_bits(),
                self.kind.field(),
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

    /// A separate session for a part of the protocol, bound to the whole plan.
    pub(crate) fn session(
        &self,
        mut oracle: RandomOracle,
        session: SessionId,
        part: &str,
    ) -> SessionId {
        // mutant(plan-session): drop
        oracle.absorb(session.as_bytes());
        let total = format!("{:?}", self.total);
        let security = self.security.to_string();
        // mutant(plan-bound): `for bound in [&self.describe(), &total, &security, part` => `let
        //     described = self.describe(); for bound in [if $ON { "" } else { &described[..] }, if
        //     $ON[plan-total] { "" } else { &total[..] }, if $ON[plan-security] { "" } else {
        //     &security[..] }, if $ON[plan-part] { "" } else { part }`
        // mutant(plan-total): in plan-bound
        // mutant(plan-security): in plan-bound
        // mutant(plan-part): in plan-bound
        for bound in [&self.describe(), &total, &security, part] {
            oracle.absorb(bound.as_bytes());
        }
        SessionId::from_bytes(oracle.finish32())
    }

    /// Base correlations that must exist before the first round of a substream.
    pub(crate) fn base_count(&self) -> usize {
        if let Some(shape) = self.dual() {
            return self.dual_need(shape);
        }
        if self.schedule.is_empty() {
            return 0;
        }
        self.step(0, 0).need
    }

    /// Round `number` of a substream, after `delivered` of its correlations have been returned.
    pub(crate) fn step(&self, number: usize, delivered: u64) -> Step {
        let last = self.schedule.len() - 1;
        let set = self.schedule[number.min(last)];
        if number < last {
            let keep = self.step(number + 1, 0).need;
            return self.shaped((set, 1), keep, keep, 0);
        }
        let (bundle, n) = ((set, self.instances), set.n * self.instances);
        let left = self.each().map(|total| total - delivered);
        match left {
            Some(left) if left <= n as u64 => self.shaped(bundle, left as usize, 0, left as usize),
            _ => {
                let keep = self.shaped(bundle, n, 0, 0).need;
                self.shaped(bundle, n, keep, n - keep)
            }
        }
    }

    /// The step with the fewest trees for `outputs` outputs of so many instances of a set.
    fn shaped(
        &self,
        (set, instances): (&'static LpnSet, usize),
        outputs: usize,
        keep: usize,
        deliver: usize,
    ) -> Step {
        let (trees, n, depth) = match self.noise {
            Noise::Regular => {
                let trees = outputs.div_ceil(set.block() * instances) * instances;
                (trees, trees * set.block(), set.block().ilog2() as usize)
            }
            noise @ Noise::Uniform => {
                let trees = size::trees_of(set);
                (trees, set.n, size::depth(noise, set.n, trees))
            }
        };
        let levels = trees * depth;
        let secret = set.k * instances;
        let need = size::Spending::of(self.kind).need(self.security, secret, trees, levels);
        Step { set, instances, trees, levels, need, n, keep, deliver }
    }
}

/// The sets that hold 128 bits for this kind and noise.
fn usable(kind: Kind, noise: Noise) -> impl Fn(&&'static LpnSet) -> bool {
    move |set| set.noise == noise && set.claim >= 128 && set.holds_over(kind.field())
}

/// The [`usable`] sets that may be chosen without a name.
fn own_sets(kind: Kind, noise: Noise) -> Vec<&'static LpnSet> {
    let usable = sets().iter().filter(usable(kind, noise));
    usable.filter(|set| !set.paper).collect()
}

#[cfg(test)]
mod parts;
#[cfg(test)]
mod tests;
