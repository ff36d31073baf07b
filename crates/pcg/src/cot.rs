//! Correlated OT at a fraction of a bit: the whole of Ferret (Yang, Weng, Lan, Zhang, Wang, CCS 2020), Fig. 9.
//!
//! The sender gets random `v` for its `delta`, the receiver random bits `u` and `w = v + u*delta`.
//!
//! ```text
//! Sender: delta                           Receiver
//! 1. ---------------- base OTs and OT extension: the base of the first round ----------------
//! 2. ---------------- bootstrap: as many rounds as the outputs take ----------------
//! ```
//!
//! Both ends are sources of correlated OTs ([`CotSender`], [`CotReceiver`]): [`volery_ot::flavour`] makes random OT, chosen
//! choice bits and chosen messages of them.
//!
//! ```
//! use volery_channel::{SessionId, run_two_parties};
//! use volery_ot::{CotReceiver, CotSender};
//! use volery_pcg::{Link, Security, cot};
//! use volery_primitives::{Block, bits, prg::Prg};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let n = 10_000;
//! let plan = cot::plan(Some(n as u64), Link::default(), Security::Malicious)?;
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
//! **The carrier bit.** Where there are rounds, one bit of every block carries the receiver's choice bit: it is set in
//! `delta`, zero in every `v`, and `u` in every `w`. In a `delta` that the protocol picks it is the lowest bit, and `delta`
//! has 127 bits that the receiver does not know. Of a given one the sender says which it is: one of its set bits, chosen by
//! a hash of `delta`, so always the same one. To a bounded adversary that tells no more about a random `delta` than one bit
//! of it; about one with few set bits it tells everything. Do not use the carrier bit of `w` as a part of a key; a hash of
//! `w` is fine.
//!
//! Security: that of the plan; malicious by default ([`crate::check`]; Theorem 3: LPN with static leakage).
//! Cost: [`Plan`] says which rounds are run; the tests count the bytes.

use volery_channel::{Channel, Error, Result, SessionId};
use volery_field::{F2, Gf128, Ring};
use volery_ot::softspoken::{self, SmallField};
use volery_ot::{CotReceiver, CotSender, flavour, iknp};
use volery_primitives::{Block, bits, pages::Buffer, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

use crate::{
    Base, Kind, Link, Plan, PlanError, Security, Wishes,
    bootstrap::{KeyHolder, ValueHolder, dual},
    correlation::{Correlation, Cot},
    stock,
    stream::{Left, Source},
};

/// The cheapest plan for `total` correlated OTs, or for a stream without end, on that link: see [`Plan::new`] for all that can
/// be wished, and [`volery_channel::pace`] for how two parties find out what their link is like.
///
/// # Errors
/// None today.
pub fn plan(
    total: Option<u64>,
    link: Link,
    security: Security,
) -> std::result::Result<Plan, PlanError> {
    Plan::new(
        Kind::Cot,
        &Wishes {
            total,
            security,
            link,
            ..Wishes::default()
        },
    )
}

/// The holder of `delta` and `v`.
pub struct Sender {
    delta: Zeroizing<Block>,
    carrier: Carrier,
    source: Source<Box<dyn CotSender + Send>, KeyHolder<Cot>, dual::KeyHolder<Cot>>,
    left: Left,
}

/// The holder of `u` and `w`.
pub struct Receiver {
    carrier: Carrier,
    source: Source<Box<dyn CotReceiver + Send>, ValueHolder<Cot>, dual::ValueHolder<Cot>>,
    left: Left,
}

/// Which bit of a block carries the choice bit. Inside, it is the lowest; both parties exchange the two bits at the door.
#[derive(Clone, Copy)]
struct Carrier(u8);

impl Carrier {
    /// One of the set bits of `delta`: always the same one, so that two setups with one `delta` show no second. In
    /// constant time.
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
    /// Step 1, for the given `delta` or a random one. `session` is the one of the handshake, `rng` this party's own
    /// randomness.
    ///
    /// # Panics
    /// If `delta` is zero: nothing would be hidden. If the plan is not for correlated OT.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves; a peer with another plan is one.
    pub fn setup(
        plan: &Plan,
        delta: Option<Block>,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        assert_ne!(delta, Some(Block::ZERO), "a delta of zero hides nothing");
        let direct = plan.is_direct();
        let carrier = match delta {
            Some(delta) if !direct => Carrier::of(delta),
            _ => Carrier(0),
        };
        let delta = Zeroizing::new(delta.unwrap_or_else(|| rng.block() | Block::ONE));
        let inner = Zeroizing::new(carrier.exchange(*delta));
        channel.send(&[carrier.0])?;
        let part = |name| sub(session, plan, carrier, name);
        let (seed, base_session) = (rng.fork("base"), part("base"));
        let mut base: Box<dyn CotSender + Send> = match plan.base() {
            Base::SoftSpoken(field) => Box::new(softspoken::Sender::setup(
                Some(*inner),
                extension(field, plan.security()),
                base_session,
                seed,
                channel,
            )?),
            Base::Iknp => Box::new(iknp::Sender::setup(
                Some(*inner),
                base_session,
                seed,
                channel,
            )?),
            Base::Gilboa | Base::Packed(_) => unreachable!("bases of vector-OLE"),
        };
        let source = if direct {
            Source::Base(base)
        } else {
            let mut v = Buffer::<Gf128>::zeroed(plan.base_count());
            base.extend(bytemuck::cast_slice_mut(&mut v[..]), channel)?;
            for v in v.iter_mut() {
                *v = Cot::pair(F2::ZERO, *v);
            }
            let ot = flavour::Sender::new(stock::Sender::new(*inner), part("ot hash"));
            let x = Gf128::new(*inner);
            let rng = rng.fork("rounds");
            let (plan, session) = (plan.clone(), part("rounds"));
            if plan.dual().is_some() {
                Source::Dual(dual::KeyHolder::new(plan, session, rng, x, ot, v))
            } else {
                Source::Stream(KeyHolder::new(plan, session, rng, x, ot, v))
            }
        };
        Ok(Self {
            delta,
            carrier,
            source,
            left: Left(plan.total()),
        })
    }

    /// Exchanges all messages of the next round now, if none is under way. Both parties call it at the same point.
    ///
    /// Returns how many correlated OTs [`extend`](CotSender::extend) will then hand out without a message; zero where a
    /// plan uses no LPN, or all of it has been drawn.
    ///
    /// # Errors
    /// As [`extend`](CotSender::extend).
    pub fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        let result = self.source.guarded(|source| match source {
            Source::Base(_) => Ok(0),
            Source::Stream(stream) => stream.prepare(channel),
            Source::Dual(stream) => stream.prepare(channel),
            Source::Poisoned => Err(Error::Broken),
        });
        if result.is_err() {
            *self.delta = Block::ZERO;
        }
        result
    }
}

impl CotSender for Sender {
    fn delta(&self) -> Block {
        assert!(
            !matches!(self.source, Source::Poisoned),
            "nothing is left after a failed call"
        );
        *self.delta
    }

    /// Step 2: the next `v.len()` correlated OTs; both parties make the same calls with the same lengths.
    ///
    /// # Panics
    /// If more is drawn than the plan was made for.
    fn extend(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        self.source.alive()?;
        self.left.take(v.len());
        let result = self.source.guarded(|source| match source {
            Source::Base(base) => base.extend(v, channel),
            Source::Stream(stream) => stream.extend(bytemuck::cast_slice_mut(v), channel),
            Source::Dual(stream) => stream.extend(bytemuck::cast_slice_mut(v), channel),
            Source::Poisoned => Err(Error::Broken),
        });
        match result {
            Ok(()) => self.carrier.exchange_all(v),
            Err(_) => {
                *self.delta = Block::ZERO;
                v.fill(Block::ZERO);
            }
        }
        result
    }
}

impl Receiver {
    /// Step 1. `session` is the one of the handshake, `rng` this party's own randomness.
    ///
    /// # Panics
    /// If the plan is not for correlated OT.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves; a peer with another plan is one.
    pub fn setup(
        plan: &Plan,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let mut carrier = [0];
        channel.recv(&mut carrier)?;
        if carrier[0] >= 128 {
            return Err(Error::PeerMisbehaved("the carrier bit is none of 128"));
        }
        let carrier = Carrier(carrier[0]);
        let part = |name| sub(session, plan, carrier, name);
        let (seed, base_session) = (rng.fork("base"), part("base"));
        let mut base: Box<dyn CotReceiver + Send> = match plan.base() {
            Base::SoftSpoken(field) => Box::new(softspoken::Receiver::setup(
                extension(field, plan.security()),
                base_session,
                seed,
                channel,
            )?),
            Base::Iknp => Box::new(iknp::Receiver::setup(base_session, seed, channel)?),
            Base::Gilboa | Base::Packed(_) => unreachable!("bases of vector-OLE"),
        };
        let source = if plan.is_direct() {
            Source::Base(base)
        } else {
            let mut w = Buffer::<Gf128>::zeroed(plan.base_count());
            let mut u = Zeroizing::new(vec![0; bits::bytes_for(w.len())]);
            base.extend(&mut u, bytemuck::cast_slice_mut(&mut w[..]), channel)?;
            for (i, w) in w.iter_mut().enumerate() {
                *w = Cot::pair(F2::new(bits::bit(&u, i)), *w);
            }
            let ot = flavour::Receiver::new(stock::Receiver::default(), part("ot hash"));
            let rng = rng.fork("rounds");
            let (plan, session) = (plan.clone(), part("rounds"));
            if plan.dual().is_some() {
                Source::Dual(dual::ValueHolder::new(plan, session, rng, ot, w))
            } else {
                Source::Stream(ValueHolder::new(plan, session, rng, ot, w))
            }
        };
        Ok(Self {
            carrier,
            source,
            left: Left(plan.total()),
        })
    }

    /// As [`Sender::prepare`].
    ///
    /// # Errors
    /// As [`extend`](CotReceiver::extend).
    pub fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        self.source.guarded(|source| match source {
            Source::Base(_) => Ok(0),
            Source::Stream(stream) => stream.prepare(channel),
            Source::Dual(stream) => stream.prepare(channel),
            Source::Poisoned => Err(Error::Broken),
        })
    }
}

impl CotReceiver for Receiver {
    /// Step 2: the next `w.len()` correlated OTs; both parties make the same calls with the same lengths.
    ///
    /// # Panics
    /// If `u.len()` is not `w.len().div_ceil(8)`, or more is drawn than the plan was made for.
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], channel: &mut Channel) -> Result<()> {
        assert_eq!(
            u.len(),
            bits::bytes_for(w.len()),
            "one packed bit for each OT"
        );
        self.source.alive()?;
        self.left.take(w.len());
        let carrier = self.carrier;
        let result = self.source.guarded(|source| match source {
            Source::Base(base) => base.extend(u, w, channel),
            Source::Stream(stream) => {
                let pairs: &mut [Gf128] = bytemuck::cast_slice_mut(w);
                stream.extend(pairs, channel)?;
                bits::lowest_bits(w, u);
                carrier.exchange_all(w);
                Ok(())
            }
            Source::Dual(stream) => {
                let pairs: &mut [Gf128] = bytemuck::cast_slice_mut(w);
                stream.extend(pairs, channel)?;
                bits::lowest_bits(w, u);
                carrier.exchange_all(w);
                Ok(())
            }
            Source::Poisoned => Err(Error::Broken),
        });
        if result.is_err() {
            u.fill(0);
            w.fill(Block::ZERO);
        }
        result
    }
}

/// The OT extension of a plan: checked, unless the parties are semi-honest.
fn extension(field: SmallField, security: Security) -> softspoken::Settings {
    match security {
        Security::SemiHonest => field.unchecked(),
        Security::Malicious => field.into(),
    }
}

/// A session of its own for a part of the protocol, bound to the plan and to the carrier bit that the sender named.
///
/// # Panics
/// If the plan is not for correlated OT.
fn sub(session: SessionId, plan: &Plan, carrier: Carrier, part: &str) -> SessionId {
    assert_eq!(plan.kind(), Kind::Cot, "a plan for correlated OT");
    let mut oracle = RandomOracle::new("volery cot part");
    oracle.absorb(&[carrier.0]);
    plan.session(oracle, session, part)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn sessions_depend_on_carrier_and_part() {
        let plan = plan(Some(100), Link::default(), Security::Malicious).unwrap();
        let sessions = [
            SessionId::from_bytes([1; 32]),
            SessionId::from_bytes([2; 32]),
        ];
        let all = [
            sub(sessions[0], &plan, Carrier(0), "base"),
            sub(sessions[1], &plan, Carrier(0), "base"),
            sub(sessions[0], &plan, Carrier(1), "base"),
            sub(sessions[0], &plan, Carrier(0), "rounds"),
        ];
        assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
    }
}
