//! Protocol 6 of the 2019 paper, Ferret Figure 8 and Ferret Figure 9, in rounds: each extends a few
//! correlations to many, and some of those are the base of the next round (Ferret, section 6).
//!
//! One pipeline for every [`Correlation`]: `u` in its base ring; `x`, `v`, `w` in its extension.
//!
//! ```text
//! Value holder: base u, v                 Key holder: x, base w = u*x + v
//! Setup
//! 1. positions S, values y                (a, b = the first k of u, v; c = the first k of w)
//! 2. -------- Protocol 5, Fig. 7 (mpcot) on S, y and x, consuming part of the base --------
//!    m, the negative of its share         r, its share:  r - m = mu*x,  mu = y at S
//! 3. -------- malicious: the check of all trees (check), consuming the last of the base --------
//! Expand, any part of 0..n at a time
//! i. u = a*C + mu,  v = b*C + m           w = c*C + r
//! ```
//!
//! so that `w - v = (c - b)*C + r - m = (a*C + mu)*x = u*x`. The 2019 paper's `c = a*x + b` is the
//! base: the reserve of an earlier round, or for the first round the base made by [`crate::vole`]
//! or [`crate::cot`].
//!
//! With [`instances`](crate::PlanOptions::instances) a round is a bundle of `B` such instances with
//! one code `C`, of which the rest of the round knows nothing: it has `B t` trees over `B n`
//! points, `B k` entries of the base for the secrets, and one check. Whatever is derived, drawn or
//! sent for a tree has the number of the tree, which differs in all instances. Only step i knows
//! which points are of one column (`expand`).
//!
//! With regular noise on half-trees the leaves (`m`, `r`) are computed as they are drawn, some
//! trees at a time, and the sums of `C` with them. The messages of a malicious round are exchanged
//! before (for which P1 expands its trees), and the trees expanded for the check; outputs drawn by
//! the call that sets up the round come from these leaves (`expand`), later ones from trees
//! expanded once more. The stored state of a tree is its root, or P1's message about it. Memory:
//! the base, and some trees. Otherwise both parties hold the leaves: `n` elements of `R` and the
//! base, for any number of drawn outputs; with uniform noise `3n` elements and some more, and 13
//! bytes a point for the arrangement.
//!
//! Security: that of the plan. A malicious round returns nothing, not even to the next round,
//! before its check has passed; a failed call leaves nothing behind.
//!
//! Cost: that of [`crate::mpcot`] and of [`crate::check`] for each round.

use std::mem::take;
use std::sync::Arc;

use volery_channel::{Channel, Result, SessionId};
use volery_ot::convert;
use volery_primitives::{pages::Buffer, prg::Prg};
use zeroize::Zeroizing;

use super::{
    Role,
    expand::{CheckedLeaves, Expansion, KeyEncoder, Table, ValueEncoder},
    noise::{Noises, sample_noise},
    rounds::{Round, Rounds},
    shares::Shares,
};
use crate::{
    Plan, check,
    correlation::{Correlation, Pairs, PairsMut},
    mpcot::{self, Assignment, Public},
    spcot::{self, Points},
};

/// The holder of `u` and `v`.
pub(crate) struct ValueHolder<K: Correlation> {
    pub(super) rounds: Rounds,
    pub(super) rng: Prg,
    pub(super) ot: convert::Receiver<K::ValueOt>,
    /// The base of the next round.
    pub(super) base: Pairs<K>,
    expansion: Option<ValueExpansion<K>>,
    /// The memory of the leaves of the last round, for reuse.
    memory: Option<Buffer<K::Ring>>,
    /// The memory of its base, likewise.
    old_base: Pairs<K>,
}

/// The holder of `x`.
pub(crate) struct KeyHolder<K: Correlation> {
    pub(super) rounds: Rounds,
    pub(super) rng: Prg,
    pub(super) x: Zeroizing<K::Ring>,
    pub(super) ot: convert::Sender<K::KeyOt>,
    pub(super) base: Buffer<K::Ring>,
    expansion: Option<KeyExpansion<K>>,
    /// The memory of the leaves of the last round, for reuse.
    memory: Option<Buffer<K::Ring>>,
    /// The memory of its base, likewise.
    old_base: Buffer<K::Ring>,
}

type ValueExpansion<K> =
    Expansion<<K as Correlation>::Ring, spcot::Receiver<<K as Correlation>::Ring>, ValueEncoder<K>>;
type KeyExpansion<K> =
    Expansion<<K as Correlation>::Ring, spcot::Sender<<K as Correlation>::Ring>, KeyEncoder<K>>;

impl<K: Correlation> ValueHolder<K> {
    /// The stream of `plan`, with the base of its first round, and OTs for the trees.
    pub(crate) fn new(
        plan: Plan,
        session: SessionId,
        rng: Prg,
        ot: convert::Receiver<K::ValueOt>,
        base: Pairs<K>,
    ) -> Self {
        assert!(base.len() >= plan.base_count(), "a base for the plan");
        Self {
            rounds: Rounds::new::<K>(plan, session),
            rng,
            ot,
            base,
            expansion: None,
            memory: None,
            old_base: Buffer::default(),
        }
    }

    /// Drops the last round, all but the base of the next.
    #[cfg(feature = "gpu")]
    pub(super) fn forget_round(&mut self) {
        (self.expansion, self.memory) = (None, None);
        self.old_base = Buffer::default();
    }

    /// Setup of a round. As far as there is memory in `out`, computes the first outputs of the
    /// round; returns the remaining memory.
    pub(super) fn set_up<P: PairsMut<K>>(&mut self, out: P, channel: &mut Channel) -> Result<P> {
        if let Some(old) = self.expansion.take() {
            self.memory = old.shares.into_leaves();
            self.old_base = old.encoder.table.base;
        }
        let base = take(&mut self.base);
        let Round { step, layout, code, prgs, context } = self.rounds.next();
        let spare = &base[step.secret()..];
        K::feed_value(&mut self.ot, &spare[..K::LEVELS * layout.batch().levels()]);
        let checked = self.rounds.checked();
        if checked {
            channel.bind();
        }
        let public = Public { layout: &layout, prgs: &prgs };
        // Setup, step 1; for half-trees over whole blocks, step 2 draws the positions
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
            let trees = mpcot::begin_receive::<K>(public, points, &values, spare, ot, channel)?;
            alphas = trees.alphas.clone();
            shares = Shares::drawn(Arc::clone(&layout), trees, prgs);
        } else {
            let leaves = layout.leaves(self.memory.take());
            let made = mpcot::receive::<K>(public, points, &values, spare, leaves, ot, channel)?;
            alphas = made.1;
            shares = Shares::kept(Arc::clone(&layout), made.0);
        }
        match &assignment {
            Some(assignment) => noise.drop_points(&assignment.dropped),
            None => {
                let place = |(tree, alpha)| layout.batch().leaves_of(tree).start + alpha;
                let places = alphas.iter().copied().enumerate().map(place);
                noise.0 = places.zip(values.iter().copied()).collect();
            }
        }
        // mutant(rounds-bind-value): insert `if checked && $ON { channel.bind(); }`
        let mask = checked.then(|| K::value_mask(&base[..step.need]));
        let encoder = ValueEncoder { table: Table::new(code, base, step), noise };
        let mut expansion = Expansion::new(encoder, shares, step.keep + step.deliver);
        // The base of the next round, and the outputs of this one
        let mut kept = take(&mut self.old_base).with_len(step.keep);
        let n = step.deliver.min(out.count());
        let (now, rest) = out.split_at(n);
        let (batch, rng) = (layout.batch(), &mut self.rng);
        let check = mask.map(|mask| {
            let (alphas, values) = (&alphas, &values);
            move |leaves: CheckedLeaves<'_, _, _, _, _, _>, channel: &mut Channel| {
                check::value_holder(context, batch, alphas, values, leaves, &mask, rng, channel)
            }
        });
        expansion.begin(&mut kept[..], now, check, channel)?;
        self.base = kept;
        self.expansion = Some(expansion);
        Ok(rest)
    }
}

impl<K: Correlation> KeyHolder<K> {
    /// The stream of `plan`, with the base of its first round, and OTs for the trees.
    pub(crate) fn new(
        plan: Plan,
        session: SessionId,
        rng: Prg,
        x: K::Ring,
        ot: convert::Sender<K::KeyOt>,
        base: Buffer<K::Ring>,
    ) -> Self {
        assert!(base.len() >= plan.base_count(), "a base for the plan");
        Self {
            rounds: Rounds::new::<K>(plan, session),
            rng,
            x: Zeroizing::new(x),
            ot,
            base,
            expansion: None,
            memory: None,
            old_base: Buffer::default(),
        }
    }

    /// Drops the last round, all but the base of the next.
    #[cfg(feature = "gpu")]
    pub(super) fn forget_round(&mut self) {
        (self.expansion, self.memory) = (None, None);
        self.old_base = Buffer::default();
    }
}

impl<K: Correlation, R: Role> super::Rounds<R> for ValueHolder<K>
where
    for<'a> R::Part<'a>: PairsMut<K>,
{
    fn left(&self) -> usize {
        self.expansion.as_ref().map_or(0, Expansion::left)
    }

    fn finished(&self) -> bool {
        self.rounds.finished()
    }

    fn next_round<'a>(&mut self, out: R::Part<'a>, channel: &mut Channel) -> Result<R::Part<'a>> {
        self.set_up(out, channel)
    }

    fn exchange(&mut self, channel: &mut Channel) -> Result<()> {
        let round = self.expansion.as_mut().expect("a round is under way");
        round.shares.exchange_all(channel)
    }

    fn draw(&mut self, out: R::Part<'_>, channel: &mut Channel) -> Result<()> {
        let round = self.expansion.as_mut().expect("a round is under way");
        round.expand(out, channel)
    }
}

impl<K: Correlation> super::Rounds<super::KeyHolder<K>> for KeyHolder<K> {
    fn left(&self) -> usize {
        self.expansion.as_ref().map_or(0, Expansion::left)
    }

    fn finished(&self) -> bool {
        self.rounds.finished()
    }

    fn next_round<'a>(
        &mut self,
        out: <super::KeyHolder<K> as Role>::Part<'a>,
        channel: &mut Channel,
    ) -> Result<<super::KeyHolder<K> as Role>::Part<'a>> {
        if let Some(old) = self.expansion.take() {
            self.memory = old.shares.into_leaves();
            self.old_base = old.encoder.0.base;
        }
        let base = take(&mut self.base);
        let Round { step, layout, code, prgs, context } = self.rounds.next();
        let spare = &base[step.secret()..];
        K::feed_key(&mut self.ot, &spare[..K::LEVELS * layout.batch().levels()])?;
        let checked = self.rounds.checked();
        if checked {
            channel.bind();
        }
        let public = Public { layout: &layout, prgs: &prgs };
        let points = if public.draws_points() { Points::Random } else { Points::Chosen(&[]) };
        // Setup, steps 2 and 3
        let (x, rng, ot) = (*self.x, &mut self.rng, &mut self.ot);
        let shares = if public.draws_points() {
            let mut trees = spcot::Sender::new(layout.batch(), rng, ot)?;
            // With its outputs done earlier, this party would wait for the other one, whose message
            // comes first: of a correlated OT it does not.
            if checked && K::VALUES > 0 {
                trees.grow_all((layout.batch(), &prgs));
            }
            mpcot::begin_send::<K>(&mut trees, public, points, x, spare, ot, channel)?;
            Shares::drawn(Arc::clone(&layout), trees, prgs)
        } else {
            let leaves = layout.leaves(self.memory.take());
            let leaves = mpcot::send::<K>(public, points, x, spare, leaves, rng, ot, channel)?;
            Shares::kept(Arc::clone(&layout), leaves)
        };
        // mutant(rounds-bind-key): insert `if checked && $ON { channel.bind(); }`
        let mask = checked.then(|| K::key_mask(&base[..step.need]));
        let encoder = KeyEncoder(Table::new(code, base, step));
        let mut expansion = Expansion::new(encoder, shares, step.keep + step.deliver);
        // The base of the next round, and the outputs of this one
        let mut kept = take(&mut self.old_base).with_len(step.keep);
        let (now, rest) = out.split_at_mut(step.deliver.min(out.len()));
        let batch = layout.batch();
        let check = mask.map(|mask| {
            move |leaves: CheckedLeaves<'_, _, _, _, _, _>, channel: &mut Channel| {
                check::key_holder(context, batch, x, leaves, &mask, rng, channel)
            }
        });
        expansion.begin(&mut kept[..], now, check, channel)?;
        self.base = kept;
        self.expansion = Some(expansion);
        Ok(rest)
    }

    fn exchange(&mut self, channel: &mut Channel) -> Result<()> {
        let round = self.expansion.as_mut().expect("a round is under way");
        round.shares.exchange_all(channel)
    }

    fn draw(&mut self, out: &mut [K::Ring], channel: &mut Channel) -> Result<()> {
        let round = self.expansion.as_mut().expect("a round is under way");
        round.expand(out, channel)
    }
}
