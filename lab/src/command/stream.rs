//! Both parties of a stream of correlations in this process, with the options of `volery cot` and
//! `volery vole`: handshake, the choice by the measured link, setup, correlations in steps. The
//! correlations are discarded, but those of the last step are checked.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use volery_channel::link::{Side, handshake_and_estimate};
use volery_channel::{Channel, Role, SessionId, handshake};
use volery_field::{Gf128, Ring};
use volery_ot::{CotReceiver as _, CotSender as _};
use volery_pcg::lpn::{set_named, sets};
use volery_pcg::vole::{self, VoleRing};
use volery_pcg::{Kind, Noise, Plan, PlanOptions, Protocol, Security, cot};
use volery_primitives::{Block, bits, prg::Prg};

use super::exit::Failure;
use crate::measurement::{Key, Sample};
use crate::parties::{Mark, Watch, run_in_pools};
use crate::runner::{Cell, Forecast};
use crate::{Error, Link, Result};

/// Correlations in one step: memory is proportional to it.
const STEP: usize = 1 << 17;

/// Least nanoseconds per correlation, which bounds the time spent on measuring the link.
const EACH: u64 = 8;

/// The phases of a run.
pub(super) const SETUP: &str = "setup";
const STREAM: &str = "stream";

/// Source of the parameters of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Parameters {
    /// 128 bits against every attack known today.
    #[default]
    Default,
    /// Parameters of the 2019 VOLE paper, 80 bits by its own count.
    Paper80,
    /// Parameters of the Ferret paper (COT), 128 bits by its own count.
    Ferret,
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::Paper80 => "paper80",
            Self::Ferret => "ferret",
        })
    }
}

/// A stream to measure.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// The name of the benchmark.
    pub(super) name: &'static str,
    /// Correlations.
    pub(super) n: u64,
    pub(super) link: Link,
    /// Threads of each party.
    pub(super) threads: usize,
    pub(super) timeout: Duration,
    pub(super) security: Option<Security>,
    pub(super) noise: Option<Noise>,
    pub(super) set: Option<String>,
    pub(super) parameters: Parameters,
    pub(super) protocol: Protocol,
}

/// A plan, and its seconds by the model of [`Plan::candidates`].
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) plan: Plan,
    pub(super) seconds: f64,
}

impl Setting {
    /// The candidates for a link, the cheapest first. Parameters of a paper do not depend on it.
    pub(super) fn candidates(&self, kind: Kind, link: volery_pcg::Link) -> Result2<Vec<Candidate>> {
        let usage = |option, why: &dyn fmt::Display| Err(Failure::usage(option, why));
        let own_sets = self.parameters != Parameters::Default;
        if own_sets && (self.protocol != Protocol::Auto || self.set.is_some()) {
            return usage("--parameters", &format_args!("{} fixes its own sets", self.parameters));
        }
        let one = |plan: Plan| Ok(vec![Candidate { plan, seconds: 0.0 }]);
        match (self.parameters, kind) {
            (Parameters::Default, _) => {}
            (Parameters::Paper80, Kind::Vole(field)) => {
                if self.security == Some(Security::Malicious) || self.noise == Some(Noise::Regular)
                {
                    return usage("--parameters", &"paper80 is semi-honest, with uniform noise");
                }
                let plan = Plan::paper80(field, self.n);
                return plan.map_or_else(|error| usage("--parameters", &error), one);
            }
            (Parameters::Ferret, Kind::Cot) => {
                let (noise, security) = (self.noise.unwrap_or_default(), self.security);
                return one(Plan::ferret(Some(self.n), noise, security.unwrap_or_default()));
            }
            (other, _) => {
                return usage("--parameters", &format_args!("{other} has none for {}", self.name));
            }
        }
        let set = self.set.as_deref().map(|name| {
            let fits = |set: &volery_pcg::lpn::LpnSet| {
                let noise = self.noise.is_none_or(|noise| noise == set.noise);
                set.claim >= 128 && set.holds_over(kind.field()) && noise
            };
            set_named(name).filter(|set| fits(set)).ok_or_else(|| {
                let names = sets().iter().filter(|set| fits(set)).map(|set| set.name);
                let names = names.collect::<Vec<_>>().join(", ");
                Failure::usage("--set", format_args!("no set '{name}' for this run"))
                    .with_hint(format_args!("choose one of: {names}"))
            })
        });
        let set = set.transpose()?;
        if set.is_some() && !matches!(self.protocol, Protocol::Auto | Protocol::Primal) {
            return usage("--set", &format_args!("{} fixes its own parameters", self.protocol));
        }
        let field = kind.field();
        let semi_honest = matches!(kind, Kind::Vole(_)) && !field_is_checked(field);
        let default = if semi_honest { Security::SemiHonest } else { Security::Malicious };
        let options = PlanOptions {
            total: Some(self.n),
            noise: self.noise.or(set.map(|set| set.noise)).unwrap_or_default(),
            security: self.security.unwrap_or(default),
            link,
            set: set.map(|set| set.name),
            protocol: self.protocol,
            ..PlanOptions::default()
        };
        let found = Plan::candidates(kind, &options).map_err(|error| {
            use volery_pcg::PlanError;
            let option = match error {
                PlanError::NoSuchBase(_) => "--protocol",
                PlanError::NotDual => "--noise",
                PlanError::NotMalicious => "--security",
                _ => "--set",
            };
            Failure::usage(option, error)
        })?;
        let candidate =
            |one: volery_pcg::Candidate| Candidate { plan: one.plan, seconds: one.seconds };
        Ok(found.into_iter().map(candidate).collect())
    }

    /// Whether the parties measure the link and choose the plan by it: with a protocol given by
    /// name, it is chosen for the link that is given.
    fn measures_link(&self) -> bool {
        let default = self.parameters == Parameters::Default;
        self.protocol == Protocol::Auto && self.set.is_none() && default
    }

    /// The key of the measurement: with the protocol of the plan, and the set or parameters where
    /// they were requested.
    fn key(&self, plan: &Plan) -> Key {
        let mut words =
            vec![self.name.to_owned(), plan.security().to_string(), plan.noise().to_string()];
        words.extend(self.set.clone());
        if self.parameters != Parameters::Default {
            words.push(self.parameters.to_string());
        }
        if self.protocol != Protocol::Auto {
            words.push(self.protocol.to_string());
        }
        Key { protocol: words.join("-"), n: self.n, link: self.link.clone(), threads: self.threads }
    }
}

/// A result of this command.
type Result2<T> = std::result::Result<T, Failure>;

/// Whether there is a protocol against malicious parties over the field.
fn field_is_checked(field: volery_pcg::lpn::estimate::Field) -> bool {
    use volery_pcg::lpn::estimate::Field;
    !matches!(field, Field::Z64Odd | Field::Z64Uniform)
}

/// A kind of correlation, and its two parties. The key holder's column is `u` times the key plus
/// the column of the value holder.
pub(super) trait Correlation: 'static {
    type Ring: Ring;
    const KIND: Kind;
    /// The role of the key holder, who measures the link: it speaks first in a setup.
    const KEY_HOLDER: Role;

    /// A party by its role.
    fn setup(
        role: Role,
        plan: &Plan,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> volery_pcg::Result<Box<dyn Party<Self::Ring>>>;
}

/// A party of a stream, with the outputs of its last step.
pub(super) trait Party<R> {
    /// Draws the next correlations.
    fn draw(&mut self, count: usize, channel: &mut Channel) -> volery_pcg::Result<()>;
    /// The outputs of the last step.
    fn last(self: Box<Self>) -> Outputs<R>;
}

/// The outputs of a party's last step.
pub(super) struct Outputs<R> {
    /// The key, of the key holder.
    key: Option<R>,
    /// The values `u`, of the value holder.
    values: Vec<R>,
    column: Vec<R>,
}

/// Correlated OT, `w = v + u*delta`.
pub(super) struct Cot;

/// Vector OLE, `w = u*x + v`.
pub(super) struct Vole<R>(PhantomData<R>);

/// A party's stream, with memory for a step: the values in their stored form, and the column.
struct Steps<S, U, R> {
    stream: S,
    values: Vec<U>,
    column: Vec<R>,
}

fn boxed<S, U, R>(stream: S) -> Box<Steps<S, U, R>> {
    Box::new(Steps { stream, values: Vec::new(), column: Vec::new() })
}

impl Correlation for Cot {
    type Ring = Gf128;
    const KIND: Kind = Kind::Cot;
    const KEY_HOLDER: Role = Role::Sender;

    fn setup(
        role: Role,
        plan: &Plan,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> volery_pcg::Result<Box<dyn Party<Gf128>>> {
        Ok(if role == Role::Sender {
            boxed::<_, (), Block>(cot::Sender::setup(plan, None, session, rng, channel)?)
        } else {
            boxed::<_, u8, Block>(cot::Receiver::setup(plan, session, rng, channel)?)
        })
    }
}

impl Party<Gf128> for Steps<cot::Sender, (), Block> {
    fn draw(&mut self, count: usize, channel: &mut Channel) -> volery_pcg::Result<()> {
        self.column.resize(count, Block::ZERO);
        self.stream.extend(&mut self.column, channel)
    }

    fn last(self: Box<Self>) -> Outputs<Gf128> {
        Outputs {
            key: Some(Gf128::new(self.stream.delta())),
            values: Vec::new(),
            column: elements(&self.column),
        }
    }
}

impl Party<Gf128> for Steps<cot::Receiver, u8, Block> {
    fn draw(&mut self, count: usize, channel: &mut Channel) -> volery_pcg::Result<()> {
        self.values.resize(bits::bytes_for(count), 0);
        self.column.resize(count, Block::ZERO);
        self.stream.extend(&mut self.values, &mut self.column, channel)
    }

    fn last(self: Box<Self>) -> Outputs<Gf128> {
        let value = |i| {
            if bits::bit(&self.values, i) { Gf128::ONE } else { Gf128::ZERO }
        };
        Outputs {
            key: None,
            values: (0..self.column.len()).map(value).collect(),
            column: elements(&self.column),
        }
    }
}

fn elements(column: &[Block]) -> Vec<Gf128> {
    column.iter().map(|block| Gf128::new(*block)).collect()
}

impl<R: VoleRing> Correlation for Vole<R> {
    type Ring = R;
    const KIND: Kind = Kind::Vole(R::FIELD);
    const KEY_HOLDER: Role = Role::Receiver;

    fn setup(
        role: Role,
        plan: &Plan,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> volery_pcg::Result<Box<dyn Party<R>>> {
        Ok(if role == Role::Sender {
            boxed::<_, R, R>(vole::Sender::<R>::setup(plan, session, rng, channel)?)
        } else {
            boxed::<_, (), R>(vole::Receiver::<R>::setup(plan, None, session, rng, channel)?)
        })
    }
}

impl<R: VoleRing> Party<R> for Steps<vole::Sender<R>, R, R> {
    fn draw(&mut self, count: usize, channel: &mut Channel) -> volery_pcg::Result<()> {
        self.values.resize(count, R::ZERO);
        self.column.resize(count, R::ZERO);
        self.stream.extend(&mut self.values, &mut self.column, channel)
    }

    fn last(self: Box<Self>) -> Outputs<R> {
        Outputs { key: None, values: self.values, column: self.column }
    }
}

impl<R: VoleRing> Party<R> for Steps<vole::Receiver<R>, (), R> {
    fn draw(&mut self, count: usize, channel: &mut Channel) -> volery_pcg::Result<()> {
        self.column.resize(count, R::ZERO);
        self.stream.extend(&mut self.column, channel)
    }

    fn last(self: Box<Self>) -> Outputs<R> {
        Outputs { key: Some(self.stream.x()), values: Vec::new(), column: self.column }
    }
}

/// One run, and its plan.
#[derive(Clone, Debug)]
pub(super) struct PairRun {
    pub(super) sample: Sample,
    pub(super) plan: Plan,
}

/// The cell of a stream, and its runs so far.
pub(super) struct Measured {
    pub(super) cell: Cell,
    runs: Runs,
}

impl Measured {
    pub(super) fn split(self) -> (Cell, Runs) {
        (self.cell, self.runs)
    }
}

/// The runs of a cell so far.
#[derive(Clone, Default)]
pub(super) struct Runs(Arc<Mutex<Vec<PairRun>>>);

impl Runs {
    /// Also after a panic in another thread: the data is valid at every moment.
    fn lock(&self) -> MutexGuard<'_, Vec<PairRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run of the median time among those that count; of an even number, the faster of the two
    /// middle ones. `None` if there was none.
    pub(super) fn median(&self, counted: &[Sample]) -> Option<PairRun> {
        let mut runs = self.lock().clone();
        runs.retain(|run| counted.iter().any(|sample| sample.phases == run.sample.phases));
        runs.sort_by(|a, b| a.sample.seconds().total_cmp(&b.sample.seconds()));
        let place = runs.len().checked_sub(1)? / 2;
        Some(runs.swap_remove(place))
    }
}

/// The cell of a stream.
pub(super) fn measure<K: Correlation>(setting: &Setting) -> Result2<Measured> {
    let candidates = setting.candidates(K::KIND, setting.link.for_plan())?;
    let plan = &candidates[0].plan;
    let runs = Runs::default();
    let key = setting.key(plan);
    let (words, bits) = (plan.describe(), plan.claimed_bits());
    let run = {
        let (setting, runs) = (setting.clone(), runs.clone());
        move || {
            let run = once::<K>(&setting, &candidates)?;
            let sample = run.sample.clone();
            runs.lock().push(run);
            Ok(sample)
        }
    };
    Ok(Measured {
        cell: Cell {
            key,
            plan: (!setting.measures_link()).then_some(words),
            security_bits: Some(bits),
            // No run is too long, and nothing is predicted.
            forecast: Forecast { seconds: 0.0, bytes: 0.0, round_trips: 0.0, work: 1.0 },
            run: Box::new(run),
        },
        runs,
    })
}

/// Runs both parties once, and checks their last outputs.
fn once<K: Correlation>(setting: &Setting, candidates: &[Candidate]) -> Result<PairRun> {
    let party = |role, channel: &mut Channel| party::<K>(role, setting, candidates, channel);
    let (sent, received) = run_in_pools(
        &setting.link,
        setting.threads,
        setting.timeout,
        |channel| party(Role::Sender, channel),
        |channel| party(Role::Receiver, channel),
    )?;
    let sample = Sample::of([sent.marks, received.marks]);
    let (key_holder, value_holder) = match K::KEY_HOLDER {
        Role::Sender => (sent.last, received.last),
        _ => (received.last, sent.last),
    };
    let key = key_holder.key.expect("the key holder has a key");
    let (with_key, values, column) = (key_holder.column, value_holder.values, value_holder.column);
    let n = column.len();
    let holds = [values.len(), with_key.len()] == [n; 2]
        && (0..n).all(|i| with_key[i] == values[i] * key + column[i]);
    if !holds {
        return Err(Error::protocol("the last outputs of the two parties are not correlated"));
    }
    Ok(PairRun { sample, plan: sent.plan })
}

/// A party's plan, times and last outputs.
struct Finished<R> {
    plan: Plan,
    marks: Vec<Mark>,
    last: Outputs<R>,
}

fn party<K: Correlation>(
    role: Role,
    setting: &Setting,
    candidates: &[Candidate],
    channel: &mut Channel,
) -> Result<Finished<K::Ring>> {
    let n = setting.n;
    let mut rng = Prg::from_os().map_err(Error::protocol)?;
    let mut nonce = [0; 32];
    rng.fill_bytes(&mut nonce);
    let mut hello = candidates[0].plan.hello(role);
    for (name, value) in &mut hello.fields {
        if *name == "n" {
            *value = n.to_string();
        }
    }
    let mut watch = Watch::start(channel)?;
    let (session, plan) = if setting.measures_link() {
        let holds_key = role == K::KEY_HOLDER;
        let side = if holds_key { Side::Measures } else { Side::IsMeasured };
        let work = Duration::from_nanos(n.saturating_mul(EACH));
        let (session, link) = handshake_and_estimate(channel, &hello, nonce, side, work)?;
        let mut chosen = setting.candidates(K::KIND, link).map_err(Error::protocol)?;
        (session, chosen.swap_remove(0).plan)
    } else {
        let session = handshake(channel, &hello, nonce)?;
        (session, candidates[0].plan.clone())
    };
    let mut party = K::setup(role, &plan, session, rng, channel)?;
    watch.mark(SETUP, 0, channel);
    let mut left = n;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(STEP).min(STEP);
        party.draw(now, channel)?;
        left -= now as u64;
    }
    watch.mark(STREAM, n, channel);
    Ok(Finished { plan, marks: watch.stop(channel)?, last: party.last() })
}
