//! Peers of drivers and workers that do not follow the protocol.

use volery_channel::{Error as ChannelError, Hello, Role, handshake, run_two_unchecked};
use volery_cluster::worker::{Place, Worker};
use volery_cluster::{MANIFEST, Manifest};
use volery_matching::ProtocolChoice;

use crate::common::Run;
use crate::workers::{agree_by, ask, hello_of_receiver, nine_keys};

/// Runs a sender's driver, which asks for one shard, with a peer that asks for `shards` and ends
/// with `byte`.
fn driver(shards: u32, byte: u8) -> volery_matching::Result<Manifest> {
    let run = Run { name: ProtocolChoice::Vole, ..Run::default() };
    let (agreed, cheated) = run_two_unchecked(
        |channel| agree_by(&run, Role::Sender, &nine_keys(), ask(2, Some(1)), channel),
        |channel| {
            let mut cheat = || -> Result<(), ChannelError> {
                handshake(channel, &hello_of_receiver(&run, "1"), [0; 32])?;
                channel.send(&[0; 33])?;
                channel.send(&shards.to_le_bytes())?;
                // The commitments.
                channel.send(&[7; 32])?;
                channel.send(&9_u64.to_le_bytes())?;
                channel.recv(&mut [0; 37 + 32 + 8])?;
                channel.send(&[byte])?;
                channel.flush()?;
                channel.recv(&mut [0; 1])
            };
            cheat()
        },
    );
    if agreed.is_ok() {
        cheated.unwrap();
    }
    agreed
}

#[test]
fn another_byte_after_the_manifest() {
    driver(1, 0x57).unwrap();
    assert!(driver(1, 0).is_err());
}

#[test]
fn another_number_of_shards() {
    for shards in [0, 2, 16] {
        assert!(driver(shards, 0x57).is_err());
    }
}

/// A peer of a worker that is at a rule beyond the last one.
#[test]
fn a_rule_that_the_run_does_not_have() {
    let manifest = driver(1, 0x57).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.json"), manifest.to_json()).unwrap();
    for rule in [1_u32, 7] {
        let place = Place::Folder(folder.path());
        let worker = Worker::new(&manifest, Role::Sender, 0, 0, 1, place).unwrap();
        let (worked, _) = run_two_unchecked(
            |channel| worker.run(channel, &mut ()),
            |channel| {
                let hello = Hello {
                    protocol: "worker",
                    role: "receiver",
                    fields: vec![(MANIFEST, manifest.id_text()), ("--worker", "0 of 2".to_owned())],
                };
                handshake(channel, &hello, [0; 32])?;
                channel.send(&rule.to_le_bytes())?;
                channel.recv(&mut [0; 4])
            },
        );
        assert!(worked.is_err());
        assert!(!worker.is_complete().unwrap());
    }
}
