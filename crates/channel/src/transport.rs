//! The interface between a channel and the network below it.

use std::io;
use std::time::Duration;

/// A reliable, ordered byte stream in both directions.
///
/// The methods take `&self` because one thread may read while another writes (a [shaped
/// link](mod@crate::shaped) does so): a read that waits must not keep a write waiting. Two threads
/// never read, and never write, at the same time.
///
/// `timeout` is the longest time the call may go without moving a byte, never zero; `None` means no
/// limit. A call that reaches it fails with [`io::ErrorKind::TimedOut`] or
/// [`io::ErrorKind::WouldBlock`]. Dropping a transport closes the stream after everything written
/// has been handed over.
pub trait Transport: Send + Sync {
    /// Sends all of `bytes`.
    ///
    /// This should not wait for the peer to read: it queues the bytes that the operating system
    /// does not take at once, up to a bound above the largest message that a protocol sends in one
    /// go. A transport without a queue works as long as it takes what a party sends while the peer
    /// sends as well and reads nothing. The protocols of the C library send at most 16,384 bytes so
    /// (its `VOLERY_BOTH_SEND`), which sockets buffer. Others send more:
    /// [`queued`](crate::queued()) makes a queue.
    ///
    /// # Errors
    /// If the peer is gone or no byte moved within `timeout`.
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()>;

    /// Sends like [`write`](Self::write), but goes on waiting after `timeout` as long as `alive`
    /// returns true, which it is asked several times within each `timeout`: the peer may be busy.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    fn write_while(
        &self,
        bytes: &[u8],
        timeout: Option<Duration>,
        _alive: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        self.write(bytes, timeout)
    }

    /// Whether no written bytes are queued here.
    fn is_idle(&self) -> bool {
        true
    }

    /// Bytes that are queued in each direction before a write waits for the peer to read.
    fn queue_bound(&self) -> usize {
        crate::QUEUE_BOUND
    }

    /// Receives at least one byte and at most `bytes.len()`, which is not zero; `Ok(0)` means that
    /// the peer closed.
    ///
    /// # Errors
    /// If the peer is gone or no byte came within `timeout`. [`io::ErrorKind::Interrupted`] is a
    /// sign of life without bytes, after which the caller may wait anew.
    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize>;

    /// Whether [`read`](Self::read) may be asked for more bytes than the protocol waits for, which
    /// saves calls. If not, a read that returns only when it has filled its slice does no harm, and
    /// no byte after the protocol's last is taken from the stream.
    fn reads_ahead(&self) -> bool {
        true
    }

    /// The round-trip time, if this side knows it without measuring, as the connecting side does
    /// over TCP.
    fn round_trip(&self) -> Option<Duration> {
        None
    }
}

impl Transport for Box<dyn Transport> {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        (**self).write(bytes, timeout)
    }

    fn write_while(
        &self,
        bytes: &[u8],
        timeout: Option<Duration>,
        alive: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        (**self).write_while(bytes, timeout, alive)
    }

    fn is_idle(&self) -> bool {
        (**self).is_idle()
    }

    fn queue_bound(&self) -> usize {
        (**self).queue_bound()
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        (**self).read(bytes, timeout)
    }

    fn reads_ahead(&self) -> bool {
        (**self).reads_ahead()
    }

    fn round_trip(&self) -> Option<Duration> {
        (**self).round_trip()
    }
}
