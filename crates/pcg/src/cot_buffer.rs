//! A buffer of correlated OTs: outputs of a round of COT extension reserved for the trees of the
//! next.
//!
//! The blocks of both parties carry the choice bit as in [`crate::correlation`].
//!
//! Cost: no message.

use volery_channel::{Channel, Result};
use volery_ot::{CotReceiver, CotSender};
use volery_primitives::{Block, bits, pages::Buffer};
use zeroize::Zeroizing;

/// The endpoint of the holder of `delta`.
pub struct Sender {
    delta: Zeroizing<Block>,
    buffer: CotBuffer,
}

/// The endpoint of the holder of the choice bits.
#[derive(Default)]
pub struct Receiver {
    buffer: CotBuffer,
}

#[derive(Default)]
struct CotBuffer {
    blocks: Buffer<Block>,
    next: usize,
}

impl CotBuffer {
    fn feed(&mut self, blocks: &[Block]) {
        self.blocks = std::mem::take(&mut self.blocks).with_len(blocks.len());
        self.blocks.copy_from_slice(blocks);
        self.next = 0;
    }

    /// # Panics
    /// If the buffer holds fewer: the plan reserved too few.
    fn take(&mut self, out: &mut [Block]) {
        let end = self.next + out.len();
        out.copy_from_slice(&self.blocks[self.next..end]);
        self.next = end;
    }
}

impl Sender {
    /// An empty buffer.
    pub(crate) fn new(delta: Block) -> Self {
        Self { delta: Zeroizing::new(delta), buffer: CotBuffer::default() }
    }

    /// Replaces the remaining correlations.
    pub(crate) fn feed(&mut self, blocks: &[Block]) {
        self.buffer.feed(blocks);
    }
}

impl Receiver {
    /// Replaces the remaining correlations.
    pub(crate) fn feed(&mut self, blocks: &[Block]) {
        self.buffer.feed(blocks);
    }
}

impl CotSender for Sender {
    fn delta(&self) -> Block {
        *self.delta
    }

    fn extend(&mut self, v: &mut [Block], _channel: &mut Channel) -> Result<()> {
        self.buffer.take(v);
        Ok(())
    }
}

impl CotReceiver for Receiver {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], _channel: &mut Channel) -> Result<()> {
        self.buffer.take(w);
        bits::lowest_bits(w, u);
        Ok(())
    }
}
