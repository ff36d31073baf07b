//! The measurement of a stream of correlations, with the options of `volery cot` and `volery vole`:
//! handshake, the choice by the measured link, setup, correlations in steps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use volery_channel::link::{Side, handshake_and_estimate};
use volery_channel::{Channel, Role, handshake};
use volery_pcg::lpn::{set_named, sets};
use volery_pcg::{Candidate, Kind, Noise, Plan, PlanOptions, Protocol, Security};
use volery_primitives::prg::Prg;

use crate::measurement::{Key, Sample};
use crate::parties::{Mark, Watch};
use crate::runner::Cell;
use crate::streams::{self, Correlation, Outputs};
use crate::{Error, Link, Result};

/// Least nanoseconds per correlation, which bounds the time spent on measuring the link.
const EACH: u64 = 8;

/// The phases of a run.
pub(super) const SETUP: &str = "setup";
const STREAM: &str = "stream";

/// A stream to measure.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    /// Correlations.
    pub(super) n: u64,
    pub(super) link: Link,
    pub(super) threads: usize,
    pub(super) timeout: Duration,
    pub(super) security: Option<Security>,
    pub(super) noise: Option<Noise>,
    pub(super) set: Option<String>,
    /// In lockstep; by default as the plan chooses.
    pub(super) instances: Option<usize>,
    /// One by default.
    pub(super) substreams: Option<usize>,
    pub(super) protocol: Protocol,
}

impl Setting {
    /// The candidates for a link, the cheapest first.
    pub(super) fn candidates(&self, kind: Kind, link: volery_pcg::Link) -> Result<Vec<Candidate>> {
        let set = self.set.as_deref().map(|name| {
            let fits = |set: &volery_pcg::lpn::LpnSet| {
                let noise = self.noise.is_none_or(|noise| noise == set.noise);
                set.claim >= 128 && set.holds_over(kind.field()) && noise
            };
            set_named(name).filter(|set| fits(set)).ok_or_else(|| {
                let names = sets().iter().filter(|set| fits(set)).map(|set| set.name);
                let names = names.collect::<Vec<_>>().join(", ");
                let what = format_args!("no set '{name}' for this run; choose one of: {names}");
                Error::usage("--set", what)
            })
        });
        let set = set.transpose()?;
        if set.is_some() && !matches!(self.protocol, Protocol::Auto | Protocol::Primal) {
            let what = format_args!("{} fixes its own parameters", self.protocol);
            return Err(Error::usage("--set", what));
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
            instances: self.instances,
            substreams: self.substreams,
            ..PlanOptions::default()
        };
        Plan::candidates(kind, &options).map_err(|error| {
            use volery_pcg::PlanError;
            let option = match error {
                PlanError::NoSuchBase(_) => "--protocol",
                PlanError::NotDual => "--noise",
                PlanError::NotMalicious => "--security",
                PlanError::NoSuchSubstreams(_) => "--substreams",
                _ => "--set",
            };
            Error::usage(option, error)
        })
    }

    /// Whether the parties measure the link and choose the plan by it: with a protocol given by
    /// name, it is chosen for the link that is given.
    fn measures_link(&self) -> bool {
        self.protocol == Protocol::Auto && self.set.is_none()
    }

    /// The key of the measurement: with the protocol and the set where they were requested.
    fn key(&self, plan: &Plan) -> Key {
        let mut words =
            vec![self.name.to_owned(), plan.security().to_string(), plan.noise().to_string()];
        words.extend(self.set.clone());
        words.extend(self.instances.map(|instances| format!("x{instances}")));
        words.extend(self.substreams.map(|substreams| format!("substreams{substreams}")));
        if self.protocol != Protocol::Auto {
            words.push(self.protocol.to_string());
        }
        Key { protocol: words.join("-"), n: self.n, link: self.link.clone(), threads: self.threads }
    }
}

/// Whether there is a protocol against malicious parties over the field.
fn field_is_checked(field: volery_pcg::lpn::estimate::Field) -> bool {
    use volery_pcg::lpn::estimate::Field;
    !matches!(field, Field::Z64Odd | Field::Z64Uniform)
}

/// One run, and its plan.
#[derive(Clone, Debug)]
pub(super) struct PairRun {
    pub(super) sample: Sample,
    pub(super) plan: Plan,
}

/// The cell of a stream, and its runs so far.
pub(super) type Measured = (Cell, Runs);

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

pub(super) fn measure<K: Correlation>(setting: &Setting) -> Result<Measured> {
    let candidates = setting.candidates(K::KIND, setting.link.for_plan())?;
    let plan = &candidates[0].plan;
    let runs = Runs::default();
    let key = setting.key(plan);
    let (words, bits) = (plan.describe(), plan.claimed_bits());
    let run = {
        let (setting, key, runs) = (setting.clone(), key.clone(), runs.clone());
        move || {
            let party =
                |role, channel: &mut Channel| party::<K>(role, &setting, &candidates, channel);
            let (plan, sample) = streams::run(&key, setting.timeout, party)?;
            runs.lock().push(PairRun { sample: sample.clone(), plan });
            Ok(sample)
        }
    };
    let cell = Cell {
        key,
        plan: (!setting.measures_link()).then_some(words),
        security_bits: Some(bits),
        // No run is too long, and nothing is predicted.
        seconds: 1.0,
        run: Box::new(run),
    };
    Ok((cell, runs))
}

/// A party's plan, times and last outputs.
fn party<K: Correlation>(
    role: Role,
    setting: &Setting,
    candidates: &[Candidate],
    channel: &mut Channel,
) -> Result<(Plan, Vec<Mark>, Outputs<K::Ring>)> {
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
        let mut chosen = setting.candidates(K::KIND, link)?;
        (session, chosen.swap_remove(0).plan)
    } else {
        let session = handshake(channel, &hello, nonce)?;
        (session, candidates[0].plan.clone())
    };
    let mut party = K::setup(role, &plan, session, rng, channel)?;
    watch.mark(SETUP, 0, channel);
    match plan.substreams() {
        1 => party.draw_all(n, channel)?,
        _ => party.draw(usize::try_from(n).unwrap_or(usize::MAX), channel)?,
    }
    watch.mark(STREAM, n, channel);
    Ok((plan, watch.stop(channel)?, party.last()))
}
