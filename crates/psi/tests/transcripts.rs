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
oprf 424 - 1 129 617d8707e0983c2d62eff1aecc3c9aa9 a8fec5515fb43bca34e7a047475f6e71
oprf 432 - 2049 5 617d8707e0983c2d62eff1aecc3c9aa9 b63a0291b9ad62c93ee3ad17a6ff49ef
oprf 440 - 16384 1 617d8707e0983c2d62eff1aecc3c9aa9 86f1a5fd11c6c58ba7ced8e5007afb30
oprf 448 - 16385 127 617d8707e0983c2d62eff1aecc3c9aa9 63e6d9f944f23a06bcc91529b7336ef3
oprf 512 - 1000 1000 617d8707e0983c2d62eff1aecc3c9aa9 a11df6f22c46fe17c54144a3435c93fa
intersect kkrt one 1 1 66d0fea830e3d670d549547d6c409b43 21f8fc6d086e6cbfb11f4567f017cafc
intersect kkrt one 300 500 b56aeeb2f61a01e20bd6119573dc19b2 8f078d1a7e60192b2c38d152a9462215
intersect kkrt one 3001 9 a33eed68d0255df68f49013a071cc705 45fe225219aeb03dd82cd2b03844f898
intersect kkrt both 0 5 f7140a72f7a7e13d8268b86de70d4401 736005fa3dafa50df35a4605c16724d4
intersect kkrt both 5 0 9c73fa67da768ed4b94c287f0c84d8eb ffcef4f19509dd39139c2009c61e335d
intersect kkrt both 1 1 7fc2709bfca9738a939bcfe06791eec7 94b1064acf3be1f417cc00749208a88f
intersect kkrt both 300 500 c3334eb000386ce276f7beef924b8d27 f1523f38fa0e11ec513349e1be26059e
intersect kkrt both 3001 9 c0ff3a4b6ff4183dbaef7a33236910c7 47b61d679ffb924f9ba7184766a2c5f2
intersect kkrt-paper one 1 1 3302fbfc86e54171161a21d73ca17f34 c0121b678d593e6e1ffcd9d1e0248169
intersect kkrt-paper one 300 500 aa7153e578a4e9f382488303615878ab 22999e5323b418b394f16545b00a9a6e
intersect kkrt-paper one 3001 9 2fde4b6746e5fd7f3484091695bb72fe 5e00de8419481c0d6c335de5399e1afd
intersect kkrt-paper both 1 1 623021b9b27cab00215837e143057e2b 56cec443554108dd0a1dd5db30221ca8
intersect kkrt-paper both 300 500 f9ebeb253dfb77c93f9cd907f9927811 ba86c205b2acfe7f1cb40fc6452e8fb8
intersect kkrt-paper both 3001 9 80cb119ad9b8a3edc78b6d3df3efcfa7 ecc9e0c097419b7138960cf8b7d15454
intersect kkrt both 20011 1009 8de3048583dc2302b92435d1f4858f15 f331ef2cd29823faa6f6a18696539c78
intersect kkrt-paper one 1009 20011 cdb35d275b727b71ab4fa325f486bc08 0890d13c0c95d33172398eed42d7f0ce
lookup kkrt one 1 1 3bd8ce145b6d2a361929754fc08e063d 7e6c58bcf3fcfe805f0acabc99da21fa
lookup kkrt one 300 500 faed44a2178f9d0cb31aa78049ce9e54 d26f4b8934adbf43e700f0b0000a44c5
lookup kkrt one 3001 9 3713c969c42c1b5b96729ea21aafa7ea d63a28ad7697ca36ada646cb75c47ebd
lookup kkrt both 0 5 aa320e1241606c10a105ef78e05502e6 ad3951b48fbd8ba0b2b64d3099eaa06c
lookup kkrt both 5 0 bc4b68e5e30cb66a48d406cdd4a16609 bbbbd2fd039ecd82798367def8604a44
lookup kkrt both 1 1 1e8f3545fec915418c44a0d7cdb3b7ca d647087c9102437ce227d405576bad36
lookup kkrt both 300 500 4117af95e943c75d5d286282559ba542 9ca1e640de6623caaf16cc49b21a887a
lookup kkrt both 3001 9 8aba75f86ed4ca8c430f9c5a47f9776e a54ec25a522ea6077a02508735c9d008
lookup kkrt-paper one 1 1 8ede7fc9403f1d75ddd14b6c404f2a64 ee5a90a64dc16486a18e54d6b3dcbef4
lookup kkrt-paper one 300 500 573d3a0305f28213c1d4b6cc4acab701 f436f707ef2bb99172bd0382af52233b
lookup kkrt-paper one 3001 9 c43dde6fe13dc05d4a66069c13627ca2 a6fc76eda2e2ef1462d3f4d12ca9b1bc
lookup kkrt-paper both 1 1 d4a638bd58f51a5db7da73cc2113b894 6f8e7184ec224693c35fb4ffc5e140d5
lookup kkrt-paper both 300 500 7f4a6cedf42c14f082efe207aa92aeeb e5009cc59201643d10c65c27618341e3
lookup kkrt-paper both 3001 9 86785e2d52ee6d44e86b61939b06234c ede9c4e625b6a835c5a0b26161bb69cb
lookup kkrt both 20011 1009 1437a03cf03cb7024f25b196d4ed47ce 2e9267600fe066fcd5c1076297f556e9
lookup kkrt-paper one 1009 20011 6b2e1861d2052289f144fb82cc24fdd4 3aea93ff959a9e123e303df9cb17aa38
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
