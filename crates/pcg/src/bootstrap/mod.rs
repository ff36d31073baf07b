//! Protocol 6 of the 2019 paper, round after round: a few correlations become many, and some of those the base of the
//! next round (Ferret, CCS 2020, section 6, for the bootstrapping).
//!
//! One pipeline for every ring: `u` in the base ring `B`; `x`, `v`, `w` in its extension `R`.
//!
//! ```text
//! Sender: base u, v                       Receiver: x, base w = u*x + v
//! Setup
//! 1. positions S, values y                (a, b = the first k of u, v; c = the first k of w)
//! 2. -------- Protocol 5 (mpfss) on S, y and x, spending the next m of the base --------
//!    m, the negative of its share         r, its share:  r - m = mu*x,  mu = y at S
//! Expand, any part of 0..n at a time
//! i. u = a*C + mu,  v = b*C + m           w = c*C + r
//! ```
//!
//! so that `w - v = (c - b)*C + r - m = (a*C + mu)*x = u*x`. The paper's step 3, `c = a*x + b`, is the base: what an
//! earlier round kept back, or for the first round what [`crate::gilboa`] made.
//!
//! A round is set up as a whole: both parties hold one value for each of its `n` outputs (`m`, `r`), and the sums of
//! `C` are formed as the outputs are drawn. Memory: `n` elements of `R` and the base, whatever is drawn; with uniform noise
//! `3n` elements while the round is set up, and 12 bytes a point for the arrangement.
//!
//! Security: semi-honest. The place of the malicious check is after step 2 and before anything is expanded: a
//! round that has been set up but not checked hands out nothing.
//!
//! In a correlated OT the parties are called the other way round: the holder of `x` is its sender.
//!
//! Cost: that of [`crate::mpfss`] for each round.

mod plan;
mod rounds;

pub use plan::{ETA, Plan, PlanError};

use rayon::prelude::*;
use volery_channel::{Channel, Error, Result, SessionId};
use volery_field::{ExtensionOf, Ring};
use volery_ot::{CotReceiver, CotSender, flavour};
use volery_primitives::{pages::Buffer, prg::Prg};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    Noise,
    lpn::{LocalCode, Pair},
    mpfss::{self, Layout, Public},
};
use rounds::{Round, Rounds};

/// Outputs that one task of the thread pool expands.
const TASK: usize = 48 * 64;

/// The holder of `u` and `v`.
pub struct Sender<B: Ring, R: Ring> {
    rounds: Rounds,
    rng: Prg,
    /// The base of the next round; emptied while a round is under way, so that a failed one leaves nothing.
    base: Option<Base<B, R>>,
    expansion: Option<SenderExpansion<B, R>>,
}

/// The holder of `x`.
pub struct Receiver<B: Ring, R: ExtensionOf<B>> {
    rounds: Rounds,
    rng: Prg,
    x: R,
    base: Option<Buffer<R>>,
    expansion: Option<ReceiverExpansion<R>>,
    ring: std::marker::PhantomData<B>,
}

/// A sender's base correlations: `u` and `v`.
pub(crate) type Base<B, R> = (Buffer<B>, Buffer<R>);

/// A sender's round that has been set up.
struct SenderExpansion<B: Ring, R: Ring> {
    code: LocalCode,
    /// `a` and `b`.
    table: Buffer<Pair<B, R>>,
    /// `m`.
    shares: Buffer<R>,
    /// `mu`: the places in ascending order, with their values.
    noise: Noises<B>,
    next: usize,
    end: usize,
}

/// The noise of a round, wiped when dropped.
struct Noises<B: Ring>(Vec<(usize, B)>);

/// A receiver's round that has been set up.
struct ReceiverExpansion<R: Ring> {
    code: LocalCode,
    /// `c`.
    table: Buffer<R>,
    /// `r`.
    shares: Buffer<R>,
    next: usize,
    end: usize,
}

impl<B: Ring, R: ExtensionOf<B>> Sender<B, R> {
    /// The stream of `plan`, with the base of its first round.
    ///
    /// # Panics
    /// If the base is smaller than the plan's.
    pub(crate) fn new(plan: Plan, session: SessionId, rng: Prg, base: Base<B, R>) -> Self {
        assert!(
            base.0.len() >= plan.base() && base.1.len() >= plan.base(),
            "a base for the plan"
        );
        Self {
            rounds: Rounds::new(plan, session),
            rng,
            base: Some(base),
            expansion: None,
        }
    }

    /// The next `u.len()` correlations.
    ///
    /// # Panics
    /// If the lengths differ, or more is drawn than the plan was made for.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails, or the peer misbehaves; then, and ever after, nothing is drawn.
    pub(crate) fn extend<C: CotReceiver>(
        &mut self,
        mut u: &mut [B],
        mut v: &mut [R],
        ot: &mut flavour::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(u.len(), v.len(), "u and v have one length");
        while !u.is_empty() {
            let n = u.len().min(self.prepare(ot, channel)?);
            let (u_now, v_now);
            (u_now, u) = u.split_at_mut(n);
            (v_now, v) = v.split_at_mut(n);
            let round = self.expansion.as_mut().expect("a prepared round");
            round.expand(u_now, v_now);
        }
        Ok(())
    }

    /// Sets up the next round, if none is under way; returns how many correlations can be drawn without a message. That is
    /// zero only when the plan's total has been drawn.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub(crate) fn prepare<C: CotReceiver>(
        &mut self,
        ot: &mut flavour::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<usize> {
        loop {
            let ready = self.expansion.as_ref().map_or(0, |e| e.end - e.next);
            if ready > 0 || self.rounds.finished() {
                return Ok(ready);
            }
            self.next_round(ot, channel)?;
        }
    }

    fn next_round<C: CotReceiver>(
        &mut self,
        ot: &mut flavour::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<()> {
        let old = self.expansion.take().map(|expansion| expansion.shares);
        let (a, b) = self.base.take().ok_or(Error::Broken)?;
        let Round {
            step,
            layout,
            code,
            prgs,
        } = self.rounds.next();
        // Setup, step 1
        let positions = Zeroizing::new(sample_positions(
            step.set.noise,
            &layout,
            step.set.t,
            &mut self.rng,
        ));
        let values = Zeroizing::new(
            positions
                .iter()
                .map(|_| B::random_noise(&mut self.rng))
                .collect::<Vec<_>>(),
        );
        // Setup, step 2
        let assignment = layout.assign(&positions);
        let k = step.set.k;
        let spent = k..k + step.trees;
        let public = Public {
            layout: &layout,
            prgs: &prgs,
        };
        let shares = mpfss::receive(
            public,
            (&assignment, &values),
            (&a[spent.clone()], &b[spent]),
            layout.leaves(old),
            ot,
            channel,
        )?;
        let places = positions.iter().copied();
        let mut noise = Noises(places.zip(values.iter().copied()).collect());
        for dropped in &assignment.dropped {
            noise.0[*dropped].1 = B::ZERO;
        }
        noise.0.sort_unstable_by_key(|(place, _)| *place);
        let mut table = Buffer::zeroed(k);
        for (entry, (u, v)) in table.iter_mut().zip(a.iter().zip(b.iter())) {
            *entry = Pair { u: *u, v: *v };
        }
        drop((a, b));
        let mut expansion = SenderExpansion {
            code,
            table,
            shares,
            noise,
            next: 0,
            end: step.keep + step.deliver,
        };
        // The base of the next round
        let (mut u, mut v) = (Buffer::zeroed(step.keep), Buffer::zeroed(step.keep));
        expansion.expand(&mut u, &mut v);
        self.base = Some((u, v));
        self.expansion = Some(expansion);
        Ok(())
    }
}

impl<B: Ring, R: ExtensionOf<B>> Receiver<B, R> {
    /// The stream of `plan`, with the base of its first round.
    ///
    /// # Panics
    /// If the base is smaller than the plan's.
    pub(crate) fn new(plan: Plan, session: SessionId, rng: Prg, x: R, base: Buffer<R>) -> Self {
        assert!(base.len() >= plan.base(), "a base for the plan");
        Self {
            rounds: Rounds::new(plan, session),
            rng,
            x,
            base: Some(base),
            expansion: None,
            ring: std::marker::PhantomData,
        }
    }

    /// The next `w.len()` correlations.
    ///
    /// # Panics
    /// If more is drawn than the plan was made for.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails, or the peer misbehaves; then, and ever after, nothing is drawn.
    pub(crate) fn extend<C: CotSender>(
        &mut self,
        mut w: &mut [R],
        ot: &mut flavour::Sender<C>,
        channel: &mut Channel,
    ) -> Result<()> {
        while !w.is_empty() {
            let n = w.len().min(self.prepare(ot, channel)?);
            let w_now;
            (w_now, w) = w.split_at_mut(n);
            let round = self.expansion.as_mut().expect("a prepared round");
            round.expand(w_now);
        }
        Ok(())
    }

    /// As [`Sender::prepare`].
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub(crate) fn prepare<C: CotSender>(
        &mut self,
        ot: &mut flavour::Sender<C>,
        channel: &mut Channel,
    ) -> Result<usize> {
        loop {
            let ready = self.expansion.as_ref().map_or(0, |e| e.end - e.next);
            if ready > 0 || self.rounds.finished() {
                return Ok(ready);
            }
            self.next_round(ot, channel)?;
        }
    }

    fn next_round<C: CotSender>(
        &mut self,
        ot: &mut flavour::Sender<C>,
        channel: &mut Channel,
    ) -> Result<()> {
        let old = self.expansion.take().map(|expansion| expansion.shares);
        let c = self.base.take().ok_or(Error::Broken)?;
        let Round {
            step,
            layout,
            code,
            prgs,
        } = self.rounds.next();
        // Setup, step 2
        let k = step.set.k;
        let spent = Zeroizing::new(c[k..k + step.trees].to_vec());
        let public = Public {
            layout: &layout,
            prgs: &prgs,
        };
        let shares = mpfss::send::<B, R, _>(
            public,
            self.x,
            spent,
            layout.leaves(old),
            &mut self.rng,
            ot,
            channel,
        )?;
        let mut table = Buffer::zeroed(k);
        table.copy_from_slice(&c[..k]);
        drop(c);
        let mut expansion = ReceiverExpansion {
            code,
            table,
            shares,
            next: 0,
            end: step.keep + step.deliver,
        };
        // The base of the next round
        let mut w = Buffer::zeroed(step.keep);
        expansion.expand(&mut w);
        self.base = Some(w);
        self.expansion = Some(expansion);
        Ok(())
    }
}

/// Setup, step 1: the places of the noise, one in each block or anywhere, all different.
fn sample_positions(noise: Noise, layout: &Layout, t: usize, rng: &mut Prg) -> Vec<usize> {
    match noise {
        Noise::Regular => (0..layout.forest().trees())
            .map(|block| {
                let places = layout.forest().leaves_of(block);
                places.start + rng.below(places.len() as u64) as usize
            })
            .collect(),
        Noise::Uniform => {
            let mut places = std::collections::BTreeSet::new();
            while places.len() < t {
                places.insert(rng.below(layout.n() as u64) as usize);
            }
            places.into_iter().collect()
        }
    }
}

impl<B: Ring, R: ExtensionOf<B>> SenderExpansion<B, R> {
    /// Expand, step i, for the next outputs.
    fn expand(&mut self, u: &mut [B], v: &mut [R]) {
        let first = self.next;
        self.next += u.len();
        let shares = &self.shares[first..self.next];
        u.par_chunks_mut(TASK)
            .zip(v.par_chunks_mut(TASK))
            .zip(shares.par_chunks(TASK))
            .enumerate()
            .for_each(|(task, ((u, v), shares))| {
                let first = first + task * TASK;
                self.code
                    .encode(&self.table, first, u.len(), |i, (sum_u, sum_v)| {
                        u[i] = B::lazy_finish(sum_u);
                        v[i] = R::lazy_finish(R::lazy_add(sum_v, shares[i]));
                    });
            });
        let noise = &self.noise.0;
        let from = noise.partition_point(|(place, _)| *place < first);
        for (place, value) in noise[from..]
            .iter()
            .take_while(|(place, _)| *place < self.next)
        {
            u[place - first] += *value;
        }
    }
}

impl<R: Ring> ReceiverExpansion<R> {
    /// Expand, step ii, for the next outputs.
    fn expand(&mut self, w: &mut [R]) {
        let first = self.next;
        self.next += w.len();
        let shares = &self.shares[first..self.next];
        w.par_chunks_mut(TASK)
            .zip(shares.par_chunks(TASK))
            .enumerate()
            .for_each(|(task, (w, shares))| {
                let first = first + task * TASK;
                self.code.encode(&self.table, first, w.len(), |i, sum| {
                    w[i] = R::lazy_finish(R::lazy_add(sum, shares[i]));
                });
            });
    }
}

impl<B: Ring> Drop for Noises<B> {
    fn drop(&mut self) {
        for (place, value) in &mut self.0 {
            place.zeroize();
            value.zeroize();
        }
    }
}

impl<B: Ring, R: ExtensionOf<B>> Drop for Receiver<B, R> {
    fn drop(&mut self) {
        self.x.zeroize();
    }
}
