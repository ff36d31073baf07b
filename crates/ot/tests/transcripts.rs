//! What seeded runs put on the wire: a change of any byte shows here, and the row says which protocol made it.
//!
//! The hashes are BLAKE3 over all bytes that one party sent.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::*;
use volery_channel::{Channel, run_two_parties};
use volery_ot::softspoken::{self, Settings, SmallField};
use volery_ot::{base, flavour, ideal, iknp};
use volery_primitives::Block;

/// Protocol, first 16 bytes of the hash of what the sender sent, and of what the receiver sent.
const TABLE: [(&str, &str, &str); 8] = [
    (
        "base",
        "71a2e5a31ef77d32d8d6b2464bc8f6b7",
        "00d2649d9ae809c7bd130da24d95694b",
    ),
    (
        "softspoken 1",
        "aaa53636343c466d0cfc6eb6a93a7b70",
        "c1414d379ebe5be35eb4c3e4897fba36",
    ),
    (
        "softspoken 2",
        "aaa53636343c466d0cfc6eb6a93a7b70",
        "c39a61a52b3842584e50fd02f942e5ce",
    ),
    (
        "softspoken 4",
        "aaa53636343c466d0cfc6eb6a93a7b70",
        "e11c616a3466047f9e4063908448ea79",
    ),
    (
        "softspoken 8",
        "aaa53636343c466d0cfc6eb6a93a7b70",
        "629e0f680a71f69e70a03bbb1af9aad3",
    ),
    (
        "softspoken 4, unchecked",
        "aaa53636343c466d0cfc6eb6a93a7b70",
        "88129c043f507564cf70c6285fed6247",
    ),
    (
        "iknp",
        "aaa53636343c466d0cfc6eb6a93a7b70",
        "9fdbe4adf70640fa298b8bc348f4661e",
    ),
    (
        "chosen",
        "311c5da4e18562c87ace424353c447fd",
        "fbdb4c78a3152eee35be25ba9610b40b",
    ),
];

fn hashes(
    sender: impl FnOnce(&mut Channel) + Send,
    receiver: impl FnOnce(&mut Channel) + Send,
) -> (String, String) {
    run_two_parties(
        |channel| recorded(channel, sender),
        |channel| recorded(channel, receiver),
    )
}

fn recorded(channel: &mut Channel, party: impl FnOnce(&mut Channel)) -> String {
    channel.record_transcript();
    party(channel);
    let hash = channel.transcript().unwrap().sent;
    hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn softspoken_hashes(settings: impl Into<Settings>) -> (String, String) {
    let settings = settings.into();
    hashes(
        |channel| {
            let mut cot =
                softspoken::Sender::setup(None, settings, SESSION, rng(1), channel).unwrap();
            extend_sender(&mut cot, &[1000, 33_000], channel).unwrap();
        },
        |channel| {
            let mut cot = softspoken::Receiver::setup(settings, SESSION, rng(2), channel).unwrap();
            extend_receiver(&mut cot, &[1000, 33_000], channel).unwrap();
        },
    )
}

fn run(protocol: &str) -> (String, String) {
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
        "iknp" => hashes(
            |channel| {
                let mut cot = iknp::Sender::setup(None, SESSION, rng(1), channel).unwrap();
                extend_sender(&mut cot, &[1000, 33_000], channel).unwrap();
            },
            |channel| {
                let mut cot = iknp::Receiver::setup(SESSION, rng(2), channel).unwrap();
                extend_receiver(&mut cot, &[1000, 33_000], channel).unwrap();
            },
        ),
        "chosen" => {
            let (sender, receiver) = ideal::pair(Block::from(5), Block::from(6));
            hashes(
                |channel| {
                    let mut ot = flavour::Sender::new(sender, SESSION);
                    ot.chosen(&[[Block::ZERO, Block::ONE]; 100], channel)
                        .unwrap();
                    ot.chosen_bytes(&[1; 300], &[2; 300], 3, channel).unwrap();
                },
                |channel| {
                    let mut ot = flavour::Receiver::new(receiver, SESSION);
                    let x = random_bits(100, 1);
                    ot.chosen(&x, &mut [Block::ZERO; 100], channel).unwrap();
                    ot.chosen_bytes(&x, &mut [0; 300], 3, channel).unwrap();
                },
            )
        }
        _ => unreachable!("a row without a protocol"),
    }
}

#[test]
fn the_wire_is_as_it_was() {
    let found: Vec<_> = TABLE.map(|(protocol, ..)| (protocol, run(protocol))).into();
    let found: Vec<_> = found
        .iter()
        .map(|(p, (s, r))| (*p, s.as_str(), r.as_str()))
        .collect();
    assert!(found == TABLE, "this run sends {found:#?}");
}
