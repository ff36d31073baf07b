//! One run of one protocol over one link, in its two phases.

use std::ops::Range;
use std::time::{Duration, Instant};

use volery_channel::{Channel, SessionId};
use volery_experiments::baselines::{naive, pssz};
use volery_primitives::aes::Aes128;
use volery_primitives::{Block, prg::Prg};
use volery_psi::Settings;

use super::candidate::{Candidate, same};
use crate::command::options::pool;
use crate::exit::{Failure, Status};
use crate::link::Link;
use crate::parties;

/// What to run.
pub(super) struct Run<'a> {
    pub(super) candidate: Candidate,
    /// Items of each party; half of them common.
    pub(super) items: usize,
    pub(super) link: &'a Link,
    pub(super) threads: usize,
    pub(super) timeout: Duration,
}

/// What a run took; times are the slower party's, bytes go both ways.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct Sample {
    /// Before the items are needed.
    pub(super) offline_seconds: f64,
    pub(super) offline_bytes: u64,
    /// From there to the receiver's result.
    pub(super) online_seconds: f64,
    pub(super) online_bytes: u64,
}

impl Sample {
    pub(super) fn seconds(&self) -> f64 {
        self.offline_seconds + self.online_seconds
    }
}

/// One party's times and bytes.
#[derive(Clone, Copy, Default)]
struct Times {
    offline: Duration,
    offline_bytes: u64,
    total: Duration,
    online_bytes: u64,
}

/// Runs both parties and checks the result.
///
/// # Errors
/// Those of the parties; if the result is wrong.
pub(super) fn run(run: &Run<'_>) -> Result<Sample, Failure> {
    let pools = [pool(run.threads)?, pool(run.threads)?];
    let mut session = [0; 32];
    fresh_prg()?.fill_bytes(&mut session);
    let session = SessionId::from_bytes(session);
    // The first half of the receiver's items is the second half of the sender's.
    let theirs = Items::of(run.candidate, 0..run.items);
    let own = Items::of(run.candidate, run.items / 2..run.items / 2 + run.items);
    let (sender, (receiver, common)) = parties::run_both(
        run.link,
        run.timeout,
        |channel| pools[0].install(|| send(run, &theirs, session, fresh_prg()?, channel)),
        |channel| pools[1].install(|| receive(run, &own, session, fresh_prg()?, channel)),
    )?;
    if !common.into_iter().eq(0..run.items - run.items / 2) {
        return Err(Failure::new(
            Status::Other,
            format_args!("{}: the result is wrong", run.candidate.name()),
        ));
    }
    let parties = [sender, receiver];
    let slower = |of: fn(&Times) -> Duration| {
        let times = parties.iter().map(of).max();
        times.map_or(0.0, |time| time.as_secs_f64())
    };
    let offline_seconds = slower(|times| times.offline);
    Ok(Sample {
        offline_seconds,
        offline_bytes: parties.iter().map(|times| times.offline_bytes).sum(),
        online_seconds: slower(|times| times.total) - offline_seconds,
        online_bytes: parties.iter().map(|times| times.online_bytes).sum(),
    })
}

fn send(
    run: &Run<'_>,
    items: &Items,
    session: SessionId,
    mut rng: Prg,
    channel: &mut Channel,
) -> Result<Times, Failure> {
    let clock = Clock::start(channel)?;
    match run.candidate {
        Candidate::Naive => {
            let clock = clock.online(channel);
            let sizes = same(run.items);
            naive::send(&items.blocks, sizes, session, &mut rng, channel)?;
            clock.stop(channel)
        }
        Candidate::Pssz(bits) => {
            let mut sender = pssz::Sender::setup(session, rng, channel)?;
            let clock = clock.online(channel);
            let plan = Candidate::pssz_plan(same(run.items), bits);
            sender.run(&items.blocks, &plan, channel)?;
            clock.stop(channel)
        }
        Candidate::Bark(variant) => {
            let sender = volery_psi::Sender::setup(session, rng, channel).map_err(failed)?;
            let clock = clock.online(channel);
            let settings = Settings {
                variant,
                both: false,
            };
            let sent = sender.intersect(&items.bytes, settings, &mut (), channel);
            sent.map_err(failed)?;
            clock.stop(channel)
        }
    }
}

fn receive(
    run: &Run<'_>,
    items: &Items,
    session: SessionId,
    rng: Prg,
    channel: &mut Channel,
) -> Result<(Times, Vec<usize>), Failure> {
    let clock = Clock::start(channel)?;
    let (clock, common) = match run.candidate {
        Candidate::Naive => {
            let clock = clock.online(channel);
            let sizes = same(run.items);
            (
                clock,
                naive::receive(&items.blocks, sizes, session, channel)?,
            )
        }
        Candidate::Pssz(bits) => {
            let mut receiver = pssz::Receiver::setup(session, rng, channel)?;
            let clock = clock.online(channel);
            let plan = Candidate::pssz_plan(same(run.items), bits);
            (clock, receiver.run(&items.blocks, &plan, channel)?)
        }
        Candidate::Bark(variant) => {
            let receiver = volery_psi::Receiver::setup(session, rng, channel).map_err(failed)?;
            let clock = clock.online(channel);
            let settings = Settings {
                variant,
                both: false,
            };
            let received = receiver.intersect(&items.bytes, settings, &mut (), channel);
            (clock, received.map_err(failed)?.common)
        }
    };
    Ok((clock.stop(channel)?, common))
}

/// A party's clock, from when both are there.
struct Clock {
    start: Instant,
    /// Bytes sent so far.
    bytes: u64,
    times: Times,
}

impl Clock {
    /// Waits until both parties are here and the link is empty.
    fn start(channel: &mut Channel) -> Result<Self, Failure> {
        meet(channel)?;
        Ok(Self {
            start: Instant::now(),
            bytes: channel.stats().bytes_sent,
            times: Times::default(),
        })
    }

    /// The offline phase is over.
    fn online(mut self, channel: &Channel) -> Self {
        self.times.offline = self.start.elapsed();
        let bytes = channel.stats().bytes_sent;
        self.times.offline_bytes = bytes - self.bytes;
        self.bytes = bytes;
        self
    }

    /// The run is over.
    fn stop(mut self, channel: &mut Channel) -> Result<Times, Failure> {
        self.times.total = self.start.elapsed();
        self.times.online_bytes = channel.stats().bytes_sent - self.bytes;
        // What a party gives up at its end is not a part of the other's time.
        meet(channel)?;
        Ok(self.times)
    }
}

fn meet(channel: &mut Channel) -> Result<(), Failure> {
    channel.send(&[0])?;
    channel.recv(&mut [0])?;
    Ok(())
}

/// A party's items, as the protocol takes them; the other form is empty.
#[derive(Default)]
struct Items {
    blocks: Vec<Block>,
    bytes: Vec<[u8; 16]>,
}

impl Items {
    fn of(candidate: Candidate, numbers: Range<usize>) -> Self {
        let items = items(numbers, candidate.item_bits());
        match candidate {
            Candidate::Naive | Candidate::Pssz(_) => Self {
                blocks: items.collect(),
                ..Self::default()
            },
            Candidate::Bark(_) => Self {
                bytes: items.map(Block::to_bytes).collect(),
                ..Self::default()
            },
        }
    }
}

/// Items that look random, are all different and have `bits` bits (an even number): a Feistel network over their
/// numbers.
fn items(numbers: Range<usize>, bits: u32) -> impl Iterator<Item = Block> {
    /// Rounds; four make a random permutation of a random function.
    const ROUNDS: u128 = 4;
    let aes = Aes128::new(Block::new(0x6974_656d));
    let half = bits / 2;
    let low = u128::MAX >> (128 - half);
    numbers.map(move |number| {
        let (mut left, mut right) = (number as u128 >> half, number as u128 & low);
        for round in 0..ROUNDS {
            let hash = u128::from(aes.encrypt(Block::new(right << 8 | round)));
            (left, right) = (right, left ^ (hash & low));
        }
        Block::new(left << half | right)
    })
}

fn failed(error: volery_psi::Error) -> Failure {
    match error {
        volery_psi::Error::Channel(error) => error.into(),
        other => Failure::new(Status::Other, other),
    }
}

fn fresh_prg() -> Result<Prg, Failure> {
    Prg::from_os().map_err(|error| {
        Failure::new(
            Status::Other,
            format_args!("the system gives no random numbers: {error}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn items_are_different_and_as_long_as_they_should_be() {
        for bits in [16, 32, 64, 128] {
            let different: HashSet<u128> = items(5..10_005, bits).map(u128::from).collect();
            assert_eq!(different.len(), 10_000);
            assert!(bits == 128 || different.iter().all(|item| item >> bits == 0));
            // They reach all over the range.
            assert!(different.iter().any(|item| item >> (bits - 1) == 1));
        }
    }
}
