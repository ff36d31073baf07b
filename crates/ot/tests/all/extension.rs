//! The extension with honest parties: correctness, lengths, cost.

use crate::common::*;
use volery_channel::run_two_parties;
use volery_ot::softspoken::{self, Settings, SmallField};
use volery_primitives::Block;

/// Every field, with the checks and without.
fn all_settings() -> impl Iterator<Item = Settings> {
    SmallField::ALL.into_iter().flat_map(|field| [field.into(), field.unchecked()])
}

#[test]
fn softspoken_all_lengths_all_settings() {
    for settings in all_settings() {
        let (sent, received) = run_two_parties(
            |channel| {
                let mut cot =
                    softspoken::Sender::setup(None, settings, SESSION, rng(1), channel).unwrap();
                extend_sender(&mut cot, &LENGTHS, channel).unwrap()
            },
            |channel| {
                let mut cot =
                    softspoken::Receiver::setup(settings, SESSION, rng(2), channel).unwrap();
                extend_receiver(&mut cot, &LENGTHS, channel).unwrap()
            },
        );
        assert_cot(&sent, &received);
    }
}

#[test]
#[should_panic(expected = "delta must not be zero")]
fn zero_delta_is_refused() {
    let (mut channel, _peer) = volery_channel::Channel::memory_pair();
    let field = SmallField::Bits8;
    let _ = softspoken::Sender::setup(Some(Block::ZERO), field, SESSION, rng(1), &mut channel);
}
