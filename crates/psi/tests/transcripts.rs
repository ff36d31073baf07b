//! What seeded runs put on the wire: a change of any byte shows here, and the row says which protocol made it.
//!
//! The hashes are BLAKE3 over all bytes that one party sent. When the wire was to change, the failing test prints the
//! table as it now is. It depends on the bins that the cuckoo table puts its items in, and on how the sender draws its random
//! order.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{SESSION, items};
use volery_channel::{Channel, run_two_parties};
use volery_primitives::{Block, prg::Prg};
use volery_psi::code::Code;
use volery_psi::{Receiver, Sender, Settings, oprf};

/// The protocol; its variant, or bits of a code word; whether both parties get the result; items of the sender and of
/// the receiver, or instances of two extensions; the first 16 bytes of the hash of what the sender sent, and of what the
/// receiver sent.
const TABLE: &str = "
oprf 424 - 0 0 617d8707e0983c2d62eff1aecc3c9aa9 78c26946f1364e95f09eb6c6f4f65fbc
oprf 424 - 1 129 617d8707e0983c2d62eff1aecc3c9aa9 2fe6a2e38430debb2b0206171996a79a
oprf 432 - 2049 5 617d8707e0983c2d62eff1aecc3c9aa9 5e21f505cfd008c6ac7a4dc295e08c77
oprf 440 - 16384 1 617d8707e0983c2d62eff1aecc3c9aa9 88cab824ca57a1ad16e169d97617614a
oprf 448 - 16385 127 617d8707e0983c2d62eff1aecc3c9aa9 0f88fbf86ac504e0221a86d41a7d1382
oprf 512 - 1000 1000 617d8707e0983c2d62eff1aecc3c9aa9 f7d0b9389d7e3afbac57df88b6c00e37
intersect kkrt one 1 1 9d265f16f243f008abc196fbb8450033 a47eea87105c5b49a37ffa243e8cc811
intersect kkrt one 300 500 2c2297f31dcdce07f25acf1eac20ab81 68741d84ed26f20675ac716a8719f2df
intersect kkrt one 3001 9 de3750d87030fbfa8641bbc5437ba638 b203875cc107473fc7d54a0cfed699a4
intersect kkrt both 0 5 f7140a72f7a7e13d8268b86de70d4401 736005fa3dafa50df35a4605c16724d4
intersect kkrt both 5 0 9c73fa67da768ed4b94c287f0c84d8eb ffcef4f19509dd39139c2009c61e335d
intersect kkrt both 1 1 cecc9359e21a5ef785f60b1cb40b8fea ab03de3efa4498d4df6b589ac9a5d89d
intersect kkrt both 300 500 558b733a924683da8515a72cd8ae03fb c0ae6c665a1e4f1fd92e4576b62c6322
intersect kkrt both 3001 9 c2e51b0adab751713e93cfcc021c733a f2739b4b59172a2f2dfcda3c7a198c2c
intersect kkrt-paper one 1 1 b340eb04fdca46ba1dfb27db0e90f084 04722520f03085766ac7c65fb82a56aa
intersect kkrt-paper one 300 500 878ca06691eee7396eeadd3f5de69c9c 0a1ed9496d3ac43c72b92147a81c873d
intersect kkrt-paper one 3001 9 a14329c6843cdcfec636b8098a05dc56 c6232f20ac11815fd7f935073fa28c24
intersect kkrt-paper both 1 1 10555d0af75b180d74b6d21824bd6678 08a250c82aa8ce95b20231d5bfa69a04
intersect kkrt-paper both 300 500 7c4f82910ccd555991379cc98c2f2244 f05e9566988f78f97dfcf6f946e375de
intersect kkrt-paper both 3001 9 9c267df04ec39bf2a0f2251d16bf6ef8 8e69eb9617502c4be84a44d96ed53a9c
intersect kkrt both 20011 1009 1c681c1e521ee51d77866f7c4552a6b2 24c79017f608383b3c95be3d29731b9c
intersect kkrt-paper one 1009 20011 bf7dcb427c2725133518093a9adda22a 1ba34a7eb137058831cc961438d7a93f
lookup kkrt one 1 1 3c52e46a566cbccb441aa10ff00440a0 41633f6a4d300c8a273df8a80a6ed841
lookup kkrt one 300 500 b4b0d0a9a3542670f0d48b23498ffe75 1c6a2a12db81a96f55e7ee22aafb46c5
lookup kkrt one 3001 9 495d2b5d356f0c92bc8c0c12da843e5a 275063fa3ab2d3830013560658415ac5
lookup kkrt both 0 5 aa320e1241606c10a105ef78e05502e6 ad3951b48fbd8ba0b2b64d3099eaa06c
lookup kkrt both 5 0 bc4b68e5e30cb66a48d406cdd4a16609 bbbbd2fd039ecd82798367def8604a44
lookup kkrt both 1 1 fa47cc6e157721ac8ef0663946682d7b 3665d47bae0fc0c45b8a987c99292cd9
lookup kkrt both 300 500 f7a886edde3fa352480204eb8364091d 96374feb6574e80eff82fc685774a1c6
lookup kkrt both 3001 9 7c900802f3c9646f4feda28aa51d3d16 207da845ee0adbab81254be2998f08f3
lookup kkrt-paper one 1 1 56737bb1a598ddb11a874e5fba457ea9 84ecab653cb74235d72b18f908d6345b
lookup kkrt-paper one 300 500 db5f3152f950dd2aa226adcc7b8b0bcc 1285bd75b857e80941bbd26f30758f90
lookup kkrt-paper one 3001 9 67126ca2816c9927eed84a195d2efc3a 73d2f974143764f2d6807e60cbf8afc6
lookup kkrt-paper both 1 1 4868c59572ced8dec60af0b101756493 b3b7dddc7e383db85293e1e2722d44cc
lookup kkrt-paper both 300 500 c1f7db0fea921c5bbfe9574e0466ecb1 ad9c203e185b5efb51cef803dc86c52e
lookup kkrt-paper both 3001 9 f8db0949494f2e45f1ee58e3022e0c05 450111753735844c6c3261ef8931273e
lookup kkrt both 20011 1009 f4c9b3d695a4a27bef80debca0f7375c 7f735aae11f86c35e3fcf528c0b4114e
lookup kkrt-paper one 1009 20011 a14f8a3d5e591bfb968502f9b703a6f4 5041baddb58eef0d18164509bd77cecd
";

/// The hashes of one run.
fn hashes(words: &[&str]) -> (String, String) {
    let &[protocol, variant, both, n, m] = words else {
        panic!("a row has five words before the hashes");
    };
    let (n, m): (usize, usize) = (n.parse().unwrap(), m.parse().unwrap());
    if protocol == "oprf" {
        return of_oprf(variant.parse().unwrap(), [n, m]);
    }
    let settings = Settings {
        variant: variant.parse().unwrap(),
        both: both == "both",
    };
    // A third of the smaller set is common.
    let common = n.min(m) / 3;
    let (ours, theirs) = (items(0, n), items(n - common, n - common + m));
    let values: Vec<Vec<u8>> = (0..n).map(|i| vec![i as u8; i % 7]).collect();
    recorded(
        |rng, channel| {
            let sender = Sender::setup(SESSION, rng, channel).unwrap();
            if protocol == "lookup" {
                let (values, watch) = (&values, &mut ());
                sender
                    .answer(&ours, values, settings, watch, channel)
                    .unwrap();
            } else {
                sender.intersect(&ours, settings, &mut (), channel).unwrap();
            }
        },
        |rng, channel| {
            let receiver = Receiver::setup(SESSION, rng, channel).unwrap();
            let found = if protocol == "lookup" {
                let found = receiver.search(&theirs, settings, &mut (), channel);
                found.unwrap().items
            } else {
                let received = receiver.intersect(&theirs, settings, &mut (), channel);
                received.unwrap().common
            };
            assert_eq!(found, (0..common).collect::<Vec<_>>());
        },
    )
}

fn of_oprf(width: usize, instances: [usize; 2]) -> (String, String) {
    let code = Code::new(&[3; 32], width);
    recorded(
        |rng, channel| {
            let mut sender = oprf::Sender::setup(SESSION, rng, channel).unwrap();
            for n in instances {
                sender.extend(&code, n, channel).unwrap();
            }
        },
        |mut rng, channel| {
            let mut inputs = vec![Block::ZERO; instances[0] + instances[1]];
            rng.fork("inputs").fill_blocks(&mut inputs);
            let mut receiver = oprf::Receiver::setup(SESSION, rng, channel).unwrap();
            let (first, second) = inputs.split_at(instances[0]);
            for inputs in [first, second] {
                let mut outputs = vec![Block::ZERO; inputs.len()];
                receiver
                    .extend(&code, inputs, &mut outputs, channel)
                    .unwrap();
            }
        },
    )
}

/// The hash of what each of the parties sent; they have the seeds 1 and 2.
fn recorded(
    sender: impl FnOnce(Prg, &mut Channel) + Send,
    receiver: impl FnOnce(Prg, &mut Channel) + Send,
) -> (String, String) {
    let hash = |channel: &Channel| -> String {
        let sent = channel.transcript().unwrap().sent;
        sent[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    };
    run_two_parties(
        |channel| {
            channel.record_transcript();
            sender(Prg::new(Block::from(1)), channel);
            hash(channel)
        },
        |channel| {
            channel.record_transcript();
            receiver(Prg::new(Block::from(2)), channel);
            hash(channel)
        },
    )
}

#[test]
fn the_wire_is_as_it_was() {
    let mut now = "\n".to_owned();
    for row in TABLE.lines().skip(1) {
        let words: Vec<_> = row.split(' ').collect();
        let (sent, received) = hashes(&words[..5]);
        now += &format!("{} {sent} {received}\n", words[..5].join(" "));
    }
    let differ: Vec<_> = TABLE
        .lines()
        .zip(now.lines())
        .filter(|(old, new)| old != new)
        .collect();
    assert!(
        now == TABLE,
        "{} rows have changed; the table of what is sent now:{now}",
        differ.len()
    );
}
