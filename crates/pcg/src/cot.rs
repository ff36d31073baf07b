//! Correlated OT at a fraction of a bit: the whole of Ferret (Yang, Weng, Lan, Zhang, Wang, CCS
//! 2020), Figure 9.
//!
//! The sender gets random `v` for its `delta`, the receiver random bits `u` and `w = v + u*delta`.
//!
//! ```text
//! Sender: delta                           Receiver
//! 1. ---------------- base OTs and OT extension: the base of the first round ----------------
//! 2. ---------------- stream: as many rounds as the outputs take ----------------
//! ```
//!
//! Both endpoints are sources of correlated OTs ([`CotSender`], [`CotReceiver`]):
//! [`volery_ot::convert`] turns them into random OT, chosen choice bits and chosen messages.
//!
//! ```
//! use volery_channel::{SessionId, run_two_parties};
//! use volery_ot::{CotReceiver, CotSender};
//! use volery_pcg::{Link, Security, cot};
//! use volery_primitives::{Block, bits, prg::Prg};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let n = 10_000;
//! let plan = cot::plan(Some(n as u64), Link::default(), Security::Malicious);
//! let session = SessionId::from_bytes([0; 32]); // from the handshake, never twice the same
//! let (rng_s, rng_r) = (Prg::from_os()?, Prg::from_os()?);
//! let (sender, receiver) = run_two_parties(
//!     |channel| {
//!         let mut v = vec![Block::ZERO; n];
//!         let mut sender = cot::Sender::setup(&plan, None, session, rng_s, channel)?;
//!         sender.extend(&mut v, channel)?;
//!         volery_pcg::Result::Ok((sender.delta(), v))
//!     },
//!     |channel| {
//!         let (mut u, mut w) = (vec![0; bits::bytes_for(n)], vec![Block::ZERO; n]);
//!         let mut receiver = cot::Receiver::setup(&plan, session, rng_r, channel)?;
//!         receiver.extend(&mut u, &mut w, channel)?;
//!         volery_pcg::Result::Ok((u, w))
//!     },
//! );
//! let ((delta, v), (u, w)) = (sender?, receiver?);
//! let u_delta = |i| if bits::bit(&u, i) { delta } else { Block::ZERO };
//! assert!((0..n).all(|i| w[i] == v[i] ^ u_delta(i)));
//! # Ok(()) }
//! ```
//!
//! **The carrier bit.** With rounds, one bit of every block carries the receiver's choice bit: it
//! is set in `delta`, zero in every `v`, and `u` in every `w`. In a `delta` that the protocol picks
//! it is the lowest bit, and `delta` has 127 bits that the receiver does not know. For a given
//! `delta` the sender tells the receiver which bit it is: one of its set bits, chosen by a hash of
//! `delta`, so always the same one. To a bounded adversary that reveals no more about a random
//! `delta` than one bit of it; about one with few set bits it reveals everything. Do not use the
//! carrier bit of `w` as a part of a key; a hash of `w` is fine.
//!
//! Security: that of the plan; malicious by default (`check`; Theorem 3: LPN with static
//! leakage).
//!
//! Cost: [`Plan`] lists the rounds; the tests count the bytes.

use std::{borrow::BorrowMut, fmt};

use volery_channel::{Channel, Error, Link, Result, Session, SessionId};
use volery_field::{F2, Gf128, Ring};
use volery_ot::softspoken::{self, SmallField};
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::{Block, bits, pages::Buffer, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

pub mod shared_setup;

use crate::{
    Base, Kind, Plan, PlanOptions, Security,
    agree::{self, End},
    correlation::{Correlation, Cot},
    cot_buffer,
    stream::{
        self, AnyRounds, CotSlices, CotValueHolder, Direct, Failure, KeyRole, Source, Stream,
        Substream, ValueRole,
    },
};

/// The cheapest plan for `total` correlated OTs, or for an unlimited stream, on that link. See
/// [`Plan::new`] for all options, and [`volery_channel::link`] for how two parties measure their
/// link.
///
/// A plan always exists: correlated OT is available with either security, and of any length.
#[must_use]
pub fn plan(total: Option<u64>, link: Link, security: Security) -> Plan {
    let plan =
        Plan::new(Kind::Cot, &PlanOptions { total, security, link, ..PlanOptions::default() });
    plan.expect("correlated OT has a plan for either security")
}

/// The holder of `delta` and `v`.
#[derive(Debug)]
pub struct Sender {
    carrier: Carrier,
    stream: Stream<stream::KeyHolder<Cot>>,
}

/// The holder of `u` and `w`.
#[derive(Debug)]
pub struct Receiver {
    carrier: Carrier,
    stream: Stream<CotValueHolder>,
}

/// [`Sender`], by what it holds.
pub type KeyHolder = Sender;

/// [`Receiver`], by what it holds.
pub type ValueHolder = Receiver;

/// Memory for packed bits and blocks.
type CotColumns = (Buffer<u8>, Buffer<Gf128>);

/// The bit of a block that carries the choice bit. Internally it is the lowest; both parties swap
/// the two bits at the interface.
#[derive(Clone, Copy)]
pub(crate) struct Carrier(pub(crate) u8);

/// Hides the place: it is a part of what the sender knows of `delta`.
impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Carrier(..)")
    }
}

impl Carrier {
    /// One of the set bits of `delta`: always the same one, so that two setups with one `delta`
    /// reveal no second one. In constant time.
    fn of(delta: Block) -> Self {
        let bits = u128::from(delta);
        let mut oracle = RandomOracle::new("volery cot carrier");
        oracle.absorb(&delta.to_bytes());
        let random = u64::from_le_bytes(*oracle.finish32().first_chunk().expect("8 of 32 bytes"));
        let rank = ((u128::from(random) * u128::from(bits.count_ones())) >> 64) as u32;
        let (mut carrier, mut seen) = (0, 0);
        for place in 0..128u8 {
            let set = (bits >> place) as u32 & 1;
            let here = u8::from(seen == rank) & set as u8;
            carrier |= place & 0u8.wrapping_sub(here);
            seen += set;
        }
        Self(carrier)
    }

    fn exchange(self, block: Block) -> Block {
        let block = u128::from(block);
        let differ = (block ^ (block >> self.0)) & 1;
        Block::from(block ^ differ ^ (differ << self.0))
    }

    fn exchange_all(self, blocks: &mut [Block]) {
        if self.0 != 0 {
            for block in blocks {
                *block = self.exchange(*block);
            }
        }
    }
}

impl Sender {
    /// [`setup`](Self::setup) on a session, with its panics and errors: with a separate session id
    /// and randomness.
    pub fn start(
        plan: &Plan,
        delta: Option<Block>,
        session: &mut Session<impl BorrowMut<Channel>>,
    ) -> Result<Self> {
        let (id, rng, channel) = session.parts();
        Self::setup(plan, delta, id, rng, channel)
    }

    /// Step 1, for the given `delta` or a random one. `session` is the one of the handshake, `rng`
    /// the randomness of this party.
    ///
    /// # Panics
    /// If `delta` is zero: nothing would be hidden. If the plan is not for correlated OT.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves, for example with another plan.
    pub fn setup(
        plan: &Plan,
        delta: Option<Block>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let direct = stream::direct::<_, _, Buffer<Gf128>>(plan.total());
        let (carrier, stream) = key_stream(plan, delta, session, rng, channel, direct)?;
        Ok(Self { carrier, stream })
    }

    /// Step 1 with the extension of a [shared setup](shared_setup), and with its `delta`. The peer
    /// calls [`Receiver::setup_with`] on its own, and both make the same calls in the same order.
    ///
    /// # Panics
    /// If the plan is not for correlated OT.
    ///
    /// # Errors
    /// The errors of [`setup`](Self::setup); [`Error::Broken`] if a call on the shared setup, or on
    /// a correlated OT made with it, failed.
    pub fn setup_with(
        shared: &mut shared_setup::Sender,
        plan: &Plan,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let carrier = Carrier(0);
        shared.0.set_up(End::Key, plan, channel, |ot, session, failure, channel| {
            let inner = Zeroizing::new(ot.try_delta()?);
            let base = ot.fork(sub(session, plan, carrier, "base"))?;
            let direct = stream::direct::<_, _, Buffer<Gf128>>(plan.total());
            let parts = (Box::new(base) as _, rng);
            let deltas = (Gf128::new(*inner), inner);
            let stream =
                key_stream_of(plan, carrier, deltas, session, parts, failure, channel, direct)?;
            Ok(Self { carrier, stream })
        })
    }

    stream::between_draws!();
}

impl CotSender for Sender {
    /// The sender's `delta`.
    ///
    /// # Panics
    /// If a call failed: `delta` is deleted with all other state, because the peer may know some of
    /// it.
    fn delta(&self) -> Block {
        self.stream.secret().value()
    }

    fn try_delta(&self) -> Result<Block> {
        self.stream.try_secret().map(Gf128::value)
    }

    /// Step 2: the next `v.len()` correlated OTs; both parties make the same calls with the same
    /// lengths.
    ///
    /// # Errors
    /// As the trait says, and [`Error::Usage`] if more is drawn than the plan was made for.
    fn extend(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        self.stream.extend(bytemuck::cast_slice_mut(v), channel)?;
        self.carrier.exchange_all(v);
        Ok(())
    }
}

impl Receiver {
    /// [`setup`](Self::setup) on a session, with its panics and errors: with a separate session id
    /// and randomness.
    pub fn start(plan: &Plan, session: &mut Session<impl BorrowMut<Channel>>) -> Result<Self> {
        let (id, rng, channel) = session.parts();
        Self::setup(plan, id, rng, channel)
    }

    /// Step 1. `session` is the one of the handshake, `rng` the randomness of this party.
    ///
    /// # Panics
    /// If the plan is not for correlated OT.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves, for example with another plan.
    pub fn setup(plan: &Plan, session: SessionId, rng: Prg, channel: &mut Channel) -> Result<Self> {
        let direct = stream::direct::<_, _, CotColumns>(plan.total());
        let (carrier, stream) = value_stream(plan, session, rng, channel, direct)?;
        Ok(Self { carrier, stream })
    }

    /// As [`Sender::setup_with`], with its panics and errors.
    pub fn setup_with(
        shared: &mut shared_setup::Receiver,
        plan: &Plan,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let carrier = Carrier(0);
        shared.0.set_up(End::Value, plan, channel, |ot, session, failure, channel| {
            let base = ot.fork(sub(session, plan, carrier, "base"))?;
            let direct = stream::direct::<_, _, CotColumns>(plan.total());
            let parts = (Box::new(base) as _, rng);
            let stream = value_stream_of(plan, carrier, session, parts, failure, channel, direct)?;
            Ok(Self { carrier, stream })
        })
    }

    stream::between_draws!();
}

impl CotReceiver for Receiver {
    /// Step 2: the next `w.len()` correlated OTs; both parties make the same calls with the same
    /// lengths.
    ///
    /// # Panics
    /// If `u.len()` is not `w.len().div_ceil(8)`.
    ///
    /// # Errors
    /// As the trait says, and [`Error::Usage`] if more is drawn than the plan was made for.
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], channel: &mut Channel) -> Result<()> {
        assert_eq!(u.len(), bits::bytes_for(w.len()), "one packed bit for each OT");
        let v = bytemuck::cast_slice_mut(w);
        self.stream.extend(CotSlices { u, v }, channel)?;
        self.carrier.exchange_all(w);
        Ok(())
    }
}

/// Step 1 of the sender, for outputs of any role; `direct` makes a base the source of outputs.
pub(crate) fn key_stream<R: KeyRole<Cot>>(
    plan: &Plan,
    delta: Option<Block>,
    session: SessionId,
    mut rng: Prg,
    channel: &mut Channel,
    direct: impl FnOnce(Box<dyn CotSender + Send>) -> Source<R, AnyRounds<R>>,
) -> Result<(Carrier, Stream<R>)> {
    assert_ne!(delta, Some(Block::ZERO), "a delta of zero hides nothing");
    plan.open_card()?;
    let is_direct = plan.is_direct();
    let carrier = match delta {
        Some(delta) if !is_direct => Carrier::of(delta),
        _ => Carrier(0),
    };
    let delta = Zeroizing::new(delta.unwrap_or_else(|| rng.block() | Block::ONE));
    let inner = Zeroizing::new(carrier.exchange(*delta));
    agree::start(End::Key, session, plan, channel)?;
    channel.send(&[carrier.0])?;
    let Base::SoftSpoken(field) = plan.base() else { unreachable!("bases of vector-OLE") };
    let (settings, seed) = (extension(field, plan.security()), rng.fork("base"));
    let base_session = sub(session, plan, carrier, "base");
    let base = softspoken::Sender::setup(Some(*inner), settings, base_session, seed, channel)?;
    channel.settle()?;
    let parts = (Box::new(base) as Box<dyn CotSender + Send>, rng);
    let deltas = (Gf128::new(*delta), inner);
    let stream =
        key_stream_of(plan, carrier, deltas, session, parts, Failure::default(), channel, direct)?;
    Ok((carrier, stream))
}

/// Step 1 after the base: `deltas` are the key and, with the carrier exchanged, that of the base.
#[expect(clippy::too_many_arguments, reason = "a setup, of its own or shared")]
fn key_stream_of<R: KeyRole<Cot>>(
    plan: &Plan,
    carrier: Carrier,
    (delta, inner): (Gf128, Zeroizing<Block>),
    session: SessionId,
    (mut base, mut rng): (Box<dyn CotSender + Send>, Prg),
    failure: Failure,
    channel: &mut Channel,
    direct: impl FnOnce(Box<dyn CotSender + Send>) -> Source<R, AnyRounds<R>>,
) -> Result<Stream<R>> {
    let part = |name: &str| sub(session, plan, carrier, name);
    let source = if plan.is_direct() {
        direct(base)
    } else {
        let mut v = Buffer::<Gf128>::zeroed(plan.substreams() * plan.base_count());
        base.extend(bytemuck::cast_slice_mut(&mut v[..]), channel)?;
        for v in v.iter_mut() {
            *v = Cot::pair(F2::ZERO, *v);
        }
        let substreams = Substream::each(v, plan, &mut rng, part, |session| {
            convert::Sender::new(cot_buffer::Sender::new(*inner), session)
        });
        stream::key_source::<Cot, R>(plan, Gf128::new(*inner), substreams)?
    };
    Ok(Stream::new(source, delta, plan.total(), failure))
}

/// Step 1 of the receiver, likewise.
pub(crate) fn value_stream<R: ValueRole<Cot>>(
    plan: &Plan,
    session: SessionId,
    mut rng: Prg,
    channel: &mut Channel,
    direct: impl FnOnce(Box<dyn CotReceiver + Send>) -> Source<R, AnyRounds<R>>,
) -> Result<(Carrier, Stream<R>)> {
    plan.open_card()?;
    agree::start(End::Value, session, plan, channel)?;
    let mut carrier = [0];
    channel.recv(&mut carrier)?;
    // mutant(cot-carrier): false
    if carrier[0] >= 128 {
        return Err(Error::PeerMisbehaved("the position of the carrier bit is not below 128"));
    }
    let carrier = Carrier(carrier[0]);
    let Base::SoftSpoken(field) = plan.base() else { unreachable!("bases of vector-OLE") };
    let (settings, seed) = (extension(field, plan.security()), rng.fork("base"));
    let base_session = sub(session, plan, carrier, "base");
    let base = softspoken::Receiver::setup(settings, base_session, seed, channel)?;
    let parts = (Box::new(base) as Box<dyn CotReceiver + Send>, rng);
    let stream =
        value_stream_of(plan, carrier, session, parts, Failure::default(), channel, direct)?;
    Ok((carrier, stream))
}

/// Step 1 after the base.
fn value_stream_of<R: ValueRole<Cot>>(
    plan: &Plan,
    carrier: Carrier,
    session: SessionId,
    (mut base, mut rng): (Box<dyn CotReceiver + Send>, Prg),
    failure: Failure,
    channel: &mut Channel,
    direct: impl FnOnce(Box<dyn CotReceiver + Send>) -> Source<R, AnyRounds<R>>,
) -> Result<Stream<R>> {
    let part = |name: &str| sub(session, plan, carrier, name);
    let source = if plan.is_direct() {
        direct(base)
    } else {
        let mut w = Buffer::<Gf128>::zeroed(plan.substreams() * plan.base_count());
        let mut u = Zeroizing::new(vec![0; bits::bytes_for(w.len())]);
        base.extend(&mut u, bytemuck::cast_slice_mut(&mut w[..]), channel)?;
        for (i, w) in w.iter_mut().enumerate() {
            *w = Cot::pair(F2::new(bits::bit(&u, i)), *w);
        }
        let substreams = Substream::each(w, plan, &mut rng, part, |session| {
            convert::Receiver::new(cot_buffer::Receiver::default(), session)
        });
        stream::value_source::<Cot, R>(plan, substreams)?
    };
    Ok(Stream::new(source, (), plan.total(), failure))
}

impl Direct<stream::KeyHolder<Cot>> for Box<dyn CotSender + Send> {
    fn draw(&mut self, out: &mut &mut [Gf128], channel: &mut Channel) -> Result<()> {
        self.extend(bytemuck::cast_slice_mut(out), channel)
    }

    fn rest(&mut self) {
        (**self).rest();
    }
}

impl Direct<CotValueHolder> for Box<dyn CotReceiver + Send> {
    fn draw(&mut self, out: &mut CotSlices<'_>, channel: &mut Channel) -> Result<()> {
        self.extend(out.u, bytemuck::cast_slice_mut(out.v), channel)
    }

    fn rest(&mut self) {
        (**self).rest();
    }
}

/// The OT extension of a plan: checked, unless the parties are semi-honest.
fn extension(field: SmallField, security: Security) -> softspoken::Settings {
    match security {
        Security::SemiHonest => field.unchecked(),
        Security::Malicious => field.into(),
    }
}

/// A separate session for a part of the protocol, bound to the plan and to the sender's carrier
/// bit.
///
/// # Panics
/// If the plan is not for correlated OT.
fn sub(session: SessionId, plan: &Plan, carrier: Carrier, part: &str) -> SessionId {
    assert_eq!(plan.kind(), Kind::Cot, "a plan for correlated OT");
    let mut oracle = RandomOracle::new("volery cot part");
    // mutant(cot-carrier-bound): drop
    oracle.absorb(&[carrier.0]);
    plan.session(oracle, session, part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_depend_on_carrier_and_part() {
        let plan = plan(Some(100), Link::default(), Security::Malicious);
        let sessions = [SessionId::from_bytes([1; 32]), SessionId::from_bytes([2; 32])];
        let all = [
            sub(sessions[0], &plan, Carrier(0), "base"),
            sub(sessions[1], &plan, Carrier(0), "base"),
            sub(sessions[0], &plan, Carrier(1), "base"),
            sub(sessions[0], &plan, Carrier(0), "rounds"),
        ];
        assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
    }
}
