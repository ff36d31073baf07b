//! The available protocols for a number of correlations and a link, and the predicted cost of each.

use std::{fmt, str::FromStr};

use volery_ot::softspoken::SmallField;

use super::{
    Base, Kind, MAX_SUBSTREAMS, Plan, PlanError, PlanOptions,
    cost::{self, Cost},
    own_sets, usable,
};
use crate::{
    Security,
    lpn::{LpnSet, estimate::Field, set_named},
};

/// The protocol that makes the correlations.
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
    /// The fastest of the others on the link, by the model of [`Plan::candidates`]; never
    /// [`LowCommunication`](Self::LowCommunication), for whose code the published distance is an
    /// estimate.
    #[default]
    Auto,
    /// The base correlations themselves are the output: OT extension, or Gilboa's multiplication.
    Direct(Base),
    /// Primal LPN in rounds: Ferret, and the vector OLE of the 2019 paper.
    Primal,
    /// Dual LPN with a published code ([`crate::lpn::dual`]), whose distance is estimated: a few
    /// hundred trees, and nothing else. Selected only by name, with regular noise on half-trees.
    LowCommunication,
}

/// A protocol for a number of correlations, and its cost by the model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The plan.
    pub plan: Plan,
    /// Seconds from a connection to the last correlation, of the slower party, one thread per
    /// party.
    pub seconds: f64,
    /// Bytes sent, in both directions.
    pub bytes: f64,
}

/// The error for an unknown protocol name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseProtocolError(String);

impl Plan {
    /// All plans that fulfil the options, the cheapest first: each way to make the base, and each
    /// set of primal LPN with the cheapest way to its base; fewer if the options name a protocol or
    /// a set. Dual LPN appears only where it is named, and then alone; primal LPN only for values
    /// in the whole ring.
    ///
    /// # Errors
    /// If there is none: no protocol offers the security, no set has that name, no such base exists
    /// for this kind and noise, the kind does not exist, or it does not have these
    /// [`value_bits`](PlanOptions::value_bits) with the other options.
    pub fn candidates(kind: Kind, options: &PlanOptions<'_>) -> Result<Vec<Candidate>, PlanError> {
        kind.exists()?;
        let is_field = kind != Kind::Vole(Field::Z64Odd);
        // mutant(plan-not-malicious): false
        if !is_field && options.security == Security::Malicious {
            return Err(PlanError::NotMalicious);
        }
        let value_bits = value_bits(kind, options)?;
        let mut all = Vec::new();
        let protocol = match (options.protocol, options.set) {
            (Protocol::Auto | Protocol::Primal, Some(_)) => Protocol::Primal,
            (_, Some(name)) => return Err(PlanError::NoSuchSet(name.to_owned())),
            (protocol, None) => protocol,
        };
        let is_wished = |one| protocol == Protocol::Auto || protocol == one;
        if let Some(substreams) = options.substreams
            && !(1..=MAX_SUBSTREAMS).contains(&substreams)
        {
            return Err(PlanError::NoSuchSubstreams(substreams));
        }
        let rated = |plan: Self, cost: Cost| {
            let cost = cost::setup(options.link) + cost;
            Candidate { plan, seconds: cost.time / 1e9, bytes: cost.bits / 8.0 }
        };
        let empty = Self {
            trees: options.trees,
            total: options.total,
            value_bits,
            ..Self::empty(kind, options.noise, options.security)
        };
        for base in kind.bases() {
            if is_wished(Protocol::Direct(base)) {
                let plan = Self { base, ..empty.clone() };
                let cost = plan.direct_cost(options.link);
                all.push(rated(plan, cost));
            }
        }
        if let Protocol::Direct(base) = protocol
            && all.is_empty()
        {
            return Err(PlanError::NoSuchBase(base));
        }
        // mutant(value-bits-not-primal): false
        if protocol == Protocol::Primal && value_bits.is_some() {
            return Err(PlanError::ValueBitsNotPrimal);
        }
        if is_wished(Protocol::Primal) && value_bits.is_none() {
            for bundle in bundles(kind, options)? {
                let (plan, cost) = empty.clone().primal(bundle, options);
                all.push(rated(plan, cost));
            }
        }
        if protocol == Protocol::LowCommunication {
            let plan = Self { value_bits, ..Self::with_dual(kind, options)? };
            let cost = plan.dual_cost(options.link);
            all.push(rated(plan, cost));
        }
        all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(all)
    }

    /// The protocol of the plan; never [`Protocol::Auto`].
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        match (self.is_dual, self.schedule.is_empty()) {
            (true, _) => Protocol::LowCommunication,
            (false, true) => Protocol::Direct(self.base),
            (false, false) => Protocol::Primal,
        }
    }

    /// The protocol in one word, with the repeated set, and with its instances in lockstep:
    /// `softspoken4`, `primal-b11`, `primal-b11/2`, `low-communication`.
    #[must_use]
    pub fn name(&self) -> String {
        match (self.protocol(), self.schedule.last()) {
            (Protocol::Primal, Some(set)) if self.instances > 1 => {
                format!("primal-{}/{}", set.name, self.instances)
            }
            (Protocol::Primal, Some(set)) => format!("primal-{}", set.name),
            (protocol, _) => protocol.to_string(),
        }
    }
}

/// The bits of `u`, if fewer than those of the ring.
fn value_bits(kind: Kind, options: &PlanOptions<'_>) -> Result<Option<u32>, PlanError> {
    match (options.value_bits, kind) {
        (None, _) | (Some(128), Kind::Vole(Field::Gf128)) => Ok(None),
        (Some(bits @ 8..128), Kind::Vole(Field::Gf128)) => match options.security {
            Security::SemiHonest => Ok(Some(bits)),
            // mutant(value-bits-not-malicious): insert `Security::Malicious if $ON =>
            //     Ok(Some(bits)),`
            Security::Malicious => Err(PlanError::ValueBitsNotMalicious),
        },
        (Some(bits), _) => Err(PlanError::NoSuchValueBits(bits)),
    }
}

/// The most bytes of the table of a bundle that is chosen by cost: larger ones leave the caches of
/// today's processors, whose sizes the parties do not exchange.
const TABLE: usize = 4 << 20;

/// The sets with which a plan may end, each with the numbers of instances that may share its code:
/// by cost those of which the total fills a round.
fn bundles(
    kind: Kind,
    options: &PlanOptions<'_>,
) -> Result<Vec<(&'static LpnSet, usize)>, PlanError> {
    let entry = if kind == Kind::Vole(Field::Gf128) { 32 } else { 16 };
    let total = options.total.unwrap_or(u64::MAX);
    let suits = |set: &LpnSet, instances: usize| match options.instances {
        Some(wished) => wished == instances,
        None => {
            instances == 1
                || (instances * set.k * entry <= TABLE && (instances * set.n) as u64 <= total)
        }
    };
    let mut all = Vec::new();
    for set in primal_sets(kind, options)? {
        let most = set.most_instances(kind.field());
        let numbers = [1, 2, 4].into_iter().filter(|b| *b <= most && suits(set, *b));
        all.extend(numbers.map(|instances| (set, instances)));
    }
    match options.instances {
        Some(wished) if all.is_empty() => Err(PlanError::NoSuchInstances(wished)),
        _ => Ok(all),
    }
}

/// The sets with which a plan may end.
fn primal_sets(kind: Kind, options: &PlanOptions<'_>) -> Result<Vec<&'static LpnSet>, PlanError> {
    match options.set {
        Some(name) => {
            let set = set_named(name).filter(usable(kind, options.noise));
            Ok(vec![set.ok_or_else(|| PlanError::NoSuchSet(name.to_owned()))?])
        }
        None => Ok(own_sets(kind, options.noise)),
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
    /// All protocols.
    fn all() -> impl Iterator<Item = Self> {
        let fields = || SmallField::ALL.into_iter();
        let bases =
            fields().map(Base::SoftSpoken).chain(fields().map(Base::Packed)).chain([Base::Gilboa]);
        let named = [Self::Auto, Self::Primal, Self::LowCommunication];
        named.into_iter().chain(bases.map(Self::Direct))
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
