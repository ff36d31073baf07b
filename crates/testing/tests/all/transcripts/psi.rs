//! Set intersection, keyword search and their OPRF. A row names the protocol; its variant, its form
//! if it is from vector OLE, `dh`, or the bits of a code word; whether both parties get the result;
//! and the items of the sender and of the receiver, or the instances of two extensions.
//!
//! The hashes depend on the bins of the cuckoo table, and on the sender's random order.

use std::collections::BTreeSet;

use volery_channel::{Role, SessionId};
use volery_pcg::Security;
use volery_primitives::Block;
use volery_psi::code::Code;
use volery_psi::matching::{Matching, Output, named};
use volery_psi::oprf;
use volery_psi::vole::{Form, Vole};
use volery_testing::matches::{COUNT, Match};

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

fn words(row: &str) -> [&str; 5] {
    let words: Vec<_> = row.split(' ').collect();
    words.try_into().expect("a row has five words")
}

/// The match of a row, by a protocol of the list.
fn matching(row: &str) -> Match {
    let [kind, variant, both, ..] = words(row);
    let both = match both {
        "both" => true,
        "one" => false,
        _ => panic!("{row}: {both} is neither both nor one"),
    };
    let output = match kind {
        "intersect" => Output::Items { both, search: false },
        "lookup" => Output::Items { both, search: true },
        "count" => COUNT,
        _ => panic!("{row}: {kind} is no result"),
    };
    let (name, security) = match variant.parse::<Form>() {
        Ok(form) => (Vole(form).name(), form.security()),
        Err(_) => (variant, Security::SemiHonest),
    };
    let protocol = named(name, security, &output);
    let protocol = protocol.unwrap_or_else(|| panic!("{row}: no protocol {variant} gives this"));
    Match { name: row.to_owned(), protocol, output }
}

/// The protocols of these rows. Circuit-PSI has its rows in the registry.
pub(super) fn protocols<'a>(rows: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let rows = rows.filter(|row| !row.starts_with("oprf "));
    rows.map(|row| format!("{:?}", matching(row).protocol)).collect()
}

pub(super) fn run(row: &str) -> [String; 2] {
    let [protocol, variant, _, n, m] = words(row);
    let (n, m): (usize, usize) = (n.parse().unwrap(), m.parse().unwrap());
    if protocol == "oprf" {
        return of_oprf(variant.parse().unwrap(), [n, m]);
    }
    let of = matching(row);
    // A third of the smaller set is common.
    let common = n.min(m) / 3;
    let (ours, theirs) = (items(0, n), items(n - common, n - common + m));
    let values: Vec<Vec<u8>> = (0..n).map(|i| vec![i as u8; i % 7]).collect();
    seeded(
        |rng, channel| {
            let own = (Role::Sender, SESSION, rng);
            of.run(own, &ours, &values, &mut (), channel).unwrap();
        },
        |rng, channel| {
            let own = (Role::Receiver, SESSION, rng);
            let found = of.run(own, &theirs, &values, &mut (), channel).unwrap();
            match found.common {
                Some(found) => assert_eq!(found, (0..common).collect::<Vec<_>>()),
                None => assert_eq!(found.count, Some(common as u64)),
            }
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
                receiver.extend(&code, inputs, &mut outputs, channel).unwrap();
            }
        },
    )
}
