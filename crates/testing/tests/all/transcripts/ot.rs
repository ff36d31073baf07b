//! Base OT, OT extension and the conversions, by their names in the table.

use volery_channel::{Channel, SessionId};
use volery_ot::softspoken::{self, Settings, SmallField};
use volery_ot::{CotReceiver, CotSender, base, convert, ideal};
use volery_primitives::Block;
use volery_testing::fixtures::rng;

use super::hashes;

const SESSION: SessionId = SessionId::from_bytes([0x5a; 32]);

/// Lengths of the calls of `extend`.
const LENGTHS: [usize; 2] = [1000, 33_000];

fn random_bits(n: usize, seed: u128) -> Vec<u8> {
    let mut bits = vec![0; n.div_ceil(8)];
    rng(seed).fill_bytes(&mut bits);
    bits
}

fn extend_sender(cot: &mut impl CotSender, channel: &mut Channel) {
    for n in LENGTHS {
        cot.extend(&mut vec![Block::ZERO; n], channel).unwrap();
    }
}

fn extend_receiver(cot: &mut impl CotReceiver, channel: &mut Channel) {
    for n in LENGTHS {
        let (mut u, mut w) = (vec![0xff; n.div_ceil(8)], vec![Block::ZERO; n]);
        cot.extend(&mut u, &mut w, channel).unwrap();
    }
}

fn softspoken_hashes(settings: impl Into<Settings>) -> [String; 2] {
    let settings = settings.into();
    hashes(
        |channel| {
            let mut cot =
                softspoken::Sender::setup(None, settings, SESSION, rng(1), channel).unwrap();
            extend_sender(&mut cot, channel);
        },
        |channel| {
            let mut cot = softspoken::Receiver::setup(settings, SESSION, rng(2), channel).unwrap();
            extend_receiver(&mut cot, channel);
        },
    )
}

pub(super) fn run(protocol: &str) -> [String; 2] {
    match protocol {
        "base" => hashes(
            |channel| {
                base::send(131, SESSION, &mut rng(1), channel).unwrap();
            },
            |channel| {
                base::receive(&random_bits(131, 3), 131, SESSION, &mut rng(2), channel).unwrap();
            },
        ),
        "softspoken 1" => softspoken_hashes(SmallField::Bits1),
        "softspoken 2" => softspoken_hashes(SmallField::Bits2),
        "softspoken 4" => softspoken_hashes(SmallField::Bits4),
        "softspoken 8" => softspoken_hashes(SmallField::Bits8),
        "softspoken 4, unchecked" => softspoken_hashes(SmallField::Bits4.unchecked()),
        "chosen" => {
            let (sender, receiver) = ideal::pair(Block::from(5), Block::from(6));
            hashes(
                |channel| {
                    let mut ot = convert::Sender::new(sender, SESSION);
                    ot.chosen(&[[Block::ZERO, Block::ONE]; 100], channel).unwrap();
                    ot.chosen_bytes(&[1; 300], &[2; 300], 3, channel).unwrap();
                },
                |channel| {
                    let mut ot = convert::Receiver::new(receiver, SESSION);
                    let x = random_bits(100, 1);
                    ot.chosen(&x, &mut [Block::ZERO; 100], channel).unwrap();
                    ot.chosen_bytes(&x, &mut [0; 300], 3, channel).unwrap();
                },
            )
        }
        _ => unreachable!("a row without a protocol"),
    }
}
