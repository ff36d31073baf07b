//! Protocol 6 of the 2019 paper and Figs. 8 and 9 of Ferret, round after round: a few correlations become many, and some
//! of those the base of the next round (Ferret, section 6).
//!
//! One pipeline for every [`Correlation`]: `u` in its base ring; `x`, `v`, `w` in its extension.
//!
//! ```text
//! Value holder: base u, v                 Key holder: x, base w = u*x + v
//! Setup
//! 1. positions S, values y                (a, b = the first k of u, v; c = the first k of w)
//! 2. -------- Protocol 5, Fig. 7 (mpfss) on S, y and x, spending some of the rest of the base --------
//!    m, the negative of its share         r, its share:  r - m = mu*x,  mu = y at S
//! 3. -------- malicious: the check of all trees (check), spending the last of the base --------
//! Expand, any part of 0..n at a time
//! i. u = a*C + mu,  v = b*C + m           w = c*C + r
//! ```
//!
//! so that `w - v = (c - b)*C + r - m = (a*C + mu)*x = u*x`. The 2019 paper's `c = a*x + b` is the base: what an
//! earlier round kept back, or for the first round what [`crate::vole`] or [`crate::cot`] made by other means.
//!
//! With regular noise on half-trees the leaves (`m`, `r`) are made as they are drawn, some trees at a time, and the sums of
//! `C` with them. The messages of a malicious round are exchanged before (for which P1 grows its trees), and the trees grown
//! for the check; outputs that are drawn by the call that sets the round up are made from these leaves (`expand`), later ones from trees
//! grown once more. What is kept of a tree is its root, or what P1 sent of it. Memory: the base, and some trees.
//! Otherwise both parties hold the leaves: `n` elements of `R` and the base, whatever is drawn; with uniform noise `3n`
//! elements and some more, and 13 bytes a point for the arrangement.
//!
//! Security: that of the plan. A malicious round hands out nothing, not even to the next round, before its check has
//! passed; a failed call leaves nothing behind.
//!
//! Cost: that of [`crate::mpfss`] and of [`crate::check`] for each round.

mod cost;
pub(crate) mod dual;
mod expand;
mod noise;
mod plan;
mod rounds;
mod shares;
mod size;

pub use cost::Link;
pub use plan::{Base, Candidate, ETA, Kind, ParseProtocolError, Plan, PlanError, Protocol, Wishes};
pub use size::{LeastTraffic, RoundSize, least_traffic};

use std::mem::take;
use std::sync::Arc;

use volery_channel::{Channel, Error, Result, SessionId};
use volery_field::Ring as _;
use volery_ot::flavour;
use volery_primitives::{pages::Buffer, prg::Prg};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    check,
    correlation::{Correlation, Pairs, Places, Room, Sink},
    mpfss::{self, Assignment, Public},
    single::{self, Points},
};
use expand::{Checked, Expansion, KeyEncoder, ValueEncoder};
use noise::{Noises, sample_noise};
use rounds::{Round, Rounds};
use shares::Shares;

/// The holder of `u` and `v`.
pub(crate) struct ValueHolder<K: Correlation> {
    rounds: Rounds,
    rng: Prg,
    ot: flavour::Receiver<K::ValueOt>,
    /// The base of the next round; emptied while a round is under way, so that a failed one leaves nothing.
    base: Option<Pairs<K>>,
    expansion: Option<ValueExpansion<K>>,
    /// Where the leaves of the last round were, to be used again.
    memory: Option<Buffer<K::Ring>>,
    /// Where its base was, likewise.
    old_base: Pairs<K>,
}

/// The holder of `x`.
pub(crate) struct KeyHolder<K: Correlation> {
    rounds: Rounds,
    rng: Prg,
    x: K::Ring,
    ot: flavour::Sender<K::KeyOt>,
    base: Option<Buffer<K::Ring>>,
    expansion: Option<KeyExpansion<K>>,
    /// Where the leaves of the last round were, to be used again.
    memory: Option<Buffer<K::Ring>>,
    /// Where its base was, likewise.
    old_base: Buffer<K::Ring>,
}

type ValueExpansion<K> = Expansion<
    <K as Correlation>::Ring,
    single::Receiver<<K as Correlation>::Ring>,
    ValueEncoder<K>,
>;
type KeyExpansion<K> =
    Expansion<<K as Correlation>::Ring, single::Sender<<K as Correlation>::Ring>, KeyEncoder<K>>;

impl<K: Correlation> ValueHolder<K> {
    /// The stream of `plan`, with the base of its first round, and OTs for the trees.
    ///
    /// # Panics
    /// If the base is smaller than the plan's.
    pub(crate) fn new(
        plan: Plan,
        session: SessionId,
        rng: Prg,
        ot: flavour::Receiver<K::ValueOt>,
        base: Pairs<K>,
    ) -> Self {
        assert!(base.len() >= plan.base_count(), "a base for the plan");
        Self {
            rounds: Rounds::new::<K>(plan, session),
            rng,
            ot,
            base: Some(base),
            expansion: None,
            memory: None,
            old_base: Buffer::default(),
        }
    }

    /// The next correlations, one for each place.
    ///
    /// # Panics
    /// If more is drawn than the plan was made for.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails, or the peer misbehaves; then, and ever after, nothing is drawn, and `out` is
    /// all zero.
    pub(crate) fn extend<S: Sink<K> + ?Sized>(
        &mut self,
        out: &mut S,
        channel: &mut Channel,
    ) -> Result<()> {
        let result = self.fill(out.places(), channel);
        if result.is_err() {
            // Of a round whose check failed, too.
            let mut out = out.places();
            for place in 0..out.count() {
                out.put(place, K::pair(K::Base::ZERO, K::Ring::ZERO));
            }
        }
        result
    }

    fn fill<P: Places<K>>(&mut self, mut out: P, channel: &mut Channel) -> Result<()> {
        while out.count() > 0 {
            out = match self.round()? {
                Some(round) => {
                    let n = round.left().min(out.count());
                    let (now, rest) = out.split_at(n);
                    round.expand(now, channel)?;
                    rest
                }
                None => self.next_round(out, channel)?,
            };
        }
        Ok(())
    }

    /// Sets up the next round, if none is under way; returns how many correlations can be drawn without a message. That is
    /// zero only when the plan's total has been drawn.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub(crate) fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        while self.round()?.is_none() {
            if self.rounds.finished() {
                return Ok(0);
            }
            self.next_round::<&mut [K::Pair]>(&mut [], channel)?;
        }
        let round = self.expansion.as_mut().expect("a round is under way");
        round.shares.exchange_all(channel)?;
        Ok(round.left())
    }

    /// The round under way, if it has outputs left.
    fn round(&mut self) -> Result<Option<&mut ValueExpansion<K>>> {
        // The base of the next round is away only where a call failed.
        if self.base.is_none() {
            return Err(Error::Broken);
        }
        Ok(self.expansion.as_mut().filter(|round| round.left() > 0))
    }

    /// Sets up the next round and makes the first outputs that it hands out, as far as there is room; returns what room is left.
    ///
    /// # Panics
    /// If the plan's total has been drawn.
    fn next_round<P: Places<K>>(&mut self, out: P, channel: &mut Channel) -> Result<P> {
        if let Some(old) = self.expansion.take() {
            self.memory = old.shares.into_leaves();
            self.old_base = old.encoder.base;
        }
        let base = self.base.take().ok_or(Error::Broken)?;
        let Round {
            step,
            layout,
            code,
            prgs,
            context,
        } = self.rounds.next();
        let spare = &base[step.set.k..];
        K::feed_value(&mut self.ot, &spare[..K::LEVELS * layout.forest().levels()]);
        let checked = self.rounds.checked();
        if checked {
            channel.bind();
        }
        let public = Public {
            layout: &layout,
            prgs: &prgs,
        };
        // Setup, step 1; of half-trees over whole blocks, step 2 draws the positions
        let mut noise = Noises(Vec::new());
        let assignment = (!public.draws_points()).then(|| {
            noise = sample_noise::<K>(&layout, step.set.t, &mut self.rng);
            let places: Zeroizing<Vec<_>> =
                Zeroizing::new(noise.0.iter().map(|(place, _)| *place).collect());
            layout.assign(&places)
        });
        let values: Zeroizing<Vec<K::Base>> = Zeroizing::new(match &assignment {
            Some(Assignment { points, .. }) => points
                .iter()
                .map(|point| point.map_or(K::EMPTY, |point| noise.0[point].1))
                .collect(),
            None => (0..step.trees).map(|_| K::noise(&mut self.rng)).collect(),
        });
        let points = match &assignment {
            Some(assignment) => Points::Chosen(&assignment.alphas),
            None => Points::Random,
        };
        // Setup, steps 2 and 3
        let ot = &mut self.ot;
        let (shares, alphas);
        if public.draws_points() {
            let trees = mpfss::begin_receive::<K>(public, points, &values, spare, ot, channel)?;
            alphas = trees.alphas.clone();
            shares = Shares::drawn(Arc::clone(&layout), trees, prgs);
        } else {
            let leaves = layout.leaves(self.memory.take());
            let made = mpfss::receive::<K>(public, points, &values, spare, leaves, ot, channel)?;
            alphas = made.1;
            shares = Shares::kept(Arc::clone(&layout), made.0);
        }
        match &assignment {
            Some(assignment) => noise.drop_points(&assignment.dropped),
            None => {
                let place = |(tree, alpha)| layout.forest().leaves_of(tree).start + alpha;
                let places = alphas.iter().copied().enumerate().map(place);
                noise.0 = places.zip(values.iter().copied()).collect();
            }
        }
        let mask = checked.then(|| K::value_mask(&base[..step.need]));
        let k = step.set.k;
        let encoder = ValueEncoder {
            code,
            base,
            k,
            noise,
        };
        let mut expansion = Expansion::new(encoder, shares, step.keep + step.deliver);
        // The base of the next round, and what is handed out of this one
        let mut kept = take(&mut self.old_base).with_len(step.keep);
        let n = step.deliver.min(out.count());
        let (now, rest) = out.split_at(n);
        let (forest, rng) = (layout.forest(), &mut self.rng);
        let check = mask.map(|mask| {
            let (alphas, values) = (&alphas, &values);
            move |leaves: Checked<'_, _, _, _, _, _>, channel: &mut Channel| {
                check::value_holder(context, forest, alphas, values, leaves, &mask, rng, channel)
            }
        });
        expansion.begin(&mut kept[..], now, check, channel)?;
        self.base = Some(kept);
        self.expansion = Some(expansion);
        Ok(rest)
    }
}

impl<K: Correlation> KeyHolder<K> {
    /// The stream of `plan`, with the base of its first round, and OTs for the trees.
    ///
    /// # Panics
    /// If the base is smaller than the plan's.
    pub(crate) fn new(
        plan: Plan,
        session: SessionId,
        rng: Prg,
        x: K::Ring,
        ot: flavour::Sender<K::KeyOt>,
        base: Buffer<K::Ring>,
    ) -> Self {
        assert!(base.len() >= plan.base_count(), "a base for the plan");
        Self {
            rounds: Rounds::new::<K>(plan, session),
            rng,
            x,
            ot,
            base: Some(base),
            expansion: None,
            memory: None,
            old_base: Buffer::default(),
        }
    }

    /// The next `w.len()` correlations.
    ///
    /// # Panics
    /// If more is drawn than the plan was made for.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails, or the peer misbehaves; then, and ever after, nothing is drawn, and `w` is all
    /// zero.
    pub(crate) fn extend(&mut self, w: &mut [K::Ring], channel: &mut Channel) -> Result<()> {
        let result = self.fill(w, channel);
        if result.is_err() {
            w.fill(K::Ring::ZERO);
        }
        result
    }

    fn fill(&mut self, mut w: &mut [K::Ring], channel: &mut Channel) -> Result<()> {
        while !w.is_empty() {
            w = match self.round()? {
                Some(round) => {
                    let (now, rest) = w.split_at_mut(round.left().min(w.len()));
                    round.expand(now, channel)?;
                    rest
                }
                None => self.next_round(w, channel)?,
            };
        }
        Ok(())
    }

    /// As [`ValueHolder::prepare`].
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub(crate) fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        while self.round()?.is_none() {
            if self.rounds.finished() {
                return Ok(0);
            }
            self.next_round(&mut [], channel)?;
        }
        let round = self.expansion.as_mut().expect("a round is under way");
        round.shares.exchange_all(channel)?;
        Ok(round.left())
    }

    /// The round under way, if it has outputs left.
    fn round(&mut self) -> Result<Option<&mut KeyExpansion<K>>> {
        // The base of the next round is away only where a call failed.
        if self.base.is_none() {
            return Err(Error::Broken);
        }
        Ok(self.expansion.as_mut().filter(|round| round.left() > 0))
    }

    /// Sets up the next round and makes the first outputs that it hands out, as far as there is room; returns what room is left.
    ///
    /// # Panics
    /// If the plan's total has been drawn.
    fn next_round<'a>(
        &mut self,
        out: &'a mut [K::Ring],
        channel: &mut Channel,
    ) -> Result<&'a mut [K::Ring]> {
        if let Some(old) = self.expansion.take() {
            self.memory = old.shares.into_leaves();
            self.old_base = old.encoder.base;
        }
        let base = self.base.take().ok_or(Error::Broken)?;
        let Round {
            step,
            layout,
            code,
            prgs,
            context,
        } = self.rounds.next();
        let spare = &base[step.set.k..];
        K::feed_key(&mut self.ot, &spare[..K::LEVELS * layout.forest().levels()])?;
        let checked = self.rounds.checked();
        if checked {
            channel.bind();
        }
        let public = Public {
            layout: &layout,
            prgs: &prgs,
        };
        let points = if public.draws_points() {
            Points::Random
        } else {
            Points::Chosen(&[])
        };
        // Setup, steps 2 and 3
        let (x, rng, ot) = (self.x, &mut self.rng, &mut self.ot);
        let shares = if public.draws_points() {
            let trees = mpfss::begin_send::<K>(public, points, x, spare, rng, ot, channel)?;
            Shares::drawn(Arc::clone(&layout), trees, prgs)
        } else {
            let leaves = layout.leaves(self.memory.take());
            let leaves = mpfss::send::<K>(public, points, x, spare, leaves, rng, ot, channel)?;
            Shares::kept(Arc::clone(&layout), leaves)
        };
        let mask = checked.then(|| K::key_mask(&base[..step.need]));
        let k = step.set.k;
        let encoder = KeyEncoder { code, base, k };
        let mut expansion = Expansion::new(encoder, shares, step.keep + step.deliver);
        // The base of the next round, and what is handed out of this one
        let mut kept = take(&mut self.old_base).with_len(step.keep);
        let (now, rest) = out.split_at_mut(step.deliver.min(out.len()));
        let forest = layout.forest();
        let check = mask.map(|mask| {
            move |leaves: Checked<'_, _, _, _, _, _>, channel: &mut Channel| {
                check::key_holder(context, forest, x, leaves, &mask, rng, channel)
            }
        });
        expansion.begin(&mut kept[..], now, check, channel)?;
        self.base = Some(kept);
        self.expansion = Some(expansion);
        Ok(rest)
    }
}

impl<K: Correlation> Drop for KeyHolder<K> {
    fn drop(&mut self) {
        self.x.zeroize();
    }
}

#[cfg(test)]
mod tests;
