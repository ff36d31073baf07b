//! Both extensions with honest parties: correctness, lengths, cost.

use crate::common::*;
use volery_channel::{run_two_parties, run_two_parties_with_stats};
use volery_ot::iknp;
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
fn iknp_all_lengths() {
    let (sent, received) = run_two_parties(
        |channel| {
            let mut cot = iknp::Sender::setup(None, SESSION, rng(1), channel).unwrap();
            extend_sender(&mut cot, &LENGTHS, channel).unwrap()
        },
        |channel| {
            let mut cot = iknp::Receiver::setup(SESSION, rng(2), channel).unwrap();
            extend_receiver(&mut cot, &LENGTHS, channel).unwrap()
        },
    );
    assert_cot(&sent, &received);
}

#[test]
#[should_panic(expected = "delta must not be zero")]
fn zero_delta_is_refused() {
    let (mut channel, _peer) = volery_channel::Channel::memory_pair();
    let field = SmallField::Bits8;
    let _ = softspoken::Sender::setup(Some(Block::ZERO), field, SESSION, rng(1), &mut channel);
}

/// Bytes of a batch as documented.
fn batch_bytes(n: usize, field: SmallField, is_checked: bool) -> u64 {
    let (more, response) = if is_checked { (128, 48) } else { (0, 0) };
    let columns = n.div_ceil(128) * 128 + more;
    ((field.trees() - 1) * columns / 8 + response) as u64
}

#[test]
fn softspoken_costs_what_it_says() {
    for (field, is_checked) in SmallField::ALL.into_iter().flat_map(|f| [(f, true), (f, false)]) {
        let settings = match is_checked {
            true => field.into(),
            false => field.unchecked(),
        };
        let lengths = [1, 128, 1000, 32768, 40000];
        let ((mut setup, sender), (_, receiver)) = run_two_parties_with_stats(
            |channel| {
                let mut cot =
                    softspoken::Sender::setup(None, settings, SESSION, rng(1), channel).unwrap();
                let setup = channel.stats();
                extend_sender(&mut cot, &lengths, channel).unwrap();
                setup
            },
            |channel| {
                let mut cot =
                    softspoken::Receiver::setup(settings, SESSION, rng(2), channel).unwrap();
                extend_receiver(&mut cot, &lengths, channel).unwrap();
            },
        );
        let trees = field.trees() as u64;
        let setup_bytes = trees * (field.bits() as u64 - 1) * 32 + (trees + 1) * 32;
        assert_eq!(setup.bytes_sent, 64 * 128);
        assert_eq!(setup.bytes_received, 32 + setup_bytes);
        // `A` and the trees are one run of bytes from the receiver: no bytes of the sender come
        // between them.
        assert_eq!((setup.messages_sent, setup.messages_received), (1, 1));
        let extend: u64 = [1, 128, 1000, 32768, 32768, 40000 - 32768]
            .map(|n| batch_bytes(n, field, is_checked))
            .iter()
            .sum();
        setup.bytes_received += extend;
        assert_eq!(sender, setup, "the extension sends nothing and receives one run of bytes");
        assert_eq!(receiver.bytes_sent, setup.bytes_received);
    }
}

#[test]
fn iknp_costs_what_it_says() {
    let ((_, sender), _) = run_two_parties_with_stats(
        |channel| {
            let mut cot = iknp::Sender::setup(None, SESSION, rng(1), channel).unwrap();
            extend_sender(&mut cot, &[1, 1000, 40000], channel).unwrap();
        },
        |channel| {
            let mut cot = iknp::Receiver::setup(SESSION, rng(2), channel).unwrap();
            extend_receiver(&mut cot, &[1, 1000, 40000], channel).unwrap();
        },
    );
    assert_eq!(sender.bytes_sent, 64 * 128);
    assert_eq!(sender.bytes_received, 32 + 16 * (128 + 1024 + 40064));
    assert_eq!((sender.messages_sent, sender.messages_received), (1, 1));
}
