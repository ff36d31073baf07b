//! The agreement of the parties before they begin: settings, session, and the plan, which may
//! depend on the measured link.

use std::time::Duration;

use volery_channel::link::{Side, handshake_and_estimate};
use volery_channel::{Channel, Hello, SessionId, handshake};
use volery_pcg::{Candidate, Kind, Link, Plan};

use crate::choices::Choices;
use crate::failure::Result;
use crate::party::Party;
use crate::randomness::fresh_prg;

/// Correlations in one step of the stream: memory is proportional to it, not to n.
pub const CHUNK: usize = 1 << 17;

/// Least nanoseconds per correlation, which bounds the time spent on measuring the link.
const EACH: u64 = 8;

/// The correlations that the parties want, the same for both.
#[derive(Clone, Debug)]
pub struct Request {
    /// Number of correlations.
    pub n: u64,
    plans: Plans,
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
        Ok(Self { n, plans })
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
        hello
    }

    /// The handshake and the plan. The party that has a key measures the link: it speaks first in a
    /// setup.
    pub fn settle<E: Party>(&self, channel: &mut Channel) -> Result<(SessionId, AgreedPlan)> {
        let mut nonce = [0; 32];
        fresh_prg()?.fill_bytes(&mut nonce);
        let hello = self.hello::<E>();
        let Plans::ByLink { choices, kind, .. } = &self.plans else {
            let session = handshake(channel, &hello, nonce)?;
            let agreed = AgreedPlan { plan: self.sample().clone(), choice: None };
            return Ok((session, agreed));
        };
        let side = match E::KEY {
            Some(_) => Side::Measures,
            None => Side::IsMeasured,
        };
        let work = Duration::from_nanos(self.n.saturating_mul(EACH));
        let (session, link) = handshake_and_estimate(channel, &hello, nonce, side, work)?;
        let candidates = choices.candidates(*kind, self.n, link)?;
        let best = candidates.first().expect("candidates() returns at least one plan");
        let agreed =
            AgreedPlan { plan: best.plan.clone(), choice: Some(Choice { link, candidates }) };
        Ok((session, agreed))
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
