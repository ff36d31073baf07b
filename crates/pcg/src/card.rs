//! Correlations whose outputs stay in the memory of a card.
//!
//! The counterparts of [`cot`] and [`vole`] for a party whose plan
//! [names a card](crate::PlanOptions::device), with the same messages: the peer may be one of those
//! or of these. Outputs go to [`Part`]s of [`Memory`] that the caller owns; when a call returns,
//! they are there for every user of the card. A draw of whole rounds takes the least time.
//!
//! ```no_run
//! use volery_channel::{Channel, SessionId};
//! use volery_pcg::{Device, Kind, Plan, PlanOptions, card};
//! use volery_primitives::{Block, prg::Prg};
//!
//! # fn run(session: SessionId, channel: &mut Channel) -> Result<(), Box<dyn std::error::Error>> {
//! // The peer makes the same plan, but for the device.
//! let device = Device::Cuda(0);
//! let (set, instances) = (Some("b11"), Some(4));
//! let options = PlanOptions { set, instances, device, ..PlanOptions::default() };
//! let plan = Plan::new(Kind::Cot, &options)?;
//! let mut sender = card::CotSender::setup(&plan, None, session, Prg::from_os()?, channel)?;
//! let mut v = card::Memory::<Block>::zeroed(sender.device(), 100_000_000)?;
//! sender.extend(&mut v.all(), channel)?;
//! # Ok(()) }
//! ```
//!
//! Security: that of the modules above. The owner of the machine with the card can read its memory;
//! other processes cannot. A failed call leaves zeros in its outputs, unless the card itself fails.

use volery_channel::{Channel, Error, Result, SessionId};
use volery_field::Gf128;
pub use volery_gpu::{Device as Card, Memory, Part, Pinned, dlpack};
use volery_gpu::{Entry, Outputs};
use volery_ot::convert;
use volery_primitives::{Block, prg::Prg};

use crate::{
    Plan, PlanError,
    correlation::{Correlation, Vole},
    cot::{self, Carrier},
    stream::{
        Stream,
        card::{CardOut, CardRole, failed},
    },
    vole::{self, VoleRing},
};

/// The card of a plan, for memory.
fn open(plan: &Plan) -> Result<volery_gpu::Device> {
    if !plan.suits_cards() {
        return Err(Error::Card(PlanError::NotOnCards(plan.describe()).to_string()));
    }
    volery_gpu::Device::open(plan.device().number()?).map_err(failed)
}

/// Words of memory of other values: their number is a multiple of the size of a value.
fn words<'a, T>(part: &'a mut Part<'_, T>) -> Part<'a, u64> {
    part.again().of_words()
}

/// The holder of `delta` and `v` of correlated OTs.
pub struct CotSender {
    device: volery_gpu::Device,
    carrier: Carrier,
    stream: Stream<CardRole<Gf128>>,
}

impl CotSender {
    /// As [`cot::Sender::setup`], with its panics.
    ///
    /// # Errors
    /// Its errors, and [`Error::Card`] if the card cannot be used.
    pub fn setup(
        plan: &Plan,
        delta: Option<Block>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let device = open(plan)?;
        let direct = |_| unreachable!("a plan for a card has rounds");
        let (carrier, stream) = cot::key_stream(plan, delta, session, rng, channel, direct)?;
        Ok(Self { device, carrier, stream })
    }

    /// The card.
    #[must_use]
    pub fn device(&self) -> &volery_gpu::Device {
        &self.device
    }

    /// The sender's `delta`.
    ///
    /// # Panics
    /// If a call failed.
    #[must_use]
    pub fn delta(&self) -> Block {
        self.stream.secret().value()
    }

    /// The next `v.len()` correlated OTs.
    ///
    /// # Panics
    /// If more is drawn than the plan was made for.
    ///
    /// # Errors
    /// The errors of [`cot::Sender`], and [`Error::Card`]. `v` is then zero, and the state wiped.
    pub fn extend(&mut self, v: &mut Part<'_, Block>, channel: &mut Channel) -> Result<()> {
        extend_cots(&mut self.stream, &self.device, self.carrier, v, channel)
    }
}

/// The holder of `u` and `w` of correlated OTs.
pub struct CotReceiver {
    device: volery_gpu::Device,
    carrier: Carrier,
    stream: Stream<CardRole<()>>,
}

impl CotReceiver {
    /// As [`cot::Receiver::setup`], with its panics.
    ///
    /// # Errors
    /// Its errors, and [`Error::Card`] if the card cannot be used.
    pub fn setup(plan: &Plan, session: SessionId, rng: Prg, channel: &mut Channel) -> Result<Self> {
        let device = open(plan)?;
        let direct = |_| unreachable!("a plan for a card has rounds");
        let (carrier, stream) = cot::value_stream(plan, session, rng, channel, direct)?;
        Ok(Self { device, carrier, stream })
    }

    /// The card.
    #[must_use]
    pub fn device(&self) -> &volery_gpu::Device {
        &self.device
    }

    /// The next `w.len()` correlated OTs, with `u` packed, lowest bit first.
    ///
    /// # Panics
    /// If `u.len()` is not `w.len().div_ceil(32)`, or more is drawn than the plan was made for.
    ///
    /// # Errors
    /// The errors of [`cot::Receiver`], and [`Error::Card`]. `u` and `w` are then zero, and the
    /// state wiped.
    pub fn extend(
        &mut self,
        u: &mut Part<'_, u32>,
        w: &mut Part<'_, Block>,
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(u.len(), w.len().div_ceil(32), "one packed bit for each OT");
        let made = extend_cots(&mut self.stream, &self.device, self.carrier, w, channel);
        let made = made.and_then(|()| {
            let taken = volery_gpu::take_bits(&self.device, w, self.carrier.0, u);
            done(taken, &self.device)
        });
        made.inspect_err(|_| {
            self.stream.end();
            let _failed = u.wipe(&self.device).and(w.wipe(&self.device));
        })
    }
}

/// The next correlated OTs of either party, with the carrier bit in its place.
fn extend_cots<S: zeroize::Zeroize + Copy + Send + 'static>(
    stream: &mut Stream<CardRole<S>>,
    device: &volery_gpu::Device,
    carrier: Carrier,
    out: &mut Part<'_, Block>,
    channel: &mut Channel,
) -> Result<()> {
    let entries = Outputs::Entries(words(out));
    stream.extend(CardOut { out: entries, entry: Entry::Cot, device: Some(device) }, channel)?;
    if carrier.0 == 0 {
        return Ok(());
    }
    done(volery_gpu::exchange_bit(device, out, carrier.0), device).inspect_err(|_| {
        stream.end();
        let _failed = out.wipe(device);
    })
}

/// Waits for work that was asked for.
fn done(asked: volery_gpu::Result<()>, device: &volery_gpu::Device) -> Result<()> {
    asked.and_then(|()| device.wait()).map_err(failed)
}

/// Random OTs of the sender: both messages of each, of [`convert::Sender::random`] with the same
/// session.
pub struct RandomSender {
    cot: CotSender,
    start: Block,
    next: u64,
}

impl RandomSender {
    /// From correlated OTs, with a session of no other object.
    #[must_use]
    pub fn new(cot: CotSender, session: SessionId) -> Self {
        Self { cot, start: convert::hash_start(session)[0], next: 0 }
    }

    /// The card.
    #[must_use]
    pub fn device(&self) -> &volery_gpu::Device {
        &self.cot.device
    }

    /// The next `m.len() / 2` pairs of messages.
    ///
    /// # Panics
    /// If `m` does not have whole pairs, or more is drawn than the plan was made for.
    ///
    /// # Errors
    /// The errors of [`CotSender::extend`]; `m` is then zero.
    pub fn extend(&mut self, m: &mut Part<'_, Block>, channel: &mut Channel) -> Result<()> {
        assert!(m.len().is_multiple_of(2), "whole pairs");
        self.draw(m, channel).inspect_err(|_| {
            self.cot.stream.end();
            let _failed = m.wipe(&self.cot.device);
        })
    }

    fn draw(&mut self, m: &mut Part<'_, Block>, channel: &mut Channel) -> Result<()> {
        let device = self.cot.device.clone();
        let mut v = Memory::<Block>::zeroed(&device, m.len() / 2).map_err(failed)?;
        self.cot.extend(&mut v.all(), channel)?;
        let (first, delta) = (self.next, self.cot.delta());
        self.next += v.len() as u64;
        done(volery_gpu::hash_pairs(&device, self.start, first, delta, &v.all(), m), &device)
    }
}

/// Random OTs of the receiver: its choices and the messages that it chose, of
/// [`convert::Receiver::random`] with the same session.
pub struct RandomReceiver {
    cot: CotReceiver,
    start: Block,
    next: u64,
}

impl RandomReceiver {
    /// From correlated OTs, with a session of no other object.
    #[must_use]
    pub fn new(cot: CotReceiver, session: SessionId) -> Self {
        Self { cot, start: convert::hash_start(session)[0], next: 0 }
    }

    /// The card.
    #[must_use]
    pub fn device(&self) -> &volery_gpu::Device {
        &self.cot.device
    }

    /// The next `m.len()` messages, with the choices `u` packed, lowest bit first.
    ///
    /// # Panics
    /// The panics of [`CotReceiver::extend`].
    ///
    /// # Errors
    /// The errors of [`CotReceiver::extend`]; `u` and `m` are then zero.
    pub fn extend(
        &mut self,
        u: &mut Part<'_, u32>,
        m: &mut Part<'_, Block>,
        channel: &mut Channel,
    ) -> Result<()> {
        self.cot.extend(u, m, channel)?;
        let (device, first) = (&self.cot.device, self.next);
        self.next += m.len() as u64;
        done(volery_gpu::hash_chosen(device, self.start, first, m), device).inspect_err(|_| {
            self.cot.stream.end();
            let _failed = u.wipe(device).and(m.wipe(device));
        })
    }
}

/// The holder of `u` and `v` of a vector OLE; elements are words of 64 bits, one of `fp61` and two
/// of `gf128`.
pub struct VoleSender<R: VoleRing> {
    device: volery_gpu::Device,
    stream: Stream<CardRole<()>>,
    ring: std::marker::PhantomData<R>,
}

/// The holder of `x` and `w`, likewise.
pub struct VoleReceiver<R: VoleRing> {
    device: volery_gpu::Device,
    stream: Stream<CardRole<R>>,
}

impl<R: VoleRing> VoleSender<R> {
    /// As [`vole::Sender::setup`], with its panics.
    ///
    /// # Errors
    /// Its errors, and [`Error::Card`] if the card cannot be used.
    pub fn setup(plan: &Plan, session: SessionId, rng: Prg, channel: &mut Channel) -> Result<Self> {
        let device = open(plan)?;
        let direct = |_| unreachable!("a plan for a card has rounds");
        let stream = vole::value_stream::<R, R, _>(plan, session, rng, channel, direct)?;
        Ok(Self { device, stream, ring: std::marker::PhantomData })
    }

    /// The card.
    #[must_use]
    pub fn device(&self) -> &volery_gpu::Device {
        &self.device
    }

    /// The next correlations.
    ///
    /// # Panics
    /// If the lengths differ or are no whole elements, or more is drawn than the plan was made for.
    ///
    /// # Errors
    /// The errors of [`vole::Sender::extend`], and [`Error::Card`]. `u` and `v` are then zero, and
    /// the state wiped.
    pub fn extend(
        &mut self,
        u: &mut Part<'_, u64>,
        v: &mut Part<'_, u64>,
        channel: &mut Channel,
    ) -> Result<()> {
        assert!(u.len() == v.len() && u.len().is_multiple_of(R::WORDS), "whole elements");
        let entry = Vole::<R>::ON_CARD.expect("a plan for a card is over such a ring").value;
        let out = Outputs::Apart(u.again(), v.again());
        self.stream.extend(CardOut { out, entry, device: Some(&self.device) }, channel)
    }
}

impl<R: VoleRing> VoleReceiver<R> {
    /// As [`vole::Receiver::setup`], with its panics.
    ///
    /// # Errors
    /// Its errors, and [`Error::Card`] if the card cannot be used.
    pub fn setup(
        plan: &Plan,
        x: Option<R>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let device = open(plan)?;
        let direct = |_| unreachable!("a plan for a card has rounds");
        let stream = vole::key_stream::<R, R, _>(plan, x, session, rng, channel, direct)?;
        Ok(Self { device, stream })
    }

    /// The card.
    #[must_use]
    pub fn device(&self) -> &volery_gpu::Device {
        &self.device
    }

    /// The receiver's `x`.
    ///
    /// # Panics
    /// If a call failed.
    #[must_use]
    pub fn x(&self) -> R {
        self.stream.secret()
    }

    /// The next correlations.
    ///
    /// # Panics
    /// If they are no whole elements, or more is drawn than the plan was made for.
    ///
    /// # Errors
    /// The errors of [`vole::Receiver::extend`], and [`Error::Card`]. `w` is then zero, and the
    /// state wiped.
    pub fn extend(&mut self, w: &mut Part<'_, u64>, channel: &mut Channel) -> Result<()> {
        assert!(w.len().is_multiple_of(R::WORDS), "whole elements");
        let entry = Vole::<R>::ON_CARD.expect("a plan for a card is over such a ring").key;
        let out = Outputs::Entries(w.again());
        self.stream.extend(CardOut { out, entry, device: Some(&self.device) }, channel)
    }
}
