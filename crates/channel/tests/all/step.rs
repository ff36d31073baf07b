//! Protocols that the caller drives.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use volery_channel::step::{Machine, State};
use volery_channel::{Channel, Error, Pool, Result};

use super::{LONG, pattern};

/// Sends, and receives as much, in turns of several lengths.
fn party(ours: u8) -> impl FnOnce(&mut Channel) -> Result<Vec<u8>> {
    move |channel| {
        let mut all = Vec::new();
        for length in [1, 70_000, 5] {
            let mut theirs = vec![0; length];
            channel.send(&pattern(length, ours))?;
            channel.recv(&mut theirs)?;
            all.extend(theirs);
        }
        Ok(all)
    }
}

#[test]
fn what_a_machine_sends_does_not_depend_on_cuts() {
    let theirs = [1, 70_000, 5].map(|length| pattern(length, 9)).concat();
    for piece in [1000, 70_000, 1 << 20] {
        let mut machine = Machine::new(party(0)).unwrap();
        let mut sent = machine.step(&[]).outgoing;
        assert_eq!(sent.len(), 1);
        let mut result = None;
        for piece in theirs.chunks(piece) {
            let step = machine.step(piece);
            sent.extend(step.outgoing);
            match step.state {
                State::Done(value) => result = Some(value.unwrap()),
                State::Waiting => assert!(machine.step(&[]).outgoing.is_empty()),
            }
        }
        assert!(result.unwrap() == theirs, "{piece}");
        assert!(sent == [1, 70_000, 5].map(|length| pattern(length, 0)).concat(), "{piece}");
    }
}

#[test]
fn ends_of_a_machine() {
    let pool = Pool::new(1);
    let mut closed = Machine::with_pool(&pool, party(0)).unwrap();
    assert_eq!(closed.step(&[7]).outgoing.len(), 70_001);
    closed.close();
    assert!(matches!(closed.step(&[]).state, State::Done(Err(Error::Disconnected))));
    let panics = Machine::with_pool(&pool, |_: &mut Channel| -> () { panic!("of the protocol") });
    let mut panics = panics.unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| panics.step(&[]))).is_err());
    let (tell, told) = mpsc::channel();
    let protocol = move |channel: &mut Channel| tell.send(channel.recv(&mut [0])).unwrap();
    let mut dropped = Machine::with_pool(&pool, protocol).unwrap();
    // The pool is full: it has no thread, and never begins.
    let late = Machine::with_pool(&pool, |_: &mut Channel| panic!("it was dropped before"));
    dropped.step(&[]);
    assert_eq!(pool.load(), (1, 1));
    drop(late);
    drop(dropped);
    assert_eq!(told.recv_timeout(LONG).unwrap(), Err(Error::Disconnected));
    assert!(matches!(Machine::with_pool(&pool, |_| 3).unwrap().step(&[]).state, State::Done(3)));
}
