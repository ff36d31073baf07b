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
//! parts.

use volery_channel::{Channel, Role, SessionId};
use volery_field::Gf128;
use volery_pcg::{Kind, Noise, Plan, PlanOptions, Security};

use super::{Scope, fresh_prg, fresh_session, own_plan};
use crate::Result;
use crate::measurement::Key;
use crate::parties::{Mark, Watch, meet};
use crate::runner::Cell;
use crate::streams::{self, Correlation as _, Cot, Outputs};

const FIRST: &str = "first";
const FIRST_REST: &str = "first-rest";
const BEGIN: &str = "begin";
const REST: &str = "rest";
const STREAM: &str = "stream";

/// The first outputs of a round: few.
const FEW: u64 = 1 << 10;

/// The plan of an unbounded stream, by its name among the results: `ferret` is the paper's own,
/// Table 2 on GGM trees, and `volery` the default; `None` if there is none of that name.
fn plan(key: &Key) -> Result<Option<Plan>> {
    let mut words = key.protocol.splitn(3, '-');
    let (whose, noise, security) = (words.next(), words.next(), words.next());
    let noise: Option<Noise> = noise.and_then(|noise| noise.parse().ok());
    let security: Option<Security> = security.and_then(|security| security.parse().ok());
    let (Some(noise), Some(security)) = (noise, security) else { return Ok(None) };
    match whose {
        Some("ferret") => Ok(Some(Plan::ferret(None, noise, security))),
        Some("volery") => {
            let options = PlanOptions { noise, security, ..PlanOptions::default() };
            own_plan(Kind::Cot, &key.link, options).map(Some)
        }
        _ => Ok(None),
    }
}

/// The cell of a protocol; `None` if there is none of that name.
pub(super) fn cell(key: &Key, scope: &Scope) -> Result<Option<Cell>> {
    let Some(plan) = plan(key)? else { return Ok(None) };
    let each = if plan.noise() == Noise::Uniform { 200e-9 } else { 100e-9 };
    let (own, timeout) = (key.clone(), scope.timeout);
    Ok(Some(Cell {
        key: key.clone(),
        plan: Some(plan.describe()),
        security_bits: Some(plan.claimed_bits()),
        // One round before those that count; the rest is setup.
        seconds: 1.0 + 2.0 * each * key.n as f64,
        run: Box::new(move || {
            let session = fresh_session()?;
            let (_, sample) = streams::run(&own, timeout, |role, channel| {
                let (marks, outputs) = party(role, &plan, own.n, session, channel)?;
                Ok(((), marks, outputs))
            })?;
            Ok(sample)
        }),
    }))
}

/// One party, from the setup to the end of the stream.
fn party(
    role: Role,
    plan: &Plan,
    n: u64,
    session: SessionId,
    channel: &mut Channel,
) -> Result<(Vec<Mark>, Outputs<Gf128>)> {
    let rng = fresh_prg()?;
    let mut watch = Watch::start(channel)?;
    let mut party = Cot::setup(role, plan, session, rng, channel)?;
    party.draw_all(FEW, channel)?;
    watch.mark(FIRST, FEW, channel);
    let rest = party.prepare(channel)? as u64;
    party.draw_all(rest, channel)?;
    meet(channel)?;
    watch.mark(FIRST_REST, rest, channel);
    party.draw_all(FEW, channel)?;
    watch.mark(BEGIN, FEW, channel);
    party.draw_all(rest, channel)?;
    watch.mark(REST, rest, channel);
    let round = FEW + rest;
    let left = n.next_multiple_of(round) - round;
    party.draw_all(left, channel)?;
    watch.mark(STREAM, left, channel);
    Ok((watch.stop(channel)?, party.last()))
}

/// The outputs of a main round of a measurement, those that it keeps included, if it is checked.
pub(super) fn checked_round(key: &Key) -> Result<Option<usize>> {
    let checked = plan(key)?.filter(|plan| plan.security() == Security::Malicious);
    Ok(checked.and_then(|plan| Some(plan.schedule().last()?.n)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use volery_ot::softspoken::SmallField;
    use volery_pcg::Base;
    use volery_pcg::plan::RoundSize;

    use super::super::Size;
    use super::*;

    const RATES: [u64; 6] = [10, 50, 100, 500, 1000, 5000];

    fn key(protocol: &str, megabits: u64) -> Key {
        let link = format!("{megabits}Mbit,0.2ms").parse().expect("a link");
        Key { link, ..Key::example(protocol, 1000) }
    }

    /// With the least outputs that a run can make.
    #[test]
    fn a_small_run() {
        let scope = Scope { size: Size::Quick, threads: 1, timeout: Duration::from_secs(120) };
        let key = key("volery-regular-malicious", 1000);
        let cell = cell(&key, &scope).expect("there are parameters").expect("it exists");
        let sample = (cell.run)().expect("both parties are honest");
        assert!(checked_round(&key).expect("there are parameters").is_some());
        let names: Vec<_> = sample.phases.iter().map(|phase| &phase.name[..]).collect();
        assert_eq!(names, [FIRST, FIRST_REST, BEGIN, REST, STREAM]);
        let made = sample.phases[2..].iter().map(|phase| phase.outputs);
        assert!(made.sum::<u64>() >= 1000);
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
            let ferret = Plan::ferret(None, noise, security);
            let set = ferret.schedule().last().expect("there is a main set");
            let round = main_round(&ferret);
            // The check of a malicious round takes another 128.
            let check = if security == Security::Malicious { 0 } else { 128 };
            // Three leaves for each output with cuckoo hashing, one without.
            let (k, trees, leaves, levels, cots, claimed) = match noise {
                Noise::Uniform => (588_160, 1_691, 3 * set.n, 15, 10_000_748, 92),
                _ => (589_760, 1_319, set.n, 13, 10_198_213, 85),
            };
            assert_eq!((set.k, round.trees, round.n - round.base), (k, trees, cots + check));
            assert_eq!(leaves.div_ceil(trees).next_power_of_two().ilog2(), levels);
            assert_eq!(ferret.claimed_bits(), claimed);
            let plans = RATES.map(|rate| {
                let named = plan(&key(&format!("volery-{noise}-{security}"), rate));
                named.expect("there are parameters").expect("a plan")
            });
            for (rate, plan) in RATES.iter().zip(&plans) {
                assert_eq!(plan.claimed_bits(), 128, "{}", plan.describe());
                let bits = if *rate == 5000 { SmallField::Bits4 } else { SmallField::Bits8 };
                assert_eq!(plan.base(), Base::SoftSpoken(bits), "{}", plan.describe());
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
