use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::*;
use crate::fixtures::{assert_caught, items, meet, outside, rng, tamper};

const SESSION: SessionId = SessionId::from_bytes([8; 32]);

fn send(ours: &[Vec<u8>], channel: &mut Channel) -> Result<Parameters> {
    super::send((SESSION, rng(Role::Sender)), ours, &mut (), channel)
}

fn receive(theirs: &[Vec<u8>], channel: &mut Channel) -> Result<u64> {
    let own = (SESSION, rng(Role::Receiver));
    super::receive(own, theirs, &mut (), channel).map(|(_, common)| common)
}

#[test]
fn tags_have_forty_bits_more_than_the_pairs() {
    for (n, m, tag) in [(1, 1, 40), (2, 3, 43), (1 << 20, 1 << 20, 80), (1 << 31, 1 << 31, 102)] {
        assert_eq!(Parameters::new(n, m).tag, tag);
    }
    let parameters = Parameters::new(2, 3);
    assert_eq!(parameters.truncate(Block::new(5 << 85 | 1)), 5, "the highest bits");
}

/// A change of any byte on the way, or the loss of the rest, is noticed by the receiver.
#[test]
fn tampering() {
    tamper(
        bytes(3, 2),
        Duration::from_secs(5),
        |channel| send(&items(0..3), channel),
        |channel| receive(&items(1..3), channel),
        |role, at, cut, received| assert!(received.is_err(), "{role:?} {at} {cut}"),
    );
}

/// A malicious party after step 0.
fn begin(role: Role, items: &[Vec<u8>], channel: &mut Channel) -> Run {
    let party = (role, SESSION, &mut rng(role));
    Run::begin(party, items, &mut (), channel).unwrap()
}

const OUTSIDE: &str = "it sent what is not an element of the group, or the identity";

#[test]
fn elements_of_the_receiver_outside_the_group_are_refused() {
    for bad in outside() {
        for place in 0..3 {
            let (sent, _) = meet(
                |channel| send(&items(0..5), channel),
                |channel| -> Result<()> {
                    let run = begin(Role::Receiver, &items(0..3), channel);
                    let mut points = [[0; 32]; 3];
                    run.points(&run.digests, &Scalar::ONE, &mut points);
                    points[place] = bad;
                    channel.send(points.as_flattened())?;
                    channel.flush()?;
                    Ok(())
                },
            );
            assert_caught(sent, OUTSIDE);
        }
    }
}

/// The result of a receiver with 3 items whose sender changes its elements or its tags.
fn receive_from(change: impl FnOnce(&mut [EncodedElement], &mut [u128]) + Send) -> Result<u64> {
    let (_, received) = meet(
        |channel| -> Result<()> {
            let mut run = begin(Role::Sender, &items(0..4), channel);
            let secret = half(&Scalar::from(77_u8));
            let mut ours = [[0; 32]; 4];
            run.points(&run.digests, &secret, &mut ours);
            let mut outputs = [Block::ZERO; 4];
            run.hash(&ours, &mut outputs);
            let mut tags = outputs.map(|output| run.parameters.truncate(output));
            tags.sort_unstable();
            let mut points = [[0; 32]; 3];
            channel.recv(points.as_flattened_mut())?;
            run.transcript.update(points.as_flattened());
            multiply(&mut points, &secret)?;
            change(&mut points, &mut tags);
            run.transcript.update(points.as_flattened());
            for tag in tags {
                run.transcript.update(&tag.to_le_bytes());
            }
            channel.send(points.as_flattened())?;
            run.parameters.tags().send(tags.into_iter(), channel)?;
            channel.send(&run.end())?;
            channel.flush()?;
            Ok(())
        },
        |channel| receive(&items(2..5), channel),
    );
    received
}

#[test]
fn elements_of_the_sender_outside_the_group_are_refused() {
    assert_eq!(receive_from(|_, _| ()).unwrap(), 2);
    for bad in outside() {
        for place in 0..3 {
            assert_caught(receive_from(|points, _| points[place] = bad), OUTSIDE);
        }
    }
}

#[test]
fn repeated_elements_are_refused() {
    let repeated = receive_from(|points, _| points[2] = points[0]);
    assert_caught(repeated, "its elements are not distinct");
}

/// A sender may name other tags, or repeat one: the number is what it says, at most that of the
/// receiver's items, and one tag counts once.
#[test]
fn tags_of_the_sender_are_its_own() {
    let fewer = receive_from(|_, tags| tags.fill(tags[3]));
    assert!(fewer.unwrap() <= 1);
    let none = receive_from(|_, tags| tags.fill(0));
    assert_eq!(none.unwrap(), 0);
}

/// The answer to a receiver with 3 items, each times a number of its own, and the tags.
fn answers(scalars: [u8; 3], seed: u128) -> ([EncodedElement; 3], Vec<u128>) {
    let (_, answer) = meet(
        |channel| {
            let own = (SESSION, Prg::new(Block::new(seed)));
            super::send(own, &items(0..4), &mut (), channel).unwrap()
        },
        |channel| {
            let run = begin(Role::Receiver, &items(2..5), channel);
            let mut points = [[0; 32]; 3];
            for ((digest, scalar), point) in run.digests.chunks(1).zip(scalars).zip(&mut points) {
                let point = std::slice::from_mut(point);
                run.points(digest, &half(&Scalar::from(scalar)), point);
            }
            channel.send(points.as_flattened()).unwrap();
            channel.flush().unwrap();
            channel.recv(points.as_flattened_mut()).unwrap();
            let mut tags = Vec::new();
            let mut reader = run.parameters.tags().receive(false);
            reader.read(10, &mut tags, channel).unwrap();
            channel.recv(&mut [0; 16]).unwrap();
            (points, tags)
        },
    );
    answer
}

/// The order of the answer changes from run to run, and with it the exponent: nothing links two
/// runs of the sender.
#[test]
fn each_run_of_the_sender_has_another_exponent_and_order() {
    let mut orders = HashSet::new();
    let mut elements = HashSet::new();
    for seed in 0..40 {
        let (points, tags) = answers([1; 3], seed);
        assert_eq!(tags.len(), 4);
        assert!(points.iter().all(|point| elements.insert(*point)));
        // With numbers of its own, and the same seed, the receiver can tell the answers apart.
        let (numbered, _) = answers([1, 2, 3], seed);
        let order = numbered.map(|point| {
            (1..4_u8).find(|&scalar| {
                let mut point = [point];
                let inverse = Scalar::from(scalar).invert();
                multiply(&mut point, &half(&inverse)).unwrap();
                points.contains(&point[0])
            })
        });
        orders.insert(order.map(Option::unwrap));
    }
    assert_eq!(orders.len(), 6, "all orders of three");
}

#[test]
fn orders_are_uniform() {
    let (runs, mut rng) = (24_000, Prg::new(Block::ONE));
    let mut seen = HashMap::new();
    for _ in 0..runs {
        let mut points: [EncodedElement; 4] = [1, 2, 3, 4].map(|byte| [byte; 32]);
        shuffle(&mut points, &mut rng);
        *seen.entry(points).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 24);
    let expected = f64::from(runs) / 24.0;
    let square: f64 =
        seen.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    // 23 degrees of freedom: above 60 with probability below 10^-4.
    assert!(square < 60.0, "{square}");
}
