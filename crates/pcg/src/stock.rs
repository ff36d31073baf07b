//! Correlated OTs that are there already: what a round of COT extension kept back for the trees of the next.
//!
//! The blocks of both parties carry the choice bit as [`crate::correlation`] says.
//!
//! Cost: no message.

use volery_channel::{Channel, Result};
use volery_ot::{CotReceiver, CotSender};
use volery_primitives::{Block, bits, pages::Buffer};
use zeroize::Zeroizing;

/// The end of the holder of `delta`.
pub struct Sender {
    delta: Zeroizing<Block>,
    stock: Stock,
}

/// The end of the holder of the choice bits.
#[derive(Default)]
pub struct Receiver {
    stock: Stock,
}

#[derive(Default)]
struct Stock {
    blocks: Buffer<Block>,
    next: usize,
}

impl Stock {
    fn feed(&mut self, blocks: &[Block]) {
        self.blocks = Buffer::zeroed(blocks.len());
        self.blocks.copy_from_slice(blocks);
        self.next = 0;
    }

    /// # Panics
    /// If the stock is smaller: a plan that did not keep enough back.
    fn take(&mut self, out: &mut [Block]) {
        let end = self.next + out.len();
        out.copy_from_slice(&self.blocks[self.next..end]);
        self.next = end;
    }
}

impl Sender {
    /// An empty stock.
    pub(crate) fn new(delta: Block) -> Self {
        Self {
            delta: Zeroizing::new(delta),
            stock: Stock::default(),
        }
    }

    /// Replaces what is left.
    pub(crate) fn feed(&mut self, blocks: &[Block]) {
        self.stock.feed(blocks);
    }
}

impl Receiver {
    /// Replaces what is left.
    pub(crate) fn feed(&mut self, blocks: &[Block]) {
        self.stock.feed(blocks);
    }
}

impl CotSender for Sender {
    fn delta(&self) -> Block {
        *self.delta
    }

    fn extend(&mut self, v: &mut [Block], _channel: &mut Channel) -> Result<()> {
        self.stock.take(v);
        Ok(())
    }
}

impl CotReceiver for Receiver {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], _channel: &mut Channel) -> Result<()> {
        self.stock.take(w);
        bits::lowest_bits(w, u);
        Ok(())
    }
}
