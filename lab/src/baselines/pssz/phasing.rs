//! Permutation-based hashing, and the sender's items by bin.

use volery_primitives::Block;
use volery_primitives::aes::Aes128;
use volery_primitives::cuckoo::FUNCTIONS;

use super::Plan;

/// Takes `x = q*b + r` to the bins `r + f_z(q) mod b`; the three of an item may coincide.
pub(super) struct Phasing {
    /// `f` is AES under a key that both know, with feed-forward.
    aes: Aes128,
    bins: u64,
    quotients: u128,
}

/// Items as bins and quotients, in their order.
pub(super) struct Phased {
    pub(super) bins: Vec<[u32; FUNCTIONS]>,
    pub(super) quotients: Vec<u128>,
}

impl Phasing {
    pub(super) fn new(key: Block, plan: &Plan) -> Self {
        Self { aes: Aes128::new(key), bins: plan.bins() as u64, quotients: plan.quotients() }
    }

    pub(super) fn split(&self, items: &[u128]) -> Phased {
        /// Items hashed at a time.
        const CHUNK: usize = 64;
        let bins = u128::from(self.bins);
        let quotients: Vec<u128> = items.iter().map(|item| item / bins).collect();
        let mut phased = vec![[0; FUNCTIONS]; items.len()];
        let mut hashes = [Block::ZERO; CHUNK];
        let mut inputs = [Block::ZERO; CHUNK];
        let chunks = items.chunks(CHUNK).zip(quotients.chunks(CHUNK));
        for ((items, quotients), out) in chunks.zip(phased.chunks_mut(CHUNK)) {
            for (input, &quotient) in inputs.iter_mut().zip(quotients) {
                assert!(quotient < self.quotients, "items are below the plan's bound");
                *input = Block::new(quotient);
            }
            let hashes = &mut hashes[..items.len()];
            self.aes.feed_forward(&inputs[..items.len()], hashes);
            for (((out, item), quotient), &hash) in
                out.iter_mut().zip(items).zip(quotients).zip(&*hashes)
            {
                let rest = (item - quotient * bins) as u64;
                *out = [0, 1, 2].map(|function| self.bin(rest, hash, function));
            }
        }
        Phased { bins: phased, quotients }
    }

    /// `r + f_z(q) mod b`: a number below `b` is drawn by scaling 42 bits of the hash.
    fn bin(&self, rest: u64, hash: Block, function: u32) -> u32 {
        const BITS: u32 = 42;
        let bits = (u128::from(hash) >> (BITS * function)) & ((1 << BITS) - 1);
        let shift = ((bits * u128::from(self.bins)) >> BITS) as u64;
        let bin = rest + shift;
        (if bin < self.bins { bin } else { bin - self.bins }) as u32
    }
}

/// The sender's items by bin: three times each.
pub(super) struct Buckets {
    phased: Phased,
    /// Where the entries of each bin begin.
    starts: Vec<u32>,
    /// Four times the number of an item, plus the function that takes it to the bin.
    entries: Vec<u32>,
}

impl Buckets {
    pub(super) fn new(phased: Phased, bins: usize) -> Self {
        let mut starts = vec![0u32; bins + 1];
        for &bin in phased.bins.as_flattened() {
            starts[bin as usize] += 1;
        }
        // From counts to bucket ends; filling from the last item on moves each end down to the
        // start.
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut entries = vec![0; FUNCTIONS * phased.bins.len()];
        for (item, bins) in phased.bins.iter().enumerate().rev() {
            for (function, &bin) in bins.iter().enumerate() {
                let at = &mut starts[bin as usize];
                *at -= 1;
                entries[*at as usize] = (item * 4 + function) as u32;
            }
        }
        Self { phased, starts, entries }
    }

    /// Number, function and quotient of all items that may be in a bin.
    pub(super) fn bin(&self, bin: usize) -> impl Iterator<Item = (usize, usize, u128)> {
        let range = self.starts[bin] as usize..self.starts[bin + 1] as usize;
        self.entries[range].iter().map(|&entry| {
            let (item, function) = ((entry / 4) as usize, (entry % 4) as usize);
            (item, function, self.phased.quotients[item])
        })
    }
}
