//! Two parties, their result against a plain set.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use volery_channel::run_two_parties;

use super::*;
use crate::baselines::cases::{Case, cases};

const SESSION: SessionId = SessionId::from_bytes([6; 32]);

fn sender(case: &Case, plan: &Plan, channel: &mut Channel) -> Result<()> {
    let mut sender = Sender::setup(SESSION, Prg::new(Block::new(1)), channel)?;
    sender.run(&case.sender, plan, channel)
}

fn receiver(case: &Case, plan: &Plan, channel: &mut Channel) -> Result<Vec<usize>> {
    let mut receiver = Receiver::setup(SESSION, Prg::new(Block::new(2)), channel)?;
    receiver.run(&case.receiver, plan, channel)
}

fn check(case: &Case, bits: u32) {
    let plan = &Plan::new(case.sizes(), bits);
    let (sent, received) = run_two_parties(
        |channel| sender(case, plan, channel),
        |channel| receiver(case, plan, channel),
    );
    sent.unwrap();
    assert_eq!(received.unwrap(), case.common(), "{}", case.name);
}

#[test]
fn the_intersection_of_boundary_cases() {
    for case in cases(32) {
        check(&case, 32);
    }
}

/// Few quotients, many, and so many that items are shortened first.
#[test]
fn items_of_any_length() {
    for bits in [11, 16, 17, 48, 57, 64, 65, 127, 128] {
        check(&Case::overlapping(301, 257, 100, bits), bits);
    }
}

/// All numbers of few bits: every bin is full of neighbours that differ in the bin or in the index
/// alone.
#[test]
fn items_that_fill_the_whole_domain() {
    for bits in [1, 4, 8, 9] {
        let all = |step| (0..1u128 << bits).step_by(step).map(Block::new).collect();
        let case = Case {
            name: format!("every third of all {bits}-bit numbers"),
            sender: all(3),
            receiver: all(1),
        };
        check(&case, bits);
    }
}

/// A table so full that the stash is needed: the key is tried until it is.
#[test]
fn items_in_the_stash_are_found() {
    let case = Case::overlapping(40, 40, 40, 32);
    let plan = Plan::new(case.sizes(), 32);
    let items = plan.reduce(&case.receiver, &OutputHash::new(SESSION).items);
    let seed = (0..10_000)
        .map(Block::new)
        .find(|&seed| {
            let mut rng = Prg::new(seed);
            // As `setup` does.
            let _ = rng.fork("OTs");
            !place(&items, &plan, &mut rng).stash.is_empty()
        })
        .unwrap();
    let (sent, received) = run_two_parties(
        |channel| sender(&case, &plan, channel),
        |channel| {
            let mut receiver = Receiver::setup(SESSION, Prg::new(seed), channel)?;
            receiver.run(&case.receiver, &plan, channel)
        },
    );
    sent.unwrap();
    assert_eq!(received.unwrap(), case.common());
}
