//! Both parties of a protocol in one process, for tests, benches and examples.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::time::Duration;

use volery_os::thread;

use crate::{Channel, Stats};

/// Timeout of the two parties: a longer standstill means that they wait for each other.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Runs the two parties of a protocol in two threads, over memory.
///
/// # Panics
/// If a party leaves bytes unsent (a forgotten [`Channel::flush`]) or unread, or if one panics: the
/// other's channel then fails with [`Error::Disconnected`](crate::Error::Disconnected), and the
/// first panic is resumed in the caller.
pub fn run_two_parties<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let ((a, _), (b, _)) = run_two_parties_with_stats(left, right);
    (a, b)
}

/// Runs two parties like [`run_two_parties`]; also returns the traffic of each party's channel.
///
/// # Panics
/// The panics of [`run_two_parties`].
pub fn run_two_parties_with_stats<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> ((A, Stats), (B, Stats)) {
    let (a, b) = run_over_memory(left, right);
    check_leftovers(&a, &b);
    ((a.value, a.stats), (b.value, b.stats))
}

/// Runs two parties like [`run_two_parties`], without checking for leftover bytes: for tests where
/// a party is expected to fail.
///
/// # Panics
/// If a party panics, as in [`run_two_parties`].
pub fn run_two_unchecked<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let (a, b) = run_over_memory(left, right);
    (a.value, b.value)
}

/// Runs two parties like [`run_two_parties`], over TCP on the loopback interface.
///
/// # Panics
/// The panics of [`run_two_parties`], and a panic if the operating system gives no connection.
#[cfg(feature = "tcp")]
pub fn run_two_parties_tcp<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let (left_stream, right_stream) =
        crate::tcp::pair(TIMEOUT).expect("the loopback interface works");
    let left_channel = Channel::with_timeout(left_stream, Some(TIMEOUT));
    let right_channel = Channel::with_timeout(right_stream, Some(TIMEOUT));
    let (a, b) = run(left_channel, right_channel, left, right);
    check_leftovers(&a, &b);
    (a.value, b.value)
}

/// Runs two parties on the given channels, which should be connected to each other, without
/// checking for leftover bytes.
///
/// For custom transports.
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

/// The outcome of a party that returned.
struct Outcome<T> {
    value: T,
    stats: Stats,
    unflushed: usize,
}

fn run_over_memory<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (Outcome<A>, Outcome<B>) {
    let (mut left_channel, mut right_channel) = Channel::memory_pair();
    left_channel.set_timeout(Some(TIMEOUT));
    right_channel.set_timeout(Some(TIMEOUT));
    run(left_channel, right_channel, left, right)
}

fn run<A: Send, B: Send>(
    left_channel: Channel,
    right_channel: Channel,
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (Outcome<A>, Outcome<B>) {
    let first_panic = OnceLock::new();
    // The threads are given references, for what they take and for what they return: values moved
    // into a thread or out of it are copied to the heap, including stack contents between the
    // fields, and are not wiped there.
    let mut left = Some((left_channel, left));
    let mut right = Some((right_channel, right));
    let (mut of_left, mut of_right) = (None, None);
    let ended = thread::scope(|scope| {
        let spawn = |name: &str| thread::Builder::new().name(name.to_owned());
        let (first_panic, left, right) = (&first_panic, &mut left, &mut right);
        let (of_left, of_right) = (&mut of_left, &mut of_right);
        let a = spawn("left party").spawn_scoped(scope, move || {
            *of_left = Some(party(left, "left", first_panic));
        });
        let b = spawn("right party").spawn_scoped(scope, move || {
            *of_right = Some(party(right, "right", first_panic));
        });
        let a = a.expect("the operating system can start a thread").join();
        (a, b.expect("the operating system can start a thread").join())
    });
    match ended {
        // The second panic is usually a consequence of the first.
        (Err(_), Err(panic)) if first_panic.get() == Some(&"right") => resume_unwind(panic),
        (Err(panic), _) | (_, Err(panic)) => resume_unwind(panic),
        (Ok(()), Ok(())) => {}
    }
    let both = of_left.zip(of_right);
    both.expect("a party that did not panic has returned")
}

/// Runs one party; drops its channel at the end, whether the party returns or panics.
fn party<T>(
    given: &mut Option<(Channel, impl FnOnce(&mut Channel) -> T)>,
    who: &'static str,
    first_panic: &OnceLock<&'static str>,
) -> Outcome<T> {
    let (mut channel, body) = given.take().expect("each party runs once");
    // Declared after the channel, so dropped before it, and before the other party can notice.
    let _recorder = PanicRecorder { who, first_panic };
    let value = body(&mut channel);
    Outcome { value, stats: channel.stats(), unflushed: channel.unflushed() }
}

struct PanicRecorder<'a> {
    who: &'static str,
    first_panic: &'a OnceLock<&'static str>,
}

impl Drop for PanicRecorder<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            // The other party may have panicked before.
            let _ = self.first_panic.set(self.who);
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
