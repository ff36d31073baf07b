//! Vector-OLE: the sender gets random `u, v`, the receiver `w = u*x + v` for its `x`.
//!
//! The whole of Protocol 6 of the 2019 paper: [`base`] makes the base correlations, [`crate::bootstrap`] turns
//! them into a stream of any length. The OTs inside come from SoftSpoken OT extension with its checks.
//!
//! ```text
//! Sender                                  Receiver: x
//! 1. ---------------- base OTs and SoftSpoken setup (the receiver holds delta) ----------------
//! 2. ---------------- base OTs on the bits of x (base) ----------------
//! 3. ---------------- base: the base correlations of the first round ----------------
//! 4. ---------------- bootstrap: as many rounds as the outputs take ----------------
//! ```
//!
//! Several vector-OLEs between the same parties, each with its own `x`, share the public-key operations of steps 1 and 2 by a
//! [`kit`].
//!
//! The messages of a round can be exchanged apart from its expansion, which is local: [`Sender::prepare`].
//!
//! ```
//! use volery_channel::{SessionId, run_two_parties};
//! use volery_field::{Fp61, Ring};
//! use volery_pcg::{Link, Security, vole};
//! use volery_primitives::prg::Prg;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let n = 10_000;
//! let plan = vole::plan::<Fp61>(Some(n as u64), Link::default(), Security::Malicious)?;
//! let session = SessionId::from_bytes([0; 32]); // from the handshake, never twice the same
//! let (rng_s, rng_r) = (Prg::from_os()?, Prg::from_os()?);
//! let (sender, receiver) = run_two_parties(
//!     |channel| {
//!         let (mut u, mut v) = (vec![Fp61::ZERO; n], vec![Fp61::ZERO; n]);
//!         let mut sender = vole::Sender::setup(&plan, session, rng_s, channel)?;
//!         sender.extend(&mut u, &mut v, channel)?;
//!         volery_pcg::Result::Ok((u, v))
//!     },
//!     |channel| {
//!         let mut w = vec![Fp61::ZERO; n];
//!         let mut receiver = vole::Receiver::setup(&plan, None, session, rng_r, channel)?;
//!         receiver.extend(&mut w, channel)?;
//!         volery_pcg::Result::Ok((receiver.x(), w))
//!     },
//! );
//! let ((u, v), (x, w)) = (sender?, receiver?);
//! assert!((0..n).all(|i| w[i] == u[i] * x + v[i]));
//! # Ok(()) }
//! ```
//!
//! Security: that of the plan; over `fp61` and `gf128` malicious by default ([`crate::check`], which also says with what
//! probability a cheating peer passes), over `z64` semi-honest only.
//! Cost: [`Plan`] says which rounds are run; the tests count the bytes. With a kit, step 0 comes first: each party sends a hash of
//! the plan and of the vector-OLE's number, 32 bytes, both at once.

use volery_channel::{Channel, Error, Result, SessionId};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_ot::{CotReceiver, CotSender, flavour, softspoken};
use volery_primitives::{pages::Buffer, prg::Prg, ro::RandomOracle};
use zeroize::Zeroize;

use crate::{
    Kind, Link, Plan, PlanError, Security, Wishes,
    bootstrap::{KeyHolder, ValueHolder, dual},
    correlation::{Apart, Correlation, Vole},
    lpn::estimate::Field,
    stream::{Left, Source},
};

pub mod base;
pub mod kit;

use base::{KeyBase, ValueBase};
use kit::Family;

/// A ring that vector-OLE is made over.
pub trait VoleRing: Ring {
    /// The ring as the LPN estimator sees it, with the noise of [`Ring::random_noise`].
    const FIELD: Field;
}

impl VoleRing for Fp61 {
    const FIELD: Field = Field::Fp61;
}

impl VoleRing for Z64 {
    const FIELD: Field = Field::Z64Odd;
}

impl VoleRing for Gf128 {
    const FIELD: Field = Field::Gf128;
}

/// The cheapest plan for `total` correlations over `R`, or for a stream without end, on that link: see [`Plan::new`].
///
/// # Errors
/// If the security is not to be had.
pub fn plan<R: VoleRing>(
    total: Option<u64>,
    link: Link,
    security: Security,
) -> std::result::Result<Plan, PlanError> {
    Plan::new(
        Kind::Vole(R::FIELD),
        &Wishes {
            total,
            security,
            link,
            ..Wishes::default()
        },
    )
}

/// A base that outputs are drawn from, with the randomness for that.
type Drawn<B> = (Box<B>, Prg);

type SenderSource<R> =
    Source<Drawn<dyn ValueBase<R>>, ValueHolder<Vole<R>>, dual::ValueHolder<Vole<R>>>;
type ReceiverSource<R> =
    Source<Drawn<dyn KeyBase<R>>, KeyHolder<Vole<R>>, dual::KeyHolder<Vole<R>>>;

/// The holder of `u` and `v`.
pub struct Sender<R: VoleRing> {
    source: SenderSource<R>,
    left: Left,
    family: Family,
}

/// The holder of `x`, who gets `w = u*x + v`.
pub struct Receiver<R: VoleRing> {
    source: ReceiverSource<R>,
    x: R,
    left: Left,
    family: Family,
}

impl<R: VoleRing> Sender<R> {
    /// Steps 1 to 3. `session` is the one of the handshake, `rng` this party's own randomness.
    ///
    /// # Panics
    /// If the plan was made for another ring.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves; a peer with another plan is one.
    pub fn setup(
        plan: &Plan,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let part = |name| sub::<R>(session, plan, name);
        let seed = rng.fork("softspoken");
        let cot = softspoken::Receiver::setup(OT_FIELD, part("ot"), seed, channel)?; // step 1
        let seed = rng.fork("base");
        let base = base::values::<R>(plan.base(), part("base"), seed, channel)?; // step 2
        Self::from_parts(plan, session, cot, base, rng, Family::default(), channel)
    }

    /// Steps 1 to 3 with the OTs of a kit. The peer calls [`Receiver::setup_with`] on its own, and both make the same calls on
    /// their kits in the same order.
    ///
    /// # Panics
    /// If the plan was made for another ring.
    ///
    /// # Errors
    /// As [`setup`](Self::setup), where another plan is noticed before anything is made of the kit; [`Error::Broken`] if a call
    /// on the kit, or on a vector-OLE made with it, failed.
    pub fn setup_with(
        kit: &mut kit::Sender,
        plan: &Plan,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        kit.guarded(|kit, session, family| {
            let part = |name| sub::<R>(session, plan, name);
            kit::agree(part("plan"), channel)?; // step 0
            let cot = kit.trees.fork(part("ot"))?; // step 1
            let base = base::values_from::<R>(plan.base(), &mut kit.bits, part("base"), channel)?; // step 2
            Self::from_parts(plan, session, cot, base, rng, family, channel)
        })
    }

    /// Step 3, and what there is for step 4.
    fn from_parts(
        plan: &Plan,
        session: SessionId,
        cot: softspoken::Receiver,
        mut base: Box<dyn ValueBase<R>>,
        mut rng: Prg,
        family: Family,
        channel: &mut Channel,
    ) -> Result<Self> {
        let part = |name| sub::<R>(session, plan, name);
        let source = if plan.is_direct() {
            Source::Base((base, rng.fork("draws")))
        } else {
            let count = plan.base_count();
            let (mut u, mut v) = (Buffer::zeroed(count), Buffer::zeroed(count));
            base.draw(&mut u, &mut v, &mut rng, channel)?; // step 3
            let mut pairs = Buffer::zeroed(count);
            for (pair, (u, v)) in pairs.iter_mut().zip(u.iter().zip(v.iter())) {
                *pair = Vole::pair(*u, *v);
            }
            let cot: Box<dyn CotReceiver + Send> = Box::new(cot);
            let ot = flavour::Receiver::new(cot, part("ot hash"));
            let seed = rng.fork("rounds");
            let (plan, session) = (plan.clone(), part("rounds"));
            if plan.dual().is_some() {
                Source::Dual(dual::ValueHolder::new(plan, session, seed, ot, pairs))
            } else {
                Source::Stream(ValueHolder::new(plan, session, seed, ot, pairs))
            }
        };
        Ok(Self {
            source,
            left: Left(plan.total()),
            family,
        })
    }

    /// Step 4: the next `u.len()` correlations; both parties make the same calls with the same lengths.
    ///
    /// # Panics
    /// If the lengths differ, or more is drawn than the plan was made for.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves; [`Error::Broken`] if a call failed before, here or on the kit or a vector-OLE
    /// that shares it. `u` and `v` are then all zero, and what this object held is wiped.
    pub fn extend(&mut self, u: &mut [R], v: &mut [R], channel: &mut Channel) -> Result<()> {
        assert_eq!(u.len(), v.len(), "u and v have one length");
        let result = self.guarded(Some(u.len()), |source| match source {
            Source::Base((base, rng)) => base.draw(u, v, rng, channel),
            Source::Stream(stream) => stream.extend(
                &mut Apart {
                    u: &mut *u,
                    v: &mut *v,
                },
                channel,
            ),
            Source::Dual(stream) => stream.extend(
                Apart {
                    u: &mut *u,
                    v: &mut *v,
                },
                channel,
            ),
            Source::Poisoned => Err(Error::Broken),
        });
        if result.is_err() {
            u.fill(R::ZERO);
            v.fill(R::ZERO);
        }
        result
    }

    /// `VOLE.Setup` of Protocol 6 apart from `VOLE.Expand`: exchanges all messages of the next round now, if none is under
    /// way. Both parties call it at the same point.
    ///
    /// Returns how many correlations [`extend`](Self::extend) will then hand out without a message; zero where a plan
    /// uses no LPN, or all of it has been drawn.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        self.guarded(None, |source| match source {
            Source::Base(_) => Ok(0),
            Source::Stream(stream) => stream.prepare(channel),
            Source::Dual(stream) => stream.prepare(channel),
            Source::Poisoned => Err(Error::Broken),
        })
    }

    /// Runs a call that draws `n`. If it fails, or one of the family failed before, nothing is left.
    fn guarded<T>(
        &mut self,
        n: Option<usize>,
        call: impl FnOnce(&mut SenderSource<R>) -> Result<T>,
    ) -> Result<T> {
        let result = guarded(&self.family, &mut self.source, &mut self.left, n, call);
        if result.is_err() {
            self.source = Source::Poisoned;
        }
        result
    }
}

impl<R: VoleRing> Receiver<R> {
    /// Steps 1 to 3, for the given `x` or a random one. `session` is the one of the handshake, `rng` this party's own
    /// randomness.
    ///
    /// # Panics
    /// If the plan was made for another ring.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves; a peer with another plan is one.
    pub fn setup(
        plan: &Plan,
        x: Option<R>,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let x = x.unwrap_or_else(|| R::random(&mut rng));
        let part = |name| sub::<R>(session, plan, name);
        let seed = rng.fork("softspoken");
        let cot = softspoken::Sender::setup(None, OT_FIELD, part("ot"), seed, channel)?; // step 1
        let seed = rng.fork("base");
        let base = base::key::<R>(plan.base(), x, part("base"), seed, channel)?; // step 2
        Self::from_parts(plan, x, session, cot, base, rng, Family::default(), channel)
    }

    /// Steps 1 to 3 with the OTs of a kit, for the given `x` or a random one: as [`Sender::setup_with`].
    ///
    /// # Panics
    /// If the plan was made for another ring.
    ///
    /// # Errors
    /// As [`setup`](Self::setup), where another plan is noticed before anything is made of the kit; [`Error::Broken`] if a call
    /// on the kit, or on a vector-OLE made with it, failed.
    pub fn setup_with(
        kit: &mut kit::Receiver,
        plan: &Plan,
        x: Option<R>,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let x = x.unwrap_or_else(|| R::random(&mut rng));
        kit.guarded(|kit, session, family| {
            let part = |name| sub::<R>(session, plan, name);
            kit::agree(part("plan"), channel)?; // step 0
            let cot = kit.trees.fork(part("ot"))?; // step 1
            let base = base::key_from::<R>(plan.base(), x, &mut kit.bits, part("base"), channel)?; // step 2
            Self::from_parts(plan, x, session, cot, base, rng, family, channel)
        })
    }

    /// Step 3, and what there is for step 4.
    #[expect(
        clippy::too_many_arguments,
        reason = "what the two ways of a setup have made"
    )]
    fn from_parts(
        plan: &Plan,
        x: R,
        session: SessionId,
        cot: softspoken::Sender,
        mut base: Box<dyn KeyBase<R>>,
        mut rng: Prg,
        family: Family,
        channel: &mut Channel,
    ) -> Result<Self> {
        let part = |name| sub::<R>(session, plan, name);
        let source = if plan.is_direct() {
            Source::Base((base, rng.fork("draws")))
        } else {
            let mut w = Buffer::zeroed(plan.base_count());
            base.draw(&mut w, &mut rng, channel)?; // step 3
            let cot: Box<dyn CotSender + Send> = Box::new(cot);
            let ot = flavour::Sender::new(cot, part("ot hash"));
            let seed = rng.fork("rounds");
            let (plan, session) = (plan.clone(), part("rounds"));
            if plan.dual().is_some() {
                Source::Dual(dual::KeyHolder::new(plan, session, seed, x, ot, w))
            } else {
                Source::Stream(KeyHolder::new(plan, session, seed, x, ot, w))
            }
        };
        Ok(Self {
            source,
            x,
            left: Left(plan.total()),
            family,
        })
    }

    /// The receiver's `x`.
    ///
    /// # Panics
    /// If a call failed, here or on the kit or a vector-OLE that shares it: `x` is deleted with everything else, as the peer may
    /// know some of it.
    #[must_use]
    pub fn x(&self) -> R {
        assert!(
            self.family.alive().is_ok() && self.source.alive().is_ok(),
            "nothing is left after a failed call"
        );
        self.x
    }

    /// Step 4: the next `w.len()` correlations; both parties make the same calls with the same lengths.
    ///
    /// # Panics
    /// If more is drawn than the plan was made for.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves; [`Error::Broken`] if a call failed before, here or on the kit or a vector-OLE
    /// that shares it. `w` is then all zero, and what this object held is wiped, `x` too.
    pub fn extend(&mut self, w: &mut [R], channel: &mut Channel) -> Result<()> {
        let result = self.guarded(Some(w.len()), |source| match source {
            Source::Base((base, rng)) => base.draw(w, rng, channel),
            Source::Stream(stream) => stream.extend(w, channel),
            Source::Dual(stream) => stream.extend(w, channel),
            Source::Poisoned => Err(Error::Broken),
        });
        if result.is_err() {
            w.fill(R::ZERO);
        }
        result
    }

    /// As [`Sender::prepare`].
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        self.guarded(None, |source| match source {
            Source::Base(_) => Ok(0),
            Source::Stream(stream) => stream.prepare(channel),
            Source::Dual(stream) => stream.prepare(channel),
            Source::Poisoned => Err(Error::Broken),
        })
    }

    /// As [`Sender::guarded`].
    fn guarded<T>(
        &mut self,
        n: Option<usize>,
        call: impl FnOnce(&mut ReceiverSource<R>) -> Result<T>,
    ) -> Result<T> {
        let result = guarded(&self.family, &mut self.source, &mut self.left, n, call);
        if result.is_err() {
            self.source = Source::Poisoned;
            self.x.zeroize();
        }
        result
    }
}

impl<R: VoleRing> Drop for Receiver<R> {
    fn drop(&mut self) {
        self.x.zeroize();
    }
}

/// Runs a call that draws `n` from a source, where neither it nor its family has failed.
fn guarded<B, S, D, T>(
    family: &Family,
    source: &mut Source<B, S, D>,
    left: &mut Left,
    n: Option<usize>,
    call: impl FnOnce(&mut Source<B, S, D>) -> Result<T>,
) -> Result<T> {
    family.alive()?;
    source.alive()?;
    if let Some(n) = n {
        left.take(n);
    }
    family.guarded(|| source.guarded(call))
}

/// The OT extension under the trees: the one with the fewest bytes, as its computation is a small part here.
const OT_FIELD: softspoken::SmallField = softspoken::SmallField::Bits8;

/// A session of its own for a part of the protocol, bound to the ring and the plan.
///
/// # Panics
/// If the plan was made for another ring.
fn sub<R: VoleRing>(session: SessionId, plan: &Plan, part: &str) -> SessionId {
    assert_eq!(plan.kind(), Kind::Vole(R::FIELD), "a plan for {}", R::NAME);
    let mut oracle = RandomOracle::new("volery vole part");
    oracle.absorb(R::NAME.as_bytes());
    plan.session(oracle, session, part)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
