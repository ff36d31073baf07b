//! A peer that only replays recorded messages: so one party runs alone, and only its own work is
//! measured.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use volery_channel::{Channel, Transport, memory, run_two_channels};

/// The messages that a party received in a run.
pub(crate) type Recording = Vec<u8>;

/// Records what is read.
struct Recorder {
    inner: memory::Memory,
    heard: Arc<Mutex<Recording>>,
}

impl Transport for Recorder {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.inner.write(bytes, timeout)
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let count = self.inner.read(bytes, timeout)?;
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.extend_from_slice(&bytes[..count]);
        Ok(count)
    }
}

/// Runs two parties; returns the messages that the first one received.
pub(crate) fn record<A: Send, B: Send>(
    first: impl FnOnce(&mut Channel) -> A + Send,
    second: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, Recording) {
    let heard = Arc::default();
    let (left, right) = memory::pair();
    let left = Recorder { inner: left, heard: Arc::clone(&heard) };
    let (left, right) = (Channel::new(left), Channel::new(right));
    let ((a, _), _) = run_two_channels(left, right, first, second);
    let recording = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
    (a, recording)
}

/// Replays the recording again and again; ignores all input.
struct Replay {
    recording: Recording,
    next: Mutex<usize>,
}

impl Transport for Replay {
    fn write(&self, _: &[u8], _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], _: Option<Duration>) -> io::Result<usize> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if *next == self.recording.len() {
            *next = 0;
        }
        let count = bytes.len().min(self.recording.len() - *next);
        bytes[..count].copy_from_slice(&self.recording[*next..][..count]);
        *next += count;
        Ok(count)
    }
}

/// A channel that replays the recording again and again.
pub(crate) fn replay(recording: Recording) -> Channel {
    Channel::new(Replay { recording, next: Mutex::new(0) })
}
