//! Transports with a recording at one end.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use volery_channel::{Transport, memory};

/// A peer who sends `bytes`, regardless of what it receives, and then disconnects.
pub(super) struct Replay {
    bytes: Vec<u8>,
    /// The most bytes delivered by one read.
    piece: usize,
    /// The number of bytes already delivered.
    read: AtomicUsize,
    heard: Log,
}

/// The recorded bytes.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn append(&self, bytes: &[u8]) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend_from_slice(bytes);
    }
}

impl Replay {
    pub(super) fn new(bytes: Vec<u8>, piece: usize) -> Self {
        Self { bytes, piece: piece.max(1), read: AtomicUsize::new(0), heard: Log::default() }
    }

    /// The bytes it received.
    pub(super) fn heard(&self) -> Log {
        self.heard.clone()
    }
}

impl Transport for Replay {
    fn write(&self, bytes: &[u8], _timeout: Option<Duration>) -> io::Result<()> {
        self.heard.append(bytes);
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], _timeout: Option<Duration>) -> io::Result<usize> {
        let start = self.read.load(Ordering::Relaxed);
        let left = &self.bytes[start..];
        let count = left.len().min(bytes.len()).min(self.piece);
        bytes[..count].copy_from_slice(&left[..count]);
        self.read.store(start + count, Ordering::Relaxed);
        Ok(count)
    }
}

/// One end of a connection in memory that records the bytes of its party.
pub(super) struct Recorder {
    inner: memory::Memory,
    sent: Log,
}

impl Recorder {
    pub(super) fn new(inner: memory::Memory) -> (Self, Log) {
        let sent = Log::default();
        let log = sent.clone();
        (Self { inner, sent }, log)
    }
}

impl Transport for Recorder {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.sent.append(bytes);
        self.inner.write(bytes, timeout)
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.inner.read(bytes, timeout)
    }
}
