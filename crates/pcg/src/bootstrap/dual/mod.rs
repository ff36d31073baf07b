//! Correlations from dual LPN: trees, and a code that compresses their leaves.
//!
//! ```text
//! Value holder: base u, v                 Key holder: x, base w = u*x + v
//! Setup of an instance
//! 1. -------- Protocol 5, Fig. 7 (mpfss), regular: a random place and value y in each of t blocks, spending the base --------
//!    m, the negative of its share         r, its share:  r - m = mu*x,  mu = y at the places
//! 2. -------- the seed of the code (coin) --------
//! 3. -------- malicious: the check of all trees (check), spending the last of the base --------
//! Expand, local
//! i. u = G*mu,  v = G*m                   w = G*r
//! ```
//!
//! with the code `G` of [`crate::lpn::dual`], which makes 93 of 256, so that `w - v = G*(r - m) = u*x`. Silent OT as in
//! *Efficient Pseudorandom Correlation Generators* (Boyle, Couteau, Gilboa, Ishai, Kohl, Scholl, CRYPTO 2019), with the trees and the check
//! of this crate. Where an instance has too few outputs, the first ones of each are kept back as the base of the next.
//!
//! The seed is tossed when the noise is fixed, so that neither party can choose noise for a code, or a code for noise. The check
//! comes after it: its coefficients depend on all messages, so that it also fails where the two have different seeds. A semi-honest instance tosses it before its trees are sent, as each tree's leaves go into the code at once; the places are the choice bits
//! of the trees' OTs, which are there.
//!
//! Memory: an element for each leaf, or in a vector-OLE pairs of them for the holder of `u` and `v`, and 512 for each bucket
//! ([`crate::lpn::dual`]); while a malicious instance of a vector-OLE is checked and compressed, that holder has its leaves too. An instance has at most 2^26
//! leaves.
//!
//! Security: that of the plan. The assumption is dual LPN with this code and regular noise, for a malicious instance with static leakage:
//! SECURITY.md has what is known of it. Nothing is handed out, not even to the next instance, before the check has passed;
//! a failed call leaves nothing behind.
//!
//! Cost: that of [`crate::mpfss`], [`crate::check`] and [`coin`] for each instance.

mod coin;
mod compress;

use volery_channel::{Channel, Error, Result, SessionId};
use volery_field::Ring;
use volery_ot::flavour;
use volery_primitives::{pages::Buffer, prg::Prg};
use zeroize::{Zeroize, Zeroizing};

use super::plan::Plan;
use crate::{
    Security,
    check::{self, Context},
    correlation::{Correlation, Pairs, Places},
    forest::Forest,
    ggm::TreePrgs,
    lpn::{
        dual::{
            Compression,
            params::{Shape, linear_test_bits},
        },
        estimate::Field,
    },
    mpfss::{self, Layout, Public},
    single::{self, Points},
};
use compress::{Noise, Outputs, window_for};

/// What one instance does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// Its trees.
    pub(crate) shape: Shape,
    /// Outputs kept back for the next instance; they are the first.
    pub(crate) keep: usize,
    /// Outputs handed out; the others are not drawn.
    pub(crate) deliver: usize,
}

/// Bits against all linear tests, of the lightest noise over the ring.
pub(super) fn security_bits(field: Field) -> f64 {
    linear_test_bits(field, Shape::equal(field))
}

/// Bytes that both parties send for an instance, but for OTs of the trees that are no outputs: what the docs of the parts say.
pub(super) fn bytes<K: Correlation>(shape: Shape, security: Security) -> usize {
    const COIN: usize = 32 + 48 + 16;
    let element = K::Ring::BYTES;
    let leaf_level = if K::CARRIES { 0 } else { 16 + element };
    let trees = 16 * shape.levels() + (leaf_level + K::VALUES * element) * shape.trees;
    let elements = element * check::repetitions::<K::Ring>();
    trees
        + COIN
        + match security {
            Security::SemiHonest => 0,
            Security::Malicious => 16 + 32 + 32 + 3 * elements,
        }
}

/// The instances of a stream, one after the other.
struct Instances {
    plan: Plan,
    session: SessionId,
    number: u64,
    delivered: u64,
}

/// The public side of an instance.
struct Instance {
    step: Step,
    layout: Layout,
    prgs: TreePrgs,
    context: Context,
    need: usize,
}

impl Instances {
    fn new(plan: Plan, session: SessionId) -> Self {
        Self {
            plan,
            session,
            number: 0,
            delivered: 0,
        }
    }

    fn checked(&self) -> bool {
        self.plan.security() == Security::Malicious
    }

    fn finished(&self) -> bool {
        self.plan.total() == Some(self.delivered)
    }

    fn next<K: Correlation>(&mut self) -> Instance {
        let step = self.plan.dual_step(self.delivered);
        let growth = K::growth(self.plan.trees());
        let prgs = TreePrgs::growing(growth, self.session, self.number);
        let instance = Instance {
            layout: Layout::blocks(step.shape.blocks()),
            prgs: if K::CARRIES {
                prgs.with_cleared_leaves()
            } else {
                prgs
            },
            context: Context {
                session: self.session,
                round: self.number,
            },
            need: self.plan.dual_need(step.shape),
            step,
        };
        self.number += 1;
        self.delivered += step.deliver as u64;
        instance
    }
}

impl Instance {
    fn public(&self) -> Public<'_> {
        Public {
            layout: &self.layout,
            prgs: &self.prgs,
        }
    }

    fn forest(&self) -> &Forest {
        self.layout.forest()
    }
}

/// The holder of `u` and `v`.
pub(crate) struct ValueHolder<K: Correlation> {
    instances: Instances,
    rng: Prg,
    ot: flavour::Receiver<K::ValueOt>,
    /// The base of the next instance; away while one is set up, so that a failed one leaves nothing.
    base: Option<Pairs<K>>,
    outputs: Option<Outputs<K::Pair>>,
}

/// The holder of `x`.
pub(crate) struct KeyHolder<K: Correlation> {
    instances: Instances,
    rng: Prg,
    x: K::Ring,
    ot: flavour::Sender<K::KeyOt>,
    base: Option<Buffer<K::Ring>>,
    outputs: Option<Outputs<K::Ring>>,
}

impl<K: Correlation> ValueHolder<K> {
    /// The stream of `plan`, with the base of its first instance, and OTs for the trees.
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
            instances: Instances::new(plan, session),
            rng,
            ot,
            base: Some(base),
            outputs: None,
        }
    }

    /// The next `out.count()` correlations.
    ///
    /// # Panics
    /// If more is drawn than the plan was made for.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails, or the peer misbehaves; then, and ever after, nothing is drawn.
    pub(crate) fn extend<P: Places<K>>(&mut self, mut out: P, channel: &mut Channel) -> Result<()> {
        while out.count() > 0 {
            assert!(self.prepare(channel)? > 0, "more than was planned");
            let outputs = self.outputs.as_mut().expect("an instance is set up");
            let drawn = outputs.draw(out.count());
            let mut now;
            (now, out) = out.split_at(drawn.len());
            for (place, pair) in drawn.iter().enumerate() {
                now.put(place, *pair);
            }
        }
        Ok(())
    }

    /// Sets up the next instance, if none is under way; returns how many correlations can be drawn without a message. That is
    /// zero only when the plan's total has been drawn.
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub(crate) fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        loop {
            // Away only where a call failed.
            if self.base.is_none() {
                return Err(Error::Broken);
            }
            match &self.outputs {
                Some(Outputs { left, .. }) if *left > 0 => return Ok(*left),
                _ if self.instances.finished() => return Ok(0),
                _ => self.next_instance(channel)?,
            }
        }
    }

    fn next_instance(&mut self, channel: &mut Channel) -> Result<()> {
        self.outputs = None;
        let base = self.base.take().ok_or(Error::Broken)?;
        let instance = self.instances.next::<K>();
        let step = instance.step;
        let (rng, ot) = (&mut self.rng, &mut self.ot);
        K::feed_value(ot, &base[..K::LEVELS * instance.forest().levels()]);
        let values: Zeroizing<Vec<K::Base>> =
            Zeroizing::new((0..step.shape.trees).map(|_| K::noise(rng)).collect());
        let mut code;
        if self.instances.checked() {
            channel.bind();
            // Setup, steps 1 to 3
            let n = step.shape.leaves();
            let mut m = Buffer::zeroed(Compression::<K::Ring>::room(step.shape.leaves()));
            let beta = K::value_shares(&values, &base, channel)?;
            let forest = instance.forest();
            let trees = (forest, &instance.prgs);
            let alphas = single::receive(trees, Points::Random, &beta, &mut m[..n], ot, channel)?;
            let (context, leaves) = (instance.context, &m[..n]);
            let seed = coin::value_holder(context, rng, channel)?;
            let mask = K::value_mask(&base[..instance.need]);
            check::value_holder(
                context, forest, &alphas, &values, leaves, &mask, rng, channel,
            )?;
            code = match K::pairs(m) {
                Ok(pairs) => Compression::of_first(seed, step.shape.leaves(), pairs),
                Err(m) => {
                    let mut code = Compression::new(seed, step.shape.leaves());
                    Noise::<K>::new(instance.forest(), &alphas, &values).absorb(&m[..n], &mut code);
                    code
                }
            };
        } else {
            // Setup, steps 1 and 2
            let random = Points::Random;
            let mut trees =
                mpfss::begin_receive::<K>(instance.public(), random, &values, &base, ot, channel)?;
            let seed = coin::value_holder(instance.context, rng, channel)?;
            code = Compression::new(seed, step.shape.leaves());
            let mut noise = Noise::<K>::new(instance.forest(), &trees.alphas, &values);
            let forest = instance.forest();
            let mut window = Buffer::default();
            while let Some(run) = trees.next_run(forest) {
                let leaves = window_for(&mut window, forest.leaves_of_run(&run).len());
                trees.rebuild_next((forest, &instance.prgs), leaves, channel)?;
                noise.absorb(leaves, &mut code);
            }
        }
        let mut outputs = Outputs {
            code,
            left: step.keep + step.deliver,
        };
        // The base of the next instance
        let mut kept = Buffer::zeroed(step.keep);
        outputs.fill(&mut kept);
        self.base = Some(kept);
        self.outputs = Some(outputs);
        Ok(())
    }
}

impl<K: Correlation> KeyHolder<K> {
    /// The stream of `plan`, with the base of its first instance, and OTs for the trees.
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
            instances: Instances::new(plan, session),
            rng,
            x,
            ot,
            base: Some(base),
            outputs: None,
        }
    }

    /// The next `w.len()` correlations.
    ///
    /// # Panics
    /// If more is drawn than the plan was made for.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails, or the peer misbehaves; then, and ever after, nothing is drawn.
    pub(crate) fn extend(&mut self, mut w: &mut [K::Ring], channel: &mut Channel) -> Result<()> {
        while !w.is_empty() {
            assert!(self.prepare(channel)? > 0, "more than was planned");
            let outputs = self.outputs.as_mut().expect("an instance is set up");
            let drawn = outputs.draw(w.len());
            let now;
            (now, w) = w.split_at_mut(drawn.len());
            now.copy_from_slice(drawn);
        }
        Ok(())
    }

    /// As [`ValueHolder::prepare`].
    ///
    /// # Errors
    /// As [`extend`](Self::extend).
    pub(crate) fn prepare(&mut self, channel: &mut Channel) -> Result<usize> {
        loop {
            // Away only where a call failed.
            if self.base.is_none() {
                return Err(Error::Broken);
            }
            match &self.outputs {
                Some(Outputs { left, .. }) if *left > 0 => return Ok(*left),
                _ if self.instances.finished() => return Ok(0),
                _ => self.next_instance(channel)?,
            }
        }
    }

    fn next_instance(&mut self, channel: &mut Channel) -> Result<()> {
        self.outputs = None;
        let base = self.base.take().ok_or(Error::Broken)?;
        let instance = self.instances.next::<K>();
        let step = instance.step;
        let (x, rng, ot) = (self.x, &mut self.rng, &mut self.ot);
        K::feed_key(ot, &base[..K::LEVELS * instance.forest().levels()])?;
        let mut code;
        if self.instances.checked() {
            channel.bind();
            // Setup, steps 1 to 3
            let mut r = Buffer::zeroed(Compression::<K::Ring>::room(step.shape.leaves()));
            let beta = K::key_shares(x, &base, step.shape.trees, channel)?;
            let (forest, leaves) = (instance.forest(), &mut r[..step.shape.leaves()]);
            let trees = (forest, &instance.prgs);
            single::send(trees, Points::Random, &beta, leaves, rng, ot, channel)?;
            let seed = coin::key_holder(instance.context, rng, channel)?;
            let mask = K::key_mask(&base[..instance.need]);
            check::key_holder(
                instance.context,
                forest,
                x,
                &leaves[..],
                &mask,
                rng,
                channel,
            )?;
            code = Compression::of_first(seed, step.shape.leaves(), r);
        } else {
            // Setup, steps 1 and 2
            let mut trees = mpfss::begin_send::<K>(
                instance.public(),
                Points::Random,
                x,
                &base,
                rng,
                ot,
                channel,
            )?;
            let seed = coin::key_holder(instance.context, rng, channel)?;
            code = Compression::new(seed, step.shape.leaves());
            let forest = instance.forest();
            let mut window = Buffer::default();
            while let Some(run) = trees.next_run(forest) {
                let leaves = window_for(&mut window, forest.leaves_of_run(&run).len());
                trees.grow_next((forest, &instance.prgs), leaves, channel)?;
                code.absorb(leaves);
            }
        }
        let mut outputs = Outputs {
            code,
            left: step.keep + step.deliver,
        };
        // The base of the next instance
        let mut kept = Buffer::zeroed(step.keep);
        outputs.fill(&mut kept);
        self.base = Some(kept);
        self.outputs = Some(outputs);
        Ok(())
    }
}

impl<K: Correlation> Drop for KeyHolder<K> {
    fn drop(&mut self) {
        self.x.zeroize();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use volery_primitives::Block;

    use super::*;
    use crate::{Kind, Protocol, Wishes, correlation::Cot};

    #[test]
    fn instances_have_keys_and_contexts_of_their_own() {
        let wishes = Wishes {
            security: Security::Malicious,
            protocol: Protocol::LowCommunication,
            ..Wishes::default()
        };
        let plan = Plan::new(Kind::Cot, &wishes).unwrap();
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
