//! A test tool: a transport that changes or cuts off what its party sends.
//!
//! It turns an honest implementation into a malicious peer, so that every check of a protocol can
//! be tested against one.
//!
//! ```
//! use volery_channel::{Channel, memory, tamper::Tampered};
//!
//! let (left, right) = memory::pair();
//! let flip_third = |offset, bytes: &mut [u8]| {
//!     for (i, byte) in (offset..).zip(bytes) {
//!         if i == 2 {
//!             *byte ^= 1;
//!         }
//!     }
//! };
//! let (mut left, mut right) = (Channel::new(Tampered::new(left, flip_third)), Channel::new(right));
//! left.send(&[0; 4])?;
//! left.flush()?;
//! let mut bytes = [0; 4];
//! right.recv(&mut bytes)?;
//! assert_eq!(bytes, [0, 0, 1, 0]);
//! # Ok::<_, volery_channel::Error>(())
//! ```
//!
//! Compiled only with the Cargo feature `testing`, which nothing but tests may turn on.

use std::io;
use std::time::Duration;

use volery_os::sync::Mutex;

use crate::Transport;
use crate::pipe::lock;

/// A transport whose outgoing bytes pass through a closure. What comes in is not touched.
pub struct Tampered<T> {
    inner: T,
    outgoing: Mutex<Outgoing>,
}

type Change = dyn FnMut(u64, &mut [u8]) + Send;

struct Outgoing {
    change: Box<Change>,
    offset: u64,
    end: Option<u64>,
}

impl<T: Transport> Tampered<T> {
    /// Passes every piece of the outgoing stream to `change`, with the offset of its first byte in
    /// the whole stream.
    ///
    /// Where the pieces begin and end depends on buffering; the closure should look at offsets
    /// only.
    pub fn new(inner: T, change: impl FnMut(u64, &mut [u8]) + Send + 'static) -> Self {
        Self {
            inner,
            outgoing: Mutex::new(Outgoing { change: Box::new(change), offset: 0, end: None }),
        }
    }

    /// Flips the bits of `mask` in the outgoing byte number `at`, counted from 0.
    pub fn flip(inner: T, at: u64, mask: u8) -> Self {
        Self::new(inner, move |offset, bytes| {
            let place = at.checked_sub(offset).and_then(|place| usize::try_from(place).ok());
            if let Some(byte) = place.and_then(|place| bytes.get_mut(place)) {
                *byte ^= mask;
            }
        })
    }

    /// Sends the first `end` bytes, then fails as if the connection had been cut: its own party
    /// gets [`Error::Disconnected`](crate::Error::Disconnected), and the peer too once this
    /// transport is dropped.
    pub fn truncated(inner: T, end: u64) -> Self {
        Self::new(inner, |_, _| ()).and_truncated(end)
    }

    /// The same, and cut after `end` bytes as in [`truncated`](Self::truncated).
    #[must_use]
    pub fn and_truncated(self, end: u64) -> Self {
        lock(&self.outgoing).end = Some(end);
        self
    }
}

impl<T: Transport> Transport for Tampered<T> {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        let mut outgoing = lock(&self.outgoing);
        let mut bytes = bytes.to_vec();
        let offset = outgoing.offset;
        (outgoing.change)(offset, &mut bytes);
        outgoing.offset += bytes.len() as u64;
        let left = outgoing
            .end
            .map(|end| usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX));
        match left {
            Some(left) if left < bytes.len() => {
                self.inner.write(&bytes[..left], timeout)?;
                Err(io::ErrorKind::BrokenPipe.into())
            }
            _ => self.inner.write(&bytes, timeout),
        }
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.inner.read(bytes, timeout)
    }
}
