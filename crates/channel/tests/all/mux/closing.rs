//! How substreams end, and how long they wait.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;

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

/// Runs two tasks over a faulty transport, both of which begin before either does anything. What
/// `task` gets is its channel, its number, the fault, and the peer's end of the connection.
fn faulty_tasks(
    task: impl Fn(&mut Channel, usize, &Fault, &Mutex<Channel>) -> Result<()> + Sync,
) -> Arc<Fault> {
    let (inner, peer) = memory::pair();
    let fault = Arc::new(Fault::default());
    let left = Faulty { inner, fault: Arc::clone(&fault) };
    let mut left = Channel::with_timeout(left, Some(LONG));
    let peer = Mutex::new(Channel::with_timeout(peer, Some(LONG)));
    let begun = Barrier::new(2);
    let tasks = (0..2).map(|number| {
        let (task, begun, fault, peer) = (&task, &begun, &fault, &peer);
        move |channel: &mut Channel| {
            begun.wait();
            task(channel, number, fault, peer)
        }
    });
    let run = || mux::side_by_side(&mut left, 2, tasks.collect());
    assert!(!matches!(catch_unwind(AssertUnwindSafe(run)), Ok(Ok(_))), "both have failed");
    fault
}

fn send(channel: &mut Channel, bytes: &[u8]) -> Result<()> {
    channel.send(bytes)?;
    channel.flush()
}

#[test]
fn nothing_is_written_behind_half_a_frame() {
    let done = Barrier::new(2);
    let fault = faulty_tasks(|channel, number, fault, peer| {
        if number == 0 {
            send(channel, &[1; 10])?;
            // This arrives whatever happens to writing.
            send(&mut peer.lock().unwrap(), &[frame(1, 0, 1), vec![7]].concat()).unwrap();
            fault.what.store(1, Ordering::SeqCst);
            let failed = send(channel, &[2; 10]);
            assert!(failed.is_err());
            done.wait();
            done.wait();
            return failed;
        }
        done.wait();
        let mut byte = [0];
        channel.recv(&mut byte).unwrap();
        assert_eq!(byte, [7]);
        let failed = send(channel, &[3; 10]);
        assert!(failed.is_err());
        done.wait();
        failed
    });
    assert_eq!(fault.written_after.load(Ordering::SeqCst), 0);
}

#[test]
fn nothing_is_written_to_who_misbehaves() {
    let done = Barrier::new(2);
    let fault = faulty_tasks(|channel, number, fault, peer| {
        if number == 0 {
            send(&mut peer.lock().unwrap(), &frame(5, 0, 1)).unwrap();
            let failed = channel.recv(&mut [0]);
            assert!(matches!(failed, Err(Error::PeerMisbehaved(_))), "{failed:?}");
            fault.what.store(3, Ordering::SeqCst);
            done.wait();
            return failed;
        }
        done.wait();
        let failed = send(channel, &[3; 10]);
        assert!(failed.is_err());
        failed
    });
    assert_eq!(fault.written_after.load(Ordering::SeqCst), 0);
}

#[test]
fn a_panic_while_one_reads_for_all_ends_all() {
    let ended = Mutex::new(Vec::new());
    faulty_tasks(|channel, number, fault, peer| {
        channel.set_timeout(Some(Duration::from_secs(5)));
        if number == 0 {
            fault.what.store(2, Ordering::SeqCst);
            send(&mut peer.lock().unwrap(), &frame(0, 0, 1)).unwrap();
        }
        let failed = channel.recv(&mut [0]);
        ended.lock().unwrap().push(matches!(failed, Err(Error::Io(_))));
        failed
    });
    // The other one has panicked.
    assert_eq!(ended.into_inner().unwrap(), [true]);
}

/// Time between the bytes of a busy substream while others wait with four times that as their
/// timeout.
const STEP: Duration = Duration::from_millis(150);

/// A reader and a writer wait for longer than their timeout, while bytes of another substream come.
#[test]
fn a_substream_waits_as_long_as_any_moves() {
    for (mut left, mut right) in pairs() {
        left.set_timeout(Some(4 * STEP));
        // A writer that timed out sends nothing.
        right.set_timeout(Some(20 * STEP));
        let window = QUEUE_BOUND / 4;
        let busy = Barrier::new(3);
        thread::scope(|scope| {
            scope.spawn(|| {
                let busy = &busy;
                let tasks = (0..3).map(|number| {
                    move |channel: &mut Channel| {
                        if number == 0 {
                            for _ in 0..8 {
                                thread::sleep(STEP);
                                send(channel, &[1])?;
                            }
                        }
                        busy.wait();
                        if number == 1 {
                            send(channel, &[1])?;
                        } else if number == 2 {
                            let mut theirs = vec![0; window + 1];
                            channel.recv(&mut theirs)?;
                            assert_eq!(theirs[window], 2);
                        }
                        Ok(())
                    }
                });
                mux::side_by_side(&mut right, 3, tasks.collect()).unwrap();
            });
            let tasks = (0..3).map(|number| {
                move |channel: &mut Channel| match number {
                    0 => channel.recv(&mut [0; 8]),
                    1 => channel.recv(&mut [0]),
                    _ => {
                        send(channel, &vec![1; window])?;
                        send(channel, &[2])
                    }
                }
            });
            mux::side_by_side(&mut left, 3, tasks.collect()).unwrap();
        });
    }
}

/// No bytes arrive, but some are sent.
#[test]
fn a_substream_waits_as_long_as_another_sends() {
    for (mut left, right) in pairs() {
        left.set_timeout(Some(4 * STEP));
        let heard = Barrier::new(2);
        let of_left = |channel: &mut Channel, number| {
            if number == 0 {
                return channel.recv(&mut [0]);
            }
            for _ in 0..8 {
                thread::sleep(STEP);
                send(channel, &[1])?;
            }
            Ok(())
        };
        let of_right = |channel: &mut Channel, number| {
            if number == 1 {
                channel.recv(&mut [0; 8])?;
            }
            heard.wait();
            if number == 0 { send(channel, &[1]) } else { Ok(()) }
        };
        two_each((left, right), of_left, of_right);
    }
}
