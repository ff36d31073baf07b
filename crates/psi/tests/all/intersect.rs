//! Set intersection against a plain set.

use std::collections::HashSet;

use crate::common::{Kind, SESSION, intersect, items, vole};
use proptest::prelude::*;
use volery_channel::{Role, run_two_parties, run_two_parties_tcp, run_two_parties_with_stats};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::vole::Form;
use volery_psi::{Error, Receiver, Sender, Settings, Variant};

fn check(sender: &[Vec<u8>], receiver: &[Vec<u8>], kind: Kind) {
    let (sent, received) = intersect(sender, receiver, kind);
    let ((ours, sent), (theirs, received)) = (sent.unwrap(), received.unwrap());
    let expected = |ours: &[Vec<u8>], theirs: &[Vec<u8>]| -> Vec<usize> {
        let theirs: HashSet<_> = theirs.iter().collect();
        (0..ours.len()).filter(|&i| theirs.contains(&ours[i])).collect()
    };
    let what = format!("{} x {}, {kind:?}", sender.len(), receiver.len());
    assert_eq!(received, Some(expected(receiver, sender)), "{what}");
    assert_eq!(sent, kind.both.then(|| expected(sender, receiver)), "{what}");
    assert_eq!(ours, theirs);
}

#[test]
fn awkward_sizes() {
    let sizes = [0, 1, 2, 3, 7, 8, 9, 31, 127, 128, 129, 257, 1023, 1024, 1025, 2053];
    for (place, kind) in Kind::all().into_iter().enumerate() {
        for (i, &n) in sizes.iter().enumerate() {
            let m = sizes[(i + 5 + place) % sizes.len()];
            check(&items(0, n), &items(n / 2, n / 2 + m), kind);
        }
    }
}

#[test]
fn disjoint_equal_subset_empty() {
    for kind in Kind::all() {
        check(&items(0, 500), &items(500, 1100), kind);
        check(&items(0, 500), &items(0, 500), kind);
        check(&items(0, 500), &items(100, 200), kind);
        check(&items(100, 200), &items(0, 500), kind);
        check(&[], &items(0, 10), kind);
        check(&items(0, 10), &[], kind);
        check(&[], &[], kind);
        // Enough items to overflow a table sized for equal parts.
        check(&items(0, 9000), &[], kind);
        check(&[], &items(0, 9000), kind);
    }
}

#[test]
fn one_side_a_thousand_times_larger() {
    for kind in Kind::all() {
        check(&items(0, 20_000), &items(19_990, 20_010), kind);
        check(&items(19_990, 20_010), &items(0, 20_000), kind);
    }
}

#[test]
fn sizes_that_once_went_wrong_elsewhere() {
    for kind in Kind::all() {
        check(&items(0, 6789), &items(3000, 3000 + 7890), kind);
        check(&items(0, 16_384), &items(8191, 8191 + 16_385), kind);
    }
}

/// Both ways, with the setup: the figures of docs/performance.md.
#[test]
fn bytes_an_item_at_2_to_the_20() {
    let items: Vec<_> = (0..3_u32 << 19).map(u32::to_le_bytes).collect();
    let (ours, theirs) = (items[..1 << 20].to_vec(), items[1 << 19..].to_vec());
    for (form, most) in [(Form::Fast, 27.0), (Form::Low, 19.5), (Form::Malicious, 33.0)] {
        let kind = vole(form, false);
        let ((_, stats), (received, _)) = run_two_parties_with_stats(
            |channel| kind.intersect(Role::Sender, &ours, channel).unwrap(),
            |channel| kind.intersect(Role::Receiver, &theirs, channel).unwrap(),
        );
        assert!(received.1.unwrap().into_iter().eq(0..1 << 19));
        let each = (stats.bytes_sent + stats.bytes_received) as f64 / f64::from(1 << 20);
        assert!((most - 0.6..=most).contains(&each), "{form}: {each}");
    }
}

#[test]
fn over_tcp() {
    let (sender, receiver) = (items(0, 30_011), items(15_000, 50_021));
    for kind in Kind::all() {
        let (sent, received) = run_two_parties_tcp(
            |channel| kind.intersect(Role::Sender, &sender, channel).unwrap().1,
            |channel| kind.intersect(Role::Receiver, &receiver, channel).unwrap().1,
        );
        assert_eq!(received.unwrap(), (0..15_011).collect::<Vec<_>>());
        let expected = kind.both.then(|| (15_000..30_011).collect::<Vec<_>>());
        assert_eq!(sent, expected, "{kind:?}");
    }
}

#[test]
fn a_duplicate_is_an_error_on_either_side() {
    let mut twice = items(0, 100);
    twice.push(twice[4].clone());
    let once = items(0, 100);
    for kind in Kind::all() {
        for (sender, receiver) in [(&twice, &once), (&once, &twice)] {
            let (sent, received) = intersect(sender, receiver, kind);
            let (own, other) = match sender.len() {
                101 => (sent, received),
                _ => (received, sent),
            };
            let Err(Error::Duplicate { first, second }) = own else {
                panic!("{own:?}, {kind:?}");
            };
            assert_eq!((first, second), (4, 100));
            assert!(matches!(other, Err(Error::Channel(_))), "{kind:?}");
        }
    }
}

/// Messages of the sender and of the receiver, that is runs of bytes in one direction; the sender's
/// commitment is part of its last message of the setup.
const MESSAGES: [u64; 2] = [2, 3];

/// The traffic is as stated in the module documentation, for every size.
#[test]
fn bytes_and_messages() {
    for variant in Variant::ALL {
        for (n, m, both) in
            [(0, 0, true), (0, 5, false), (1, 1, true), (1000, 3, false), (999, 20_000, true)]
        {
            let settings = Settings { variant, both };
            let (sender, receiver) = (items(0, n), items(0, m));
            let ((setup, sent, whole), _) = run_two_parties(
                |channel| {
                    let party = Sender::setup(SESSION, Prg::new(Block::new(1)), channel).unwrap();
                    let setup = channel.stats();
                    let sent = party.intersect(&sender, settings, &mut (), channel).unwrap();
                    (setup, sent, channel.stats())
                },
                |channel| {
                    let party = Receiver::setup(SESSION, Prg::new(Block::new(2)), channel).unwrap();
                    party.intersect(&receiver, settings, &mut (), channel).unwrap()
                },
            );
            let parameters = sent.parameters;
            let trivial = n == 0 || m == 0;
            let shared = if both && !trivial { n.div_ceil(8) as u64 } else { 0 };
            let attempt = u64::from(!trivial);
            assert_eq!(
                whole.bytes_sent - setup.bytes_sent,
                parameters.tag_bytes() + 112,
                "{n} {m} {variant}"
            );
            assert_eq!(
                whole.bytes_received - setup.bytes_received,
                parameters.row_bytes() + 112 + attempt + shared,
                "{n} {m} {variant}"
            );
            let messages = [
                whole.messages_sent - setup.messages_sent,
                whole.messages_received - setup.messages_received,
            ];
            assert_eq!(messages, MESSAGES, "{n} {m} {variant}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_sets(
        sender in prop::collection::hash_set(prop::collection::vec(0u8..3, 0..6), 0..300),
        receiver in prop::collection::hash_set(prop::collection::vec(0u8..3, 0..6), 0..300),
        kind in prop::sample::select(Kind::all()),
    ) {
        let (sender, receiver): (Vec<_>, Vec<_>) = (sender.into_iter().collect(), receiver.into_iter().collect());
        check(&sender, &receiver, kind);
    }
}
