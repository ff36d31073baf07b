//! One run of one protocol over one link, in the parts that the tables tell apart.
//!
//! ```text
//! first    setup, and the first main round up to its first outputs; then the rest of that round, untimed
//! begin    the next main round up to its first outputs
//! stream   main rounds drawn without a pause, the one above the first of them: what Tables 1 and 3 show
//! ```
//!
//! The one-time setup is what `first` took more than `begin`. Of a checked round, all messages, all trees and the check are
//! in `begin`, with the outputs that the round keeps for the next, and nothing else: that is what Table 5 takes apart.
//! A protocol without LPN has no rounds: its setup is `first`, all else is `stream`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use volery_channel::{Channel, SessionId};
use volery_ot::{CotReceiver, CotSender, iknp, softspoken};
use volery_pcg::lpn::LpnSet;
use volery_pcg::{Plan, Security, cot};
use volery_primitives::{Block, bits, prg::Prg};

use super::candidate::{Candidate, SOFTSPOKEN};
use crate::command::options::pool;
use crate::exit::{Failure, Status};
use crate::link::Link;
use crate::parties;
use crate::party::CHUNK;

/// What to run.
pub(super) struct Run<'a> {
    pub(super) candidate: Candidate,
    /// The candidate's plan; none where there is no LPN.
    pub(super) plan: Option<&'a Plan>,
    /// Correlated OTs to make, at least: whole rounds where there are rounds.
    pub(super) n: u64,
    pub(super) link: &'a Link,
    pub(super) threads: usize,
    pub(super) timeout: Duration,
}

impl Run<'_> {
    /// The rounds' set, if they are checked.
    fn checked(&self) -> Option<&'static LpnSet> {
        let plan = self.plan?;
        (plan.security() == Security::Malicious).then(|| plan.ladder().last().copied())?
    }
}

/// What a run took; times are the slower party's, bytes go both ways.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct Sample {
    /// The one-time setup, without the first main round.
    pub(super) setup_seconds: f64,
    pub(super) setup_bytes: u64,
    /// The stream.
    pub(super) seconds: f64,
    pub(super) bytes: u64,
    pub(super) cots: u64,
    /// One main round, in parts; none where it is not checked.
    pub(super) round: Option<Round>,
}

/// A main round of its own.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct Round {
    /// The part with messages, without the encoding of what is kept for the next round.
    pub(super) trees_seconds: f64,
    /// The encoding of all outputs.
    pub(super) lpn_seconds: f64,
    /// Correlated OTs handed out.
    pub(super) cots: u64,
}

/// One party's times and bytes.
#[derive(Clone, Copy, Default)]
struct Times {
    first: Duration,
    first_bytes: u64,
    begin: Duration,
    begin_bytes: u64,
    /// The rest of the round.
    rest: Duration,
    /// Correlated OTs that a main round hands out.
    round: u64,
    stream: Duration,
    stream_bytes: u64,
    cots: u64,
}

/// The first outputs of a round: few.
const FEW: u64 = 1 << 10;

/// Runs both parties and checks their last outputs.
///
/// # Errors
/// Those of the parties; if the outputs are not correlated.
pub(super) fn run(run: &Run<'_>) -> Result<Sample, Failure> {
    let pools = [pool(run.threads)?, pool(run.threads)?];
    let mut session = [0; 32];
    fresh_prg()?.fill_bytes(&mut session);
    let session = SessionId::from_bytes(session);
    let (sender, receiver) = parties::run_both(
        run.link,
        run.timeout,
        |channel| {
            pools[0].install(|| {
                let rng = fresh_prg()?;
                party(run, channel, |channel| {
                    SenderEnd::setup(run, session, rng, channel)
                })
            })
        },
        |channel| {
            pools[1].install(|| {
                let rng = fresh_prg()?;
                party(run, channel, |channel| {
                    ReceiverEnd::setup(run, session, rng, channel)
                })
            })
        },
    )?;
    check(sender.1, receiver.1)?;
    Ok(sample(run, [sender.0, receiver.0]))
}

/// What both parties' times mean.
fn sample(run: &Run<'_>, parties: [Times; 2]) -> Sample {
    let slower = |of: fn(&Times) -> Duration| {
        parties
            .iter()
            .map(of)
            .max()
            .map_or(0.0, |time| time.as_secs_f64())
    };
    let sum = |of: fn(&Times) -> u64| parties.iter().map(of).sum::<u64>();
    let round = run.checked().map(|set| {
        let cots = parties[0].round;
        let (begin, rest) = (slower(|times| times.begin), slower(|times| times.rest));
        // As long for an output that is kept as for one that is handed out.
        let lpn_seconds = rest * set.n as f64 / (cots - FEW) as f64;
        Round {
            trees_seconds: (begin + rest - lpn_seconds).max(0.0),
            lpn_seconds,
            cots,
        }
    });
    Sample {
        setup_seconds: (slower(|times| times.first) - slower(|times| times.begin)).max(0.0),
        setup_bytes: sum(|times| times.first_bytes) - sum(|times| times.begin_bytes),
        seconds: slower(|times| times.stream),
        bytes: sum(|times| times.stream_bytes),
        cots: parties[0].cots,
        round,
    }
}

/// One party, from the setup to the end of the stream.
fn party<E: End>(
    run: &Run<'_>,
    channel: &mut Channel,
    setup: impl FnOnce(&mut Channel) -> volery_ot::Result<E>,
) -> Result<(Times, E::Last), Failure> {
    let mut times = Times::default();
    let rounds = run.plan.is_some();
    let before = meet(channel)?;
    let start = Instant::now();
    let mut end = setup(channel)?;
    if rounds {
        end.draw_all(FEW, channel)?;
    }
    times.first = start.elapsed();
    times.first_bytes = channel.stats().bytes_sent - before;
    if rounds {
        let left = end.prepare(channel)? as u64;
        end.draw_all(left, channel)?;
        times.round = FEW + left;
    }
    let before = meet(channel)?;
    let start = Instant::now();
    times.cots = run.n;
    if rounds {
        end.draw_all(FEW, channel)?;
        times.begin = start.elapsed();
        times.begin_bytes = channel.stats().bytes_sent - before;
        end.draw_all(times.round - FEW, channel)?;
        times.rest = start.elapsed() - times.begin;
        times.cots = run.n.next_multiple_of(times.round);
    }
    end.draw_all(times.cots - times.round, channel)?;
    times.stream = start.elapsed();
    times.stream_bytes = channel.stats().bytes_sent - before;
    meet(channel)?;
    Ok((times, end.last()))
}

/// Waits until both parties are here and the link is empty; gives the bytes sent so far.
fn meet(channel: &mut Channel) -> volery_ot::Result<u64> {
    channel.send(&[0])?;
    channel.recv(&mut [0])?;
    Ok(channel.stats().bytes_sent)
}

/// One party's source of correlated OTs.
trait End {
    /// What is checked at the end.
    type Last;

    /// How many outputs are left of the round. Zero where there are no rounds.
    fn prepare(&mut self, channel: &mut Channel) -> volery_ot::Result<usize>;

    /// The next outputs, at most [`CHUNK`], in place of the last ones.
    fn draw(&mut self, count: usize, channel: &mut Channel) -> volery_ot::Result<()>;

    /// The outputs drawn last.
    fn last(self) -> Self::Last;

    fn draw_all(&mut self, mut count: u64, channel: &mut Channel) -> volery_ot::Result<()> {
        while count > 0 {
            let now = usize::try_from(count).unwrap_or(CHUNK).min(CHUNK);
            self.draw(now, channel)?;
            count -= now as u64;
        }
        Ok(())
    }
}

enum SenderSource {
    Stream(Box<cot::Sender>),
    Base(Box<dyn CotSender + Send>),
}

struct SenderEnd {
    source: SenderSource,
    v: Vec<Block>,
}

impl SenderEnd {
    fn setup(
        run: &Run<'_>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> volery_ot::Result<Self> {
        let source = match run.plan {
            Some(plan) => SenderSource::Stream(Box::new(cot::Sender::setup(
                plan, None, session, rng, channel,
            )?)),
            None if run.candidate == Candidate::Iknp => {
                SenderSource::Base(Box::new(iknp::Sender::setup(None, session, rng, channel)?))
            }
            None => SenderSource::Base(Box::new(softspoken::Sender::setup(
                None, SOFTSPOKEN, session, rng, channel,
            )?)),
        };
        Ok(Self {
            source,
            v: Vec::with_capacity(CHUNK),
        })
    }
}

impl End for SenderEnd {
    /// `delta` and `v`.
    type Last = (Block, Vec<Block>);

    fn prepare(&mut self, channel: &mut Channel) -> volery_ot::Result<usize> {
        match &mut self.source {
            SenderSource::Stream(stream) => stream.prepare(channel),
            SenderSource::Base(_) => Ok(0),
        }
    }

    fn draw(&mut self, count: usize, channel: &mut Channel) -> volery_ot::Result<()> {
        self.v.resize(count, Block::ZERO);
        match &mut self.source {
            SenderSource::Stream(stream) => stream.extend(&mut self.v, channel)?,
            SenderSource::Base(base) => base.extend(&mut self.v, channel)?,
        }
        black_box(&mut self.v);
        Ok(())
    }

    fn last(self) -> Self::Last {
        let delta = match &self.source {
            SenderSource::Stream(stream) => stream.delta(),
            SenderSource::Base(base) => base.delta(),
        };
        (delta, self.v)
    }
}

enum ReceiverSource {
    Stream(Box<cot::Receiver>),
    Base(Box<dyn CotReceiver + Send>),
}

struct ReceiverEnd {
    source: ReceiverSource,
    u: Vec<u8>,
    w: Vec<Block>,
}

impl ReceiverEnd {
    fn setup(
        run: &Run<'_>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> volery_ot::Result<Self> {
        let source = match run.plan {
            Some(plan) => {
                ReceiverSource::Stream(Box::new(cot::Receiver::setup(plan, session, rng, channel)?))
            }
            None if run.candidate == Candidate::Iknp => {
                ReceiverSource::Base(Box::new(iknp::Receiver::setup(session, rng, channel)?))
            }
            None => ReceiverSource::Base(Box::new(softspoken::Receiver::setup(
                SOFTSPOKEN, session, rng, channel,
            )?)),
        };
        Ok(Self {
            source,
            u: Vec::with_capacity(CHUNK / 8),
            w: Vec::with_capacity(CHUNK),
        })
    }
}

impl End for ReceiverEnd {
    /// `u` and `w`.
    type Last = (Vec<u8>, Vec<Block>);

    fn prepare(&mut self, channel: &mut Channel) -> volery_ot::Result<usize> {
        match &mut self.source {
            ReceiverSource::Stream(stream) => stream.prepare(channel),
            ReceiverSource::Base(_) => Ok(0),
        }
    }

    fn draw(&mut self, count: usize, channel: &mut Channel) -> volery_ot::Result<()> {
        self.u.resize(bits::bytes_for(count), 0);
        self.w.resize(count, Block::ZERO);
        let (u, w) = (&mut self.u, &mut self.w);
        match &mut self.source {
            ReceiverSource::Stream(stream) => stream.extend(u, w, channel)?,
            ReceiverSource::Base(base) => base.extend(u, w, channel)?,
        }
        black_box((u, w));
        Ok(())
    }

    fn last(self) -> Self::Last {
        (self.u, self.w)
    }
}

/// Whether `w = v + u*delta`.
fn check((delta, v): (Block, Vec<Block>), (u, w): (Vec<u8>, Vec<Block>)) -> Result<(), Failure> {
    let product = |i| if bits::bit(&u, i) { delta } else { Block::ZERO };
    if v.len() == w.len() && (0..v.len()).all(|i| w[i] == v[i] ^ product(i)) {
        return Ok(());
    }
    Err(Failure::new(
        Status::Other,
        "the outputs of the two parties are not correlated",
    ))
}

fn fresh_prg() -> Result<Prg, Failure> {
    Prg::from_os().map_err(|error| {
        Failure::new(
            Status::Other,
            format_args!("the system gives no random numbers: {error}"),
        )
    })
}
