//! Base OT between honest parties.

use crate::common::*;
use volery_channel::{SessionId, run_two_parties, run_two_parties_tcp, run_two_parties_with_stats};
use volery_ot::base;

#[test]
fn the_receiver_gets_the_key_it_asks_for_and_no_other() {
    for n in [0, 1, 2, 7, 8, 9, 63, 64, 65, 128, 131] {
        let choices = random_bits(n, 4);
        let (pairs, keys) = run_two_parties(
            |channel| base::send(n, SESSION, &mut rng(1), channel).unwrap(),
            |channel| base::receive(&choices, n, SESSION, &mut rng(2), channel).unwrap(),
        );
        assert_eq!((pairs.len(), keys.len()), (n, n));
        let mut seen = std::collections::HashSet::new();
        for (i, (pair, &key)) in pairs.iter().zip(keys.iter()).enumerate() {
            assert_eq!(pair[usize::from(bit(&choices, i))], key, "OT {i} of {n}");
            assert!(
                pair.iter().all(|&key| seen.insert(u128::from(key))),
                "no key twice"
            );
        }
    }
}

#[test]
fn sessions_and_seeds_give_other_keys() {
    let run = |session: SessionId, seed| {
        run_two_parties_tcp(
            |channel| base::send(3, session, &mut rng(seed), channel).unwrap(),
            |channel| base::receive(&[2], 3, session, &mut rng(9), channel).unwrap(),
        )
    };
    let first = run(SESSION, 1);
    assert!(first == run(SESSION, 1));
    assert!(first.1 != run(SESSION, 2).1);
    assert!(first.1 != run(SessionId::from_bytes([0; 32]), 1).1);
}

#[test]
fn parties_in_different_sessions_do_not_agree() {
    let (pairs, keys) = run_two_parties(
        |channel| base::send(1, SESSION, &mut rng(1), channel).unwrap(),
        |channel| {
            let other = SessionId::from_bytes([0; 32]);
            base::receive(&[1], 1, other, &mut rng(2), channel).unwrap()
        },
    );
    assert!(!pairs[0].contains(&keys[0]));
}

#[test]
fn the_cost_is_the_documented_one() {
    let ((_, sender), (_, receiver)) = run_two_parties_with_stats(
        |channel| base::send(128, SESSION, &mut rng(1), channel).unwrap(),
        |channel| base::receive(&[0; 16], 128, SESSION, &mut rng(2), channel).unwrap(),
    );
    assert_eq!((sender.bytes_sent, sender.bytes_received), (32, 64 * 128));
    assert_eq!((receiver.messages_sent, receiver.messages_received), (1, 1));
}
