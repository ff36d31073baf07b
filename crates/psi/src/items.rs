//! The items of a set: byte strings, and the blocks that represent them.
//!
//! An item of any length becomes a block by BLAKE3 under a key that both parties draw after they
//! have fixed their items (the salt). The two lowest bits of the block are zero: the hash index of
//! the paper's Figure 3 goes there. Two different items of sets of `n` and `m` items have the same
//! block with probability below `(n + m)^2 / 2^127`, at most 2^-63 for the largest sets.

use rayon::prelude::*;
use volery_primitives::Block;
use volery_primitives::cuckoo::FUNCTIONS;
use volery_primitives::keyed::keyed_hashes;
use volery_primitives::pages::Buffer;

use crate::partition::at_a_time;

/// Items hashed by one thread at a time.
const TASK: usize = 1 << 10;

/// Items whose addresses are collected before they are hashed.
const LANES: usize = 64;

/// Items hashed before their blocks are processed further: the blocks stay in the level-2 cache.
const PIECE: usize = 1 << 14;

/// Number of items that all threads together hash before the blocks are processed further.
pub(crate) fn piece(items: usize) -> usize {
    PIECE * at_a_time(items / PIECE)
}

/// The bits of a block that carry the hash index.
const INDEX_BITS: u128 = 3;

/// Bits of the block of an item.
pub(crate) const BITS: u32 = 128 - INDEX_BITS.count_ones();

/// The negative logarithm of a bound on the probability that two of `items` different items have
/// blocks with the same `bits` bits.
pub(crate) fn equal_bits(bits: u32, items: f64) -> f64 {
    f64::from(bits) + 1.0 - 2.0 * items.log2()
}

/// A sequence of byte strings that can be read in any order, by several threads.
pub trait Items: Sync {
    /// Number of items.
    fn len(&self) -> usize;

    /// The item number `index`, counted from 0. Panics if `index` is out of range.
    fn item(&self, index: usize) -> &[u8];

    /// Whether there are no items.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: AsRef<[u8]> + Sync> Items for [T] {
    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    fn item(&self, index: usize) -> &[u8] {
        self[index].as_ref()
    }
}

impl<T: Items + ?Sized> Items for &T {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn item(&self, index: usize) -> &[u8] {
        (**self).item(index)
    }
}

impl<T: AsRef<[u8]> + Sync> Items for Vec<T> {
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn item(&self, index: usize) -> &[u8] {
        self[index].as_ref()
    }
}

/// The input of the OPRF for the block of an item and one of the sets of outputs: the hash index
/// `z` is 1 to 3 for the bins, and 0 for the places of the stash.
#[inline]
pub(crate) fn input(digest: Block, set: usize) -> Block {
    let z = if set < FUNCTIONS { set + 1 } else { 0 };
    digest | Block::new(z as u128)
}

/// The blocks of the items from `first` on, in their order.
pub(crate) fn hash(
    salt: &[u8; 32],
    items: &(impl Items + ?Sized),
    first: usize,
    out: &mut [Block],
) {
    out.par_chunks_mut(TASK).enumerate().for_each(|(task, out)| {
        let mut strings = [&[][..]; LANES];
        let firsts = (first + task * TASK..).step_by(LANES);
        for (first, out) in firsts.zip(out.chunks_mut(LANES)) {
            let strings = &mut strings[..out.len()];
            for (i, string) in strings.iter_mut().enumerate() {
                *string = items.item(first + i);
            }
            keyed_hashes(salt, strings, out);
            for block in out {
                // mutant(psi-digest-bits): `!INDEX_BITS` => `!0xff`
                *block &= Block::new(!INDEX_BITS);
            }
        }
    });
}

/// The blocks of all items, in their order.
pub(crate) fn digests(
    salt: &[u8; 32],
    items: &(impl Items + ?Sized),
    done: &mut dyn FnMut(usize),
) -> Buffer<Block> {
    let mut out = Buffer::zeroed(items.len());
    let piece = piece(items.len());
    for (number, out) in out.chunks_mut(piece).enumerate() {
        hash(salt, items, number * piece, out);
        done(number * piece + out.len());
    }
    out
}
