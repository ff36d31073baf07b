use std::collections::HashSet;
use std::time::Duration;

use curve25519_dalek::Scalar;
use curve25519_dalek::constants::{ED25519_BASEPOINT_TABLE, EIGHT_TORSION};

use super::*;
use crate::fixtures::{assert_caught, items, meet, rng, tamper};

const SESSION: SessionId = SessionId::from_bytes([8; 32]);

/// Some element, the same one for the same number.
pub(super) fn element(number: usize) -> Element {
    Element::from_bytes(blake3::hash(&number.to_le_bytes()).as_bytes())
}

pub(super) fn elements(count: usize) -> Vec<Element> {
    (0..count).map(element).collect()
}

fn send(ours: &[Vec<u8>], channel: &mut Channel) -> Result<Outcome> {
    super::send((SESSION, rng(Role::Sender)), ours, None, &mut (), channel)
}

fn receive(theirs: &[Vec<u8>], channel: &mut Channel) -> Result<Vec<usize>> {
    let own = (SESSION, rng(Role::Receiver));
    Ok(super::receive(own, theirs, false, &mut (), channel)?.common.unwrap())
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
) -> Result<Vec<usize>> {
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
    assert_eq!(receive_from(None, |_| ()).unwrap(), [0, 1]);
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
    assert!(received.len() < 3, "one tag was replaced, maybe a common one");
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
            let own = (SESSION, rng(Role::Receiver));
            super::receive(own, &items(0..3), true, &mut (), channel)
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
) -> (Result<Outcome>, Option<ReceiverView>) {
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
        let own = (SESSION, Prg::new(Block::new(seed)));
        let (sent, received) = meet(
            |channel| super::send(own, &items(0..20), None, &mut (), channel),
            |channel| receive(&items(0..20), channel),
        );
        sent.unwrap();
        assert_eq!(received.unwrap().len(), 20);
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

fn receive_with(seed: u128, theirs: &[Vec<u8>], channel: &mut Channel) -> Result<Vec<usize>> {
    let rng = Prg::new(Block::new(seed + 1000));
    Ok(super::receive((SESSION, rng), theirs, false, &mut (), channel)?.common.unwrap())
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
