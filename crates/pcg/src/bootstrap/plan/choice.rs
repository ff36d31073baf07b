//! The protocols that there are for a number of correlations and a link, and what each would cost.

use std::{fmt, str::FromStr};

use volery_ot::softspoken::SmallField;

use super::{Base, Kind, Plan, PlanError, Wishes, own_sets, usable};
use crate::{
    Security,
    bootstrap::cost::{self, Cost},
    lpn::{estimate::Field, set_named},
};

/// How correlations are made.
///
/// ```
/// use volery_pcg::Protocol;
/// for name in ["auto", "softspoken4", "primal", "low-communication"] {
///     assert_eq!(name.parse::<Protocol>()?.to_string(), name);
/// }
/// # Ok::<_, volery_pcg::ParseProtocolError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// Whichever of the others takes the least time on the link, by the model of
    /// [`Plan::candidates`]; never [`LowCommunication`](Self::LowCommunication), whose code nobody
    /// outside this project has looked at.
    #[default]
    Auto,
    /// What is elsewhere the base of the first round is the output: OT extension, or Gilboa's multiplication.
    Direct(Base),
    /// Primal LPN in rounds: Ferret, and the vector OLE of the 2019 paper.
    Primal,
    /// Dual LPN ([`crate::lpn::dual`]): a few hundred trees, and nothing else. By this name only,
    /// and with regular noise on half-trees.
    LowCommunication,
}

/// A protocol for some correlations, and what it would take by the model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The plan.
    pub plan: Plan,
    /// Seconds from a connection to the last correlation, of the slower party, one thread a party.
    pub seconds: f64,
    /// Bytes sent, both ways.
    pub bytes: f64,
}

/// A name that is no protocol's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseProtocolError(String);

impl Plan {
    /// All plans that fulfil the wishes, the cheapest first: each way to make the base, and each
    /// set of primal LPN with the cheapest way to its base; fewer if the wishes name a protocol or
    /// a set. Dual LPN where it is named, and then alone.
    ///
    /// # Errors
    /// If there is none: the security is not to be had, there is no set of that name or no such base for this kind and
    /// noise, or no such kind.
    pub fn candidates(kind: Kind, wishes: &Wishes<'_>) -> Result<Vec<Candidate>, PlanError> {
        kind.exists()?;
        let z64 = matches!(kind, Kind::Vole(Field::Z64Odd | Field::Z64Uniform));
        if z64 && wishes.security == Security::Malicious {
            return Err(PlanError::NotMalicious);
        }
        let mut all = Vec::new();
        let protocol = match (wishes.protocol, wishes.set) {
            (Protocol::Auto | Protocol::Primal, Some(_)) => Protocol::Primal,
            (_, Some(name)) => return Err(PlanError::NoSuchSet(name.to_owned())),
            (protocol, None) => protocol,
        };
        let is_wished = |one| protocol == Protocol::Auto || protocol == one;
        let rated = |plan: Self, cost: Cost| {
            let cost = cost::setup(wishes.link) + cost;
            Candidate {
                plan,
                seconds: cost.time / 1e9,
                bytes: cost.bits / 8.0,
            }
        };
        let empty = Self {
            trees: wishes.trees,
            total: wishes.total,
            ..Self::empty(kind, wishes.noise, wishes.security)
        };
        let bases = kind.bases().into_iter();
        let reproduction = (kind, wishes.security) == (Kind::Cot, Security::SemiHonest);
        for base in bases.chain(reproduction.then_some(Base::Iknp)) {
            if is_wished(Protocol::Direct(base)) {
                let plan = Self {
                    base,
                    ..empty.clone()
                };
                let cost = plan.direct_cost(wishes.link);
                all.push(rated(plan, cost));
            }
        }
        if let Protocol::Direct(base) = protocol
            && all.is_empty()
        {
            return Err(PlanError::NoSuchBase(base));
        }
        if is_wished(Protocol::Primal) {
            for set in primal_sets(kind, wishes)? {
                let (plan, cost) = empty.clone().primal(set, wishes.link);
                all.push(rated(plan, cost));
            }
        }
        if protocol == Protocol::LowCommunication {
            let plan = Self::low_communication(kind, wishes)?;
            let cost = plan.dual_cost(wishes.link);
            all.push(rated(plan, cost));
        }
        all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(all)
    }

    /// How the plan makes its correlations; never [`Protocol::Auto`].
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        match (self.is_dual, self.ladder.is_empty()) {
            (true, _) => Protocol::LowCommunication,
            (false, true) => Protocol::Direct(self.base),
            (false, false) => Protocol::Primal,
        }
    }

    /// The protocol in a word, with the set that repeats: `softspoken4`, `primal-b11`, `low-communication`.
    #[must_use]
    pub fn name(&self) -> String {
        match (self.protocol(), self.ladder.last()) {
            (Protocol::Primal, Some(set)) => format!("primal-{}", set.name),
            (protocol, _) => protocol.to_string(),
        }
    }
}

/// The sets that a plan may end with.
fn primal_sets(
    kind: Kind,
    wishes: &Wishes<'_>,
) -> Result<Vec<&'static crate::lpn::LpnSet>, PlanError> {
    match wishes.set {
        Some(name) => {
            let set = set_named(name).filter(usable(kind, wishes.noise));
            Ok(vec![
                set.ok_or_else(|| PlanError::NoSuchSet(name.to_owned()))?,
            ])
        }
        None => Ok(own_sets(kind, wishes.noise)),
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Direct(base) => base.fmt(f),
            Self::Primal => f.pad("primal"),
            Self::LowCommunication => f.pad("low-communication"),
        }
    }
}

impl Protocol {
    /// All of them.
    fn all() -> impl Iterator<Item = Self> {
        let fields = || SmallField::ALL.into_iter();
        let bases = fields()
            .map(Base::SoftSpoken)
            .chain(fields().map(Base::Packed))
            .chain([Base::Gilboa, Base::Iknp]);
        [Self::Auto, Self::Primal, Self::LowCommunication]
            .into_iter()
            .chain(bases.map(Self::Direct))
    }
}

impl FromStr for Protocol {
    type Err = ParseProtocolError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::all()
            .find(|protocol| protocol.to_string() == name)
            .ok_or_else(|| ParseProtocolError(name.to_owned()))
    }
}

impl fmt::Display for ParseProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Protocol::all().map(|one| one.to_string()).collect();
        write!(f, "'{}' is none of: {}", self.0, names.join(", "))
    }
}

impl std::error::Error for ParseProtocolError {}
