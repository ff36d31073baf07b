//! Cuckoo hashing with three hash functions. Items that do not fit are handed back, for an optional
//! stash.
//!
//! Every item has three distinct bins; a table places each item in one of its bins, at most one
//! item per bin. The party with few items builds a [`Table`]; the other party puts each of its
//! items in all three of its bins.
//!
//! * [`Hasher`] computes the three bins of an item with one AES call.
//! * [`bins_for`] gives the size of the table.
//! * [`Table::build`] places the items. It finds a complete placement whenever one exists, so the
//!   failure probability is that of no placement existing, whatever the search algorithm.
//!
//! The bins of an item are computed in constant time. Building a table is not constant time: its
//! memory accesses follow the items. The table is local data of the party that owns the items.

use crate::Block;
use crate::aes::Aes128;

mod size;
mod table;

pub use size::bins_for;
pub use table::{Full, Table};

/// Items hashed at a time.
const CHUNK: usize = 32;

/// Hash functions of an item.
pub const FUNCTIONS: usize = 3;

/// Maps an item to three distinct bins, by AES under a fixed public key that both parties know.
///
/// The key has to be chosen after the items are fixed: a party that knows it first can choose items
/// that all fall into the same bins.
#[derive(Debug)]
pub struct Hasher {
    aes: Aes128,
    bins: u64,
}

impl Hasher {
    /// Hash functions into `bins` bins.
    ///
    /// # Panics
    /// If `bins` is below 3 or above 2^32.
    pub fn new(key: Block, bins: usize) -> Self {
        let bins = bins as u64;
        assert!(
            (FUNCTIONS as u64..=1 << 32).contains(&bins),
            "a cuckoo table has between 3 and 2^32 bins"
        );
        Self { aes: Aes128::new(key), bins }
    }

    /// Number of bins.
    pub const fn bin_count(&self) -> usize {
        self.bins as usize
    }

    /// The three distinct bins of an item, in the order of the hash functions.
    pub fn bins(&self, item: Block) -> [u32; FUNCTIONS] {
        let mut out = [[0; FUNCTIONS]];
        self.bins_slice(&[item], &mut out);
        out[0]
    }

    /// The three distinct bins of each item.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn bins_slice(&self, items: &[Block], out: &mut [[u32; FUNCTIONS]]) {
        assert_eq!(items.len(), out.len(), "bins and items differ in number");
        let mut hashes = [Block::ZERO; CHUNK];
        for (items, out) in items.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            let hashes = &mut hashes[..items.len()];
            self.aes.feed_forward(items, hashes);
            for (out, &hash) in out.iter_mut().zip(hashes.iter()) {
                *out = distinct(hash.into(), self.bins);
            }
        }
    }
}

/// Three distinct numbers below `bins` from 126 uniform bits.
///
/// The first is any of `bins` numbers, the second any of the `bins - 1` others, the third any of
/// the `bins - 2` others: each is drawn by scaling 42 bits, which is off uniform by at most one
/// part in 2^42 / `bins`.
fn distinct(hash: u128, bins: u64) -> [u32; FUNCTIONS] {
    const BITS: u32 = 42;
    let scaled = |piece: u32, range: u64| {
        let bits = (hash >> (BITS * piece)) & ((1 << BITS) - 1);
        ((bits * u128::from(range)) >> BITS) as u64
    };
    let first = scaled(0, bins);
    let mut second = scaled(1, bins - 1);
    second += u64::from(second >= first);
    let (low, high) = (first.min(second), first.max(second));
    let mut third = scaled(2, bins - 2);
    third += u64::from(third >= low);
    third += u64::from(third >= high);
    [first as u32, second as u32, third as u32]
}
