//! Protocols that the caller drives.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::task::Poll;

use volery_channel::step::Machine;
use volery_channel::{Channel, Error, Result};

use super::{LONG, pattern};

const LENGTHS: [usize; 3] = [1, 70_000, 5];

/// Sends, and receives as much, in turns.
fn party(channel: &mut Channel) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for length in LENGTHS {
        let mut theirs = vec![0; length];
        channel.send(&pattern(length, 0))?;
        channel.recv(&mut theirs)?;
        all.extend(theirs);
    }
    Ok(all)
}

#[test]
fn what_a_machine_sends_does_not_depend_on_cuts() {
    let theirs = LENGTHS.map(|length| pattern(length, 9)).concat();
    for piece in [1000, 70_000, 1 << 20] {
        let mut machine = Machine::new(party).unwrap();
        let mut sent = machine.step(&[]).outgoing;
        assert_eq!(sent.len(), 1);
        let mut result = None;
        for piece in theirs.chunks(piece) {
            let step = machine.step(piece);
            sent.extend(step.outgoing);
            match step.state {
                Poll::Ready(value) => result = Some(value.unwrap()),
                Poll::Pending => assert!(machine.step(&[]).outgoing.is_empty()),
            }
        }
        assert!(result.unwrap() == theirs, "{piece}");
        assert!(sent == LENGTHS.map(|length| pattern(length, 0)).concat(), "{piece}");
    }
}

#[test]
fn ends_of_a_machine() {
    let mut closed = Machine::new(party).unwrap();
    assert_eq!(closed.step(&[7]).outgoing.len(), 70_001);
    closed.close();
    assert_eq!(closed.step(&[]).state, Poll::Ready(Err(Error::Disconnected)));
    let mut panics = Machine::new(|_: &mut Channel| -> () { panic!("of the protocol") }).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| panics.step(&[]))).is_err());
    let (tell, told) = mpsc::channel();
    let waits = move |channel: &mut Channel| tell.send(channel.recv(&mut [0])).unwrap();
    drop(Machine::new(waits).map(|mut machine| machine.step(&[])));
    assert_eq!(told.recv_timeout(LONG).unwrap(), Err(Error::Disconnected));
}
