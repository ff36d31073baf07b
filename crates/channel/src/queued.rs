//! A non-blocking transport over a blocking one.

use std::io;
use std::time::Duration;

use volery_os::sync::{Arc, Mutex};
use volery_os::thread::{self, JoinHandle};

use crate::pipe::{Chunk, Pipe, is_timeout, lock};
use crate::{Error, Transport};

/// Writes with `write` from a thread of its own, so that a write never waits for the peer to read,
/// up to [`QUEUE_BOUND`](crate::QUEUE_BOUND) bytes: the two halves of any blocking stream become a
/// transport on which both parties may send first. `read` and `write` do as [`Transport::read`] and
/// [`Transport::write`].
///
/// They run at the same time, so they have a half each, which is what the types ask for. If a
/// stream has no halves, as a TLS session in a lock that `read` holds while it waits, `write` waits
/// for the peer's bytes and the peer for ours; the error after the timeout says so. Inside a tokio
/// runtime take `tokio::Bridge`, with the feature `tokio`, which needs no halves.
///
/// # Panics
/// If the operating system cannot start a thread.
///
/// # Examples
///
/// A Unix socket, whose clone is the other half:
///
/// ```
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
/// use std::time::Duration;
/// use volery_channel::{Channel, queued, run_two_channels};
///
/// fn channel(mut reader: UnixStream) -> std::io::Result<Channel> {
///     let mut writer = reader.try_clone()?;
///     let transport = queued(
///         move |bytes, timeout| {
///             reader.set_read_timeout(timeout)?;
///             reader.read(bytes)
///         },
///         move |bytes, timeout| {
///             writer.set_write_timeout(timeout)?;
///             writer.write_all(bytes)
///         },
///     );
///     Ok(Channel::with_timeout(transport, Some(Duration::from_secs(60))))
/// }
///
/// let party = |ours: u8| {
///     move |channel: &mut Channel| {
///         let mut theirs = vec![0; 5_000_000];
///         // Both parties send at once, more than the system buffers.
///         channel.send(&vec![ours; theirs.len()])?;
///         channel.recv(&mut theirs)?;
///         Ok::<_, volery_channel::Error>(theirs[0])
///     }
/// };
///
/// let (left, right) = UnixStream::pair()?;
/// let ((left, _), (right, _)) =
///     run_two_channels(channel(left)?, channel(right)?, party(1), party(2));
/// assert_eq!((left?, right?), (2, 1));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn queued(
    read: impl FnMut(&mut [u8], Option<Duration>) -> io::Result<usize> + Send + 'static,
    mut write: impl FnMut(&[u8], Option<Duration>) -> io::Result<()> + Send + 'static,
) -> Queued {
    let queue = Arc::new(Pipe::new());
    let timeout = Arc::new(Mutex::new(None));
    let writer = thread::Builder::new().name("volery queued writer".into()).spawn({
        let (queue, timeout) = (Arc::clone(&queue), Arc::clone(&timeout));
        move || deliver(&mut write, &queue, &timeout)
    });
    Queued {
        read: Mutex::new(Box::new(read)),
        queue,
        timeout,
        writer: Some(writer.expect("the operating system can start a thread")),
    }
}

/// Reads with the timeout of [`Transport::read`].
type Read = dyn FnMut(&mut [u8], Option<Duration>) -> io::Result<usize> + Send;

/// A transport with a queue and a thread that empties it, made by [`queued`].
///
/// Dropping it takes as long as the stream below needs for the queued bytes; no time while the
/// thread panics.
pub struct Queued {
    read: Mutex<Box<Read>>,
    queue: Arc<Pipe>,
    /// The timeout of the last write.
    timeout: Arc<Mutex<Option<Duration>>>,
    writer: Option<JoinHandle<()>>,
}

impl Queued {
    /// Queues one chunk; waits only if the queue is full.
    pub(crate) fn push(&self, chunk: Chunk, timeout: Option<Duration>) -> io::Result<()> {
        *lock(&self.timeout) = timeout;
        self.queue.push_chunk(chunk, timeout)
    }
}

/// Hands each chunk to `write` when it is due.
fn deliver(
    write: &mut impl FnMut(&[u8], Option<Duration>) -> io::Result<()>,
    queue: &Pipe,
    timeout: &Mutex<Option<Duration>>,
) {
    while let Ok(Some(chunk)) = queue.take(None) {
        if !queue.wait_until(chunk.due) {
            return;
        }
        let timeout = *lock(timeout);
        if let Err(error) = write(&chunk.bytes, timeout) {
            return queue.fail(error.kind());
        }
        queue.release(chunk.bytes.len());
    }
}

impl Transport for Queued {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        *lock(&self.timeout) = timeout;
        self.queue.push(bytes, timeout)
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let mut read = lock(&self.read);
        let result = self.queue.read_patiently(|| read(bytes, timeout));
        match result {
            Err(error) if is_timeout(error.kind()) && !self.queue.is_idle() => {
                Err(io::Error::new(error.kind(), Error::TimedOut(STUCK.into())))
            }
            result => result,
        }
    }
}

/// Why a read may have timed out while bytes were to be written.
const STUCK: &str = "this party waited for the peer, and its own bytes could not be sent \
    meanwhile: the peer does not read, or the two halves of the transport wait for each other, as \
    those of a stream in one lock do; hint: give volery::channel::queued halves that share no lock";

impl Drop for Queued {
    fn drop(&mut self) {
        self.queue.close();
        if thread::panicking() {
            self.queue.fail(io::ErrorKind::BrokenPipe);
        }
        if let Some(writer) = self.writer.take() {
            // Only a panic inside `write` can make `join` fail, and that has been
            // reported.
            let _ = writer.join();
        }
    }
}
