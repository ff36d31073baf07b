//! GGM trees of higher arity, and the protocols on them: a node has 2, 4, 8 or 16 children.
//!
//! The streams of volery have binary trees. The 2019 paper conjectures in its conclusion that a
//! higher arity gains efficiency: these are Protocols 2 and 3 with any arity, to measure it
//! (`volery-bench paper dvole-arity`).
//!
//! | module | protocol |
//! |---|---|
//! | [`all_but_one`] | (k-1)-out-of-k OT |
//! | [`punctured_ot`] | Protocol 2: (n-1)-out-of-n random OT |
//! | [`spfss`] | Protocol 3: known-index SPFSS |
//!
//! The trees are step 2 of Protocol 2, with a PRG of stretch k. A tree of arity `k = 2^c` over `n`
//! leaves is the binary tree of [`ggm::Shape`], of depth `h`, with levels left out: it has `L =
//! ceil(h / c)` levels, each of which takes `c` bits of a leaf's number, except the first, which
//! takes the remaining bits (there it costs least). So level `l` holds `ceil(n / 2^(c(L-l)))`
//! nodes: a size that is not a power of `k` only leaves out nodes on the right, and no missing node
//! is computed, beyond the second of a pair. The children of a node with the seed `s`:
//!
//! ```text
//! inner levels; the last in 128-bit rings  AES_0(s) + s | AES_1(s) + s | .. | AES_(k-1)(s) + s
//! last level, 64-bit rings                 AES_0(s) + s | .. | AES_(k/2-1)(s) + s, a word a leaf
//! ```
//!
//! The keys are public and differ for every tree of every session, as in [`ggm`].
//!
//! The *level sums* are, for each level and each digit `j`, the sum of the nodes that are child `j`
//! of their parent: XOR on the seed levels, addition in the ring on the leaves (as messages of an
//! OT, 16 bytes each). A party that knows on each level all sums except the one of alpha's digit
//! can rebuild every leaf except alpha ([`expand_punctured`]).
//!
//! AES calls per leaf, for large trees whose depth is a multiple of `c`:
//!
//! | `k` | 64-bit ring, `1/2 + 1/(k-1)` | 128-bit ring, `k/(k-1)` |
//! |---|---|---|
//! | 2 | 1.50 | 2.00 |
//! | 4 | 0.83 | 1.33 |
//! | 8 | 0.64 | 1.14 |
//! | 16 | 0.57 | 1.07 |
//! | half-tree, hashed leaves | 1.00 | 1.50 |

pub(crate) mod all_but_one;
mod prg;
pub(crate) mod punctured_ot;
pub(crate) mod spfss;

pub(crate) use prg::{TreePrg, TreePrgs};

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq, ConstantTimeLess};
use volery_field::Ring;
use volery_pcg::{ggm, wire};
use volery_primitives::{Block, pages::Buffer};
use zeroize::Zeroizing;

/// The most children that a node has.
const MAX: usize = 16;

/// The number of children of a node: the letter `k` of Protocol 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) enum Arity {
    /// `k = 2`, the least traffic.
    #[default]
    Two,
    /// `k = 4`.
    Four,
    /// `k = 8`.
    Eight,
    /// `k = 16`, the least computation.
    Sixteen,
}

impl Arity {
    /// All arities, smallest first.
    pub(crate) const ALL: [Self; 4] = [Self::Two, Self::Four, Self::Eight, Self::Sixteen];

    /// `k`.
    pub(crate) const fn children(self) -> usize {
        1 << self.bits()
    }

    /// `c = log2 k`.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::Two => 1,
            Self::Four => 2,
            Self::Eight => 3,
            Self::Sixteen => 4,
        }
    }
}

/// The shape of one tree: its number of leaves and its arity, and the values that follow from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    binary: ggm::Shape,
    arity: Arity,
}

impl Shape {
    /// A tree with `leaves` leaves.
    pub(crate) fn new(leaves: usize, arity: Arity) -> Self {
        Self { binary: ggm::Shape::new(leaves), arity }
    }

    /// Number of leaves, `n`.
    pub(crate) fn leaves(self) -> usize {
        self.binary.leaves()
    }

    /// Number of levels below the root, `L = ceil(h / c)`, at least 1.
    pub(crate) fn levels(self) -> u32 {
        self.binary.depth().div_ceil(self.arity.bits())
    }

    /// The arity of level `level`, `1..=L`: that of the tree, except for level 1, where it may be
    /// smaller.
    pub(crate) fn arity(self, level: u32) -> Arity {
        let bits = self.bits_below(level - 1) - self.bits_below(level);
        Arity::ALL[bits as usize - 1]
    }

    /// Number of nodes on level `level`, `0..=L`.
    pub(crate) fn width(self, level: u32) -> usize {
        self.binary.width(self.binary.depth() - self.bits_below(level))
    }

    /// The digit by which the path to leaf `alpha` goes from level `level - 1` to `level`, for
    /// `level` in `1..=L`.
    pub(crate) fn digit(self, alpha: usize, level: u32) -> usize {
        (alpha >> self.bits_below(level)) & (self.arity(level).children() - 1)
    }

    /// Number of level sums of all levels.
    pub(crate) fn sums(self) -> usize {
        (1..=self.levels()).map(|level| self.arity(level).children()).sum()
    }

    /// Bits of a leaf's number that belong to the levels below `level`.
    fn bits_below(self, level: u32) -> u32 {
        ((self.levels() - level) * self.arity.bits()).min(self.binary.depth())
    }
}

/// Working memory of an expansion, reused from tree to tree; wiped when dropped.
#[derive(Default)]
pub(crate) struct Scratch {
    nodes: Buffer<Block>,
    next: Buffer<Block>,
    /// Children before they are put into their places.
    children: prg::Children,
}

impl Scratch {
    /// Allocates the inner levels, which alternate: the odd ones are written to the present `next`,
    /// the even ones to `nodes`.
    fn resize(&mut self, shape: Shape) {
        let last = shape.levels() - 1;
        let (even, odd) = match last {
            0 => (1, 0),
            _ if last.is_multiple_of(2) => (shape.width(last), shape.width(last - 1)),
            _ => (shape.width(last - 1), shape.width(last)),
        };
        if (self.nodes.len() > self.next.len()) != (even > odd) {
            std::mem::swap(&mut self.nodes, &mut self.next);
        }
        for (buffer, needed) in [(&mut self.nodes, even), (&mut self.next, odd)] {
            if buffer.len() < needed {
                *buffer = Buffer::zeroed(needed);
            }
        }
    }
}

/// Protocol 2, step 2, and `ROT.Expand` for P1: all leaves of the tree under `root`, and its level
/// sums, those of level 1 first, and within a level that of digit 0 first. Returns the sum of all
/// leaves.
pub(crate) fn expand<R: Ring>(
    prg: &TreePrg,
    shape: Shape,
    root: Block,
    leaves: &mut [R],
    mut sums: &mut [Block],
    scratch: &mut Scratch,
) -> R {
    check(prg, shape, leaves, sums.len());
    scratch.resize(shape);
    scratch.nodes[0] = root;
    for level in 1..shape.levels() {
        let (parents, children) = (shape.width(level - 1), shape.width(level));
        let (now, rest) = sums.split_at_mut(shape.arity(level).children());
        now.fill(Block::ZERO);
        prg.level(
            &scratch.nodes[..parents],
            &mut scratch.next[..children],
            now,
            &mut scratch.children,
        );
        sums = rest;
        std::mem::swap(&mut scratch.nodes, &mut scratch.next);
    }
    let mut leaf_sums = Zeroizing::new([R::ZERO; MAX]);
    let leaf_sums = &mut leaf_sums[..sums.len()];
    let parents = &scratch.nodes[..shape.width(shape.levels() - 1)];
    prg.last_level(parents, leaves, leaf_sums, &mut scratch.children);
    for (sum, leaf_sum) in sums.iter_mut().zip(&*leaf_sums) {
        *sum = wire::pack(*leaf_sum);
    }
    R::sum(leaf_sums)
}

/// `ROT.Expand` for P2: every leaf except `alpha`, which is set to zero. `sums` are those of
/// [`expand`]; the one of alpha's digit on each level is ignored. Returns the sum of the leaves.
///
/// As in [`ggm::expand_punctured`], the expansion runs over the path's nodes with a zero in their
/// place, so that its course does not depend on `alpha`, which only indexes the memory of the party
/// that chose it.
pub(crate) fn expand_punctured<R: Ring>(
    prg: &TreePrg,
    shape: Shape,
    alpha: usize,
    mut sums: &[Block],
    leaves: &mut [R],
    scratch: &mut Scratch,
) -> R {
    check(prg, shape, leaves, sums.len());
    assert!(alpha < shape.leaves(), "alpha is a leaf");
    scratch.resize(shape);
    scratch.nodes[0] = Block::ZERO;
    for level in 1..shape.levels() {
        let k = shape.arity(level).children();
        let (parents, width) = (shape.width(level - 1), shape.width(level));
        let children = &mut scratch.next[..width];
        let mut known = Zeroizing::new([Block::ZERO; MAX]);
        prg.level(&scratch.nodes[..parents], children, &mut known[..k], &mut scratch.children);
        let path = alpha >> shape.bits_below(level);
        children[path] = Block::ZERO;
        let (opened, rest) = sums.split_at(k);
        for (digit, (opened, known)) in opened.iter().zip(&*known).enumerate() {
            let (place, there) = sibling(path, k, digit, width);
            let seed = *opened ^ *known ^ children[place];
            children[place] = Block::conditional_select(&Block::ZERO, &seed, there);
        }
        sums = rest;
        std::mem::swap(&mut scratch.nodes, &mut scratch.next);
    }
    let k = sums.len();
    let mut known = Zeroizing::new([R::ZERO; MAX]);
    let parents = &scratch.nodes[..shape.width(shape.levels() - 1)];
    prg.last_level(parents, leaves, &mut known[..k], &mut scratch.children);
    let mut total = R::sum(&known[..k]) - leaves[alpha];
    leaves[alpha] = R::ZERO;
    for (digit, (opened, known)) in sums.iter().zip(&*known).enumerate() {
        let (place, there) = sibling(alpha, k, digit, leaves.len());
        let leaf = wire::unpack::<R>(*opened) - (*known - leaves[place]);
        let leaf = R::conditional_select(&R::ZERO, &leaf, there);
        total += leaf - leaves[place];
        leaves[place] = leaf;
    }
    total
}

fn check<R: Ring>(prg: &TreePrg, shape: Shape, leaves: &[R], sums: usize) {
    assert_eq!(leaves.len(), shape.leaves(), "one place for each leaf");
    assert_eq!(sums, shape.sums(), "a sum for each level and digit");
    assert_eq!(prg.arity(), shape.arity, "one arity for tree and PRG");
}

/// The number of the sibling of node `node` with this digit on a level of `width` nodes, and
/// whether it exists and is not the node itself; otherwise the number of the node itself, where a
/// zero stands.
fn sibling(node: usize, k: usize, digit: usize, width: usize) -> (usize, Choice) {
    let (node, width) = (node as u64, width as u64);
    let sibling = (node & !(k as u64 - 1)) + digit as u64;
    let there = sibling.ct_lt(&width) & sibling.ct_ne(&node);
    (u64::conditional_select(&node, &sibling, there) as usize, there)
}

#[cfg(test)]
mod tests;
