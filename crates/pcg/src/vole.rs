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
//! The messages of a round can be exchanged apart from its expansion, which is local: [`Sender::prepare`].
//!
//! ```
//! use volery_channel::{SessionId, run_two_parties};
//! use volery_field::{Fp61, Ring};
//! use volery_pcg::{Noise, Security, vole};
//! use volery_primitives::prg::Prg;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let n = 10_000;
//! let plan = vole::plan::<Fp61>(Some(n as u64), Noise::Regular, Security::Malicious)?;
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
//! Cost: [`Plan`] says which rounds are run; the tests count the bytes.

use volery_channel::{Channel, Error, Result, SessionId};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_ot::{CotReceiver, CotSender, flavour, softspoken};
use volery_primitives::{pages::Buffer, prg::Prg, ro::RandomOracle};
use zeroize::Zeroize;

use crate::{
    Kind, Noise, Plan, PlanError, Security, Wishes,
    bootstrap::{KeyHolder, ValueHolder},
    correlation::{Apart, Correlation, Vole},
    lpn::estimate::Field,
    stream::{Left, Source},
};

pub mod base;

use base::{KeyBase, ValueBase};

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

/// The plan for `total` correlations over `R`, or for a stream without end: see [`Plan::new`].
///
/// # Errors
/// If the security is not to be had.
pub fn plan<R: VoleRing>(
    total: Option<u64>,
    noise: Noise,
    security: Security,
) -> std::result::Result<Plan, PlanError> {
    Plan::new(
        Kind::Vole(R::FIELD),
        &Wishes {
            total,
            noise,
            security,
            ..Wishes::default()
        },
    )
}

/// A base that outputs are drawn from, with the randomness for that.
type Drawn<B> = (Box<B>, Prg);

/// The holder of `u` and `v`.
pub struct Sender<R: VoleRing> {
    source: Source<Drawn<dyn ValueBase<R>>, ValueHolder<Vole<R>>>,
    left: Left,
}

/// The holder of `x`, who gets `w = u*x + v`.
pub struct Receiver<R: VoleRing> {
    source: Source<Drawn<dyn KeyBase<R>>, KeyHolder<Vole<R>>>,
    x: R,
    left: Left,
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
        let mut base = base::values::<R>(plan.base(), part("base"), seed, channel)?; // step 2
        let source = if plan.ladder().is_empty() {
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
            Source::Stream(ValueHolder::new(
                plan.clone(),
                part("rounds"),
                seed,
                ot,
                pairs,
            ))
        };
        Ok(Self {
            source,
            left: Left(plan.total()),
        })
    }

    /// Step 4: the next `u.len()` correlations; both parties make the same calls with the same lengths.
    ///
    /// # Panics
    /// If the lengths differ, or more is drawn than the plan was made for.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves, now or before. `u` and `v` are then all zero.
    pub fn extend(&mut self, u: &mut [R], v: &mut [R], channel: &mut Channel) -> Result<()> {
        assert_eq!(u.len(), v.len(), "u and v have one length");
        self.source.alive()?;
        self.left.take(u.len());
        let result = self.source.guarded(|source| match source {
            Source::Base((base, rng)) => base.draw(u, v, rng, channel),
            Source::Stream(stream) => stream.extend(
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
        self.source.guarded(|source| match source {
            Source::Base(_) => Ok(0),
            Source::Stream(stream) => stream.prepare(channel),
            Source::Poisoned => Err(Error::Broken),
        })
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
        let mut base = base::key::<R>(plan.base(), x, part("base"), seed, channel)?; // step 2
        let source = if plan.ladder().is_empty() {
            Source::Base((base, rng.fork("draws")))
        } else {
            let mut w = Buffer::zeroed(plan.base_count());
            base.draw(&mut w, &mut rng, channel)?; // step 3
            let cot: Box<dyn CotSender + Send> = Box::new(cot);
            let ot = flavour::Sender::new(cot, part("ot hash"));
            let seed = rng.fork("rounds");
            Source::Stream(KeyHolder::new(plan.clone(), part("rounds"), seed, x, ot, w))
        };
        Ok(Self {
            source,
            x,
            left: Left(plan.total()),
        })
    }

    /// The receiver's `x`.
    ///
    /// # Panics
    /// If a call failed: `x` is deleted with everything else, as the peer may know some of it.
    #[must_use]
    pub fn x(&self) -> R {
        assert!(
            self.source.alive().is_ok(),
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
    /// If the channel fails or the peer misbehaves, now or before. `w` is then all zero.
    pub fn extend(&mut self, w: &mut [R], channel: &mut Channel) -> Result<()> {
        self.source.alive()?;
        self.left.take(w.len());
        let result = self.source.guarded(|source| match source {
            Source::Base((base, rng)) => base.draw(w, rng, channel),
            Source::Stream(stream) => stream.extend(w, channel),
            Source::Poisoned => Err(Error::Broken),
        });
        if result.is_err() {
            self.x.zeroize();
            w.fill(R::ZERO);
        }
        result
    }

    /// As [`Sender::prepare`].
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        let result = self.source.guarded(|source| match source {
            Source::Base(_) => Ok(0),
            Source::Stream(stream) => stream.prepare(channel),
            Source::Poisoned => Err(Error::Broken),
        });
        if result.is_err() {
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
mod tests {
    use volery_channel::{run_two_channels, run_two_parties};
    use volery_primitives::Block;

    use super::*;

    /// `w = u*x + v` for a stream drawn in the given pieces.
    fn check<R: VoleRing>(plan: &Plan, pieces: &[usize]) {
        let session = SessionId::from_bytes([5; 32]);
        let n = pieces.iter().sum();
        let ((u, v), (x, w)) = run_two_parties(
            |channel| {
                let rng = Prg::new(Block::from(1));
                let mut sender = Sender::<R>::setup(plan, session, rng, channel).unwrap();
                let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
                let mut at = 0;
                for piece in pieces {
                    let range = at..at + piece;
                    sender
                        .extend(&mut u[range.clone()], &mut v[range], channel)
                        .unwrap();
                    at += piece;
                }
                (u, v)
            },
            |channel| {
                let rng = Prg::new(Block::from(2));
                let mut receiver = Receiver::<R>::setup(plan, None, session, rng, channel).unwrap();
                let mut w = vec![R::ZERO; n];
                let mut at = 0;
                for piece in pieces {
                    receiver.extend(&mut w[at..at + piece], channel).unwrap();
                    at += piece;
                }
                (receiver.x(), w)
            },
        );
        for i in 0..n {
            assert!(
                w[i] == u[i] * x + v[i],
                "correlation {i} of {n} over {}",
                R::NAME
            );
        }
    }

    fn check_ring<R: VoleRing>() {
        for noise in [Noise::Regular, Noise::Uniform] {
            for n in [0, 1, 4000, 4001, 4609, 17_537, 134_145] {
                let plan = plan::<R>(Some(n), noise, Security::SemiHonest).unwrap();
                check::<R>(&plan, &[n as usize]);
            }
        }
        let plan = plan::<R>(Some(30_011), Noise::Regular, Security::SemiHonest).unwrap();
        check::<R>(&plan, &[0, 1, 2, 47, 48, 49, 10_007, 1, 10_000, 9856]);
    }

    #[test]
    #[should_panic(expected = "no more correlations than the plan was made for")]
    fn no_more_than_planned() {
        let plan = plan::<Fp61>(Some(5), Noise::Regular, Security::SemiHonest).unwrap();
        check::<Fp61>(&plan, &[3, 3]);
    }

    #[test]
    #[should_panic(expected = "a plan for z64")]
    fn a_plan_is_for_one_ring() {
        let plan = plan::<Fp61>(Some(5), Noise::Regular, Security::SemiHonest).unwrap();
        check::<Z64>(&plan, &[3]);
    }

    /// Setup and expansion apart: once a round is prepared, it is drawn from without a peer.
    #[test]
    fn a_prepared_round_needs_no_peer() {
        let plan = plan::<Fp61>(Some(10_000), Noise::Regular, Security::SemiHonest).unwrap();
        let session = SessionId::from_bytes([5; 32]);
        let lonely = || Channel::memory_pair().0;
        let ((u, v), (x, w)) = run_two_parties(
            |channel| {
                let rng = Prg::new(Block::from(1));
                let mut sender = Sender::<Fp61>::setup(&plan, session, rng, channel).unwrap();
                assert_eq!(sender.prepare(channel).unwrap(), 10_000);
                let (mut u, mut v) = (vec![Fp61::ZERO; 10_000], vec![Fp61::ZERO; 10_000]);
                sender
                    .extend(&mut u[..3000], &mut v[..3000], &mut lonely())
                    .unwrap();
                sender
                    .extend(&mut u[3000..], &mut v[3000..], &mut lonely())
                    .unwrap();
                assert_eq!(sender.prepare(channel).unwrap(), 0);
                (u, v)
            },
            |channel| {
                let rng = Prg::new(Block::from(2));
                let mut receiver =
                    Receiver::<Fp61>::setup(&plan, None, session, rng, channel).unwrap();
                assert_eq!(receiver.prepare(channel).unwrap(), 10_000);
                let mut w = vec![Fp61::ZERO; 10_000];
                receiver.extend(&mut w, &mut lonely()).unwrap();
                (receiver.x(), w)
            },
        );
        assert!((0..10_000).all(|i| w[i] == u[i] * x + v[i]));
    }

    /// Plans that differ end the setup, though the first messages have the same lengths.
    #[test]
    fn another_plan_is_noticed_in_the_setup() {
        let session = SessionId::from_bytes([5; 32]);
        let plans = [6_300_000, 9_000_000]
            .map(|n| plan::<Z64>(Some(n), Noise::Regular, Security::SemiHonest).unwrap());
        let (left, right) = Channel::memory_pair();
        let ((sender, _), (receiver, _)) = run_two_channels(
            left,
            right,
            |channel| {
                let rng = Prg::new(Block::from(1));
                Sender::<Z64>::setup(&plans[0], session, rng, channel).map(|_| ())
            },
            |channel| {
                let rng = Prg::new(Block::from(2));
                Receiver::<Z64>::setup(&plans[1], None, session, rng, channel).map(|_| ())
            },
        );
        assert!(matches!(receiver, Err(Error::PeerMisbehaved(_))));
        assert!(matches!(sender, Err(Error::Disconnected)));
    }

    #[test]
    fn fp61_every_size() {
        check_ring::<Fp61>();
    }

    #[test]
    fn z64_every_size() {
        check_ring::<Z64>();
    }

    #[test]
    fn gf128_every_size() {
        check_ring::<Gf128>();
    }
}
