//! The trees under every single-point correlation: GGM and the half-tree, with leaves in any ring.
//!
//! Goldreich, Goldwasser, Micali, *How to construct random functions*, J. ACM 1986; Protocol 2 of
//! the 2019 paper and Fig. 6 of Ferret, step 3. Half-trees: Guo, Yang, Wang, Zhang, Xie, Liu, Zhao,
//! *Half-Tree: Halving the Cost of Tree Expansion in COT and DPF*, ePrint 2022/1431.
//!
//! A tree with `n` leaves has depth `h = max(1, ceil(log2 n))`. Level 0 is the root, level `l`
//! holds `ceil(n / 2^(h-l))` nodes: a size that is not a power of two only leaves out nodes on the
//! right, without waste. (Half-trees are always complete.) The nodes of levels `0..h` are 128-bit
//! seeds; node `j` has the children `2j` and `2j + 1`. With `H(s) = AES(o(s)) + o(s)`, `o` the
//! orthomorphism of [`volery_primitives::hash::Circular`]:
//!
//! ```text
//!                   inner levels                 last level, 128-bit   last level, 64-bit rings
//! Ggm               AES_0(s) + s | AES_1(s) + s  as the inner levels   AES_0(s) + s, a word a leaf
//! Correlated        H(s) | s + H(s)              as the inner levels   -
//! PseudoCorrelated  H(s) | s + H(s)              H(s) | H(s + 1)       H(s), a word a leaf
//! ```
//!
//! A half-tree has no root: level 1 is `s | s + delta`. As two children add up to their parent,
//! every level adds up to `delta`, as a correlated OT requires of its leaves. For a vector-OLE this
//! would be insecure: there the sum of the leaves is sent under a mask that the other party can
//! remove, and `delta` would follow. So its last level is hashed.
//!
//! The AES keys are public and differ for every tree of every session ([`TreePrg`]): work spent on
//! guessing the seeds of one tree does not help with the next (multi-instance security in the
//! ideal-cipher model). Within a tree the at most `h` unknown seeds of a punctured path share the
//! keys, which costs `log2 h` of the 128 bits.
//!
//! The *level sums* of a tree are, for each level, the sum of its left children and the sum of its
//! right children: XOR on the seed levels, addition in the ring on the leaves. A party that knows,
//! for each level, the sum of the side that the path to leaf `alpha` does *not* take, can rebuild
//! every leaf except `alpha` ([`expand_punctured`]).
//!
//! AES calls per leaf:
//!
//! | | 64-bit ring | 128-bit ring |
//! |---|---|---|
//! | Ggm | 1.5 | 2 |
//! | Correlated | - | 1 |
//! | PseudoCorrelated | 1 | 1.5 |

mod deep;
mod prg;

pub use prg::{Growth, TreePrg, TreePrgs};

use std::mem::take;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use volery_field::Ring;
use volery_primitives::{Block, pages::Buffer};
use zeroize::Zeroize;

/// The shape of one tree: its number of leaves, and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    leaves: usize,
    depth: u32,
}

impl Shape {
    /// A tree with `leaves` leaves.
    ///
    /// # Panics
    /// If `leaves` is 0 or above 2^40.
    #[must_use]
    pub fn new(leaves: usize) -> Self {
        assert!((1..=1 << 40).contains(&(leaves as u64)), "a tree has 1 to 2^40 leaves");
        Self { leaves, depth: leaves.next_power_of_two().ilog2().max(1) }
    }

    /// Number of leaves, `n`.
    #[must_use]
    pub fn leaves(self) -> usize {
        self.leaves
    }

    /// Depth `h`: the number of levels below the root, at least 1.
    #[must_use]
    pub fn depth(self) -> u32 {
        self.depth
    }

    /// Number of nodes on level `level`, `0..=h`.
    #[must_use]
    pub fn width(self, level: u32) -> usize {
        self.leaves.div_ceil(1 << (self.depth - level))
    }

    /// The bit by which the path to leaf `alpha` goes from level `level - 1` to `level`, for
    /// `level` in `1..=h`.
    #[must_use]
    pub fn path_bit(self, alpha: usize, level: u32) -> usize {
        (alpha >> (self.depth - level)) & 1
    }
}

/// Working memory of an expansion, reused from tree to tree; wiped when dropped.
#[derive(Default)]
pub struct Scratch {
    nodes: Buffer<Block>,
    next: Buffer<Block>,
}

impl Scratch {
    fn resize(&mut self, shape: Shape) {
        self.reserve_levels(shape.width(shape.depth - 1));
    }

    /// Memory for a level of `width` nodes, and for the one above or below it.
    fn reserve_levels(&mut self, width: usize) {
        if self.nodes.len() < width {
            self.nodes = Buffer::zeroed(width);
            self.next = Buffer::zeroed(width);
        }
    }
}

/// Memory for concurrent expansions: each takes one, and returns it.
#[derive(Default)]
pub(crate) struct Scratches(Mutex<Vec<Scratch>>);

/// One of [`Scratches`], while in use.
pub(crate) struct ScratchGuard<'a> {
    to: &'a Scratches,
    scratch: Scratch,
}

impl Scratches {
    /// An unused one.
    pub(crate) fn take(&self) -> ScratchGuard<'_> {
        let scratch = self.lock().pop().unwrap_or_default();
        ScratchGuard { to: self, scratch }
    }

    /// Also after a panic elsewhere: their content is never read.
    fn lock(&self) -> MutexGuard<'_, Vec<Scratch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for ScratchGuard<'_> {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.scratch
    }
}

impl DerefMut for ScratchGuard<'_> {
    fn deref_mut(&mut self) -> &mut Scratch {
        &mut self.scratch
    }
}

impl Drop for ScratchGuard<'_> {
    fn drop(&mut self) {
        self.to.lock().push(take(&mut self.scratch));
    }
}

/// The level sums of a tree: `inner[l - 1]` for the seed levels `l = 1..h`, then `leaf`; each
/// `[left, right]`.
#[derive(Clone)]
pub struct LevelSums<R: Ring> {
    /// Levels `1..h`.
    pub inner: Vec<[Block; 2]>,
    /// Level `h`.
    pub leaf: [R; 2],
}

/// Protocol 2, step 2, and `ROT.Expand` for P1: all leaves of the tree under `root`, and its level
/// sums.
///
/// In a half-tree `root` is the left node of level 1, and `delta` the sum of each level; GGM trees
/// ignore it.
///
/// # Panics
/// If `leaves.len()` differs from the shape's, or a half-tree is not complete.
pub fn expand<R: Ring>(
    prg: &TreePrg,
    shape: Shape,
    root: Block,
    delta: Block,
    leaves: &mut [R],
    scratch: &mut Scratch,
) -> LevelSums<R> {
    assert_eq!(leaves.len(), shape.leaves, "one place for each leaf");
    if shape.depth >= deep::FROM {
        return deep::expand(prg, shape, root, delta, leaves, scratch);
    }
    scratch.resize(shape);
    scratch.nodes[0] = root;
    let mut inner = Vec::with_capacity(shape.depth as usize - 1);
    for level in 1..shape.depth {
        let (parents, children) = (shape.width(level - 1), shape.width(level));
        inner.push(prg.level(
            level,
            delta,
            &scratch.nodes[..parents],
            &mut scratch.next[..children],
        ));
        std::mem::swap(&mut scratch.nodes, &mut scratch.next);
    }
    let parents = shape.width(shape.depth - 1);
    let leaf = prg.last_level(shape.depth, delta, &scratch.nodes[..parents], leaves);
    LevelSums { inner, leaf }
}

/// The output of P2 in step 4 of Protocol 2: on each level, the sum of the side that the path to
/// `alpha` does not take.
#[derive(Clone)]
pub struct PuncturedSums<R: Ring> {
    /// The leaf whose value stays unknown.
    pub alpha: usize,
    /// `q_l` for the seed levels `l = 1..h`.
    pub inner: Vec<Block>,
    /// `q_h`, in the ring.
    pub leaf: R,
}

impl<R: Ring> Drop for LevelSums<R> {
    fn drop(&mut self) {
        self.inner.as_flattened_mut().zeroize();
        self.leaf.zeroize();
    }
}

impl<R: Ring> Drop for PuncturedSums<R> {
    fn drop(&mut self) {
        self.alpha.zeroize();
        self.inner.zeroize();
        self.leaf.zeroize();
    }
}

/// `ROT.Expand` for P2: every leaf except `alpha`, which is set to zero. Returns the sum of the
/// leaves; where the tree clears bits of its leaves, those bits of the sum are arbitrary.
///
/// The expansion runs over the path's nodes with a zero in their place, so that its course does not
/// depend on `alpha`, and the contribution of the zero is removed from the sums again. `alpha`
/// indexes the memory of the party that chose it.
///
/// # Panics
/// If `leaves.len()` differs from the shape's, `alpha` is not a leaf, or `sums` does not have one
/// value for each level.
pub fn expand_punctured<R: Ring>(
    prg: &TreePrg,
    shape: Shape,
    sums: &PuncturedSums<R>,
    leaves: &mut [R],
    scratch: &mut Scratch,
) -> R {
    assert_eq!(sums.inner.len() + 1, shape.depth as usize, "a sum for each level");
    assert_eq!(leaves.len(), shape.leaves, "one place for each leaf");
    assert!(sums.alpha < shape.leaves, "alpha is a leaf");
    if shape.depth >= deep::FROM {
        return deep::expand_punctured(prg, shape, sums, leaves, scratch);
    }
    scratch.resize(shape);
    scratch.nodes[0] = Block::ZERO;
    for (level, opened) in (1..).zip(&sums.inner) {
        let (parents, width) = (shape.width(level - 1), shape.width(level));
        let children = &mut scratch.next[..width];
        let all = prg.level(level, Block::ZERO, &scratch.nodes[..parents], children);
        open_level(children, sums.alpha >> (shape.depth - level), all, *opened);
        std::mem::swap(&mut scratch.nodes, &mut scratch.next);
    }
    let parents = shape.width(shape.depth - 1);
    let all = prg.last_level(shape.depth, Block::ZERO, &scratch.nodes[..parents], leaves);
    open_leaf(prg, leaves, sums.alpha, all, sums.leaf)
}

/// Removes the contribution of a zero from a level whose node `path` is on the way to alpha, and
/// puts the path's sibling, if the tree has one, into its place. `sums` are those of the level,
/// including the children of the zero; `opened` is the one that P2 knows.
#[inline(always)]
fn open_level(children: &mut [Block], path: usize, sums: [Block; 2], opened: Block) {
    children[path] = Block::ZERO;
    let (sibling, there) = sibling(path, children.len());
    // Without one, the path's own zero stands for it.
    let known = sums[1 - (path & 1)] ^ children[sibling];
    children[sibling] = Block::conditional_select(&Block::ZERO, &(opened ^ known), there);
}

/// Does for the leaves what [`open_level`] does for a level. Returns the sum of all leaves in
/// `sums`, except `alpha`.
#[inline(always)]
fn open_leaf<R: Ring>(prg: &TreePrg, leaves: &mut [R], alpha: usize, sums: [R; 2], opened: R) -> R {
    let (sibling, there) = sibling(alpha, leaves.len());
    let mut total = sums[0] + sums[1] - leaves[alpha];
    leaves[alpha] = R::ZERO;
    let known = sums[1 - (alpha & 1)] - leaves[sibling];
    let value = prg.cleared(R::conditional_select(&R::ZERO, &(opened - known), there));
    total += value - leaves[sibling];
    leaves[sibling] = value;
    total
}

/// The number of the sibling of node `node` on a level of `width` nodes, and whether it exists;
/// otherwise the number of the node itself.
fn sibling(node: usize, width: usize) -> (usize, Choice) {
    let (node, sibling) = (node as u64, node as u64 ^ 1);
    let there = sibling.ct_ne(&(width as u64));
    (u64::conditional_select(&node, &sibling, there) as usize, there)
}

#[cfg(test)]
mod tests;
