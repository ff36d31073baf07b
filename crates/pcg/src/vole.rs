//! Vector-OLE: the sender gets random `u, v`, the receiver `w = u*x + v` for its `x`.
//!
//! The whole of Protocol 6 of the 2019 paper: [`base`] makes the base correlations,
//! `stream` extends them to a stream of any length. The inner OTs come from SoftSpoken OT
//! extension with its checks.
//!
//! ```text
//! Sender                                  Receiver: x
//! 1. ---------------- base OTs and SoftSpoken setup (the receiver holds delta) ----------------
//! 2. ---------------- base OTs on the bits of x (base) ----------------
//! 3. ---------------- base: the base correlations of the first round ----------------
//! 4. ---------------- stream: as many rounds as the outputs take ----------------
//! ```
//!
//! Several vector-OLEs between the same parties, each with a different `x`, share the public-key
//! operations of steps 1 and 2 by a [shared setup](shared_setup).
//!
//! [`Sender::prepare`] exchanges the messages of a round separately from its expansion, which is
//! local.
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
//! Security: that of the plan; over `fp61` and `gf128` malicious by default (`check`,
//! which also states the probability with which a malicious peer passes), and over extensions; over
//! `z64` semi-honest only. With [`PlanOptions::value_bits`] the `u` over `gf128` are in a subspace,
//! semi-honest only. A malicious sender can guess bits of `x` in the base, and a malicious receiver
//! places of the noise: a wrong guess ends the run, a right one goes unnoticed.
//!
//! Cost: [`Plan`] lists the rounds; the tests count the bytes. With a shared setup, step 0 comes
//! first: each party sends a hash of the plan and of the vector-OLE's number, 32 bytes, both at
//! once.

use std::borrow::BorrowMut;

use volery_channel::{Channel, Link, Result, Session, SessionId};
use volery_field::{Extended, Extension, ExtensionOf, Fp31, Fp61, Fp64, Gf128, Ring, Z64};
use volery_ot::{CotReceiver, CotSender, convert, softspoken};
use volery_primitives::{pages::Buffer, prg::Prg, ro::RandomOracle};

use crate::{
    Kind, Plan, PlanError, PlanOptions, Security,
    agree::{self, End},
    correlation::{Correlation, VoleKind, VoleSlices},
    lpn::estimate::{Field, OpenField},
    stream::{
        self, AnyRounds, Direct, Failure, KeyRole, Source, Stream, Substream, ValueRole,
        VoleValueHolder,
    },
};

pub mod base;
pub mod bits;
#[cfg(any(test, feature = "testing"))]
pub mod ideal;
pub mod shared_setup;
mod traits;

pub use traits::{FromCot, VoleReceiver, VoleSender};

use base::{KeyBase, ValueBase};
/// A ring of vector-OLE for `x`, `v` and `w`, with `u` in the ring `B`: in the ring itself, or in a
/// field that it extends.
///
/// Open to rings of a program: one with an [`Extension`] of at least 120
/// bits gets this trait for the extension by [`SubfieldBase`]. A whole field of at least 60 bits
/// implements it with `Kind = `[`Whole`] and the [`FIELD`](Self::FIELD) of [`open_field`]. Whoever
/// does so owes:
///
/// * all laws of [`Ring`], in constant time where it says so, and that the ring is a field;
/// * that its elements are sums of ones ([`Ring::GENERATED_BY_ONE`]), for those of `u`: otherwise
///   its code is one over a smaller ring, and its noise vanishes there;
/// * an order of `u` above `2^30`, for which the levels of the sets of LPN are computed.
pub trait VoleRing<B: Ring = Self>: ExtensionOf<B> {
    /// [`Whole`], or [`Subfield`].
    type Kind: VoleKind<Base = B, Ring = Self>;
    /// The ring in the LPN estimator, with the noise of [`Ring::random_noise`] in `B`.
    const FIELD: Field;

    /// Panics if the ring is not what it claims, as far as a setup can test.
    #[doc(hidden)]
    fn assert_lawful() {}
}

pub use crate::correlation::{Subfield, Vole as Whole};

/// A field whose extensions are rings of vector-OLE: see [`VoleRing`] for what it owes.
pub trait SubfieldBase: volery_field::Field {}

impl VoleRing for Fp61 {
    type Kind = Whole<Self>;
    const FIELD: Field = Field::Fp61;
}

impl VoleRing for Z64 {
    type Kind = Whole<Self>;
    const FIELD: Field = Field::Z64Odd;
}

impl VoleRing for Gf128 {
    type Kind = Whole<Self>;
    const FIELD: Field = Field::Gf128;
}

impl SubfieldBase for Fp31 {}
impl SubfieldBase for Fp64 {}

impl<B: Extended<D> + SubfieldBase, const D: usize> VoleRing<B> for Extension<B, D> {
    type Kind = Subfield<Self, B>;
    const FIELD: Field = open_field::<B, Self>();

    fn assert_lawful() {
        let double = |i| B::power_of_two(i) + B::power_of_two(i);
        let powers = (1..B::BITS).all(|i| B::power_of_two(i) == double(i - 1));
        assert!(powers && B::power_of_two(0) == B::ONE, "{}: power_of_two is wrong", B::NAME);
        let two = B::ONE + B::ONE;
        assert!(two * two.inverse() == B::ONE, "{}: no field, or another order", B::NAME);
        // Of degree 4 at most, as of 31 bits in 16 bytes: then this finds every factor.
        let x = <Self as ExtensionOf<B>>::basis(1);
        let mut power = x;
        for i in 1..=D {
            power = power.pow(B::ORDER_LESS_TWO + 2);
            assert!((power == x) == (i == D), "the polynomial of {} has a factor", Self::NAME);
        }
    }
}

/// The [`VoleRing::FIELD`] of a ring that the estimator does not name.
///
/// # Panics
/// When it is compiled, if `B` has fewer than 31 bits, or `R` fewer than 60, or than 120 where it
/// is an extension, or an element of `R` does not have a power of two of bytes in memory.
#[must_use]
pub const fn open_field<B: Ring, R: ExtensionOf<B>>() -> Field {
    let least = if R::DEGREE > 1 { 120 } else { 60 };
    assert!(
        B::BITS >= 31 && R::BITS >= least,
        "u needs 31 bits; x needs 60, or 120 in an extension"
    );
    assert!(B::GENERATED_BY_ONE, "a code of ones hides nothing beyond the ring that one spans");
    assert!(
        size_of::<R>().is_power_of_two() && size_of::<R>() <= 16,
        "an element may have 16 bytes at most, a power of two"
    );
    Field::Open(OpenField {
        name: R::NAME,
        noise_bits: B::BITS,
        bits: R::BITS,
        bytes: [B::BYTES, R::BYTES],
        degree: R::DEGREE,
    })
}

/// The cheapest plan for `total` correlations over `R`, or for an unlimited stream, on that link:
/// see [`Plan::new`].
///
/// # Errors
/// If no plan offers the security.
pub fn plan<R: VoleRing>(
    total: Option<u64>,
    link: Link,
    security: Security,
) -> std::result::Result<Plan, PlanError> {
    subfield_plan::<R, R>(total, link, security)
}

/// The [`plan`] for `u` in `B` and all else in `R`.
///
/// # Errors
/// If no plan offers the security.
pub fn subfield_plan<R: VoleRing<B>, B: Ring>(
    total: Option<u64>,
    link: Link,
    security: Security,
) -> std::result::Result<Plan, PlanError> {
    Plan::new(
        Kind::Vole(R::FIELD),
        &PlanOptions { total, security, link, ..PlanOptions::default() },
    )
}

/// A base for outputs, with its randomness.
type RandomizedBase<B> = (Box<B>, Prg);

/// The kind of correlation of a ring.
pub(crate) type KindOf<R, B> = <R as VoleRing<B>>::Kind;

/// The holder of `u` and `v`.
#[derive(Debug)]
pub struct Sender<R: VoleRing<B>, B: Ring = R> {
    stream: Stream<VoleValueHolder<KindOf<R, B>>>,
}

/// The holder of `x`, who gets `w = u*x + v`.
#[derive(Debug)]
pub struct Receiver<R: VoleRing<B>, B: Ring = R> {
    stream: Stream<stream::KeyHolder<KindOf<R, B>>>,
}

/// [`Receiver`], by what it holds.
pub type KeyHolder<R, B = R> = Receiver<R, B>;

/// [`Sender`], by what it holds.
pub type ValueHolder<R, B = R> = Sender<R, B>;

impl<R: VoleRing<B>, B: Ring> Sender<R, B> {
    /// [`setup`](Self::setup) on a session, with its panics and errors: with a separate session id
    /// and randomness.
    pub fn start(plan: &Plan, session: &mut Session<impl BorrowMut<Channel>>) -> Result<Self> {
        let (id, rng, channel) = session.parts();
        Self::setup(plan, id, rng, channel)
    }

    /// Steps 1 to 3. `session` is the one of the handshake, `rng` the randomness of this party.
    ///
    /// # Panics
    /// If the plan was made for another ring.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves, for example with another plan.
    pub fn setup(plan: &Plan, session: SessionId, rng: Prg, channel: &mut Channel) -> Result<Self> {
        let direct = stream::direct::<_, _, (Buffer<B>, Buffer<R>)>(plan.total());
        Ok(Self { stream: value_stream::<B, R, _>(plan, session, rng, channel, direct)? })
    }

    /// Steps 1 to 3 with the OTs of a shared setup. The peer calls [`Receiver::setup_with`] on its
    /// shared setup, and both make the same calls on their shared setups in the same order.
    ///
    /// # Panics
    /// If the plan was made for another ring.
    ///
    /// # Errors
    /// The errors of [`setup`](Self::setup), where another plan is detected before the shared setup
    /// is used; [`Error::Broken`](crate::Error::Broken) if a call on the shared setup, or on a
    /// vector-OLE made with it, failed.
    pub fn setup_with(
        shared: &mut shared_setup::Sender,
        plan: &Plan,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        shared.extensions.set_up(End::Value, plan, channel, |shared, session, failure, channel| {
            let part = |name: &str| sub::<B, R>(session, plan, name);
            let cot = shared.trees.fork(part("ot"))?; // step 1
            let base = base::values_from::<B, R>(plan, &mut shared.bits, part("base"), channel)?; // step 2
            let direct = stream::direct::<_, _, (Buffer<B>, Buffer<R>)>(plan.total());
            let parts = (cot, base, rng);
            let stream =
                value_stream_of::<B, R, _>(plan, session, parts, failure, channel, direct)?;
            Ok(Self { stream })
        })
    }

    /// Step 4: the next `u.len()` correlations; both parties make the same calls with the same
    /// lengths.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) if more is drawn than the plan was made for, with the
    /// object as before. If the channel fails or the peer misbehaves, and
    /// [`Error::Broken`](crate::Error::Broken) if a call failed before, here or on the shared setup
    /// or a vector-OLE that shares it. `u` and `v` are then all zero, and the state of this object
    /// is wiped.
    pub fn extend(&mut self, u: &mut [B], v: &mut [R], channel: &mut Channel) -> Result<()> {
        assert_eq!(u.len(), v.len(), "u and v have one length");
        self.stream.extend(VoleSlices { u, v }, channel)
    }

    stream::between_draws!();
}

impl<R: VoleRing<B>, B: Ring> Receiver<R, B> {
    /// [`setup`](Self::setup) on a session, with its panics and errors: with a separate session id
    /// and randomness.
    pub fn start(
        plan: &Plan,
        x: Option<R>,
        session: &mut Session<impl BorrowMut<Channel>>,
    ) -> Result<Self> {
        let (id, rng, channel) = session.parts();
        Self::setup(plan, x, id, rng, channel)
    }

    /// Steps 1 to 3, for the given `x` or a random one. `session` is the one of the handshake,
    /// `rng` the randomness of this party.
    ///
    /// # Panics
    /// If the plan was made for another ring.
    ///
    /// # Errors
    /// If the channel fails or the peer misbehaves, for example with another plan.
    pub fn setup(
        plan: &Plan,
        x: Option<R>,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let direct = stream::direct::<_, _, Buffer<R>>(plan.total());
        Ok(Self { stream: key_stream::<B, R, _>(plan, x, session, rng, channel, direct)? })
    }

    /// Steps 1 to 3 with the OTs of a shared setup, for the given `x` or a random one: as
    /// [`Sender::setup_with`].
    ///
    /// # Panics
    /// If the plan was made for another ring.
    ///
    /// # Errors
    /// The errors of [`setup`](Self::setup), where another plan is detected before the shared setup
    /// is used; [`Error::Broken`](crate::Error::Broken) if a call on the shared setup, or on a
    /// vector-OLE made with it, failed.
    pub fn setup_with(
        shared: &mut shared_setup::Receiver,
        plan: &Plan,
        x: Option<R>,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let x = x.unwrap_or_else(|| R::random(&mut rng));
        shared.extensions.set_up(End::Key, plan, channel, |shared, session, failure, channel| {
            let part = |name: &str| sub::<B, R>(session, plan, name);
            let cot = shared.trees.fork(part("ot"))?; // step 1
            let base = base::key_from::<B, R>(plan, x, &mut shared.bits, part("base"), channel)?; // step 2
            let direct = stream::direct::<_, _, Buffer<R>>(plan.total());
            let parts = (cot, base, rng);
            let stream =
                key_stream_of::<B, R, _>(plan, x, session, parts, failure, channel, direct)?;
            Ok(Self { stream })
        })
    }

    /// The receiver's `x`.
    ///
    /// # Panics
    /// If a call failed, here or on the shared setup or a vector-OLE that shares it: `x` is deleted
    /// with all other state, because the peer may know some of it.
    #[must_use]
    pub fn x(&self) -> R {
        self.stream.secret()
    }

    /// Step 4: the next `w.len()` correlations; both parties make the same calls with the same
    /// lengths.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) if more is drawn than the plan was made for, with the
    /// object as before. If the channel fails or the peer misbehaves, and
    /// [`Error::Broken`](crate::Error::Broken) if a call failed before, here or on the shared setup
    /// or a vector-OLE that shares it. `w` is then all zero, and the state of this object is wiped,
    /// `x` too.
    pub fn extend(&mut self, w: &mut [R], channel: &mut Channel) -> Result<()> {
        self.stream.extend(w, channel)
    }

    stream::between_draws!();
}

/// Steps 1 to 3 of the sender, for outputs of any role; `direct` makes a base the source of them.
pub(crate) fn value_stream<B: Ring, R: VoleRing<B>, S: ValueRole<R::Kind>>(
    plan: &Plan,
    session: SessionId,
    mut rng: Prg,
    channel: &mut Channel,
    direct: impl FnOnce(RandomizedBase<dyn ValueBase<B, R>>) -> Source<S, AnyRounds<S>>,
) -> Result<Stream<S>> {
    plan.open_card()?;
    let part = |name: &str| sub::<B, R>(session, plan, name);
    agree::start(End::Value, session, plan, channel)?;
    let seed = rng.fork("softspoken");
    let cot = softspoken::Receiver::setup(OT_FIELD, part("ot"), seed, channel)?; // step 1
    let seed = rng.fork("base");
    let base = base::values::<B, R>(plan, part("base"), seed, channel)?; // step 2
    value_stream_of::<B, R, S>(plan, session, (cot, base, rng), Failure::default(), channel, direct)
}

/// Step 3, and the state for step 4.
fn value_stream_of<B: Ring, R: VoleRing<B>, S: ValueRole<R::Kind>>(
    plan: &Plan,
    session: SessionId,
    (mut cot, mut base, mut rng): (softspoken::Receiver, Box<dyn ValueBase<B, R>>, Prg),
    failure: Failure,
    channel: &mut Channel,
    direct: impl FnOnce(RandomizedBase<dyn ValueBase<B, R>>) -> Source<S, AnyRounds<S>>,
) -> Result<Stream<S>> {
    let part = |name: &str| sub::<B, R>(session, plan, name);
    let source = if plan.is_direct() {
        direct((base, rng.fork("draws")))
    } else {
        let count = plan.substreams() * plan.base_count();
        let (mut u, mut v) = (Buffer::zeroed(count), Buffer::zeroed(count));
        base.draw(&mut u, &mut v, &mut rng, channel)?; // step 3
        let mut pairs = Buffer::zeroed(count);
        for (pair, (u, v)) in pairs.iter_mut().zip(u.iter().zip(v.iter())) {
            *pair = R::Kind::pair(*u, *v);
        }
        let mut cots: Vec<Box<dyn CotReceiver + Send>> = Vec::new();
        for substream in 1..plan.substreams() {
            let session = part(&stream::of_substream("ot", substream));
            cots.push(Box::new(cot.fork(session)?));
        }
        cots.insert(0, Box::new(cot));
        let mut cots = cots.into_iter();
        let substreams = Substream::each(pairs, plan, &mut rng, part, |session| {
            convert::Receiver::new(cots.next().expect("OTs for each substream"), session)
        });
        stream::value_source::<R::Kind, S>(plan, substreams)?
    };
    Ok(Stream::new(source, (), plan.total(), failure))
}

/// Steps 1 to 3 of the receiver, likewise.
pub(crate) fn key_stream<B: Ring, R: VoleRing<B>, S: KeyRole<R::Kind>>(
    plan: &Plan,
    x: Option<R>,
    session: SessionId,
    mut rng: Prg,
    channel: &mut Channel,
    direct: impl FnOnce(RandomizedBase<dyn KeyBase<R>>) -> Source<S, AnyRounds<S>>,
) -> Result<Stream<S>> {
    let x = x.unwrap_or_else(|| R::random(&mut rng));
    plan.open_card()?;
    let part = |name: &str| sub::<B, R>(session, plan, name);
    agree::start(End::Key, session, plan, channel)?;
    let seed = rng.fork("softspoken");
    let cot = softspoken::Sender::setup(None, OT_FIELD, part("ot"), seed, channel)?; // step 1
    let seed = rng.fork("base");
    let base = base::key::<B, R>(plan, x, part("base"), seed, channel)?; // step 2
    key_stream_of::<B, R, _>(
        plan,
        x,
        session,
        (cot, base, rng),
        Failure::default(),
        channel,
        direct,
    )
}

/// Step 3, and the state for step 4.
fn key_stream_of<B: Ring, R: VoleRing<B>, S: KeyRole<R::Kind>>(
    plan: &Plan,
    x: R,
    session: SessionId,
    (mut cot, mut base, mut rng): (softspoken::Sender, Box<dyn KeyBase<R>>, Prg),
    failure: Failure,
    channel: &mut Channel,
    direct: impl FnOnce(RandomizedBase<dyn KeyBase<R>>) -> Source<S, AnyRounds<S>>,
) -> Result<Stream<S>> {
    let part = |name: &str| sub::<B, R>(session, plan, name);
    let source = if plan.is_direct() {
        direct((base, rng.fork("draws")))
    } else {
        let mut w = Buffer::zeroed(plan.substreams() * plan.base_count());
        base.draw(&mut w, &mut rng, channel)?; // step 3
        let mut cots: Vec<Box<dyn CotSender + Send>> = Vec::new();
        for substream in 1..plan.substreams() {
            let session = part(&stream::of_substream("ot", substream));
            cots.push(Box::new(cot.fork(session)?));
        }
        cots.insert(0, Box::new(cot));
        let mut cots = cots.into_iter();
        let substreams = Substream::each(w, plan, &mut rng, part, |session| {
            convert::Sender::new(cots.next().expect("OTs for each substream"), session)
        });
        stream::key_source::<R::Kind, S>(plan, x, substreams)?
    };
    Ok(Stream::new(source, x, plan.total(), failure))
}

impl<K: VoleKind> Direct<VoleValueHolder<K>> for RandomizedBase<dyn ValueBase<K::Base, K::Ring>> {
    fn draw(&mut self, out: &mut VoleSlices<'_, K>, channel: &mut Channel) -> Result<()> {
        let (base, rng) = self;
        base.draw(out.u, out.v, rng, channel)
    }
}

impl<K: VoleKind> Direct<stream::KeyHolder<K>> for RandomizedBase<dyn KeyBase<K::Ring>> {
    fn draw(&mut self, out: &mut &mut [K::Ring], channel: &mut Channel) -> Result<()> {
        let (base, rng) = self;
        base.draw(out, rng, channel)
    }
}

/// The OT extension for the trees: the one with the fewest bytes, because its computation is a
/// small part here.
const OT_FIELD: softspoken::SmallField = softspoken::SmallField::Bits8;

/// A separate session for a part of the protocol, bound to the ring and the plan.
///
/// # Panics
/// If the plan was made for another ring.
fn sub<B: Ring, R: VoleRing<B>>(session: SessionId, plan: &Plan, part: &str) -> SessionId {
    assert_eq!(plan.kind(), Kind::Vole(R::FIELD), "a plan for {}", R::NAME);
    R::assert_lawful();
    let mut oracle = RandomOracle::new("volery vole part");
    // mutant(vole-session-ring): drop
    oracle.absorb(R::NAME.as_bytes());
    plan.session(oracle, session, part)
}

#[cfg(test)]
mod tests;
