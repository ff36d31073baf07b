//! Set intersection, keyword search and their OPRF. A row names the protocol; its variant, its form
//! if it is from vector OLE, `dh`, or the bits of a code word; whether both parties get the result;
//! and the items of the sender and of the receiver, or the instances of two extensions.
//!
//! The hashes depend on the bins of the cuckoo table, and on the sender's random order.

use volery_channel::SessionId;
use volery_primitives::Block;
use volery_psi::code::Code;
use volery_psi::{Receiver, Sender, Settings, count, dh, oprf, vole};

use super::seeded;

const SESSION: SessionId = SessionId::from_bytes([7; 32]);

/// Items `from..to`, some of them long.
fn items(from: usize, to: usize) -> Vec<Vec<u8>> {
    let item = |i| {
        let mut item = format!("item {i}").into_bytes();
        if i % 97 == 0 {
            item.resize(10_240, b'.');
        }
        item
    };
    (from..to).map(item).collect()
}

/// The hashes of one row.
pub(super) fn run(row: &str) -> [String; 2] {
    let words: Vec<_> = row.split(' ').collect();
    let [protocol, variant, both, n, m] = words[..] else {
        panic!("a row has five words");
    };
    let (n, m): (usize, usize) = (n.parse().unwrap(), m.parse().unwrap());
    if protocol == "count" {
        return of_count([n, m]);
    }
    if protocol == "oprf" {
        return of_oprf(variant.parse().unwrap(), [n, m]);
    }
    let both = both == "both";
    // A third of the smaller set is common.
    let common = n.min(m) / 3;
    let (ours, theirs) = (items(0, n), items(n - common, n - common + m));
    let values: Vec<Vec<u8>> = (0..n).map(|i| vec![i as u8; i % 7]).collect();
    if variant == "dh" {
        return of_dh(protocol == "lookup", [&ours, &theirs], &values, common);
    }
    if let Ok(form) = variant.parse() {
        let settings = vole::Settings { form, both };
        return of_vole(
            protocol == "lookup",
            settings,
            [&ours, &theirs],
            &values,
            common,
        );
    }
    let settings = Settings {
        variant: variant.parse().unwrap(),
        both,
    };
    seeded(
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

/// A run of the protocols from vector OLE: the variant is the form.
fn of_vole(
    lookup: bool,
    settings: vole::Settings,
    [ours, theirs]: [&[Vec<u8>]; 2],
    values: &[Vec<u8>],
    common: usize,
) -> [String; 2] {
    seeded(
        |rng, channel| {
            let sender = vole::Sender::new(SESSION, rng);
            if lookup {
                let answered = sender.answer(ours, values, settings, &mut (), channel);
                answered.unwrap();
            } else {
                let sent = sender.intersect(ours, settings, &mut (), channel);
                sent.unwrap();
            }
        },
        |rng, channel| {
            let receiver = vole::Receiver::new(SESSION, rng);
            let found = if lookup {
                let found = receiver.search(theirs, settings, &mut (), channel);
                found.unwrap().items
            } else {
                let received = receiver.intersect(theirs, settings, &mut (), channel);
                received.unwrap().common
            };
            assert_eq!(found, (0..common).collect::<Vec<_>>());
        },
    )
}

/// A run of the protocols from Diffie-Hellman.
fn of_dh(
    lookup: bool,
    [ours, theirs]: [&[Vec<u8>]; 2],
    values: &[Vec<u8>],
    common: usize,
) -> [String; 2] {
    seeded(
        |rng, channel| {
            let sender = dh::Sender::new(SESSION, rng);
            if lookup {
                sender.answer(ours, values, &mut (), channel).unwrap();
            } else {
                sender.intersect(ours, &mut (), channel).unwrap();
            }
        },
        |rng, channel| {
            let receiver = dh::Receiver::new(SESSION, rng);
            let found = if lookup {
                receiver.search(theirs, &mut (), channel).unwrap().items
            } else {
                receiver.intersect(theirs, &mut (), channel).unwrap().common
            };
            assert_eq!(found, (0..common).collect::<Vec<_>>());
        },
    )
}

/// A run for the number alone; a third of the smaller set is common.
fn of_count([n, m]: [usize; 2]) -> [String; 2] {
    let common = n.min(m) / 3;
    let (ours, theirs) = (items(0, n), items(n - common, n - common + m));
    seeded(
        |rng, channel| {
            let sender = count::Sender::new(SESSION, rng);
            sender.count(&ours, &mut (), channel).unwrap();
        },
        |rng, channel| {
            let receiver = count::Receiver::new(SESSION, rng);
            let counted = receiver.count(&theirs, &mut (), channel).unwrap();
            assert_eq!(counted.common, common as u64);
        },
    )
}

fn of_oprf(width: usize, instances: [usize; 2]) -> [String; 2] {
    let code = Code::new(&[3; 32], width);
    seeded(
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
