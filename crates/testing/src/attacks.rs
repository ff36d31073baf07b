//! Attacks on every protocol of a list: each party as the corrupted one, every message, every kind
//! of fault.
//!
//! The honest party ends with an error, or with a result that the protocol's model allows; it never
//! panics, waits no longer than its timeout, and uses no more memory than an honest peer would make
//! it use.
//!
//! `VOLERY_ATTACKS=all` runs every case. Without it, slow protocols run a sample: each party of
//! each protocol changes every one of its messages, and makes every kind of fault.
//!
//! The caller provides the list: the [`registry`](crate::registry()), or protocols of another
//! workspace.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use peak_alloc::PeakAlloc;
use volery_channel::{Error, Role};

use crate::fault::{Fault, FaultKind};
use crate::{Attack, Protocol, Verdict, benign, changes, messages, silences};

/// The most memory of concurrent attacks, in bytes: this much for each.
const BOUND: usize = 24 << 20;

/// The most memory, in bytes, that an attack with a lengthened message may use beyond that of two
/// honest parties, excluding the corrupted party's own buffers.
const LONGER: usize = 4 << 20;

/// The corrupted party holds its tampered message back in a vector that grows by doubling, and then
/// queues it.
const COPIES: usize = 3;

/// The timeout of the honest party.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The time without a finished attack after which the run counts as hanging.
const HANGS: Duration = Duration::from_secs(240);

/// Protocols that send more bytes in all than the first number run at most one case in the second
/// number.
const SAMPLES: [(usize, usize); 2] = [(200_000, 11), (2_000, 5)];

#[derive(Clone, Copy, Debug)]
struct Case {
    protocol: usize,
    attack: Attack,
}

/// A protocol, the lengths of each party's messages, and the memory of two honest parties.
struct Target {
    protocol: Protocol,
    messages: [Vec<usize>; 2],
    /// The peak memory, in bytes.
    memory: usize,
}

impl Target {
    /// Bytes of the corrupted party's tampered message, if it is lengthened.
    fn tampered(&self, attack: Attack) -> usize {
        let Fault { message, kind } = attack.fault;
        let length = self.messages[attack.corrupted as usize][message as usize];
        length
            + match kind {
                FaultKind::Repeat => length,
                FaultKind::Lengthen(by) => by,
                _ => 0,
            }
    }
}

/// The number of attacks of one stage with each verdict, by its name.
pub type Verdicts = BTreeMap<&'static str, usize>;

/// The verdicts of the attacks of each stage.
#[derive(Debug)]
pub struct Summary {
    /// Messages that were changed, truncated, repeated, or longer by a byte.
    pub changed: Verdicts,
    /// Messages that were much longer.
    pub longer: Verdicts,
    /// Messages that were missing, early, or partial.
    pub missing: Verdicts,
    /// Last messages that came late, but within the timeout.
    pub late: Verdicts,
    /// Last messages that came after the timeout.
    pub too_late: Verdicts,
}

impl Summary {
    /// All stages.
    pub fn stages(&self) -> [&Verdicts; 5] {
        [&self.changed, &self.longer, &self.missing, &self.late, &self.too_late]
    }
}

/// The heap of the process, measured by its global allocator.
pub type Heap = &'static PeakAlloc;

/// Runs a function where no time passes but that for which somebody waits: in a simulated world.
pub type Within = fn(&mut (dyn FnMut() + Send));

/// Runs all attacks on the protocols, one stage after the other, so that each stage has the heap
/// and the processors to itself.
///
/// # Panics
/// If an attack has a verdict that is not benign, takes too long or uses too much memory.
pub fn withstand(protocols: Vec<Protocol>, heap: Heap, within: Within) -> Summary {
    let bench = Bench { targets: targets(protocols, heap), heap, within };
    let changed = bench.changed_messages();
    let longer = bench.longer_messages();
    let missing = bench.missing_messages();
    let (late, too_late) = bench.delayed_messages();
    Summary { changed, longer, missing, late, too_late }
}

/// Runs a function and returns its peak memory in bytes.
fn peak<T>(heap: Heap, run: impl FnOnce() -> T) -> (T, usize) {
    heap.reset_peak_usage();
    let before = heap.current_usage();
    let value = run();
    (value, heap.peak_usage().saturating_sub(before))
}

fn targets(protocols: Vec<Protocol>, heap: Heap) -> Arc<Vec<Target>> {
    let target = |protocol: Protocol| {
        let lengths = messages(&protocol).map(|(lengths, stats)| {
            let count = lengths.len() as u64;
            assert_eq!(count, stats.messages_sent, "the lengths agree with the statistics");
            lengths
        });
        // A second run, after one-time initialisation.
        let (_, memory) = peak(heap, || messages(&protocol));
        Target { protocol, messages: lengths, memory }
    };
    Arc::new(protocols.into_iter().map(target).collect())
}

/// All attacks by faults of some kinds, on all protocols; or a sample, in which each party makes
/// every kind of fault and, if requested, tampers with every message.
fn cases(targets: &[Target], kinds: fn(usize) -> Vec<FaultKind>, every_message: bool) -> Vec<Case> {
    let all = std::env::var_os("VOLERY_ATTACKS").is_some_and(|value| value == "all");
    let mut cases = Vec::new();
    for (protocol, Target { messages, .. }) in targets.iter().enumerate() {
        let bytes: usize = messages.iter().flatten().sum();
        let sample = SAMPLES.iter().find(|(limit, _)| bytes > *limit && !all);
        for (corrupted, lengths) in Role::ALL.into_iter().zip(messages) {
            let of_each = kinds(0).len();
            // A step no longer than either of them skips no value of the other.
            let longest = if every_message { of_each } else { usize::MAX };
            let step = sample.map_or(1, |(_, step)| *step.min(&longest).min(&lengths.len()));
            let mut met = (HashSet::new(), HashSet::new());
            for (message, length) in lengths.iter().enumerate() {
                for (number, kind) in kinds(*length).into_iter().enumerate() {
                    if !(protocol + message + number).is_multiple_of(step) {
                        continue;
                    }
                    met.0.insert(message);
                    met.1.insert(number);
                    let message = message as u64;
                    let fault = Fault { message, kind };
                    let attack = Attack { corrupted, fault };
                    cases.push(Case { protocol, attack });
                }
            }
            assert!(met.0.len() == lengths.len() || !every_message, "the sample misses a message");
            assert!(
                met.1.len() == of_each || lengths.is_empty(),
                "the sample misses a kind of fault"
            );
        }
    }
    cases
}

fn assert_benign(protocol: &Protocol, case: Case, verdict: &Verdict) {
    let Case { attack, .. } = case;
    assert!(benign(protocol, attack, verdict).is_some(), "{protocol:?}, {attack:?}: {verdict:?}");
}

/// The changes that lengthen a message by much, or the others.
fn of(length: usize, longer: bool) -> Vec<FaultKind> {
    let mut kinds = changes(length);
    kinds.retain(|kind| matches!(kind, FaultKind::Lengthen(2..)) == longer);
    kinds
}

/// The protocols under attack, the heap that is measured, and the world of an attack.
struct Bench {
    targets: Arc<Vec<Target>>,
    heap: Heap,
    within: Within,
}

impl Bench {
    /// Runs the cases, `workers` at a time, and hands over each verdict.
    ///
    /// The honest party ends in time: it may wait once for the missing message, and once more for
    /// the end. With one attack at a time, each uses little more memory than two honest parties.
    #[expect(clippy::print_stdout, reason = "shown with `--nocapture`")]
    fn run(
        &self,
        cases: Vec<Case>,
        workers: usize,
        judge: impl Fn(&Protocol, Case, &Verdict),
    ) -> Verdicts {
        let Self { targets, heap, within } = self;
        let (heap, within) = (*heap, *within);
        heap.reset_peak_usage();
        let before = heap.current_usage();
        let count = cases.len();
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
                        let mut ended = None;
                        within(&mut || ended = Some(case.attack.run_timed(protocol, TIMEOUT)));
                        ended.expect("the attack ran")
                    };
                    let (ended, memory) =
                        if workers == 1 { peak(heap, attack) } else { (attack(), 0) };
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
                panic!("{} of {count} attacks have not ended", count - number);
            };
            *counts.entry(verdict.name()).or_insert(0) += 1;
            let target = &targets[case.protocol];
            let what = &target.protocol;
            assert!(ended <= 2 * TIMEOUT, "{what:?}, {case:?}: {ended:?}");
            slowest = slowest.max(ended);
            let own = target.memory + COPIES * target.tampered(case.attack);
            let more = memory.saturating_sub(own);
            assert!(more < LONGER, "{what:?}, {case:?}: {more} bytes more");
            longest = longest.max(more);
            judge(what, case, &verdict);
        }
        // With one at a time, the peak is that of the last one.
        let peak = heap.peak_usage().saturating_sub(before);
        println!(
            "{count} attacks: {counts:?}; {} KiB at most, {} KiB more than honest parties and the corrupted party's own; {slowest:?} at most",
            peak >> 10,
            longest >> 10
        );
        assert!(peak < workers * BOUND, "{peak} bytes at {workers} a time");
        counts
    }

    /// One at a time, so that the memory of each is measured alone.
    fn longer_messages(&self) -> Verdicts {
        let cases = cases(&self.targets, |length| of(length, true), false);
        self.run(cases, 1, assert_benign)
    }

    fn changed_messages(&self) -> Verdicts {
        let cases = cases(&self.targets, |length| of(length, false), true);
        self.run(cases, 4, assert_benign)
    }

    fn missing_messages(&self) -> Verdicts {
        let cases = cases(&self.targets, silences, false);
        self.run(cases, 4, assert_benign)
    }

    fn delayed_messages(&self) -> (Verdicts, Verdicts) {
        // The last message of each party: for the waiting party, every earlier one is the same.
        let last = |kind: FaultKind| {
            let mut cases = Vec::new();
            for (protocol, target) in self.targets.iter().enumerate() {
                for (corrupted, lengths) in Role::ALL.into_iter().zip(&target.messages) {
                    if let Some(message) = lengths.len().checked_sub(1) {
                        let message = message as u64;
                        let fault = Fault { message, kind };
                        let attack = Attack { corrupted, fault };
                        cases.push(Case { protocol, attack });
                    }
                }
            }
            cases
        };
        let cases = last(FaultKind::Delay(TIMEOUT / 2));
        let late = self.run(cases, 4, |protocol, case, verdict| {
            assert!(matches!(verdict, Verdict::Right), "{protocol:?}, {case:?}: {verdict:?}");
        });
        let cases = last(FaultKind::Delay(3 * TIMEOUT));
        let too_late = self.run(cases, 4, |protocol, case, verdict| {
            assert!(
                matches!(verdict, Verdict::Refused(Error::TimedOut(_))),
                "{protocol:?}, {case:?}: {verdict:?}"
            );
        });
        (late, too_late)
    }
}
