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
//! The leaves (`m`, `r`) are computed as they are drawn, some trees at a time, and the sums of `C`
//! with them. The messages of a malicious round are exchanged before (for which P1 expands its
//! trees), and the trees expanded for the check; outputs drawn by the call that sets up the round
//! come from these leaves (`expand`), later ones from trees expanded once more. The stored state of
//! a tree is its root, or P1's message about it. Memory: the base, and some trees.
//!
//! A round is one figure in four files: this one has its steps, [`party`](super::party) what the
//! two parties do in each, [`shares`](super::shares) the leaves, [`expand`](super::expand) step i.
//! Rounds on GGM trees, or with uniform noise, differ in steps 1 and 2 only ([`kept`]).
//!
//! Security: that of the plan. A malicious round returns nothing, not even to the next round,
//! before its check has passed; a failed call leaves nothing behind.
//!
//! Cost: that of [`crate::mpcot`] and of [`crate::check`] for each round.

use std::mem::take;

use volery_channel::{Channel, Result, SessionId};
use volery_primitives::{Wiped, pages::Buffer};

use super::{
    AnyRounds, Role,
    expand::{CheckedLeaves, Encode as _, Encoder, Expansion, Table},
    kept::{self, Kept},
    party::Party,
    rounds::{Round, Rounds},
    shares::{Drawn, Setup},
};
use crate::{
    Plan,
    correlation::{Correlation, OutputMut},
};

/// A party's rounds, with shares of the kind `S`.
pub(crate) struct Holder<
    K: Correlation,
    P: Party<K>,
    S = Drawn<<K as Correlation>::Ring, <P as Party<K>>::Exchange>,
> {
    pub(super) rounds: Rounds,
    pub(super) party: P,
    /// The base of the next round.
    pub(super) base: Buffer<P::Entry>,
    expansion: Option<Expansion<S, P::Encoder>>,
    /// The memory of the base of the last round, for reuse.
    old_base: Buffer<P::Entry>,
}

/// The rounds of `plan`, with the base of its first round.
pub(crate) fn rounds<K: Correlation, P: Party<K>, R: Role>(
    plan: Plan,
    session: SessionId,
    party: P,
    base: Buffer<P::Entry>,
) -> AnyRounds<R>
where
    Kept<K::Ring>: Setup<K, P>,
    Drawn<K::Ring, P::Exchange>: Setup<K, P>,
    for<'a> P::Encoder: Encoder<R::Part<'a>>,
{
    if kept::serves(&plan) {
        let rounds = Holder::<K, P, Kept<K::Ring>>::new(plan, session, party, base);
        return Box::new(Wiped::new(rounds));
    }
    Box::new(Wiped::new(Holder::<K, P>::new(plan, session, party, base)))
}

impl<K: Correlation, P: Party<K>, S: Setup<K, P>> Holder<K, P, S> {
    pub(super) fn new(plan: Plan, session: SessionId, party: P, base: Buffer<P::Entry>) -> Self {
        assert!(base.len() >= plan.base_count(), "a base for the plan");
        let rounds = Rounds::new::<K>(plan, session);
        Self { rounds, party, base, expansion: None, old_base: Buffer::default() }
    }

    /// Drops the last round, all but the base of the next.
    #[cfg(feature = "gpu")]
    pub(super) fn forget_round(&mut self) {
        self.expansion = None;
        self.old_base = Buffer::default();
    }

    /// A round. As far as there is memory in `out`, computes its first outputs; returns the
    /// remaining memory.
    pub(super) fn set_up<O: OutputMut>(&mut self, out: O, channel: &mut Channel) -> Result<O>
    where
        P::Encoder: Encoder<O>,
    {
        let old = self.expansion.take().map(|old| {
            self.old_base = old.encoder.into_base();
            old.shares
        });
        let base = take(&mut self.base);
        let (round, checked) = (self.rounds.next(), self.rounds.checked());
        let Round { step, code, context, .. } = round;
        let layout = round.layout.clone();
        let spare = &base[step.secret()..];
        self.party.feed(&spare[..K::LEVELS * layout.batch().levels()])?;
        if checked {
            channel.bind();
        }
        // Setup, steps 1 and 2
        let party = &mut self.party;
        let (shares, mut noise) = S::set_up(old, party, round, spare, checked, channel)?;
        // mutant(rounds-bind-key): insert `if checked && (if size_of::<P::Noise>() == 0 { $ON }
        //     else { $ON[rounds-bind-value] }) { channel.bind(); }`
        // mutant(rounds-bind-value): in rounds-bind-key
        let mask = checked.then(|| P::mask(&base[..step.need]));
        let encoder = P::encoder(Table::new(code, base, step), &mut noise);
        let mut expansion = Expansion::new(encoder, shares, step.keep + step.deliver);
        // Setup, step 3; the base of the next round, and the outputs of this one
        let check = mask.map(|mask| {
            move |leaves: CheckedLeaves<'_, '_, _, _, _>, channel: &mut Channel| {
                party.check((context, layout.batch()), &noise, leaves, &mask, channel)
            }
        });
        let mut kept = take(&mut self.old_base).with_len(step.keep);
        let count = step.deliver.min(out.count());
        let (now, rest) = out.split_at(count);
        expansion.begin(&mut kept[..], now, check, channel)?;
        self.base = kept;
        self.expansion = Some(expansion);
        Ok(rest)
    }

    fn round(&mut self) -> &mut Expansion<S, P::Encoder> {
        self.expansion.as_mut().expect("a round is under way")
    }
}

impl<K: Correlation, P: Party<K>, S: Setup<K, P>, R: Role> super::Rounds<R> for Holder<K, P, S>
where
    for<'a> P::Encoder: Encoder<R::Part<'a>>,
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
        self.round().shares.exchange_all(channel)
    }

    fn draw(&mut self, out: R::Part<'_>, channel: &mut Channel) -> Result<()> {
        self.round().expand(out, channel)
    }
}
