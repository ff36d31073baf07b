//! Comparison of shared vectors with plain ones, their cost, and invalid input.

use volery_channel::run_two_parties;
use volery_field::{F2, Fp61, Gf128, Z64};
use volery_ot::softspoken::{self, SmallField};
use volery_primitives::Block;

use super::*;
use crate::testing::{ots, random, rng};

const SESSION: SessionId = SessionId::from_bytes([3; 32]);

/// Random shares of the values.
fn share<R: Ring>(values: &[R], seed: u128) -> [Vec<R>; 2] {
    let first = random::<R>(values.len(), seed);
    let second = values.iter().zip(&first).map(|(value, first)| *value - *first);
    [first.clone(), second.collect()]
}

fn check<R: Ring>(n: usize) {
    let values = random::<R>(n, 1);
    let shares = share(&values, 2);
    let mut indices = vec![0, n - 1, n / 2, n / 2];
    indices.extend((0..20).map(|i| i * 7 % n));
    let added = share(&random::<R>(indices.len(), 3), 4);
    let (mut ot, mut receiver_ot) = ots();
    let (left, right) = run_two_parties(
        |channel| {
            let mut vector = Partner::new(shares[0].clone(), SESSION, rng(5));
            for share in &added[0] {
                vector.add(*share, &mut ot, channel).unwrap();
            }
            vector.into_shares()
        },
        |channel| {
            let mut vector = Holder::new(shares[1].clone(), SESSION);
            for (index, share) in indices.iter().zip(&added[1]) {
                vector.add(*index, *share, &mut receiver_ot, channel).unwrap();
            }
            vector.into_shares()
        },
    );
    let mut plain = values;
    for (index, (left, right)) in indices.into_iter().zip(added[0].iter().zip(&added[1])) {
        plain[index] += *left + *right;
    }
    for (index, value) in plain.into_iter().enumerate() {
        assert!(left[index] + right[index] == value, "entry {index} of {n}");
        assert!(R::BITS == 1 || left[index] != shares[0][index], "entry {index} of {n}");
    }
}

#[test]
fn a_vector_is_added_to() {
    for n in [1, 2, 3, 7, 8, 9, 1000] {
        check::<Z64>(n);
        check::<Fp61>(n);
        check::<Gf128>(n);
        check::<F2>(n);
    }
}

#[test]
fn each_access_has_keys_of_its_own() {
    let keys = |session: u8| {
        let party = move |channel: &mut Channel| {
            let session = SessionId::from_bytes([session; 32]);
            let mut vector = Vector::new(vec![Z64::ZERO; 4], session);
            [(); 3].map(|()| {
                let prgs = vector.use_up(channel).unwrap();
                vector.usable = true;
                prgs.tree(0).children(Block::ZERO)
            })
        };
        let (left, right) = run_two_parties(party, party);
        assert_eq!(left, right);
        left
    };
    let all = [keys(1), keys(2)].concat();
    assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
}

/// Two parties over real OTs send the bytes and messages of the module documentation, and step 0
/// before the first addition only.
fn cost<R: Ring>(n: usize) {
    let field = SmallField::Bits8;
    // SoftSpoken OT, one batch: see its doc.
    let extension = |count: usize| 15 * (count.next_multiple_of(128) + 128) / 8 + 48;
    let (left, right) = run_two_parties(
        |channel| {
            let ot = softspoken::Sender::setup(None, field, SESSION, rng(1), channel).unwrap();
            let mut ot = convert::Sender::new(ot, SESSION);
            let mut vector = Partner::new(vec![R::ZERO; n], SESSION, rng(3));
            [(); 3].map(|()| {
                let stats = channel.stats();
                vector.add(R::ONE, &mut ot, channel).unwrap();
                channel.stats() - stats
            })
        },
        |channel| {
            let ot = softspoken::Receiver::setup(field, SESSION, rng(2), channel).unwrap();
            let mut ot = convert::Receiver::new(ot, SESSION);
            let mut vector = Holder::new(vec![R::ZERO; n], SESSION);
            [(); 3].map(|()| {
                let stats = channel.stats();
                vector.add(n - 1, R::ONE, &mut ot, channel).unwrap();
                channel.stats() - stats
            })
        },
    );
    let depth = (n.next_power_of_two().ilog2() as usize).max(1);
    let from_holder = depth.div_ceil(8) + extension(depth);
    let from_partner = 16 * (depth + 1) + R::encoded_len(1);
    for (step, (left, right)) in left.into_iter().zip(right).enumerate() {
        let first = if step == 0 { 16 } else { 0 };
        assert_eq!(right.bytes_sent as usize, first + from_holder, "step {step} of {n}");
        assert_eq!(left.bytes_sent as usize, first + from_partner, "step {step} of {n}");
        if step > 0 {
            assert_eq!((left.messages_sent, right.messages_sent), (1, 1), "step {step} of {n}");
        }
    }
    if n == 1 << 20 && R::BYTES == 8 {
        assert_eq!((from_holder, from_partner), (3 + 528, 344), "the numbers of the doc");
    }
}

#[test]
fn cost_is_that_of_the_doc() {
    for n in [1, 2, 9, 1000, 1 << 14] {
        cost::<Z64>(n);
        cost::<Gf128>(n);
        cost::<F2>(n);
    }
    cost::<Z64>(1 << 20);
}

#[test]
fn an_index_past_the_end_is_refused_before_anything_is_sent() {
    let (mut channel, _peer) = Channel::memory_pair();
    let (_, mut ot) = ots();
    for n in [1, 1000] {
        let mut vector = Holder::new(vec![Z64::ZERO; n], SESSION);
        for index in [n, n + 1, usize::MAX] {
            let failed = vector.add(index, Z64::ONE, &mut ot, &mut channel).unwrap_err();
            assert!(matches!(failed, Error::Input(_)));
            assert!(failed.to_string().ends_with(&format!("0 to {}", n - 1)));
        }
        assert!(vector.vector.usable);
    }
    assert_eq!((channel.stats().bytes_sent, channel.unflushed()), (0, 0));
}

/// Both parties report the named difference, and cannot go on.
fn differ<A: Ring, B: Ring>(field: &str, lengths: [usize; 2]) {
    let difference = |error: volery_channel::Error| match error {
        volery_channel::Error::Mismatch { field, ours, theirs } => [field, ours, theirs],
        other => panic!("{other}"),
    };
    let of_channel = |error: Error| match error {
        Error::Channel(error) => error,
        other => panic!("{other}"),
    };
    let (mut ot, mut receiver_ot) = ots();
    let (left, right) = run_two_parties(
        |channel| {
            let mut vector = Partner::new(vec![A::ZERO; lengths[0]], SESSION, rng(1));
            let error = vector.add(A::ONE, &mut ot, channel).unwrap_err();
            let after = vector.add(A::ONE, &mut ot, channel).unwrap_err();
            assert!(matches!(after, volery_channel::Error::Broken));
            difference(error)
        },
        |channel| {
            let mut vector = Holder::new(vec![B::ZERO; lengths[1]], SESSION);
            let error = vector.add(0, B::ONE, &mut receiver_ot, channel).unwrap_err();
            let after = vector.add(0, B::ONE, &mut receiver_ot, channel).unwrap_err();
            assert!(matches!(of_channel(after), volery_channel::Error::Broken));
            difference(of_channel(error))
        },
    );
    assert!(left[0].contains(field), "{left:?}");
    let [field, ours, theirs] = left;
    assert_eq!(right, [field, theirs, ours]);
}

#[test]
fn both_parties_learn_that_their_vectors_differ() {
    differ::<Z64, Z64>("entries", [8, 7]);
    differ::<Z64, Fp61>("ring", [8, 8]);
}
