use volery_channel::{run_two_parties, run_two_parties_tcp};

use super::*;
use crate::fixtures::{common, rng};

pub(super) const SESSION: SessionId = SessionId::from_bytes([3; 32]);

/// Items `first`, `first + step`, .., as strings of different lengths.
pub(super) fn set(first: usize, step: usize, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{}{}", "x".repeat(i % 3), first + i * step)).collect()
}

pub(super) fn sender() -> Sender {
    Sender::new(SESSION, rng(Role::Sender))
}

pub(super) fn receiver() -> Receiver {
    Receiver::new(SESSION, rng(Role::Receiver))
}

fn settings() -> impl Iterator<Item = Settings> {
    let alone = Form::ALL.map(|form| Settings { form, both: false });
    let both = [Form::Fast, Form::Low].map(|form| Settings { form, both: true });
    alone.into_iter().chain(both)
}

/// Tags of 128 bits of which the highest 96 are equal.
#[test]
fn own_tags_are_in_order() {
    let parameters = Parameters::new(Form::Malicious, false, 5, 5);
    let mut set = BinnedSet::new(&[1; 32], &set(0, 1, 5), &parameters, &mut ()).unwrap();
    let tags = [9 << 96 | 7, 9 << 96 | 5, 1, 9 << 96 | 6, 9 << 96 | 1 << 40];
    for (block, tag) in set.blocks.iter_mut().zip(tags) {
        *block = Block::new(tag);
    }
    assert_eq!(
        matching::own_tags(&mut set, 128),
        [(1, 2), (tags[1], 1), (tags[3], 3), (tags[0], 0), (tags[4], 4)]
    );
}

/// Several bins and batches, the last with one bin, over TCP: intersection, search and OPRF.
#[test]
fn several_batches() {
    const OF: u64 = 200;
    let (n, m) = (1300, 13 * OF as usize);
    let (x, y) = (set(0, 1, n), set(n / 2, 1, m));
    let values: Vec<_> = (0..n).map(|i| i.to_string()).collect();
    for settings in settings() {
        let parties = || {
            let (mut sender, mut receiver) = (sender(), receiver());
            sender.party.scale.bin = OF;
            receiver.party.scale.bin = OF;
            (sender, receiver)
        };
        let (sender, receiver) = parties();
        let (sent, received) = run_two_parties_tcp(
            |channel| sender.intersect(&x, settings, &mut (), channel),
            |channel| receiver.intersect(&y, settings, &mut (), channel),
        );
        let (sent, received) = (sent.unwrap(), received.unwrap());
        // The smaller set decides where both learn the result.
        let bins = if settings.both { 7 } else { 13 };
        assert_eq!(sent.parameters.bins, bins, "{settings:?}");
        assert_eq!(received.common, common(&y, &x), "{settings:?}");
        assert_eq!(sent.common, settings.both.then(|| common(&x, &y)));
        let (sender, receiver) = parties();
        let (answered, found) = run_two_parties(
            |channel| sender.answer(&x, &values, settings, &mut (), channel),
            |channel| receiver.search(&y, settings, &mut (), channel),
        );
        assert_eq!(answered.unwrap().parameters.bins, 13);
        let found = found.unwrap();
        assert_eq!(found.items, common(&y, &x));
        let expected = found.items.iter().map(|item| (item + n / 2).to_string());
        assert!(expected.eq(found.values.iter().map(|value| str::from_utf8(value).unwrap())));
        if settings.form != Form::Low && !settings.both {
            let (sender, receiver) = parties();
            let (keys, outputs) = run_two_parties(
                |channel| sender.keys(settings.form, &mut (), channel),
                |channel| receiver.outputs(&y, settings.form, &mut (), channel),
            );
            assert_eq!(keys.unwrap().evaluate(&y)[..], outputs.unwrap().outputs[..]);
        }
    }
}
