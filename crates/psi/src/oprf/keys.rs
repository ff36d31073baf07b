//! The sender's keys of the instances, and its evaluations (step 4).

use volery_ot::Result;
use volery_primitives::Block;
use volery_primitives::aes::rekeyed;
use volery_primitives::pages::Buffer;
use volery_primitives::prefetch::{AHEAD, prefetch};
use zeroize::Zeroizing;

use super::{CHUNK, LANES, Sender};
use crate::code::Code;

/// The keys of consecutive instances: 16 bytes each. Wiped when dropped.
pub struct Keys {
    pub(super) rows: Vec<Buffer<Block>>,
    /// Number of the first instance among all of the session.
    pub(super) first: u64,
    pub(super) instances: usize,
}

impl Keys {
    /// Number of instances.
    pub const fn len(&self) -> usize {
        self.instances
    }

    /// Whether there are no instances.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.instances == 0
    }

    /// Prefetches the key of an instance.
    #[inline]
    fn ask(&self, instance: u32) {
        let instance = instance as usize;
        prefetch(&self.rows[instance / CHUNK], instance % CHUNK);
    }

    /// `F_j(x)` for each pair: `instances[i]` is `j`, counted from the first instance of these
    /// keys, `inputs[i]` is `x`, and `shifted[i]` is [`Sender::shift`] of `x`, with the code and
    /// the sender of these keys; the output replaces it.
    ///
    /// # Panics
    /// If the lengths differ, or an instance is out of range.
    pub fn evaluate_shifted(
        &self,
        code: &Code,
        instances: &[u32],
        inputs: &[Block],
        shifted: &mut [Block],
    ) {
        assert_eq!(instances.len(), shifted.len(), "an instance for each value");
        assert_eq!(inputs.len(), shifted.len(), "an input for each value");
        let mut keys = Zeroizing::new([Block::ZERO; LANES]);
        let mut ahead = instances.iter().skip(AHEAD);
        let pairs = instances.chunks(LANES).zip(inputs.chunks(LANES));
        for ((instances, inputs), values) in pairs.zip(shifted.chunks_mut(LANES)) {
            let keys = &mut keys[..instances.len()];
            let pairs = instances.iter().zip(inputs);
            // The reads do not wait for each other: nothing else is in this loop.
            for (((&instance, &input), value), key) in pairs.zip(&mut *values).zip(&mut *keys) {
                if let Some(&instance) = ahead.next() {
                    self.ask(instance);
                }
                let instance = instance as usize;
                *value ^= self.rows[instance / CHUNK][instance % CHUNK];
                *key = code.hash_key(self.first + instance as u64, input);
            }
            rekeyed(keys, values);
        }
    }

    /// `F_j(x)` for the instance `instance`, counted from the first of these keys, and any input.
    /// The code and the sender must be those of these keys; others give meaningless outputs.
    ///
    /// # Panics
    /// If the instance is out of range.
    ///
    /// # Errors
    /// [`Error::Broken`](volery_ot::Error::Broken) if a call of the sender failed.
    pub fn evaluate(
        &self,
        sender: &Sender,
        code: &Code,
        instance: u32,
        input: Block,
    ) -> Result<Block> {
        let mut value = [Block::ZERO];
        sender.shift(code, &[input], &mut value)?;
        self.evaluate_shifted(code, &[instance], &[input], &mut value);
        Ok(value[0])
    }
}
