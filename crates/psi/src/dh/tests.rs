#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::HashSet;
use std::time::Duration;

use curve25519_dalek::Scalar;
use curve25519_dalek::constants::{ED25519_BASEPOINT_TABLE, EIGHT_TORSION};
use volery_channel::{Stats, run_two_parties_with_stats};

use super::*;
use crate::fixtures::{
    assert_caught, assert_handshake, assert_no_duplicates, common, items, meet, rng, tamper,
};
use crate::vole;

const SESSION: SessionId = SessionId::from_bytes([8; 32]);

/// Some element, the same one for the same number.
pub(super) fn element(number: usize) -> Element {
    Element::from_bytes(blake3::hash(&number.to_le_bytes()).as_bytes())
}

pub(super) fn elements(count: usize) -> Vec<Element> {
    (0..count).map(element).collect()
}

/// The handshake compares the protocol: a sender by Diffie-Hellman meets no receiver of another.
#[test]
fn hellos() {
    let receivers = [
        (hello("intersection", Role::Receiver), true),
        (hello("search", Role::Receiver), false),
        (hello("intersection", Role::Sender), false),
        (vole::Settings::default().hello("intersection", Role::Receiver), false),
    ];
    for (theirs, fits) in receivers {
        let ours = hello("intersection", Role::Sender);
        assert_handshake(&ours, &theirs, fits);
    }
}

fn send(ours: &[Vec<u8>], channel: &mut Channel) -> Result<SenderResult> {
    Sender::new(SESSION, rng(Role::Sender)).intersect(ours, &mut (), channel)
}

fn receive(theirs: &[Vec<u8>], channel: &mut Channel) -> Result<ReceiverResult> {
    Receiver::new(SESSION, rng(Role::Receiver)).intersect(theirs, &mut (), channel)
}

/// A run against a plain intersection; the traffic of the sender.
fn check(ours: &[Vec<u8>], theirs: &[Vec<u8>]) -> Stats {
    let ((sent, stats), (received, _)) = run_two_parties_with_stats(
        |channel| send(ours, channel).unwrap(),
        |channel| receive(theirs, channel).unwrap(),
    );
    let parameters =
        Parameters { sender_items: ours.len() as u64, receiver_items: theirs.len() as u64 };
    assert_eq!(sent.parameters, parameters);
    let common = common(theirs, ours);
    assert_eq!(received, ReceiverResult { parameters, common });
    stats
}

#[test]
fn all_sizes() {
    for n in [0, 1, 2, 3, 17] {
        for m in [0, 1, 2, 5, 17] {
            check(&items(0..n), &items(n / 2..n / 2 + m));
        }
    }
    check(&items(0..300), &items(200..370));
    check(&items(0..100), &items(100..200));
    check(&items(0..130), &items((0..130).rev()));
    check(&[], &items(0..70));
    check(&items(0..1), &items(0..200));
    // Items of any length.
    check(&[vec![], vec![0], vec![0; 5000]], &[vec![0, 0], vec![0; 5000], vec![]]);
}

#[test]
fn cost() {
    for (n, m) in [(1, 1), (5, 9), (70, 3), (2, 150)] {
        let stats = check(&items(0..n), &items(1..m + 1));
        let expected = bytes(n as u64, m as u64, None);
        assert_eq!((stats.bytes_sent, stats.bytes_received), expected);
        assert_eq!(expected, (144 + 16 * n as u64, 96 + 32 * m as u64));
        assert_eq!((stats.messages_sent, stats.messages_received), (4, 3));
    }
    for (n, m) in [(0, 9), (9, 0), (0, 0)] {
        let stats = check(&items(0..n), &items(0..m));
        assert_eq!((stats.bytes_sent, stats.bytes_received), bytes(n as u64, m as u64, None));
    }
}

fn search_for(
    keywords: &[Vec<u8>],
    values: &[Vec<u8>],
    wanted: &[Vec<u8>],
) -> (LookupSenderResult, LookupReceiverResult, Stats) {
    let ((answered, stats), (found, _)) = run_two_parties_with_stats(
        |channel| {
            let sender = Sender::new(SESSION, rng(Role::Sender));
            sender.answer(keywords, values, &mut (), channel).unwrap()
        },
        |channel| {
            let receiver = Receiver::new(SESSION, rng(Role::Receiver));
            receiver.search(wanted, &mut (), channel).unwrap()
        },
    );
    (answered, found, stats)
}

#[test]
fn search() {
    for longest in [0, 1, 13, 200, MAX_VALUE] {
        let keywords = items(0..20);
        let value = |i: usize| vec![i as u8 + 1; if i == 7 { longest } else { longest * i / 20 }];
        let values: Vec<_> = (0..20).map(value).collect();
        let (answered, found, stats) = search_for(&keywords, &values, &items(5..11));
        assert_eq!((answered.longest, found.longest), (longest, longest));
        assert_eq!(answered.parameters, found.parameters);
        assert_eq!(found.parameters.sender_items, 20);
        assert_eq!(found.parameters.receiver_items, 6);
        assert_eq!(found.items, [0, 1, 2, 3, 4, 5]);
        assert_eq!(found.values, values[5..11]);
        let expected = bytes(20, 6, Some(longest));
        assert_eq!((stats.bytes_sent, stats.bytes_received), expected);
        assert_eq!(format!("{found:?}"), "LookupReceiverResult(6 values, ..)");
    }
    let (_, found, _) = search_for(&items(0..4), &items(4..8), &items(9..10));
    assert_eq!((found.items.len(), found.values.len()), (0, 0));
    let (_, found, _) = search_for(&items(0..4), &items(4..8), &[]);
    assert_eq!(found.items.len(), 0);
}

/// Any bytes are a value, at most as long as announced.
#[test]
fn every_ciphertext_is_a_value() {
    assert_eq!(decrypt(&[3, 1, 7, 8], &[0, 1, 0, 0]), [7, 8]);
    assert_eq!(decrypt(&[1, 0, 7, 8], &[0; 4]), [7]);
    assert_eq!(decrypt(&[0xff, 0xff], &[0; 2]), [0; 0]);
}

#[test]
fn refused_sets() {
    let mut channel = Channel::memory_pair().0;
    let many = items(0..=MAX_ITEMS as usize);
    let refused = send(&many, &mut channel);
    assert!(matches!(refused, Err(Error::TooMany { items: 16_385, most: MAX_ITEMS })));
    assert!(matches!(receive(&many, &mut channel), Err(Error::TooMany { .. })));
    let sender = Sender::new(SESSION, rng(Role::Sender));
    let values = [vec![], vec![0; MAX_VALUE + 1]];
    let refused = sender.answer(&items(0..2), &values[..], &mut (), &mut channel);
    assert!(matches!(refused, Err(Error::LongValue { item: 1, .. })));
    assert_no_duplicates(send, receive);
}

/// A change of any byte on the way, or the loss of the rest, is noticed by the receiver.
#[test]
fn tampering() {
    tamper(
        bytes(3, 2, None),
        Duration::from_secs(5),
        |channel| send(&items(0..3), channel),
        |channel| receive(&items(1..3), channel),
        |role, at, cut, received| assert!(received.is_err(), "{role:?} {at} {cut}"),
    );
}

/// A malicious party after step 0.
fn begin(role: Role, items: &[Vec<u8>], note: u64, channel: &mut Channel) -> Run {
    let terms = (Protocol::Intersection, note);
    let party = (role, SESSION, &mut rng(role));
    Run::begin(party, items, terms, &mut (), channel).unwrap()
}

/// The result of a receiver whose sender sends `public`, and tags changed by `change`.
fn receive_from(
    public: Option<[u8; 32]>,
    change: impl FnOnce(&mut Vec<[u8; TAG]>) + Send,
) -> Result<ReceiverResult> {
    let (_, received) = meet(
        |channel| -> Result<()> {
            let run = begin(Role::Sender, &items(0..4), 0, channel);
            let secret = [8; 32];
            let public = public.unwrap_or(multiply(&[secret], &[BASE])[0]);
            channel.send(&public)?;
            let mut polynomial = [[0; 32]; 3];
            channel.recv(polynomial.as_flattened_mut())?;
            let keys = run.answers(&secret, &polynomial.map(|c| Element::from_bytes(&c)));
            let hashes = run.derive(&public, &keys, TAG);
            let mut tags = hashes.as_chunks().0.to_vec();
            tags.sort_unstable();
            change(&mut tags);
            channel.send(tags.as_flattened())?;
            let (polynomial, tags) = (polynomial.as_flattened(), tags.as_flattened());
            channel.send(&run.end([&public, polynomial, tags, &[]]))?;
            Ok(channel.flush()?)
        },
        |channel| receive(&items(2..5), channel),
    );
    received
}

#[test]
fn keys_outside_the_group_are_refused() {
    assert_eq!(receive_from(None, |_| ()).unwrap().common, [0, 1]);
    let mut refused: Vec<_> = EIGHT_TORSION.iter().map(|point| point.to_montgomery().0).collect();
    // A point with a part of small order, and one of the twist.
    let point = &Scalar::from(8_u8) * ED25519_BASEPOINT_TABLE;
    refused.extend(EIGHT_TORSION[1..].iter().map(|small| (point + small).to_montgomery().0));
    let twist = (2..).map(|i| Element::small(i).to_bytes());
    refused.extend(twist.filter(|u| MontgomeryPoint(*u).to_edwards(0).is_none()).take(3));
    // Encodings of 9, the base point's coordinate, that are not the canonical one.
    let mut nine = [0; 32];
    nine[0] = 9;
    assert!(check_public(&nine).is_ok());
    nine[31] = 0x80;
    refused.push(nine);
    let mut nine = [0xff; 32];
    (nine[0], nine[31]) = (0xed + 9, 0x7f);
    refused.push(nine);
    for public in refused {
        let received = receive_from(Some(public), |_| ());
        assert_caught(received, "its key is not an element of the group");
    }
}

#[test]
fn repeated_or_unordered_tags_are_refused() {
    let why = "its tags are not distinct or not in order";
    assert_caught(receive_from(None, |tags| tags[1] = tags[0]), why);
    assert_caught(receive_from(None, |tags| tags.swap(1, 2)), why);
    let received = receive_from(None, |tags| tags[3] = [0xff; TAG]).unwrap();
    assert!(received.common.len() < 3, "one tag was replaced, maybe a common one");
}

#[test]
fn wrong_announcements_are_refused() {
    let other = |role: Role, items, note| {
        move |channel: &mut Channel| {
            let terms = Protocol::Intersection.terms();
            let said = (items, note);
            Agreement::reach(role, SESSION, &mut rng(role), terms, said, channel).map(|_| ())
        }
    };
    let most = MAX_ITEMS as usize;
    let large = "it announced a set larger than the maximum of this protocol";
    let sender = other(Role::Sender, most + 1, 0);
    let (_, received) = meet(sender, |channel| receive(&items(0..3), channel));
    assert_caught(received, large);
    let receiver = other(Role::Receiver, most + 1, 0);
    let (sent, _) = meet(|channel| send(&items(0..3), channel), receiver);
    assert_caught(sent, large);
    let sender = other(Role::Sender, 3, MAX_VALUE as u64 + 1);
    let (_, received) = meet(sender, |channel| receive(&items(0..3), channel));
    assert_caught(received, "it announced values longer than the maximum");
    // A party of the other protocol.
    let (sent, found) = meet(
        |channel| send(&items(0..3), channel),
        |channel| {
            let receiver = Receiver::new(SESSION, rng(Role::Receiver));
            receiver.search(&items(0..3), &mut (), channel)
        },
    );
    let why = "it runs another protocol or has other settings";
    assert_caught(sent, why);
    assert_caught(found, why);
}

/// A malicious receiver's view at the end: its run, `A`, its keys and the tags.
type ReceiverView = (Run, [u8; 32], Vec<Key>, Vec<[u8; TAG]>);

/// The tags that an honest sender of items 0 to 4 sends to a malicious receiver of two items.
fn tags_for(
    coefficients: impl FnOnce(&Run, &[Key]) -> Vec<[u8; 32]> + Send,
) -> (Result<SenderResult>, Option<ReceiverView>) {
    meet(
        |channel| send(&items(0..5), channel),
        |channel| {
            let run = begin(Role::Receiver, &items(2..4), 0, channel);
            let keys = sample(2, &mut rng(Role::Receiver)).to_vec();
            let mut public = [0; 32];
            channel.recv(&mut public).unwrap();
            channel.send(coefficients(&run, &keys).as_flattened()).unwrap();
            let mut tags = vec![[0; TAG]; 5];
            channel.recv(tags.as_flattened_mut()).ok()?;
            channel.recv(&mut [0; 16]).unwrap();
            Some((run, public, keys, tags))
        },
    )
}

#[test]
fn a_coefficient_above_the_modulus_is_refused() {
    for (low, high) in [(0xed, 0x7f), (0, 0x80), (0xff, 0xff)] {
        let mut wrong = [if high == 0x80 { 0 } else { 0xff }; 32];
        (wrong[0], wrong[31]) = (low, high);
        let (sent, _) = tags_for(|_, _| vec![[0; 32], wrong]);
        assert_caught(sent, "a coefficient is not below 2^255 - 19");
    }
}

/// A receiver that sends a constant knows no key of the sender's items. With a polynomial that is
/// really constant, it would know all of them.
#[test]
fn a_constant_gives_no_keys() {
    let preimage =
        |run: &Run, key: &Key| run.permutation().backward(&key.representative.to_bytes());
    let (sent, result) = tags_for(|run, keys| vec![preimage(run, &keys[0]), [0; 32]]);
    sent.unwrap();
    let (run, public, keys, tags) = result.unwrap();
    // The receiver, as if it had all items of the sender under this one key.
    let mut all = Run { agreement: run.agreement.clone(), digests: Zeroizing::new(Vec::new()) };
    let mut oracle = RandomOracle::new("volery psi dh: item");
    oracle.absorb(&run.agreement.salt());
    for item in items(0..5) {
        let mut hash = [[0; 32]; 2];
        oracle.clone().absorb(&item).finish_into(hash.as_flattened_mut());
        all.digests.push(Digest { point: Element::from_bytes(&hash[0]), name: hash[1] });
    }
    assert!(all.digests[2].name == run.digests[0].name);
    let shared = shared_keys(&public, &[keys[0]; 5]);
    let known = all.derive(&public, &shared, TAG);
    assert!(known.as_chunks().0.iter().all(|tag| !tags.contains(tag)));
}

/// A receiver that follows the protocol except for its output: it knows the keys of its own two
/// items and no others.
#[test]
fn a_polynomial_gives_the_keys_of_its_points() {
    let (sent, result) = tags_for(|run, keys| {
        let values: Vec<_> = keys
            .iter()
            .map(|key| run.permutation().backward(&key.representative.to_bytes()))
            .map(|preimage| Element::from_bytes(&preimage))
            .collect();
        let polynomial = interpolate(&run.points(), &values);
        polynomial.iter().map(|coefficient| coefficient.to_bytes()).collect()
    });
    sent.unwrap();
    let (run, public, keys, tags) = result.unwrap();
    let known = run.derive(&public, &shared_keys(&public, &keys), TAG);
    assert!(known.as_chunks().0.iter().all(|tag| tags.contains(tag)));
    // Exchanged keys fit no item.
    let swapped = [keys[1], keys[0]];
    let known = run.derive(&public, &shared_keys(&public, &swapped), TAG);
    assert!(known.as_chunks().0.iter().all(|tag| !tags.contains(tag)));
}

/// The coefficients of an honest receiver are uniform, and so are the values in the points of its
/// items, which a sender can compute for any guess: each bit is 1 for half of them.
#[test]
fn polynomials_are_uniform() {
    let mut ones = [[0_u32; 255]; 2];
    let (runs, each) = (40, 50);
    for seed in 0..runs {
        let (_, polynomial) = meet(
            |channel| receive_with(seed, &items(0..each), channel),
            |channel| {
                let run = begin(Role::Sender, &items(0..each), 0, channel);
                channel.send(&BASE).unwrap();
                let mut coefficients = vec![[0; 32]; each];
                channel.recv(coefficients.as_flattened_mut()).unwrap();
                let polynomial: Vec<_> = coefficients.iter().map(Element::from_bytes).collect();
                let values = evaluate(Element::ONE, &polynomial, &run.points());
                [coefficients, values.iter().map(|value| value.to_bytes()).collect()]
            },
        );
        for (numbers, ones) in polynomial.into_iter().zip(&mut ones) {
            for number in numbers {
                for (bit, ones) in ones.iter_mut().enumerate() {
                    *ones += u32::from(number[bit / 8] >> (bit % 8) & 1);
                }
            }
        }
    }
    let expected = runs as f64 * each as f64 / 2.0;
    for (what, ones) in ["coefficient", "value"].iter().zip(ones) {
        for (bit, ones) in ones.into_iter().enumerate() {
            let far = (f64::from(ones) - expected).abs();
            assert!(far < 6.0 * (expected / 2.0).sqrt(), "{what}, bit {bit}: {ones}");
        }
    }
}

/// The parts of small order of the receiver's keys do not matter, whatever the sender's scalar.
#[test]
fn small_order_is_cleared() {
    for seed in 0..8 {
        let sender = Sender::new(SESSION, Prg::new(Block::new(seed)));
        let (sent, received) = meet(
            |channel| sender.intersect(&items(0..20), &mut (), channel),
            |channel| receive(&items(0..20), channel),
        );
        sent.unwrap();
        assert_eq!(received.unwrap().common.len(), 20);
    }
}

/// A tag depends on the sender's key, the item, the message and the key: several messages have the
/// same key, those of one point and its opposite.
#[test]
fn tags_depend_on_everything() {
    let (_, run) = meet(
        |channel| begin(Role::Sender, &items(0..2), 0, channel),
        |channel| begin(Role::Receiver, &items(0..2), 0, channel),
    );
    let tag = |public: u8, message: u8, key: u8| {
        let keys = Zeroizing::new(vec![[[message; 32], [key; 32]]; 2]);
        run.derive(&[public; 32], &keys, TAG).as_chunks::<TAG>().0.to_vec()
    };
    let tags = [tag(0, 0, 0), tag(1, 0, 0), tag(0, 1, 0), tag(0, 0, 1)].concat();
    let different: HashSet<_> = tags.iter().collect();
    assert_eq!(different.len(), 8);
}

fn receive_with(seed: u128, theirs: &[Vec<u8>], channel: &mut Channel) -> Result<ReceiverResult> {
    let rng = Prg::new(Block::new(seed + 1000));
    Receiver::new(SESSION, rng).intersect(theirs, &mut (), channel)
}

/// The bounds of the module documentation: the binary logarithm of the number of ways to choose
/// `items` of 2^log outputs of `H1`, and for each one of as many preimages with either highest bit,
/// times the probability that a polynomial fits.
#[test]
fn overfitting() {
    let log_of_bound = |log: f64, m: u64, items: u64| {
        let factorial: f64 = (1..=items).map(|i| (i as f64).log2()).sum();
        let choices = items as f64 * (log + log + 1.0) - factorial;
        choices - (items - m) as f64 * (255.0 - (m as f64).log2())
    };
    for (log, factor) in [(40.0, 1.5), (64.0, 2.0), (80.0, 2.8)] {
        for m in (1..300).chain([1 << 10, 1 << 12, MAX_ITEMS]) {
            let items = (factor * m as f64 + 2.0).ceil() as u64;
            assert!(log_of_bound(log, m, items) <= -40.0, "2^{log} {m} {items}");
        }
    }
}
