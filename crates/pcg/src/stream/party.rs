//! The two parties of a round: what each holds, and what it does in the steps of [`primal`].
//!
//! [`primal`]: super::primal

use std::mem::take;

use bytemuck::Zeroable;
use volery_channel::{Channel, Result};
use volery_ot::convert;
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use super::expand::{KeyEncoder, Slices, Table, ValueEncoder};
use crate::{
    check::{self, Context},
    correlation::Correlation,
    mpcot,
    spcot::{Exchange, Masks, Opener, Points, Public, Roots},
    tree_batch::TreeBatch,
};

/// A party of rounds.
pub(crate) trait Party<K: Correlation>: Send + 'static {
    /// Its part of a correlation.
    type Entry: Copy + Zeroable + Send + Sync;
    /// Its side of the messages of the trees.
    type Exchange: Exchange<K::Ring>;
    /// What it knows of the noise of a round.
    type Noise;
    /// Its parts of the correlations that mask the check.
    type Mask;
    /// Its part of a round, except its share of the noise vector.
    type Encoder: Slices<Ring = K::Ring, Output = Self::Entry> + Send;

    /// Puts spare correlations into the source of the trees' OTs.
    fn feed(&mut self, spare: &[Self::Entry]) -> Result<()>;

    /// Setup, steps 1 and 2, but for the messages of the trees. The points are random. Trees may be
    /// expanded `early`.
    fn begin(
        &mut self,
        public: Public<'_>,
        spare: &[Self::Entry],
        early: bool,
        channel: &mut Channel,
    ) -> Result<Begun<K, Self>>
    where
        Self: Sized;

    /// The last correlations of the base of a round.
    fn mask(base: &[Self::Entry]) -> Self::Mask;

    /// The encoder of a round.
    fn encoder(table: Table<Self::Entry>, noise: &mut Self::Noise) -> Self::Encoder;

    /// Setup, step 3.
    ///
    /// # Errors
    /// If the check fails; the caller must not use the leaves then.
    fn check(
        &mut self,
        round: (Context, &TreeBatch),
        noise: &Self::Noise,
        leaves: impl check::Leaves<K::Ring>,
        mask: &Self::Mask,
        channel: &mut Channel,
    ) -> Result<()>;
}

/// A party's trees, its side of their messages, and the noise.
pub(crate) type Begun<K, P> = (
    <<P as Party<K>>::Exchange as Exchange<<K as Correlation>::Ring>>::Trees,
    <P as Party<K>>::Exchange,
    <P as Party<K>>::Noise,
);

/// The holder of `x`.
pub(crate) struct Key<K: Correlation> {
    pub(crate) x: Zeroizing<K::Ring>,
    pub(crate) rng: Prg,
    pub(crate) ot: convert::Sender<K::KeyOt>,
}

impl<K: Correlation> Party<K> for Key<K> {
    type Entry = K::Ring;
    type Exchange = Masks<K::Ring>;
    type Noise = ();
    type Mask = Zeroizing<Vec<K::Ring>>;
    type Encoder = KeyEncoder<K>;

    fn feed(&mut self, spare: &[K::Ring]) -> Result<()> {
        K::feed_key(&mut self.ot, spare)
    }

    fn begin(
        &mut self,
        public: Public<'_>,
        spare: &[K::Ring],
        early: bool,
        channel: &mut Channel,
    ) -> Result<Begun<K, Self>> {
        let Self { x, rng, ot } = self;
        let roots = Roots::new(public.0, rng, ot)?;
        // With its outputs done earlier, this party would wait for the other one, whose message
        // comes first: of a correlated OT it does not.
        let sums = (early && K::VALUES > 0).then(|| roots.sums(public));
        let mut masks = mpcot::begin_send::<K>(public, Points::Random, **x, spare, ot, channel)?;
        masks.sums = sums;
        Ok((roots, masks, ()))
    }

    fn mask(base: &[K::Ring]) -> Self::Mask {
        K::key_mask(base)
    }

    fn encoder(table: Table<K::Ring>, _noise: &mut ()) -> KeyEncoder<K> {
        KeyEncoder(table)
    }

    fn check(
        &mut self,
        (context, batch): (Context, &TreeBatch),
        _noise: &(),
        leaves: impl check::Leaves<K::Ring>,
        mask: &Self::Mask,
        channel: &mut Channel,
    ) -> Result<()> {
        check::key_holder(context, batch, *self.x, leaves, mask, &mut self.rng, channel)
    }
}

/// The holder of `u` and `v`.
pub(crate) struct Value<K: Correlation> {
    pub(crate) rng: Prg,
    pub(crate) ot: convert::Receiver<K::ValueOt>,
    /// The bits of the values, if fewer than those of the ring.
    pub(crate) value_bits: Option<u32>,
}

/// The noise of a round, `mu`.
pub(crate) struct Noise<K: Correlation> {
    /// The place and the value in each tree.
    pub(super) alphas: Zeroizing<Vec<usize>>,
    pub(super) values: Zeroizing<Vec<K::Base>>,
    /// All places of the domain with a value, in ascending order.
    pub(super) points: Zeroizing<Vec<(usize, K::Base)>>,
}

impl<K: Correlation> Party<K> for Value<K> {
    type Entry = K::Pair;
    type Exchange = Opener<K::Ring>;
    type Noise = Noise<K>;
    type Mask = Zeroizing<Vec<(K::Ring, K::Ring)>>;
    type Encoder = ValueEncoder<K>;

    fn feed(&mut self, spare: &[K::Pair]) -> Result<()> {
        K::feed_value(&mut self.ot, spare);
        Ok(())
    }

    fn begin(
        &mut self,
        public: Public<'_>,
        spare: &[K::Pair],
        _early: bool,
        channel: &mut Channel,
    ) -> Result<Begun<K, Self>> {
        let (Self { rng, ot, value_bits }, batch) = (self, public.0);
        let values = (0..batch.trees()).map(|_| K::noise_of(*value_bits, rng));
        let values: Zeroizing<Vec<_>> = Zeroizing::new(values.collect());
        let (opened, opener) =
            mpcot::begin_receive::<K>(public, Points::Random, &values, spare, ot, channel)?;
        let alphas = opened.alphas.clone();
        let places =
            (0..).zip(alphas.iter()).map(|(tree, alpha)| batch.leaves_of(tree).start + alpha);
        let points = Zeroizing::new(places.zip(values.iter().copied()).collect());
        Ok((opened, opener, Noise { alphas, values, points }))
    }

    fn mask(base: &[K::Pair]) -> Self::Mask {
        K::value_mask(base)
    }

    fn encoder(table: Table<K::Pair>, noise: &mut Noise<K>) -> ValueEncoder<K> {
        ValueEncoder { table, noise: take(&mut noise.points) }
    }

    fn check(
        &mut self,
        (context, batch): (Context, &TreeBatch),
        Noise { alphas, values, .. }: &Noise<K>,
        leaves: impl check::Leaves<K::Ring>,
        mask: &Self::Mask,
        channel: &mut Channel,
    ) -> Result<()> {
        check::value_holder(context, batch, alphas, values, leaves, mask, &mut self.rng, channel)
    }
}
