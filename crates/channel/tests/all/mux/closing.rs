//! How substreams end, and when they do not.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use volery_channel::{Transport, memory};

use super::*;

/// A transport that works, and from some time on misbehaves; counts the bytes written after that.
struct Faulty {
    inner: memory::Memory,
    fault: Arc<Fault>,
}

#[derive(Default)]
struct Fault {
    /// 1: the next write sends half, and fails. 2: the next read panics.
    what: AtomicUsize,
    written_after: AtomicUsize,
}

impl Transport for Faulty {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        match self.fault.what.load(Ordering::SeqCst) {
            1 => {
                self.fault.what.store(3, Ordering::SeqCst);
                self.inner.write(&bytes[..bytes.len() / 2], timeout)?;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            3 => {
                self.fault.written_after.fetch_add(1, Ordering::SeqCst);
            }
            _ => {}
        }
        self.inner.write(bytes, timeout)
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let count = self.inner.read(bytes, timeout)?;
        if self.fault.what.load(Ordering::SeqCst) == 2 {
            resume_unwind(Box::new("the transport"));
        }
        Ok(count)
    }
}

/// Two substreams of a faulty transport; its fault, and the peer's end of the connection.
fn faulty_substreams() -> ([Substream; 2], Arc<Fault>, Channel) {
    let (inner, peer) = memory::pair();
    let fault = Arc::new(Fault::default());
    let left = Faulty { inner, fault: Arc::clone(&fault) };
    let left = Channel::with_timeout(left, Some(LONG));
    let mut peer = Channel::with_timeout(peer, Some(LONG));
    peer.send(&greeting()).unwrap();
    peer.flush().unwrap();
    let substreams = mux::split(left, SESSION).unwrap();
    peer.recv(&mut [0; 16]).unwrap();
    (substreams, fault, peer)
}

fn send(substream: &mut Substream, bytes: &[u8]) -> Result<()> {
    substream.channel().send(bytes)?;
    substream.channel().flush()
}

#[test]
fn nothing_is_written_behind_half_a_frame() {
    let ([mut one, mut other], fault, mut peer) = faulty_substreams();
    send(&mut one, &[1; 10]).unwrap();
    // This arrives whatever happens to writing.
    peer.send(&[frame(1, 0, 1), vec![7]].concat()).unwrap();
    peer.flush().unwrap();
    fault.what.store(1, Ordering::SeqCst);
    assert!(send(&mut one, &[2; 10]).is_err());
    let mut byte = [0];
    other.channel().recv(&mut byte).unwrap();
    assert_eq!(byte, [7]);
    assert!(send(&mut other, &[3; 10]).is_err());
    drop((one, other));
    assert_eq!(fault.written_after.load(Ordering::SeqCst), 0);
}

#[test]
fn nothing_is_written_to_who_misbehaves() {
    let ([mut one, mut other], fault, mut peer) = faulty_substreams();
    peer.send(&frame(5, 0, 1)).unwrap();
    peer.flush().unwrap();
    let error = one.channel().recv(&mut [0]).unwrap_err();
    assert!(matches!(error, Error::PeerMisbehaved(_)), "{error:?}");
    fault.what.store(3, Ordering::SeqCst);
    assert!(send(&mut other, &[3; 10]).is_err());
    drop((one, other));
    assert_eq!(fault.written_after.load(Ordering::SeqCst), 0);
}

#[test]
fn a_panic_while_one_reads_for_all_ends_all() {
    let (substreams, fault, mut peer) = faulty_substreams();
    fault.what.store(2, Ordering::SeqCst);
    peer.send(&frame(0, 0, 1)).unwrap();
    peer.flush().unwrap();
    let waiting = substreams.map(|mut substream| {
        substream.channel().set_timeout(Some(Duration::from_secs(5)));
        thread::spawn(move || substream.channel().recv(&mut [0]))
    });
    let ended = waiting.map(thread::JoinHandle::join);
    assert_eq!(ended.iter().filter(|ended| ended.is_err()).count(), 1);
    for ended in ended.into_iter().flatten() {
        assert!(matches!(ended, Err(Error::Io(_))), "{ended:?}");
    }
}

/// As above with substreams at both ends, and an operating system that drops bytes in flight of a
/// closed connection.
#[test]
fn all_arrives_though_the_sender_drops_its_substreams() {
    for pair in pairs() {
        let ([mut long, mut short], [mut peer_long, mut peer_short]) = both::<2>(pair);
        let length = 12 << 20;
        thread::scope(|scope| {
            scope.spawn(move || {
                send(&mut peer_long, &pattern(length, 1)).unwrap();
                send(&mut peer_short, &[8]).unwrap();
            });
            thread::sleep(SHORT);
            let mut theirs = vec![0; length];
            for part in theirs.chunks_mut(1 << 20) {
                thread::sleep(Duration::from_millis(5));
                long.channel().recv(part).unwrap();
            }
            assert!(theirs == pattern(length, 1));
            drop(long);
            let mut byte = [0];
            short.channel().recv(&mut byte).unwrap();
            assert_eq!(byte, [8]);
        });
    }
}

/// Time between the bytes of a busy substream while others wait with four times that as their
/// timeout.
const STEP: Duration = Duration::from_millis(150);

/// A reader and a writer wait for longer than their timeout, while bytes of another substream come.
#[test]
fn a_substream_waits_as_long_as_any_moves() {
    for pair in pairs() {
        const LANES: usize = 64;
        let (mut substreams, mut peers) = both::<LANES>(pair);
        let window = QUEUE_BOUND / (LANES + 1);
        let [full, reading, busy, ..] = &mut substreams;
        let [peer_full, peer_reading, peer_busy, ..] = &mut peers;
        send(full, &vec![1; window]).unwrap();
        thread::scope(|scope| {
            for substream in [&mut *full, &mut *reading] {
                substream.channel().set_timeout(Some(4 * STEP));
            }
            // A writer that timed out sends nothing.
            peer_full.channel().set_timeout(Some(20 * STEP));
            scope.spawn(|| send(full, &[2]).unwrap());
            scope.spawn(|| reading.channel().recv(&mut [0]).unwrap());
            scope.spawn(|| busy.channel().recv(&mut [0; 8]).unwrap());
            for _ in 0..8 {
                thread::sleep(STEP);
                send(peer_busy, &[1]).unwrap();
            }
            send(peer_reading, &[1]).unwrap();
            let mut theirs = vec![0; window + 1];
            peer_full.channel().recv(&mut theirs).unwrap();
            assert_eq!(theirs[window], 2);
        });
    }
}

/// No bytes arrive, but some are sent.
#[test]
fn a_substream_waits_as_long_as_another_sends() {
    for pair in pairs() {
        let ([mut reading, mut busy], [mut peer_reading, _peer_busy]) = both::<2>(pair);
        thread::scope(|scope| {
            reading.channel().set_timeout(Some(4 * STEP));
            scope.spawn(|| reading.channel().recv(&mut [0]).unwrap());
            for _ in 0..8 {
                thread::sleep(STEP);
                send(&mut busy, &[1]).unwrap();
            }
            send(&mut peer_reading, &[1]).unwrap();
        });
    }
}

#[test]
fn substreams_know_the_round_trip() {
    let (left, right) = tcp_pair();
    let known = left.round_trip();
    assert!(known.is_some());
    let (mut left, mut right) = both::<2>((left, right));
    assert_eq!(left[1].channel().round_trip(), known);
    assert_eq!(right[1].channel().round_trip(), None);
}
