//! A party's stream of correlations: one pipeline for both roles and all sources.
//!
//! A [`Role`] defines what a party holds and the memory for its outputs. The outputs come from
//! [`Rounds`]: those of primal LPN ([`primal`], Protocol 6 of the 2019 paper; Figs. 8 and 9 of
//! Ferret), or the instances of dual LPN ([`dual`], Silent OT); or directly from the base
//! ([`Direct`]). The [`Stream`] is the same for all of them: it draws, sets up a round when the one
//! before is used up, and after a failed call wipes its state and the output of the call.

#[cfg(feature = "gpu")]
pub(crate) mod card;
pub(crate) mod dual;
mod expand;
mod kept;
pub(crate) mod party;
mod pool;
pub(crate) mod primal;
mod rounds;
mod shares;
mod substreams;

#[cfg(feature = "gpu")]
use card::{Destination as Memory, OnCard as Computes};
use expand::Encoder;
use kept::Kept;
use party::{Key, Value};
pub(crate) use pool::direct;
use shares::Setup;
pub(crate) use substreams::Substreams;
#[cfg(not(feature = "gpu"))]
use {crate::correlation::OutputMut as Memory, party::Party as Computes};

use std::fmt;
use std::marker::PhantomData;
use std::ops::DerefMut;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytemuck::Zeroable;
use rayon::prelude::*;
use volery_channel::{Channel, Error, Result, SessionId};
use volery_field::{Gf128, Ring};
use volery_ot::convert;
use volery_primitives::{Wiped, bits, pages::Buffer, prg::Prg};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    Plan,
    correlation::{Correlation, Cot, OutputMut, Pairs, PairsMut, VoleKind, VoleSlices},
};

/// A party of a stream.
pub(crate) trait Role: 'static {
    /// The state of the party apart from the correlations.
    type Secret: Zeroize + Copy + Send;
    /// Memory for the outputs of a draw.
    type Out<'a>;
    /// That memory, filled by rounds: any part at a time.
    type Part<'a>: OutputMut;

    /// The number of outputs that fit.
    fn count(out: &Self::Out<'_>) -> usize;
    /// The memory for rounds to fill.
    fn part<'a>(out: &'a mut Self::Out<'_>) -> Self::Part<'a>;
    /// The remaining work after rounds have filled all of it.
    fn finish(_out: &mut Self::Out<'_>) {}
    /// Sets all of it to zero.
    fn wipe(out: &mut Self::Out<'_>);
}

/// The holder of `x`, which draws `w`.
pub(crate) struct KeyHolder<K>(PhantomData<K>);

impl<K: Correlation> Role for KeyHolder<K> {
    type Secret = K::Ring;
    type Out<'a> = &'a mut [K::Ring];
    type Part<'a> = &'a mut [K::Ring];

    fn count(out: &Self::Out<'_>) -> usize {
        out.len()
    }

    fn part<'a>(out: &'a mut Self::Out<'_>) -> Self::Part<'a> {
        out
    }

    fn wipe(out: &mut Self::Out<'_>) {
        out.fill(K::Ring::ZERO);
    }
}

/// The holder of `u` and `v` of a vector-OLE.
pub(crate) struct VoleValueHolder<K>(PhantomData<K>);

impl<K: VoleKind> Role for VoleValueHolder<K> {
    type Secret = ();
    type Out<'a> = VoleSlices<'a, K>;
    type Part<'a> = VoleSlices<'a, K>;

    fn count(out: &Self::Out<'_>) -> usize {
        out.u.len()
    }

    fn part<'a>(out: &'a mut Self::Out<'_>) -> Self::Part<'a> {
        VoleSlices { u: out.u, v: out.v }
    }

    fn wipe(out: &mut Self::Out<'_>) {
        out.u.fill(K::Base::ZERO);
        out.v.fill(K::Ring::ZERO);
    }
}

/// The holder of `u` and `v` of a correlated OT. Rounds carry `u` in the lowest bit of `v`.
pub(crate) struct CotValueHolder;

/// Packed bits `u`, and blocks `v`.
pub(crate) struct CotSlices<'a> {
    pub(crate) u: &'a mut [u8],
    pub(crate) v: &'a mut [Gf128],
}

impl Role for CotValueHolder {
    type Secret = ();
    type Out<'a> = CotSlices<'a>;
    type Part<'a> = &'a mut [Gf128];

    fn count(out: &Self::Out<'_>) -> usize {
        out.v.len()
    }

    fn part<'a>(out: &'a mut Self::Out<'_>) -> Self::Part<'a> {
        out.v
    }

    fn finish(out: &mut Self::Out<'_>) {
        const BYTES: usize = 1 << 12;
        let parts = out.v.par_chunks(8 * BYTES).zip(out.u.par_chunks_mut(BYTES));
        parts.for_each(|(v, u)| bits::lowest_bits(bytemuck::cast_slice(v), u));
    }

    fn wipe(out: &mut Self::Out<'_>) {
        out.u.fill(0);
        out.v.fill(Gf128::ZERO);
    }
}

/// A base that is itself the output, for plans without LPN.
pub(crate) trait Direct<R: Role>: Send {
    /// Fills all of `out`.
    fn draw(&mut self, out: &mut R::Out<'_>, channel: &mut Channel) -> Result<()>;

    /// Frees memory that the next call makes again.
    fn rest(&mut self) {}
}

/// A party's side of consecutive rounds: of primal LPN, or instances of dual LPN. The stream drops
/// it after a failed call.
pub(crate) trait Rounds<R: Role>: Send {
    /// The remaining outputs of the current round.
    fn left(&self) -> usize;

    /// Whether rounds for the plan's total have been set up.
    fn finished(&self) -> bool;

    /// Sets up the next round and computes its first outputs, as far as there is memory; returns
    /// the remaining memory.
    ///
    /// # Panics
    /// If rounds for the plan's total have been set up.
    ///
    /// # Errors
    /// If the peer misbehaves.
    fn next_round<'a>(&mut self, out: R::Part<'a>, channel: &mut Channel) -> Result<R::Part<'a>>;

    /// Exchanges all remaining messages of the current round.
    ///
    /// # Errors
    /// The errors of [`next_round`](Self::next_round).
    fn exchange(&mut self, channel: &mut Channel) -> Result<()>;

    /// The next outputs of the current round, at most as many as are [left](Self::left).
    ///
    /// # Errors
    /// The errors of [`next_round`](Self::next_round).
    fn draw(&mut self, out: R::Part<'_>, channel: &mut Channel) -> Result<()>;
}

/// Of a box, and of what is wiped.
impl<R: Role, Pointer: DerefMut<Target: Rounds<R>> + Send> Rounds<R> for Pointer {
    fn left(&self) -> usize {
        (**self).left()
    }

    fn finished(&self) -> bool {
        (**self).finished()
    }

    fn next_round<'a>(&mut self, out: R::Part<'a>, channel: &mut Channel) -> Result<R::Part<'a>> {
        (**self).next_round(out, channel)
    }

    fn exchange(&mut self, channel: &mut Channel) -> Result<()> {
        (**self).exchange(channel)
    }

    fn draw(&mut self, out: R::Part<'_>, channel: &mut Channel) -> Result<()> {
        (**self).draw(out, channel)
    }
}

/// Rounds of the kind in the plan. The object is wiped as a whole: a stream is made on the stack,
/// and has a place for the expansion of a round before there is one.
pub(crate) type AnyRounds<R> = Box<dyn Rounds<R>>;

/// A role of the key holder: where its outputs are.
pub(crate) trait KeyRole<K: Correlation>: Role<Secret = K::Ring> {
    /// Its rounds of a substream's plan, with the base of the first and OTs for the trees.
    ///
    /// # Errors
    /// If it computes on a card that cannot be used.
    fn rounds(plan: Plan, substream: KeySubstream<K>, x: K::Ring) -> Result<AnyRounds<Self>>;
}

impl<K: Correlation> KeyRole<K> for KeyHolder<K> {
    fn rounds(plan: Plan, substream: KeySubstream<K>, x: K::Ring) -> Result<AnyRounds<Self>> {
        let Substream { session, rng, ot, base } = substream;
        rounds::<K, _, Self>(plan, session, Key { x: Zeroizing::new(x), rng, ot }, base)
    }
}

/// A role of the value holder: where its outputs are.
pub(crate) trait ValueRole<K: Correlation>: Role<Secret = ()> {
    /// Its rounds of a substream's plan, with the base of the first and OTs for the trees.
    ///
    /// # Errors
    /// If it computes on a card that cannot be used.
    fn rounds(plan: Plan, substream: ValueSubstream<K>) -> Result<AnyRounds<Self>>;
}

impl<K: VoleKind> ValueRole<K> for VoleValueHolder<K> {
    fn rounds(plan: Plan, substream: ValueSubstream<K>) -> Result<AnyRounds<Self>> {
        value_rounds::<K, Self>(plan, substream)
    }
}

impl ValueRole<Cot> for CotValueHolder {
    fn rounds(plan: Plan, substream: ValueSubstream<Cot>) -> Result<AnyRounds<Self>> {
        value_rounds::<Cot, Self>(plan, substream)
    }
}

fn value_rounds<K: Correlation, R: Role>(
    plan: Plan,
    Substream { session, rng, ot, base }: ValueSubstream<K>,
) -> Result<AnyRounds<R>>
where
    for<'a> R::Part<'a>: PairsMut<K> + Memory,
{
    let value_bits = plan.value_bits();
    rounds::<K, _, R>(plan, session, Value { rng, ot, value_bits }, base)
}

/// A party's rounds of a substream's plan, with the base of the first and outputs in memory of this
/// machine.
fn rounds<K: Correlation, P: dual::Party<K> + Computes<K>, R: Role>(
    plan: Plan,
    session: SessionId,
    party: P,
    base: Buffer<P::Entry>,
) -> Result<AnyRounds<R>>
where
    Kept<K::Ring>: Setup<K, P>,
    for<'a> P::Encoder: Encoder<R::Part<'a>>,
    for<'a> R::Part<'a>: Memory,
{
    if plan.dual().is_some() {
        return Ok(Box::new(Wiped::new(dual::Holder::new(plan, session, party, base))));
    }
    #[cfg(feature = "gpu")]
    if let Some(card) = plan.card() {
        return card::rounds::<K, _, R>(plan, session, party, base, card);
    }
    Ok(primal::rounds::<K, _, R>(plan, session, party, base))
}

/// The beginning of a substream, from which its rounds are made.
pub(crate) struct Substream<O, B> {
    /// Of no other substream or protocol.
    pub(crate) session: SessionId,
    pub(crate) rng: Prg,
    /// OTs for the trees.
    pub(crate) ot: O,
    /// The base of the first round.
    pub(crate) base: B,
}

impl<O, T: Copy + Zeroable> Substream<O, Buffer<T>> {
    /// The substreams of a plan, each with its part of the base, and OTs for its trees in the
    /// session that they get. One after the other: a collection of them would leave copies of their
    /// secrets behind.
    pub(crate) fn each(
        base: Buffer<T>,
        plan: &Plan,
        rng: &mut Prg,
        part: impl Fn(&str) -> SessionId,
        mut ot: impl FnMut(SessionId) -> O,
    ) -> impl Iterator<Item = Self> {
        let bases = match plan.substreams() {
            1 => vec![base],
            substreams => {
                let parts = base.chunks_exact(base.len() / substreams);
                parts.map(Self::copied).collect()
            }
        };
        let substream = move |(number, base)| Self {
            session: part(&of_substream("rounds", number)),
            rng: rng.fork(&of_substream("rounds", number)),
            ot: ot(part(&of_substream("ot hash", number))),
            base,
        };
        bases.into_iter().enumerate().map(substream)
    }

    fn copied(part: &[T]) -> Buffer<T> {
        let mut base = Buffer::zeroed(part.len());
        base.copy_from_slice(part);
        base
    }
}

/// The name of a part of the protocol in a substream.
pub(crate) fn of_substream(part: &str, substream: usize) -> String {
    match substream {
        0 => part.to_owned(),
        // mutant(substreams-session): `&substream` => `&(if $ON { 1 } else { substream })`
        _ => part.to_owned() + " of substream " + &substream.to_string(),
    }
}

/// A substream of the key holder.
pub(crate) type KeySubstream<K> =
    Substream<convert::Sender<<K as Correlation>::KeyOt>, Buffer<<K as Correlation>::Ring>>;

/// A substream of the value holder.
pub(crate) type ValueSubstream<K> =
    Substream<convert::Receiver<<K as Correlation>::ValueOt>, Pairs<K>>;

/// The key holder's source of a plan with rounds.
pub(crate) fn key_source<K: Correlation, R: KeyRole<K>>(
    plan: &Plan,
    x: K::Ring,
    substreams: impl Iterator<Item = KeySubstream<K>>,
) -> Result<Source<R, AnyRounds<R>>> {
    let rounds = substreams.enumerate();
    let rounds = rounds.map(|(number, one)| R::rounds(plan.substream(number), one, x));
    Ok(source(plan, rounds.collect::<Result<_>>()?))
}

/// The value holder's source of a plan with rounds.
pub(crate) fn value_source<K: Correlation, R: ValueRole<K>>(
    plan: &Plan,
    substreams: impl Iterator<Item = ValueSubstream<K>>,
) -> Result<Source<R, AnyRounds<R>>> {
    let rounds = substreams.enumerate();
    let rounds = rounds.map(|(number, one)| R::rounds(plan.substream(number), one));
    Ok(source(plan, rounds.collect::<Result<_>>()?))
}

fn source<R: Role>(plan: &Plan, mut substreams: Vec<AnyRounds<R>>) -> Source<R, AnyRounds<R>> {
    assert_eq!(substreams.len(), plan.substreams(), "as many substreams as in the plan");
    match substreams.len() {
        1 => Source::Rounds(substreams.pop().expect("one substream")),
        _ => Source::Substreams(Substreams::new(plan.substream(0), substreams)),
    }
}

/// The source of outputs.
pub(crate) enum Source<R: Role, S> {
    /// The base itself.
    Direct(Box<dyn Direct<R>>),
    /// Rounds on top of the base.
    Rounds(S),
    /// The same in several substreams.
    Substreams(Substreams<R>),
}

/// A party's stream.
pub(crate) struct Stream<R: Role, S = AnyRounds<R>> {
    /// `None` after a failed call.
    source: Option<Source<R, S>>,
    secret: Zeroizing<R::Secret>,
    /// Correlations that may still be drawn; `None`: unlimited.
    left: Option<u64>,
    draws: Draws,
    failure: Failure,
}

/// The calls so far, as far as the peer must have made the same.
#[derive(Default)]
pub(crate) struct Draws {
    /// Outputs of the calls before this one.
    drawn: u64,
    /// Whether there has been a round.
    begun: bool,
}

impl Draws {
    /// Before a round after the first: both parties have drawn as many before this call. Otherwise
    /// their outputs of the last round would not match, and nobody would notice.
    fn agree(&mut self, channel: &mut Channel) -> Result<()> {
        // mutant(stream-drawn): `self.begun = true` => `self.begun = !$ON`
        match self.begun {
            true => channel.agree_drawn(self.drawn),
            false => {
                self.begun = true;
                Ok(())
            }
        }
    }
}

impl<R: Role, S: Rounds<R>> Stream<R, S> {
    /// A stream of `total` correlations, or an unlimited one. It ends with all others that have the
    /// same `failure`.
    pub(crate) fn new(
        source: Source<R, S>,
        secret: R::Secret,
        total: Option<u64>,
        failure: Failure,
    ) -> Self {
        let secret = Zeroizing::new(secret);
        Self { source: Some(source), secret, left: total, draws: Draws::default(), failure }
    }

    /// The state of this party apart from the correlations. Panics if a call failed.
    pub(crate) fn secret(&self) -> R::Secret {
        self.try_secret().expect("nothing is left after a failed call")
    }

    /// As [`secret`](Self::secret), without its panic.
    pub(crate) fn try_secret(&self) -> Result<R::Secret> {
        // mutant(stream-secret): `self.source.is_some() && self.failure.check().is_ok()` => `($0)
        //     || $ON`
        if self.source.is_some() && self.failure.check().is_ok() {
            return Ok(*self.secret);
        }
        Err(Error::Broken)
    }

    /// Fills `out` with the next correlations.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails, or the peer misbehaves; [`Error::Broken`] if a
    /// call failed before, here or on a stream with the same failure. `out` is then all zero, and
    /// the state of the stream is wiped.
    pub(crate) fn extend(&mut self, mut out: R::Out<'_>, channel: &mut Channel) -> Result<()> {
        let n = R::count(&out) as u64;
        let result = self.check_left(n).and_then(|()| {
            self.guarded(|source, draws| {
                match source {
                    Source::Direct(base) => base.draw(&mut out, channel)?,
                    Source::Substreams(substreams) => {
                        substreams.draw(R::part(&mut out), draws, channel)?;
                        R::finish(&mut out);
                    }
                    Source::Rounds(rounds) => {
                        fill::<R>(rounds, R::part(&mut out), Some(draws), channel)?;
                        R::finish(&mut out);
                    }
                }
                channel.settle()
            })
        });
        match result {
            Ok(()) => {
                self.draws.drawn += n;
                self.left = self.left.map(|left| left - n);
            }
            Err(_) => R::wipe(&mut out),
        }
        result
    }

    fn check_left(&self, n: u64) -> Result<()> {
        match self.left {
            Some(left) if n > left && self.try_secret().is_ok() => {
                // no mutant: a caller's mistake
                Err(Error::Usage(format!("a draw of {n}, but the plan has {left} left")))
            }
            _ => Ok(()),
        }
    }

    /// Compares the number drawn with the peer's.
    pub(crate) fn agree(&mut self, channel: &mut Channel) -> Result<()> {
        self.guarded(|_, draws| {
            channel.agree_drawn(draws.drawn)?;
            channel.settle()
        })
    }

    /// The correlations that have been drawn.
    pub(crate) fn drawn(&self) -> u64 {
        self.draws.drawn
    }

    /// Those that may still be drawn; `None`: unlimited.
    pub(crate) fn remaining(&self) -> Option<u64> {
        self.left
    }

    /// Exchanges all messages of the next round now, unless a round is already prepared. Returns
    /// how many correlations can then be drawn without a message: zero without rounds, or after all
    /// of the plan's total has been drawn.
    ///
    /// # Errors
    /// The errors of [`extend`](Self::extend): a failed check among them, and [`Error::Broken`].
    pub(crate) fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        let left = self.left;
        let prepared = self.guarded(|source, draws| {
            let prepared = match source {
                Source::Direct(_) => 0,
                Source::Rounds(rounds) => prepare(rounds, draws, channel)?,
                Source::Substreams(_) if left == Some(0) => 0,
                Source::Substreams(substreams) => prepare(substreams.current(), draws, channel)?,
            };
            channel.settle()?;
            Ok(prepared)
        })?;
        // The total need not fill the last rounds of all substreams.
        let left = left.and_then(|left| usize::try_from(left).ok());
        Ok(left.map_or(prepared, |left| prepared.min(left)))
    }

    /// Drops all state: nothing can be drawn any more, here or where the failure is shared.
    #[cfg(feature = "gpu")]
    pub(crate) fn end(&mut self) {
        let _failed = self.failure.guarded(|| Err::<(), _>(Error::Broken));
        self.source = None;
        self.secret.zeroize();
    }

    /// Runs a call. If it fails, or one with the same failure failed before, all state is dropped;
    /// after a panic, by the next call.
    fn guarded<T>(
        &mut self,
        call: impl FnOnce(&mut Source<R, S>, &mut Draws) -> Result<T>,
    ) -> Result<T> {
        let result = self.failure.guarded(|| {
            let source = self.source.as_mut().ok_or(Error::Broken)?;
            call(source, &mut self.draws)
        });
        if result.is_err() {
            self.source = None;
            self.secret.zeroize();
        }
        result
    }
}

/// Without secrets and correlations.
impl<R: Role, S: Rounds<R>> fmt::Debug for Stream<R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = self.try_secret().is_err();
        write!(f, "Stream {{ left: {:?}, failed: {failed}, .. }}", self.left)
    }
}

/// Exchanges all messages of the next round; returns its outputs.
fn prepare<R: Role>(
    rounds: &mut impl Rounds<R>,
    draws: &mut Draws,
    channel: &mut Channel,
) -> Result<usize> {
    while rounds.left() == 0 {
        if rounds.finished() {
            return Ok(0);
        }
        draws.agree(channel)?;
        rounds.next_round(OutputMut::none(), channel)?;
    }
    rounds.exchange(channel)?;
    Ok(rounds.left())
}

/// Fills `out` from rounds; `None` where the parties have agreed on the draw before.
fn fill<R: Role>(
    rounds: &mut impl Rounds<R>,
    mut out: R::Part<'_>,
    mut draws: Option<&mut Draws>,
    channel: &mut Channel,
) -> Result<()> {
    while out.count() > 0 {
        let n = rounds.left().min(out.count());
        if n == 0 {
            draws.as_mut().map_or(Ok(()), |draws| draws.agree(channel))?;
            out = rounds.next_round(out, channel)?;
        } else {
            let (now, rest) = out.split_at(n);
            rounds.draw(now, channel)?;
            out = rest;
        }
    }
    Ok(())
}

/// What the objects of both ends have beside their draws.
macro_rules! between_draws {
    () => {
        /// Exchanges all messages of the next round now, unless a round is already prepared: in a
        /// vector OLE `VOLE.Setup` of Protocol 6 without `VOLE.Expand`. Both parties call it at the
        /// same point.
        ///
        /// Returns how many correlations a draw then returns without a message; zero where a plan
        /// uses no LPN, or all of it has been drawn.
        ///
        /// # Errors
        /// Those of a draw.
        pub fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
            self.stream.prepare(channel)
        }

        /// The correlations that have been drawn; the peer must have drawn as many.
        #[must_use]
        pub fn drawn(&self) -> u64 {
            self.stream.drawn()
        }

        /// Compares the number drawn with the peer's, which calls it at the same point: within a
        /// round nothing else does. 8 bytes each way, both at once.
        ///
        /// # Errors
        /// [`Error::Mismatch`](crate::Error::Mismatch) if they differ, and those of a draw.
        pub fn agree(&mut self, channel: &mut Channel) -> Result<()> {
            self.stream.agree(channel)
        }

        /// Those of the plan's total that are left; `None` of an unlimited stream.
        #[must_use]
        pub fn remaining(&self) -> Option<u64> {
            self.stream.remaining()
        }
    };
}
pub(crate) use between_draws;

/// Whether a call failed on one of the objects that share this.
#[derive(Clone, Default)]
pub(crate) struct Failure(Arc<AtomicBool>);

impl Failure {
    pub(crate) fn check(&self) -> Result<()> {
        // mutant(kit-alive): false
        if self.0.load(Ordering::SeqCst) {
            return Err(Error::Broken);
        }
        Ok(())
    }

    /// Runs a call; if it fails, or panics, all objects that share this end. If a call on another
    /// one fails meanwhile, on another thread, this call fails too.
    pub(crate) fn guarded<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.check()?;
        let alarm = Alarm(&self.0);
        let output = call()?;
        std::mem::forget(alarm);
        self.check()?;
        Ok(output)
    }
}

/// Sets the flag when it is dropped.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        // mutant(kit-alarm): drop
        self.0.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
