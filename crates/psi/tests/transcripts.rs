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
intersect kkrt one 1 1 ad999a59ede4161f249fa48389a2c02d 6a5826557248bec3e49bc191930bda2f
intersect kkrt one 300 500 34ab0c13ef5f74cd6fba8cd17a9d32cf 50d643fd14f5fb3d3a3dff0b779ff998
intersect kkrt one 3001 9 bea08c166b8d34beaf1d95aaaf90c23b fb5708102f7b59d3549cf5c10863ac80
intersect kkrt both 0 5 50ffeba5826796ff408c93d30e85cc72 ab892f53bbaae1a0ec6c5557935f94d6
intersect kkrt both 5 0 69dc9222ccb69f7cc5857c5afa739a03 abc43c7d5597daa43cc9b76bfd147e8d
intersect kkrt both 1 1 8be6271a64c42703bf47479bd4538ceb bcf5bfd3878de9f110882b19b2b60c10
intersect kkrt both 300 500 9334778b50ce9415d6b065e7aa7f1a52 cb9af333f2c2c52d5665960bf97e4667
intersect kkrt both 3001 9 1bbd77a2b563cfaa0593bc51fa232186 270127d60c4e3142c097a100467dd959
intersect kkrt-paper one 1 1 011fa2314ecf5960396c904fb132863d ed87456bc758554a3d42d2f7ab8dc3bf
intersect kkrt-paper one 300 500 2983d5da6aabd381765239adc9f3a4de 230481b072f36815e12ef4bf6ff880eb
intersect kkrt-paper one 3001 9 36b3fa6182b35171c4e453fe8cc0e9e1 50b0218f296fbf5227a71d54cf3fba4f
intersect kkrt-paper both 1 1 fc1ef72605f2e4a3ec1f9ac1c60548eb e72ced0cf0b5cda057f4e09ad0060f49
intersect kkrt-paper both 300 500 ed30bd9de90224847e16bdc13c8a9f3d 83e75a2c16c06fe5ccb35028fe963569
intersect kkrt-paper both 3001 9 6f1fde9af8c509ac7845878abc500410 059dcd84ea2c35451423bbc48823b844
intersect kkrt both 20011 1009 587e065fa6d0e3096e148e192e98dc69 5084149e055b615cce7ed72bf5bbe7f5
intersect kkrt-paper one 1009 20011 e8a66326719f58db426493220a1fed20 0c6aa9bacb4a84177a40b6f27b2df5d7
lookup kkrt one 1 1 1840a18600b0172bb0ae1cf552c1677a 8f1fdd26e29c0784b4568afe76b2f1a1
lookup kkrt one 300 500 03390d5b7fa8ee4ae054fc98afb49476 c6fe5b4adf25b764ca99ef37de9d488a
lookup kkrt one 3001 9 14660732ee20a667192be861f7c4424a 89d7d5c64775e1527adbf3dbd82bdcbd
lookup kkrt both 0 5 1f4711f740f1d83061c9322bf1038f79 0800df33c47c3099f2fbdb08e101edc1
lookup kkrt both 5 0 f4d3144a8cce8d6da3612ed1c2644aad bcf47fb2283e9c50ddecb3f5a302408c
lookup kkrt both 1 1 522d7aedaca4a05dacb82271e2339722 dfce3ba6af0ea1800cb166af5c484777
lookup kkrt both 300 500 c503038e268facb473e1c31704332109 82cf23c4155afca0cf1bcf57156ee65a
lookup kkrt both 3001 9 bdacf6da8d8b8c9f76636da68fc1382b 729526ab2f989c21984ea880294a6144
lookup kkrt-paper one 1 1 e5d5167b782dd79798f84ca8c1411983 6598a2aa03455989a9a92f7e1774f71a
lookup kkrt-paper one 300 500 e16e98f482adf39f4f7aae25c5ee93ea 25a93442bc7bce2c190acc58670fc260
lookup kkrt-paper one 3001 9 08d4735940d9f501a9d41717b3854271 56dd477efdd5a657b2b1628da565c146
lookup kkrt-paper both 1 1 7a4e193e8bc0bda648d998e780734b5a ff43de76b633ff1a5093a6bd7cbbc88e
lookup kkrt-paper both 300 500 3dcccb680fe42481c0bc2a2aefd2711f 503a8d7221fd62036a8c4628bc83b120
lookup kkrt-paper both 3001 9 14a764fd60be9699650547ddb7983c0c 177ce06fc3e8cbc8777ffe73a05eb22d
lookup kkrt both 20011 1009 098ed7f96f579e704ff957948cb33927 75ed2f0b1ef044af59ce97e8a80f433a
lookup kkrt-paper one 1009 20011 037ac60e1112ccbbf8ac4eb7f70f1ed0 5c4a76fbbdf2e8cde39ec2673eb968dd
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
