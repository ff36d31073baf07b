//! One party's tree of one instance: everything that is computed without the other.

use volery_channel::SessionId;
use volery_field::Ring;
use volery_pcg::ggm::Shape;
use volery_primitives::aes::{self, Aes128};
use volery_primitives::pages::Buffer;
use volery_primitives::ro::RandomOracle;
use volery_primitives::{Block, bits};
use zeroize::Zeroize;

/// Nodes that are worked on at once: they and their children stay in the first-level cache.
const CHUNK: usize = 256;

/// Whether two leaves are a whole node apart from its tag: they need no AES call of their own.
pub(super) const fn leaves_are_nodes<R: Ring>() -> bool {
    2 * R::BITS < 128
}

/// The AES keys of each tree of a batch.
pub(super) struct TreeKeys(Aes128);

impl TreeKeys {
    /// `batch` never repeats in a session.
    pub(super) fn new(session: SessionId, batch: u64) -> Self {
        let mut oracle = RandomOracle::new("volery experiments dpf: keys of the trees");
        oracle.absorb(session.as_bytes()).absorb_u64(batch);
        Self(Aes128::new(oracle.finish_block()))
    }

    fn of(&self, tree: usize) -> [Aes128; 2] {
        let mut seeds = [Block::ZERO; 2];
        self.0.ctr(2 * tree as u128, &mut seeds);
        seeds.map(Aes128::new)
    }
}

/// A level of nodes in progress, whose corrections are not yet computed, and the inputs to compute
/// them.
pub(super) struct Tree<'a, R> {
    shape: Shape,
    keys: [Aes128; 2],
    nodes: Buffer<Block>,
    next: Buffer<Block>,
    /// The tags of the parents of `nodes`.
    tags: Vec<u8>,
    next_tags: Vec<u8>,
    /// The values added to the left and to the right children of tagged parents, including their
    /// tags.
    correction: [Block; 2],
    leaves: &'a mut [R],
}

/// The sum of the leaves of a tree, before correction.
#[derive(Clone, Copy)]
pub(super) struct LeafSums<R> {
    /// The left leaves and the right ones.
    pub(super) sides: [R; 2],
    /// Tagged pairs, modulo 4.
    pub(super) tagged: u8,
}

impl<'a, R: Ring> Tree<'a, R> {
    /// The tree under a root whose lowest bit is its tag.
    pub(super) fn new(keys: &TreeKeys, number: usize, root: Block, leaves: &'a mut [R]) -> Self {
        let shape = Shape::new(leaves.len());
        let seeds = shape.depth() - 1;
        // The last level of seeds, with a sibling that may be beyond the domain, and the level
        // before it: the two buffers are swapped on every level.
        let [last, before] = [seeds, seeds.saturating_sub(1)]
            .map(|level| Buffer::zeroed(shape.width(level).next_multiple_of(2)));
        let (mut nodes, next) =
            if seeds.is_multiple_of(2) { (last, before) } else { (before, last) };
        nodes[0] = root;
        let tags = || vec![0; bits::bytes_for(shape.width(seeds))];
        Self {
            shape,
            keys: keys.of(number),
            nodes,
            next,
            tags: tags(),
            next_tags: tags(),
            correction: [Block::ZERO; 2],
            leaves,
        }
    }

    /// Levels of seeds below the root.
    pub(super) fn seed_levels(&self) -> u32 {
        self.shape.depth() - 1
    }

    /// Step 1: the next level of seeds, number `level`. Returns the sums of its left and of its
    /// right nodes.
    ///
    /// All nodes have both children, though the last may be beyond the domain: where the path is at
    /// the last node, a sum that lacked a child would show it.
    pub(super) fn grow(&mut self, level: u32) -> [Block; 2] {
        let parents = self.shape.width(level - 1);
        let children = self.next[..2 * parents].chunks_mut(2 * CHUNK);
        let tags = self.tags.chunks(CHUNK / 16);
        let new_tags = self.next_tags.chunks_mut(CHUNK / 8);
        let chunks = self.nodes[..parents].chunks_mut(CHUNK);
        let mut sums = [Block::ZERO; 2];
        for (((nodes, children), tags), new_tags) in chunks.zip(children).zip(tags).zip(new_tags) {
            correct(nodes, tags, self.correction);
            bits::lowest_bits(nodes, &mut new_tags[..bits::bytes_for(nodes.len())]);
            let [left, right] = aes::double(&self.keys, nodes, children);
            sums[0] ^= left;
            sums[1] ^= right;
        }
        std::mem::swap(&mut self.nodes, &mut self.next);
        std::mem::swap(&mut self.tags, &mut self.next_tags);
        sums
    }

    /// Step 4: the correction of the level that was grown last; its lowest bits are those of the
    /// tags.
    pub(super) fn set_correction(&mut self, correction: [Block; 2]) {
        self.correction = correction;
    }

    /// Step 5: the leaves, two for each node of the last level of seeds.
    pub(super) fn grow_leaves(&mut self) -> LeafSums<R> {
        let groups = self.shape.width(self.shape.depth() - 1);
        let nodes = self.nodes[..groups].chunks_mut(CHUNK);
        let leaves = self.leaves.chunks_mut(2 * CHUNK);
        let tags = self.tags.chunks(CHUNK / 16);
        let new_tags = self.next_tags.chunks_mut(CHUNK / 8);
        let mut pairs = vec![R::ZERO; 2 * groups.min(CHUNK)];
        let mut sums = LeafSums { sides: [R::ZERO; 2], tagged: 0 };
        for (((nodes, leaves), tags), new_tags) in nodes.zip(leaves).zip(tags).zip(new_tags) {
            correct(nodes, tags, self.correction);
            let new_tags = &mut new_tags[..bits::bytes_for(nodes.len())];
            bits::lowest_bits(nodes, new_tags);
            for byte in new_tags {
                sums.tagged = (sums.tagged + byte.count_ones() as u8) % 4;
            }
            if leaves.len() == 2 * nodes.len() {
                convert(&self.keys, nodes, leaves);
                add_sides(&mut sums.sides, leaves);
            } else {
                // The last leaf is beyond the domain; it counts all the same.
                let pairs = &mut pairs[..2 * nodes.len()];
                convert(&self.keys, nodes, pairs);
                add_sides(&mut sums.sides, pairs);
                leaves.copy_from_slice(&pairs[..leaves.len()]);
            }
        }
        pairs.zeroize();
        std::mem::swap(&mut self.tags, &mut self.next_tags);
        sums
    }

    /// Step 9: adds the correction to the leaves of tagged nodes. A party looks its own tags up in
    /// a table of two.
    pub(super) fn correct_leaves(&mut self, correction: [R; 2]) {
        let table = [[R::ZERO; 2], correction];
        for (leaves, tags) in self.leaves.chunks_mut(16).zip(&self.tags) {
            let mut tags = usize::from(*tags);
            for pair in leaves.chunks_mut(2) {
                for (leaf, correction) in pair.iter_mut().zip(table[tags & 1]) {
                    *leaf += correction;
                }
                tags >>= 1;
            }
        }
    }
}

impl<R> Drop for Tree<'_, R> {
    fn drop(&mut self) {
        self.tags.zeroize();
        self.next_tags.zeroize();
        self.correction.zeroize();
    }
}

/// Adds `correction[b]` to the nodes of side `b` below tagged parents.
fn correct(nodes: &mut [Block], tags: &[u8], correction: [Block; 2]) {
    for (nodes, tags) in nodes.chunks_mut(16).zip(tags) {
        let mut tags = *tags;
        for pair in nodes.chunks_mut(2) {
            let mask = Block::select_mask(tags & 1 == 1);
            for (node, correction) in pair.iter_mut().zip(correction) {
                *node ^= mask & correction;
            }
            tags >>= 1;
        }
    }
}

/// The two leaves of each node: of a 64-bit ring the node's two words where they are long enough
/// without the tag, else those of its hash; of a 128-bit ring its two hashes.
fn convert<R: Ring>(keys: &[Aes128; 2], nodes: &[Block], leaves: &mut [R]) {
    if let Some(blocks) = R::as_blocks_mut(leaves) {
        let _ = aes::double(keys, nodes, blocks);
        return;
    }
    assert_eq!(R::WORDS, 1, "a leaf is a block or a word");
    let mut words = [0; 2 * CHUNK];
    let words = &mut words[..2 * nodes.len()];
    if leaves_are_nodes::<R>() {
        for (words, node) in words.as_chunks_mut::<2>().0.iter_mut().zip(nodes) {
            *words = [node.low() >> 1, node.high()];
        }
    } else {
        aes::leaf_pairs(&keys[0], nodes, words);
    }
    R::from_words_slice(words, leaves);
    words.zeroize();
}

/// Adds the leaves at even positions to `sums[0]`, those at odd positions to `sums[1]`.
fn add_sides<R: Ring>(sums: &mut [R; 2], leaves: &[R]) {
    // As many pairs as a lazy sum takes between two folds, in every ring.
    const PAIRS: usize = 6;
    let mut sides = [R::Lazy::default(); 2];
    for group in leaves.chunks(2 * PAIRS) {
        for pair in group.as_chunks::<2>().0 {
            for (side, leaf) in sides.iter_mut().zip(pair) {
                *side = R::lazy_add(*side, *leaf);
            }
        }
        sides = sides.map(R::lazy_fold);
    }
    for (sum, side) in sums.iter_mut().zip(sides) {
        *sum += R::lazy_finish(side);
    }
}
