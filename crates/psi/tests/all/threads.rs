//! The number of threads of a party changes only the time: not its result, its messages or its
//! checks.

use crate::common::{Kind, SESSION};
use volery_channel::tamper::Tampered;
use volery_channel::{Channel, memory, run_two_channels};
use volery_primitives::{Block, prg::Prg};
use volery_psi::{Error, Receiver, Result, Sender, Settings, Variant, vole};

/// More than one group of pieces for each of several threads, and not a round number.
const SENT: usize = 141_007;
const RECEIVED: usize = 150_011;
const COMMON: usize = 60_000;

/// Threads of the two parties; the first run is compared with the others.
const THREADS: [[usize; 2]; 5] = [[1, 1], [2, 2], [3, 1], [1, 8], [8, 3]];

/// The numbers of a party's common items, if it learns them; values; the hash of the bytes it sent.
type Made = (Option<Vec<usize>>, Vec<Vec<u8>>, [u8; 32]);

fn items(from: usize, count: usize) -> Vec<[u8; 8]> {
    let item = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (from..from + count).map(item).collect()
}

fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.unwrap().install(work)
}

fn sender(
    items: &[[u8; 8]],
    settings: Settings,
    search: bool,
    channel: &mut Channel,
) -> Result<Made> {
    channel.record_transcript();
    let sender = Sender::setup(SESSION, Prg::new(Block::new(1)), channel)?;
    let found = if search {
        let values: Vec<_> = items.iter().map(|item| item[..5].to_vec()).collect();
        sender
            .answer(items, &values, settings, &mut (), channel)?
            .found
    } else {
        sender.intersect(items, settings, &mut (), channel)?.common
    };
    Ok((found, Vec::new(), channel.transcript().unwrap().sent))
}

fn receiver(
    items: &[[u8; 8]],
    settings: Settings,
    search: bool,
    channel: &mut Channel,
) -> Result<Made> {
    channel.record_transcript();
    let receiver = Receiver::setup(SESSION, Prg::new(Block::new(2)), channel)?;
    let (common, values) = if search {
        let found = receiver.search(items, settings, &mut (), channel)?;
        (found.items, found.values)
    } else {
        let received = receiver.intersect(items, settings, &mut (), channel)?;
        (received.common, Vec::new())
    };
    Ok((Some(common), values, channel.transcript().unwrap().sent))
}

fn run(
    sets: [&[[u8; 8]]; 2],
    settings: Settings,
    search: bool,
    threads: [usize; 2],
    [left, right]: [Channel; 2],
) -> [Result<Made>; 2] {
    let ((sent, _), (received, _)) = run_two_channels(
        left,
        right,
        |channel| in_pool(threads[0], || sender(sets[0], settings, search, channel)),
        |channel| in_pool(threads[1], || receiver(sets[1], settings, search, channel)),
    );
    [sent, received]
}

#[test]
fn threads_make_no_difference_to_vector_ole() {
    let (ours, theirs) = (items(0, SENT), items(SENT - COMMON, RECEIVED));
    for kind in [
        Kind::Vole(vole::Settings::default()),
        Kind::Vole(vole::Settings {
            form: vole::Form::Low,
            both: true,
        }),
    ] {
        let mut first = None;
        for threads in [[1, 1], [3, 1], [2, 8]] {
            let (left, right) = Channel::memory_pair();
            let ((sent, _), (received, _)) = run_two_channels(
                left,
                right,
                |channel| {
                    channel.record_transcript();
                    let ended = in_pool(threads[0], || kind.send(&ours, channel)).unwrap();
                    (ended, channel.transcript().unwrap().sent)
                },
                |channel| {
                    channel.record_transcript();
                    let ended = in_pool(threads[1], || kind.receive(&theirs, channel)).unwrap();
                    (ended, channel.transcript().unwrap().sent)
                },
            );
            assert_eq!(received.0.1, Some((0..COMMON).collect()), "{threads:?}");
            let now = [sent, received];
            let first = first.get_or_insert_with(|| now.clone());
            assert!(now == *first, "{kind:?} {threads:?}");
        }
    }
}

#[test]
fn threads_make_no_difference() {
    let (ours, theirs) = (items(0, SENT), items(SENT - COMMON, RECEIVED));
    let kkrt = Variant::Kkrt;
    for (variant, both, search) in [
        (kkrt, true, false),
        (Variant::KkrtPaper, false, false),
        (kkrt, true, true),
    ] {
        let settings = Settings { variant, both };
        let mut first: Option<[Made; 2]> = None;
        for threads in THREADS {
            let channels = Channel::memory_pair().into();
            let now = run([&ours, &theirs], settings, search, threads, channels);
            let now = now.map(Result::unwrap);
            assert_eq!(now[1].0, Some((0..COMMON).collect()), "{threads:?}");
            let first = first.get_or_insert_with(|| now.clone());
            assert!(now == *first, "{variant} {both} {search} {threads:?}");
        }
    }
}

/// Sets with less work than there are threads.
#[test]
fn small_sets_do_not_mind_many_threads() {
    for (n, m) in [(1, 1), (5, 300), (9000, 3), (9000, 9000), (20_000, 17_000)] {
        let (ours, theirs) = (items(0, n), items(n - 1, m));
        let run = |threads| {
            let channels = Channel::memory_pair().into();
            let made = run(
                [&ours, &theirs],
                Settings::default(),
                false,
                threads,
                channels,
            );
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
    let settings = Settings::default();
    for threads in [[1, 1], [3, 3], [1, 8]] {
        let channels = Channel::memory_pair().into();
        let [_, received] = run([&ours, &twice], settings, false, threads, channels);
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
        |channel| sender(&ours, settings, false, channel).unwrap(),
        |channel| receiver(&theirs, settings, false, channel).unwrap(),
    );
    for threads in [[1, 1], [3, 3], [8, 1]] {
        let (left, right) = memory::pair();
        let left = Tampered::flip(left, sent.bytes_sent - 3, 1);
        let channels = [Channel::new(left), Channel::new(right)];
        let [_, received] = run([&ours, &theirs], settings, false, threads, channels);
        assert!(
            matches!(
                received,
                Err(Error::Channel(volery_channel::Error::PeerMisbehaved(_)))
            ),
            "{threads:?}"
        );
    }
}
