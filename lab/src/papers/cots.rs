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

use std::hint::black_box;

use volery_channel::{Channel, SessionId};
use volery_ot::{CotReceiver, CotSender, iknp, softspoken};
use volery_pcg::lpn::LpnSet;
use volery_pcg::plan::RoundSize;
use volery_pcg::{Base, Kind, Noise, Plan, PlanOptions, Security, Trees, cot};
use volery_primitives::{Block, bits, prg::Prg};

use super::{Scope, Size, failed, fresh_prg, fresh_session};
use crate::measurement::{Key, Sample, Term};
use crate::parties::{Mark, Watch, meet, run_in_pools};
use crate::runner::{Cell, Forecast};
use crate::{Error, Link, Result};

const FIRST: &str = "first";
const FIRST_REST: &str = "first-rest";
const BEGIN: &str = "begin";
const REST: &str = "rest";
const STREAM: &str = "stream";

/// The first outputs of a round: few.
const FEW: u64 = 1 << 10;

/// The most correlated OTs drawn at once: memory is proportional to it.
const CHUNK: usize = 1 << 17;

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
    let (key, scope) = (key.clone(), *scope);
    Ok(Some(Cell {
        plan: plan.as_ref().map(Plan::describe),
        security_bits: plan.as_ref().map(Plan::claimed_bits),
        forecast: protocol.forecast(plan.as_ref(), key.n, makes),
        key: key.clone(),
        run: Box::new(move || once(protocol, plan.as_ref(), makes, &key, &scope)),
    }))
}

/// Runs both parties and checks their last outputs.
fn once(
    protocol: Protocol,
    plan: Option<&Plan>,
    n: u64,
    key: &Key,
    scope: &Scope,
) -> Result<Sample> {
    let session = fresh_session()?;
    let (sender, receiver) = run_in_pools(
        &key.link,
        key.threads,
        scope.timeout,
        |channel| {
            let rng = fresh_prg()?;
            party(plan, n, channel, |channel| Sender::setup(protocol, plan, session, rng, channel))
        },
        |channel| {
            let rng = fresh_prg()?;
            party(plan, n, channel, |channel| {
                Receiver::setup(protocol, plan, session, rng, channel)
            })
        },
    )?;
    check((sender.1.delta(), &sender.1.v), (&receiver.1.u, &receiver.1.w))?;
    Ok(Sample::of([sender.0, receiver.0]))
}

/// One party, from the setup to the end of the stream.
fn party<P: Party>(
    plan: Option<&Plan>,
    n: u64,
    channel: &mut Channel,
    setup: impl FnOnce(&mut Channel) -> volery_ot::Result<P>,
) -> Result<(Vec<Mark>, P)> {
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
    Ok((watch.stop(channel)?, party))
}

/// One party's source of correlated OTs.
trait Party {
    /// The number of outputs left of the round; zero without rounds.
    fn prepare(&mut self, channel: &mut Channel) -> volery_ot::Result<usize>;

    /// Draws the next outputs, at most [`CHUNK`], replacing the last ones.
    fn draw(&mut self, count: usize, channel: &mut Channel) -> volery_ot::Result<()>;

    fn draw_all(&mut self, mut count: u64, channel: &mut Channel) -> volery_ot::Result<()> {
        while count > 0 {
            let now = usize::try_from(count).unwrap_or(CHUNK).min(CHUNK);
            self.draw(now, channel)?;
            count -= now as u64;
        }
        Ok(())
    }
}

/// Rounds of LPN, or OT extension alone.
enum Source<S, E: ?Sized> {
    Stream(Box<S>),
    Base(Box<E>),
}

/// The holder of `delta`.
struct Sender {
    source: Source<cot::Sender, dyn CotSender + Send>,
    v: Vec<Block>,
}

impl Sender {
    fn setup(
        protocol: Protocol,
        plan: Option<&Plan>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> volery_ot::Result<Self> {
        let source: Source<_, dyn CotSender + Send> = match plan {
            Some(plan) => {
                let stream = cot::Sender::setup(plan, None, session, rng, channel)?;
                Source::Stream(Box::new(stream))
            }
            None if protocol == Protocol::Iknp => {
                Source::Base(Box::new(iknp::Sender::setup(None, session, rng, channel)?))
            }
            None => {
                let base = softspoken::Sender::setup(None, SOFTSPOKEN, session, rng, channel)?;
                Source::Base(Box::new(base))
            }
        };
        Ok(Self { source, v: Vec::with_capacity(CHUNK) })
    }

    fn delta(&self) -> Block {
        match &self.source {
            Source::Stream(stream) => stream.delta(),
            Source::Base(base) => base.delta(),
        }
    }
}

impl Party for Sender {
    fn prepare(&mut self, channel: &mut Channel) -> volery_ot::Result<usize> {
        match &mut self.source {
            Source::Stream(stream) => stream.prepare(channel),
            Source::Base(_) => Ok(0),
        }
    }

    fn draw(&mut self, count: usize, channel: &mut Channel) -> volery_ot::Result<()> {
        self.v.resize(count, Block::ZERO);
        match &mut self.source {
            Source::Stream(stream) => stream.extend(&mut self.v, channel)?,
            Source::Base(base) => base.extend(&mut self.v, channel)?,
        }
        black_box(&mut self.v);
        Ok(())
    }
}

/// The holder of the choice bits.
struct Receiver {
    source: Source<cot::Receiver, dyn CotReceiver + Send>,
    u: Vec<u8>,
    w: Vec<Block>,
}

impl Receiver {
    fn setup(
        protocol: Protocol,
        plan: Option<&Plan>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> volery_ot::Result<Self> {
        let source: Source<_, dyn CotReceiver + Send> = match plan {
            Some(plan) => {
                Source::Stream(Box::new(cot::Receiver::setup(plan, session, rng, channel)?))
            }
            None if protocol == Protocol::Iknp => {
                Source::Base(Box::new(iknp::Receiver::setup(session, rng, channel)?))
            }
            None => {
                let base = softspoken::Receiver::setup(SOFTSPOKEN, session, rng, channel)?;
                Source::Base(Box::new(base))
            }
        };
        Ok(Self { source, u: Vec::with_capacity(CHUNK / 8), w: Vec::with_capacity(CHUNK) })
    }
}

impl Party for Receiver {
    fn prepare(&mut self, channel: &mut Channel) -> volery_ot::Result<usize> {
        match &mut self.source {
            Source::Stream(stream) => stream.prepare(channel),
            Source::Base(_) => Ok(0),
        }
    }

    fn draw(&mut self, count: usize, channel: &mut Channel) -> volery_ot::Result<()> {
        self.u.resize(bits::bytes_for(count), 0);
        self.w.resize(count, Block::ZERO);
        let (u, w) = (&mut self.u, &mut self.w);
        match &mut self.source {
            Source::Stream(stream) => stream.extend(u, w, channel)?,
            Source::Base(base) => base.extend(u, w, channel)?,
        }
        black_box((u, w));
        Ok(())
    }
}

/// Whether `w = v + u*delta`.
fn check((delta, v): (Block, &[Block]), (u, w): (&[u8], &[Block])) -> Result<()> {
    let product = |i| if bits::bit(u, i) { delta } else { Block::ZERO };
    if v.len() == w.len() && (0..v.len()).all(|i| w[i] == v[i] ^ product(i)) {
        return Ok(());
    }
    Err(Error::protocol("the outputs of the two parties are not correlated"))
}

/// A run in the parts that the tables distinguish; times are the slower party's, bytes are of both
/// directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parts {
    /// The one-time setup: its phase, and the first main round contained in it, which takes as long
    /// as the next.
    pub(super) setup_seconds: Term,
    pub(super) setup_bytes: u64,
    /// The stream.
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) cots: u64,
    /// A checked main round: the part with messages, without the encoding of the outputs that are
    /// kept for the next round, and the encoding of all outputs, for each output.
    pub(super) trees_each: Option<Term>,
    pub(super) lpn_each: Option<f64>,
}

impl Parts {
    /// The parts of a sample; `checked` is the set of its main rounds, if they are checked. `None`
    /// if the sample has other phases.
    pub(super) fn of(sample: &Sample, checked: Option<&LpnSet>) -> Option<Self> {
        let (first, stream) = (sample.phase(FIRST)?, sample.phase(STREAM)?);
        let mut parts = Self {
            setup_seconds: Term::measured(first.seconds),
            setup_bytes: first.bytes,
            seconds: stream.seconds,
            bytes: stream.bytes,
            cots: stream.outputs,
            trees_each: None,
            lpn_each: None,
        };
        if let (Some(begin), Some(rest)) = (sample.phase(BEGIN), sample.phase(REST)) {
            parts.setup_seconds.less = begin.seconds;
            parts.setup_bytes = first.bytes.saturating_sub(begin.bytes);
            parts.seconds += begin.seconds + rest.seconds;
            parts.bytes += begin.bytes + rest.bytes;
            parts.cots += begin.outputs + rest.outputs;
            if let Some(set) = checked.filter(|_| rest.outputs > 0) {
                // An output that is kept takes as long as one that is handed out.
                let lpn = rest.seconds * set.n as f64 / rest.outputs as f64;
                let each = 1.0 / (begin.outputs + rest.outputs) as f64;
                let trees = Term { whole: begin.seconds, less: lpn - rest.seconds };
                parts.trees_each = Some(trees.times(each));
                parts.lpn_each = Some(lpn * each);
            }
        }
        (parts.cots > 0).then_some(parts)
    }
}

/// The set of the main rounds of a measurement, if they are checked and its parameters are those
/// that its protocol has today.
pub(super) fn checked_set(key: &Key, plan: Option<&str>) -> Result<Option<&'static LpnSet>> {
    let Some(protocol) = Protocol::named(&key.protocol) else {
        return Ok(None);
    };
    let now = protocol.plan(&key.link)?;
    let same = now.filter(|now| {
        now.security() == Security::Malicious && Some(now.describe().as_str()) == plan
    });
    Ok(same.and_then(|plan| plan.schedule().last().copied()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measurement::Phase;
    use volery_pcg::lpn::set_named;

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
            let set = checked_set(&key, cell.plan.as_deref()).expect("there are parameters");
            assert_eq!(set.is_some(), name.starts_with("volery"));
            let parts = Parts::of(&sample, set).expect("all phases are there");
            assert!(parts.cots >= 1000 && parts.lpn_each.is_some() == set.is_some());
        }
    }

    #[test]
    fn uncorrelated_outputs_are_refused() {
        let (delta, v) = (Block::from(7), [Block::from(1), Block::from(2)]);
        let good = [Block::from(1), Block::from(2 ^ 7)];
        assert!(check((delta, &v), (&[0b10], &good)).is_ok());
        let error = check((delta, &v), (&[0b11], &good)).expect_err("one bit");
        assert!(error.to_string().contains("not correlated"), "{error}");
        assert!(check((delta, &v), (&[0b10], &good[..1])).is_err());
    }

    #[test]
    fn a_stream_in_parts() {
        let phase = |(name, outputs, seconds, bytes): (&str, u64, f64, u64)| Phase {
            name: name.to_owned(),
            outputs,
            seconds,
            bytes,
            messages: 1,
        };
        let set = set_named("ferret-reg").expect("there is one");
        let n = set.n as u64;
        let phases = [
            (FIRST, 10, 5.0, 900),
            (FIRST_REST, n - 10, 100.0, 100),
            (BEGIN, 10, 2.0, 300),
            (REST, n / 2, 1.0, 0),
            (STREAM, 1000, 4.0, 300),
        ];
        let sample = |phases: &[(&str, u64, f64, u64)]| Sample {
            phases: phases.iter().copied().map(phase).collect(),
            ..Sample::default()
        };
        let parts = Parts::of(&sample(&phases), Some(set)).expect("all phases are there");
        let setup = Term { whole: 5.0, less: 2.0 };
        assert_eq!((parts.setup_seconds, parts.setup_bytes), (setup, 600));
        assert_eq!((parts.seconds, parts.bytes, parts.cots), (7.0, 600, n / 2 + 1010));
        // The rest is half of the set's outputs: all of it would have taken twice as long.
        let made = (n / 2 + 10) as f64;
        let twice = |value: f64| (2.0 * value * made).round() / 2.0;
        let trees = parts.trees_each.expect("it is checked");
        assert_eq!(parts.lpn_each.map(twice), Some(2.0));
        assert_eq!([trees.whole, trees.less].map(twice), [2.0, 1.0]);
        let extension = [(FIRST, 0, 0.5, 70), (STREAM, 100, 2.0, 1600)];
        let parts = Parts::of(&sample(&extension), None).expect("all phases are there");
        assert_eq!((parts.seconds, parts.cots, parts.trees_each), (2.0, 100, None));
        assert_eq!(Parts::of(&sample(&[("online", 3, 1.0, 1)]), None), None);
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
