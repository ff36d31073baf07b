//! The options that determine the parameters of a run: security, noise, LPN set, protocol, or the
//! parameters of a paper.

use volery_options::parse;
use volery_pcg::lpn::estimate::Field;
use volery_pcg::lpn::{LpnSet, set_named, sets};
use volery_pcg::{Candidate, Kind, Link, Noise, Plan, PlanError, PlanOptions, Protocol, Security};

use crate::failure::{Failure, Result};

volery_options::options! {
    /// The options that both parties must set to the same values.
    pub struct Choices {
        /// Kind of peer to be secure against [default: malicious; semi-honest over z64 and with
        /// paper80, which are never secure against a malicious peer]
        once security: Security ["Protocol", "SECURITY", parse::text];

        /// LPN noise distribution: regular (one non-zero position per block) or uniform (any
        /// positions) [default: that of --set, or regular]
        once noise: Noise ["Protocol", "NOISE", parse::text];

        /// LPN parameter set of the rounds, named as in 'volery params list' [default: the cheapest
        /// for --n and --link]
        once set: String ["Protocol", "NAME", parse::string];

        /// Source of the parameters
        default parameters: Parameters ["default", "Protocol", "PARAMETERS", Parameters::of, Parameters::ALLOWED];

        /// Protocol that makes the correlations. auto: the fastest one for --n and the link, never
        /// the last one below; the parties measure the link unless --link describes it.
        /// softspoken1, softspoken2, softspoken4, softspoken8: OT extension. primal: LPN in rounds.
        /// gilboa, or over gf128 packed1 to packed8: the base protocol of a vector OLE. Only if
        /// named here: low-communication, dual LPN with a published code whose distance is
        /// estimated
        default protocol: Protocol ["auto", "Running", "NAME", parse::text];
    }
}

volery_options::choices! {
    /// Source of the parameters of a run.
    pub enum Parameters {
        /// 128 bits against every attack known today
        Default = "default",
        /// Parameters of the 2019 VOLE paper, 80 bits by its own count: for reproduction only
        Paper80 = "paper80",
        /// Parameters of the Ferret paper (COT), 128 bits by its own count: for reproduction only
        Ferret = "ferret",
    }
}

impl Choices {
    /// The plan for `n` correlations of this kind. Parameters of a paper do not depend on the link.
    pub fn plan(&self, kind: Kind, n: u64, link: Link) -> Result<Plan> {
        if self.protocol != Protocol::Auto {
            let beside = match self.parameters {
                Parameters::Default => None,
                _ => Some("--parameters"),
            };
            let set = match self.protocol {
                Protocol::Primal => None,
                _ => self.set.as_ref().map(|_| "--set"),
            };
            if let Some(option) = beside.or(set) {
                let what = format_args!("--protocol {} fixes its own parameters", self.protocol);
                return Err(Failure::usage(option, what));
            }
        }
        match (self.parameters, kind) {
            (Parameters::Default, _) => {
                let best = self.candidates(kind, n, link)?.into_iter().next();
                Ok(best.expect("candidates() returns at least one plan").plan)
            }
            (Parameters::Paper80, Kind::Vole(field)) => self.paper80(field, n),
            (Parameters::Ferret, Kind::Cot) => {
                self.no_set()?;
                let noise = self.noise.unwrap_or_default();
                Ok(Plan::ferret(Some(n), noise, self.security.unwrap_or_default()))
            }
            (Parameters::Paper80, Kind::Cot) | (Parameters::Ferret, Kind::Vole(_)) => {
                let [made, other] = match kind {
                    Kind::Cot => ["vole", "ferret"],
                    Kind::Vole(_) => ["cot", "paper80"],
                };
                let what = format_args!("{} is only for 'volery {made}'", self.parameters.name());
                Err(Failure::usage("--parameters", what)
                    .with_hint(format_args!("choose default or {other}")))
            }
        }
    }

    /// Whether the plan depends on the link.
    pub fn depend_on_the_link(&self) -> bool {
        let open = matches!(self.protocol, Protocol::Auto | Protocol::Primal);
        open && self.set.is_none() && self.parameters == Parameters::Default
    }

    /// The candidates with today's parameters, the cheapest first.
    pub fn candidates(&self, kind: Kind, n: u64, link: Link) -> Result<Vec<Candidate>> {
        // As a plan names it: b11/2 has two instances in lockstep.
        let set = self.set.as_deref();
        let (name, number) = match set.and_then(|set| set.split_once('/')) {
            Some((name, number)) => (Some(name), Some(number)),
            None => (set, None),
        };
        let set = name.map(|name| usable(name, kind, self.noise)).transpose()?;
        let instances = number.map(|number| {
            let what = "after the name of the set comes 1, 2 or 4, its instances in lockstep";
            number.parse().map_err(|_| Failure::usage("--set", what))
        });
        let none_better = matches!(kind, Kind::Vole(Field::Z64Odd | Field::Z64Uniform));
        let options = PlanOptions {
            total: Some(n),
            noise: self.noise.or(set.map(|set| set.noise)).unwrap_or_default(),
            security: self.security.unwrap_or(if none_better {
                Security::SemiHonest
            } else {
                Security::Malicious
            }),
            link,
            set: set.map(|set| set.name),
            instances: instances.transpose()?,
            protocol: self.protocol,
            ..PlanOptions::default()
        };
        Plan::candidates(kind, &options).map_err(|error| match error {
            PlanError::NoSuchBase(_) => Failure::usage("--protocol", error)
                .with_hint("auto, primal and low-communication work for every kind of correlation"),
            PlanError::NotDual => Failure::usage("--noise", error),
            PlanError::NotMalicious => Failure::usage("--security", error).with_hint(
                "use --security semi-honest if the peer is trusted to follow the protocol",
            ),
            error => Failure::usage("--set", error),
        })
    }

    fn paper80(&self, field: Field, n: u64) -> Result<Plan> {
        self.no_set()?;
        if self.noise.is_some_and(|noise| noise != Noise::Uniform) {
            let what = "the paper80 sets require uniform noise";
            return Err(Failure::usage("--noise", what));
        }
        if self.security.is_some_and(|security| security != Security::SemiHonest) {
            let what = "the protocol of the 2019 paper is secure against semi-honest parties only";
            return Err(Failure::usage("--security", what).with_hint(
                "--parameters default is secure against malicious parties over fp61 and gf128",
            ));
        }
        Plan::paper80(field, n).map_err(|error| match error {
            PlanError::SetTooSmall(_) => Failure::usage("--n", error),
            error => Failure::usage("--parameters", error),
        })
    }

    fn no_set(&self) -> Result<()> {
        match &self.set {
            None => Ok(()),
            Some(name) => Err(Failure::usage(
                "--set",
                format_args!(
                    "'{name}' cannot be used with --parameters {}, which fixes its own sets",
                    self.parameters.name()
                ),
            )),
        }
    }
}

/// The set with this name, if this run can use it.
fn usable(name: &str, kind: Kind, noise: Option<Noise>) -> Result<&'static LpnSet> {
    let fits = |set: &LpnSet| set.claim >= 128 && set.holds_over(kind.field());
    let choice = || {
        let names: Vec<_> = sets()
            .iter()
            .filter(|set| fits(set) && noise.is_none_or(|noise| noise == set.noise))
            .map(|set| set.name)
            .collect();
        format!("choose one of: {}", names.join(", "))
    };
    let refuse = |why: String| Failure::usage("--set", why).with_hint(choice());
    let set = set_named(name).ok_or_else(|| refuse(format!("unknown LPN set '{name}'")))?;
    if set.claim < 128 {
        let why = format!("{name} has {} bits and is only for its paper's protocol", set.claim);
        return Err(refuse(why));
    }
    if !set.holds_over(kind.field()) {
        let why =
            format!("{name} is made for {}, not for {}", fields(set), field_name(kind.field()));
        return Err(refuse(why));
    }
    match noise {
        Some(noise) if noise != set.noise => {
            Err(refuse(format!("{name} is made for {} noise, not for {noise}", set.noise)))
        }
        _ => Ok(set),
    }
}

/// The rings that a set can be used with.
pub fn fields(set: &LpnSet) -> String {
    let names: Vec<_> = set.fields.iter().copied().map(field_name).collect();
    names.join(", ")
}

/// The ring's name on the command line.
pub fn field_name(field: Field) -> &'static str {
    match field {
        Field::F2 => "f2",
        Field::Fp61 => "fp61",
        Field::Z64Odd | Field::Z64Uniform => "z64",
        Field::Gf128 => "gf128",
        _ => "unknown ring",
    }
}

/// The security of a run in a few words.
pub fn security_words(plan: &Plan) -> String {
    let statistical =
        plan.statistical_bits().map_or(String::new(), |bits| format!(" ({bits} statistical)"));
    format!("{}, {} bits{statistical}", plan.security(), plan.claimed_bits())
}
