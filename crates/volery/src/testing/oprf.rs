//! A batched OPRF: a trait for each party, the ideal functionality, and `psi::oprf` behind the
//! same traits.

use volery_channel::{Channel, Result};
use volery_primitives::hash::Tweaked;
use volery_primitives::{Block, prg::Prg};
use volery_psi::{code::Code, oprf};

/// The party that can evaluate every instance at any input.
pub trait OprfSender {
    /// Makes `instances` more instances; the receiver calls [`OprfReceiver::extend`] for as many.
    ///
    /// # Errors
    /// If the channel fails; [`Error::Broken`](crate::channel::Error::Broken) if an earlier call
    /// did.
    fn extend(&mut self, instances: usize, channel: &mut Channel) -> Result<()>;

    /// `F_j(input)` of instance number `j`, counted from the first of the first call.
    ///
    /// # Panics
    /// If there is no such instance.
    ///
    /// # Errors
    /// [`Error::Broken`](crate::channel::Error::Broken) if a call failed.
    fn evaluate(&self, j: usize, input: Block) -> Result<Block>;
}

/// The party with one input for each instance.
pub trait OprfReceiver {
    /// `F_j(inputs[i])` in `outputs[i]`, for the next instances `j`.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Errors
    /// The errors of [`OprfSender::extend`].
    fn extend(
        &mut self,
        inputs: &[Block],
        outputs: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()>;
}

/// Either end of the ideal OPRF: a hash under a key that both hold. No security at all.
pub struct Ideal {
    hash: Tweaked,
    next: usize,
}

/// The two ends, which send no message.
#[must_use]
pub fn pair(seed: Block) -> (Ideal, Ideal) {
    let end = || Ideal { hash: Tweaked::new(Prg::new(seed).block()), next: 0 };
    (end(), end())
}

impl OprfSender for Ideal {
    fn extend(&mut self, instances: usize, _channel: &mut Channel) -> Result<()> {
        self.next += instances;
        Ok(())
    }

    fn evaluate(&self, j: usize, input: Block) -> Result<Block> {
        assert!(j < self.next, "instance {j} of {}", self.next);
        Ok(self.hash.hash(j as u128, input))
    }
}

impl OprfReceiver for Ideal {
    fn extend(&mut self, inputs: &[Block], outputs: &mut [Block], _: &mut Channel) -> Result<()> {
        outputs.copy_from_slice(inputs);
        self.hash.hash_slice(self.next as u128, outputs);
        self.next += inputs.len();
        Ok(())
    }
}

/// A party of [`volery_psi::oprf`] with its code.
pub struct Kkrt<P> {
    party: P,
    code: Code,
    keys: Vec<oprf::Keys>,
}

impl<P> Kkrt<P> {
    /// An [`oprf::Sender`] or [`oprf::Receiver`]; both parties have the same code, drawn after the
    /// receiver's inputs are fixed.
    pub const fn new(party: P, code: Code) -> Self {
        Self { party, code, keys: Vec::new() }
    }
}

impl OprfSender for Kkrt<oprf::Sender> {
    fn extend(&mut self, instances: usize, channel: &mut Channel) -> Result<()> {
        self.keys.push(self.party.extend(&self.code, instances, channel)?);
        Ok(())
    }

    fn evaluate(&self, mut j: usize, input: Block) -> Result<Block> {
        for keys in &self.keys {
            if j < keys.len() {
                return keys.evaluate(&self.party, &self.code, j as u32, input);
            }
            j -= keys.len();
        }
        panic!("there is no such instance");
    }
}

impl OprfReceiver for Kkrt<oprf::Receiver> {
    fn extend(
        &mut self,
        inputs: &[Block],
        outputs: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()> {
        self.party.extend(&self.code, inputs, outputs, channel)
    }
}
