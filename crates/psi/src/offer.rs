//! What the sender computes: the outputs of the OPRF on its own items, in a secret order. Nothing here talks.
//!
//! Figure 3, step 4, has a permutation for each of the sets `H_1, H_2, H_3, S_1, ..`; here one uniform order of the items
//! serves all of them. That gives the receiver nothing more: the sender asks each instance for its output on an input that
//! it asks only once, so all outputs but those on the receiver's own inputs look random, in whatever order they come; and
//! those that the receiver knows, at most one for an item, are at uniformly random places. One order lets the sender's
//! items pass by in sequence, and lets the receiver name a common item to the sender by its place, which says nothing of
//! the set it was found in.

use std::ops::Range;

use rayon::prelude::*;
use volery_ot::Result;
use volery_primitives::Block;
use volery_primitives::cuckoo::{FUNCTIONS, Hasher};
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use crate::code::Code;
use crate::items::input;
use crate::oprf;
use crate::params::Parameters;

/// Items whose outputs are computed and sent at a time, set after set: another number would be another wire.
pub(crate) const PIECE: usize = 1 << 13;

/// Items that one thread works on at a time.
const TASK: usize = 1 << 10;

/// Items whose code words are computed between two reports of progress.
const REPORT: usize = 1 << 17;

/// The sender's items in the order in which their outputs go out.
pub(crate) struct Offer {
    /// Number of the item at each place.
    order: Zeroizing<Vec<u32>>,
    /// Its block.
    digests: Buffer<Block>,
    /// Its [shift](oprf::Sender::shift) with each hash index: 1, 2, 3 and, where there is a stash, 0.
    shifted: Vec<Buffer<Block>>,
}

/// The outputs of the OPRF for one set and the items at consecutive places, and the inputs they belong to.
pub(crate) struct Outputs {
    pub(crate) inputs: Zeroizing<Vec<Block>>,
    pub(crate) values: Zeroizing<Vec<Block>>,
}

impl Offer {
    /// Puts the items in a random order, which `rng` decides.
    pub(crate) fn shuffled(digests: &[Block], rng: &mut Prg) -> Self {
        let order = random_order(digests.len(), rng);
        let mut shuffled = Buffer::zeroed(digests.len());
        for (out, &item) in shuffled.iter_mut().zip(order.iter()) {
            *out = digests[item as usize];
        }
        Self {
            order,
            digests: shuffled,
            shifted: Vec::new(),
        }
    }

    /// Computes what the outputs owe to the items alone.
    pub(crate) fn encode(
        &mut self,
        parameters: &Parameters,
        code: &Code,
        sender: &oprf::Sender,
        done: &mut dyn FnMut(usize),
    ) -> Result<()> {
        // All places of the stash have the same hash index.
        let wanted = parameters.sets().min(FUNCTIONS + 1);
        for set in 0..wanted {
            let mut shifted = Buffer::zeroed(self.digests.len());
            let mut inputs = Zeroizing::new(vec![Block::ZERO; REPORT.min(self.digests.len())]);
            let pieces = self.digests.chunks(REPORT).zip(shifted.chunks_mut(REPORT));
            for (piece, (digests, shifted)) in pieces.enumerate() {
                let inputs = &mut inputs[..digests.len()];
                for (out, &digest) in inputs.iter_mut().zip(digests) {
                    *out = input(digest, set);
                }
                sender.shift(code, inputs, shifted)?;
                let items = piece * REPORT + digests.len();
                done((set * self.digests.len() + items) / wanted);
            }
            self.shifted.push(shifted);
        }
        Ok(())
    }

    /// Number of the item at a place.
    pub(crate) fn item(&self, place: usize) -> usize {
        self.order[place] as usize
    }

    /// Step 4: the outputs of set `set` for the items at some places, all in one [`PIECE`]; `bins` are from
    /// [`Offer::bins`] for the same places.
    pub(crate) fn outputs(
        &self,
        set: usize,
        places: Range<usize>,
        bins: &[[u32; FUNCTIONS]],
        (code, keys): (&Code, &oprf::Keys),
        parameters: &Parameters,
    ) -> Outputs {
        let digests = self.digests[places.clone()].iter();
        let inputs: Vec<_> = digests.map(|&digest| input(digest, set)).collect();
        let inputs = Zeroizing::new(inputs);
        let shifted = &self.shifted[set.min(FUNCTIONS)][places];
        let mut values = Zeroizing::new(shifted.to_vec());
        values
            .par_chunks_mut(TASK)
            .zip(inputs.par_chunks(TASK).zip(bins.par_chunks(TASK)))
            .for_each(|(values, (inputs, bins))| {
                let mut instances = [0; TASK];
                for (instance, bins) in instances.iter_mut().zip(bins) {
                    *instance = match bins.get(set) {
                        Some(&bin) => bin,
                        None => (parameters.bins + set - FUNCTIONS) as u32,
                    };
                }
                keys.evaluate_shifted(code, &instances[..inputs.len()], inputs, values);
            });
        Outputs { inputs, values }
    }

    /// The bins of the items at some places.
    pub(crate) fn bins(
        &self,
        hasher: &Hasher,
        places: Range<usize>,
    ) -> Zeroizing<Vec<[u32; FUNCTIONS]>> {
        let mut bins = Zeroizing::new(vec![[0; FUNCTIONS]; places.len()]);
        hasher.bins_slice(&self.digests[places], &mut bins);
        bins
    }
}

/// A uniformly random order of `n` numbers: the shuffle of Fisher and Yates. The order indexes this party's own memory.
fn random_order(n: usize, rng: &mut Prg) -> Zeroizing<Vec<u32>> {
    let mut order: Zeroizing<Vec<u32>> = Zeroizing::new((0..n as u32).collect());
    for last in (1..n).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_permutations_and_all_of_them() {
        let mut rng = Prg::new(Block::ONE);
        for n in [0, 1, 2, 3, 1000] {
            let mut order = random_order(n, &mut rng);
            order.sort_unstable();
            assert!(order.iter().copied().eq(0..n as u32));
        }
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            *counts
                .entry(random_order(3, &mut rng).to_vec())
                .or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        // A thousand each, give or take seven standard deviations.
        assert!(
            counts
                .values()
                .all(|&count: &i32| (count - 1000).abs() < 200),
            "{counts:?}"
        );
    }
}
