//! Every protocol of the cast, each of its parties as the cheat, every message, every act.
//!
//! The honest party ends with an error, or with a result that the protocol's promise covers; it never panics, waits no
//! longer than its timeout, and takes no memory that an honest peer would not make it take.
//!
//! `VOLERY_HOSTILE=all` runs every case. Without it, of protocols that take some computing every fifth or eleventh case
//! is run, so that each protocol meets each act.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

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

/// Nothing ended for so long: something hangs.
const HANGS: Duration = Duration::from_secs(240);

/// Bytes that a protocol sends in all above which not every case is run, and one of how many is.
const SAMPLES: [(usize, usize); 2] = [(200_000, 11), (2_000, 5)];

#[derive(Clone, Copy, Debug)]
struct Case {
    protocol: usize,
    attack: Attack,
}

/// A protocol, and the bytes of each message of each party.
struct Target {
    protocol: Protocol,
    messages: [Vec<usize>; 2],
}

fn targets() -> Arc<Vec<Target>> {
    let target = |protocol: Protocol| {
        let messages = messages(&protocol).map(|(lengths, stats)| {
            let count = lengths.len() as u64;
            assert_eq!(count, stats.messages_sent, "those of the statistics");
            lengths
        });
        Target { protocol, messages }
    };
    Arc::new(cast().into_iter().map(target).collect())
}

/// All attacks by acts of one kind, on all protocols.
fn cases(targets: &[Target], acts: fn(usize) -> Vec<Act>) -> Vec<Case> {
    let all = std::env::var_os("VOLERY_HOSTILE").is_some_and(|value| value == "all");
    let mut cases = Vec::new();
    for (number, Target { messages, .. }) in targets.iter().enumerate() {
        let mut mine = Vec::new();
        for (cheat, lengths) in Side::BOTH.into_iter().zip(messages) {
            for (message, length) in (0..).zip(lengths) {
                mine.extend(acts(*length).into_iter().map(|act| Case {
                    protocol: number,
                    attack: Attack {
                        cheat,
                        mischief: Mischief { message, act },
                    },
                }));
            }
        }
        let bytes: usize = messages.iter().flatten().sum();
        let sample = SAMPLES.iter().find(|(limit, _)| bytes > *limit && !all);
        let step = sample.map_or(1, |(_, step)| *step);
        cases.extend(mine.into_iter().skip(number % step).step_by(step));
    }
    cases
}

/// Runs the cases, so many at a time, and hands over each verdict.
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
                let verdict = case.attack.run(&targets[case.protocol].protocol, timeout);
                if done.send((case, verdict)).is_err() {
                    return;
                }
            }
        });
    }
    let mut counts = BTreeMap::new();
    for number in 0..count {
        let Ok((case, verdict)) = verdicts.recv_timeout(HANGS) else {
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
        judge(&targets[case.protocol].protocol, case, verdict);
    }
    let peak = HEAP.peak_usage() - before;
    println!("{count} attacks: {counts:?}; {} KiB at most", peak >> 10);
    assert!(peak < workers * BOUND, "{peak} bytes at {workers} a time");
}

/// One after the other, so that each has the heap and the processors of the test for itself.
#[test]
fn nobody_gains_by_a_spoilt_message() {
    let targets = targets();
    changed_messages(&targets);
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

fn changed_messages(targets: &Arc<Vec<Target>>) {
    let cases = cases(targets, changes);
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
    let cases = cases(targets, silences);
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
