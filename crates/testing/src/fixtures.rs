//! Shared parts of the protocols of a registry: a session, seeds, and a dealer's OTs.

use volery_channel::SessionId;
use volery_ot::{convert, ideal};
use volery_primitives::Block;
use volery_primitives::prg::Prg;

/// The session of all protocols.
pub const SESSION: SessionId = SessionId::from_bytes([0x68; 32]);

/// The seed of the left party, and of the right one.
pub const SEEDS: [u128; 2] = [1, 2];

/// The difference of the dealer's correlations.
pub const DELTA: Block = Block::new(0x1234_5678_9abc_def1_0fed_cba9_8765_4321);

/// A generator with this seed.
pub fn rng(seed: u128) -> Prg {
    Prg::new(Block::new(seed))
}

/// `n` packed bits, low bit first, the unused ones zero.
pub fn random_bits(n: usize, seed: u128) -> Vec<u8> {
    let mut bits = vec![0; n.div_ceil(8)];
    rng(seed).fill_bytes(&mut bits);
    volery_primitives::bits::clear_from(&mut bits, n);
    bits
}

/// The sender's end of the dealer's OTs.
pub fn dealt_sender() -> convert::Sender<ideal::Sender> {
    convert::Sender::new(ideal::pair(DELTA, Block::new(6)).0, SESSION)
}

/// The receiver's end of the dealer's OTs.
pub fn dealt_receiver() -> convert::Receiver<ideal::Receiver> {
    convert::Receiver::new(ideal::pair(DELTA, Block::new(6)).1, SESSION)
}
