//! Many sessions in one process, one after another and sixteen at a time, leave nothing behind.
//!
//! `VOLERY_SESSIONS` is the number of sessions; 200 by default.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use peak_alloc::PeakAlloc;
use volery_channel::tls::{self, Identity};
use volery_channel::{Channel, Role, run_two_channels, run_two_parties, run_two_parties_tcp};
use volery_testing::{Protocol, registry};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Bytes that may stay on the heap: queues of the thread pool that have grown.
const SLACK: usize = 64 << 10;

const AT_A_TIME: usize = 16;

const SESSIONS: [&str; 7] = [
    "cot, malicious, regular, half",
    "vole fp61, malicious, few",
    "intersection",
    "vole intersection, malicious",
    "dh intersection",
    "dh search",
    "cot, malicious, few",
];

/// The resources of the process: bytes on the heap, threads, open files.
#[derive(Clone, Copy, Debug)]
struct Resources {
    bytes: usize,
    threads: usize,
    files: usize,
}

impl Resources {
    fn now() -> Self {
        let count = |folder| fs::read_dir(folder).unwrap().count();
        Self {
            bytes: HEAP.current_usage(),
            threads: count("/proc/self/task"),
            files: count("/proc/self/fd"),
        }
    }

    /// Waits until the process holds no more than this; the threads of a connection and of its
    /// handshake end a moment after it.
    fn assert_all_released(self, when: &str) {
        let start = Instant::now();
        loop {
            let now = Self::now();
            let back = now.bytes <= self.bytes + SLACK
                && now.threads <= self.threads
                && now.files <= self.files;
            if back {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{when}: {now:?}, before {self:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn identities() -> [Identity; 2] {
    let day = SystemTime::now()..SystemTime::now() + Duration::from_secs(86_400);
    ["left", "right"].map(|name| Identity::generate(name, day.clone()).unwrap())
}

/// A connection over TLS on the loopback interface.
fn secured([left, right]: &[Identity; 2]) -> [Channel; 2] {
    const PATIENCE: Duration = Duration::from_secs(60);
    let listener = tls::Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let there = scope.spawn(|| tls::connect(address, right, left.fingerprint(), PATIENCE));
        let here = listener.accept(left, right.fingerprint(), PATIENCE, |_| ());
        [here.unwrap(), there.join().unwrap().unwrap()]
    })
}

/// One session: a handshake and then a protocol; one third each over TCP, TLS and in memory.
fn session(number: usize, identities: &[Identity; 2], hello: &Protocol, protocol: &Protocol) {
    let party = |side: Role| {
        move |channel: &mut Channel| {
            hello.run(side, channel).unwrap();
            protocol.run(side, channel).unwrap()
        }
    };
    let parties = (party(Role::Sender), party(Role::Receiver));
    let (left, right) = match number % 3 {
        0 => run_two_parties_tcp(parties.0, parties.1),
        1 => {
            let [left, right] = secured(identities);
            let ((left, _), (right, _)) = run_two_channels(left, right, parties.0, parties.1);
            (left, right)
        }
        _ => run_two_parties(parties.0, parties.1),
    };
    assert!(protocol.agree(&left, &right), "{protocol:?}");
}

fn sessions(registry: &[Protocol], identities: &[Identity; 2], count: usize, at_a_time: usize) {
    let named = |name: &str| registry.iter().find(|protocol| protocol.name == name).unwrap();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= count {
                        return;
                    }
                    let protocol = named(SESSIONS[number % SESSIONS.len()]);
                    session(number, identities, named("handshake"), protocol);
                }
            });
        }
    });
}

#[test]
fn two_hundred_sessions_leave_nothing() {
    let count = std::env::var("VOLERY_SESSIONS").map_or(200, |count| count.parse().unwrap());
    let registry = registry();
    let identities = identities();
    // The thread pool, and one-time initialisation by the system for each kind of session and for
    // concurrent ones.
    sessions(&registry, &identities, 2 * AT_A_TIME, AT_A_TIME);
    // Time for the threads of the last connections to end.
    thread::sleep(Duration::from_millis(500));
    let before = Resources::now();
    sessions(&registry, &identities, count, 1);
    before.assert_all_released("one after the other");
    sessions(&registry, &identities, count, AT_A_TIME);
    before.assert_all_released("sixteen at a time");
}
