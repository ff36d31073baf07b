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
oprf 424 - 0 0 21ed419b336124a16da0682b863ea915 78c26946f1364e95f09eb6c6f4f65fbc
oprf 424 - 1 129 21ed419b336124a16da0682b863ea915 a8fec5515fb43bca34e7a047475f6e71
oprf 432 - 2049 5 21ed419b336124a16da0682b863ea915 b63a0291b9ad62c93ee3ad17a6ff49ef
oprf 440 - 16384 1 21ed419b336124a16da0682b863ea915 86f1a5fd11c6c58ba7ced8e5007afb30
oprf 448 - 16385 127 21ed419b336124a16da0682b863ea915 63e6d9f944f23a06bcc91529b7336ef3
oprf 512 - 1000 1000 21ed419b336124a16da0682b863ea915 a11df6f22c46fe17c54144a3435c93fa
intersect kkrt one 1 1 f4119458e32e2abc34bb5f4b09d6a524 6a5826557248bec3e49bc191930bda2f
intersect kkrt one 300 500 290fed05355f07f250987effc4e0a9dc 50d643fd14f5fb3d3a3dff0b779ff998
intersect kkrt one 3001 9 9999dcea1883ed4c5a1185725f10249b fb5708102f7b59d3549cf5c10863ac80
intersect kkrt both 0 5 7d2047623b6ecc26db7a098ce24fb1d3 ab892f53bbaae1a0ec6c5557935f94d6
intersect kkrt both 5 0 0ec9ab4d6f040941a669dd1aacf5699b abc43c7d5597daa43cc9b76bfd147e8d
intersect kkrt both 1 1 4f9d37e8a108b999f395869847cf2ac0 bcf5bfd3878de9f110882b19b2b60c10
intersect kkrt both 300 500 b0b6ea6158e02c5a98203c224cbbc481 cb9af333f2c2c52d5665960bf97e4667
intersect kkrt both 3001 9 388f8054fc252b91be40d1bbff973853 270127d60c4e3142c097a100467dd959
intersect kkrt-paper one 1 1 29bcf9c6c9eb2366ddd91d4662e3aacc ed87456bc758554a3d42d2f7ab8dc3bf
intersect kkrt-paper one 300 500 1652d780a14d08a191a095ce3c7bf8c3 230481b072f36815e12ef4bf6ff880eb
intersect kkrt-paper one 3001 9 ed6e8a532ce017cb77adb148db906865 50b0218f296fbf5227a71d54cf3fba4f
intersect kkrt-paper both 1 1 97d5da8e2c9f62479ec55289c9e4998a e72ced0cf0b5cda057f4e09ad0060f49
intersect kkrt-paper both 300 500 aca74188ccef8a28ab94f649682f879c 83e75a2c16c06fe5ccb35028fe963569
intersect kkrt-paper both 3001 9 b67507939d012c9fea5cd351b9fd5d1a 059dcd84ea2c35451423bbc48823b844
intersect kkrt both 20011 1009 58099f0e7b33db90c832b6c57e8cb125 5084149e055b615cce7ed72bf5bbe7f5
intersect kkrt-paper one 1009 20011 8572cf0a50a3506187c9aa83f19d69d8 0c6aa9bacb4a84177a40b6f27b2df5d7
lookup kkrt one 1 1 eaea0dc801c132fff3a65b4b40537bc5 8f1fdd26e29c0784b4568afe76b2f1a1
lookup kkrt one 300 500 e3b9ad9f7dd5ffcf43000cc63b822ae9 c6fe5b4adf25b764ca99ef37de9d488a
lookup kkrt one 3001 9 15c9d4ba693a3ba6cb5c2f2792944647 89d7d5c64775e1527adbf3dbd82bdcbd
lookup kkrt both 0 5 a1145898c29d9ad063176fb3bd04db47 0800df33c47c3099f2fbdb08e101edc1
lookup kkrt both 5 0 1eae2e3ddcca8bdbf90b58b52dd6ab91 bcf47fb2283e9c50ddecb3f5a302408c
lookup kkrt both 1 1 131ea2ecbfc15f235f5e7fa816e896d7 dfce3ba6af0ea1800cb166af5c484777
lookup kkrt both 300 500 2f29889ba714cf8330c664963e14fbaa 82cf23c4155afca0cf1bcf57156ee65a
lookup kkrt both 3001 9 829b2c792f593e5e35c3b58cfe6e80ba 729526ab2f989c21984ea880294a6144
lookup kkrt-paper one 1 1 4fc48701f3faa2f3fe0395a8002bd078 6598a2aa03455989a9a92f7e1774f71a
lookup kkrt-paper one 300 500 c943ea6b984fe4b098c658a11610ed31 25a93442bc7bce2c190acc58670fc260
lookup kkrt-paper one 3001 9 6dee4a56043e701d1cffc77735e4bdf5 56dd477efdd5a657b2b1628da565c146
lookup kkrt-paper both 1 1 fe4955a58ee660313805525ce4df044b ff43de76b633ff1a5093a6bd7cbbc88e
lookup kkrt-paper both 300 500 ebfff08ceab807c4d2ec2ee8859a969e 503a8d7221fd62036a8c4628bc83b120
lookup kkrt-paper both 3001 9 b84950846f8a62a4b0546b2a01c5dea1 177ce06fc3e8cbc8777ffe73a05eb22d
lookup kkrt both 20011 1009 951710e51cf5300ebe322e4144b6076b 75ed2f0b1ef044af59ce97e8a80f433a
lookup kkrt-paper one 1009 20011 3814a0bd1e53745419d3d0ff82ad9e60 5c4a76fbbdf2e8cde39ec2673eb968dd
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
