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
intersect kkrt one 1 1 e7f2f436dbe7061fae04acd5d158f56b a3cb711aa0ce8e4acd4f2ce8613d6926
intersect kkrt one 300 500 fa81cdd361f2a16b95bfc5b89ff4bcf9 a50f2b86c2be4750cf6f3dc896c4cd85
intersect kkrt one 3001 9 9368db092c67162a5b4143da5b0c5e94 38035eb8fed101af8d14c287e4cd28f6
intersect kkrt both 0 5 4b9f1a1f9d2d1479a9ac9bda7102de00 314b883cee86c212ec86dbcd2e12a641
intersect kkrt both 5 0 77d882c94821a95c9be13ef877d147fd 2e584ce2ad9a1319f8c2cc49e4845ace
intersect kkrt both 1 1 e7f2f436dbe7061fae04acd5d158f56b 94f2660fb9579f89fcf959f646f5711f
intersect kkrt both 300 500 fa81cdd361f2a16b95bfc5b89ff4bcf9 4c9d0304a785f719f67f150cc830b817
intersect kkrt both 3001 9 9368db092c67162a5b4143da5b0c5e94 1b988cc39b5513adaed6b50b7f626f5a
intersect kkrt-paper one 1 1 7bad55e345eef55c4c11533a2a4bffde 65d5aab39b39eb1a816fa953509de637
intersect kkrt-paper one 300 500 2306086face97fdad6450efaca1d09ed aa77e75232417085c12854ebc05c0e4c
intersect kkrt-paper one 3001 9 a1978d991a6911bc5a56721280b47336 efea47fdd6254f17437c2da15dbe003d
intersect kkrt-paper both 1 1 7bad55e345eef55c4c11533a2a4bffde f93dd4117471a3d22e57b81fc9b39c6a
intersect kkrt-paper both 300 500 2306086face97fdad6450efaca1d09ed 010c5dc4c18017a8df54d3ff4361d6f6
intersect kkrt-paper both 3001 9 a1978d991a6911bc5a56721280b47336 a4dc8d22f48abb1a5702a759c3d360cf
intersect kkrt both 20011 1009 12e0afdaded298243481b5a1e04a026b a328ae22555b2e47998bbabba0bd94c0
intersect kkrt-paper one 1009 20011 2440f6b4864154aac3874cdbf3a4fec6 200df3ea40edd1e9dfb56f4ca54dc136
lookup kkrt one 1 1 66a837229c773c764630b08722de20d9 a3cb711aa0ce8e4acd4f2ce8613d6926
lookup kkrt one 300 500 a2008fde2c1dd65929d70823ffdbeab5 59cafe704582ef5bd36045dbec15a828
lookup kkrt one 3001 9 49426d546f558400304f0a28b5e9eebc 60a9dc33673460d58ca62873f17475bb
lookup kkrt both 0 5 4b9f1a1f9d2d1479a9ac9bda7102de00 314b883cee86c212ec86dbcd2e12a641
lookup kkrt both 5 0 6baa1c0f9289efdb1b3675536a5a1d9f ed6c83173d9ffd8d4f1e1b50cbe7302f
lookup kkrt both 1 1 66a837229c773c764630b08722de20d9 94f2660fb9579f89fcf959f646f5711f
lookup kkrt both 300 500 a2008fde2c1dd65929d70823ffdbeab5 61347eb0ca5385a56d7b25bab433e621
lookup kkrt both 3001 9 49426d546f558400304f0a28b5e9eebc 265dba9e3837c822fe14e66fffcfd911
lookup kkrt-paper one 1 1 7289c693b0f1cbd7e4dbfae291aea983 65d5aab39b39eb1a816fa953509de637
lookup kkrt-paper one 300 500 377fc12f4c58ace7a92bfd070b92b55c 0147bd9dacf70d3a83f6b986a3600406
lookup kkrt-paper one 3001 9 4201b394417fe51fc3e2c01260cda7e2 7e902610525c8b573042f49428bfad6c
lookup kkrt-paper both 1 1 7289c693b0f1cbd7e4dbfae291aea983 f93dd4117471a3d22e57b81fc9b39c6a
lookup kkrt-paper both 300 500 377fc12f4c58ace7a92bfd070b92b55c c261a2b5c34770954fa1e4e6a78ca98f
lookup kkrt-paper both 3001 9 4201b394417fe51fc3e2c01260cda7e2 58e53f5c6a5154653f8edc9e64a9fa47
lookup kkrt both 20011 1009 b266e6e28e6f7e0514f841a511d925fa 18d024717402ed4fe7211466950981ca
lookup kkrt-paper one 1009 20011 a9e5a0ff221a996bdd6adbc1f96ee596 8316117a6da0067e0635d9e1961bfc7c
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
