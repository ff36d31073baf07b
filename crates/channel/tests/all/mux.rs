//! Tasks side by side, on a connection that goes on.

mod closing;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use volery_channel::{
    Channel, Error, QUEUE_BOUND, Result, Stats, TranscriptHashes, Transport, memory, mux,
    run_two_channels,
};

use super::{LONG, memory_pair, pairs, pattern, tcp_pair};

/// Bytes that a task sends and receives in a turn: also more than a buffer.
const LENGTHS: [usize; 4] = [1, 70_000, 5, 300_000];

/// The bytes that task `number` of a party sends in that turn.
fn bytes(party: u8, number: usize, turn: usize) -> Vec<u8> {
    pattern(LENGTHS[turn] + number, 100 * party + (number * 8 + turn) as u8)
}

/// Task `number` of a party: sends and receives in turn.
fn talk(channel: &mut Channel, party: u8, number: usize) -> Result<()> {
    for turn in 0..LENGTHS.len() {
        channel.send(&bytes(party, number, turn))?;
        let expected = bytes(1 - party, number, turn);
        let mut theirs = vec![0; expected.len()];
        channel.recv(&mut theirs)?;
        assert!(theirs == expected, "task {number}, turn {turn}");
    }
    Ok(())
}

/// A party: bytes before, as many tasks as in `rounds` each time, and bytes after them.
fn party(channel: &mut Channel, party: u8, threads: usize, rounds: &[usize]) -> Result<()> {
    for (round, tasks) in rounds.iter().enumerate() {
        let task = |number: usize| {
            move |channel: &mut Channel| talk(channel, party, number).map(|()| number)
        };
        let results = mux::side_by_side(channel, threads, (0..*tasks).map(task).collect())?;
        assert_eq!(results, (0..*tasks).collect::<Vec<_>>());
        let mut theirs = [0];
        channel.send(&[round as u8])?;
        channel.recv(&mut theirs)?;
        assert_eq!(theirs, [round as u8]);
    }
    Ok(())
}

type Seen = (Stats, TranscriptHashes);

/// Both parties at once; what the first has counted and bound.
fn run((mut left, mut right): (Channel, Channel), threads: [usize; 2], rounds: &[usize]) -> Seen {
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            right.set_timeout(Some(LONG));
            right.bind();
            party(&mut right, 1, threads[1], rounds).unwrap();
            right.bound()
        });
        left.set_timeout(Some(LONG));
        left.bind();
        party(&mut left, 0, threads[0], rounds).unwrap();
        let (ours, theirs) = (left.bound(), other.join().unwrap());
        assert_eq!((ours.sent, ours.received), (theirs.received, theirs.sent));
        (left.stats(), ours)
    })
}

/// Results, bytes, and the hash of what was said, are those of any number of threads.
#[test]
fn any_number_of_threads() {
    let mut first = None;
    for threads in [[1, 1], [4, 4], [1, 4], [3, 1]] {
        for pair in pairs() {
            let now = run(pair, threads, &[4, 1, 7]);
            assert_eq!(*first.get_or_insert(now), now, "{threads:?}");
        }
    }
    let each: usize = LENGTHS.iter().sum();
    let more = 4 * [4, 1, 7].map(|tasks| tasks * (tasks - 1) / 2).iter().sum::<usize>();
    let (stats, _) = first.unwrap();
    assert_eq!(stats.bytes_sent, (12 * each + more + 3) as u64);
    assert_eq!(stats.bytes_received, stats.bytes_sent);
}

/// Bindings within another one, of the channel and of tasks, leave the outer one its bytes.
#[test]
fn bindings_nest() {
    let run = |nested: usize| {
        let talk = move |channel: &mut Channel| {
            (0..nested).for_each(|_| channel.bind());
            channel.send(b"ping")?;
            channel.recv(&mut [0; 4])?;
            Ok((0..nested).map(|_| channel.bound()).collect::<Vec<_>>())
        };
        let party = move |channel: &mut Channel| {
            channel.bind();
            let mut inner = talk(channel).unwrap();
            inner.extend(mux::side_by_side(channel, 2, vec![talk; 2]).unwrap().concat());
            assert!(inner.iter().all(|one| *one == inner[0]));
            (channel.bound(), inner.len())
        };
        let (left, right) = memory_pair();
        let ((left, _), (right, _)) = run_two_channels(left, right, party, party);
        assert_eq!(left, right);
        left
    };
    let ((with, bindings), (without, none)) = (run(2), run(0));
    assert_eq!((with, bindings, none), (without, 6, 0));
}

/// No more tasks than threads compute at once, and a task that waits is none of them.
#[test]
fn threads_are_bounded() {
    let (mut left, mut right) = Channel::memory_pair();
    let (at_once, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let tasks = (0..6).map(|_| |channel: &mut Channel| channel.send(&[0; 50]));
            mux::side_by_side(&mut right, 6, tasks.collect()).unwrap();
        });
        let tasks = (0..6).map(|_| {
            |channel: &mut Channel| {
                for _ in 0..50 {
                    channel.recv(&mut [0])?;
                    let now = at_once.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    (0..1000).for_each(|_| thread::yield_now());
                    at_once.fetch_sub(1, Ordering::SeqCst);
                }
                Ok(())
            }
        });
        mux::side_by_side(&mut left, 2, tasks.collect()).unwrap();
    });
    assert!((1..=2).contains(&most.into_inner()));
}

/// The peer sends to the last task alone, and to each other one only what the task after it had to
/// pass on: one thread serves all, as a task that waits gives up its turn.
#[test]
fn a_task_that_waits_lets_others_go_on() {
    let (mut left, mut right) = Channel::memory_pair();
    let (tell, told): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel::<()>()).unzip();
    thread::scope(|scope| {
        scope.spawn(|| {
            let before = [None].into_iter().chain(tell.iter().cloned().map(Some));
            let tasks = told.into_iter().zip(before);
            let task = |(told, before): (mpsc::Receiver<()>, Option<mpsc::Sender<()>>)| {
                move |channel: &mut Channel| {
                    told.recv().unwrap();
                    channel.send(&[1])?;
                    channel.recv(&mut [0])?;
                    before.into_iter().for_each(|before| before.send(()).unwrap());
                    Ok(())
                }
            };
            tell[3].send(()).unwrap();
            mux::side_by_side(&mut right, 4, tasks.map(task).collect()).unwrap();
        });
        left.set_timeout(Some(LONG));
        let task = |_| {
            |channel: &mut Channel| {
                channel.recv(&mut [0])?;
                channel.send(&[1])
            }
        };
        mux::side_by_side(&mut left, 1, (0..4).map(task).collect()).unwrap();
    });
}

/// Three tasks that have nothing to say.
fn three_that_wait(channel: &mut Channel) -> Result<()> {
    channel.set_timeout(Some(LONG));
    let tasks = (0..3).map(|_| |channel: &mut Channel| channel.recv(&mut [0]));
    mux::side_by_side(channel, 3, tasks.collect()).map(drop)
}

/// A task that fails ends all others, here and there, with its error; then the channel is broken.
#[test]
fn a_failure_ends_all() {
    for (mut left, mut right) in pairs() {
        thread::scope(|scope| {
            let other = scope.spawn(|| three_that_wait(&mut right));
            left.set_timeout(Some(LONG));
            let tasks = (0..3).map(|number| {
                move |channel: &mut Channel| match number {
                    1 => Err(Error::PeerMisbehaved("a test")),
                    _ => channel.recv(&mut [0]),
                }
            });
            let error = mux::side_by_side(&mut left, 3, tasks.collect()).unwrap_err();
            assert!(matches!(error, Error::PeerMisbehaved("a test")), "{error}");
            assert!(matches!(left.send(&[1]), Err(Error::Broken)));
            drop(left);
            let error = other.join().unwrap().unwrap_err();
            assert!(matches!(error, Error::Disconnected), "{error}");
        });
    }
}

/// A task that waits for its turn while another one fails does not begin.
#[test]
fn after_a_failure_no_task_begins() {
    let (mut left, _right) = Channel::memory_pair();
    let begun = AtomicUsize::new(0);
    let task = |_: &mut Channel| -> Result<()> {
        begun.fetch_add(1, Ordering::SeqCst);
        Err(Error::PeerMisbehaved("a test"))
    };
    assert!(mux::side_by_side(&mut left, 1, vec![task; 3]).is_err());
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}

/// After a failed check of one task no other passes, nor sends anything.
#[test]
fn after_a_failed_check_no_other_passes() {
    for (mut left, mut right) in pairs() {
        thread::scope(|scope| {
            let other = scope.spawn(|| three_that_wait(&mut right));
            left.set_timeout(Some(LONG));
            let (failed, after) = mpsc::channel();
            let after = Mutex::new(after);
            let tasks = (0..3).map(|number| {
                let (failed, after) = (failed.clone(), &after);
                move |channel: &mut Channel| {
                    if number == 0 {
                        let error = channel.verdict(false, "a test").unwrap_err();
                        (0..2).for_each(|_| failed.send(()).unwrap());
                        return Err(error);
                    }
                    after.lock().unwrap().recv().unwrap();
                    let verdict = channel.verdict(true, "another");
                    assert!(matches!(verdict, Err(Error::PeerMisbehaved("a test"))), "{verdict:?}");
                    assert!(matches!(channel.send(&[1]), Err(Error::Broken)));
                    verdict
                }
            });
            let error = mux::side_by_side(&mut left, 3, tasks.collect()).unwrap_err();
            assert!(matches!(error, Error::PeerMisbehaved("a test")), "{error}");
            drop(left);
            let error = other.join().unwrap().unwrap_err();
            assert!(matches!(error, Error::Disconnected), "{error}");
        });
    }
}

/// A peer that gives a sign of life now and then is waited for.
#[test]
fn signs_of_life_count() {
    struct Alive<T>(T, AtomicUsize);
    impl<T: Transport> Transport for Alive<T> {
        fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
            self.0.write(bytes, timeout)
        }
        fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
            if self.1.fetch_add(1, Ordering::SeqCst) < 6 {
                thread::sleep(Duration::from_millis(200));
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.0.read(bytes, timeout)
        }
    }
    let (left, right) = memory::pair();
    let left =
        Channel::with_timeout(Alive(left, AtomicUsize::new(0)), Some(Duration::from_secs(1)));
    let task = |channel: &mut Channel| {
        channel.send(&[1])?;
        channel.recv(&mut [0])
    };
    let run = |channel: &mut Channel| mux::side_by_side(channel, 1, vec![task, task]).unwrap();
    run_two_channels(left, Channel::new(right), run, run);
}

/// A panic of a task leaves no other one waiting.
#[test]
fn a_panic_ends_all() {
    let (mut left, _right) = Channel::memory_pair();
    let tasks = (0..3).map(|number| {
        move |channel: &mut Channel| {
            assert!(number != 1, "a test");
            channel.recv(&mut [0])
        }
    });
    let run = AssertUnwindSafe(|| mux::side_by_side(&mut left, 3, tasks.collect()));
    assert!(catch_unwind(run).is_err());
    assert!(matches!(left.send(&[1]), Err(Error::Broken)));
}

/// Runs two tasks of each party at once: `left` and `right` get their channels and numbers.
fn two_each(
    (mut left, mut right): (Channel, Channel),
    of_left: impl Fn(&mut Channel, usize) -> Result<()> + Sync,
    of_right: impl Fn(&mut Channel, usize) -> Result<()> + Sync,
) {
    let run = |channel: &mut Channel, task: &(dyn Fn(&mut Channel, usize) -> Result<()> + Sync)| {
        let tasks = (0..2).map(|number| move |channel: &mut Channel| task(channel, number));
        mux::side_by_side(channel, 2, tasks.collect()).unwrap();
    };
    thread::scope(|scope| {
        scope.spawn(|| run(&mut right, &of_right));
        run(&mut left, &of_left);
    });
}

/// Unread bytes of one task fill only its substream.
#[test]
fn an_unread_substream_is_bounded_and_alone() {
    const PIECE: usize = 1 << 20;
    let bound = QUEUE_BOUND / 3;
    let pieces = bound / PIECE + 2;
    let (sent, talked) = (AtomicUsize::new(0), Barrier::new(2));
    let reader = |channel: &mut Channel, number| {
        if number == 1 {
            talk(channel, 0, 1)?;
            while sent.load(Ordering::SeqCst) + PIECE <= bound {
                thread::yield_now();
            }
            talk(channel, 0, 1)?;
            talked.wait();
            return Ok(());
        }
        talked.wait();
        let before = sent.load(Ordering::SeqCst);
        assert!(before <= bound && before + PIECE > bound, "{before}");
        let mut theirs = vec![0; pieces * PIECE];
        channel.recv(&mut theirs)?;
        assert!(theirs.iter().all(|&byte| byte == 1));
        Ok(())
    };
    let writer = |channel: &mut Channel, number| {
        if number == 1 {
            talk(channel, 1, 1)?;
            return talk(channel, 1, 1);
        }
        for _ in 0..pieces {
            channel.send(&vec![1; PIECE])?;
            sent.fetch_add(PIECE, Ordering::SeqCst);
        }
        Ok(())
    };
    two_each(tcp_pair(), reader, writer);
}

/// Almost a queue in both directions, read at the end; and once more, as the window is restored.
#[test]
fn both_may_send_first() {
    let task = |channel: &mut Channel, _| {
        let mut theirs = vec![0; QUEUE_BOUND / 4];
        for byte in [5, 6] {
            channel.send(&vec![byte; QUEUE_BOUND / 4])?;
            channel.recv(&mut theirs)?;
            assert!(theirs.iter().all(|&their| their == byte));
        }
        Ok(())
    };
    two_each(tcp_pair(), task, task);
}

#[test]
fn substreams_know_the_round_trip() {
    let (left, right) = tcp_pair();
    let known = left.round_trip();
    assert!(known.is_some());
    let check = |expected| {
        move |channel: &mut Channel, _| {
            assert_eq!(channel.round_trip(), expected);
            Ok(())
        }
    };
    two_each((left, right), check(known), check(None));
}

/// The header of a frame.
fn frame(substream: u16, kind: u16, length: u32) -> Vec<u8> {
    let mut bytes = substream.to_le_bytes().to_vec();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes
}

/// Frames that no honest party sends end all substreams, with the reason.
#[test]
fn bad_frames_are_refused() {
    let too_much = (QUEUE_BOUND / 3 + 1) as u32;
    let twice = [frame(0, 2, 0), frame(0, 0, 1)].concat();
    for bad in [
        frame(2, 0, 1),
        frame(u16::MAX, 2, 0),
        frame(0, 3, 0),
        frame(1, 2, 1),
        frame(0, 0, too_much),
        frame(0, 1, 1),
        frame(1, 1, u32::MAX),
        frame(0, 0, 0),
        frame(1, 1, 0),
        twice,
    ] {
        let (mut left, mut right) = memory_pair();
        left.set_timeout(Some(LONG / 6));
        let (begun, ended) = (Barrier::new(3), bad.len() > 8);
        let tasks = (0..2).map(|number| {
            let (begun, bad) = (&begun, &bad);
            move |channel: &mut Channel| -> Result<()> {
                begun.wait();
                let error = channel.recv(&mut [0]).unwrap_err();
                // A substream that was ended properly first reports only that.
                let is_end = ended && number == 0 && matches!(error, Error::Disconnected);
                assert!(is_end || matches!(error, Error::PeerMisbehaved(_)), "{bad:?} {error:?}");
                Err(error)
            }
        });
        thread::scope(|scope| {
            scope.spawn(|| {
                begun.wait();
                right.send(&bad).unwrap();
                right.flush().unwrap();
            });
            assert!(mux::side_by_side(&mut left, 2, tasks.collect()).is_err());
        });
    }
}
