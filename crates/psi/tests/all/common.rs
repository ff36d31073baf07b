//! Both parties of a run.

use volery_channel::{Channel, SessionId, run_two_channels, run_two_parties};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::intersect::{Received, Sent};
use volery_psi::{Receiver, Result, Sender, Settings};

/// The session of all tests.
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

/// Runs the sender, all its phases.
pub(crate) fn sender(items: &[Vec<u8>], settings: Settings, channel: &mut Channel) -> Result<Sent> {
    let sender = Sender::setup(SESSION, Prg::new(Block::new(1)), channel)?;
    sender.intersect(items, settings, &mut (), channel)
}

/// Runs the receiver, all its phases.
pub(crate) fn receiver(
    items: &[Vec<u8>],
    settings: Settings,
    channel: &mut Channel,
) -> Result<Received> {
    let receiver = Receiver::setup(SESSION, Prg::new(Block::new(2)), channel)?;
    receiver.intersect(items, settings, &mut (), channel)
}

/// A run in memory.
pub(crate) fn intersect(
    ours: &[Vec<u8>],
    theirs: &[Vec<u8>],
    settings: Settings,
) -> (Result<Sent>, Result<Received>) {
    run_two_parties(
        |channel| sender(ours, settings, channel),
        |channel| receiver(theirs, settings, channel),
    )
}

/// A run in memory in which one party is expected to leave early.
pub(crate) fn intersect_to_failure(
    ours: &[Vec<u8>],
    theirs: &[Vec<u8>],
    settings: Settings,
) -> (Result<Sent>, Result<Received>) {
    let (left, right) = Channel::memory_pair();
    let ((sent, _), (received, _)) = run_two_channels(
        left,
        right,
        |channel| sender(ours, settings, channel),
        |channel| receiver(theirs, settings, channel),
    );
    (sent, received)
}
