//! Content, order, counting, and ends.

use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use volery_channel::tamper::Tampered;
use volery_channel::{Channel, Error, Stats, Transport, memory, queued, run_two_channels};

use crate::{LONG, SHORT, pairs, pattern};

const SIZES: [usize; 14] = [
    0,
    1,
    2,
    3,
    127,
    128,
    129,
    (64 << 10) - 1,
    64 << 10,
    (64 << 10) + 1,
    65_537 * 2 + 1,
    (1 << 20) - 1,
    (1 << 20) + 1,
    3_000_017,
];

#[test]
fn bytes_arrive_in_order_for_every_size_and_cut() {
    for (left, right) in pairs() {
        let all = pattern(SIZES.iter().sum(), 0);
        let (sent, received) = (all.clone(), all);
        run_two_channels(
            left,
            right,
            move |channel| {
                let mut rest = &sent[..];
                for size in SIZES {
                    let (now, later) = rest.split_at(size);
                    channel.send(now).unwrap();
                    rest = later;
                }
                channel.flush().unwrap();
            },
            move |channel| {
                let mut rest = &received[..];
                for size in SIZES.into_iter().rev() {
                    let (now, later) = rest.split_at(size);
                    let mut bytes = vec![0; size];
                    channel.recv(&mut bytes).unwrap();
                    assert!(bytes == now, "size {size}");
                    rest = later;
                }
            },
        );
    }
}

#[test]
fn one_thread_may_hold_both_ends() {
    // Only possible if a write does not wait for a read.
    for (mut left, mut right) in pairs() {
        let sent = pattern(20 << 20, 3);
        left.send(&sent).unwrap();
        left.flush().unwrap();
        right.send(&sent).unwrap();
        right.flush().unwrap();
        for channel in [&mut left, &mut right] {
            let mut bytes = vec![0; sent.len()];
            channel.recv(&mut bytes).unwrap();
            assert!(bytes == sent);
        }
    }
}

#[test]
fn messages_are_runs_of_one_direction() {
    for (mut left, mut right) in pairs() {
        left.send(&[]).unwrap();
        left.recv(&mut []).unwrap();
        assert_eq!(left.stats(), Stats::default(), "nothing moved");
        left.send(&[1, 2]).unwrap();
        left.flush().unwrap();
        left.recv(&mut []).unwrap();
        left.send(&[3]).unwrap();
        left.flush().unwrap();
        let mut bytes = [0; 1];
        for _ in 0..3 {
            right.recv(&mut bytes).unwrap();
        }
        right.send(&pattern(100_000, 0)).unwrap();
        right.flush().unwrap();
        let mut many = [0; 50_000];
        left.recv(&mut many).unwrap();
        left.recv(&mut many).unwrap();
        let before = left.stats();
        let expected = Stats {
            bytes_sent: 3,
            bytes_received: 100_000,
            messages_sent: 1,
            messages_received: 1,
            turns: 1,
        };
        assert_eq!(before, expected);
        left.send(&[4]).unwrap();
        let added = Stats { bytes_sent: 1, messages_sent: 1, turns: 1, ..Stats::default() };
        assert_eq!(left.stats() - before, added);
        assert_eq!(left.unflushed(), 1);
        let mirrored = Stats {
            bytes_sent: 100_000,
            bytes_received: 3,
            messages_sent: 1,
            messages_received: 1,
            turns: 1,
        };
        assert_eq!(right.stats(), mirrored);
    }
}

#[test]
fn transcripts_are_hashes_of_the_bytes_however_cut() {
    let (mut left, mut right) = Channel::memory_pair();
    assert_eq!(left.transcript(), None);
    left.record_transcript();
    right.record_transcript();
    let bytes = pattern(1000, 9);
    left.send(&bytes[..1]).unwrap();
    left.send(&bytes[1..]).unwrap();
    left.flush().unwrap();
    let mut received = [0; 500];
    right.recv(&mut received).unwrap();
    right.recv(&mut received).unwrap();
    let nothing = *blake3::hash(&[]).as_bytes();
    let all = *blake3::hash(&bytes).as_bytes();
    let (left, right) = (left.transcript().unwrap(), right.transcript().unwrap());
    assert_eq!((left.sent, left.received), (all, nothing));
    assert_eq!((right.sent, right.received), (nothing, all));
}

#[test]
fn a_dropped_end_disconnects_the_other_after_what_was_sent() {
    for (mut left, mut right) in pairs() {
        left.send(&[1, 2, 3]).unwrap();
        left.flush().unwrap();
        left.send(&[4]).unwrap();
        drop(left); // the unflushed byte is not sent
        let mut bytes = [0; 3];
        right.recv(&mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3]);
        assert!(matches!(right.recv(&mut bytes), Err(Error::Disconnected)));
        assert!(matches!(right.recv(&mut []), Err(Error::Broken)));
        assert!(matches!(right.send(&[1]), Err(Error::Broken)));
        assert!(matches!(right.flush(), Err(Error::Broken)));
    }
}

#[test]
fn writing_to_a_dropped_end_fails_at_last() {
    for (mut left, right) in pairs() {
        drop(right);
        let bytes = vec![0; 1 << 20];
        let error = (0..1000).find_map(|_| left.send(&bytes).err());
        assert!(matches!(error, Some(Error::Disconnected)), "{error:?}");
        assert!(matches!(left.send(&bytes), Err(Error::Broken)));
    }
}

#[test]
fn a_silent_peer_times_out() {
    for (mut left, right) in pairs() {
        left.set_timeout(Some(SHORT));
        let started = Instant::now();
        let error = left.recv(&mut [0]).unwrap_err();
        assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
        assert!(started.elapsed() >= SHORT);
        assert!(error.to_string().contains("100ms"), "{error}");
        assert!(matches!(left.recv(&mut [0]), Err(Error::Broken)));
        drop(right);
    }
}

#[test]
fn a_peer_that_never_reads_times_out_a_writer_beyond_the_bound() {
    for (mut left, right) in pairs() {
        left.set_timeout(Some(SHORT));
        let bytes = vec![0; 32 << 20];
        let sent = (0..100).take_while(|_| left.send(&bytes).is_ok()).count();
        assert!(sent * bytes.len() >= volery_channel::QUEUE_BOUND - bytes.len());
        assert!(sent < 100);
        // Neither end may hang here: left's queue is full and the other end does not read it.
        drop(left);
        drop(right);
    }
}

#[test]
fn truncation_ends_both_parties() {
    for end in [0, 1, 99, 100, 101] {
        let (left, right) = memory::pair();
        let (mut left, mut right) =
            (Channel::new(Tampered::truncated(left, end)), Channel::new(right));
        left.send(&[7; 100]).unwrap();
        let flushed = left.flush();
        assert_eq!(flushed.is_ok(), end >= 100);
        drop(left);
        let mut bytes = vec![0; end.min(100) as usize];
        right.recv(&mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 7));
        assert!(matches!(right.recv(&mut [0]), Err(Error::Disconnected)));
    }
}

/// Reads fill their slices, as callbacks do that know no shorter read.
struct Exact(memory::Memory, Arc<Mutex<Vec<usize>>>);

impl Transport for Exact {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.0.write(bytes, timeout)
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            filled += self.0.read(&mut bytes[filled..], timeout)?;
        }
        self.1.lock().unwrap().push(filled);
        Ok(filled)
    }

    fn reads_ahead(&self) -> bool {
        false
    }
}

#[test]
fn no_byte_is_read_ahead_where_the_transport_forbids_it() {
    let (left, right) = memory::pair();
    let asked = Arc::default();
    let exact: Box<dyn Transport> = Box::new(Exact(right, Arc::clone(&asked)));
    let mut left = Channel::with_timeout(left, Some(LONG));
    let mut right = Channel::with_timeout(exact, Some(LONG));
    left.send(&pattern(200_000, 3)).unwrap();
    left.flush().unwrap();
    let sizes = [1, 17, 100_000, 5];
    for size in sizes {
        right.recv(&mut vec![0; size]).unwrap();
    }
    assert_eq!(*asked.lock().unwrap(), sizes);
}

/// A party over a stream with one lock for both directions says why it waits.
#[test]
fn a_stream_that_cannot_be_split() {
    let (end, _peer) = memory::pair();
    let end = Arc::new(Mutex::new(end));
    let reader = Arc::clone(&end);
    let (holds, held) = mpsc::channel();
    let transport = queued(
        move |bytes, timeout| {
            let end = reader.lock().unwrap();
            holds.send(()).unwrap();
            end.read(bytes, timeout)
        },
        move |bytes, timeout| {
            held.recv().unwrap();
            let end = end.lock().unwrap();
            // Until the reader has looked.
            thread::sleep(SHORT);
            end.write(bytes, timeout)
        },
    );
    let mut channel = Channel::with_timeout(transport, Some(SHORT));
    channel.send(b"first").unwrap();
    let error = channel.recv(&mut [0; 5]).unwrap_err();
    assert!(matches!(&error, Error::TimedOut(why) if why.contains("share no lock")), "{error}");
}
