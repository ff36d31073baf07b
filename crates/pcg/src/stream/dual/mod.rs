//! Correlations from dual LPN: trees, and a code that compresses their leaves.
//!
//! ```text
//! Value holder: base u, v                 Key holder: x, base w = u*x + v
//! Setup of an instance
//! 1. -------- Protocol 5, Fig. 7 (mpcot), regular: a random place and value y in each --------
//!             of t blocks, consuming the base
//!    m, the negative of its share         r, its share:  r - m = mu*x,  mu = y at the places
//! 2. -------- the seed of the code (coin) --------
//! 3. -------- malicious: the check of all trees (check), consuming the last of the base --------
//! Expand, local
//! i. u = G*mu,  v = G*m                   w = G*r
//! ```
//!
//! with the code `G` of [`crate::lpn::dual`], which makes `n` outputs of `2n` values, so that
//! `w - v = G*(r - m) = u*x`. Silent OT as in *Efficient Pseudorandom Correlation Generators*
//! (Boyle, Couteau, Gilboa, Ishai, Kohl, Scholl, CRYPTO 2019), with the trees and the check of this
//! crate. Where an instance has too few outputs, the first ones of each are reserved as the base of
//! the next.
//!
//! The parties toss the seed after the noise is fixed, so that neither party can choose noise for a
//! code, or a code for noise. The check comes after it: its coefficients depend on all messages, so
//! that it also fails where the two have different seeds. A semi-honest instance tosses the seed
//! before it sends its trees, because the leaves of each tree go into the code at once; the places
//! are the choice bits of the trees' OTs, which already exist.
//!
//! Memory: an element for each leaf, or in a vector-OLE pairs of them for the holder of `u` and
//! `v`; while a malicious instance of a vector-OLE is checked and compressed, that holder has its
//! leaves too. An instance has at most 2^26 leaves.
//!
//! Security: that of the plan. The assumption is dual LPN with this code and regular noise, for a
//! malicious instance with static leakage: docs/security-proofs.md has the evidence for it. Nothing
//! is returned, not even to the next instance, before the check has passed; a failed call leaves
//! nothing behind.
//! Cost: that of [`crate::mpcot`], [`crate::check`] and [`coin`] for each instance.

mod coin;
mod compress;

use std::mem::take;

use volery_channel::{Channel, Result, SessionId};
use volery_ot::convert;
use volery_primitives::{pages::Buffer, prg::Prg};
use zeroize::Zeroizing;

use super::Role;
use crate::{
    Plan, Security,
    check::{self, Context},
    correlation::{Correlation, Pairs, PairsMut},
    ggm::TreePrgs,
    lpn::dual::Compression,
    mpcot,
    plan::dual::Step,
    spcot::{self, Exchange as _, Points, Public},
    tree_batch::{TreeBatch, window_of},
};
use compress::{Noise, Outputs};

/// The consecutive instances of a stream.
struct Instances {
    plan: Plan,
    session: SessionId,
    number: u64,
    delivered: u64,
}

/// The public side of an instance.
struct Instance {
    step: Step,
    batch: TreeBatch,
    prgs: TreePrgs,
    context: Context,
    need: usize,
}

impl Instances {
    fn new(plan: Plan, session: SessionId) -> Self {
        Self { plan, session, number: 0, delivered: 0 }
    }

    fn checked(&self) -> bool {
        // mutant(dual-checked): `self.plan.security() == Security::Malicious` => `false`
        self.plan.security() == Security::Malicious
    }

    fn finished(&self) -> bool {
        self.plan.total() == Some(self.delivered)
    }

    /// The next instance.
    ///
    /// # Panics
    /// If the plan's total has been returned.
    fn next<K: Correlation>(&mut self) -> Instance {
        assert!(!self.finished(), "no more correlations than the plan was made for");
        let step = self.plan.dual_step(self.delivered);
        let growth = K::growth(self.plan.trees());
        let prgs = TreePrgs::growing(growth, self.session, self.number);
        let instance = Instance {
            batch: TreeBatch::new(step.shape.blocks()),
            prgs: if K::CARRIES { prgs.with_cleared_leaves() } else { prgs },
            context: Context { session: self.session, round: self.number },
            need: self.plan.dual_need(step.shape),
            step,
        };
        // mutant(dual-number): drop
        self.number += 1;
        self.delivered += step.deliver as u64;
        instance
    }
}

impl Instance {
    fn public(&self) -> Public<'_> {
        (&self.batch, &self.prgs)
    }
}

/// The holder of `u` and `v`.
pub(crate) struct ValueHolder<K: Correlation> {
    instances: Instances,
    rng: Prg,
    ot: convert::Receiver<K::ValueOt>,
    /// The base of the next instance.
    base: Pairs<K>,
    outputs: Option<Outputs<K::Pair>>,
}

/// The holder of `x`.
pub(crate) struct KeyHolder<K: Correlation> {
    instances: Instances,
    rng: Prg,
    x: Zeroizing<K::Ring>,
    ot: convert::Sender<K::KeyOt>,
    base: Buffer<K::Ring>,
    outputs: Option<Outputs<K::Ring>>,
}

impl<K: Correlation> ValueHolder<K> {
    /// The stream of `plan`, with the base of its first instance, and OTs for the trees.
    pub(crate) fn new(
        plan: Plan,
        session: SessionId,
        rng: Prg,
        ot: convert::Receiver<K::ValueOt>,
        base: Pairs<K>,
    ) -> Self {
        assert!(base.len() >= plan.base_count(), "a base for the plan");
        Self { instances: Instances::new(plan, session), rng, ot, base, outputs: None }
    }

    /// Setup of an instance.
    fn set_up(&mut self, channel: &mut Channel) -> Result<()> {
        self.outputs = None;
        let base = take(&mut self.base);
        let instance = self.instances.next::<K>();
        let step = instance.step;
        let bits = self.instances.plan.value_bits();
        let (rng, ot) = (&mut self.rng, &mut self.ot);
        K::feed_value(ot, &base[..K::LEVELS * instance.batch.levels()]);
        let values = (0..step.shape.trees).map(|_| K::noise_of(bits, rng));
        let values: Zeroizing<Vec<K::Base>> = Zeroizing::new(values.collect());
        let mut code;
        if self.instances.checked() {
            channel.bind();
            // Setup, steps 1 to 3
            let n = step.shape.leaves();
            let mut m = Buffer::zeroed(n);
            let beta = K::value_shares(&values, &base, channel)?;
            let (public, batch) = (instance.public(), &instance.batch);
            let alphas = spcot::receive(public, Points::Random, &beta, &mut m, ot, channel)?;
            let (context, leaves) = (instance.context, &m[..]);
            let seed = coin::value_holder(context, rng, channel)?;
            let mask = K::value_mask(&base[..instance.need]);
            check::value_holder(context, batch, &alphas, &values, leaves, &mask, rng, channel)?;
            code = match K::pairs(m) {
                Ok(pairs) => Compression::of(seed, pairs),
                Err(m) => {
                    let mut code = Compression::new(seed, n);
                    Noise::<K>::new(&instance.batch, &alphas, &values).absorb(&m, &mut code);
                    code
                }
            };
        } else {
            // Setup, steps 1 and 2
            let (public, batch, random) = (instance.public(), &instance.batch, Points::Random);
            let (mut trees, mut opener) =
                mpcot::begin_receive::<K>(public, random, &values, &base, ot, channel)?;
            let seed = coin::value_holder(instance.context, rng, channel)?;
            code = Compression::new(seed, step.shape.leaves());
            let mut noise = Noise::<K>::new(&instance.batch, &trees.alphas, &values);
            let mut window = Buffer::default();
            while let Some(some) = opener.next_trees(batch) {
                let leaves = window_of(&mut window, batch.leaves_of_run(&some).len());
                opener.make(&mut trees, public, some, leaves, channel)?;
                noise.absorb(leaves, &mut code);
            }
        }
        let mut outputs = Outputs { code, left: step.keep + step.deliver };
        // The base of the next instance
        let mut kept = Buffer::zeroed(step.keep);
        outputs.fill(&mut kept);
        self.base = kept;
        self.outputs = Some(outputs);
        Ok(())
    }
}

impl<K: Correlation> KeyHolder<K> {
    /// The stream of `plan`, with the base of its first instance, and OTs for the trees.
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
            instances: Instances::new(plan, session),
            rng,
            x: Zeroizing::new(x),
            ot,
            base,
            outputs: None,
        }
    }

    /// Setup of an instance.
    fn set_up(&mut self, channel: &mut Channel) -> Result<()> {
        self.outputs = None;
        let base = take(&mut self.base);
        let instance = self.instances.next::<K>();
        let step = instance.step;
        let (x, rng, ot) = (*self.x, &mut self.rng, &mut self.ot);
        K::feed_key(ot, &base[..K::LEVELS * instance.batch.levels()])?;
        let mut code;
        if self.instances.checked() {
            channel.bind();
            // Setup, steps 1 to 3
            let mut r = Buffer::zeroed(step.shape.leaves());
            let beta = K::key_shares(x, &base, step.shape.trees, channel)?;
            let (public, batch) = (instance.public(), &instance.batch);
            spcot::send(public, Points::Random, &beta, &mut r, rng, ot, channel)?;
            let seed = coin::key_holder(instance.context, rng, channel)?;
            let mask = K::key_mask(&base[..instance.need]);
            check::key_holder(instance.context, batch, x, &r[..], &mask, rng, channel)?;
            code = Compression::of(seed, r);
        } else {
            // Setup, steps 1 and 2
            let (public, batch) = (instance.public(), &instance.batch);
            let mut trees = spcot::Roots::new(batch, rng, ot)?;
            let random = Points::Random;
            let mut masks = mpcot::begin_send::<K>(public, random, x, &base, ot, channel)?;
            let seed = coin::key_holder(instance.context, rng, channel)?;
            code = Compression::new(seed, step.shape.leaves());
            let mut window = Buffer::default();
            while let Some(some) = masks.next_trees(batch) {
                let leaves = window_of(&mut window, batch.leaves_of_run(&some).len());
                masks.make(&mut trees, public, some, leaves, channel)?;
                code.absorb(leaves);
            }
        }
        let mut outputs = Outputs { code, left: step.keep + step.deliver };
        // The base of the next instance
        let mut kept = Buffer::zeroed(step.keep);
        outputs.fill(&mut kept);
        self.base = kept;
        self.outputs = Some(outputs);
        Ok(())
    }
}

impl<K: Correlation, R: Role> super::Rounds<R> for ValueHolder<K>
where
    for<'a> R::Part<'a>: PairsMut<K>,
{
    fn left(&self) -> usize {
        self.outputs.as_ref().map_or(0, |outputs| outputs.left)
    }

    fn finished(&self) -> bool {
        self.instances.finished()
    }

    fn next_round<'a>(&mut self, out: R::Part<'a>, channel: &mut Channel) -> Result<R::Part<'a>> {
        self.set_up(channel)?;
        Ok(out)
    }

    /// None exist.
    fn exchange(&mut self, _channel: &mut Channel) -> Result<()> {
        Ok(())
    }

    fn draw(&mut self, out: R::Part<'_>, _channel: &mut Channel) -> Result<()> {
        let outputs = self.outputs.as_mut().expect("an instance is set up");
        outputs.draw(out, |drawn, mut out| {
            for (place, pair) in drawn.iter().enumerate() {
                out.put(place, *pair);
            }
        });
        Ok(())
    }
}

impl<K: Correlation> super::Rounds<super::KeyHolder<K>> for KeyHolder<K> {
    fn left(&self) -> usize {
        self.outputs.as_ref().map_or(0, |outputs| outputs.left)
    }

    fn finished(&self) -> bool {
        self.instances.finished()
    }

    fn next_round<'a>(
        &mut self,
        out: <super::KeyHolder<K> as Role>::Part<'a>,
        channel: &mut Channel,
    ) -> Result<<super::KeyHolder<K> as Role>::Part<'a>> {
        self.set_up(channel)?;
        Ok(out)
    }

    /// None exist.
    fn exchange(&mut self, _channel: &mut Channel) -> Result<()> {
        Ok(())
    }

    fn draw(&mut self, out: &mut [K::Ring], _channel: &mut Channel) -> Result<()> {
        let outputs = self.outputs.as_mut().expect("an instance is set up");
        outputs.fill(out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use volery_primitives::Block;

    use super::*;
    use crate::{Kind, PlanOptions, Protocol, correlation::Cot};

    #[test]
    fn instances_have_keys_and_contexts_of_their_own() {
        let options = PlanOptions {
            security: Security::Malicious,
            protocol: Protocol::LowCommunication,
            ..PlanOptions::default()
        };
        let plan = Plan::new(Kind::Cot, &options).unwrap();
        let of = |session: u8| Instances::new(plan.clone(), SessionId::from_bytes([session; 32]));
        let mut all = Vec::new();
        for mut instances in [of(1), of(2)] {
            for round in 0..3 {
                let instance = instances.next::<Cot>();
                assert_eq!(instance.context.round, round);
                let children = |tree| instance.prgs.tree(tree).children(Block::ZERO);
                all.extend([children(0), children(1)]);
            }
        }
        assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
    }
}
