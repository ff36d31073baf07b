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

use std::marker::PhantomData;
use std::mem::take;

use volery_channel::{Channel, Result, SessionId};
use volery_primitives::{Block, pages::Buffer};

use super::{
    Role,
    expand::Encoder,
    party::{Key, Noise, Value},
};
use crate::{
    Plan, Security,
    check::Context,
    correlation::Correlation,
    ggm::TreePrgs,
    lpn::dual::{Compression, Term},
    plan::dual::Step,
    spcot::Exchange as _,
    tree_batch::{TreeBatch, window_of},
};
use compress::{Absorber, Outputs};

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

/// A party of instances.
pub(crate) trait Party<K: Correlation>: super::party::Party<K, Entry: Term> {
    /// What turns shares of the noise vector into entries.
    type Absorber;

    /// Setup, step 2.
    fn coin(&mut self, context: Context, channel: &mut Channel) -> Result<Block>;

    /// For all shares of an instance, in order.
    fn absorber(batch: &TreeBatch, noise: Self::Noise) -> Self::Absorber;

    /// Puts the next shares into the code.
    fn absorb(
        absorber: &mut Self::Absorber,
        shares: &[K::Ring],
        code: &mut Compression<Self::Entry>,
    );

    /// The code of a seed with all shares.
    fn compress(
        absorber: Self::Absorber,
        seed: Block,
        shares: Buffer<K::Ring>,
    ) -> Compression<Self::Entry>;
}

impl<K: Correlation> Party<K> for Key<K> {
    type Absorber = ();

    fn coin(&mut self, context: Context, channel: &mut Channel) -> Result<Block> {
        coin::key_holder(context, &mut self.rng, channel)
    }

    fn absorber(_batch: &TreeBatch, _noise: ()) {}

    fn absorb(_absorber: &mut (), shares: &[K::Ring], code: &mut Compression<K::Ring>) {
        code.absorb(shares);
    }

    fn compress(_absorber: (), seed: Block, shares: Buffer<K::Ring>) -> Compression<K::Ring> {
        Compression::of(seed, shares)
    }
}

impl<K: Correlation> Party<K> for Value<K> {
    type Absorber = Absorber<K>;

    fn coin(&mut self, context: Context, channel: &mut Channel) -> Result<Block> {
        coin::value_holder(context, &mut self.rng, channel)
    }

    fn absorber(batch: &TreeBatch, noise: Noise<K>) -> Absorber<K> {
        Absorber::new(batch, noise.points)
    }

    fn absorb(absorber: &mut Absorber<K>, shares: &[K::Ring], code: &mut Compression<K::Pair>) {
        absorber.absorb(shares, code);
    }

    fn compress(
        mut absorber: Absorber<K>,
        seed: Block,
        shares: Buffer<K::Ring>,
    ) -> Compression<K::Pair> {
        K::pairs(shares).map_or_else(
            |shares| {
                let mut code = Compression::new(seed, shares.len());
                absorber.absorb(&shares, &mut code);
                code
            },
            |pairs| Compression::of(seed, pairs),
        )
    }
}

/// A party's instances.
pub(crate) struct Holder<K: Correlation, P: Party<K>> {
    instances: Instances,
    party: P,
    /// The base of the next instance.
    base: Buffer<P::Entry>,
    outputs: Option<Outputs<P::Entry>>,
    correlation: PhantomData<fn() -> K>,
}

impl<K: Correlation, P: Party<K>> Holder<K, P> {
    /// The instances of `plan`, with the base of the first.
    pub(crate) fn new(plan: Plan, session: SessionId, party: P, base: Buffer<P::Entry>) -> Self {
        assert!(base.len() >= plan.base_count(), "a base for the plan");
        let instances = Instances::new(plan, session);
        Self { instances, party, base, outputs: None, correlation: PhantomData }
    }

    /// Setup of an instance.
    fn set_up(&mut self, channel: &mut Channel) -> Result<()> {
        self.outputs = None;
        let base = take(&mut self.base);
        let Instance { step, batch, prgs, context, need } = self.instances.next::<K>();
        let (party, public, checked) = (&mut self.party, (&batch, &prgs), self.instances.checked());
        party.feed(&base[..K::LEVELS * batch.levels()])?;
        if checked {
            channel.bind();
        }
        let (mut trees, mut exchange, noise) = party.begin(public, &base, false, channel)?;
        let mut code;
        if checked {
            // Setup, steps 1 to 3
            let mut leaves = Buffer::zeroed(batch.leaves());
            exchange.make_all(&mut trees, public, &mut leaves, channel)?;
            let (seed, mask) = (party.coin(context, channel)?, P::mask(&base[..need]));
            party.check((context, &batch), &noise, &leaves[..], &mask, channel)?;
            code = P::compress(P::absorber(&batch, noise), seed, leaves);
        } else {
            // Setup, steps 1 and 2
            code = Compression::new(party.coin(context, channel)?, batch.leaves());
            let (mut absorber, mut window) = (P::absorber(&batch, noise), Buffer::default());
            while let Some(some) = exchange.next_trees(&batch) {
                let leaves = window_of(&mut window, batch.leaves_of_run(&some).len());
                exchange.make(&mut trees, public, some, leaves, channel)?;
                P::absorb(&mut absorber, leaves, &mut code);
            }
        }
        let mut outputs = Outputs { code, left: step.keep + step.deliver };
        // The base of the next instance
        let mut kept = Buffer::zeroed(step.keep);
        outputs.draw(&mut kept[..], |drawn, out: &mut [_]| out.copy_from_slice(drawn));
        self.base = kept;
        self.outputs = Some(outputs);
        Ok(())
    }
}

impl<K: Correlation, P: Party<K>, R: Role> super::Rounds<R> for Holder<K, P>
where
    for<'a> P::Encoder: Encoder<R::Part<'a>>,
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
        outputs.draw(out, <P::Encoder as Encoder<R::Part<'_>>>::put);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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
