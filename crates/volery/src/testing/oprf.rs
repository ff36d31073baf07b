//! A batched OPRF: a trait for each party, the ideal functionality, and [`volery_psi::oprf`] with
//! its code behind the same traits.
//!
//! Calls fail as the channel does, and with [`Error::Broken`](crate::channel::Error) after that.

use volery_channel::{Channel, Result};
use volery_primitives::{Block, hash::Tweaked};
use volery_psi::{code::Code, oprf};

/// The party that can evaluate every instance at any input.
pub trait OprfSender {
    /// The keys of the instances of one call.
    type Keys;
    /// Makes `n` instances; the receiver calls [`OprfReceiver::extend`] for as many.
    fn extend(&mut self, n: usize, channel: &mut Channel) -> Result<Self::Keys>;
    /// `F_j(input)` of instance `j` of these keys. Panics if there is none.
    fn evaluate(&self, keys: &Self::Keys, j: u32, input: Block) -> Result<Block>;
}

/// The party with one input for each instance.
pub trait OprfReceiver {
    /// `F_j(inputs[j])` in `outputs[j]`, of new instances. Panics if the lengths differ.
    fn extend(
        &mut self,
        inputs: &[Block],
        outputs: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()>;
}

/// Either end of the ideal OPRF, a hash under a key that both hold: no security at all.
pub struct Ideal(Tweaked, u128);

/// The two ends, which send no message.
#[must_use]
pub fn pair(seed: Block) -> (Ideal, Ideal) {
    (Ideal(Tweaked::new(seed), 0), Ideal(Tweaked::new(seed), 0))
}

impl OprfSender for Ideal {
    /// Their first number and how many.
    type Keys = (u128, usize);

    fn extend(&mut self, n: usize, _: &mut Channel) -> Result<Self::Keys> {
        self.1 += n as u128;
        Ok((self.1 - n as u128, n))
    }

    fn evaluate(&self, keys: &Self::Keys, j: u32, input: Block) -> Result<Block> {
        assert!((j as usize) < keys.1, "instance {j} of {}", keys.1);
        Ok(self.0.hash(keys.0 + u128::from(j), input))
    }
}

impl OprfReceiver for Ideal {
    fn extend(&mut self, inputs: &[Block], outputs: &mut [Block], _: &mut Channel) -> Result<()> {
        outputs.copy_from_slice(inputs);
        self.0.hash_slice(self.1, outputs);
        self.1 += inputs.len() as u128;
        Ok(())
    }
}

impl OprfSender for (oprf::Sender, Code) {
    type Keys = oprf::Keys;

    fn extend(&mut self, n: usize, channel: &mut Channel) -> Result<Self::Keys> {
        self.0.extend(&self.1, n, channel)
    }

    fn evaluate(&self, keys: &Self::Keys, j: u32, input: Block) -> Result<Block> {
        keys.evaluate(&self.0, &self.1, j, input)
    }
}

impl OprfReceiver for (oprf::Receiver, Code) {
    fn extend(
        &mut self,
        inputs: &[Block],
        outputs: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()> {
        self.0.extend(&self.1, inputs, outputs, channel)
    }
}
