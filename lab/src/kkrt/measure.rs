//! One run of one protocol over one link, in its two phases: `offline` before the items are needed,
//! `online` from there to the receiver's result.

use std::ops::Range;
use std::time::Duration;

use crate::measurement::{Key, Sample};
use crate::parties::{Mark, Watch, run_in_pools};
use crate::runner::Cell;
use crate::{Error, Link, Result};
use volery_channel::{Channel, SessionId};
use volery_primitives::Block;
use volery_psi::{Settings, Variant};

use super::candidate::{Candidate, same};
use super::items::items;
use super::published::Setting;
use crate::baselines::{naive, pssz};
use crate::experiment::{Scope, failed, fresh_prg, fresh_session};

/// The names of the phases.
pub(super) const OFFLINE: &str = "offline";
pub(super) const ONLINE: &str = "online";

/// The measured cell: both parties have 2^`log_items` items.
pub(super) fn cell(candidate: Candidate, setting: Setting, log_items: u32, scope: &Scope) -> Cell {
    let run = Run {
        candidate,
        items: 1 << log_items,
        link: setting.link(),
        threads: scope.threads,
        timeout: scope.timeout,
    };
    Cell {
        key: key(candidate, setting, log_items, scope),
        plan: Some(candidate.describe(run.items)),
        security_bits: candidate.security_bits(),
        forecast: candidate.forecast(run.items, &run.link),
        run: Box::new(move || run.both()),
    }
}

/// The key of a measurement.
pub(super) fn key(candidate: Candidate, setting: Setting, log_items: u32, scope: &Scope) -> Key {
    Key {
        protocol: candidate.name(),
        n: 1 << log_items,
        link: setting.link(),
        threads: scope.threads,
    }
}

/// The protocol and settings to run.
struct Run {
    candidate: Candidate,
    /// Items of each party; half of them common.
    items: usize,
    link: Link,
    threads: usize,
    timeout: Duration,
}

impl Run {
    /// Runs both parties and checks the result.
    fn both(&self) -> Result<Sample> {
        let session = fresh_session()?;
        // The first half of the receiver's items is the second half of the sender's.
        let (theirs, own) = (0..self.items, self.items / 2..self.items / 2 + self.items);
        let items = Items::of(self.candidate, own.end);
        let (sent, (received, common)) = run_in_pools(
            &self.link,
            self.threads,
            self.timeout,
            |channel| self.send(&items, theirs, session, channel),
            |channel| self.receive(&items, own, session, channel),
        )?;
        self.check(&common)?;
        Ok(Sample::of([sent, received]))
    }

    /// Whether the receiver found exactly the common items.
    fn check(&self, common: &[usize]) -> Result<()> {
        let expected = self.items - self.items / 2;
        if common.iter().copied().eq(0..expected) {
            return Ok(());
        }
        Err(Error::protocol(format_args!(
            "{}: the result is wrong: of {expected} common items among {}, {} were found, or others",
            self.candidate.name(),
            self.items,
            common.len()
        )))
    }

    fn send(
        &self,
        items: &Items,
        own: Range<usize>,
        session: SessionId,
        channel: &mut Channel,
    ) -> Result<Vec<Mark>> {
        let mut rng = fresh_prg()?;
        let mut watch = Watch::start(channel)?;
        match self.candidate {
            Candidate::Naive => {
                watch.mark(OFFLINE, 0, channel);
                let sizes = same(self.items);
                naive::send(&items.blocks[own], sizes, session, &mut rng, channel)?;
            }
            Candidate::Pssz(bits) => {
                let mut sender = pssz::Sender::setup(session, rng, channel)?;
                watch.mark(OFFLINE, 0, channel);
                let plan = Candidate::pssz_plan(self.items, bits);
                sender.run(&items.blocks[own], &plan, channel)?;
            }
            Candidate::Bark(variant) => {
                let sender = volery_psi::Sender::setup(session, rng, channel).map_err(told)?;
                watch.mark(OFFLINE, 0, channel);
                let settings = settings(variant);
                sender
                    .intersect(&items.bytes[own], settings, &mut (), channel)
                    .map_err(told)?;
            }
        }
        watch.mark(ONLINE, self.items as u64, channel);
        Ok(watch.stop(channel)?)
    }

    /// Gives the numbers of the receiver's items that are common.
    fn receive(
        &self,
        items: &Items,
        own: Range<usize>,
        session: SessionId,
        channel: &mut Channel,
    ) -> Result<(Vec<Mark>, Vec<usize>)> {
        let rng = fresh_prg()?;
        let mut watch = Watch::start(channel)?;
        let common = match self.candidate {
            Candidate::Naive => {
                watch.mark(OFFLINE, 0, channel);
                naive::receive(&items.blocks[own], same(self.items), session, channel)?
            }
            Candidate::Pssz(bits) => {
                let mut receiver = pssz::Receiver::setup(session, rng, channel)?;
                watch.mark(OFFLINE, 0, channel);
                let plan = Candidate::pssz_plan(self.items, bits);
                receiver.run(&items.blocks[own], &plan, channel)?
            }
            Candidate::Bark(variant) => {
                let receiver = volery_psi::Receiver::setup(session, rng, channel).map_err(told)?;
                watch.mark(OFFLINE, 0, channel);
                let settings = settings(variant);
                receiver
                    .intersect(&items.bytes[own], settings, &mut (), channel)
                    .map_err(told)?
                    .common
            }
        };
        watch.mark(ONLINE, self.items as u64, channel);
        Ok((watch.stop(channel)?, common))
    }
}

/// Of BaRK-OPRF: the receiver alone gets a result.
const fn settings(variant: Variant) -> Settings {
    Settings {
        variant,
        both: false,
    }
}

/// The items of both parties, one after another, in the form that the protocol takes; the other
/// form is empty.
#[derive(Default)]
struct Items {
    blocks: Vec<Block>,
    bytes: Vec<[u8; 16]>,
}

impl Items {
    /// So many.
    fn of(candidate: Candidate, count: usize) -> Self {
        let bits = candidate.item_bits();
        match candidate {
            Candidate::Naive | Candidate::Pssz(_) => Self {
                blocks: items(count, bits, |item| item),
                ..Self::default()
            },
            Candidate::Bark(_) => Self {
                bytes: items(count, bits, Block::to_bytes),
                ..Self::default()
            },
        }
    }
}

/// A failure of BaRK-OPRF; that of the channel stays one, as it may be the mere consequence of the
/// other party's.
fn told(error: volery_psi::Error) -> Error {
    match error {
        volery_psi::Error::Channel(error) => error.into(),
        other => failed(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_results_are_told() {
        let run = Run {
            candidate: Candidate::Naive,
            items: 5,
            link: Link::Loopback,
            threads: 1,
            timeout: Duration::from_secs(1),
        };
        assert!(run.check(&[0, 1, 2]).is_ok());
        for wrong in [&[][..], &[0, 1], &[0, 1, 3], &[0, 1, 2, 3], &[2, 1, 0]] {
            let error = run.check(wrong).expect_err("it is wrong").to_string();
            assert!(error.starts_with("naive: the result is wrong"), "{error}");
        }
    }
}
