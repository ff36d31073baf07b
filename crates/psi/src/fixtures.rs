//! Sets, parties and assertions that the tests of several protocols share.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::Duration;

use volery_channel::tamper::Tampered;
use volery_channel::{Channel, Error as ChannelError, Role, memory, run_two_channels};
use volery_primitives::Block;
use volery_primitives::prg::Prg;

use crate::error::{Error, Result};

/// Items that no error may name.
pub(crate) fn items(numbers: impl IntoIterator<Item = usize>) -> Vec<Vec<u8>> {
    let item = |number| format!("secret {number}").into_bytes();
    numbers.into_iter().map(item).collect()
}

/// The randomness of a party.
pub(crate) fn rng(role: Role) -> Prg {
    Prg::new(Block::new(role as u128 + 1))
}

/// The numbers of the items of `ours` that are in `theirs`.
pub(crate) fn common<T: Eq + Hash>(ours: &[T], theirs: &[T]) -> Vec<usize> {
    let theirs: HashSet<_> = theirs.iter().collect();
    (0..ours.len()).filter(|&i| theirs.contains(&ours[i])).collect()
}

/// Runs two parties in memory, of which one may leave early. A party that receives nothing for a
/// while times out.
pub(crate) fn meet<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let (mut near, mut far) = Channel::memory_pair();
    near.set_timeout(Some(Duration::from_secs(20)));
    far.set_timeout(Some(Duration::from_secs(20)));
    let ((a, _), (b, _)) = run_two_channels(near, far, left, right);
    (a, b)
}

/// Asserts that the error is that of one check and names no item.
pub(crate) fn assert_caught<T>(result: Result<T>, why: &str) {
    let Some(Error::Channel(error)) = result.err() else {
        panic!("not caught: {why}");
    };
    assert!(
        matches!(error, ChannelError::PeerMisbehaved(text) if text == why),
        "{error} instead of: {why}"
    );
    assert!(!format!("{error} {error:?}").contains("secret"));
}

pub(crate) fn assert_disconnected<T>(result: Result<T>) {
    let Some(Error::Channel(error)) = result.err() else {
        panic!("it did not fail");
    };
    assert!(matches!(error, ChannelError::Disconnected), "{error}");
}

/// Encodings of no element of Ristretto255, and of the identity.
pub(crate) fn outside() -> [[u8; 32]; 5] {
    let mut all = [[0; 32]; 5];
    (all[1][0], all[2][31]) = (1, 0x80);
    all[3] = [0xff; 32];
    all[4] = all[3];
    all[4][31] = 0x7f;
    all
}

/// Changes each byte that a party sends, and cuts the connection before it, in one run for each.
/// `check` gets the party, the byte, whether the connection was cut, and the receiver's result.
/// `bytes`: those of sender and receiver.
pub(crate) fn tamper<A: Send, B: Send>(
    (sender_bytes, receiver_bytes): (u64, u64),
    timeout: Duration,
    send: impl Fn(&mut Channel) -> A + Sync,
    receive: impl Fn(&mut Channel) -> B + Sync,
    check: impl Fn(Role, u64, bool, B),
) {
    for (role, bytes) in [(Role::Sender, sender_bytes), (Role::Receiver, receiver_bytes)] {
        for (at, cut) in (0..bytes).flat_map(|at| [(at, false), (at, true)]) {
            let (near, far) = memory::pair();
            let timeout = Some(timeout);
            let change = |transport, party| match (party == role, cut) {
                (true, true) => Tampered::truncated(transport, at),
                (true, false) => Tampered::flip(transport, at, 1 << (at % 8)),
                (false, _) => Tampered::new(transport, |_, _| ()),
            };
            let (_, (received, _)) = run_two_channels(
                Channel::with_timeout(change(near, Role::Sender), timeout),
                Channel::with_timeout(change(far, Role::Receiver), timeout),
                &send,
                &receive,
            );
            check(role, at, cut, received);
        }
    }
}
