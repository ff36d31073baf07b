//! Set intersection and keyword search whose messages are changed in transit, and shared parts of
//! their runs.

mod tampering;

use volery_channel::{Channel, SessionId};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::intersect::{Received, Sent};
use volery_psi::{Receiver, Result, Sender, Settings};

/// The session of all runs.
pub(crate) const SESSION: SessionId = SessionId::from_bytes([7; 32]);

/// Items `from..to`, some of them long.
pub(crate) fn items(from: usize, to: usize) -> Vec<Vec<u8>> {
    (from..to)
        .map(|i| {
            let mut item = format!("item {i}").into_bytes();
            if i % 97 == 0 {
                item.resize(10_240, b'.');
            }
            item
        })
        .collect()
}

/// The sender, all its phases.
pub(crate) fn sender(items: &[Vec<u8>], settings: Settings, channel: &mut Channel) -> Result<Sent> {
    let sender = Sender::setup(SESSION, Prg::new(Block::new(1)), channel)?;
    sender.intersect(items, settings, &mut (), channel)
}

/// The receiver, all its phases.
pub(crate) fn receiver(
    items: &[Vec<u8>],
    settings: Settings,
    channel: &mut Channel,
) -> Result<Received> {
    let receiver = Receiver::setup(SESSION, Prg::new(Block::new(2)), channel)?;
    receiver.intersect(items, settings, &mut (), channel)
}
