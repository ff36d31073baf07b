//! The arguments of `volery params estimate`: an instance, a named set, or a search.

use std::fmt;

use volery_pcg::lpn::estimate::{Field, Instance, LONGEST, NoiseShape, Unfit, smallest_weight};
use volery_pcg::lpn::{set_named, sets};
use volery_pcg::plan::least_traffic;
use volery_pcg::{Kind, Noise, Security};
use volery_run::failure::{Failure, Result, Status};
use volery_run::reporter::Reporter;

/// A ring and its noise values, by their name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FieldName {
    /// The field of two elements: correlated OT.
    F2,
    /// The integers modulo 2^61 - 1.
    Fp61,
    /// The integers modulo 2^64 with odd noise values, as this program draws them.
    Z64,
    /// The integers modulo 2^64 with any noise values: half of them are zero modulo 2.
    #[value(name = "z64-uniform")]
    Z64Uniform,
    /// Binary polynomials modulo X^128 + X^7 + X^2 + X + 1, with code entries from the whole field.
    Gf128,
    /// The same with a binary code, which no set uses: linear algebra over the coordinates breaks
    /// it.
    #[value(name = "gf128-binary")]
    Gf128Binary,
}

impl From<FieldName> for Field {
    fn from(name: FieldName) -> Self {
        match name {
            FieldName::F2 => Self::F2,
            FieldName::Fp61 => Self::Fp61,
            FieldName::Z64 => Self::Z64Odd,
            FieldName::Z64Uniform => Self::Z64Uniform,
            FieldName::Gf128 => Self::Gf128,
            FieldName::Gf128Binary => Self::Gf128Binary,
        }
    }
}

/// The instance, or the given part of it.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct InstanceArguments {
    /// A set of 'volery params list', in each of its rings unless --field selects one
    #[arg(long, value_name = "NAME", conflicts_with_all = ["n", "k", "t", "noise"])]
    pub(super) set: Option<String>,

    /// Samples of the instance: the outputs of one round
    #[arg(long, value_name = "N", required_unless_present = "set", allow_negative_numbers = true)]
    #[arg(value_parser = parse_number)]
    pub(super) n: Option<usize>,

    /// Length of the secret [default: the one with the least traffic]
    #[arg(long, value_name = "K", value_parser = parse_number, allow_negative_numbers = true)]
    pub(super) k: Option<usize>,

    /// Noise weight, the number of noisy samples [default: the smallest that resists all attacks]
    #[arg(long, value_name = "T", requires = "k", allow_negative_numbers = true)]
    #[arg(value_parser = parse_number)]
    pub(super) t: Option<usize>,

    /// Ring, and for z64 the noise values
    #[arg(long, required_unless_present = "set")]
    pub(super) field: Option<FieldName>,

    /// Noise distribution: one position in each of t blocks of n/t samples (rounded down), or any t
    /// positions
    #[arg(long, required_unless_present = "set")]
    pub(super) noise: Option<Noise>,

    /// Bits that every attack must cost
    #[arg(long, default_value_t = 128, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=512))]
    pub(super) bits: u32,
}

/// The goal of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// No search: the instance was given.
    None,
    /// The smallest weight.
    Weight,
    /// The secret length and weight with the least traffic.
    Traffic,
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::Weight => "smallest t",
            Self::Traffic => "least traffic",
        })
    }
}

/// The instances to estimate: one, or a set in each of its rings.
pub(super) struct Question {
    pub(super) set: Option<&'static str>,
    pub(super) instances: Vec<Instance>,
    pub(super) search: Search,
}

impl InstanceArguments {
    /// The instances, after a search if one is needed; runs on all threads of the pool.
    ///
    /// # Errors
    /// A usage error that names the wrong option; another error if a search finds nothing.
    pub(super) fn question(&self, reporter: &Reporter) -> Result<Question> {
        let Some(name) = &self.set else {
            let (instance, search) = self.instance(reporter)?;
            return Ok(Question { set: None, instances: vec![instance], search });
        };
        let set = set_named(name).ok_or_else(|| {
            let names: Vec<_> = sets().iter().map(|set| set.name).collect();
            Failure::usage("--set", format_args!("unknown LPN set '{name}'"))
                .with_hint(format_args!("choose one of: {}", names.join(", ")))
        })?;
        let instances = match self.field {
            Some(field) => vec![set.instance(field.into())],
            None => set.fields.iter().map(|field| set.instance(*field)).collect(),
        };
        Ok(Question { set: Some(set.name), instances, search: Search::None })
    }

    fn instance(&self, reporter: &Reporter) -> Result<(Instance, Search)> {
        let (n, field, noise) = match (self.n, self.field, self.noise) {
            (Some(n), Some(field), Some(noise)) => (n, Field::from(field), noise),
            _ => unreachable!("the parser requires all three without --set"),
        };
        let instance = |k, t| Instance { n, k, t, field, noise: shape(noise), local: true };
        let bits = f64::from(self.bits);
        let found = match (self.k, self.t) {
            (Some(k), Some(t)) => (instance(k, t), Search::None),
            (Some(k), None) => {
                fits(&instance(k, 1))?;
                self.tell(reporter, Search::Weight);
                let t = smallest_weight(|_| n, k, field, shape(noise), bits);
                let t = t.ok_or_else(|| self.nothing("no noise weight"))?;
                (instance(k, t), Search::Weight)
            }
            (None, _) => {
                fits(&instance(1, 1))?;
                self.tell(reporter, Search::Traffic);
                let kind = kind(field);
                let found = least_traffic(kind, security(kind), noise, n, bits);
                let found = found.ok_or_else(|| self.nothing("no secret and noise weight"))?;
                (instance(found.k, found.t), Search::Traffic)
            }
        };
        fits(&found.0)?;
        Ok(found)
    }

    /// Reports the start of a search, which may take minutes.
    fn tell(&self, reporter: &Reporter, search: Search) {
        let bits = self.bits;
        let line = format_args!("searching the {search} for {bits} bits");
        reporter.tell(line);
    }

    fn nothing(&self, what: &str) -> Failure {
        let bits = self.bits;
        let message = format_args!("--bits: {what} found for which all attacks cost 2^{bits}");
        Failure::new(Status::Other, message).with_hint(
            "try more samples (--n), another length of the secret (--k), or fewer --bits",
        )
    }
}

/// Refuses numbers that form no instance, naming the wrong option.
fn fits(instance: &Instance) -> Result<()> {
    instance.fits().map_err(|unfit| {
        let Instance { n, k, t, .. } = instance;
        let (option, message, hint) = match unfit {
            Unfit::Length => ("--n", format!("{n} samples"), format!("from 2 to {LONGEST} (2^40)")),
            Unfit::Secret => (
                "--k",
                format!("a secret of {k} symbols with {n} samples"),
                "the secret is shorter than the samples: from 1 to n - 1".to_owned(),
            ),
            Unfit::Weight => ("--t", format!("{t} noisy samples of {n}"), "from 1 to n".to_owned()),
            _ => ("--n", unfit.to_string(), "other numbers".to_owned()),
        };
        Failure::usage(option, message).with_hint(hint)
    })
}

/// The estimator's name for the noise.
fn shape(noise: Noise) -> NoiseShape {
    match noise {
        Noise::Uniform => NoiseShape::Exact,
        _ => NoiseShape::Regular,
    }
}

/// The correlation whose rounds have their noise in this ring.
pub(super) fn kind(field: Field) -> Kind {
    match field {
        Field::F2 => Kind::Cot,
        field => Kind::Vole(field),
    }
}

/// The default security of its rounds.
pub(super) fn security(kind: Kind) -> Security {
    match kind {
        Kind::Vole(Field::Z64Odd | Field::Z64Uniform) => Security::SemiHonest,
        _ => Security::Malicious,
    }
}

/// Parses a number: decimal digits, optionally with underscores between them.
fn parse_number(text: &str) -> Result<usize, String> {
    let digits: String = text.chars().filter(|&character| character != '_').collect();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a number consists of digits, such as 1_000_000".to_owned());
    }
    match digits.parse() {
        Ok(number) if number <= LONGEST => Ok(number),
        _ => Err(format!("the estimator accepts at most {LONGEST} (2^40) samples")),
    }
}
