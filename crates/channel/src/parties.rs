//! Both parties of a protocol in one process, for tests, benches and examples.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::{Channel, Stats, tcp};

/// A protocol run in one process that stands still this long has two parties that wait for each other.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Runs the two parties of a protocol in two threads, over memory.
///
/// # Panics
/// If a party leaves bytes unsent (a forgotten [`Channel::flush`]) or unread, or if one panics: then the other's channel
/// ends with [`Error::Disconnected`](crate::Error::Disconnected), and the first panic goes on in the caller.
pub fn run_two_parties<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let ((a, _), (b, _)) = run_two_parties_with_stats(left, right);
    (a, b)
}

/// As [`run_two_parties`]; also gives what went over the channel, as each party saw it.
///
/// # Panics
/// As [`run_two_parties`].
pub fn run_two_parties_with_stats<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> ((A, Stats), (B, Stats)) {
    let (mut left_channel, mut right_channel) = Channel::memory_pair();
    left_channel.set_timeout(Some(TIMEOUT));
    right_channel.set_timeout(Some(TIMEOUT));
    let (a, b) = run(left_channel, right_channel, left, right);
    check_leftovers(&a, &b);
    ((a.value, a.stats), (b.value, b.stats))
}

/// As [`run_two_parties`], over TCP on the loopback interface.
///
/// # Panics
/// As [`run_two_parties`], and if the system gives no connection.
pub fn run_two_parties_tcp<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let (left_stream, right_stream) = tcp::pair(TIMEOUT).expect("the loopback interface works");
    let left_channel = Channel::with_timeout(left_stream, Some(TIMEOUT));
    let right_channel = Channel::with_timeout(right_stream, Some(TIMEOUT));
    let (a, b) = run(left_channel, right_channel, left, right);
    check_leftovers(&a, &b);
    (a.value, b.value)
}

/// Runs two parties on the given channels, which should be connected to each other, without a check of leftovers.
///
/// For transports of one's own, and for tests where a party is meant to fail.
///
/// # Panics
/// If a party panics, as in [`run_two_parties`].
pub fn run_two_channels<A: Send, B: Send>(
    left_channel: Channel,
    right_channel: Channel,
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> ((A, Stats), (B, Stats)) {
    let (a, b) = run(left_channel, right_channel, left, right);
    ((a.value, a.stats), (b.value, b.stats))
}

/// A party that has returned.
struct Outcome<T> {
    value: T,
    stats: Stats,
    unflushed: usize,
}

fn run<A: Send, B: Send>(
    left_channel: Channel,
    right_channel: Channel,
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (Outcome<A>, Outcome<B>) {
    let first_panic = AtomicUsize::new(NOBODY);
    // The threads are given references: what is moved into a thread goes over the heap, with what the stack had between the
    // fields, and is not wiped there.
    let mut left = Some((left_channel, left));
    let mut right = Some((right_channel, right));
    let (a, b) = thread::scope(|scope| {
        let spawn = |name: &str| thread::Builder::new().name(name.to_owned());
        let (first_panic, left, right) = (&first_panic, &mut left, &mut right);
        let a = spawn("left party").spawn_scoped(scope, move || party(left, LEFT, first_panic));
        let b = spawn("right party").spawn_scoped(scope, move || party(right, RIGHT, first_panic));
        let a = a.expect("the system gives a thread").join();
        (a, b.expect("the system gives a thread").join())
    });
    match (a, b) {
        (Ok(a), Ok(b)) => (a, b),
        // The second panic is most often a consequence of the first.
        (Err(_), Err(panic)) if first_panic.load(Ordering::SeqCst) == RIGHT => resume_unwind(panic),
        (Err(panic), _) | (_, Err(panic)) => resume_unwind(panic),
    }
}

const NOBODY: usize = 0;
const LEFT: usize = 1;
const RIGHT: usize = 2;

/// Runs one party; its channel is gone at the end, whether it returns or panics.
fn party<T>(
    given: &mut Option<(Channel, impl FnOnce(&mut Channel) -> T)>,
    who: usize,
    first_panic: &AtomicUsize,
) -> Outcome<T> {
    let (mut channel, body) = given.take().expect("it is given once");
    // Declared after the channel, so dropped before it: before the other party can notice.
    let _witness = Witness { who, first_panic };
    let value = body(&mut channel);
    Outcome {
        value,
        stats: channel.stats(),
        unflushed: channel.unflushed(),
    }
}

/// Notes who panicked first.
struct Witness<'a> {
    who: usize,
    first_panic: &'a AtomicUsize,
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.first_panic.compare_exchange(
                NOBODY,
                self.who,
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
        }
    }
}

fn check_leftovers<A, B>(left: &Outcome<A>, right: &Outcome<B>) {
    for (who, unflushed) in [("left", left.unflushed), ("right", right.unflushed)] {
        assert!(
            unflushed == 0,
            "the {who} party left {unflushed} bytes unsent: it should end with a flush"
        );
    }
    for (who, sent, received) in [
        ("left", right.stats.bytes_sent, left.stats.bytes_received),
        ("right", left.stats.bytes_sent, right.stats.bytes_received),
    ] {
        assert!(
            sent == received,
            "the {who} party left {} of {sent} bytes unread",
            sent.abs_diff(received)
        );
    }
}
