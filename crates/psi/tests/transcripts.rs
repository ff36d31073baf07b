//! What seeded runs put on the wire: a change of any byte shows here, and the row says which protocol made it.
//!
//! The hashes are BLAKE3 over all bytes that one party sent. When the wire was to change, the failing test prints the
//! table as it now is. It depends on the bins that the cuckoo table puts its items in.
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
intersect kkrt one 300 500 0d3da9ee970d96ec297cb3da530c213a 50d643fd14f5fb3d3a3dff0b779ff998
intersect kkrt one 3001 9 a5719d5db4a61da917cddac15d67ffce fb5708102f7b59d3549cf5c10863ac80
intersect kkrt both 0 5 7d2047623b6ecc26db7a098ce24fb1d3 ab892f53bbaae1a0ec6c5557935f94d6
intersect kkrt both 5 0 0ec9ab4d6f040941a669dd1aacf5699b abc43c7d5597daa43cc9b76bfd147e8d
intersect kkrt both 1 1 4f9d37e8a108b999f395869847cf2ac0 bcf5bfd3878de9f110882b19b2b60c10
intersect kkrt both 300 500 497494630e0c3bdc18c46b5a62438872 e3d20a3012bbe4f1f65a4ecc92b3fb2b
intersect kkrt both 3001 9 706c76d1d2ca6212db2f29fb6b2db634 d16ef874d6add5873c24be0081a295a0
intersect kkrt-paper one 1 1 29bcf9c6c9eb2366ddd91d4662e3aacc ed87456bc758554a3d42d2f7ab8dc3bf
intersect kkrt-paper one 300 500 138b875dd4d7df9bcc7865eea7e0560f 230481b072f36815e12ef4bf6ff880eb
intersect kkrt-paper one 3001 9 250a36d6eaff119ae57765db7813eaa7 50b0218f296fbf5227a71d54cf3fba4f
intersect kkrt-paper both 1 1 97d5da8e2c9f62479ec55289c9e4998a e72ced0cf0b5cda057f4e09ad0060f49
intersect kkrt-paper both 300 500 c2ed48aa3080efb8293e00a6af52709b 4c487b0bf2176f305dfe5177be728fcd
intersect kkrt-paper both 3001 9 9570b5ceb47b3422867552a6002b52d4 a65d5ae519c71c0d57f5a6d7ef7abe9c
intersect kkrt both 20011 1009 4a0fc77645a62e7541eeec962b45e7b1 7ad6e6589ae0cb29be8a5bb7b03d2ccb
intersect kkrt-paper one 1009 20011 17a537a99bfbb733ca339278a2c01234 0c6aa9bacb4a84177a40b6f27b2df5d7
lookup kkrt one 1 1 5ffca1d5199047a190e97e75e756cb39 8f1fdd26e29c0784b4568afe76b2f1a1
lookup kkrt one 300 500 f2413634ab2ec918f49fa78bd1acf8fe c6fe5b4adf25b764ca99ef37de9d488a
lookup kkrt one 3001 9 1017c89f191f34f775680e0baab75dcd 89d7d5c64775e1527adbf3dbd82bdcbd
lookup kkrt both 0 5 a1145898c29d9ad063176fb3bd04db47 0800df33c47c3099f2fbdb08e101edc1
lookup kkrt both 5 0 1eae2e3ddcca8bdbf90b58b52dd6ab91 bcf47fb2283e9c50ddecb3f5a302408c
lookup kkrt both 1 1 b546b3be4f002cbc2e2645dd95d4bee7 dfce3ba6af0ea1800cb166af5c484777
lookup kkrt both 300 500 e58ee628b0efc139d111fb8f42d25a6b d2b08f30fa31ce14a12ed86943a471b5
lookup kkrt both 3001 9 8207b9e38689fcf8947fe82deebe3db6 b119d9f68a89963c46f7cbc250f55562
lookup kkrt-paper one 1 1 a7ca5ce607c7adbaa06b4875a9403b8f 6598a2aa03455989a9a92f7e1774f71a
lookup kkrt-paper one 300 500 4c9916c5c966d3f1fe8755539a78f4c3 25a93442bc7bce2c190acc58670fc260
lookup kkrt-paper one 3001 9 ad17dca10f7fee676b8c52b8b205257b 56dd477efdd5a657b2b1628da565c146
lookup kkrt-paper both 1 1 25113100110dabf70747802a17036acf ff43de76b633ff1a5093a6bd7cbbc88e
lookup kkrt-paper both 300 500 35c27b39f9f16c007e86b210e5b94a47 cffd16d19d6ea2817bf189079e0eb745
lookup kkrt-paper both 3001 9 587eba4223aa2819f79fdd6485657c7a 452b58f2d4e177393818edf9f9c6b47a
lookup kkrt both 20011 1009 7158eef04e278f55004114c36bd3915b 589212881e7135d269e027c482c36ac9
lookup kkrt-paper one 1009 20011 bf57e48a065bb6d44cfd1a08d07a5b34 5c4a76fbbdf2e8cde39ec2673eb968dd
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
