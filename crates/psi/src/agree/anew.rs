//! Seeds and ends of runs that differ in one thing.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use volery_channel::run_two_parties;

use super::*;
use crate::params::{Parameters, Variant};

/// The agreement of both parties, given the session and the randomness of each.
fn reached(session: u8, of_sender: u128, of_receiver: u128) -> Agreement {
    let reach = |role: Role, seed: u128, channel: &mut Channel| {
        let session = SessionId::from_bytes([session; 32]);
        let mut rng = Prg::new(Block::new(seed));
        let agreement = Agreement::reach(role, session, &mut rng, [5; 16], (7, 0), channel);
        channel.flush().unwrap();
        agreement.unwrap()
    };
    let (sender, receiver) = run_two_parties(
        |channel| reach(Role::Sender, of_sender, channel),
        |channel| reach(Role::Receiver, of_receiver, channel),
    );
    assert_eq!(sender.seed, receiver.seed);
    sender
}

fn assert_different<T: PartialEq>(all: &[T]) {
    assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
}

/// Fresh randomness of either party gives another seed, and so does another session: no salt, code
/// or hash function repeats.
#[test]
fn seeds_are_drawn_anew() {
    let runs = [reached(1, 2, 3), reached(1, 2, 4), reached(1, 5, 3), reached(6, 2, 3)];
    assert_eq!(reached(1, 2, 3).seed, runs[0].seed);
    assert_different(&runs.each_ref().map(|run| run.seed));
    assert_different(&runs.each_ref().map(Agreement::salt));
    assert_different(&runs.each_ref().map(Agreement::code));
    assert_different(&runs.each_ref().map(|run| run.cuckoo(0)));
    assert_different(&runs.each_ref().map(Agreement::search));
}

/// The end of another run is invalid in this one.
#[test]
fn ends_differ_by_seed() {
    let parameters = Parameters::new(Variant::Kkrt, 7, 7);
    let runs = [reached(1, 2, 3), reached(1, 2, 4)];
    assert_different(&runs.map(|run| run.end(Role::Sender, &parameters.words())));
}
