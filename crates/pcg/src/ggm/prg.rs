//! Tree expansion: from a node to its children, level by level.

use volery_channel::SessionId;
use volery_field::Ring;
use volery_primitives::{
    Aligned, Block,
    aes::{self, Aes128},
    pages::Buffer,
    ro::RandomOracle,
};

use crate::wire;

/// The derivation of the children of a node: see the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Two independent children.
    Ggm,
    /// Children that add up to their parent, down to the leaves.
    Correlated,
    /// Children that add up to their parent, except the leaves, which are hashed.
    PseudoCorrelated,
}

/// The PRG of one tree: AES permutations, public and used for this tree only.
#[derive(Clone)]
pub struct TreePrg {
    keys: Keys,
    /// The bits of a 128-bit leaf that are kept.
    mask: Block,
}

#[expect(clippy::large_enum_variant, reason = "one per task; boxed, each tree would allocate")]
enum Keys {
    Ggm {
        keys: [Aes128; 2],
        /// The public input of the key derivation.
        seeds: [Block; 2],
    },
    Half {
        key: Aes128,
        seed: Block,
        growth: Growth,
    },
}

/// Derives the [`TreePrg`] of each tree of a session.
pub struct TreePrgs {
    aes: Aes128,
    growth: Growth,
    mask: Block,
}

impl TreePrgs {
    /// For the GGM trees of one batch, identified by `batch` (a number that never repeats in a
    /// session).
    #[must_use]
    pub fn new(session: SessionId, batch: u64) -> Self {
        Self::growing(Growth::Ggm, session, batch)
    }

    /// For the trees of one batch, of any kind: see [`new`](Self::new).
    #[must_use]
    pub fn growing(growth: Growth, session: SessionId, batch: u64) -> Self {
        let mut oracle = RandomOracle::new("volery ggm tree keys");
        // mutant(trees-session): drop
        oracle.absorb(session.as_bytes());
        // mutant(trees-batch): drop
        oracle.absorb(&batch.to_le_bytes());
        oracle.absorb(&[growth as u8]);
        Self { aes: Aes128::new(oracle.finish_block()), growth, mask: Block::ALL_ONES }
    }

    /// The same trees with the lowest bit of every leaf cleared; for leaves in `gf128`.
    ///
    /// The level sums are those of the leaves with their lowest bits: equal on both sides except
    /// for that bit.
    #[must_use]
    pub fn with_cleared_leaves(mut self) -> Self {
        self.mask = !Block::ONE;
        self
    }

    /// The kind of the trees.
    #[must_use]
    pub fn growth(&self) -> Growth {
        self.growth
    }

    /// Whether the lowest bit of every leaf is cleared.
    #[must_use]
    pub fn clears_leaves(&self) -> bool {
        self.mask != Block::ALL_ONES
    }

    /// The AES keys of half-trees from `first` on, one for each.
    #[cfg(feature = "gpu")]
    pub(crate) fn half_keys(&self, first: usize, keys: &mut [Block]) {
        assert_ne!(self.growth, Growth::Ggm, "half-trees have one key each");
        self.aes.ctr(first as u128, keys);
    }

    /// The PRG of tree number `tree` of the batch.
    #[must_use]
    pub fn tree(&self, tree: usize) -> TreePrg {
        let mut seeds = [Block::ZERO; 2];
        let keys = match self.growth {
            Growth::Ggm => {
                // mutant(trees-number-ggm): `2 * tree as u128` => `0`
                self.aes.ctr(2 * tree as u128, &mut seeds);
                Keys::ggm(seeds)
            }
            growth => {
                // mutant(trees-number): `tree as u128` => `0`
                self.aes.ctr(tree as u128, &mut seeds[..1]);
                Keys::half(seeds[0], growth)
            }
        };
        TreePrg { keys, mask: self.mask }
    }
}

impl Keys {
    fn ggm(seeds: [Block; 2]) -> Self {
        Self::Ggm { keys: seeds.map(Aes128::new), seeds }
    }

    fn half(seed: Block, growth: Growth) -> Self {
        Self::Half { key: Aes128::new(seed), seed, growth }
    }
}

impl Clone for Keys {
    fn clone(&self) -> Self {
        match self {
            Self::Ggm { seeds, .. } => Self::ggm(*seeds),
            Self::Half { seed, growth, .. } => Self::half(*seed, *growth),
        }
    }
}

impl TreePrg {
    /// The kind of the tree.
    #[must_use]
    pub fn growth(&self) -> Growth {
        match self.keys {
            Keys::Ggm { .. } => Growth::Ggm,
            Keys::Half { growth, .. } => growth,
        }
    }

    /// Whether the lowest bit of every leaf is cleared.
    #[must_use]
    pub fn clears_leaves(&self) -> bool {
        self.mask != Block::ALL_ONES
    }

    /// The two children of a seed of level 1 or below it.
    #[must_use]
    pub fn children(&self, seed: Block) -> [Block; 2] {
        let mut children = [Block::ZERO; 2];
        self.level(2, Block::ZERO, &[seed], &mut children);
        children
    }

    /// The two leaves below a seed of level `h - 1`, `h` above 1.
    #[must_use]
    pub fn leaf_pair<R: Ring>(&self, seed: Block) -> [R; 2] {
        let mut leaves = [R::ZERO; 2];
        self.last_level(2, Block::ZERO, &[seed], &mut leaves);
        leaves
    }

    /// Level `number`, an inner one. Returns the sums of the left and of the right children.
    pub(super) fn level(
        &self,
        number: u32,
        delta: Block,
        parents: &[Block],
        children: &mut [Block],
    ) -> [Block; 2] {
        match &self.keys {
            Keys::Ggm { keys, .. } => aes::double(keys, parents, children),
            Keys::Half { key, .. } => {
                correlated_level(key, number, delta, parents, children, Block::ALL_ONES)
            }
        }
    }

    /// Level `number`, the last: two leaves per parent (the last parent may lack its right one).
    /// Returns the sums of the left and of the right leaves, before any bit of them is cleared.
    pub(super) fn last_level<R: Ring>(
        &self,
        number: u32,
        delta: Block,
        parents: &[Block],
        leaves: &mut [R],
    ) -> [R; 2] {
        // Small enough for the first-level cache, large enough to keep the AES units busy.
        const PARENTS: usize = 128;
        if let Some(blocks) = R::as_blocks_mut(leaves) {
            let sums = match &self.keys {
                Keys::Ggm { keys, .. } => aes::double(keys, parents, blocks),
                Keys::Half { key, growth: Growth::PseudoCorrelated, .. } => {
                    aes::hash_pairs(key, parents, blocks)
                }
                Keys::Half { key, .. } => {
                    let sums = correlated_level(key, number, delta, parents, blocks, self.mask);
                    return sums.map(R::from_block);
                }
            };
            if self.mask != Block::ALL_ONES {
                blocks.iter_mut().for_each(|leaf| *leaf &= self.mask);
            }
            return sums.map(R::from_block);
        }
        if R::WORDS > 1 {
            return self.wide_leaves(parents, leaves);
        }
        let mut sums = [R::ZERO; 2];
        let Aligned(words) = &mut Aligned([0u64; 2 * PARENTS]);
        for (parents, leaves) in parents.chunks(PARENTS).zip(leaves.chunks_mut(2 * PARENTS)) {
            let words = &mut words[..leaves.len()];
            match &self.keys {
                Keys::Ggm { keys, .. } => aes::leaf_pairs(&keys[0], parents, words),
                Keys::Half { key, growth, .. } => {
                    assert_eq!(*growth, Growth::PseudoCorrelated, "correlated leaves are blocks");
                    aes::hash_words(key, parents, words);
                }
            }
            for (sum, side) in sums.iter_mut().zip(R::from_words_sides(words, leaves)) {
                *sum += side;
            }
        }
        sums
    }

    /// The leaves of [`last_level`](Self::last_level) that take several blocks to be uniform: each
    /// is hashed as in a half-tree, under one key for each block, the sums of the tree's key and
    /// the number of the block.
    ///
    /// # Panics
    /// If the leaves of the tree are correlated.
    fn wide_leaves<R: Ring>(&self, parents: &[Block], leaves: &mut [R]) -> [R; 2] {
        const PARENTS: usize = 64;
        let seed = match &self.keys {
            Keys::Ggm { seeds: [seed, _], .. } => *seed,
            Keys::Half { seed, growth, .. } => {
                assert_eq!(*growth, Growth::PseudoCorrelated, "correlated leaves are blocks");
                *seed
            }
        };
        let key = |number: usize| Aes128::new(seed ^ Block::from(number as u128));
        let keys: Vec<_> = (0..R::WORDS.div_ceil(2)).map(key).collect();
        let mut sums = [R::ZERO; 2];
        let (mut blocks, mut words) =
            (Buffer::zeroed(2 * PARENTS), Buffer::zeroed(2 * PARENTS * R::WORDS));
        for (parents, leaves) in parents.chunks(PARENTS).zip(leaves.chunks_mut(2 * PARENTS)) {
            let (blocks, words) =
                (&mut blocks[..leaves.len()], &mut words[..R::WORDS * leaves.len()]);
            for (key, place) in keys.iter().zip((0..).step_by(2)) {
                aes::hash_pairs(key, parents, blocks);
                for (words, block) in words.chunks_exact_mut(R::WORDS).zip(&*blocks) {
                    let halves = [block.low(), block.high()];
                    words[place..].iter_mut().zip(halves).for_each(|(word, half)| *word = half);
                }
            }
            for (sum, side) in sums.iter_mut().zip(R::from_words_sides(words, leaves)) {
                *sum += side;
            }
        }
        sums
    }

    /// A leaf without the bits that this tree clears.
    pub(super) fn cleared<R: Ring>(&self, leaf: R) -> R {
        if self.mask == Block::ALL_ONES {
            return leaf;
        }
        R::from_block(wire::pack(leaf) & self.mask)
    }
}

/// A level of a half-tree whose nodes add up to `delta`; level 1 is the parent itself and its sum
/// with `delta`.
fn correlated_level(
    key: &Aes128,
    number: u32,
    delta: Block,
    parents: &[Block],
    children: &mut [Block],
    mask: Block,
) -> [Block; 2] {
    if number > 1 {
        return aes::split(key, parents, children, mask);
    }
    let pair = [parents[0], parents[0] ^ delta];
    children.copy_from_slice(&pair.map(|node| node & mask));
    pair
}
