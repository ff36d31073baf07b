//! Many trees side by side: the place of the leaves of each tree in one vector, and the levels of
//! all trees.

use std::ops::Range;

use bytemuck::Zeroable;
use volery_primitives::pages::Buffer;

use crate::ggm::Shape;

/// Leaves that P1 expands before it sends the message about them: P2 works on them while P1 expands
/// the next. Small enough for the second-level cache. Both parties use the same number, because it
/// determines the messages.
pub(crate) const LEAVES_AT_ONCE: usize = 1 << 15;

/// The shapes of a batch of trees with consecutive leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeBatch {
    /// `starts[j]..starts[j + 1]` are the leaves of tree `j`.
    starts: Vec<usize>,
    /// `levels[j]..levels[j + 1]` are the numbers of its levels, and of its OTs in Protocol 2.
    levels: Vec<usize>,
}

impl TreeBatch {
    /// Trees of the given sizes.
    ///
    /// # Panics
    /// If a size is 0 or above 2^40.
    #[must_use]
    pub fn new(sizes: impl IntoIterator<Item = usize>) -> Self {
        let (mut starts, mut levels) = (vec![0], vec![0]);
        let (mut start, mut level) = (0, 0);
        for size in sizes {
            start += size;
            level += Shape::new(size).depth() as usize;
            starts.push(start);
            levels.push(level);
        }
        Self { starts, levels }
    }

    /// `trees` trees of `size` leaves each.
    ///
    /// # Panics
    /// If `size` is 0 or above 2^40.
    #[must_use]
    pub fn regular(trees: usize, size: usize) -> Self {
        Self::new(std::iter::repeat_n(size, trees))
    }

    /// Number of trees.
    #[must_use]
    pub fn trees(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of leaves of all trees together.
    #[must_use]
    pub fn leaves(&self) -> usize {
        self.starts[self.trees()]
    }

    /// Number of levels of all trees together: the OTs of Protocol 2.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels[self.trees()]
    }

    /// The shape of tree `tree`.
    #[must_use]
    pub fn shape(&self, tree: usize) -> Shape {
        Shape::new(self.leaves_of(tree).len())
    }

    /// The places of the leaves of tree `tree`.
    #[must_use]
    pub fn leaves_of(&self, tree: usize) -> Range<usize> {
        self.starts[tree]..self.starts[tree + 1]
    }

    /// The numbers of the levels of tree `tree`.
    #[must_use]
    pub fn levels_of(&self, tree: usize) -> Range<usize> {
        self.levels[tree]..self.levels[tree + 1]
    }

    /// The trees' parts of a vector with one element for each leaf, and of one with one element for
    /// each level.
    pub(crate) fn split<'a, L, S>(
        &self,
        leaves: &'a mut [L],
        levels: &'a mut [S],
    ) -> Vec<Part<'a, L, S>> {
        self.split_run(0..self.trees(), leaves, levels)
    }

    /// Splits like [`split`](Self::split), for a run of trees and vectors of only their leaves and
    /// levels.
    pub(crate) fn split_run<'a, L, S>(
        &self,
        trees: Range<usize>,
        mut leaves: &'a mut [L],
        mut levels: &'a mut [S],
    ) -> Vec<Part<'a, L, S>> {
        let (all_leaves, all_levels) = (self.leaves_of_run(&trees), self.levels_of_run(&trees));
        assert_eq!(leaves.len(), all_leaves.len(), "one place for each leaf");
        assert_eq!(levels.len(), all_levels.len(), "one place for each level");
        let mut parts = Vec::with_capacity(trees.len());
        for tree in trees {
            let (head, rest) = leaves.split_at_mut(self.leaves_of(tree).len());
            leaves = rest;
            let (sums, rest) = levels.split_at_mut(self.levels_of(tree).len());
            levels = rest;
            parts.push(Part { tree, shape: self.shape(tree), leaves: head, levels: sums });
        }
        parts
    }

    /// The places of the leaves of a run of trees.
    #[must_use]
    pub fn leaves_of_run(&self, trees: &Range<usize>) -> Range<usize> {
        self.starts[trees.start]..self.starts[trees.end]
    }

    /// The tree of the leaf at `place`.
    ///
    /// # Panics
    /// If the batch does not have this leaf.
    #[must_use]
    pub fn tree_of(&self, place: usize) -> usize {
        assert!(place < self.leaves(), "a leaf of the batch");
        self.starts.partition_point(|start| *start <= place) - 1
    }

    /// The numbers of the levels of a run of trees.
    #[must_use]
    pub fn levels_of_run(&self, trees: &Range<usize>) -> Range<usize> {
        self.levels[trees.start]..self.levels[trees.end]
    }

    /// The trees from `first` on with about `leaves` leaves together: the last one reaches that
    /// number, or is the last of the batch.
    #[must_use]
    pub fn run_from(&self, first: usize, leaves: usize) -> Range<usize> {
        let enough = self.starts[first] + leaves;
        let end = self.starts.partition_point(|start| *start < enough);
        first..end.min(self.trees())
    }
}

/// The first `len` places of a window, which grows if it has fewer.
pub(crate) fn window_of<T: Copy + Zeroable>(window: &mut Buffer<T>, len: usize) -> &mut [T] {
    if window.len() < len {
        *window = Buffer::zeroed(len);
    }
    &mut window[..len]
}

/// One tree's part of the vectors of a batch.
pub(crate) struct Part<'a, L, S> {
    pub(crate) tree: usize,
    pub(crate) shape: Shape,
    pub(crate) leaves: &'a mut [L],
    pub(crate) levels: &'a mut [S],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        let batch = TreeBatch::new([5, 1, 8, 3]);
        assert_eq!((batch.trees(), batch.leaves(), batch.levels()), (4, 17, 3 + 1 + 3 + 2));
        let (mut leaves, mut levels) = (vec![0; 17], vec![0; 9]);
        for part in batch.split(&mut leaves, &mut levels) {
            assert_eq!(part.shape, batch.shape(part.tree));
            part.leaves.fill(part.tree + 1);
            part.levels.fill(part.tree + 1);
        }
        assert_eq!(leaves, [1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4]);
        assert_eq!(levels, [1, 1, 1, 2, 3, 3, 3, 4, 4]);
        let trees: Vec<_> = (0..17).map(|leaf| batch.tree_of(leaf) + 1).collect();
        assert_eq!(trees, leaves);
        assert_eq!(batch.run_from(0, 1), 0..1);
        assert_eq!(batch.run_from(0, 5), 0..1);
        assert_eq!(batch.run_from(0, 6), 0..2);
        assert_eq!(batch.run_from(1, 9), 1..3);
        assert_eq!(batch.run_from(2, 100), 2..4);
        assert_eq!(batch.run_from(4, 1), 4..4);
        assert_eq!(batch.leaves_of_run(&(1..3)), 5..14);
        assert_eq!(batch.levels_of_run(&(1..3)), 3..7);
        assert_eq!(TreeBatch::regular(3, 4), TreeBatch::new([4, 4, 4]));
        assert_eq!(TreeBatch::new([]).leaves(), 0);
    }
}
