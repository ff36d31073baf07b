//! Sizes of a run: all values that both parties compute from the agreed parameters.

use volery_primitives::Block;

use crate::baselines::matching::{cut, value_bytes};

/// The sizes of a run, the same for both parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    items: usize,
    /// Bits of an item, after shortening.
    bits: u32,
    shortened: bool,
    bins: usize,
    quotients: u128,
}

/// Places of the stash for `items` items in 1.2 bins each: column `s` of Table 2 of the BaRK-OPRF
/// paper, which has it for 2^8, 2^12, .., 2^24 items and whose source is the PSSZ paper. Between
/// those, what is next below: it needs the most.
///
/// Never more than the number of items.
pub(crate) const fn stash_size(items: usize) -> usize {
    let places = match items.checked_ilog2() {
        None => 0,
        Some(..=11) => 12,
        Some(..=15) => 6,
        Some(..=19) => 4,
        Some(..=23) => 3,
        Some(_) => 2,
    };
    if places < items { places } else { items }
}

impl Plan {
    /// The plan for sets of as many items on both sides, of items below 2^`item_bits`.
    pub(crate) fn new(items: usize, item_bits: u32) -> Self {
        assert!((1..=128).contains(&item_bits), "items have 1 to 128 bits");
        assert!(items < 1 << 30, "sets of less than 2^30 items");
        let bins = (6 * items).div_ceil(5).max(1);
        let whole = 8 * values(items) as u32;
        let bits = item_bits.min(whole);
        Self {
            items,
            bits,
            shortened: bits < item_bits,
            bins,
            quotients: (1u128 << bits).div_ceil(bins as u128),
        }
    }

    pub(crate) const fn items(&self) -> usize {
        self.items
    }

    pub(crate) const fn bins(&self) -> usize {
        self.bins
    }

    pub(crate) const fn stash(&self) -> usize {
        stash_size(self.items)
    }

    /// 1-out-of-256 OTs of a bin.
    pub(crate) const fn bin_ots(&self) -> usize {
        bytes_of(self.quotients)
    }

    /// 1-out-of-256 OTs of a slot of the stash.
    pub(crate) const fn stash_ots(&self) -> usize {
        bytes_of(1 << self.bits)
    }

    /// Bytes of a value: `v'`.
    pub(crate) fn value_bytes(&self) -> usize {
        values(self.items)
    }

    pub(super) const fn quotients(&self) -> u128 {
        self.quotients
    }

    /// The items as numbers, hashed to fewer bits if they have too many.
    pub(super) fn reduce(&self, items: &[Block], key: &[u8; 32]) -> Vec<u128> {
        let short = |item: &Block| {
            cut(blake3::keyed_hash(key, &item.to_bytes()).as_bytes(), self.bits as usize / 8)
        };
        if self.shortened {
            return items.iter().map(short).collect();
        }
        let items: Vec<u128> = items.iter().map(|&item| item.into()).collect();
        let fits = items.iter().all(|item| item >> self.bits == 0);
        assert!(fits, "no item has more bits than planned");
        items
    }

    /// The choices of the OTs of an empty bin: one above the quotients of all items, of which the
    /// first [`Plan::bin_ots`] bytes are the choices of a bin.
    pub(super) const fn empty_bin(&self) -> [u8; 16] {
        self.quotients.to_le_bytes()
    }

    /// The choices of the OTs of an empty slot of the stash.
    pub(super) const fn empty_place(&self) -> [u8; 16] {
        (1u128 << self.bits).to_le_bytes()
    }
}

/// Bytes of a value for as many items on both sides. As many bits of an item are kept: of the items
/// of both sets there are 2n^2 pairs.
fn values(items: usize) -> usize {
    value_bytes(3.0 * (items as f64).powi(2))
}

/// Bytes of a number that is not zero.
const fn bytes_of(number: u128) -> usize {
    (u128::BITS - number.leading_zeros()).div_ceil(8) as usize
}

/// The bytes of both directions by the formula of Table 5 of the BaRK-OPRF paper, for `items` items
/// of `bits` bits a side: `2*128*(1.2n + s)*ceil((min(v', l) - log2 n)/8) + (3 + s)*n*v'` bits.
///
/// The paper leaves out base OTs and prints units of 2^20 bytes. A run also sends other bytes that
/// it leaves out: the key, rounding up to 128 OTs, and the bytes of the stash that have no bin.
pub(crate) fn published_bytes(items: usize, bits: u32) -> f64 {
    let n = items as f64;
    let stash = stash_size(items) as f64;
    let value = 8.0 * values(items) as f64;
    let ots = ((f64::from(bits).min(value) - n.log2()) / 8.0).ceil();
    (256.0 * (1.2 * n + stash) * ots + (3.0 + stash) * n * value) / 8.0
}
