//! What the parties agree on before they begin: settings, session, and the plan, which may have to wait for what their link is like.

use std::time::Duration;

use volery_channel::pace::{self, Pace, Side};
use volery_channel::{Channel, Hello, SessionId, handshake};
use volery_field::Ring as _;
use volery_pcg::{Candidate, Kind, Link, Plan};

use crate::command::Choices;
use crate::ends::End;
use crate::exit::Failure;
use crate::party::{CHUNK, fresh_prg};

/// Nanoseconds that a correlation takes at least, for how much may be spent on looking at the link.
const EACH: u64 = 8;

/// What one party wants made, the same at both.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// How many correlations.
    pub(crate) n: u64,
    plans: Plans,
}

/// The parameters, or how they follow from the link.
#[derive(Clone, Debug)]
enum Plans {
    Known(Plan),
    ByLink {
        choices: Choices,
        kind: Kind,
        /// Its security and noise are those of the plan for any link.
        sample: Plan,
    },
}

/// What is made, and why so.
#[derive(Clone, Debug)]
pub(crate) struct Deal {
    /// The parameters.
    pub(crate) plan: Plan,
    /// What led to them, if they follow from a link that was measured.
    pub(crate) choice: Option<Choice>,
}

/// What was chosen from, for which link.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pace: Pace,
    /// The cheapest first.
    candidates: Vec<Candidate>,
}

impl Order {
    /// An order for `n` correlations. Where the choices leave the plan to the link, it is chosen for `link`; if there is none, the
    /// parties look for themselves.
    ///
    /// # Errors
    /// A usage error that names the option at fault.
    pub(crate) fn new(
        choices: &Choices,
        kind: Kind,
        n: u64,
        link: Option<Link>,
    ) -> Result<Self, Failure> {
        let plan = choices.plan(kind, n, link.unwrap_or_default())?;
        let plans = if link.is_none() && choices.depend_on_the_link() {
            Plans::ByLink {
                choices: choices.clone(),
                kind,
                sample: plan,
            }
        } else {
            Plans::Known(plan)
        };
        Ok(Self { n, plans })
    }

    /// The plan, or one with its security and noise where it follows from the link.
    pub(crate) fn sample(&self) -> &Plan {
        match &self.plans {
            Plans::Known(plan) => plan,
            Plans::ByLink { sample, .. } => sample,
        }
    }

    /// The plan, unless it follows from the link.
    pub(crate) fn plan(&self) -> Option<&Plan> {
        match &self.plans {
            Plans::Known(plan) => Some(plan),
            Plans::ByLink { .. } => None,
        }
    }

    /// The first message of this side; the peer's must say the same.
    pub(crate) fn hello<E: End>(&self) -> Hello {
        let sample = self.sample();
        let parameters = match &self.plans {
            Plans::Known(plan) => plan.describe(),
            Plans::ByLink { choices, .. } => format!("{}, by the link", choices.protocol),
        };
        Hello {
            protocol: E::PROTOCOL,
            role: E::ROLE.name(),
            fields: vec![
                ("ring", E::Base::NAME.to_owned()),
                ("n", self.n.to_string()),
                ("security", sample.security().to_string()),
                ("noise", sample.noise().to_string()),
                ("parameters", parameters),
                ("step", CHUNK.to_string()),
            ],
        }
    }

    /// The handshake, and the plan. The party that has a key measures the link: it is the one that speaks first in a setup.
    ///
    /// # Errors
    /// Those of the channel.
    pub(crate) fn settle<E: End>(
        &self,
        channel: &mut Channel,
    ) -> Result<(SessionId, Deal), Failure> {
        let mut nonce = [0; 32];
        fresh_prg()?.fill_bytes(&mut nonce);
        let hello = self.hello::<E>();
        let Plans::ByLink { choices, kind, .. } = &self.plans else {
            let session = handshake(channel, &hello, nonce)?;
            let deal = Deal {
                plan: self.sample().clone(),
                choice: None,
            };
            return Ok((session, deal));
        };
        let side = match E::KEY {
            Some(_) => Side::Measures,
            None => Side::IsMeasured,
        };
        let work = Duration::from_nanos(self.n.saturating_mul(EACH));
        let (session, pace) = pace::meet(channel, &hello, nonce, side, work)?;
        let candidates = choices.candidates(*kind, self.n, pace.into())?;
        let best = candidates.first().expect("one, or an error");
        let deal = Deal {
            plan: best.plan.clone(),
            choice: Some(Choice { pace, candidates }),
        };
        Ok((session, deal))
    }
}

impl Choice {
    /// In one line: the link, the time foretold, and the next best.
    pub(crate) fn why(&self) -> String {
        let Pace {
            bits_per_second,
            round_trip,
        } = self.pace;
        let foretold = |one: &Candidate| format!("{} {:.3} s", one.plan.name(), one.seconds);
        let mut all = self.candidates.iter().map(foretold);
        let first = all.next().unwrap_or_default();
        let next: Vec<_> = all.take(2).collect();
        let next = match next[..] {
            [] => String::new(),
            _ => format!(", before {}", next.join(", ")),
        };
        format!(
            "fastest at {:.1} Mbit/s and {:.2} ms: {first}{next} (foretold)",
            bits_per_second as f64 / 1e6,
            round_trip.as_secs_f64() * 1e3
        )
    }

    /// For a report.
    pub(crate) fn to_json(&self) -> serde_json::Value {
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
            "bits_per_second": self.pace.bits_per_second,
            "round_trip_seconds": self.pace.round_trip.as_secs_f64(),
            "foretold": candidates,
        })
    }
}
