//! A party's shares of the noise vector (`r` or `m`), point after point.
//!
//! | noise | round | where the shares come from |
//! |---|---|---|
//! | regular | set up as a whole: checked, prepared, or on GGM trees | the leaves, kept in memory |
//! | regular | semi-honest, on half-trees | the trees that cover the points, grown (and their message exchanged) when the points are drawn |
//! | uniform | any | the leaves, kept in memory, the three of a point added up tile by tile |
//!
//! The bytes that the parties exchange, and their order within a direction, are the same in all cases.

use std::ops::Range;
use std::sync::Arc;

use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_primitives::pages::Buffer;

use crate::{forest::Forest, ggm::TreePrgs, mpfss::Layout, single};

/// Tiles that are added up at a time, each by a task of its own.
const TILES: usize = 2;

/// A party's half-trees, made a few at a time.
pub(super) trait Trees<R: Ring> {
    /// The trees that come next.
    fn next_run(&self, forest: &Forest) -> Option<Range<usize>>;
    /// Makes them, with their messages.
    fn make_next(
        &mut self,
        public: (&Forest, &TreePrgs),
        leaves: &mut [R],
        channel: &mut Channel,
    ) -> Result<()>;
}

impl<R: Ring> Trees<R> for single::Sender<R> {
    fn next_run(&self, forest: &Forest) -> Option<Range<usize>> {
        self.next_run(forest)
    }

    fn make_next(
        &mut self,
        public: (&Forest, &TreePrgs),
        leaves: &mut [R],
        channel: &mut Channel,
    ) -> Result<()> {
        self.grow_next(public, leaves, channel)
    }
}

impl<R: Ring> Trees<R> for single::Receiver<R> {
    fn next_run(&self, forest: &Forest) -> Option<Range<usize>> {
        self.next_run(forest)
    }

    fn make_next(
        &mut self,
        public: (&Forest, &TreePrgs),
        leaves: &mut [R],
        channel: &mut Channel,
    ) -> Result<()> {
        self.rebuild_next(public, leaves, channel)
    }
}

/// The shares of one round.
pub(super) struct Shares<R: Ring, T> {
    layout: Arc<Layout>,
    source: Source<R, T>,
    /// The shares at some points, where they are not the leaves in memory.
    window: Buffer<R>,
    /// These points.
    points: Range<usize>,
}

#[expect(clippy::large_enum_variant, reason = "there is one of it for a round")]
enum Source<R: Ring, T> {
    Leaves(Buffer<R>),
    Trees { trees: T, prgs: TreePrgs },
}

impl<R: Ring, T: Trees<R>> Shares<R, T> {
    /// From the leaves of all trees.
    pub(super) fn kept(layout: Arc<Layout>, leaves: Buffer<R>) -> Self {
        Self::new(layout, Source::Leaves(leaves))
    }

    /// From trees over blocks of the domain that are made as their points are drawn.
    pub(super) fn drawn(layout: Arc<Layout>, trees: T, prgs: TreePrgs) -> Self {
        Self::new(layout, Source::Trees { trees, prgs })
    }

    fn new(layout: Arc<Layout>, source: Source<R, T>) -> Self {
        Self {
            layout,
            source,
            window: Buffer::default(),
            points: 0..0,
        }
    }

    /// The memory of the leaves, to be used again.
    pub(super) fn into_leaves(self) -> Option<Buffer<R>> {
        match self.source {
            Source::Leaves(leaves) => Some(leaves),
            Source::Trees { .. } => None,
        }
    }

    /// Makes all trees now, so that no message is left to be exchanged.
    pub(super) fn make_all(&mut self, channel: &mut Channel) -> Result<()> {
        let Source::Trees { trees, prgs } = &mut self.source else {
            return Ok(());
        };
        let forest = self.layout.forest();
        let mut leaves = self.layout.leaves(None);
        let done = self.points.clone();
        leaves[done.clone()].copy_from_slice(&self.window[..done.len()]);
        while let Some(run) = trees.next_run(forest) {
            let leaves = &mut leaves[forest.leaves_of_run(&run)];
            trees.make_next((forest, prgs), leaves, channel)?;
        }
        self.source = Source::Leaves(leaves);
        Ok(())
    }

    /// The shares at some points from `first` on, at most `count` and at least one. Points are asked for in order.
    ///
    /// # Panics
    /// If `first` is outside the domain.
    ///
    /// # Errors
    /// If the channel fails, or the peer sent what is no element of the ring.
    pub(super) fn at(&mut self, first: usize, count: usize, channel: &mut Channel) -> Result<&[R]> {
        let forest = self.layout.forest();
        match &mut self.source {
            Source::Leaves(_) if self.layout.is_regular() => {}
            Source::Leaves(leaves) => {
                if !self.points.contains(&first) {
                    let size = self.layout.tile();
                    if self.window.is_empty() {
                        self.window = Buffer::zeroed(TILES * size);
                    }
                    let tile = first / size;
                    self.layout.add_up(leaves, tile, &mut self.window);
                    self.points = tile * size..(tile + TILES) * size;
                }
            }
            Source::Trees { trees, prgs } => {
                if !self.points.contains(&first) {
                    let run = trees.next_run(forest).expect("trees for all points");
                    let points = forest.leaves_of_run(&run);
                    if self.window.len() < points.len() {
                        self.window = Buffer::zeroed(points.len());
                    }
                    let window = &mut self.window[..points.len()];
                    trees.make_next((forest, prgs), window, channel)?;
                    self.points = points;
                }
            }
        }
        if let Source::Leaves(leaves) = &self.source
            && self.layout.is_regular()
        {
            return Ok(&leaves[first..first + count]);
        }
        let from = first - self.points.start;
        let to = self.points.len().min(from + count);
        Ok(&self.window[from..to])
    }
}
