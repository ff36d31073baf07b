//! The protocols of *Ferret* (CCS 2020): a stream of correlated OTs, in the phases that the tables
//! use.
//!
//! ```text
//! first        setup, and the first main round up to its first outputs
//! first-rest   the rest of that round, until both parties have it; no table shows it
//! begin        the next main round up to its first outputs
//! rest         the rest of that round
//! stream       the main rounds after it, as many as n takes; no pause between begin, rest and stream
//! ```
//!
//! The one-time setup is the time of `first` minus that of `begin`. Tables 1 and 3 show `begin`,
//! `rest` and `stream` together. `begin` contains exactly the messages, trees and check of a
//! checked round, and the outputs that the round keeps for the next: Table 5 splits it into these
//! parts. A protocol without LPN has no rounds: its setup is `first`, the rest is `stream`.

use volery_channel::{Channel, Role, SessionId};
use volery_field::Gf128;
use volery_ot::{iknp, softspoken};
use volery_pcg::lpn::LpnSet;
use volery_pcg::plan::RoundSize;
use volery_pcg::{Base, Kind, Noise, Plan, PlanOptions, Security, Trees};

use super::{Scope, Size, failed, fresh_prg, fresh_session};
use crate::measurement::Key;
use crate::parties::{Mark, Watch, meet};
use crate::runner::{Cell, Forecast};
use crate::streams::{self, Correlation as _, Cot, Outputs, Party};
use crate::{Link, Result};

const FIRST: &str = "first";
const FIRST_REST: &str = "first-rest";
const BEGIN: &str = "begin";
const REST: &str = "rest";
const STREAM: &str = "stream";

/// The first outputs of a round: few.
const FEW: u64 = 1 << 10;

/// The field size by which SoftSpokenOT splits `delta`.
const SOFTSPOKEN: softspoken::SmallField = softspoken::SmallField::Bits1;

/// A protocol of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// Semi-honest OT extension.
    Iknp,
    /// Maliciously secure OT extension with a bit less traffic than KOS.
    SoftSpoken,
    /// The paper's own: Table 2 on GGM trees.
    Ferret(Noise, Security),
    /// The default of volery.
    Volery(Noise, Security),
}

impl Protocol {
    /// By its name among the results.
    fn named(name: &str) -> Option<Self> {
        match name {
            "iknp" => return Some(Self::Iknp),
            "softspoken1" => return Some(Self::SoftSpoken),
            _ => {}
        }
        let (whose, rest) = name.split_once('-')?;
        let (noise, security) = rest.split_once('-')?;
        let (noise, security) = (noise.parse().ok()?, security.parse().ok()?);
        match whose {
            "ferret" => Some(Self::Ferret(noise, security)),
            "volery" => Some(Self::Volery(noise, security)),
            _ => None,
        }
    }

    /// The plan of an unbounded stream over a link; `None` without LPN.
    fn plan(self, link: &Link) -> Result<Option<Plan>> {
        match self {
            Self::Iknp | Self::SoftSpoken => Ok(None),
            Self::Ferret(noise, security) => Ok(Some(Plan::ferret(None, noise, security))),
            Self::Volery(noise, security) => {
                let options = PlanOptions {
                    noise,
                    security,
                    link: link.for_plan(),
                    protocol: volery_pcg::Protocol::Primal,
                    // The shipped results were measured with one.
                    instances: Some(1),
                    ..PlanOptions::default()
                };
                Plan::new(Kind::Cot, &options).map(Some).map_err(failed)
            }
        }
    }

    /// Bits that a correlated OT sends without LPN.
    const fn bits_without_lpn(self) -> f64 {
        match self {
            Self::Iknp => 128.0,
            Self::SoftSpoken => 127.0,
            Self::Ferret(..) | Self::Volery(..) => 0.0,
        }
    }

    /// Correlated OTs that a run makes, at least: OT extension that would take longer than
    /// some seconds on its link makes fewer.
    fn makes(self, n: u64, link: &Link, size: Size) -> u64 {
        let limit = if size == Size::Full { 4.0 } else { 1.0 };
        let seconds = link.seconds_for(self.bits_without_lpn() / 8.0 * n as f64);
        if seconds <= limit {
            return n;
        }
        // A quarter of the limit is enough to measure the speed.
        (n as f64 * limit / (4.0 * seconds)).ceil() as u64
    }

    /// The cost of a run that makes `makes` correlated OTs, in a cell of `n`: whole rounds where
    /// there are rounds, and one before them.
    fn forecast(self, plan: Option<&Plan>, n: u64, makes: u64) -> Forecast {
        let nanoseconds = match self {
            Self::Iknp | Self::SoftSpoken => 30.0,
            Self::Ferret(Noise::Uniform, _) => 200.0,
            Self::Ferret(..) => 100.0,
            Self::Volery(Noise::Uniform, _) => 90.0,
            Self::Volery(..) => 45.0,
        };
        let (cots, bits, rounds) = match plan {
            Some(plan) => rounds(plan, makes),
            None => (makes as f64, 0.0, 0.0),
        };
        Forecast {
            seconds: 0.05 + cots * nanoseconds * 1e-9,
            bytes: (bits + cots * self.bits_without_lpn()) / 8.0,
            round_trips: 6.0 + 4.0 * rounds,
            work: n as f64,
        }
    }
}

/// The outputs and traffic of the rounds of a run, and their number. Of the sets before the last,
/// only the base of the first is counted in the traffic.
fn rounds(plan: &Plan, makes: u64) -> (f64, f64, f64) {
    let sets = plan.schedule();
    let [Some(first), Some(last)] = [sets.first(), sets.last()] else {
        return (makes as f64, 0.0, 0.0);
    };
    let sizes = [last.n, last.k, last.t];
    let round = RoundSize::new(plan.kind(), plan.security(), plan.noise(), sizes);
    let each_level = match plan.trees() {
        Trees::Ggm => 256.0,
        _ => 128.0,
    };
    let base = match plan.base() {
        Base::SoftSpoken(field) | Base::Packed(field) => (field.trees() - 1) as f64,
        Base::Iknp | Base::Gilboa => 128.0,
    };
    // With uniform noise, trees of emptier bins have fewer levels than a round counts with.
    let least_levels = match plan.noise() {
        Noise::Uniform => 0.9 * round.levels as f64,
        _ => round.levels as f64,
    };
    let handed_out = (round.n - round.base) as f64;
    let count = 1.0 + (makes as f64 / handed_out).ceil();
    let bits = base * first.k as f64 + count * least_levels * each_level;
    (count * handed_out, bits, count + (sets.len() - 1) as f64)
}

/// The cell of a protocol; `None` if there is none of that name.
pub(super) fn cell(key: &Key, scope: &Scope) -> Result<Option<Cell>> {
    let Some(protocol) = Protocol::named(&key.protocol) else {
        return Ok(None);
    };
    let plan = protocol.plan(&key.link)?;
    let makes = protocol.makes(key.n, &key.link, scope.size);
    let timeout = scope.timeout;
    Ok(Some(Cell {
        plan: plan.as_ref().map(Plan::describe),
        security_bits: plan.as_ref().map(Plan::claimed_bits),
        forecast: protocol.forecast(plan.as_ref(), key.n, makes),
        key: key.clone(),
        run: Box::new({
            let key = key.clone();
            move || {
                let (plan, session) = (plan.as_ref(), fresh_session()?);
                let (_, sample) = streams::run(&key, timeout, |role, channel| {
                    let setup =
                        |channel: &mut Channel| setup(protocol, role, plan, session, channel);
                    let (marks, outputs) = party(plan, makes, channel, setup)?;
                    Ok(((), marks, outputs))
                })?;
                Ok(sample)
            }
        }),
    }))
}

fn setup(
    protocol: Protocol,
    role: Role,
    plan: Option<&Plan>,
    session: SessionId,
    channel: &mut Channel,
) -> Result<Box<dyn Party<Gf128>>> {
    let rng = fresh_prg()?;
    if let Some(plan) = plan {
        return Ok(Cot::setup(role, plan, session, rng, channel)?);
    }
    Ok(match (protocol, role) {
        (Protocol::Iknp, Role::Sender) => {
            streams::sender(iknp::Sender::setup(None, session, rng, channel)?)
        }
        (Protocol::Iknp, Role::Receiver) => {
            streams::receiver(iknp::Receiver::setup(session, rng, channel)?)
        }
        (_, Role::Sender) => {
            let base = softspoken::Sender::setup(None, SOFTSPOKEN, session, rng, channel)?;
            streams::sender(base)
        }
        (_, Role::Receiver) => {
            streams::receiver(softspoken::Receiver::setup(SOFTSPOKEN, session, rng, channel)?)
        }
    })
}

/// One party, from the setup to the end of the stream.
fn party(
    plan: Option<&Plan>,
    n: u64,
    channel: &mut Channel,
    setup: impl FnOnce(&mut Channel) -> Result<Box<dyn Party<Gf128>>>,
) -> Result<(Vec<Mark>, Outputs<Gf128>)> {
    let few = if plan.is_some() { FEW } else { 0 };
    let mut watch = Watch::start(channel)?;
    let mut party = setup(channel)?;
    party.draw_all(few, channel)?;
    watch.mark(FIRST, few, channel);
    let rest = party.prepare(channel)? as u64;
    party.draw_all(rest, channel)?;
    meet(channel)?;
    watch.mark(FIRST_REST, rest, channel);
    let mut left = n;
    if plan.is_some() {
        party.draw_all(few, channel)?;
        watch.mark(BEGIN, few, channel);
        party.draw_all(rest, channel)?;
        watch.mark(REST, rest, channel);
        let round = few + rest;
        left = n.next_multiple_of(round) - round;
    }
    party.draw_all(left, channel)?;
    watch.mark(STREAM, left, channel);
    Ok((watch.stop(channel)?, party.last()))
}

/// The set of the main rounds of a measurement, if they are checked.
pub(super) fn checked_set(key: &Key) -> Result<Option<&'static LpnSet>> {
    let plan = match Protocol::named(&key.protocol) {
        Some(protocol) => protocol.plan(&key.link)?,
        None => None,
    };
    let checked = plan.filter(|plan| plan.security() == Security::Malicious);
    Ok(checked.and_then(|plan| plan.schedule().last().copied()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const RATES: [u64; 6] = [10, 50, 100, 500, 1000, 5000];

    fn link(megabits: u64) -> Link {
        let link = format!("{megabits}Mbit,0.2ms").parse();
        link.expect("a link")
    }

    /// Each kind of protocol, with the least outputs that a run can make.
    #[test]
    fn small_runs() {
        let scope = Scope { size: Size::Quick, threads: 1, timeout: Duration::from_secs(120) };
        for name in ["iknp", "softspoken1", "volery-regular-malicious"] {
            let key = Key { protocol: name.to_owned(), n: 1000, link: link(1000), threads: 1 };
            let cell = cell(&key, &scope).expect("there are parameters").expect("it exists");
            let sample = (cell.run)().expect("both parties are honest");
            let sent = sample.bytes() as f64;
            assert!(cell.forecast.bytes <= sent && cell.forecast.bytes >= 0.5 * sent || sent < 1e6);
            let set = checked_set(&key).expect("there are parameters");
            assert_eq!(set.is_some(), name.starts_with("volery"));
            let names: Vec<_> = sample.phases.iter().map(|phase| &phase.name[..]).collect();
            let all = [FIRST, FIRST_REST, BEGIN, REST, STREAM];
            assert!(names == all || (set.is_none() && names == [FIRST, FIRST_REST, STREAM]));
            let made = sample.phases[2..].iter().map(|phase| phase.outputs);
            assert!(made.sum::<u64>() >= 1000);
        }
    }

    /// By hand, from Table 2: 13 levels of two blocks, and 36,288 OTs of 127 bits for the first
    /// secret; 128 bits each take 128 s for 10^7 over 10 Mbit/s.
    #[test]
    fn forecasts() {
        let protocol = Protocol::Ferret(Noise::Regular, Security::Malicious);
        let plan = Plan::ferret(None, Noise::Regular, Security::Malicious);
        let forecast = protocol.forecast(Some(&plan), 10_000_000, 10_000_000);
        let bits = 2.0 * 1319.0 * 13.0 * 256.0 + 36_288.0 * 127.0;
        assert!((forecast.bytes - bits / 8.0).abs() < 1.0, "{forecast:?}");
        assert_eq!(Protocol::Iknp.makes(10_000_000, &link(10), Size::Full), 78_125);
        assert_eq!(Protocol::Iknp.makes(10_000_000, &link(1000), Size::Full), 10_000_000);
    }

    fn main_round(plan: &Plan) -> RoundSize {
        let set = plan.schedule().last().expect("there is a main set");
        RoundSize::new(plan.kind(), plan.security(), plan.noise(), [set.n, set.k, set.t])
    }

    /// The parameters of the sets, as the data files state them.
    #[test]
    fn sets_of_the_findings() {
        let both = [Security::SemiHonest, Security::Malicious];
        for (noise, security) in
            [Noise::Regular, Noise::Uniform].into_iter().flat_map(|n| both.map(|s| (n, s)))
        {
            let plan = Plan::ferret(None, noise, security);
            let set = plan.schedule().last().expect("there is a main set");
            let round = main_round(&plan);
            // The check of a malicious round takes another 128.
            let check = if security == Security::Malicious { 0 } else { 128 };
            // Three leaves for each output with cuckoo hashing, one without.
            let (k, trees, leaves, levels, cots, claimed) = match noise {
                Noise::Uniform => (588_160, 1_691, 3 * set.n, 15, 10_000_748, 92),
                _ => (589_760, 1_319, set.n, 13, 10_198_213, 85),
            };
            assert_eq!((set.k, round.trees, round.n - round.base), (k, trees, cots + check));
            assert_eq!(leaves.div_ceil(trees).next_power_of_two().ilog2(), levels);
            assert_eq!(plan.claimed_bits(), claimed);
            let plans = RATES.map(|rate| {
                let plan = Protocol::Volery(noise, security).plan(&link(rate));
                plan.expect("there are parameters").expect("a plan")
            });
            for (rate, plan) in RATES.iter().zip(&plans) {
                assert_eq!(plan.claimed_bits(), 128, "{}", plan.describe());
                let base = match plan.base() {
                    Base::SoftSpoken(field) | Base::Packed(field) => field.trees() - 1,
                    Base::Iknp | Base::Gilboa => 128,
                };
                assert_eq!(base, if *rate == 5000 { 31 } else { 15 }, "{}", plan.describe());
            }
            let sent = |plan: &Plan| {
                let round = main_round(plan);
                round.levels as f64 / (round.n - round.base) as f64
            };
            assert!(
                noise == Noise::Uniform || sent(&plans[0]) < sent(&plans[5]),
                "larger sets over slower links"
            );
        }
    }
}
