//! The oblivious PRF by itself: the receiver gets a block for each of its items, the sender a key
//! with which it computes the block of any item.
//!
//! Values have 128 bits in every form: the low-communication form is for intersections only, where
//! the sender's items are fixed before the hash functions are.

use volery_channel::Channel;
use volery_primitives::Block;
use volery_primitives::pages::Buffer;
use zeroize::Zeroizing;

use super::{Form, OPRF, Parameters, Receiver, Sender, Settings, batch, batches};
use crate::error::{Result, misbehaved};
use crate::items::{Items, digests};
use crate::watch::{Phase, Watch};

/// The sender's key: it gives the output of the OPRF on any item.
pub struct Keys {
    parameters: Parameters,
    salt: [u8; 32],
    pub(super) batches: Vec<batch::Keys>,
}

/// The receiver's outputs.
pub struct Outputs {
    /// The sizes and the parameters derived from them.
    pub parameters: Parameters,
    /// The output for each item, in their order. Wiped when dropped.
    pub outputs: Buffer<Block>,
}

/// The settings in the handshake and the terms.
fn settings(form: Form) -> (&'static str, Settings) {
    assert!(form != Form::Low, "the low-communication form is for intersections");
    (OPRF, Settings { form, both: false })
}

impl Sender {
    /// Makes a key, whose outputs on its items the receiver gets. This party may evaluate the key
    /// on any number of items later. Both parties call with the same form.
    ///
    /// # Panics
    /// If the form is the low-communication one.
    ///
    /// # Errors
    /// If the channel fails, or the peer does not follow the protocol.
    pub fn keys(self, form: Form, watch: &mut dyn Watch, channel: &mut Channel) -> Result<Keys> {
        // The sender states one item, so that a receiver with an empty set is the trivial case.
        let nothing: [&[u8]; 1] = [&[]];
        let mut begun = self.party.begin(&nothing[..], 0, settings(form), watch, channel)?;
        let parameters = begun.parameters;
        let mut keys = Keys { salt: begun.agreement.salt(), batches: Vec::new(), parameters };
        let parameters = &keys.parameters;
        if parameters.trivial() {
            let rng = &mut begun.party.rng;
            let batch = batch::Keys::random(parameters, &begun.agreement, rng);
            keys.batches.push(batch);
        } else {
            watch.begin(Phase::Correlate, 0);
            let mut evaluator = begun.party.evaluator(parameters, channel)?;
            watch.begin(Phase::Rows, parameters.receiver_items);
            for bins in batches(parameters) {
                let agreement = &begun.agreement;
                let batch = evaluator.batch(parameters, agreement, bins, None, channel)?;
                keys.batches.push(batch);
            }
        }
        let end = begun.agreement.end(volery_channel::Role::Sender, &parameters.words());
        channel.send(&end)?;
        channel.flush()?;
        Ok(keys)
    }
}

impl Receiver {
    /// The outputs of the OPRF on these items, under a key that the sender gets. The call fixes the
    /// items, which must be distinct. Fails as [`Receiver::intersect`] does.
    ///
    /// # Panics
    /// If the form is the low-communication one.
    pub fn outputs(
        self,
        items: &(impl Items + ?Sized),
        form: Form,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Outputs> {
        let begun = self.party.begin(items, 0, settings(form), watch, channel)?;
        // mutant(vole-oprf-items): false
        if begun.parameters.sender_items != 1 {
            return Err(misbehaved("it sent a number of items where the protocol has none"));
        }
        let done = begun.evaluate(false, watch, channel)?;
        done.expect_end(channel)?;
        let mut outputs = Buffer::zeroed(items.len());
        for place in done.set.all_places() {
            outputs[done.set.number(place)] = done.set.blocks[place];
        }
        Ok(Outputs { parameters: done.parameters, outputs })
    }
}

impl Keys {
    /// The sizes and the parameters derived from them.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The output on each item, in their order. Equal items have equal outputs.
    #[must_use]
    pub fn evaluate(&self, items: &(impl Items + ?Sized)) -> Buffer<Block> {
        let digests = digests(&self.salt, items, &mut |_| ());
        let mut out = Buffer::zeroed(items.len());
        let bins = volery_okvs::Bins::new(self.parameters.bins, items.len());
        let mut order: Zeroizing<Vec<_>> = Zeroizing::new((0..items.len()).collect());
        order.sort_by_key(|item| bins.bin(digests[*item]));
        for numbers in order.chunk_by(|a, b| bins.bin(digests[*a]) == bins.bin(digests[*b])) {
            let bin = bins.bin(digests[numbers[0]]);
            let blocks = numbers.iter().map(|item| digests[*item]);
            let mut blocks: Zeroizing<Vec<_>> = Zeroizing::new(blocks.collect());
            self.batches[bin / super::BATCH].evaluate(bin, &mut blocks, None);
            for (item, block) in numbers.iter().zip(&*blocks) {
                out[*item] = *block;
            }
        }
        out
    }
}
