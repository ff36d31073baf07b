//! The number of threads of a party changes only the time: not its result, its messages or its
//! checks.

use crate::common::{Kind, kkrt, vole};
use volery_channel::tamper::Tampered;
use volery_channel::{Channel, Role, memory, run_two_channels};
use volery_psi::vole::Form;
use volery_psi::{Error, Items, Result, Variant};

/// More than one group of pieces for each of several threads, and not a round number.
const SENT: usize = 141_007;
const RECEIVED: usize = 150_011;
const COMMON: usize = 60_000;

/// Threads of the two parties; the first run is compared with the others.
const THREADS: [[usize; 2]; 5] = [[1, 1], [2, 2], [3, 1], [1, 8], [8, 3]];

/// The numbers of a party's common items, if it learns them; values; the hash of the bytes it sent.
type RunOutput = (Option<Vec<usize>>, Vec<Vec<u8>>, [u8; 32]);

fn items(from: usize, count: usize) -> Vec<[u8; 8]> {
    let item = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (from..from + count).map(item).collect()
}

fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.unwrap().install(work)
}

/// Runs one party of a search or an intersection.
fn party(
    role: Role,
    items: &[[u8; 8]],
    kind: Kind,
    search: bool,
    channel: &mut Channel,
) -> Result<RunOutput> {
    channel.record_transcript();
    let values: Vec<_> = items.iter().map(|item| item[..5].to_vec()).collect();
    let values: Option<&dyn Items> = (search && role == Role::Sender).then_some(&values);
    let outcome = kind.run(role, &items, values, search, channel)?;
    let sent = channel.transcript().unwrap().sent;
    Ok((outcome.common, outcome.values, sent))
}

fn run(
    [ours, theirs]: [&[[u8; 8]]; 2],
    kind: Kind,
    search: bool,
    threads: [usize; 2],
    [left, right]: [Channel; 2],
) -> [Result<RunOutput>; 2] {
    let of = |role, items: &[_], channel: &mut _| party(role, items, kind, search, channel);
    let ((sent, _), (received, _)) = run_two_channels(
        left,
        right,
        |channel| in_pool(threads[0], || of(Role::Sender, ours, channel)),
        |channel| in_pool(threads[1], || of(Role::Receiver, theirs, channel)),
    );
    [sent, received]
}

/// Runs an intersection or search with several numbers of threads.
fn compare(kind: Kind, search: bool, all: &[[usize; 2]]) {
    let (ours, theirs) = (items(0, SENT), items(SENT - COMMON, RECEIVED));
    let mut first: Option<[RunOutput; 2]> = None;
    for threads in all {
        let channels = Channel::memory_pair().into();
        let now = run([&ours, &theirs], kind, search, *threads, channels);
        let now = now.map(Result::unwrap);
        assert_eq!(now[1].0, Some((0..COMMON).collect()), "{threads:?}");
        let first = first.get_or_insert_with(|| now.clone());
        assert!(now == *first, "{kind:?} {search} {threads:?}");
    }
}

#[test]
fn threads_make_no_difference_to_vector_ole() {
    for (form, both) in [(Form::Malicious, false), (Form::Low, true)] {
        compare(vole(form, both), false, &[[1, 1], [3, 1], [2, 8]]);
    }
}

#[test]
fn threads_make_no_difference() {
    compare(kkrt(Variant::Kkrt, true), false, &THREADS);
    compare(kkrt(Variant::KkrtPaper, false), false, &THREADS);
    compare(kkrt(Variant::Kkrt, true), true, &THREADS);
}

/// Sets with less work than there are threads.
#[test]
fn small_sets_do_not_mind_many_threads() {
    for (n, m) in [(1, 1), (5, 300), (9000, 3), (9000, 9000), (20_000, 17_000)] {
        let (ours, theirs) = (items(0, n), items(n - 1, m));
        let run = |threads| {
            let channels = Channel::memory_pair().into();
            let kind = kkrt(Variant::Kkrt, false);
            let made = run([&ours, &theirs], kind, false, threads, channels);
            made.map(Result::unwrap)
        };
        let one = run([1, 1]);
        assert_eq!(one[1].0, Some(vec![0]), "{n} {m}");
        assert!(run([8, 3]) == one && run([3, 20]) == one, "{n} {m}");
    }
}

/// Two of a party's own items are equal, or one bit of the last block of the sender is flipped: the
/// same error with any number of threads.
#[test]
fn errors_are_found_by_any_number_of_threads() {
    let (ours, theirs) = (items(0, SENT), items(SENT - COMMON, RECEIVED));
    let mut twice = theirs.clone();
    twice[RECEIVED - 5] = twice[70_000];
    let kind = kkrt(Variant::Kkrt, false);
    for threads in [[1, 1], [3, 3], [1, 8]] {
        let channels = Channel::memory_pair().into();
        let [_, received] = run([&ours, &twice], kind, false, threads, channels);
        assert!(
            matches!(
                received,
                Err(Error::Duplicate {
                    first: 70_000,
                    second
                }) if second == RECEIVED - 5
            ),
            "{threads:?}"
        );
    }
    let (left, right) = Channel::memory_pair();
    let ((_, sent), _) = run_two_channels(
        left,
        right,
        |channel| party(Role::Sender, &ours, kind, false, channel).unwrap(),
        |channel| party(Role::Receiver, &theirs, kind, false, channel).unwrap(),
    );
    for threads in [[1, 1], [3, 3], [8, 1]] {
        let (left, right) = memory::pair();
        let left = Tampered::flip(left, sent.bytes_sent - 3, 1);
        let channels = [Channel::new(left), Channel::new(right)];
        let [_, received] = run([&ours, &theirs], kind, false, threads, channels);
        assert!(
            matches!(received, Err(Error::Channel(volery_channel::Error::PeerMisbehaved(_)))),
            "{threads:?}"
        );
    }
}
