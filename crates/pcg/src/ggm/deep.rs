//! Trees too large for a cache: expanded breadth first down to the roots of subtrees, and then one
//! subtree after the other.
//!
//! The output is that of [`super::expand`] and [`super::expand_punctured`], in the same order.
//! Memory in addition to the leaves is that of two levels of a subtree and of the subtrees' roots,
//! a small part of the leaves', and all passes except the one over the leaves stay in the
//! second-level cache.
//!
//! P2 knows no node on the way to `alpha`, so the subtree with `alpha` comes last: each of its
//! levels is opened by the sum over that level of the whole tree, to which all other subtrees have
//! contributed by then.

use subtle::{ConditionallySelectable, ConstantTimeEq};
use volery_field::Ring;
use volery_primitives::Block;
use zeroize::Zeroizing;

use super::{LevelSums, PuncturedSums, Scratch, Shape, TreePrg, open_leaf, open_level};

/// Levels of a subtree: 2^12 blocks of the widest level twice are 128 KiB.
pub(super) const SUBTREE: u32 = 13;

/// The depth from which on a tree is expanded in subtrees.
pub(super) const FROM: u32 = SUBTREE + 3;

/// The subtree whose leaves are `leaves` of them.
fn subtree(leaves: usize) -> Shape {
    Shape { leaves, depth: SUBTREE }
}

/// Expands one subtree from its root, and adds its level sums to those of the tree: `inner[l - 1]`
/// is that of its level `l`.
fn grow<R: Ring>(
    prg: &TreePrg,
    top: u32,
    root: Block,
    leaves: &mut [R],
    scratch: &mut Scratch,
    inner: &mut [[Block; 2]],
    leaf: &mut [R; 2],
) {
    let shape = subtree(leaves.len());
    scratch.nodes[0] = root;
    for level in 1..SUBTREE {
        let (parents, children) = (shape.width(level - 1), shape.width(level));
        let nodes = &scratch.nodes[..parents];
        let next = &mut scratch.next[..children];
        let sums = prg.level(top + level, Block::ZERO, nodes, next);
        for (all, sum) in inner[level as usize - 1].iter_mut().zip(sums) {
            *all ^= sum;
        }
        std::mem::swap(&mut scratch.nodes, &mut scratch.next);
    }
    let parents = &scratch.nodes[..shape.width(SUBTREE - 1)];
    let sums = prg.last_level(top + SUBTREE, Block::ZERO, parents, leaves);
    for (all, sum) in leaf.iter_mut().zip(sums) {
        *all += sum;
    }
}

/// Expands a deep tree for [`super::expand`].
pub(super) fn expand<R: Ring>(
    prg: &TreePrg,
    shape: Shape,
    root: Block,
    delta: Block,
    leaves: &mut [R],
    scratch: &mut Scratch,
) -> LevelSums<R> {
    let top = shape.depth - SUBTREE;
    scratch.reserve_levels(shape.width(top).max(1 << (SUBTREE - 1)));
    scratch.nodes[0] = root;
    let mut inner = Vec::with_capacity(shape.depth as usize - 1);
    for level in 1..=top {
        let (parents, children) = (shape.width(level - 1), shape.width(level));
        let nodes = &scratch.nodes[..parents];
        inner.push(prg.level(level, delta, nodes, &mut scratch.next[..children]));
        std::mem::swap(&mut scratch.nodes, &mut scratch.next);
    }
    let roots = Zeroizing::new(scratch.nodes[..shape.width(top)].to_vec());
    inner.resize(shape.depth as usize - 1, [Block::ZERO; 2]);
    let mut leaf = [R::ZERO; 2];
    let below = &mut inner[top as usize..];
    for (root, leaves) in roots.iter().zip(leaves.chunks_mut(1 << SUBTREE)) {
        grow(prg, top, *root, leaves, scratch, below, &mut leaf);
    }
    LevelSums { inner, leaf }
}

/// Expands a deep tree for [`super::expand_punctured`]. The course does not depend on `alpha`: the
/// subtree with it is expanded from zero with the others, and then once more.
pub(super) fn expand_punctured<R: Ring>(
    prg: &TreePrg,
    shape: Shape,
    sums: &PuncturedSums<R>,
    leaves: &mut [R],
    scratch: &mut Scratch,
) -> R {
    let alpha = sums.alpha;
    let top = shape.depth - SUBTREE;
    scratch.reserve_levels(shape.width(top).max(1 << (SUBTREE - 1)));
    scratch.nodes[0] = Block::ZERO;
    for level in 1..=top {
        let (parents, width) = (shape.width(level - 1), shape.width(level));
        let children = &mut scratch.next[..width];
        let all = prg.level(level, Block::ZERO, &scratch.nodes[..parents], children);
        let path = alpha >> (shape.depth - level);
        open_level(children, path, all, sums.inner[level as usize - 1]);
        std::mem::swap(&mut scratch.nodes, &mut scratch.next);
    }
    let roots = Zeroizing::new(scratch.nodes[..shape.width(top)].to_vec());
    let at = alpha >> SUBTREE;
    let mut others =
        LevelSums { inner: vec![[Block::ZERO; 2]; SUBTREE as usize - 1], leaf: [R::ZERO; 2] };
    for (j, (root, leaves)) in roots.iter().zip(leaves.chunks_mut(1 << SUBTREE)).enumerate() {
        let mut own =
            LevelSums { inner: vec![[Block::ZERO; 2]; SUBTREE as usize - 1], leaf: [R::ZERO; 2] };
        let LevelSums { inner, leaf } = &mut own;
        grow(prg, top, *root, leaves, scratch, inner, leaf);
        let other = (j as u64).ct_ne(&(at as u64));
        for (all, own) in others.inner.iter_mut().zip(&own.inner) {
            for (all, own) in all.iter_mut().zip(own) {
                *all ^= Block::conditional_select(&Block::ZERO, own, other);
            }
        }
        for (all, own) in others.leaf.iter_mut().zip(&own.leaf) {
            *all += R::conditional_select(&R::ZERO, own, other);
        }
    }
    let alpha = alpha & ((1 << SUBTREE) - 1);
    let leaves = &mut leaves[at << SUBTREE..];
    let count = leaves.len().min(1 << SUBTREE);
    let leaves = &mut leaves[..count];
    let shape = subtree(count);
    scratch.nodes[0] = Block::ZERO;
    for level in 1..SUBTREE {
        let (parents, width) = (shape.width(level - 1), shape.width(level));
        let children = &mut scratch.next[..width];
        let nodes = &scratch.nodes[..parents];
        let mut all = prg.level(top + level, Block::ZERO, nodes, children);
        for (sum, other) in all.iter_mut().zip(&others.inner[level as usize - 1]) {
            *sum ^= *other;
        }
        let path = alpha >> (SUBTREE - level);
        open_level(children, path, all, sums.inner[(top + level) as usize - 1]);
        std::mem::swap(&mut scratch.nodes, &mut scratch.next);
    }
    let parents = &scratch.nodes[..shape.width(SUBTREE - 1)];
    let mut all = prg.last_level(top + SUBTREE, Block::ZERO, parents, leaves);
    for (sum, other) in all.iter_mut().zip(&others.leaf) {
        *sum += *other;
    }
    open_leaf(prg, leaves, alpha, all, sums.leaf)
}
