//! The agreement of the parties before they begin: settings, session, and the plan, which may
//! depend on the measured link.

use std::time::Duration;

use volery_channel::link::{Side, handshake_and_estimate};
use volery_channel::{Channel, Hello, Role, SessionId, handshake};
use volery_pcg::{Candidate, Device, Kind, Link, Plan, PlanError};

use crate::choices::Choices;
use crate::failure::{Failure, Result};
use crate::party::Party;
use crate::randomness::fresh_prg;

/// Correlations in one step of the stream: memory is proportional to it, not to n. The handshake
/// has it, as OT extension sends messages for each step.
pub const CHUNK: usize = 1 << 17;

/// Correlations in one step of a party that computes on a card: fewer do not fill it. The messages
/// of the rounds that cards compute do not depend on the steps, so the peer may have others.
const CARD_CHUNK: usize = 1 << 22;

/// Least nanoseconds per correlation, which bounds the time spent on measuring the link.
const EACH: u64 = 8;

/// The correlations that the parties want, the same for both.
#[derive(Clone, Debug)]
pub struct Request {
    /// Number of correlations.
    pub n: u64,
    plans: Plans,
    device: Device,
}

/// The parameters, or how they follow from the link.
#[derive(Clone, Debug)]
enum Plans {
    Known(Plan),
    ByLink {
        choices: Choices,
        kind: Kind,
        /// A plan with the same security and noise as the plan for any link.
        sample: Plan,
    },
}

/// The agreed parameters and their reason.
#[derive(Clone, Debug)]
pub struct AgreedPlan {
    /// The parameters.
    pub plan: Plan,
    /// The reason, if the parameters follow from a measured link.
    pub choice: Option<Choice>,
    /// What this party computes on.
    pub device: Device,
}

impl AgreedPlan {
    fn new(plan: Plan, choice: Option<Choice>) -> Result<Self> {
        Ok(Self { device: plan.used_device()?, plan, choice })
    }

    /// The most correlations in one step of this party.
    pub fn step(&self) -> usize {
        match self.device {
            Device::Processor => CHUNK,
            _ => CARD_CHUNK,
        }
    }
}

/// The candidates and the link they were compared for.
#[derive(Clone, Debug)]
pub struct Choice {
    link: Link,
    /// The cheapest first.
    candidates: Vec<Candidate>,
}

impl Request {
    /// A request for `n` correlations. If the plan depends on the link, it is chosen for `link`;
    /// without one, the parties measure the link.
    ///
    /// An error names the option at fault.
    pub fn new(choices: &Choices, kind: Kind, n: u64, link: Option<Link>) -> Result<Self> {
        let plan = choices.plan(kind, n, link.unwrap_or_default())?;
        let plans = if link.is_none() && choices.depend_on_the_link() {
            Plans::ByLink { choices: choices.clone(), kind, sample: plan }
        } else {
            Plans::Known(plan)
        };
        Ok(Self { n, plans, device: Device::Processor })
    }

    /// The request of a party that computes on this device, of which the peer does not hear.
    ///
    /// An error names the option at fault.
    pub fn on(self, device: Device) -> Result<Self> {
        let wrong = |error| match error {
            PlanError::NotOnCards(_) => Failure::usage("--device", error)
                .with_hint("give --set b11/4 on both sides, or --device cpu here"),
            error => Failure::usage("--device", error),
        };
        if let Device::Cards(..) = device {
            return Err(Failure::usage("--device", "a run uses one card: name it as cuda:NUMBER"));
        }
        let plans = match (self.plans, device) {
            (Plans::Known(plan), _) => Plans::Known(plan.on(device).map_err(wrong)?),
            (Plans::ByLink { sample, .. }, Device::Cuda(_)) => {
                let plan = sample.on(device).map_err(wrong)?;
                return Err(wrong(PlanError::NotOnCards(format!(
                    "{}, or another",
                    plan.describe()
                ))));
            }
            (by_link, _) => by_link,
        };
        Ok(Self { plans, device, ..self })
    }

    /// The plan, or one with its security and noise if it depends on the link.
    pub fn sample(&self) -> &Plan {
        match &self.plans {
            Plans::Known(plan) => plan,
            Plans::ByLink { sample, .. } => sample,
        }
    }

    /// The first message of this side; the peer's must be the same.
    pub fn hello<E: Party>(&self) -> Hello {
        let mut hello = self.sample().hello(E::ROLE);
        for (name, value) in &mut hello.fields {
            match (*name, &self.plans) {
                ("n", _) => *value = self.n.to_string(),
                ("parameters", Plans::ByLink { choices, .. }) => {
                    *value = format!("{}, by the link", choices.protocol);
                }
                _ => {}
            }
        }
        hello.fields.push(("step", CHUNK.to_string()));
        if E::IS_HASHED {
            hello.fields.push(("outputs", "messages".to_owned()));
        }
        hello
    }

    /// The handshake and the plan. The party that has a key, also if it only hashes with it,
    /// measures the link: it speaks first in a setup.
    pub fn settle<E: Party>(&self, channel: &mut Channel) -> Result<(SessionId, AgreedPlan)> {
        let mut nonce = [0; 32];
        fresh_prg()?.fill_bytes(&mut nonce);
        let hello = self.hello::<E>();
        let Plans::ByLink { choices, kind, .. } = &self.plans else {
            let session = handshake(channel, &hello, nonce)?;
            return Ok((session, AgreedPlan::new(self.sample().clone(), None)?));
        };
        let side = match (E::KEY, E::ROLE) {
            (Some(_), _) => Side::Measures,
            (None, Role::Sender) if E::IS_HASHED => Side::Measures,
            _ => Side::IsMeasured,
        };
        let work = Duration::from_nanos(self.n.saturating_mul(EACH));
        let (session, link) = handshake_and_estimate(channel, &hello, nonce, side, work)?;
        let candidates = choices.candidates(*kind, self.n, link)?;
        let best = candidates.first().expect("candidates() returns at least one plan");
        let plan = best.plan.clone().on(self.device).expect("a card needs a known plan");
        Ok((session, AgreedPlan::new(plan, Some(Choice { link, candidates }))?))
    }
}

impl Choice {
    /// One line: the link, the predicted time, and the runner-up.
    pub fn why(&self) -> String {
        let all = self.candidates.iter();
        why(self.link, all.map(|one| (one.plan.name(), one.seconds)))
    }

    /// For a report.
    pub fn to_json(&self) -> serde_json::Value {
        let candidates: Vec<_> = self
            .candidates
            .iter()
            .map(|one| {
                serde_json::json!({
                    "protocol": one.plan.name(),
                    "seconds": one.seconds,
                    "bytes": one.bytes,
                })
            })
            .collect();
        serde_json::json!({
            "why": self.why(),
            "bits_per_second": self.link.bits_per_second as u64,
            "round_trip_seconds": self.link.round_trip,
            "predicted": candidates,
        })
    }
}

/// One line: the link, the fastest of the candidates with its predicted seconds, and the next ones.
pub(crate) fn why<N: std::fmt::Display>(
    link: Link,
    candidates: impl Iterator<Item = (N, f64)>,
) -> String {
    let Link { bits_per_second, round_trip } = link;
    let mut all = candidates.map(|(name, seconds)| format!("{name} {seconds:.3} s"));
    let first = all.next().unwrap_or_default();
    let next: Vec<_> = all.take(2).collect();
    let next = match next[..] {
        [] => String::new(),
        _ => format!(", before {}", next.join(", ")),
    };
    format!(
        "fastest at {:.1} Mbit/s and {:.2} ms: {first}{next} (predicted)",
        bits_per_second / 1e6,
        round_trip * 1e3
    )
}
