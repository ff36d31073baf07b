//! Rounds of which both parties keep all leaves in memory: with uniform noise, or on GGM trees.
//!
//! No plan has these unless its options say so. The rest of a round does not know of them: they
//! come in by [`Setup`] and [`Shares`], and their trees are those of [`crate::reproduction`].
//!
//! Memory: `n` elements and the base, for any number of drawn outputs; with uniform noise `3n`
//! elements and some more, of which the three of a point are added up tile by tile, and 13 bytes a
//! point for the arrangement.
//!
//! The places of the noise are the value holder's secret. They index its own memory and are sorted
//! there, in time that depends on them; the values take part in arithmetic only.

use std::ops::Range;
use std::sync::Arc;

use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_primitives::{bits, pages::Buffer, prg::Prg};
use zeroize::Zeroizing;

use super::{
    party::{Key, Noise, Value},
    rounds::Round,
    shares::{Setup, Shares},
};
use crate::{
    Plan, Trees,
    correlation::Correlation,
    mpcot::{Assignment, Layout},
    reproduction,
    spcot::Points,
    tree_batch::TreeBatch,
};

/// Whether the rounds of a plan are such.
pub(super) fn serves(plan: &Plan) -> bool {
    plan.noise() == crate::Noise::Uniform || plan.trees() == Trees::Ggm
}

/// The leaves of a round.
pub(crate) struct Kept<R: Ring> {
    layout: Arc<Layout>,
    leaves: Buffer<R>,
    /// With uniform noise, the shares at some points.
    window: Buffer<R>,
    /// These points.
    points: Range<usize>,
}

impl<R: Ring> Kept<R> {
    fn new(layout: Arc<Layout>, leaves: Buffer<R>) -> Self {
        Self { layout, leaves, window: Buffer::default(), points: 0..0 }
    }

    /// Memory for the leaves: that of the last round, if it fits.
    fn memory(old: Option<Self>, layout: &Layout) -> Buffer<R> {
        layout.leaves(old.map(|old| old.leaves))
    }
}

impl<R: Ring> Shares for Kept<R> {
    type Ring = R;

    fn exchange_all(&mut self, _channel: &mut Channel) -> Result<()> {
        Ok(())
    }

    fn at(&mut self, first: usize, count: usize, _channel: &mut Channel) -> Result<&[R]> {
        if self.layout.is_regular() {
            return Ok(&self.leaves[first..first + count]);
        }
        if !self.points.contains(&first) {
            let size = self.layout.tile();
            if self.window.is_empty() {
                // A tile for each task.
                self.window = Buffer::zeroed(rayon::current_num_threads() * size);
            }
            let start = first / size * size;
            self.layout.add_up(&self.leaves, start / size, &mut self.window);
            self.points = start..start + self.window.len();
        }
        let from = first - self.points.start;
        Ok(&self.window[from..self.points.len().min(from + count)])
    }

    fn for_each_run(&mut self, batch: &TreeBatch, mut look: impl FnMut(Range<usize>, &[R], bool)) {
        look(0..batch.trees(), &self.leaves, false);
    }
}

impl<K: Correlation> Setup<K, Key<K>> for Kept<K::Ring> {
    fn set_up(
        old: Option<Self>,
        Key { x, rng, ot }: &mut Key<K>,
        Round { layout, prgs, .. }: Round,
        spare: &[K::Ring],
        _checked: bool,
        channel: &mut Channel,
    ) -> Result<(Self, ())> {
        let mut leaves = Self::memory(old, &layout);
        let (public, points) = ((layout.batch(), &prgs), Points::Chosen(&[]));
        let beta = K::key_shares(**x, spare, layout.batch().trees(), channel)?;
        reproduction::send_trees(public, points, &beta, &mut leaves, rng, ot, channel)?;
        Ok((Self::new(layout, leaves), ()))
    }
}

impl<K: Correlation> Setup<K, Value<K>> for Kept<K::Ring> {
    fn set_up(
        old: Option<Self>,
        Value { rng, ot, .. }: &mut Value<K>,
        Round { step, layout, prgs, .. }: Round,
        spare: &[K::Pair],
        _checked: bool,
        channel: &mut Channel,
    ) -> Result<(Self, Noise<K>)> {
        let places = sample_places(&layout, step.set.t, rng);
        let mut noise = Zeroizing::new(places.iter().map(|at| (*at, K::noise(rng))).collect());
        let assignment = layout.assign(&places);
        let Assignment { alphas, points, dropped } = &assignment;
        let value = |point: &Option<usize>| {
            let noise: &Vec<(usize, K::Base)> = &noise;
            point.map_or(K::EMPTY, |point| noise[point].1)
        };
        let values: Zeroizing<Vec<_>> = Zeroizing::new(points.iter().map(value).collect());
        let mut leaves = Self::memory(old, &layout);
        let (public, chosen) = ((layout.batch(), &prgs), Points::Chosen(alphas));
        let beta = K::value_shares(&values, spare, channel)?;
        let alphas = reproduction::receive_trees(public, chosen, &beta, &mut leaves, ot, channel)?;
        for point in dropped {
            noise[*point].1 = K::Base::ZERO;
        }
        Ok((Self::new(layout, leaves), Noise { alphas, values, points: noise }))
    }
}

/// Setup, step 1: the places of the noise, one in each block or anywhere, all different, in
/// ascending order.
fn sample_places(layout: &Layout, t: usize, rng: &mut Prg) -> Zeroizing<Vec<usize>> {
    let mut places = Zeroizing::new(Vec::with_capacity(t));
    if layout.is_regular() {
        places.extend((0..layout.batch().trees()).map(|block| {
            let places = layout.batch().leaves_of(block);
            places.start + rng.below(places.len() as u64) as usize
        }));
        return places;
    }
    let mut taken = Zeroizing::new(vec![0; bits::bytes_for(layout.n())]);
    while places.len() < t {
        let place = rng.below(layout.n() as u64) as usize;
        if !bits::bit(&taken, place) {
            bits::set(&mut taken, place, true);
            places.push(place);
        }
    }
    places.sort_unstable();
    places
}
