//! A party's shares of the noise vector (`r` or `m`), point after point.
//!
//! | noise | round | source of the shares |
//! |---|---|---|
//! | regular | on half-trees, semi-honest | the trees over the points, expanded (and their message exchanged) when the points are drawn |
//! | regular | on half-trees, checked or prepared | the same, expanded again: all messages have been exchanged before |
//! | regular | on GGM trees | the leaves, kept in memory |
//! | uniform | any | the leaves, kept in memory, the three of a point added up tile by tile |
//!
//! Expanding a tree again in the cache takes less time than writing its leaves to memory and
//! reading them twice, and leaves the shared cache to the table of the code.
//!
//! The bytes that the parties exchange, and their order within a direction, are the same in all
//! cases.

use std::ops::Range;
use std::sync::Arc;

use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_primitives::pages::Buffer;

use crate::{
    ggm::TreePrgs,
    mpcot::Layout,
    spcot::{Trees, window_of},
    tree_batch::TreeBatch,
};

/// Leaves that are expanded again at a time for a thread: few, because they share the second-level
/// cache with the table of the code.
pub(super) const LEAVES_AGAIN: usize = 1 << 13;

/// The shares of one round.
pub(super) struct Shares<R: Ring, T> {
    layout: Arc<Layout>,
    source: Source<R, T>,
    /// The shares at some points, unless they are the leaves in memory.
    window: Buffer<R>,
    /// These points.
    points: Range<usize>,
}

#[expect(clippy::large_enum_variant, reason = "a round has one of these")]
enum Source<R: Ring, T> {
    Leaves(Buffer<R>),
    Trees {
        trees: T,
        prgs: TreePrgs,
        /// The messages of the trees from this one on are exchanged when they are drawn.
        exchanged: bool,
    },
}

impl<R: Ring, T: Trees<R>> Shares<R, T> {
    /// From the leaves of all trees.
    pub(super) fn kept(layout: Arc<Layout>, leaves: Buffer<R>) -> Self {
        Self::new(layout, Source::Leaves(leaves))
    }

    /// From trees over blocks of the domain that are expanded as their points are drawn.
    pub(super) fn drawn(layout: Arc<Layout>, trees: T, prgs: TreePrgs) -> Self {
        let exchanged = false;
        Self::new(layout, Source::Trees { trees, prgs, exchanged })
    }

    fn new(layout: Arc<Layout>, source: Source<R, T>) -> Self {
        Self { layout, source, window: Buffer::default(), points: 0..0 }
    }

    /// The memory of the leaves, for reuse.
    pub(super) fn into_leaves(self) -> Option<Buffer<R>> {
        match self.source {
            Source::Leaves(leaves) => Some(leaves),
            Source::Trees { .. } => None,
        }
    }

    /// Exchanges the messages of all remaining trees now.
    pub(super) fn exchange_all(&mut self, channel: &mut Channel) -> Result<()> {
        if let Source::Trees { trees, prgs, exchanged } = &mut self.source
            && !*exchanged
        {
            trees.exchange((self.layout.batch(), prgs), channel)?;
            *exchanged = true;
        }
        Ok(())
    }

    /// The shares at some points from `first` on, at most `count` and at least one. Points are
    /// requested in order.
    pub(super) fn at(&mut self, first: usize, count: usize, channel: &mut Channel) -> Result<&[R]> {
        let batch = self.layout.batch();
        match &mut self.source {
            Source::Leaves(_) if self.layout.is_regular() => {}
            Source::Leaves(leaves) => {
                if !self.points.contains(&first) {
                    let size = self.layout.tile();
                    if self.window.is_empty() {
                        // A tile for each task.
                        self.window = Buffer::zeroed(rayon::current_num_threads() * size);
                    }
                    let start = first / size * size;
                    self.layout.add_up(leaves, start / size, &mut self.window);
                    self.points = start..start + self.window.len();
                }
            }
            Source::Trees { trees, prgs, exchanged } => {
                if !self.points.contains(&first) {
                    let run = if *exchanged {
                        again(batch, batch.tree_of(first))
                    } else {
                        trees.next_run(batch).expect("trees for all points")
                    };
                    let points = batch.leaves_of_run(&run);
                    let window = window_of(&mut self.window, points.len());
                    if *exchanged {
                        trees.make_again((batch, prgs), run, window);
                    } else {
                        trees.make((batch, prgs), run, window, channel)?;
                    }
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

    /// Calls `look` with runs of trees and their leaves, which together make up the whole, and with
    /// whether the leaves are expanded for this call and are the shares at as many points.
    pub(super) fn for_each_run(
        &mut self,
        batch: &TreeBatch,
        mut look: impl FnMut(Range<usize>, &[R], bool),
    ) {
        match &self.source {
            Source::Leaves(leaves) => look(0..batch.trees(), leaves, false),
            Source::Trees { trees, prgs, exchanged } => {
                assert!(exchanged, "all messages of the trees have been exchanged");
                self.points = 0..0;
                let mut next = 0;
                while next < batch.trees() {
                    let run = again(batch, next);
                    next = run.end;
                    let window = window_of(&mut self.window, batch.leaves_of_run(&run).len());
                    trees.make_again((batch, prgs), run.clone(), window);
                    look(run, window, true);
                }
            }
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
