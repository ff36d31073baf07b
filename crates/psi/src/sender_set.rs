//! The sender's computation: the outputs of the OPRF on its own items, in a secret order. No
//! communication here.
//!
//! Figure 3, step 4, has a permutation for each of the sets `H_1, H_2, H_3, S_1, ..`; here one
//! uniform order of the items serves all of them. The receiver gains nothing: the sender evaluates
//! each instance on an input at most once, so all outputs except those on the receiver's own inputs
//! look random, in whatever order they come; and those that the receiver knows, at most one for an
//! item, are at uniformly random places. One order lets the sender read its items in sequence, and
//! lets the receiver name a common item to the sender by its place, which does not reveal the set
//! in which it was found.

use std::ops::Range;

use rayon::prelude::*;
use volery_ot::Result;
use volery_primitives::Block;
use volery_primitives::cuckoo::{FUNCTIONS, Hasher};
use volery_primitives::pages::Buffer;
use zeroize::Zeroizing;

use crate::code::Code;
use crate::items::input;
use crate::oprf;
use crate::params::Parameters;

/// Items whose outputs are computed and sent at a time, set after set: another number would change
/// the wire format.
pub(crate) const PIECE: usize = 1 << 13;

/// Items that one thread works on at a time.
const TASK: usize = 1 << 10;

/// The sender's items in the order in which their outputs are sent.
pub(crate) struct SenderSet {
    /// Number of the item at each place.
    order: Buffer<u32>,
    /// Block of the item at each place.
    digests: Buffer<Block>,
}

/// The outputs of the OPRF for one set and the items at consecutive places, and their inputs.
#[derive(Default)]
pub(crate) struct Outputs {
    pub(crate) inputs: Zeroizing<Vec<Block>>,
    pub(crate) values: Zeroizing<Vec<Block>>,
    /// The message for these outputs, in protocols that form it for each set separately.
    pub(crate) message: Vec<u8>,
}

/// The evaluator of the OPRF.
pub(crate) struct Oprf {
    pub(crate) sender: oprf::Sender,
    pub(crate) code: Code,
    pub(crate) keys: oprf::Keys,
}

impl SenderSet {
    /// The items in a random order, given as the number of the item at each place, and its block.
    pub(crate) fn new((order, digests): (Buffer<u32>, Buffer<Block>)) -> Self {
        Self { order, digests }
    }

    /// The blocks of the items, by their places.
    pub(crate) fn digests(&self) -> &[Block] {
        &self.digests
    }

    /// The number of the item at a place.
    pub(crate) fn item(&self, place: usize) -> usize {
        self.order[place] as usize
    }

    /// Step 4: the outputs of each set for the items at some places, all in one [`PIECE`]; `bins`
    /// are from [`SenderSet::bins`] for the same places. `finish` is then called on each set.
    ///
    /// # Errors
    /// If a call of the OPRF's sender failed.
    pub(crate) fn outputs(
        &self,
        places: Range<usize>,
        bins: &[[u32; FUNCTIONS]],
        oprf: &Oprf,
        parameters: &Parameters,
        finish: &(impl Fn(&mut Outputs) + Sync),
        sets: &mut [Outputs],
    ) -> Result<()> {
        let digests = &self.digests[places];
        // The part of an output that depends on the item alone varies with the hash index, which
        // all places of the stash share.
        let mut stash = Zeroizing::new(Vec::new());
        if let [_, _, _, _, ..] = sets {
            let inputs = digests.iter().map(|&digest| input(digest, FUNCTIONS));
            let inputs: Zeroizing<Vec<_>> = Zeroizing::new(inputs.collect());
            stash.resize(digests.len(), Block::ZERO);
            oprf.sender.shift(&oprf.code, &inputs, &mut stash)?;
        }
        sets.par_iter_mut().enumerate().try_for_each(|(set, outputs)| {
            outputs.inputs.resize(digests.len(), Block::ZERO);
            outputs.values.resize(digests.len(), Block::ZERO);
            let tasks =
                outputs.inputs.par_chunks_mut(TASK).zip(outputs.values.par_chunks_mut(TASK));
            let given = digests.par_chunks(TASK).zip(bins.par_chunks(TASK));
            tasks.zip(given).enumerate().try_for_each(
                |(task, ((inputs, values), (digests, bins)))| {
                    let n = digests.len();
                    let place = (parameters.bins + set.saturating_sub(FUNCTIONS)) as u32;
                    let mut instances = Zeroizing::new([place; TASK]);
                    for (instance, bins) in instances.iter_mut().zip(bins) {
                        *instance = bins.get(set).copied().unwrap_or(*instance);
                    }
                    for (input_of, &digest) in inputs.iter_mut().zip(digests) {
                        *input_of = input(digest, set);
                    }
                    match stash.get(task * TASK..).filter(|_| set >= FUNCTIONS) {
                        Some(stash) => values.copy_from_slice(&stash[..n]),
                        None => oprf.sender.shift(&oprf.code, inputs, values)?,
                    }
                    oprf.keys.evaluate_shifted(&oprf.code, &instances[..n], inputs, values);
                    Result::Ok(())
                },
            )?;
            finish(outputs);
            Ok(())
        })
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
