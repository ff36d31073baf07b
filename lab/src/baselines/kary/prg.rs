//! Expansion of a tree of higher arity: from a node to its children, level by level.
//!
//! The kernels of the binary trees compute the children in pairs; each pair is then put into its
//! place among the siblings.

use volery_channel::SessionId;
use volery_field::Ring;
use volery_pcg::ggm;
use volery_primitives::{
    Block,
    aes::{self, Aes128},
    pages::Buffer,
    ro::RandomOracle,
};
use zeroize::Zeroizing;

use super::Arity;

/// Parents processed at once: their children stay in the nearest cache until all pairs are in
/// place.
const PARENTS: usize = 128;

/// Children of [`PARENTS`] parents before they are put into their places; wiped when dropped.
pub(super) struct Children {
    pairs: Buffer<[Block; 2]>,
    words: Buffer<u64>,
}

impl Default for Children {
    fn default() -> Self {
        Self { pairs: Buffer::zeroed(PARENTS), words: Buffer::zeroed(PARENTS * super::MAX) }
    }
}

/// Derives the [`TreePrg`] of each tree of a session.
pub(crate) struct TreePrgs {
    aes: Aes128,
    arity: Arity,
    pads: ggm::TreePrgs,
}

impl TreePrgs {
    /// For the trees of one batch, identified by `batch`: a number that never repeats in a session,
    /// neither here nor for [`ggm::TreePrgs`], because the trees of the OTs of this batch also have
    /// it.
    pub(crate) fn new(session: SessionId, batch: u64, arity: Arity) -> Self {
        let mut oracle = RandomOracle::new("volery k-ary tree keys");
        oracle.absorb(session.as_bytes());
        oracle.absorb(&batch.to_le_bytes());
        oracle.absorb(&[arity.children() as u8]);
        Self {
            aes: Aes128::new(oracle.finish_block()),
            arity,
            pads: ggm::TreePrgs::new(session, batch),
        }
    }

    /// The number of children of a node.
    pub(crate) fn arity(&self) -> Arity {
        self.arity
    }

    /// The PRGs for the trees of the batch's OTs ([`super::all_but_one`]).
    pub(crate) fn pads(&self) -> &ggm::TreePrgs {
        &self.pads
    }

    /// The PRG of tree number `tree` of the batch.
    pub(crate) fn tree(&self, tree: usize) -> TreePrg {
        let k = self.arity.children();
        let mut keys = [Block::ZERO; super::MAX];
        self.aes.ctr((k * tree) as u128, &mut keys[..k]);
        let pairs = keys[..k].as_chunks::<2>().0;
        TreePrg { keys: pairs.iter().map(|pair| pair.map(Aes128::new)).collect() }
    }
}

/// The PRG of one tree: AES permutations, public and used for this tree only.
pub(crate) struct TreePrg {
    /// Of the children `2j` and `2j + 1`.
    keys: Vec<[Aes128; 2]>,
}

impl TreePrg {
    /// The number of children of a node.
    pub(crate) fn arity(&self) -> Arity {
        Arity::ALL[self.keys.len().ilog2() as usize]
    }

    /// An inner level, with as many children per parent as `sums` has elements (the last parent may
    /// have fewer). Adds to `sums` the children of each digit.
    pub(super) fn level(
        &self,
        parents: &[Block],
        children: &mut [Block],
        sums: &mut [Block],
        way: &mut Children,
    ) {
        let pairs = &mut way.pairs[..];
        match sums.len() {
            2 => blocks::<2>(&self.keys, parents, children, sums, pairs),
            4 => blocks::<4>(&self.keys, parents, children, sums, pairs),
            8 => blocks::<8>(&self.keys, parents, children, sums, pairs),
            _ => blocks::<16>(&self.keys, parents, children, sums, pairs),
        }
    }

    /// The last level, likewise.
    pub(super) fn last_level<R: Ring>(
        &self,
        parents: &[Block],
        leaves: &mut [R],
        sums: &mut [R],
        way: &mut Children,
    ) {
        if let Some(blocks) = R::as_blocks_mut(leaves) {
            let mut block_sums = Zeroizing::new([Block::ZERO; super::MAX]);
            self.level(parents, blocks, &mut block_sums[..sums.len()], way);
            for (sum, block_sum) in sums.iter_mut().zip(&*block_sums) {
                *sum += R::from_block(*block_sum);
            }
            return;
        }
        assert_eq!(R::WORDS, 1, "a leaf is a block or a word");
        match sums.len() {
            2 => words::<2, R>(&self.keys, parents, leaves, sums, way),
            4 => words::<4, R>(&self.keys, parents, leaves, sums, way),
            8 => words::<8, R>(&self.keys, parents, leaves, sums, way),
            _ => words::<16, R>(&self.keys, parents, leaves, sums, way),
        }
    }
}

/// Families of `K` seeds; child `j` of a parent under key `j`.
fn blocks<const K: usize>(
    keys: &[[Aes128; 2]],
    parents: &[Block],
    children: &mut [Block],
    sums: &mut [Block],
    pairs: &mut [[Block; 2]],
) {
    let (families, rest) = children.as_chunks_mut::<K>();
    let (whole, last) = parents.split_at(families.len());
    let sums = sums.as_chunks_mut::<2>().0;
    for (parents, families) in whole.chunks(PARENTS).zip(families.chunks_mut(PARENTS)) {
        for (j, (keys, sums)) in keys.iter().zip(&mut *sums).enumerate() {
            let [even, odd] = if K == 2 {
                aes::double(keys, parents, families.as_flattened_mut())
            } else {
                let pairs = &mut pairs[..parents.len()];
                let sides = aes::double(keys, parents, pairs.as_flattened_mut());
                place(pairs, j, families);
                sides
            };
            sums[0] ^= even;
            sums[1] ^= odd;
        }
    }
    // The last parent, if some of its children are missing.
    if let [last] = last {
        for ((pair, keys), sums) in rest.chunks_mut(2).zip(keys).zip(sums) {
            let [even, odd] = aes::double(keys, &[*last], pair);
            sums[0] ^= even;
            sums[1] ^= if pair.len() == 2 { odd } else { Block::ZERO };
        }
    }
}

/// Families of `K` leaves of one word; the leaves `2j` and `2j + 1` under key `j`.
fn words<const K: usize, R: Ring>(
    keys: &[[Aes128; 2]],
    parents: &[Block],
    leaves: &mut [R],
    sums: &mut [R],
    way: &mut Children,
) {
    let (families, rest) = leaves.as_chunks_mut::<K>();
    let (whole, last) = parents.split_at(families.len());
    let words = way.words.as_chunks_mut::<K>().0;
    for (parents, families) in whole.chunks(PARENTS).zip(families.chunks_mut(PARENTS)) {
        let words = &mut words[..parents.len()];
        if K == 2 {
            aes::leaf_pairs(&keys[0][0], parents, words.as_flattened_mut());
        } else {
            let pairs = &mut way.pairs[..parents.len()];
            for (j, keys) in keys[..K / 4].iter().enumerate() {
                aes::double(keys, parents, pairs.as_flattened_mut());
                for (words, [even, odd]) in words.iter_mut().zip(&*pairs) {
                    let four = [even.low(), even.high(), odd.low(), odd.high()];
                    words.as_chunks_mut::<4>().0[j] = four;
                }
            }
        }
        let leaves = families.as_flattened_mut();
        if K == 2 {
            let sides = R::from_words_sides(words.as_flattened(), leaves);
            sums.iter_mut().zip(sides).for_each(|(sum, side)| *sum += side);
        } else {
            R::from_words_slice(words.as_flattened(), leaves);
            add_digits(sums, families);
        }
    }
    // The last parent, if some of its children are missing.
    if let [last] = last {
        for (pair, key) in rest.chunks_mut(2).zip(keys.as_flattened()) {
            let words = &mut words.as_flattened_mut()[..pair.len()];
            aes::leaf_pairs(key, &[*last], words);
            R::from_words_slice(words, pair);
        }
        for (sum, leaf) in sums.iter_mut().zip(rest) {
            *sum += *leaf;
        }
    }
}

/// Adds leaf `j` of each family to `sums[j]`.
fn add_digits<const K: usize, R: Ring>(sums: &mut [R], families: &[[R; K]]) {
    // The number that a lazy sum takes between two folds, in every ring.
    const FAMILIES: usize = 6;
    let mut lazy = [R::Lazy::default(); K];
    for group in families.chunks(FAMILIES) {
        for family in group {
            for (lazy, leaf) in lazy.iter_mut().zip(family) {
                *lazy = R::lazy_add(*lazy, *leaf);
            }
        }
        lazy = lazy.map(R::lazy_fold);
    }
    for (sum, lazy) in sums.iter_mut().zip(lazy) {
        *sum += R::lazy_finish(lazy);
    }
}

/// Pair `j` of each family.
fn place<const K: usize>(pairs: &[[Block; 2]], j: usize, families: &mut [[Block; K]]) {
    for (family, pair) in families.iter_mut().zip(pairs) {
        family.as_chunks_mut::<2>().0[j] = *pair;
    }
}

#[cfg(test)]
impl TreePrg {
    /// Computed directly from the recursive definition: leaf number `leaf` under `root`, and all
    /// seeds on the path to it.
    pub(super) fn leaf_by_path<R: Ring>(&self, shape: super::Shape, root: Block, leaf: usize) -> R {
        let mut seed = root;
        let child = |seed: Block, j: usize| self.keys.as_flattened()[j].encrypt(seed) ^ seed;
        for level in 1..shape.levels() {
            seed = child(seed, shape.digit(leaf, level));
        }
        let digit = shape.digit(leaf, shape.levels());
        if R::WORDS == 2 {
            return R::from_block(child(seed, digit));
        }
        let block = child(seed, digit / 2);
        R::from_words(&[if digit.is_multiple_of(2) { block.low() } else { block.high() }])
    }
}
