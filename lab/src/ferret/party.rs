//! The two parties of a source of correlated OTs, for every protocol.

use std::hint::black_box;

use crate::{Error, Result};
use volery_channel::{Channel, SessionId};
use volery_ot::{CotReceiver, CotSender, iknp, softspoken};
use volery_pcg::{Plan, cot};
use volery_primitives::{Block, bits, prg::Prg};

use super::candidate::{Candidate, SOFTSPOKEN};

/// The most correlated OTs drawn at once: memory is proportional to it.
const CHUNK: usize = 1 << 17;

/// One party's source of correlated OTs.
pub(super) trait Party {
    /// The outputs to check at the end.
    type Last;

    /// The number of outputs left of the round; zero without rounds.
    fn prepare(&mut self, channel: &mut Channel) -> volery_ot::Result<usize>;

    /// Draws the next outputs, at most [`CHUNK`], replacing the last ones.
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

/// The holder of `delta`.
pub(super) struct SenderParty {
    source: SenderSource,
    v: Vec<Block>,
}

impl SenderParty {
    /// By the candidate's plan; `None` without LPN.
    ///
    /// # Errors
    /// Those of the protocol.
    pub(super) fn setup(
        candidate: Candidate,
        plan: Option<&Plan>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> volery_ot::Result<Self> {
        let source = match plan {
            Some(plan) => SenderSource::Stream(Box::new(cot::Sender::setup(
                plan, None, session, rng, channel,
            )?)),
            None if candidate == Candidate::Iknp => {
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

impl Party for SenderParty {
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

/// The holder of the choice bits.
pub(super) struct ReceiverParty {
    source: ReceiverSource,
    u: Vec<u8>,
    w: Vec<Block>,
}

impl ReceiverParty {
    /// As [`SenderParty::setup`].
    ///
    /// # Errors
    /// Those of the protocol.
    pub(super) fn setup(
        candidate: Candidate,
        plan: Option<&Plan>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> volery_ot::Result<Self> {
        let source = match plan {
            Some(plan) => {
                ReceiverSource::Stream(Box::new(cot::Receiver::setup(plan, session, rng, channel)?))
            }
            None if candidate == Candidate::Iknp => {
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

impl Party for ReceiverParty {
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
///
/// # Errors
/// If not.
pub(super) fn check((delta, v): (Block, Vec<Block>), (u, w): (Vec<u8>, Vec<Block>)) -> Result<()> {
    let product = |i| if bits::bit(&u, i) { delta } else { Block::ZERO };
    if v.len() == w.len() && (0..v.len()).all(|i| w[i] == v[i] ^ product(i)) {
        return Ok(());
    }
    Err(Error::protocol(
        "the outputs of the two parties are not correlated",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_correlated_is_told() {
        let (delta, v) = (Block::from(7), vec![Block::from(1), Block::from(2)]);
        let good = vec![Block::from(1), Block::from(2 ^ 7)];
        assert!(check((delta, v.clone()), (vec![0b10], good.clone())).is_ok());
        let error = check((delta, v.clone()), (vec![0b11], good.clone())).expect_err("one bit");
        assert!(error.to_string().contains("not correlated"), "{error}");
        assert!(check((delta, v), (vec![0b10], good[..1].to_vec())).is_err());
    }
}
