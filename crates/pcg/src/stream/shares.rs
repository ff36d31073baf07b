//! A party's shares of the noise vector (`r` or `m`), point after point.
//!
//! The trees lie over the points. Those of a semi-honest round are expanded, and their messages
//! exchanged, when the points are drawn. All messages of a checked or prepared round have been
//! exchanged before; its trees are expanded again. That takes less time, in the cache, than writing
//! the leaves to memory and reading them twice, and leaves the shared cache to the table of the
//! code.
//!
//! The bytes that the parties exchange, and their order within a direction, are the same in all
//! cases.

use std::ops::Range;
use std::sync::Arc;

use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_primitives::pages::Buffer;

use super::{party::Party, rounds::Round};
use crate::{
    correlation::Correlation,
    ggm::TreePrgs,
    mpcot::Layout,
    spcot::Exchange,
    tree_batch::{TreeBatch, window_of},
};

/// Leaves that are expanded again at a time for a thread: few, because they share the second-level
/// cache with the table of the code.
pub(super) const LEAVES_AGAIN: usize = 1 << 13;

/// The shares of one round.
pub(crate) trait Shares {
    /// The ring of the shares.
    type Ring: Ring;

    /// Exchanges the messages of all remaining trees now.
    fn exchange_all(&mut self, channel: &mut Channel) -> Result<()>;

    /// The shares at some points from `first` on, at most `count` and at least one. Points are
    /// requested in order.
    fn at(&mut self, first: usize, count: usize, channel: &mut Channel) -> Result<&[Self::Ring]>;

    /// Calls `look` with runs of trees and their leaves, which together make up the whole, and with
    /// whether the leaves are expanded for this call and are the shares at as many points.
    fn for_each_run(
        &mut self,
        batch: &TreeBatch,
        look: impl FnMut(Range<usize>, &[Self::Ring], bool),
    );
}

/// Shares that the setup of a round makes for a party.
pub(crate) trait Setup<K: Correlation, P: Party<K>>:
    Shares<Ring = K::Ring> + Sized + Send
{
    /// Setup, steps 1 and 2, of a round, after that of the `old` shares. Of a `checked` round all
    /// messages of the trees are exchanged now.
    fn set_up(
        old: Option<Self>,
        party: &mut P,
        round: Round,
        spare: &[P::Entry],
        checked: bool,
        channel: &mut Channel,
    ) -> Result<(Self, P::Noise)>;
}

/// Shares from trees that are expanded as their points are drawn.
pub(crate) struct Drawn<R: Ring, E: Exchange<R>> {
    layout: Arc<Layout>,
    prgs: TreePrgs,
    trees: E::Trees,
    /// For the trees whose messages are exchanged when they are drawn.
    left: Option<E>,
    /// The shares at some points.
    window: Buffer<R>,
    /// These points.
    points: Range<usize>,
}

impl<K: Correlation, P: Party<K>> Setup<K, P> for Drawn<K::Ring, P::Exchange> {
    fn set_up(
        _old: Option<Self>,
        party: &mut P,
        Round { layout, prgs, .. }: Round,
        spare: &[P::Entry],
        checked: bool,
        channel: &mut Channel,
    ) -> Result<(Self, P::Noise)> {
        let public = (layout.batch(), &prgs);
        let (trees, left, noise) = party.begin(public, spare, checked, channel)?;
        let (left, window) = (Some(left), Buffer::default());
        let mut shares = Self { layout, prgs, trees, left, window, points: 0..0 };
        if checked {
            shares.exchange_all(channel)?;
        }
        Ok((shares, noise))
    }
}

impl<R: Ring, E: Exchange<R>> Shares for Drawn<R, E> {
    type Ring = R;

    fn exchange_all(&mut self, channel: &mut Channel) -> Result<()> {
        let public = (self.layout.batch(), &self.prgs);
        let left = self.left.take();
        left.map_or(Ok(()), |left| left.finish(&mut self.trees, public, channel))
    }

    fn at(&mut self, first: usize, count: usize, channel: &mut Channel) -> Result<&[R]> {
        if !self.points.contains(&first) {
            let batch = self.layout.batch();
            let public = (batch, &self.prgs);
            let run = match &self.left {
                Some(left) => left.next_run(batch).expect("trees for all points"),
                None => again(batch, batch.tree_of(first)),
            };
            self.points = batch.leaves_of_run(&run);
            let window = window_of(&mut self.window, self.points.len());
            match &mut self.left {
                Some(left) => left.make(&mut self.trees, public, run, window, channel)?,
                None => E::expand(&self.trees, public, run, window),
            }
        }
        let from = first - self.points.start;
        Ok(&self.window[from..self.points.len().min(from + count)])
    }

    fn for_each_run(&mut self, batch: &TreeBatch, mut look: impl FnMut(Range<usize>, &[R], bool)) {
        assert!(self.left.is_none(), "all messages of the trees have been exchanged");
        self.points = 0..0;
        let mut next = 0;
        while next < batch.trees() {
            let run = again(batch, next);
            next = run.end;
            let window = window_of(&mut self.window, batch.leaves_of_run(&run).len());
            E::expand(&self.trees, (batch, &self.prgs), run.clone(), window);
            look(run, window, true);
        }
    }
}

/// The trees from `first` on that are expanded again at once.
fn again(batch: &TreeBatch, first: usize) -> Range<usize> {
    // With several threads, enough for each to be busy for longer than its wake-up takes.
    let threads = rayon::current_num_threads();
    let share = if threads == 1 { 1 } else { 4 * threads };
    batch.run_from(first, share * LEAVES_AGAIN)
}
