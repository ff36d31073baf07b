//! Comparison of arrays with plain ones, and invalid input.

mod cost;
mod leaves;
mod meeting;
mod vectors;

use proptest::prelude::*;
use volery_channel::{SessionId, run_two_parties, run_two_unchecked};
use volery_field::{F2, Fp61, Gf128, Z64};
use volery_ot::ideal;

use super::*;
use crate::testing::{ots, random, rng};

const SESSION: SessionId = SessionId::from_bytes([3; 32]);

/// The bytes of step 0 from a party with a new array.
fn step_0<R: Ring>(n: usize) -> Vec<u8> {
    let numbers = [u64::from(R::BITS), 0, n as u64, n.min(stash::CAPACITY) as u64];
    numbers.map(u64::to_le_bytes).concat()
}

/// Random shares of the values.
fn share<R: Ring>(values: &[R], seed: u128) -> [Vec<R>; 2] {
    let first = random::<R>(values.len(), seed);
    let second = values.iter().zip(&first).map(|(value, first)| *value - *first);
    [first.clone(), second.collect()]
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Read,
    Open,
    Replace,
    Write,
    Add,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    kind: Kind,
    index: usize,
    seed: u64,
}

impl Step {
    /// The two parties' shares of its value.
    fn shares<R: Ring>(self) -> [R; 2] {
        let shares = random(2, self.seed.into());
        [shares[0], shares[1]]
    }
}

#[derive(Clone, Copy, Debug)]
enum Start {
    Zeros,
    Known,
    Shared,
}

/// The results of the operations at each party: shares, or at P2 the value.
fn outcomes<R: Ring>(start: Start, values: &[R], operations: &[Step]) -> (Vec<R>, Vec<R>) {
    let shares = share(values, 99);
    let (mut ot, mut receiver_ot) = ots();
    let n = values.len();
    run_two_parties(
        |channel| {
            let mut array = match start {
                Start::Zeros | Start::Known => Partner::new(n),
                Start::Shared => Partner::load(&shares[0], &mut ot, channel).unwrap(),
            };
            assert_eq!(array.length(), n);
            let mut run = |operation: &Step| {
                let [share, _] = operation.shares();
                match operation.kind {
                    Kind::Read => array.read(&mut ot, channel),
                    Kind::Open | Kind::Replace => array.open(&mut ot, channel).map(|()| R::ZERO),
                    Kind::Write => array.write(share, &mut ot, channel).map(|()| R::ZERO),
                    Kind::Add => array.add(share, &mut ot, channel),
                }
            };
            operations.iter().map(|operation| run(operation).unwrap()).collect()
        },
        |channel| {
            let ot = &mut receiver_ot;
            let mut array = match start {
                Start::Zeros => Holder::zeros(n, rng(1)),
                Start::Known => Holder::from_known(values, rng(1)).unwrap(),
                Start::Shared => Holder::load(&shares[1], rng(1), ot, channel).unwrap(),
            };
            assert_eq!(array.length(), n);
            let mut run = |operation: &Step| {
                let ([_, share], index) = (operation.shares(), operation.index);
                match operation.kind {
                    Kind::Read => array.read(index, ot, channel),
                    Kind::Open => array.open(index, ot, channel),
                    Kind::Replace => array.replace(index, |old| old * share, ot, channel),
                    Kind::Write => array.write(index, share, ot, channel).map(|()| R::ZERO),
                    Kind::Add => array.add(index, share, ot, channel),
                }
            };
            operations.iter().map(|operation| run(operation).unwrap()).collect()
        },
    )
}

/// Compares the operations, and then a read of each entry, with a plain array.
fn check<R: Ring>(n: usize, start: Start, operations: &[Step]) {
    let values = match start {
        Start::Zeros => vec![R::ZERO; n],
        Start::Known | Start::Shared => random(n, 4),
    };
    let mut operations = operations.to_vec();
    operations.extend((0..n).map(|index| Step { kind: Kind::Read, index, seed: 0 }));
    let (left, right) = outcomes(start, &values, &operations);
    let mut plain = values;
    for ((operation, left), right) in operations.iter().zip(left).zip(right) {
        let entry = &mut plain[operation.index];
        let shares = operation.shares::<R>();
        let value = shares[0] + shares[1];
        let before = *entry;
        match operation.kind {
            Kind::Write => *entry = value,
            Kind::Add => *entry += value,
            Kind::Replace => *entry = before * shares[1],
            Kind::Read | Kind::Open => {}
        }
        let expected = if matches!(operation.kind, Kind::Write) { R::ZERO } else { before };
        assert!(left + right == expected, "{operation:?} of {n} entries");
    }
}

fn operations(n: usize, most: usize) -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![
        Just(Kind::Read),
        Just(Kind::Open),
        Just(Kind::Replace),
        Just(Kind::Write),
        Just(Kind::Add)
    ];
    // A quarter at index 0, so that some are repeated in long arrays too.
    let index = prop_oneof![1 => Just(0), 3 => 0..n];
    let operation =
        (kind, index, any::<u64>()).prop_map(|(kind, index, seed)| Step { kind, index, seed });
    prop::collection::vec(operation, 0..most)
}

fn start() -> impl Strategy<Value = Start> {
    prop_oneof![Just(Start::Zeros), Just(Start::Known), Just(Start::Shared)]
}

fn array() -> impl Strategy<Value = (usize, Vec<Step>)> {
    prop::sample::select(vec![1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 100])
        .prop_flat_map(|n| operations(n, 60).prop_map(move |operations| (n, operations)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_array_is_an_array((n, operations) in array(), start in start()) {
        check::<Z64>(n, start, &operations);
    }

    #[test]
    fn over_every_ring((n, operations) in array(), start in start()) {
        check::<Fp61>(n, start, &operations);
        check::<Gf128>(n, start, &operations);
        check::<F2>(n, start, &operations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]

    #[test]
    fn a_longer_array_is_an_array(operations in operations(1000, 1000), start in start()) {
        check::<Z64>(1000, start, &operations);
    }
}

#[test]
fn an_index_past_the_end_is_refused_before_anything_is_sent() {
    let (mut channel, _peer) = Channel::memory_pair();
    let (_, mut ot) = ots();
    for n in [1, 1000] {
        let mut array = Holder::<Z64>::zeros(n, rng(1));
        let mut dense = dense::Holder::new(vec![Z64::ZERO; n], SESSION);
        for index in [n, n + 1, usize::MAX] {
            let failed = array.open(index, &mut ot, &mut channel).unwrap_err();
            assert!(matches!(failed, Error::PastTheEnd { length } if length == n));
            assert!(failed.to_string().ends_with(&format!("0 to {}", n - 1)));
            let failed = dense.add(index, Z64::ONE, &mut ot, &mut channel).unwrap_err();
            assert!(matches!(failed, Error::PastTheEnd { length } if length == n));
        }
    }
    assert_eq!((channel.stats().bytes_sent, channel.unflushed()), (0, 0));
}

#[test]
fn a_refused_index_leaves_the_array_usable() {
    let (mut ot, mut receiver_ot) = ots();
    let ((), value) = run_two_parties(
        |channel| {
            let mut array = Partner::<Z64>::new(10);
            array.write(Z64::new(3), &mut ot, channel).unwrap();
            array.open(&mut ot, channel).unwrap();
        },
        |channel| {
            let mut array = Holder::zeros(10, rng(1));
            array.write(4, Z64::new(4), &mut receiver_ot, channel).unwrap();
            array.open(10, &mut receiver_ot, channel).unwrap_err();
            array.open(4, &mut receiver_ot, channel).unwrap()
        },
    );
    assert_eq!(value, Z64::new(7));
}

/// The shares of everything that an access touches are masked anew.
#[test]
fn shares_are_fresh_after_each_access() {
    let (mut ot, mut receiver_ot) = ots();
    let (seen, ()) = run_two_parties(
        |channel| {
            let mut array = Partner::<Gf128>::new(1);
            let mut seen = Vec::new();
            for _ in 0..20 {
                array.read(&mut ot, channel).unwrap();
                seen.extend_from_slice(&array.memory.wires(0)[..5]);
            }
            seen
        },
        |channel| {
            let mut array = Holder::<Gf128>::zeros(1, rng(1));
            for _ in 0..20 {
                array.read(0, &mut receiver_ot, channel).unwrap();
            }
        },
    );
    let earlier = |place: usize| seen[..place].contains(&seen[place]);
    assert_eq!((seen.len(), (0..100).find(|place| earlier(*place))), (100, None));
}

#[test]
fn a_wrong_leaf_is_refused_and_ends_the_array() {
    let (mut ot, _) = ots();
    run_two_unchecked(
        |channel| {
            let mut array = Partner::<Z64>::new(1000);
            let failed = array.read(&mut ot, channel).unwrap_err();
            assert!(matches!(failed, volery_channel::Error::PeerMisbehaved(_)));
            let failed = array.read(&mut ot, channel).unwrap_err();
            assert!(matches!(failed, volery_channel::Error::Broken));
        },
        |channel| {
            channel.send(&step_0::<Z64>(1000)).unwrap();
            channel.send(&[Operation::Read as u8]).unwrap();
            channel.send(&512u32.to_le_bytes()).unwrap();
            channel.flush().unwrap();
            // Stays until the peer is gone: a closed channel would be another error.
            while channel.recv(&mut [0]).is_ok() {}
        },
    );
}

#[test]
fn a_full_stash_ends_the_array_before_anything_is_sent() {
    let (mut ot, mut receiver_ot) = ots();
    run_two_unchecked(
        |channel| {
            let mut array = Partner::<Z64>::new(1000);
            while array.read(&mut ot, channel).is_ok() {}
        },
        |channel| {
            let mut array = Holder::<Z64>::zeros(1000, rng(1));
            let mut accesses = (0..1000).map(|index| {
                let before = channel.stats();
                let result = array.read(index, &mut receiver_ot, channel);
                array.map.crowd(index);
                (index, result, channel.stats() == before)
            });
            let (index, result, idle) = accesses.find(|(_, result, _)| result.is_err()).unwrap();
            assert!(matches!(result, Err(Error::StashFull)) && idle);
            assert!(index > stash::CAPACITY, "the stash holds as many");
            let (_, result, idle) = accesses.next().unwrap();
            let broken = volery_channel::Error::Broken;
            assert_eq!(result.unwrap_err().to_string(), broken.to_string());
            assert!(idle);
        },
    );
}

/// Invalid elements in the switches, and as the opened share.
#[test]
fn wrong_elements_are_refused_and_end_the_array() {
    let switches = switching::switches(Shape::new(9).wires());
    for honest in [0, switches] {
        let (_, mut ot) = ots();
        run_two_unchecked(
            |channel| {
                let mut message = step_0::<Fp61>(9);
                message.resize(32 + 8 * honest, 0);
                message.resize(32 + 8 * (switches + 1), 0xff);
                channel.send(&message).unwrap();
                channel.flush().unwrap();
                let mut heard = vec![0; 32 + 5 + switches.div_ceil(8)];
                channel.recv(&mut heard).unwrap();
            },
            |channel| {
                let mut array = Holder::<Fp61>::zeros(9, rng(1));
                let failed = array.open(3, &mut ot, channel).unwrap_err();
                assert!(matches!(failed, Error::Channel(volery_channel::Error::PeerMisbehaved(_))));
                let failed = array.open(3, &mut ot, channel).unwrap_err();
                assert!(matches!(failed, Error::Channel(volery_channel::Error::Broken)));
            },
        );
    }
}
