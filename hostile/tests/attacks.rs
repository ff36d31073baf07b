//! Every protocol of the cast, each of its parties as the cheat, every message, every act.
//!
//! The honest party ends with an error, or with a result that the protocol's promise covers; it never panics, waits no
//! longer than its timeout, and takes no memory that an honest peer would not make it take.
//!
//! `VOLERY_HOSTILE=all` runs every case. Without it, of protocols that take some computing only some are run: each
//! party of each protocol changes every one of its messages, and does every act.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use volery_channel::Error;
use volery_channel::tamper::{Act, Mischief};
use volery_hostile::{
    Attack, Protocol, Side, Verdict, cast, changes, messages, silences, tolerated,
};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The most memory that the attacks may take together, in bytes: so much for each that runs at a time.
const BOUND: usize = 24 << 20;

/// The most memory that an attack with a longer message may take beyond what two honest parties take, in bytes, but for
/// what the cheat itself holds.
const LONGER: usize = 4 << 20;

/// The cheat holds its spoilt message back, in a vector that grows by doubling, and then queues it.
const COPIES: usize = 3;

/// What a party may take beyond its waiting and computing, on a machine that has much else to do.
const SCHEDULING: Duration = Duration::from_secs(30);

/// Nothing ended for so long: something hangs.
const HANGS: Duration = Duration::from_secs(240);

/// Bytes that a protocol sends in all above which not every case is run, and one of how many is, at most.
const SAMPLES: [(usize, usize); 2] = [(200_000, 11), (2_000, 5)];

#[derive(Clone, Copy, Debug)]
struct Case {
    protocol: usize,
    attack: Attack,
}

/// A protocol, the bytes of each message of each party, and what two honest parties take.
struct Target {
    protocol: Protocol,
    messages: [Vec<usize>; 2],
    time: Duration,
    /// The most memory at a time, in bytes.
    memory: usize,
}

impl Target {
    /// Bytes of the message that the cheat spoils, when it is longer.
    fn spoilt(&self, attack: Attack) -> usize {
        let Mischief { message, act } = attack.mischief;
        let length = self.messages[attack.cheat as usize][message as usize];
        length
            + match act {
                Act::Repeat => length,
                Act::Lengthen(by) => by,
                _ => 0,
            }
    }
}

/// Runs something, and says how many bytes it had at a time at most.
fn peak<T>(run: impl FnOnce() -> T) -> (T, usize) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let value = run();
    (value, HEAP.peak_usage().saturating_sub(before))
}

fn targets() -> Arc<Vec<Target>> {
    let target = |protocol: Protocol| {
        let messages = messages(&protocol).map(|(lengths, stats)| {
            let count = lengths.len() as u64;
            assert_eq!(count, stats.messages_sent, "those of the statistics");
            lengths
        });
        // A second time, when what is set up once is there.
        let start = Instant::now();
        let (_, memory) = peak(|| volery_hostile::messages(&protocol));
        Target {
            protocol,
            messages,
            time: start.elapsed(),
            memory,
        }
    };
    Arc::new(cast().into_iter().map(target).collect())
}

/// All attacks by acts of one kind, on all protocols; or a sample, in which each party does every act, and spoils every
/// message if that is asked for.
fn cases(targets: &[Target], acts: fn(usize) -> Vec<Act>, every_message: bool) -> Vec<Case> {
    let all = std::env::var_os("VOLERY_HOSTILE").is_some_and(|value| value == "all");
    let mut cases = Vec::new();
    for (protocol, Target { messages, .. }) in targets.iter().enumerate() {
        let bytes: usize = messages.iter().flatten().sum();
        let sample = SAMPLES.iter().find(|(limit, _)| bytes > *limit && !all);
        for (cheat, lengths) in Side::BOTH.into_iter().zip(messages) {
            let kinds = acts(0).len();
            // A step no longer than one of them leaves out none of the other.
            let longest = if every_message { kinds } else { usize::MAX };
            let step = sample.map_or(1, |(_, step)| *step.min(&longest).min(&lengths.len()));
            let mut met = (HashSet::new(), HashSet::new());
            for (message, length) in lengths.iter().enumerate() {
                for (kind, act) in acts(*length).into_iter().enumerate() {
                    if !(protocol + message + kind).is_multiple_of(step) {
                        continue;
                    }
                    met.0.insert(message);
                    met.1.insert(kind);
                    let message = message as u64;
                    let mischief = Mischief { message, act };
                    let attack = Attack { cheat, mischief };
                    cases.push(Case { protocol, attack });
                }
            }
            assert!(
                met.0.len() == lengths.len() || !every_message,
                "not every message"
            );
            assert!(met.1.len() == kinds || lengths.is_empty(), "not every act");
        }
    }
    cases
}

/// Runs the cases, so many at a time, and hands over each verdict.
///
/// The honest party ends in time: it may wait for the message that does not come, and once more for the end. One at a
/// time, each attack takes hardly more memory than two honest parties.
#[expect(clippy::print_stdout, reason = "what `--nocapture` is for")]
fn run(
    targets: &Arc<Vec<Target>>,
    cases: Vec<Case>,
    workers: usize,
    timeout: Duration,
    mut judge: impl FnMut(&Protocol, Case, Verdict),
) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let count = cases.len();
    assert!(count > 50, "{count} cases");
    let cases = Arc::new(cases);
    let next = Arc::new(AtomicUsize::new(0));
    let (done, verdicts) = mpsc::channel();
    for _ in 0..workers {
        let (targets, cases) = (Arc::clone(targets), Arc::clone(&cases));
        let next = Arc::clone(&next);
        let done = done.clone();
        thread::spawn(move || {
            while let Some(&case) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                let attack = || {
                    let protocol = &targets[case.protocol].protocol;
                    case.attack.run_timed(protocol, timeout)
                };
                let (ended, memory) = if workers == 1 {
                    peak(attack)
                } else {
                    (attack(), 0)
                };
                if done.send((case, ended, memory)).is_err() {
                    return;
                }
            }
        });
    }
    let mut counts = BTreeMap::new();
    let (mut slowest, mut longest) = (Duration::ZERO, 0);
    for number in 0..count {
        let Ok((case, (verdict, ended), memory)) = verdicts.recv_timeout(HANGS) else {
            panic!("{} of {count} attacks do not end", count - number);
        };
        let kind = match &verdict {
            Verdict::Refused(_) => "refused",
            Verdict::Right => "right",
            Verdict::Wrong => "wrong",
            Verdict::Unheard(_) => "unheard",
            Verdict::Panicked(_) => "panicked",
        };
        *counts.entry(kind).or_insert(0) += 1;
        let target = &targets[case.protocol];
        let in_time = 2 * timeout + target.time + SCHEDULING;
        let what = &target.protocol;
        assert!(ended < in_time, "{what:?}, {case:?}: {ended:?}");
        slowest = slowest.max(ended);
        let own = target.memory + COPIES * target.spoilt(case.attack);
        let more = memory.saturating_sub(own);
        assert!(more < LONGER, "{what:?}, {case:?}: {more} bytes more");
        longest = longest.max(more);
        judge(what, case, verdict);
    }
    // One at a time it is that of the last one.
    let peak = HEAP.peak_usage().saturating_sub(before);
    println!(
        "{count} attacks: {counts:?}; {} KiB at most, {} KiB more than honest parties and the cheat's own; {slowest:?} at most",
        peak >> 10,
        longest >> 10
    );
    assert!(peak < workers * BOUND, "{peak} bytes at {workers} a time");
}

/// One after the other, so that each has the heap and the processors of the test for itself.
#[test]
fn nobody_gains_by_a_spoilt_message() {
    let targets = targets();
    changed_messages(&targets);
    longer_messages(&targets);
    missing_messages(&targets);
    delayed_messages(&targets);
}

fn harmless(protocol: &Protocol, case: Case, verdict: &Verdict) {
    let Case { attack, .. } = case;
    assert!(
        tolerated(protocol, attack.cheat, verdict).is_some(),
        "{protocol:?}, {attack:?}: {verdict:?}"
    );
}

/// The changes that lengthen a message, or the others.
fn of(length: usize, longer: bool) -> Vec<Act> {
    let mut acts = changes(length);
    acts.retain(|act| matches!(act, Act::Repeat | Act::Lengthen(_)) == longer);
    acts
}

/// One at a time, so that the memory of each is known.
fn longer_messages(targets: &Arc<Vec<Target>>) {
    let cases = cases(targets, |length| of(length, true), false);
    let timeout = Duration::from_secs(10);
    run(targets, cases, 1, timeout, |protocol, case, verdict| {
        harmless(protocol, case, &verdict);
    });
}

fn changed_messages(targets: &Arc<Vec<Target>>) {
    let cases = cases(targets, |length| of(length, false), true);
    let (mut refused, mut wrong) = (0, 0);
    // Few at a time: they compute, and a party that waits for a processor must not take it for silence.
    run(
        targets,
        cases,
        4,
        Duration::from_secs(10),
        |protocol, case, verdict| {
            harmless(protocol, case, &verdict);
            refused += u32::from(matches!(verdict, Verdict::Refused(_)));
            wrong += u32::from(matches!(verdict, Verdict::Wrong));
        },
    );
    assert!(
        refused > 100 && wrong > 20,
        "{refused} refused, {wrong} wrong"
    );
}

fn missing_messages(targets: &Arc<Vec<Target>>) {
    let cases = cases(targets, silences, false);
    run(
        targets,
        cases,
        24,
        Duration::from_millis(500),
        |protocol, case, verdict| {
            harmless(protocol, case, &verdict);
        },
    );
}

fn delayed_messages(targets: &Arc<Vec<Target>>) {
    const IN_TIME: Duration = Duration::from_millis(20);
    const TOO_LATE: Duration = Duration::from_millis(1500);
    // The last message of each party: every one before it is the same to who waits for it.
    let last = |act: Act| {
        let mut cases = Vec::new();
        for (protocol, target) in targets.iter().enumerate() {
            for (cheat, lengths) in Side::BOTH.into_iter().zip(&target.messages) {
                if let Some(message) = lengths.len().checked_sub(1) {
                    let message = message as u64;
                    let mischief = Mischief { message, act };
                    let attack = Attack { cheat, mischief };
                    cases.push(Case { protocol, attack });
                }
            }
        }
        cases
    };
    let cases = last(Act::Delay(IN_TIME));
    run(
        targets,
        cases,
        4,
        Duration::from_secs(60),
        |protocol, case, verdict| {
            assert!(
                matches!(verdict, Verdict::Right),
                "{protocol:?}, {case:?}: {verdict:?}"
            );
        },
    );
    let cases = last(Act::Delay(TOO_LATE));
    run(
        targets,
        cases,
        24,
        TOO_LATE / 3,
        |protocol, case, verdict| {
            assert!(
                matches!(verdict, Verdict::Refused(Error::TimedOut(_))),
                "{protocol:?}, {case:?}: {verdict:?}"
            );
        },
    );
}
